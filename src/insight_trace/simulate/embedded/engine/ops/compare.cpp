// Comparisons into packed masks, and choices by such masks.
//
// A mask has one bit per element: element j of a row is bit j % 8 of byte j / 8 of the mask's row.
#include <algorithm>

#include "isa/vector_unit.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

// As pto::CmpMode.
enum class Comparing : uint8_t { EQ, NE, LT, LE, GT, GE };

struct Comparison {
    const char *op;
    const TileRef &dst, &src;
    Comparing mode;
};

Comparing compare_mode(Core &core, const char *op, const Operand &operand, Type type) {
    int64_t mode = operand.option;
    if (operand.kind != Operand::Option || mode < 0 || mode > static_cast<int64_t>(Comparing::GE))
        core.kernel_error("%s: there is no such comparison", op);
    if (type == Type::I32 && mode > static_cast<int64_t>(Comparing::NE) && !core.register_based())
        core.unsupported("%s of I32 tiles for more than equality", op);
    return static_cast<Comparing>(mode);
}

// 16-bit integers are compared as the halves that they would be.
Type compared_as(Type type) { return type == Type::I16 || type == Type::U16 ? Type::F16 : type; }

// The instruction's mode; unequal is equal with every bit turned afterwards.
uint8_t instruction_mode(Comparing mode) {
    constexpr Compare modes[] = {Compare::EQ, Compare::EQ, Compare::LT,
                                 Compare::LE, Compare::GT, Compare::GE};
    return static_cast<uint8_t>(modes[static_cast<int>(mode)]);
}

void turn_bits(Core &core, const Comparison &job) {
    int64_t bytes = int64_t(job.src.valid_rows) * job.dst.cols * type_size(job.dst.type);
    core.barrier(PipeId::V);
    core.vector_count(executed(Instr::VNOT), Type::U16, bytes / 2, VectorOperand(job.dst.address),
                      VectorOperand(job.dst.address));
}

// With functions every type is compared as it is, and elements that are not valid leave zeros: 16 bytes of
// mask for 128 elements, 32 for 256 bytes. Of 64-bit numbers a row's first 64 are compared, into 32 bytes.
void compare_rows(Core &core, const Comparison &job, const TileRef *other, uint64_t number = 0) {
    constexpr Compare modes[] = {Compare::EQ, Compare::NE, Compare::LT,
                                 Compare::LE, Compare::GT, Compare::GE};
    const int size = type_size(job.src.type);
    if (!is_number(job.src.type)) core.unsupported("%s of %s tiles", job.op, type_name(job.src.type));
    const bool wide = size == 1 || size == 8;
    const int compared = size == 8 ? std::min(job.src.valid_cols, 64) : job.src.valid_cols;
    const auto mode = static_cast<uint8_t>(static_cast<int>(modes[static_cast<int>(job.mode)]) | kWholeWords |
                                           (wide ? kWideWords : 0));
    const Operation instr = executed(other ? Instr::VCMPV : Instr::VCMPVS, number, mode);
    auto row_of = [](const TileRef &tile, int row) {
        return VectorOperand(element_address(tile, int64_t(row) * tile.cols));
    };
    for (int row = 0; row < job.src.valid_rows; ++row)
        core.vector_counted(
            instr, job.src.type, compared,
            row_of(job.dst, row).spanning(ceil_div(compared, wide ? 256 : 128) * (wide ? 32 : 16)),
            row_of(job.src, row), other ? row_of(*other, row) : VectorOperand());
}

