// Synchronisation that orders nothing: flags and barriers without which every dependent pair of this run is
// still ordered.
#pragma once

#include <cstdint>
#include <vector>

#include "checker.hpp"

namespace insight_trace::engine::check {

// Lines that go together: a set and the waits it meets, or a barrier alone.
struct SyncGroup {
    std::vector<uint32_t> sets, waits; // the first row of each line
    std::vector<uint32_t> rows;        // every execution, sets and waits
    bool barrier = false;
    int strength = 0; // how much it orders: 2 all pipes, 1 one pipe, 0 a pair
};

std::vector<SyncGroup> sync_groups(const Records &records, const Checker &checker);

class Redundancy {
  public:
    Redundancy(const Records &records, const std::vector<CoreIdentity> &cores, const Checker &checker);
    // The first access that is no longer ordered without these rows; kNoPartner: all still are.
    uint32_t unordered_without(const std::vector<uint32_t> &rows);

  private:
    const Records &records_;
    const std::vector<CoreIdentity> cores_;
    std::vector<Step> steps_;
    std::vector<uint32_t> first_need_; // by row
    const std::vector<Need> &needs_;
    const SignalBlocks &signals_;
};

// Groups that can all be left out together, found one after the other, the strongest first; so many are
// tried.
std::vector<size_t> redundant_groups(Redundancy &redundancy, const std::vector<SyncGroup> &groups,
                                     size_t most);

} // namespace insight_trace::engine::check
