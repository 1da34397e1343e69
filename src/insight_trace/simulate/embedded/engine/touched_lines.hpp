// Which lines of global memory some blocks of a run touched, and which of them they wrote.
//
// Lies in memory that processes share: each share of the blocks marks its own, and whoever puts the shares
// together looks whether one of them wrote where another was.
#pragma once

#include <cstddef>
#include <cstdint>

namespace insight_trace::engine {

class TouchedLines {
  public:
    TouchedLines(uint64_t base, uint64_t size);
    void mark(uint64_t address, uint64_t bytes, bool writes) {
        constexpr int kLineBits = 6, kWordBits = 6; // lines of 64 bytes, a bit each
        if (!bytes) return;
        const uint64_t first = (address - base_) >> kLineBits,
                       last = (address + bytes - 1 - base_) >> kLineBits;
        const uint64_t end = last >> kWordBits;
        for (uint64_t word = first >> kWordBits; word <= end && word < words_; ++word) {
            uint64_t bits = ~0ull;
            if (word == first >> kWordBits) bits &= ~0ull << (first & 63);
            if (word == end) bits &= ~0ull >> (63 - (last & 63));
            touched_[word] |= bits;
            if (writes) written_[word] |= bits;
            used_[word / kPage] = 1;
        }
    }
    // One wrote a line that the other touched.
    bool meets(const TouchedLines &other) const;

  private:
    static constexpr size_t kPage = 512; // words: pages in which nothing is marked are not looked at
    uint64_t base_;
    size_t words_;
    uint64_t *touched_, *written_;
    uint8_t *used_;
};

} // namespace insight_trace::engine
