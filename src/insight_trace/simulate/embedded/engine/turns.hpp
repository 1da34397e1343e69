// A unit of the chip that all cores ask, and that takes one request at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace insight_trace::engine {

class Turns {
  public:
    explicit Turns(int64_t length = 0) : length_(length) {}
    bool limited() const { return length_ > 0; }
    // When a request of `time` is taken: the first turn from then on that nobody has. Cores do not ask in the
    // order of time, so turns are kept rather than the end of the last one.
    int64_t take(int64_t time) {
        if (!limited()) return time;
        const int64_t wanted = time / length_;
        int64_t free = wanted;
        for (auto taken = next_.find(free); taken != next_.end(); taken = next_.find(free))
            free = taken->second;
        for (int64_t at = wanted; at != free;) { // whoever comes later finds the end of the row at once
            int64_t &next = next_[at];
            at = next;
            next = free + 1;
        }
        next_[free] = free + 1;
        return std::max(time, free * length_);
    }

  private:
    int64_t length_;
    std::unordered_map<int64_t, int64_t> next_; // a turn that is taken, and one behind it that may be free
};

} // namespace insight_trace::engine
