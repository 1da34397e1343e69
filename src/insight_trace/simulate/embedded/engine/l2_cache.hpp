// The chip's L2: which bytes of global memory it holds. Lines of four sectors, least recently used first out,
// written back when replaced.
//
// Lines carry the epoch of their last use. An epoch ends when so many lines were last used in it, whatever
// the capacity; what is held are the youngest epochs that fit. So a larger cache always holds what a smaller
// one does, and an access costs one look at an array.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace insight_trace::engine {

struct L2Traffic {
    int64_t bytes = 0;    // in whole sectors
    int64_t hits = 0;     // of them, found
    int64_t shared = 0;   // of those, in lines that another core used last
    int64_t fetched = 0;  // read from memory: what misses and is not overwritten as a whole
    int64_t replaced = 0; // written back to make room
};

constexpr uint32_t kNobody = 0xffff; // of lines that no core of the run used

class L2Cache {
  public:
    // Of the addresses from `base`; `capacity` 0 holds nothing.
    L2Cache(uint64_t base, uint64_t size, int64_t capacity);
    ~L2Cache();
    L2Cache(const L2Cache &) = delete;

    // One piece of an access; adds what it caused.
    void touch(uint64_t address, int64_t bytes, bool write, L2Traffic &traffic, uint32_t core = 0);
    // One that L2 keeps nothing of: between the core and memory.
    static void pass(uint64_t address, int64_t bytes, bool write, L2Traffic &traffic);
    static constexpr int64_t kLine = 512, kSector = 128;

  private:
    struct Epoch {
        int64_t lines = 0, dirty = 0; // last used in it
    };
    struct Line {
        uint32_t epoch;  // of its last use; 0: never
        uint16_t core;   // that used it last
        uint8_t sectors; // a bit for each that is held
        uint8_t dirty;
    };
    static_assert(sizeof(Line) == 8);
    Epoch &epoch(uint32_t number) { return epochs_[number - first_]; }
    void use(Line &line, uint32_t sectors, bool write, uint32_t core, L2Traffic &traffic);
    void use_whole(uint64_t line, uint64_t end, bool write, uint32_t core, L2Traffic &traffic);
    static uint64_t bits_of(const Line &line);
    void make_room();

    uint64_t base_, lines_;
    int64_t capacity_;         // lines
    Line *entries_ = nullptr;  // by line
    std::deque<Epoch> epochs_; // from the oldest that is held to the current one
    uint32_t first_ = 1;       // number of the oldest
    int64_t held_ = 0;         // lines
    int64_t owed_ = 0;         // dirty lines that were replaced and not yet charged to an access
};

} // namespace insight_trace::engine
