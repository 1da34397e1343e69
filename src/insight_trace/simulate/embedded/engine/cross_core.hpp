// Flags between cores: who gets which, and when they were raised.
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
    void set(Machine &machine, Core &from, int mode, int flag, int64_t time, uint32_t row);
    // set_intra_block (a5): one cube core to one vector core, or back.
    void set_intra(Machine &machine, Core &from, int flag, int64_t time, uint32_t row);
    // What `to` waits for and who has to raise it, for a deadlock report.
    std::string wait_text(const Core &to, bool intra_block, int flag) const;
    bool ready(const Core &to, int flag) const;
    struct Taken {
        int64_t time;
        uint32_t row;     // of the set that came last
        uint32_t meeting; // all of them, for the timeline
    };
    Taken take(const Core &to, int flag);

  private:
    void deliver(const Core &to, int flag, const Taken &raised) {
        raised_[{core_index(to), flag}].push_back(raised);
    }
    static int core_index(const Core &core);
    std::map<std::pair<int, int>, std::deque<Taken>> raised_; // (core index, flag)
    // (group, flag, core index): time and row of sets not yet matched
    std::map<std::tuple<int, int, int>, std::deque<std::pair<int64_t, uint32_t>>> arrived_;
};

} // namespace insight_trace::engine
