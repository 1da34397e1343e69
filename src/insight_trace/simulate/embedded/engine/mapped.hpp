// Tables that grow without being copied.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace insight_trace::engine {

int created_file(const std::string &path); // empty, open

// A table that grows in a mapped file, or in memory when it has no path.
class MappedBytes {
  public:
    MappedBytes(const std::string &path, size_t row_bytes);
    ~MappedBytes();
    MappedBytes(const MappedBytes &) = delete;
    void grow();
    void close(size_t rows);        // cuts the file to the rows written
    bool cut(size_t rows) noexcept; // the same, where nothing may be allocated; false if it cannot
    // Gives back the memory of what lies in a file, where that is much: it comes again when it is used.
    void release() const;
    // The most bytes that the tables of this process may have in files, which may lie in memory, and who is
    // told that they want more; 0: no limit.
    static inline size_t room = 0;
    static inline void (*without_room)() = nullptr;

  protected:
    // From now on rows that lie elsewhere, and stay there: none is added.
    void look_at(void *rows, size_t count);
    void forget();

    uint8_t *bytes_ = nullptr;
    size_t capacity_ = 0; // rows

  private:
    static inline std::atomic<size_t> in_files_ = 0;
    int file_ = -1;
    bool elsewhere_ = false;
    size_t row_bytes_;
};

template <class Row> class Mapped : MappedBytes {
  public:
    explicit Mapped(const std::string &path) : MappedBytes(path, sizeof(Row)) {}
    uint32_t append(const Row &row) {
        Row &place = next();
        if (&row != &place) place = row;
        return static_cast<uint32_t>(count_++);
    }
    // The place of the row that is appended next, for who makes it there (fifo.hpp says why).
    Row &next() {
        if (count_ == capacity_) grow();
        return rows()[count_];
    }
    Row &operator[](uint32_t row) { return rows()[row]; }
    const Row &operator[](uint32_t row) const { return rows()[row]; }
    uint32_t size() const { return static_cast<uint32_t>(count_); }
    void clear() { count_ = 0; } // the room stays
    using MappedBytes::release;
    // Rows of somebody else, in place of its own.
    void look_at(Row *rows, size_t count) {
        MappedBytes::look_at(rows, count);
        count_ = count;
    }
    // Gives back its memory; for a table that has no path.
    void forget() {
        count_ = 0;
        MappedBytes::forget();
    }
    // How many rows the file has from now on: a core that still runs may go on adding some.
    size_t finish() {
        const size_t rows = count_;
        close(rows);
        return rows;
    }
    void discard() noexcept {
        count_ = 0;
        cut(0);
    }

  private:
    Row *rows() const { return reinterpret_cast<Row *>(bytes_); }
    size_t count_ = 0;
};

} // namespace insight_trace::engine
