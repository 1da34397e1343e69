// Addresses of global memory on a chip that knows none of them yet: how long a core waits until it knows
// where a page lies.
//
// The first access of a cluster to a page needs a walk through the page table, which lies in memory itself;
// its cube core and vector cores remember what it found together. A core makes one walk after the other for
// all of its loads, and one unit takes those of the whole chip in turns.
#pragma once

#include <cstdint>
#include <vector>

#include "core_step.hpp"
#include "parameters.hpp"
#include "turns.hpp"

namespace insight_trace::engine {

struct Region;

class PageWalks {
  public:
    PageWalks(const Parameters &parameters, const std::vector<Region> &buffers, size_t cores,
              size_t clusters);
    // When a core of the cluster knows all pages of an access that it takes up at `time`. Stores go on.
    int64_t known(size_t core, size_t cluster, const Access &access, int64_t time);
    // The same for so many pages that it has not seen.
    int64_t walk(int64_t pages, int64_t time) {
        for (; pages > 0 && turns_.limited(); --pages) time = turns_.take(time) + walk_;
        return time;
    }

    // A block that runs on the cores of another one after it knows what that one knew.
    void take_over(size_t ended, size_t begins) {
        if (turns_.limited()) known_[begins] = known_[ended];
    }

  private:
    struct Buffer {
        uint64_t address, end, page;
        uint64_t first; // number of its first page
    };
    const Buffer *buffer_of(uint64_t address) const;
    int64_t touch(size_t cluster, uint64_t address, uint64_t bytes, int64_t time, int64_t &free);

    int64_t walk_;
    Turns turns_;
    std::vector<Buffer> buffers_;             // by address
    std::vector<std::vector<int64_t>> known_; // by cluster: since when it knows a page; -1: not
    std::vector<int64_t> free_;               // by core: when the last walk of its loads has ended
};

} // namespace insight_trace::engine
