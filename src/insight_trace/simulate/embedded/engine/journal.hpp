// What a run does to memory, row by row, so that any moment of it can be looked at afterwards.
//
// The bytes that somebody may have written since the last row are compared with a copy of what they were;
// those that changed are written down with the row that changed them. Ops do their arithmetic as a whole:
// what an op writes before it issues its first instruction belongs to that one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "insight_trace/abi.hpp"

namespace insight_trace::engine {

struct JournalOptions {
    std::string path;            // "" writes down nothing
    uint32_t first = 0;          // rows before this one are summed up in it
    uint64_t bytes = 0;          // at most so many bytes of content, 0: no limit
    std::set<uint32_t> observed; // rows after which all memories are hashed (a check of the journal)
    bool wanted() const { return !path.empty() || !observed.empty(); }
};

// The files' rows; debug/journal.py reads them.
struct JournalEntry {
    uint64_t address;
    uint64_t payload; // where its bytes begin in the file of contents
    uint32_t row, length;
    uint16_t core;
    uint8_t memory, reserved[5];
};
static_assert(sizeof(JournalEntry) == 32);

struct JournalCall {
    uint32_t row;     // of its first instruction, if it has one
    uint32_t operand; // its operands are rows of their table from here on
    uint16_t op, core, count, reserved;
};
static_assert(sizeof(JournalCall) == 16);

class JournalFile { // written in large pieces
  public:
    explicit JournalFile(const std::string &path);
    ~JournalFile();
    void add(const void *bytes, size_t count);
    void flush();
    uint64_t size() const { return size_; }

  private:
    int file_ = -1;
    uint64_t size_ = 0;
    std::vector<uint8_t> buffer_;
};

class Journal {
  public:
    static constexpr uint64_t kPage = 4096;

    explicit Journal(const JournalOptions &options);

    // Somebody gets at these bytes, and may write them before the next row. `memory` is where the core's
    // memory begins, which holds `size` bytes, at first all `content`.
    void touch(uint16_t core, Space space, const uint8_t *memory, uint64_t size, uint8_t content,
               uint64_t address, uint64_t bytes);
    void touch_global(uint64_t address, uint64_t bytes);
    // The same at any time from now on.
    void hold(uint16_t core, Space space, uint64_t address, uint64_t bytes);

    void next_row(uint32_t row) { settle(in_call_ ? row : row ? row - 1 : 0); }
    void begin_call(Op op, uint16_t core, const Operand *operands, uint32_t count, uint32_t rows);
    void begin_work(uint32_t rows); // the same for what is no tile op
    void end_call(uint32_t rows);
    void finish(uint32_t rows);
    uint32_t complete() const { return complete_; } // rows that are written down whole, from the first on

  private:
    struct Memory {
        const uint8_t *live = nullptr;
        uint64_t size = 0;
        std::vector<uint8_t> known;
        std::vector<std::pair<uint64_t, uint64_t>> pending; // begin, end
        std::vector<std::pair<uint64_t, uint64_t>> held;
        std::vector<std::pair<uint64_t, uint64_t>>
            carried; // may still be written through a pointer of before
    };
    struct Page {
        uint64_t number;
        uint64_t base; // hash of what it held at first
        std::unique_ptr<uint8_t[]> known;
    };
    void settle(uint32_t row);
    void compare(uint32_t row, uint16_t core, uint8_t memory, uint64_t address, const uint8_t *live,
                 uint8_t *known, uint64_t bytes);
    void observe(uint32_t row);

    const JournalOptions options_;
    bool in_call_ = false, full_ = false, dirty_ = false, held_ = false, carries_ = false;
    uint32_t complete_ = 0;
    std::map<std::pair<uint16_t, uint8_t>, Memory> memories_;
    std::vector<Page> pages_; // of global memory, in the order in which they were touched
    std::unordered_map<uint64_t, uint32_t> page_index_;
    std::vector<std::pair<uint64_t, uint64_t>> global_, global_carried_;
    std::unique_ptr<JournalFile> entries_, contents_, bases_, calls_, operands_, observed_;
    uint32_t operand_count_ = 0;
    struct Observed {
        size_t pages; // that were known then
        uint64_t global;
        std::map<std::pair<uint16_t, uint8_t>, uint64_t> local;
    };
    std::map<uint32_t, Observed> observations_;
};

} // namespace insight_trace::engine
