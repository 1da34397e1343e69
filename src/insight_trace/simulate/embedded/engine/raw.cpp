// Instructions that kernels issue themselves (abi.hpp, Raw).
#include <cstring>

#include "elements.hpp"
#include "late_work.hpp"
#include "ops/cluster.hpp"
#include "raw_units.hpp"

using namespace insight_trace;
using namespace insight_trace::engine;

uint64_t insight_trace::engine::offset_in(Core &core, Space space, uint64_t address) {
    const uint64_t base = reinterpret_cast<uint64_t>(core.local(space, 0, 1));
    return address >= base && address - base < core.space_size(space) ? address - base : address;
}

namespace {

// One end of a copy: the memory it lies in, and where.
struct End {
    Space space;
    uint64_t address;
    Core *owner;

    End(Core &core, uint64_t space_, uint64_t address_, uint64_t lane)
        : space(static_cast<Space>(space_)), address(address_), owner(&core) {
        if (space == Space::GM) return;
        address = offset_in(core, space, address_);
        owner = owner_of(core, space, int64_t(lane));
    }
    // What an instruction touches there, maybe in another core of the cluster.
    Area area(const Core &core, int64_t count, int64_t step, int64_t run, uint64_t lane) const {
        const Area lines = lines_at(address, count, step, run);
        if (owner == &core) return lines;
        return in_core(core.identity.cube ? vector_core(int64_t(lane)) : kCubeCore, lines);
    }
    uint8_t *at(uint64_t offset, uint64_t bytes, Role role = kWrites) const {
        return space == Space::GM ? owner->global(address + offset, bytes, role)
                                  : owner->local(space, address + offset, bytes);
    }
};

Instr copy_instr(const Core &core, Space dst, Space src) {
    if (src == Space::GM) return dst == Space::UB ? Instr::MOV_OUT_TO_UB_ALIGN : Instr::MOV_OUT_TO_L1;
    if (dst == Space::GM) return src == Space::UB ? Instr::MOV_UB_TO_OUT_ALIGN : Instr::MOV_L1_TO_OUT;
    if (dst == Space::UB) return src == Space::UB ? Instr::MOV_UB_TO_UB : Instr::MOV_L1_TO_UB;
    if (dst != Space::L1 || src != Space::UB) core.unsupported("a copy between these two memories");
    return Instr::MOV_UB_TO_L1;
}

void copy(Core &core, const uint64_t *v) {
    const End to(core, v[0], v[1], v[8]), from(core, v[2], v[3], v[8]);
    const uint64_t pieces = v[4], bytes = v[5], to_step = v[6], from_step = v[7];
    const Instr instr = copy_instr(core, to.space, from.space);
    if (core.computes && to.owner && from.owner)
        for (uint64_t i = 0; i < pieces; ++i)
            memmove(to.at(i * to_step, bytes), from.at(i * from_step, bytes, kReads), size_t(bytes));
    const int64_t count = int64_t(pieces), run = int64_t(bytes);
    const Area there = to.area(core, count, int64_t(to_step), run, v[8]),
               here = from.area(core, count, int64_t(from_step), run, v[8]);
    if (to.space == Space::GM)
        core.transfer(instr, Type::U8, there, here, count, run, int64_t(to_step));
    else if (from.space == Space::GM)
        core.transfer(instr, Type::U8, here, there, count, run, int64_t(from_step));
    else
        core.move(instr, Type::U8, there, here, count, count * run);
}

void fill(Core &core, const uint64_t *v) {
    const End to(core, v[0], v[1], 0);
    const uint64_t pieces = v[2], bytes = v[3], step = v[4], size = v[6];
    if (size != 2 && size != 4)
        core.unsupported("a fill with elements of %llu bytes", (unsigned long long)size);
    if (core.computes && to.owner)
        for (uint64_t i = 0; i < pieces; ++i) {
            uint8_t *line = to.at(i * step, bytes);
            for (uint64_t at = 0; at < bytes; at += size) memcpy(line + at, &v[5], size_t(size));
        }
    const uint32_t address = static_cast<uint32_t>(to.address);
    if (to.space == Space::UB)
        core.vector(Instr::MOVEV, size == 2 ? Type::U16 : Type::U32, static_cast<int>(pieces),
                    int64_t(pieces * bytes / size), VectorOperand(address));
    else
        core.move(Instr::SET_L1_2D, Type::U8, address, 0, int64_t(pieces), int64_t(pieces * bytes));
}

} // namespace

void insight_trace::engine::perform(Core &core, Raw which, const uint64_t *values) {
    constexpr void (*kBodies[])(Core &, const uint64_t *) = {
        copy, fill, raw_vector, raw_to_boxes, raw_load_boxes, raw_multiply, raw_store_accumulator};
    kBodies[static_cast<int>(which)](core, values);
}

extern "C" void insight_trace_raw(Raw which, const uint64_t *values, Site at) {
    Core &core = current_core();
    core.at = at;
    current_machine().progressed();
    if (!core.late) {
        Journal *journal = core.journal();
        if (journal) journal->begin_work(core.rows());
        perform(core, which, values);
        if (journal) journal->end_call(core.rows());
        return;
    }
    current_machine().interrupt(core);
    core.late->some();
    core.used_pipes = 0;
    core.computes = false;
    perform(core, which, values);
    core.late->raw(core.used_pipes, which, values);
}
