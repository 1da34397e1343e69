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
    ~TouchedLines();
    TouchedLines(const TouchedLines &) = delete;
    TouchedLines &operator=(const TouchedLines &) = delete;
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
    // Lines in a row of which all are written, or all are only read.
    template <class F> void each_range(F &&take) const {
        uint64_t begin = 0, end = 0;
        bool writes = false;
        for (size_t page = 0; page < words_ / kPage; ++page) {
            if (!used_[page]) continue;
            for (size_t word = page * kPage; word < (page + 1) * kPage; ++word)
                for (uint64_t left = touched_[word]; left; left &= left - 1) {
                    const int bit = __builtin_ctzll(left);
                    const uint64_t at = base_ + ((word << 6 | static_cast<unsigned>(bit)) << 6);
                    const bool written = written_[word] >> bit & 1;
                    if (at == end && written == writes) {
                        end = at + 64;
                        continue;
                    }
                    if (end) take(begin, end, writes);
                    begin = at, end = at + 64, writes = written;
                }
        }
        if (end) take(begin, end, writes);
    }

  private:
    static constexpr size_t kPage = 512; // words: pages in which nothing is marked are not looked at
    uint64_t base_;
    size_t words_;
    uint64_t *touched_, *written_;
    uint8_t *used_;
};

} // namespace insight_trace::engine
