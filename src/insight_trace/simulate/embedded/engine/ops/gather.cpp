// Gather inside the vector core's memory: by element index, by mask pattern, by comparison, by block.
#include "isa/vector_unit.hpp"
#include "ops/patterns.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

constexpr uint8_t kByIndex = 1; // of VGATHER: elements, not bytes

// The operands of the form TGATHER(dst, src, indices, tmp).
void gather_by_index(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &idx = operands[2].tile,
                  &tmp = operands[3].tile;
    int size = type_size(dst.type);
    if (size != 2 && size != 4 && !core.register_based())
        core.unsupported("TGATHER of %s tiles", type_name(dst.type));
    same_type(core, "TGATHER", dst, src);
    const bool narrow = type_size(idx.type) == 2 && core.register_based();
    if (type_size(idx.type) != 4 && !narrow) core.unsupported("TGATHER by %s indices", type_name(idx.type));
    need_plain_rows(core, "TGATHER", dst, "result");
    need_plain_rows(core, "TGATHER", idx, "index tile");
    if (is_empty(dst)) return;
    int rows = dst.valid_rows, cols = dst.valid_cols;
    if (idx.rows < rows || idx.cols < cols)
        core.kernel_error("TGATHER: %d x %d indices for a result of %d x %d", idx.rows, idx.cols, rows, cols);
    if (core.register_based()) { // by index, whatever its size, without offsets in between
        for (int r = 0; r < rows; ++r) {
            core.also(kReads, src.space, src.type, whole_of(src), false);
            core.vector_counted(executed(Instr::VGATHER, src.address, kByIndex), dst.type, cols,
                                VectorOperand(element_address(dst, int64_t(r) * dst.cols)),
                                VectorOperand(element_address(idx, int64_t(r) * idx.cols))
                                    .of(idx.type)
                                    .spanning(int64_t(cols) * type_size(idx.type)));
        }
        return;
    }
    count_mode(core);
    for (int r = 0; r < rows; ++r) {
        // byte offsets go where the results will stand, or into tmp when those are narrower
        uint32_t out = element_address(dst, int64_t(r) * dst.cols);
        uint32_t offsets = size == 4 ? out : tmp.address + uint32_t(int64_t(r) * dst.cols * 4);
        mask_value(core, uint64_t(cols));
        counted(core, executed(Instr::VMULS, uint64_t(size)), Type::I32, cols, VectorOperand(offsets),
                VectorOperand(element_address(idx, int64_t(r) * idx.cols)));
        core.barrier(PipeId::V);
        core.also(kReads, src.space, src.type, whole_of(src), false);
        counted(core, executed(Instr::VGATHER, src.address), dst.type, cols, VectorOperand(out),
                VectorOperand(offsets).of(Type::U32).spanning(int64_t(cols) * 4));
    }
    count_off(core);
}

