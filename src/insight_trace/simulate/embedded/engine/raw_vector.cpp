// Vector instructions that kernels issue themselves, by the names of the device compiler.
#include <cstring>

#include "elements.hpp"
#include "isa/vector_unit.hpp"
#include "isa/rounding.hpp"
#include "raw_units.hpp"

namespace insight_trace::engine {

namespace {

enum class CallForm : uint8_t {
    Binary,
    Scalar,
    Shift,
    Unary,
    Fill,
    Sum,
    Extreme,
    Reduce,
    Compare,
    CompareNumber,
    CompareToRegister,
    Select,
    MaskRegister,
    Spread,
    Gather,
    GatherBlocks,
    Squeeze,
    Sort,
    Merge,
    TurnBytes,
    Turn,
    TurnSquare
};

struct Row {
    const char *name;
    Instr instr;
    CallForm form;
    uint8_t mode;
    bool typed;
    Type from, to; // where the name says them
};
constexpr Row kRows[] = {
#define VECTOR(name, instr, form, mode) {#name, Instr::instr, CallForm::form, mode, false, {}, {}},
#define CONVERT(name, from, to, rounding)                                                                    \
    {#name, Instr::VCONV, CallForm::Unary, static_cast<uint8_t>(Round::rounding), true, Type::from, Type::to},
#define REQUANTISE(name, mode)        {#name, Instr::VCONV, CallForm::Unary, mode, true, Type::I16, Type::U8},
#define NARROW(name, instr, from, to) {#name, Instr::instr, CallForm::Binary, 0, true, Type::from, Type::to},
#include "insight_trace/isa/vector.def"
#undef VECTOR
#undef CONVERT
#undef REQUANTISE
#undef NARROW
};

LaneMask mask_of(Core &core) {
    if (core.control & kCountMode)
        return LaneMask::of_count(static_cast<uint32_t>(core.spr_of(Spr::MASK_LOW)));
    LaneMask mask;
    mask.bits = {core.spr_of(Spr::MASK_LOW), core.spr_of(Spr::MASK_HIGH), ~0ull, ~0ull};
    return mask;
}

// CMPMASK from 16 bytes of UB, or to them.
void mask_register(Core &core, bool stores, uint64_t address) {
    void *kept = &core.spr_of(Spr::CMPMASK_LOW);
    if (core.computes) {
        uint8_t *place = core.local(Space::UB, address, 16);
        stores ? memcpy(place, kept, 16) : memcpy(kept, place, 16);
    }
    core.also(stores ? kWrites : kReads, Space::UB, Type::U8, lines_at(address, 1, 0, 16));
    core.set_register(PipeId::V, address);
}

} // namespace

void raw_vector(Core &core, const uint64_t *v) {
    if (v[0] >= static_cast<uint64_t>(VectorRow::COUNT)) core.kernel_error("there is no such instruction");
    const Row &row = kRows[v[0]];
    const uint64_t dst = offset_in(core, Space::UB, v[2]);
    if (row.form == CallForm::MaskRegister) return mask_register(core, row.mode == 1, dst);
    VectorInstruction i;
    i.instr = row.instr;
    i.mode = static_cast<uint8_t>(row.mode | v[12]);
    i.to = row.typed ? row.to : static_cast<Type>(v[1] & 255);
    i.from = row.typed ? row.from : static_cast<Type>(v[1] >> 8 & 255);
    i.second = row.typed ? row.from : static_cast<Type>(v[1] >> 16 & 255);
    i.repeats = static_cast<int64_t>(v[5]);
    i.mask = mask_of(core);
    auto operand = [&](int which, uint64_t address) {
        return VectorOperand(static_cast<uint32_t>(offset_in(core, Space::UB, address)),
                             static_cast<uint16_t>(v[9 + which]), static_cast<uint16_t>(v[6 + which]));
    };
    const bool registers = row.form == CallForm::Turn || row.form == CallForm::TurnBytes;
    if (row.form != CallForm::CompareToRegister) i.dst = operand(0, v[2]);
    if (registers) i.dst.address = static_cast<uint32_t>(v[2]);
    switch (row.form) {
    case CallForm::Fill:
        i.number = v[4];
        break;
    case CallForm::Scalar:
    case CallForm::Shift:
    case CallForm::CompareNumber:
    case CallForm::Gather:
    case CallForm::GatherBlocks:
        i.number = v[4];
        [[fallthrough]];
    case CallForm::Unary:
    case CallForm::Sum:
    case CallForm::Extreme:
    case CallForm::Reduce:
    case CallForm::Spread:
    case CallForm::Turn:
    case CallForm::TurnBytes:
    case CallForm::TurnSquare:
        i.src0 = operand(1, v[3]);
        if (registers) i.src0.address = static_cast<uint32_t>(v[3]);
        break;
    default:
        i.src0 = operand(1, v[3]);
        i.src1 = operand(2, v[4]);
    }
    core.issue(i);
}

void raw_merge(Core &core, const uint64_t *v) {
    const auto type = static_cast<Type>(v[0]);
    const uint64_t dst = offset_in(core, Space::UB, v[1]);
    uint64_t lists[4];
    int64_t lengths[4], total = 0;
    const int valid = static_cast<int>(v[7] >> 8 & 15);
    const int64_t repeats = static_cast<int64_t>(v[7] & 255);
    const bool stops = v[7] >> 12 & 1;
    for (int list = 0; list < 4; ++list) {
        lists[list] = offset_in(core, Space::UB, v[2 + list]);
        lengths[list] = static_cast<int64_t>(v[6] >> (16 * list) & 0xffff);
        if (!(valid >> list & 1)) continue;
        total += lengths[list];
        core.also(kReads, Space::UB, type, lines_at(lists[list], 1, 0, repeats * lengths[list] * 8), !stops);
    }
    if (repeats <= 0 || !total) return;
    if (core.computes) {
        const MergeResult result = merge_sorted(core, type, dst, lists, lengths, repeats, valid, stops);
        uint64_t &taken = core.spr_of(Spr::VMS4_SR);
        taken = 0;
        for (int list = 0; list < 4; ++list) taken |= uint64_t(result.taken[list] & 0xffff) << (16 * list);
    }
    core.also(kWrites, Space::UB, type, lines_at(dst, 1, 0, repeats * total * 8), !stops);
    core.vector(issued_only(Instr::VMS4v2), type, merge_repeats(repeats * total),
                repeats * total * 8 / type_size(type), VectorOperand(static_cast<uint32_t>(dst)).elsewhere());
}

} // namespace insight_trace::engine
