// The cores of one cluster reach into each other's memory on chips with vector functions.
#pragma once

#include "machine.hpp"

namespace insight_trace::engine {

// The cube core of a vector core's cluster, or the vector core of a cube core's cluster in that lane. Null
// when nothing runs there.
inline Core *cluster_core(const Core &core, int64_t lane) {
    Machine &machine = current_machine();
    for (size_t i = 0; i < machine.core_count(); ++i) {
        Core &other = machine.core(i);
        if (other.identity.block != core.identity.block || other.identity.cube == core.identity.cube)
            continue;
        if (other.identity.cube || other.identity.sub_block == lane) return &other;
    }
    return nullptr;
}

// Whose memory a write of `core` to `space` reaches: its own, or that of the core of its cluster that has it.
inline Core *owner_of(Core &core, Space space, int64_t lane) {
    const bool elsewhere = core.identity.cube ? space == Space::UB : space == Space::L1;
    if (!elsewhere || !core.register_based()) return &core;
    Core *other = cluster_core(core, lane);
    if (other) other->at = core.at;
    return other;
}

// An address as an offset in `space`. A cube core names bytes of UB by the address that a vector core of its
// cluster handed to it.
inline uint64_t offset_in_cluster(const Core &core, Space space, uint64_t address) {
    const LocalPlace place = local_place(address);
    Machine &machine = current_machine();
    if (core.identity.cube && space == Space::UB && place.known && place.space == space &&
        place.core < machine.core_count()) {
        const CoreIdentity &other = machine.core(place.core).identity;
        if (!other.cube && other.block == core.identity.block) return place.offset;
    }
    return core.offset_of(space, address);
}

} // namespace insight_trace::engine