// TGATHER<Dst, Src, pattern, axis>(dst, src): what the pattern picks of every row, packed; or whole rows.
void gather_by_pattern(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    Pattern pattern(core, "TGATHER", operands[2].option);
    bool rows_picked = operands[3].option == 1;
    int size = type_size(src.type);
    if (size != 2 && size != 4 && !core.register_based())
        core.unsupported("TGATHER of %s tiles by a mask pattern", type_name(src.type));
    constexpr int64_t kOddOnes = 2; // pto::MaskPattern::P1010
    if (size == 8 && src.valid_cols % 2 && operands[2].option == kOddOnes)
        core.unsupported("TGATHER of every second 64-bit number of an odd row");
    if (type_size(dst.type) != size)
        core.kernel_error("TGATHER: element types differ in size (%s and %s)", type_name(dst.type),
                          type_name(src.type));
    need_plain_rows(core, "TGATHER", dst, "result");
    need_plain_rows(core, "TGATHER", src, "source");
    if (is_empty(src)) return;
    int64_t capacity = int64_t(dst.rows) * dst.cols;
    count_elements(core, src.valid_cols);
    if (rows_picked) {
        int rows = static_cast<int>(pattern.picked_of(src.valid_rows));
        if (rows > dst.rows || src.valid_cols > dst.cols)
            core.kernel_error("TGATHER: %d rows of %d do not fit a result of %d x %d", rows, src.valid_cols,
                              dst.rows, dst.cols);
        for (int r = 0; r < rows; ++r) {
            int64_t source = pattern.position(r);
            counted(core, executed(Instr::VCOPY), dst.type, src.valid_cols,
                    VectorOperand(element_address(dst, int64_t(r) * dst.cols)),
                    VectorOperand(element_address(src, source * src.cols)));
        }
    } else {
        int64_t picked = pattern.picked_of(src.valid_cols);
        if (picked * src.valid_rows > capacity)
            core.kernel_error("TGATHER: %lld elements do not fit a result of %d x %d",
                              (long long)(picked * src.valid_rows), dst.rows, dst.cols);
        const int repeats = src.valid_rows * static_cast<int>(ceil_div(src.valid_cols, per_repeat(src.type)));
        core.also(kReads, src.space, src.type, valid_of(src));
        const auto step = static_cast<uint16_t>(src.cols * size / kBlockBytes);
        const Operation squeeze = executed(Instr::VREDUCEV2, 0, static_cast<uint8_t>(operands[2].option));
        core.vector(by_row(squeeze, src.valid_rows, src.valid_cols), src.type, repeats,
                    int64_t(src.valid_rows) * src.valid_cols,
                    VectorOperand(dst.address).spanning(picked * src.valid_rows * size),
                    VectorOperand(src.address, step).elsewhere());
    }
    count_off(core);
}

// TGATHER<…, cmp>(dst, src, k, counts, tmp, offset): positions of the elements that compare true with their
// row's k, and how many there are.
void gather_by_comparison(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &k = operands[2].tile,
                  &counts = operands[3].tile, &tmp = operands[4].tile;
    const auto offset = static_cast<int64_t>(scalar_bits(operands[5], Type::I64));
    constexpr int64_t kEqual = 0, kGreater = 4; // pto::CmpMode
    int64_t mode = operands[6].option;
    if (mode != kEqual && mode != kGreater)
        core.unsupported("TGATHER by a comparison other than equal or greater");
    allow_types(core, "TGATHER", dst.type, {Type::I32, Type::U32});
    allow_types(core, "TGATHER by comparison", src.type, {Type::F32, Type::F16, Type::I32});
    need_plain_rows(core, "TGATHER", dst, "result");
    need_plain_rows(core, "TGATHER", src, "source");
    if (is_empty(src)) return;
    int rows = src.valid_rows, cols = src.valid_cols, size = type_size(src.type);
    if (dst.rows < rows) core.kernel_error("TGATHER: %d rows for a result of %d", rows, dst.rows);
    // positions are written one by one, then picked by the comparison's bits
    const uint32_t bits_at = scratch_address(core, tmp);
    uint32_t positions = bits_at + uint32_t(tmp.rows * tmp.cols);
    uint32_t limits = positions + uint32_t(src.rows * src.cols * 4);
    for (int64_t i = 0; i < int64_t(src.rows) * src.cols; ++i)
        scalar_store(core, positions + uint32_t(i * 4), uint64_t(offset + i), 4);
    handshake(core, PipeId::S, PipeId::V);
    const int limit_size = type_size(k.type);
    if (src.type == Type::I32)
        for (int r = 0; r < src.rows; ++r)
            scalar_store(core, limits + uint32_t(r * 4), scalar_load(core, element_address(k, r), limit_size),
                         4);
    else
        core.vector_counted(executed(Instr::VCONV, 0, static_cast<uint8_t>(Round::Rint)), src.type, rows,
                            VectorOperand(limits).of(src.type),
                            VectorOperand(k.address).of(limit_size == 4 ? Type::I32 : Type::I16));
    count_off(core);
    int repeats = static_cast<int>(ceil_div(cols, per_repeat(src.type)));
    const auto how = static_cast<uint8_t>(mode == kEqual ? Compare::EQ : Compare::GT);
    for (int r = 0; r < rows; ++r) {
        handshake(core, PipeId::V, PipeId::S);
        const uint64_t limit = scalar_load(core, limits + uint32_t(r * size), size);
        handshake(core, PipeId::S, PipeId::V);
        core.vector(executed(Instr::VCMPVS, limit, how), src.type, repeats, cols,
                    VectorOperand(bits_at + uint32_t(r * tmp.cols)),
                    VectorOperand(element_address(src, int64_t(r) * src.cols)));
    }
    core.barrier(PipeId::V);
    count_elements(core, cols);
    for (int r = 0; r < rows; ++r) {
        counted(core, executed(Instr::VREDUCEV2), Type::U32, cols,
                VectorOperand(element_address(dst, int64_t(r) * dst.cols)),
                VectorOperand(positions + uint32_t(int64_t(r) * src.cols * 4)),
                VectorOperand(bits_at + uint32_t(r * tmp.cols)).of(Type::U8).spanning((cols + 7) / 8));
        scalar_store(core, element_address(counts, r), uint64_t(kept_count(core)), 4);
    }
    count_off(core);
}

} // namespace