// Row by row, at most 240 repeats at a time. `outer_pieces`: all rows of one piece before the next piece.
void issue_compare(Core &core, const Comparison &job, const TileRef *other, bool outer_pieces,
                   uint64_t number = 0) {
    constexpr int kMost = 240;
    int size = type_size(job.src.type), per_repeat = 256 / size;
    int repeats = (job.src.valid_cols + per_repeat - 1) / per_repeat;
    const Operation instr =
        executed(other ? Instr::VCMPV : Instr::VCMPVS, number, instruction_mode(job.mode));
    Type type = compared_as(job.src.type);
    auto piece = [&](int row, int done) {
        int repeat = std::min(kMost, repeats - done);
        uint32_t offset = static_cast<uint32_t>(done * 256);
        auto at = [&](const TileRef &tile) {
            return VectorOperand(tile.address + static_cast<uint32_t>(row * tile.cols * size) + offset);
        };
        VectorOperand dst(job.dst.address +
                          static_cast<uint32_t>(row * job.dst.cols * type_size(job.dst.type)) +
                          offset / static_cast<uint32_t>(8 * size));
        core.vector(instr, type, repeat, int64_t(repeat) * per_repeat, dst, at(job.src),
                    other ? at(*other) : VectorOperand());
    };
    core.set_register(PipeId::V, 0);
    mask_all(core);
    if (outer_pieces)
        for (int done = 0; done < repeats; done += kMost)
            for (int row = 0; row < job.src.valid_rows; ++row) piece(row, done);
    else
        for (int row = 0; row < job.src.valid_rows; ++row)
            for (int done = 0; done < repeats; done += kMost) piece(row, done);
}

void require_flat(Core &core, const char *op, const TileRef &tile) {
    lines_of(core, op, tile);
    if (!tile.row_major) core.unsupported("%s of column-major tiles", op);
}

int64_t mask_pitch(const TileRef &mask) { return int64_t(mask.cols) * type_size(mask.type); }

// The operands of TCMP and TCMPS, checked.
Comparison comparison(Core &core, const char *op, const Operands &operands) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    for (const TileRef *tile : {&dst, &src}) require_flat(core, op, *tile);
    if (operands.count < 4) core.kernel_error("%s needs a comparison", op);
    return {op, dst, src, compare_mode(core, op, operands[3], src.type)};
}
const TileRef &compared_tile(Core &core, const char *op, const Operands &operands) {
    const TileRef &other = tile_operand(core, op, operands, 2);
    require_type(core, op, other, tile_operand(core, op, operands, 1).type);
    require_flat(core, op, other);
    return other;
}
// The number may be the first element of a tile: the scalar unit reads it. Of 16-bit integers their bits.
uint64_t compared_number(Core &core, const Operands &operands, Type type) {
    if (operands[2].kind != Operand::Tile) return scalar_bits(operands[2], type);
    for (PipeId pipe : {PipeId::V, PipeId::MTE1, PipeId::MTE2}) handshake(core, pipe, PipeId::S);
    return scalar_load(core, operands[2].tile.address, type_size(type));
}

// The lines of TSEL and TSELS, checked.
struct Selection {
    const TileRef &dst, &mask;
    Lines to;
    Selection(Core &core, const char *op, const Operands &operands)
        : dst(tile_operand(core, op, operands, 0)), mask(tile_operand(core, op, operands, 1)),
          to(lines_of(core, op, dst)) {
        for (const TileRef *tile : {&dst, &mask}) require_flat(core, op, *tile);
        if (to.size != 2 && to.size != 4 && !core.register_based())
            core.unsupported("%s of %s tiles", op, type_name(dst.type));
    }
    Lines source(Core &core, const char *op, const TileRef &tile) const {
        require_type(core, op, tile, dst.type);
        require_flat(core, op, tile);
        return lines_of(core, op, tile, to);
    }
    uint32_t bits(int row) const { return mask.address + static_cast<uint32_t>(row * mask_pitch(mask)); }
    static VectorOperand at(const Lines &tile, int row) {
        return VectorOperand(tile.address + static_cast<uint32_t>(row * tile.pitch * tile.size));
    }
    Type type() const { return to.size == 4 ? Type::F32 : Type::F16; }
};

} // namespace

TILE_OP_BODY(TCMP) {
    const Comparison job = comparison(core, "TCMP", operands);
    const TileRef &other = compared_tile(core, "TCMP", operands);
    allow_types(core, "TCMP", job.src.type, {Type::F32, Type::F16, Type::I32});
    issue_compare(core, job, &other, false);
    if (job.mode == Comparing::NE) turn_bits(core, job);
}
FUNCTION_OP_BODY(TCMP) {
    const Comparison job = comparison(core, "TCMP", operands);
    compare_rows(core, job, &compared_tile(core, "TCMP", operands));
}

