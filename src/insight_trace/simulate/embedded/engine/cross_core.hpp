// Flags between cores: who gets which, and who raised them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace insight_trace::engine {

class Machine;
class Core;

class CrossCore {
  public:
    // ffts_cross_core_sync: `mode` 0 all cores of a kind, 1 the vector cores of a block, 2 cube <-> vector of
    // a block.
    void set(Machine &machine, Core &from, int mode, int flag, uint32_t row);
    // set_intra_block (a5): one cube core to one vector core, or back.
    void set_intra(Machine &machine, Core &from, int flag, uint32_t row);
    // What `to` waits for and who has to raise it, for a deadlock report.
    std::string wait_text(const Core &to, bool intra_block, int flag) const;
    bool ready(const Core &to, int flag) const;
    uint32_t take(const Core &to, int flag); // the meeting of those that raised it

  private:
    void deliver(const Core &to, int flag, uint32_t meeting) {
        raised_[{core_index(to), flag}].push_back(meeting);
    }
    static int core_index(const Core &core);
    std::map<std::pair<int, int>, std::deque<uint32_t>> raised_; // (core index, flag): meetings
    // (group, flag, core index): rows of sets not yet matched
    std::map<std::tuple<int, int, int>, std::deque<uint32_t>> arrived_;
};

} // namespace insight_trace::engine
