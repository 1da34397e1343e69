// A table that another process wrote, as an array.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.hpp"

namespace insight_trace::engine {

template <class Row> class ReadTable {
  public:
    explicit ReadTable(const std::string &path) {
        const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
        struct stat facts{};
        if (file < 0 || fstat(file, &facts) != 0)
            fail(Fault::Environment, {}, "cannot read %s: %s", path.c_str(), strerror(errno));
        bytes_ = static_cast<size_t>(facts.st_size);
        if (bytes_) {
            // its pages come together, unless they are so many that they are given back piece by piece
            const int at_once = bytes_ > kMuch ? 0 : MAP_POPULATE;
            void *place = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | at_once, file, 0);
            if (place == MAP_FAILED)
                fail(Fault::Environment, {}, "cannot map %s: %s", path.c_str(), strerror(errno));
            rows_ = static_cast<Row *>(place);
        }
        ::close(file);
    }
    ReadTable(const ReadTable &) = delete;
    ~ReadTable() {
        if (bytes_) munmap(rows_, bytes_);
    }
    size_t size() const { return bytes_ / sizeof(Row); }
    void release() const {
        if (bytes_ > kMuch) madvise(rows_, bytes_, MADV_DONTNEED);
    }
    // Nobody needs the rows before this one any more: their file gives back the room that they took, where
    // its system can do so, and their memory is given back in any case.
    void drop(size_t row) {
        release();
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        const size_t end = row * sizeof(Row) / page * page;
        if (bytes_ <= kMuch || end <= dropped_) return;
        madvise(reinterpret_cast<uint8_t *>(rows_) + dropped_, end - dropped_, MADV_REMOVE);
        dropped_ = end;
    }
    const Row &operator[](size_t row) const { return rows_[row]; }
    Row *begin() { return rows_; }
    const Row *begin() const { return rows_; }
    const Row *end() const { return rows_ + size(); }

  private:
    static constexpr size_t kMuch = 64u << 20;
    Row *rows_ = nullptr;
    size_t bytes_ = 0, dropped_ = 0;
};

} // namespace insight_trace::engine
