#include "cross_core.hpp"

#include <vector>

#include "machine.hpp"

namespace insight_trace::engine {

struct CrossCore::Identities {
    Machine &machine;
    size_t size() const { return machine.core_count(); }
    const CoreIdentity &operator[](size_t i) const { return machine.core(i).identity; }
};

void CrossCore::set(Machine &machine, const Core &from, int mode, int flag, uint32_t row) {
    if (mode == 0) machine.meets_other_blocks();
    std::vector<uint32_t> rows{row};
    uint32_t meeting = kNone; // made when somebody gets it
    flags_.set(
        Identities{machine}, from.identity.index, mode, flag, row,
        [&](const std::vector<uint32_t> &all) {
            rows = all;
            return row;
        },
        [&](size_t core, int number, uint32_t) {
            if (meeting == kNone) meeting = machine.add_meeting(rows);
            raised_[{core, number}].push(meeting);
        });
}

std::string CrossCore::wait_text(const Core &to, bool intra_block, int flag) const {
    std::string text = (intra_block ? "intra-block flag " : "cross-core flag ") + std::to_string(flag);
    const std::string block = "core" + std::to_string(to.identity.block);
    if (!to.identity.cube) return text + " from " + block + ".cubecore0";
    if (intra_block) return text + " from " + block + ".veccore" + std::to_string(flag / 16);
    return text + " from the vector cores of " + block;
}

bool CrossCore::ready(const Core &to, int flag) const {
    auto found = raised_.find({to.identity.index, flag});
    return found != raised_.end() && !found->second.empty();
}

uint32_t CrossCore::take(const Core &to, int flag) { return raised_[{to.identity.index, flag}].pop(); }

} // namespace insight_trace::engine
