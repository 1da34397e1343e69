// Flags between cores: who gets which, and who raised them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "pipe_network.hpp"

namespace insight_trace::engine {

class Machine;
class Core;

class CrossCore {
  public:
    // ffts_cross_core_sync, and with kOneToOne set_intra_block (a5).
    void set(Machine &machine, const Core &from, int mode, int flag, uint32_t row);
    // What `to` waits for and who has to raise it, for a deadlock report.
    std::string wait_text(const Core &to, bool intra_block, int flag) const;
    bool ready(const Core &to, int flag) const;
    uint32_t take(const Core &to, int flag); // the meeting of those that raised it

  private:
    struct Identities;                                        // of the cores of a machine
    CoreFlags<uint32_t> flags_;                               // by the rows of sets
    std::map<std::pair<size_t, int>, Fifo<uint32_t>> raised_; // by core and flag: meetings
};

} // namespace insight_trace::engine
