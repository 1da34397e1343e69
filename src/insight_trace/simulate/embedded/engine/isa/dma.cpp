// Copies between memories, and fills.
#include <algorithm>
#include <cstring>

#include "elements.hpp"
#include "isa/stores.hpp"
#include "isa/tile_dma.hpp"
#include "machine.hpp"
#include "cluster.hpp"
#include "raw_units.hpp"

namespace insight_trace::engine {

namespace {

// One end of a copy: the memory it lies in, and where.
struct End {
    Space space;
    uint64_t address;
    Core *owner;

    End(Core &core, uint64_t space_, uint64_t address_, uint64_t lane)
        : space(static_cast<Space>(space_)), address(address_), owner(&core) {
        if (space == Space::GM) return;
        address = offset_in_cluster(core, space, address_);
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

constexpr uint64_t kDmaBlock = 32;

Instr copy_instr(const Core &core, Space dst, Space src, Filling filling) {
    const bool aligned = filling != Filling::None;
    if (src == Space::GM && dst == Space::UB)
        return aligned ? Instr::MOV_OUT_TO_UB_ALIGN : Instr::MOV_OUT_TO_UB;
    if (src == Space::GM) return Instr::MOV_OUT_TO_L1;
    if (dst == Space::GM && src == Space::UB)
        return aligned ? Instr::MOV_UB_TO_OUT_ALIGN : Instr::MOV_UB_TO_OUT;
    if (dst == Space::GM) return Instr::MOV_L1_TO_OUT;
    if (dst == Space::UB) return src == Space::UB ? Instr::MOV_UB_TO_UB : Instr::MOV_L1_TO_UB;
    if (dst != Space::L1 || src != Space::UB) core.unsupported("a copy between these two memories");
    return Instr::MOV_UB_TO_L1;
}

// What surrounds each piece of a load on chip: padding of whole elements, then whatever fills up the last
// block.
struct Surroundings {
    uint64_t before = 0, behind = 0, size = 1;
    uint64_t pad = 0;
    bool constant = false; // filled with the pad value, else with the first element of the piece
    bool padded() const { return before || behind; }
    uint64_t bytes(uint64_t piece) const { // that are written for one piece
        return (before + piece + behind + kDmaBlock - 1) / kDmaBlock * kDmaBlock;
    }
    // Without padding the first element of the piece fills up its last block (DataCopyPad of the vendor's
    // pages).
    void fill(uint8_t *to, uint64_t piece) const {
        const uint8_t *element = constant ? reinterpret_cast<const uint8_t *>(&pad) : to + before;
        for (uint64_t i = 0; i < before; ++i) to[i] = element[i % size];
        fill_behind(to + before, piece, bytes(piece) - before - piece);
    }
    void fill_behind(uint8_t *piece, uint64_t length, uint64_t count) const {
        const uint8_t *element = constant ? reinterpret_cast<const uint8_t *>(&pad) : piece;
        for (uint64_t i = 0; i < count; ++i) piece[length + i] = element[i % size];
    }
};

} // namespace

namespace {

// The whole copy again and again, as the loop registers of the 950 say: two loops around it.
struct Loops {
    uint64_t count[2] = {1, 1}, gm_step[2] = {0, 0}, chip_step[2] = {0, 0};
    Loops() = default;
    Loops(const Core &core, Spr size, Spr first, Spr second) {
        const uint64_t word = core.spr_of(size);
        count[0] = std::max<uint64_t>(1, word & 0x1fffff);
        count[1] = std::max<uint64_t>(1, word >> 21 & 0x1fffff);
        for (int i = 0; i < 2; ++i) {
            const uint64_t steps = core.spr_of(i ? second : first);
            gm_step[i] = steps & 0xffffffffffull;
            chip_step[i] = steps >> 40 & 0x1fffff;
        }
    }
};
Loops loops_of(const Core &core, Space to, Space from) {
    if (to == Space::GM)
        return {core, Spr::LOOP_SIZE_UBTOOUT, Spr::LOOP1_STRIDE_UBTOOUT, Spr::LOOP2_STRIDE_UBTOOUT};
    if (from != Space::GM) return {};
    if (to == Space::UB)
        return {core, Spr::LOOP_SIZE_OUTTOUB, Spr::LOOP1_STRIDE_OUTTOUB, Spr::LOOP2_STRIDE_OUTTOUB};
    return {core, Spr::LOOP_SIZE_OUTTOL1, Spr::LOOP1_STRIDE_OUTTOL1, Spr::LOOP2_STRIDE_OUTTOL1};
}

} // namespace

void raw_copy(Core &core, const uint64_t *v) {
    const End to(core, v[0], v[1], v[8]), from(core, v[2], v[3], v[8]);
    const uint64_t pieces = v[4], bytes = v[5], to_step = v[6], from_step = v[7];
    const Filling filling = static_cast<Filling>(v[12]);
    const bool looped = filling == Filling::Looped || filling == Filling::LoopedPadded;
    const Instr instr = copy_instr(core, to.space, from.space, filling);
    if (!pieces || !bytes) return; // the hardware does nothing either
    if (from.space == Space::GM && to.space == Space::UB && !core.silent)
        let_others_write(core, from.address, to.address, bytes);
    Surroundings around{v[9], v[10], v[11] ? v[11] : 1};
    around.pad = core.spr_of(looped && to.space == Space::L1 ? Spr::PAD_VAL_OUTTOL1 : Spr::MOV_PAD_VAL);
    around.constant = filling == Filling::LoopedPadded || around.padded();
    // pieces without a gap are one run, which is filled up at its end
    const bool compact = looped && pieces > 1 && to_step == bytes && !around.padded();
    const bool fills = filling != Filling::None && to.space != Space::GM;
    const uint64_t written = fills && !compact ? around.bytes(bytes) : bytes;
    const bool atomic = to.space == Space::GM && stores_combine(core);
    const Loops loops = looped ? loops_of(core, to.space, from.space) : Loops{};
    const bool out = to.space == Space::GM;
    if (core.computes && to.owner && from.owner)
        for (uint64_t turn = 0; turn < loops.count[0] * loops.count[1]; ++turn) {
            const uint64_t first = turn % loops.count[0], second = turn / loops.count[0];
            const uint64_t gm = first * loops.gm_step[0] + second * loops.gm_step[1],
                           chip = first * loops.chip_step[0] + second * loops.chip_step[1];
            for (uint64_t i = 0; i < pieces; ++i) {
                const uint8_t *source = from.at((out ? chip : gm) + i * from_step, bytes, kReads);
                const uint64_t at = (out ? gm : chip) + i * to_step;
                const bool last = compact && i + 1 == pieces;
                const uint64_t rest = last ? (kDmaBlock - pieces * bytes % kDmaBlock) % kDmaBlock : 0;
                uint8_t *place = to.at(at, written + rest, atomic ? kReadsAndWrites : kWrites);
                if (atomic) {
                    combine_with(core, place, source, bytes);
                    continue;
                }
                memmove(place + (fills ? around.before : 0), source, size_t(bytes));
                if (fills && !compact)
                    around.fill(place, bytes);
                else if (rest)
                    around.fill_behind(place, bytes, rest);
            }
        }
    const int64_t count = int64_t(pieces), run = int64_t(bytes);
    auto again = [&](Area area, bool gm) {
        for (int i = 0; i < 2; ++i)
            if (loops.count[i] > 1) {
                area.walk[0].count[1 + i] = static_cast<uint32_t>(loops.count[i]);
                area.walk[0].step[1 + i] = int64_t(gm ? loops.gm_step[i] : loops.chip_step[i]);
            }
        return area;
    };
    const Area there = again(to.area(core, count, int64_t(to_step), int64_t(written), v[8]), out),
               here = again(from.area(core, count, int64_t(from_step), run, v[8]), from.space == Space::GM);
    const int64_t all = count * int64_t(loops.count[0] * loops.count[1]);
    core.atomic_store = atomic;
    if (out)
        core.transfer(instr, Type::U8, there, here, all, run, int64_t(to_step));
    else if (from.space == Space::GM)
        core.transfer(instr, Type::U8, here, there, all, run, int64_t(from_step));
    else
        core.move(instr, Type::U8, there, here, count, count * run);
    core.atomic_store = false;
}

// Five loops around an element. Around the elements of each dimension lies padding, on chip alone.
void raw_nd_copy(Core &core, const uint64_t *v) {
    constexpr int kDims = 5;
    constexpr Spr kSteps[] = {Spr::LOOP0_STRIDE_NDDMA, Spr::LOOP1_STRIDE_NDDMA, Spr::LOOP2_STRIDE_NDDMA,
                              Spr::LOOP3_STRIDE_NDDMA, Spr::LOOP4_STRIDE_NDDMA};
    const uint64_t to = offset_in(core, Space::UB, v[0]), from = v[1], pads = core.spr_of(Spr::PAD_CNT_NDDMA);
    const int64_t size = int64_t(v[10]);
    const bool constant = v[9];
    const uint64_t pad = core.spr_of(Spr::PAD_VAL_NDDMA);
    int64_t count[kDims], before[kDims], extent[kDims], gm_step[kDims], chip_step[kDims];
    int64_t read = 1, written = 1;
    for (int d = 0; d < kDims; ++d) {
        const uint64_t steps = core.spr_of(kSteps[d]);
        count[d] = int64_t(v[2 + d]);
        before[d] = int64_t(d ? pads >> (16 * d - 16) & 0xff : v[7]);
        extent[d] = before[d] + count[d] + int64_t(d ? pads >> (16 * d - 8) & 0xff : v[8]);
        gm_step[d] = int64_t(steps >> 20 & 0xffffffffffull) * size;
        chip_step[d] = int64_t(steps & 0xfffff) * size;
        read *= count[d];
        written *= extent[d];
    }
    if (read <= 0) return;
    if (core.computes)
        for (int64_t i = 0; i < written; ++i) {
            int64_t rest = i, at = 0, source = 0;
            bool padding = false;
            for (int d = 0; d < kDims; ++d) {
                const int64_t place = rest % extent[d], inside = place - before[d];
                rest /= extent[d];
                at += place * chip_step[d];
                padding |= inside < 0 || inside >= count[d];
                source += std::clamp<int64_t>(inside, 0, count[d] - 1) * gm_step[d];
            }
            uint8_t *place = core.local(Space::UB, to + uint64_t(at), uint64_t(size));
            if (padding && constant)
                memcpy(place, &pad, size_t(size));
            else
                memcpy(place, core.global(from + uint64_t(source), uint64_t(size), kReads), size_t(size));
        }
    // a dimension whose elements are neighbours is one run of each piece
    auto area = [&](uint64_t address, const int64_t *counts, const int64_t *steps, int64_t &run) {
        const bool runs = steps[0] == size;
        run = runs ? counts[0] * size : size;
        Area lines = lines_at(address, 1, 0, run);
        int walks = 0;
        for (int d = runs; d < kDims; ++d) {
            if (counts[d] == 1) continue;
            if (walks == 4) core.unsupported("a copy of five dimensions without a run of neighbours");
            lines.walk[0].count[walks] = static_cast<uint32_t>(counts[d]);
            lines.walk[0].step[walks++] = steps[d];
        }
        return lines;
    };
    int64_t read_run, written_run;
    const Area there = area(from, count, gm_step, read_run), here = area(to, extent, chip_step, written_run);
    core.transfer(Instr::MOV_OUT_TO_UB_ALIGN, Type::U8, there, here, read * size / read_run, read_run,
                  gm_step[read_run > size || count[0] == 1]);
}

void raw_fill(Core &core, const uint64_t *v) {
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
        core.vector(issued_only(Instr::MOVEV), size == 2 ? Type::U16 : Type::U32, static_cast<int>(pieces),
                    int64_t(pieces * bytes / size), VectorOperand(address));
    else
        core.move(Instr::SET_L1_2D, Type::U8,
                  lines_at(address, int64_t(pieces), int64_t(step), int64_t(bytes)), 0, int64_t(pieces),
                  int64_t(pieces * bytes), &to.space);
}

// --- stores that combine with what is there

static Type atomic_element(const Core &core) {
    constexpr Type kTypes[] = {Type::U8, Type::F32, Type::F16, Type::BF16, Type::I32, Type::I16, Type::I8};
    return kTypes[core.atomic_type - 1];
}

bool stores_combine(const Core &core) { return core.atomic_type > 1; }

void combine_with(Core &core, uint8_t *to, const uint8_t *from, uint64_t bytes) {
    with_type(atomic_element(core), [&](auto tag) {
        using T = decltype(tag);
        for (uint64_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
            T old, value;
            memcpy(&old, to + at, sizeof(T));
            memcpy(&value, from + at, sizeof(T));
            const Wide<T> a(old), b(value);
            const T result = T(core.atomic_op == 0   ? wrap_add(a, b)
                               : core.atomic_op == 1 ? (a > b ? a : b)
                                                     : (a < b ? a : b));
            memcpy(to + at, &result, sizeof(T));
        }
    });
}

} // namespace insight_trace::engine
