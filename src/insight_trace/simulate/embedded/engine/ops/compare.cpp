// Comparisons into packed masks, and choices by such masks.
//
// A mask has one bit per element: element j of a row is bit j % 8 of byte j / 8 of the mask's row.
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

// As pto::CmpMode.
enum class Comparing : uint8_t { EQ, NE, LT, LE, GT, GE };

struct Comparison {
    const TileRef &dst, &src;
    Comparing mode;

    // The operands of TCMP and TCMPS, checked.
    Comparison(Core &core, const Operands &operands);
};

void require_flat(Core &core, const TileRef &tile) {
    lines_of(core, tile);
    if (!tile.row_major) core.unsupported("%s of column-major tiles", core.op);
}

Comparison::Comparison(Core &core, const Operands &operands)
    : dst(tile_operand(core, operands, 0)), src(tile_operand(core, operands, 1)), mode(Comparing::EQ) {
    for (const TileRef *tile : {&dst, &src}) require_flat(core, *tile);
    const int64_t asked = operands.count > 3 && operands[3].kind == Operand::Option ? operands[3].option : -1;
    mode = static_cast<Comparing>(asked);
    if (asked < 0 || asked > static_cast<int64_t>(Comparing::GE))
        core.kernel_error("%s: there is no such comparison", core.op);
    if (src.type == Type::I32 && mode > Comparing::NE && !core.register_based())
        core.unsupported("%s of I32 tiles for more than equality", core.op);
}

// 16-bit integers are compared as the halves that they would be.
Type compared_as(Type type) { return type == Type::I16 || type == Type::U16 ? Type::F16 : type; }

constexpr Compare kModes[] = {Compare::EQ, Compare::NE, Compare::LT, Compare::LE, Compare::GT, Compare::GE};

// With functions every type is compared as it is, and elements that are not valid leave zeros: 16 bytes of
// mask for 128 elements, 32 for 256 bytes. Of 64-bit numbers a row's first 64 are compared, into 32 bytes.
void compare_rows(Core &core, const Comparison &job, const TileRef *other, uint64_t number = 0) {
    const int size = type_size(job.src.type);
    if (!is_number(job.src.type)) refuse_type(core, job.src.type);
    const bool wide = size == 1 || size == 8;
    const int compared = size == 8 ? std::min(job.src.valid_cols, 64) : job.src.valid_cols;
    const int mode = static_cast<int>(kModes[static_cast<int>(job.mode)]) | kWholeWords;
    const Operation instr(other ? Instr::VCMPV : Instr::VCMPVS, number, mode | (wide ? kWideWords : 0));
    for (int row = 0; row < job.src.valid_rows; ++row)
        core.vector_counted(
            instr, job.src.type, compared,
            row_of(job.dst, row).spanning(ceil_div(compared, wide ? 256 : 128) * (wide ? 32 : 16)),
            row_of(job.src, row), other ? row_of(*other, row) : VectorOperand());
}

// Row by row, at most 240 repeats at a time. `outer_pieces`: all rows of one piece before the next piece.
void issue_compare(Core &core, const Comparison &job, const TileRef *other, bool outer_pieces,
                   uint64_t number = 0) {
    const int lanes = per_repeat(job.src.type), rows = job.src.valid_rows;
    const bool differs = job.mode == Comparing::NE; // equal, with every bit turned afterwards
    const Operation instr(other ? Instr::VCMPV : Instr::VCMPVS, number,
                          differs ? Compare::EQ : kModes[static_cast<int>(job.mode)]);
    auto piece = [&](int row, int done, int repeat) {
        auto at = [&](const TileRef &tile) { return row_of(tile, row, int64_t(done) * lanes); };
        core.vector(instr, compared_as(job.src.type), repeat, int64_t(repeat) * lanes,
                    VectorOperand(address_of(job.dst, row) + uint32_t(done * lanes / 8)), at(job.src),
                    other ? at(*other) : VectorOperand());
    };
    auto pieces = [&](auto body) {
        portions(static_cast<int>(ceil_div(job.src.valid_cols, lanes)), 240, body);
    };
    bit_mode(core);
    mask_all(core);
    if (outer_pieces)
        pieces([&](int done, int repeat) {
            for (int row = 0; row < rows; ++row) piece(row, done, repeat);
        });
    else
        for (int row = 0; row < rows; ++row) pieces([&](int done, int repeat) { piece(row, done, repeat); });
    if (!differs) return;
    barrier(core);
    const VectorOperand mask(job.dst.address);
    core.vector_count(Instr::VNOT, Type::U16, int64_t(rows) * job.dst.cols * type_size(job.dst.type) / 2,
                      mask, mask);
}