TILE_OP_BODY(TCMPS) {
    const Comparison job = comparison(core, "TCMPS", operands);
    allow_types(core, "TCMPS", compared_as(job.src.type), {Type::F32, Type::F16, Type::I32});
    const Type type = compared_as(job.src.type) == job.src.type ? job.src.type : Type::I16;
    issue_compare(core, job, nullptr, true, compared_number(core, operands, type));
    if (job.mode == Comparing::NE) turn_bits(core, job);
}
FUNCTION_OP_BODY(TCMPS) {
    const Comparison job = comparison(core, "TCMPS", operands);
    compare_rows(core, job, nullptr, compared_number(core, operands, job.src.type));
}

TILE_OP_BODY(TSEL) {
    const char *op = "TSEL";
    const Selection job(core, op, operands);
    const Lines x = job.source(core, op, tile_operand(core, op, operands, 2)),
                y = job.source(core, op, tile_operand(core, op, operands, 3));
    const TileRef &tmp = tile_operand(core, op, operands, 4);
    int words = job.to.size == 2 ? 4 : 2; // of the mask register
    core.set_register(PipeId::V, 1);
    for (int row = 0; row < job.to.lines; ++row) {
        core.set_register(PipeId::V, static_cast<uint64_t>(words));
        core.vector_counted(executed(Instr::MOVEV, job.bits(row)), Type::U32, words,
                            VectorOperand(tmp.address));
        core.barrier(PipeId::V);
        load_compare_mask(core, tmp.address);
        core.barrier(PipeId::V);
        core.set_register(PipeId::V, static_cast<uint64_t>(job.to.width));
        core.also(kReads, Space::UB, Type::U8, lines_at(job.bits(row), 1, 0, (job.to.width + 7) / 8));
        core.vector_counted(executed(Instr::VSEL, 0, 2), job.type(), job.to.width, Selection::at(job.to, row),
                            Selection::at(x, row), Selection::at(y, row));
    }
    count_off(core);
}
FUNCTION_OP_BODY(TSEL) {
    const char *op = "TSEL";
    const Selection job(core, op, operands);
    const Lines x = job.source(core, op, tile_operand(core, op, operands, 2)),
                y = job.source(core, op, tile_operand(core, op, operands, 3));
    for (int row = 0; row < job.to.lines; ++row)
        core.vector_counted(selected_by(job.bits(row)), job.dst.type, job.to.width,
                            Selection::at(job.to, row), Selection::at(x, row), Selection::at(y, row));
}

TILE_OP_BODY(TSELS) {
    const char *op = "TSELS";
    const Selection job(core, op, operands);
    const Lines from = job.source(core, op, tile_operand(core, op, operands, 2));
    const TileRef &tmp = tile_operand(core, op, operands, 3);
    if (operands.count < 5) core.kernel_error("TSELS needs a number");
    scalar_store(core, tmp.address, scalar_bits(operands[4], job.dst.type), job.to.size);
    count_elements(core, job.to.width);
    handshake(core, PipeId::S, PipeId::V);
    load_compare_mask(core, tmp.address);
    core.barrier(PipeId::V);
    for (int row = 0; row < job.to.lines; ++row)
        core.vector_counted(executed(Instr::VSEL, 0, 1), job.type(), job.to.width, Selection::at(job.to, row),
                            Selection::at(from, row),
                            VectorOperand(job.bits(row)).of(Type::U8).spanning((job.to.width + 7) / 8));
    count_off(core);
}
FUNCTION_OP_BODY(TSELS) {
    const char *op = "TSELS";
    const Selection job(core, op, operands);
    const Lines from = job.source(core, op, tile_operand(core, op, operands, 2));
    if (operands.count < 5) core.kernel_error("TSELS needs a number");
    const VectorOperand other(kRegisterFile);
    core.vector_counted(executed(Instr::MOVEV, scalar_bits(operands[4], job.dst.type)), job.dst.type,
                        job.to.width, other);
    for (int row = 0; row < job.to.lines; ++row)
        core.vector_counted(selected_by(job.bits(row)), job.dst.type, job.to.width,
                            Selection::at(job.to, row), Selection::at(from, row), other);
}

} // namespace insight_trace::engine