TILE_OP_BODY(TGATHER) {
    if (operands[2].kind == Operand::Option)
        gather_by_pattern(core, operands);
    else if (operands.count == 4)
        gather_by_index(core, operands);
    else
        gather_by_comparison(core, operands);
}

static int check_block_gather(Core &core, const TileRef &dst, const TileRef &offsets) {
    if (type_size(dst.type) > 4) core.unsupported("TGATHERB of %s tiles", type_name(dst.type));
    if (type_size(offsets.type) != 4) core.unsupported("TGATHERB by %s offsets", type_name(offsets.type));
    need_plain_rows(core, "TGATHERB", dst, "result");
    need_plain_rows(core, "TGATHERB", offsets, "offset tile");
    const int rows = dst.valid_rows, blocks = static_cast<int>(ceil_div(dst.valid_cols, per_block(dst.type)));
    if (!is_empty(dst) && (offsets.rows < rows || offsets.cols < blocks))
        core.kernel_error("TGATHERB: %d x %d offsets for %d rows of %d blocks", offsets.rows, offsets.cols,
                          rows, blocks);
    return blocks;
}

// Blocks of 32 bytes, each from the byte offset that stands for it.
TILE_OP_BODY(TGATHERB) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &offsets = operands[2].tile;
    check_block_gather(core, dst, offsets);
    if (is_empty(dst)) return;
    const int size = type_size(dst.type), block = per_block(dst.type), rows = dst.valid_rows;
    Type type = size == 1 ? Type::U16 : dst.type;
    int lanes = per_repeat(dst.type), full = dst.valid_cols / lanes;
    const Operation gather = executed(Instr::VGATHERB, src.address);
    // eight offsets of each repeat follow those of the one before
    auto take = [&](int repeats, int64_t elements, VectorOperand to, int64_t first) {
        core.also(kReads, src.space, src.type, whole_of(src), false);
        core.vector(gather, type, repeats, elements, to,
                    VectorOperand(element_address(offsets, first), 1).of(Type::U32).pieces(32, 32));
    };
    for (int r = 0; full > 0 && r < rows; ++r)
        take(full, int64_t(full) * lanes, VectorOperand(element_address(dst, int64_t(r) * dst.cols)),
             int64_t(r) * offsets.cols);
    if (int rest = dst.valid_cols % lanes)
        take(rows, int64_t(rows) * rest,
             VectorOperand(element_address(dst, int64_t(full) * lanes),
                           static_cast<uint16_t>(dst.cols / block)),
             int64_t(full) * 8);
}

// With registers a store is as long as the row, and rows have offsets of their own.
FUNCTION_OP_BODY(TGATHERB) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &offsets = operands[2].tile;
    const int blocks = check_block_gather(core, dst, offsets);
    for (int r = 0; r < dst.valid_rows; ++r) {
        core.also(kReads, src.space, src.type, whole_of(src), false);
        core.vector_counted(executed(Instr::VGATHERB, src.address, 1), dst.type, dst.valid_cols,
                            VectorOperand(element_address(dst, int64_t(r) * dst.cols)),
                            VectorOperand(element_address(offsets, int64_t(r) * offsets.cols), 1)
                                .of(Type::U32)
                                .spanning(int64_t(blocks) * 4));
    }
}

} // namespace insight_trace::engine
