// Words in global memory that cores leave for each other: a library's barrier or its messages, without flags.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "../record.hpp"

namespace insight_trace::engine {
class Records;
}

namespace insight_trace::engine::check {

// What an instruction does to such words, by their blocks of 32 bytes.
struct Signals {
    std::vector<uint64_t> seen, sent;
};

class SignalBlocks {
  public:
    static constexpr int kBits = 5;
    // Looks through a run for blocks that a core asks for until it finds in them what another core wrote.
    void find(const Records &records, size_t cores);
    bool empty() const { return blocks_.empty(); }
    // True where all of these bytes are such words.
    bool hold(uint64_t address, uint64_t bytes) const;
    // Of a row; null where it touches none of them.
    const Signals *of(uint32_t row) const {
        const auto found = rows_.find(row);
        return found == rows_.end() ? nullptr : &found->second;
    }

  private:
    void look_for_blocks(const Records &records, size_t cores);
    std::vector<uint64_t> blocks_; // sorted
    std::unordered_map<uint32_t, Signals> rows_;
};

} // namespace insight_trace::engine::check