const TileRef &compared_tile(Core &core, const Operands &operands) {
    const TileRef &other = tile_operand(core, operands, 2);
    require_type(core, other, tile_operand(core, operands, 1).type);
    require_flat(core, other);
    return other;
}
// The number may be the first element of a tile: the scalar unit reads it. Of 16-bit integers their bits.
uint64_t compared_number(Core &core, const Operands &operands, Type type) {
    if (operands[2].kind != Operand::Tile) return scalar_bits(operands[2], type);
    for (PipeId pipe : {PipeId::V, PipeId::MTE1, PipeId::MTE2}) handshake(core, pipe, PipeId::S);
    return scalar_load(core, operands[2].tile.address, type_size(type));
}

// The lines of TSEL and TSELS, checked: the first source, and the second where that is a tile.
struct Selection {
    const TileRef &dst, &mask;
    Lines to, x, y;
    Selection(Core &core, const Operands &operands, bool two)
        : dst(tile_operand(core, operands, 0)), mask(tile_operand(core, operands, 1)),
          to(lines_of(core, dst)) {
        for (const TileRef *tile : {&dst, &mask}) require_flat(core, *tile);
        if (to.size != 2 && to.size != 4 && !core.register_based()) refuse_type(core, dst.type);
        x = source(core, tile_operand(core, operands, 2));
        if (two) y = source(core, tile_operand(core, operands, 3));
        if (!two && operands.count < 5) core.kernel_error("TSELS needs a number");
    }
    Lines source(Core &core, const TileRef &tile) const {
        require_type(core, tile, dst.type);
        require_flat(core, tile);
        return lines_of(core, tile, to);
    }
    uint32_t bits(int row) const { return address_of(mask, row); }
    int64_t mask_bytes() const { return (to.width + 7) / 8; }
    Type type() const { return to.size == 4 ? Type::F32 : Type::F16; }
};

} // namespace

TILE_OP_BODY(TCMP) {
    const Comparison job(core, operands);
    const TileRef &other = compared_tile(core, operands);
    allow_types(core, job.src.type, {Type::F32, Type::F16, Type::I32});
    issue_compare(core, job, &other, false);
}
FUNCTION_OP_BODY(TCMP) { compare_rows(core, {core, operands}, &compared_tile(core, operands)); }

TILE_OP_BODY(TCMPS) {
    const Comparison job(core, operands);
    allow_types(core, compared_as(job.src.type), {Type::F32, Type::F16, Type::I32});
    const Type type = compared_as(job.src.type) == job.src.type ? job.src.type : Type::I16;
    issue_compare(core, job, nullptr, true, compared_number(core, operands, type));
}
FUNCTION_OP_BODY(TCMPS) {
    const Comparison job(core, operands);
    compare_rows(core, job, nullptr, compared_number(core, operands, job.src.type));
}

TILE_OP_BODY(TSEL) {
    const Selection job(core, operands, true);
    const uint32_t tmp = tile_operand(core, operands, 4).address;
    const int words = job.to.size == 2 ? 4 : 2; // of the mask register
    count_mode(core);
    for (int row = 0; row < job.to.lines; ++row) {
        mask_value(core, uint64_t(words));
        counted_then(core, {Instr::MOVEV, job.bits(row)}, Type::U32, words, VectorOperand(tmp));
        load_compare_mask(core, tmp);
        barrier(core);
        mask_value(core, uint64_t(job.to.width));
        core.also(kReads, Space::UB, Type::U8, lines_at(job.bits(row), 1, 0, job.mask_bytes()));
        core.vector_counted({Instr::VSEL, 0, 2}, job.type(), job.to.width, job.to.at(row), job.x.at(row),
                            job.y.at(row));
    }
    count_off(core);
}
FUNCTION_OP_BODY(TSEL) {
    const Selection job(core, operands, true);
    for (int row = 0; row < job.to.lines; ++row)
        core.vector_counted(selected_by(job.bits(row)), job.dst.type, job.to.width, job.to.at(row),
                            job.x.at(row), job.y.at(row));
}

TILE_OP_BODY(TSELS) {
    const Selection job(core, operands, false);
    const uint32_t tmp = tile_operand(core, operands, 3).address;
    scalar_store(core, tmp, scalar_bits(operands[4], job.dst.type), job.to.size);
    under_count(core, job.to.width, [&] {
        handshake(core, PipeId::S, PipeId::V);
        load_compare_mask(core, tmp);
        barrier(core);
        for (int row = 0; row < job.to.lines; ++row)
            core.vector_counted({Instr::VSEL, 0, 1}, job.type(), job.to.width, job.to.at(row), job.x.at(row),
                                VectorOperand(job.bits(row)).of(Type::U8).spanning(job.mask_bytes()));
    });
}
FUNCTION_OP_BODY(TSELS) {
    const Selection job(core, operands, false);
    const VectorOperand other(kRegisterFile);
    core.vector_counted({Instr::MOVEV, scalar_bits(operands[4], job.dst.type)}, job.dst.type, job.to.width,
                        other);
    for (int row = 0; row < job.to.lines; ++row)
        core.vector_counted(selected_by(job.bits(row)), job.dst.type, job.to.width, job.to.at(row),
                            job.x.at(row), other);
}

} // namespace insight_trace::engine
