// A table that another process wrote, as an array.
#pragma once

#include <cerrno>
#include <cstddef>
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
        const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat facts{};
        if (file < 0 || fstat(file, &facts) != 0)
            fail(Fault::Environment, {}, "cannot read %s: %s", path.c_str(), strerror(errno));
        bytes_ = static_cast<size_t>(facts.st_size);
        if (bytes_) {
            // its pages come together, unless they are so many that they are given back piece by piece
            const int at_once = bytes_ > kMuch ? 0 : MAP_POPULATE;
            void *place = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED | at_once, file, 0);
            if (place == MAP_FAILED)
                fail(Fault::Environment, {}, "cannot map %s: %s", path.c_str(), strerror(errno));
            rows_ = static_cast<const Row *>(place);
        }
        ::close(file);
    }
    ReadTable(const ReadTable &) = delete;
    ~ReadTable() {
        if (bytes_) munmap(const_cast<Row *>(rows_), bytes_);
    }
    size_t size() const { return bytes_ / sizeof(Row); }
    void release() const {
        if (bytes_ > kMuch) madvise(const_cast<Row *>(rows_), bytes_, MADV_DONTNEED);
    }
    const Row &operator[](size_t row) const { return rows_[row]; }
    const Row *begin() const { return rows_; }
    const Row *end() const { return rows_ + size(); }

  private:
    static constexpr size_t kMuch = 64u << 20;
    const Row *rows_ = nullptr;
    size_t bytes_ = 0;
};

} // namespace insight_trace::engine
