// A decoded vector instruction: its values, the bytes that it touches, and its place in the pipe.
#include "elements.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

namespace {

bool ignores_mask(Instr instr) {
    switch (instr) {
    case Instr::VCMPV:
    case Instr::VCMPVS:
    case Instr::VBRCB:
    case Instr::VBS32:
    case Instr::VGATHERB:
    case Instr::VNCHWCONV:
    case Instr::VTRANSPOSE:
    case Instr::VREDUCEV2:
        return true;
    default:
        return false;
    }
}

int64_t active_lanes(const LaneMask &mask, int lanes) {
    int64_t active = 0;
    for (int lane = 0; lane < lanes; ++lane) active += mask.has(0, lane, lanes);
    return active;
}

// Offsets of a gather that was executed: where it read.
void note_gathered(Core &core, const VectorInstruction &i, int64_t offsets, int64_t bytes) {
    const uint64_t base = offset_in(core, Space::UB, i.number);
    const auto *list = core.local_as<uint32_t>(Space::UB, i.src0.address, uint64_t(offsets));
    const auto [low, high] = std::minmax_element(list, list + offsets);
    core.also(kReads, Space::UB, i.type, lines_at(base + *low, 1, 0, int64_t(*high - *low) + bytes), false);
}

void note_turned(Core &core, const VectorInstruction &i) {
    for (int row = 0; row < 16; ++row) {
        auto blocks = [&](const VectorOperand &o) {
            const size_t place = size_t(o.address) * 8 + size_t(row);
            const uint64_t first = place < core.va.size() ? core.va[place] : 0;
            const int64_t step = int64_t(o.repeat_stride) * kBytesOfBlock;
            return lines_at(first + uint64_t(i.repeats == 1 ? step : 0), i.repeats, step, kBytesOfBlock);
        };
        core.also(kWrites, Space::UB, i.type, blocks(i.dst));
        core.also(kReads, Space::UB, i.type, blocks(i.src0));
    }
}

} // namespace

void Core::execute_vector(const Operation &operation, Type type, int64_t repeat, int64_t elements,
                          const VectorOperand &dst, const VectorOperand &src0, const VectorOperand &src1,
                          bool counted) {
    VectorInstruction i;
    i.instr = operation.instr;
    i.mode = operation.mode;
    i.number = operation.number;
    auto type_of_operand = [type](const VectorOperand &o) { return o.typed ? o.element : type; };
    i.type = type;
    i.to = type_of_operand(dst);
    i.from = type_of_operand(src0);
    i.second = type_of_operand(src1);
    i.repeats = counted ? 1 : repeat; // what does not read the count goes by the repeat field
    i.dst = dst;
    i.src0 = src0;
    i.src1 = src1;
    if (operation.rows) {
        i.repeats = operation.rows;
        i.mask = LaneMask::of_count(operation.of_each);
    } else if (counted)
        i.mask = LaneMask::of_count(elements);
    else if (dst.mask)
        i.mask.bits = {dst.mask, 0, 0, 0};
    else
        i.mask = LaneMask::first(elements / std::max<int64_t>(1, repeat));
    execute(*this, i);
}

