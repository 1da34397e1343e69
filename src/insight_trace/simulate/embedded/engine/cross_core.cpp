#include "cross_core.hpp"

#include <vector>

#include "machine.hpp"

namespace insight_trace::engine {

int CrossCore::core_index(const Core &core) { return core.identity.index; }

void CrossCore::set(Machine &machine, Core &from, int mode, int flag, uint32_t row) {
    const CoreIdentity &me = from.identity;
    if (mode == 0) machine.meets_other_blocks();
    if (mode == 2 && me.cube) {
        const uint32_t raised = machine.add_meeting({row});
        for (size_t i = 0; i < machine.core_count(); ++i) {
            Core &other = machine.core(i);
            if (!other.identity.cube && other.identity.block == me.block) deliver(other, flag, raised);
        }
        return;
    }
    // The receivers get the flag once every sender of the group has raised it.
    std::vector<Core *> senders, receivers;
    for (size_t i = 0; i < machine.core_count(); ++i) {
        Core &other = machine.core(i);
        bool same_block = other.identity.block == me.block;
        bool same_kind = other.identity.cube == me.cube;
        bool sends = same_kind && (mode == 0 || same_block);
        if (sends) senders.push_back(&other);
        if (mode == 2 ? (other.identity.cube && same_block) : sends) receivers.push_back(&other);
    }
    int group = mode == 0 ? (me.cube ? -1 : -2) : me.block;
    arrived_[{group, flag, me.index}].push_back(row);
    for (Core *sender : senders) {
        auto found = arrived_.find({group, flag, sender->identity.index});
        if (found == arrived_.end() || found->second.empty()) return;
    }
    std::vector<uint32_t> rows;
    for (Core *sender : senders) {
        auto &sets = arrived_[{group, flag, sender->identity.index}];
        rows.push_back(sets.front());
        sets.pop_front();
    }
    const uint32_t raised = machine.add_meeting(rows);
    for (Core *receiver : receivers) deliver(*receiver, flag, raised);
}

void CrossCore::set_intra(Machine &machine, Core &from, int flag, uint32_t row) {
    const CoreIdentity &me = from.identity;
    const uint32_t raised = machine.add_meeting({row});
    for (size_t i = 0; i < machine.core_count(); ++i) {
        Core &other = machine.core(i);
        if (other.identity.block != me.block || other.identity.cube == me.cube) continue;
        if (me.cube && other.identity.sub_block == flag / 16) deliver(other, flag % 16, raised);
        if (!me.cube) deliver(other, flag % 16 + 16 * me.sub_block, raised);
    }
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

uint32_t CrossCore::take(const Core &to, int flag) {
    std::deque<uint32_t> &raised = raised_[{to.identity.index, flag}];
    const uint32_t first = raised.front();
    raised.pop_front();
    return first;
}

} // namespace insight_trace::engine
