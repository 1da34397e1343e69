// Rows of all cores in growing, memory-mapped files; sites and other small tables beside them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "insight_trace/abi.hpp"
#include "parameters.hpp"
#include "record.hpp"

namespace insight_trace::engine {

struct SiteRow {
    const char *file;
    uint32_t line;
    Instr instr;
    PipeId pipe;
};

// A table that grows in a mapped file, or in memory when it has no path.
class MappedBytes {
  public:
    MappedBytes(const std::string &path, size_t row_bytes);
    ~MappedBytes();
    MappedBytes(const MappedBytes &) = delete;
    void grow();
    void close(size_t rows); // cuts the file to the rows written

  protected:
    uint8_t *bytes_ = nullptr;
    size_t capacity_ = 0; // rows

  private:
    int file_ = -1;
    size_t row_bytes_;
};

template <class Row> class Mapped : MappedBytes {
  public:
    explicit Mapped(const std::string &path) : MappedBytes(path, sizeof(Row)) {}
    uint32_t append(const Row &row) {
        if (count_ == capacity_) grow();
        rows()[count_] = row;
        return static_cast<uint32_t>(count_++);
    }
    Row &operator[](uint32_t row) { return rows()[row]; }
    const Row &operator[](uint32_t row) const { return reinterpret_cast<const Row *>(bytes_)[row]; }
    uint32_t size() const { return static_cast<uint32_t>(count_); }
    void finish() { close(count_); }

  private:
    Row *rows() { return reinterpret_cast<Row *>(bytes_); }
    size_t count_ = 0;
};

// Rows of plain data without padding, each kept once.
template <class Row> class Interned {
  public:
    uint32_t index_of(const Row &row) {
        uint64_t mixed = hash(row);
        Recent &recent = recent_[mixed >> 56];
        if (recent.used && same(rows_[recent.index], row)) return recent.index;
        auto range = index_.equal_range(mixed);
        for (auto found = range.first; found != range.second; ++found)
            if (same(rows_[found->second], row)) {
                recent = {found->second, true};
                return found->second;
            }
        auto added = static_cast<uint32_t>(rows_.size());
        rows_.push_back(row);
        index_.emplace(mixed, added);
        recent = {added, true};
        return added;
    }
    const std::vector<Row> &rows() const { return rows_; }

  private:
    static bool same(const Row &a, const Row &b) { return memcmp(&a, &b, sizeof(Row)) == 0; }
    static uint64_t hash(const Row &row) {
        static_assert(sizeof(Row) % 8 == 0);
        uint64_t words[sizeof(Row) / 8], mixed = 0;
        memcpy(words, &row, sizeof words);
        for (uint64_t word : words) mixed = (mixed ^ word) * 0x9e3779b97f4a7c15ull + (mixed >> 29);
        return mixed * 0xff51afd7ed558ccdull;
    }
    struct Recent {
        uint32_t index = 0;
        bool used = false;
    };
    std::vector<Row> rows_;
    std::unordered_multimap<uint64_t, uint32_t> index_;
    std::array<Recent, 256> recent_{};
};

class Records {
  public:
    explicit Records(const std::string &path); // "" keeps them in memory only
    Records(const Records &) = delete;

    uint32_t append(const Record &record) { return rows_.append(record); }
    Record &operator[](uint32_t row) { return rows_[row]; }
    const Record &operator[](uint32_t row) const { return rows_[row]; }
    uint32_t size() const { return rows_.size(); }
    uint32_t site(Site at, Instr instr, PipeId pipe);
    const std::vector<SiteRow> &sites() const { return sites_; }

    bool detailed() const { return !path_.empty(); } // without a file nobody reads operands
    void operand(const OperandRow &row) { operands_.append(row); }
    const OperandRow &operand(uint32_t index) const { return operands_[index]; }
    uint32_t operand_count() const { return operands_.size(); }
    uint32_t call(Op op, uint16_t core, const std::vector<uint32_t> &tiles);
    Interned<Geometry> geometries;
    Interned<Footprint> footprints;
    Interned<TileRow> tiles;

    // Cuts the files to what was written, and writes the small tables.
    void close();

  private:
    const std::string path_;
    Mapped<Record> rows_;
    Mapped<OperandRow> operands_;
    Mapped<CallRow> calls_;
    std::vector<uint32_t> lists_;
    std::unordered_map<std::string, uint32_t> list_index_;
    std::vector<SiteRow> sites_;
    struct Key {
        const char *file;
        uint64_t rest;
        bool operator==(const Key &other) const { return file == other.file && rest == other.rest; }
    };
    struct Hash {
        size_t operator()(const Key &key) const {
            return (reinterpret_cast<size_t>(key.file) ^ (key.rest * 0x9e3779b97f4a7c15ull)) *
                   0xff51afd7ed558ccdull;
        }
    };
    std::unordered_map<Key, uint32_t, Hash> index_;
    // Kernels come back to the same few lines: what was found last, by its place in the hash.
    struct Recent {
        Key key{nullptr, 0};
        uint32_t site = 0;
    };
    std::array<Recent, 256> recent_{};
};

} // namespace insight_trace::engine
