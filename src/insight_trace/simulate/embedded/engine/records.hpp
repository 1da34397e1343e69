// Rows of all cores in growing, memory-mapped files; sites and other small tables beside them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "insight_trace/abi.hpp"
#include "interned.hpp"
#include "journal.hpp"
#include "mapped.hpp"
#include "parameters.hpp"
#include "record.hpp"

namespace insight_trace::engine {

struct SiteRow {
    const char *file;
    uint32_t line;
    Instr instr;
    PipeId pipe;
};

// How far each table has come.
struct RecordCounts {
    uint32_t rows = 0, operands = 0, calls = 0, geometries = 0, footprints = 0, tiles = 0, lists = 0,
             sites = 0;
};

class Records {
  public:
    explicit Records(const std::string &path); // "" keeps them in memory only
    Records(const Records &) = delete;

    uint32_t append(const Record &record) {
        if (journal) journal->next_row(rows_.size());
        return rows_.append(record);
    }
    Record &next() { return rows_.next(); } // where the one that is appended next may be made
    Record &operator[](uint32_t row) { return rows_[row]; }
    const Record &operator[](uint32_t row) const { return rows_[row]; }
    uint32_t size() const { return rows_.size(); }
    uint32_t site(Site at, Instr instr, PipeId pipe);
    const std::vector<SiteRow> &sites() const { return sites_; }

    bool detailed() const { return !path_.empty(); } // without a file nobody reads operands
    void operand(uint64_t address, uint32_t footprint, uint32_t tile) {
        OperandRow &row = operands_.next();
        row.address = address;
        row.footprint = footprint;
        row.tile = tile;
        operands_.append(row);
    }
    const OperandRow &operand(uint32_t index) const { return operands_[index]; }
    uint32_t operand_count() const { return operands_.size(); }
    RecordCounts counts() const;
    uint32_t list(const std::vector<uint32_t> &tiles); // where these are kept as a list
    uint32_t call(Op op, uint16_t core, uint32_t list) {
        return calls_.append({static_cast<uint16_t>(op), core, list});
    }
    Journal *journal = nullptr; // where memory is written down, if it is
    Interned<Geometry> geometries;
    Interned<Footprint> footprints;
    Interned<TileRow> tiles;

    // Gives back the memory of rows that were written.
    void release() const {
        rows_.release();
        operands_.release();
    }
    // Cuts the files to what was written, and writes the small tables.
    void close();
    uint32_t written() const { return written_; } // instructions in the file once it is closed
    // Gives up every row: the files agree that there is none. Allowed in a signal handler.
    void discard() noexcept;

  private:
    const std::string path_;
    uint32_t written_ = 0;
    Mapped<Record> rows_;
    Mapped<OperandRow> operands_;
    Mapped<CallRow> calls_;
    std::vector<uint32_t> lists_;
    HashIndex list_index_;
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

// The pipe that works longest on one core. What overlaps counts once; what the scalar unit does before any
// other pipe works is in no loop, and bounds nothing.
size_t busiest_pipe(const Records &records, size_t cores);

} // namespace insight_trace::engine