void Core::issue(const VectorInstruction &given) {
    VectorInstruction i = given;
    int widest = std::max(type_size(i.to), type_size(i.from));
    const bool converts = i.to != i.from && i.instr != Instr::VCMPV && i.instr != Instr::VCMPVS;
    if (i.instr == Instr::VCMPV || i.instr == Instr::VCMPVS || i.instr == Instr::VCMP ||
        i.instr == Instr::VBS32)
        widest = type_size(i.from);
    if (i.instr == Instr::VGATHER || i.instr == Instr::VGATHERB) widest = type_size(i.to);
    if (on_bits(i.instr)) { // 16-bit lanes, whatever the elements are
        i.to = i.from = i.second = Type::U16;
        widest = 2;
    }
    i.type = type_size(i.from) == widest ? i.from : i.to;
    const int lanes = kBytesOfRepeat / widest;
    const bool masked = !ignores_mask(i.instr);
    const bool counts = masked && i.mask.counts;
    // the count is that of each repeat, which goes on until it has so many
    const bool by_row = i.mask.counts && (i.instr == Instr::VCOPY || i.instr == Instr::VREDUCEV2);
    int64_t repeats = counts || by_row ? (i.mask.count + lanes - 1) / lanes : i.repeats;
    if (by_row) repeats *= i.repeats;
    const bool idle = counts && i.mask.count == 0 && i.repeats > 0; // it goes through the pipe all the same
    if (idle) repeats = by_row ? i.repeats : 1;
    if (repeats <= 0) return; // no operation on this unit
    const int64_t elements = by_row    ? i.repeats * i.mask.count
                             : !masked ? repeats * lanes
                             : counts  ? i.mask.count
                                       : repeats * active_lanes(i.mask, lanes);
    if (computes && !idle) execute(*this, i);

    VectorOperand dst = i.dst, src0 = i.src0, src1 = i.src1;
    if (converts && i.instr != Instr::VGATHER && i.instr != Instr::VGATHERB) {
        dst = dst.of(i.to);
        src0 = src0.of(i.from);
        src1 = src1.of(i.from);
    }
    const bool prefix = !masked || i.mask.prefix(lanes) >= 0;
    if (!prefix && lanes <= 64)
        for (VectorOperand *o : {&dst, &src0, &src1}) *o = o->masked(i.mask.bits[0]);
    const int size = type_size(i.type);
    auto pieces = [](VectorOperand &o, int64_t bytes, int64_t apart) {
        o = o.pieces(static_cast<uint32_t>(bytes), static_cast<uint32_t>(apart));
    };
    switch (i.instr) {
    case Instr::VCOPY:
        if (by_row) {
            const int64_t bytes = i.mask.count * size;
            auto rows = [&](const VectorOperand &o) {
                return lines_at(o.address, i.repeats, int64_t(o.repeat_stride) * kBytesOfBlock,
                                o.block_stride ? bytes : std::min<int64_t>(bytes, kBytesOfBlock));
            };
            also(kWrites, Space::UB, i.type, rows(dst));
            also(kReads, Space::UB, i.type, rows(src0));
            dst = dst.elsewhere();
            src0 = src0.elsewhere();
        }
        break;
    case Instr::VCMAX:
    case Instr::VCMIN: {
        const auto order = static_cast<Order>(i.mode);
        const int64_t unit = order == Order::OnlyValue ? size : order == Order::OnlyIndex ? 4 : 2 * size;
        dst.mask = 0;
        if (order != Order::OnlyValue) pieces(dst, unit, dst.repeat_stride * unit);
        break;
    }
    case Instr::VCADD:
    case Instr::VCGADD:
    case Instr::VCGMAX:
    case Instr::VCGMIN:
        dst.mask = 0;
        if (i.instr == Instr::VCADD && i.mode & 1) dst = dst.elsewhere();
        break;
    case Instr::VCPADD:
        dst.mask = 0;
        pieces(dst, kBytesOfRepeat / 2, int64_t(dst.repeat_stride) * kBytesOfRepeat / 2);
        break;
    case Instr::VSEL:
        if (i.mode == 1)
            src1 = src1.of(Type::U8).spanning((elements + 7) / 8);
        else if (i.mode == 2)
            also(kReads, Space::UB, Type::U8,
                 lines_at(offset_in(*this, Space::UB, static_cast<uint32_t>(spr_of(Spr::CMPMASK_LOW))), 1, 0,
                          (elements + 7) / 8));
        break;
    case Instr::VGATHER:
        if (computes) note_gathered(*this, i, counts ? elements : repeats * lanes, size);
        src0 = src0.of(Type::U32).spanning((counts ? elements : repeats * lanes) * 4);
        break;
    case Instr::VGATHERB:
        if (computes) note_gathered(*this, i, repeats * kBlocksOfRepeat, kBytesOfBlock);
        src0 = src0.of(Type::U32).spanning(repeats * kBlocksOfRepeat * 4);
        break;
    case Instr::VREDUCEV2: {
        const int64_t read = i.mask.counts ? i.mask.count : lanes;
        auto take = [&](VectorOperand &o, Type type, int64_t bytes) { // as many of each repeat
            const int64_t step = int64_t(o.repeat_stride) * kBytesOfBlock;
            if (!by_row) return pieces(o, bytes, step);
            also(kReads, Space::UB, type, lines_at(o.address, i.repeats, step, bytes));
            o = o.elsewhere();
        };
        if (computes)
            also(kWrites, Space::UB, i.type,
                 lines_at(dst.address, 1, 0, int64_t(spr_of(Spr::RSVD_CNT)) * size));
        dst = dst.elsewhere();
        take(src0, i.type, read * size);
        if (i.mode == 0)
            take(src1, Type::U8, (read + 7) / 8);
        else
            src1 = {};
        break;
    }
    case Instr::VNCHWCONV:
        note_turned(*this, i);
        dst = VectorOperand(static_cast<uint32_t>(va[(i.dst.address * 8) % va.size()])).elsewhere();
        src0 = VectorOperand(static_cast<uint32_t>(va[(i.src0.address * 8) % va.size()])).elsewhere();
        break;
    case Instr::VTRANSPOSE:
        dst = dst.spanning(512);
        src0 = src0.spanning(512);
        break;
    default:
        break;
    }
    issue_vector(i.instr, i.type, repeats, elements, dst, src0, src1, counts);
}

} // namespace insight_trace::engine
