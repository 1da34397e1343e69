// Gather and scatter inside the vector core's memory: by element index, by mask pattern, by comparison, by
// block.
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

constexpr uint8_t kByIndex = 1; // of VGATHER: elements, not bytes

// Which of every two or four neighbours a mask pattern means.
struct Pattern {
    int64_t group; // neighbours that belong together
    int64_t which; // the one of them that is meant

    // `number` as pto::MaskPattern: P0101 = 1, P1010, P0001, P0010, P0100, P1000, P1111
    Pattern(const Core &core, int64_t number) {
        static constexpr int64_t groups[] = {2, 2, 4, 4, 4, 4, 1}, picks[] = {0, 1, 0, 1, 2, 3, 0};
        if (number < 1 || number > 7)
            core.kernel_error("%s: there is no mask pattern %lld", core.op, (long long)number);
        group = groups[number - 1];
        which = picks[number - 1];
    }
    // Position of the i-th element that is meant, and how many there are among the first `count`.
    int64_t position(int64_t i) const { return i * group + which; }
    int64_t picked_of(int64_t count) const { return (count - which + group - 1) / group; }
};

// The operands of the form TGATHER(dst, src, indices, tmp).
void gather_by_index(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &idx = operands[2].tile,
                  &tmp = operands[3].tile;
    const bool registers = core.register_based();
    const int size = type_size(dst.type), index_size = type_size(idx.type);
    if (size != 2 && size != 4 && !registers) refuse_type(core, dst.type);
    same_type(core, dst, src);
    if (index_size != 4 && !(index_size == 2 && registers))
        core.unsupported("TGATHER by %s indices", type_name(idx.type));
    need_plain_rows(core, dst, "result");
    need_plain_rows(core, idx, "index tile");
    if (is_empty(dst)) return;
    const int rows = dst.valid_rows, cols = dst.valid_cols;
    need_room(core, idx, "index tile", rows, cols);
    auto gather = [&](int row, uint8_t how, VectorOperand places, int64_t place_size) {
        core.also(kReads, src.space, src.type, whole_of(src), false);
        counted(core, {Instr::VGATHER, src.address, how}, dst.type, cols, row_of(dst, row),
                places.spanning(cols * place_size));
    };
    if (registers) { // by index, whatever its size, without offsets in between
        for (int r = 0; r < rows; ++r) gather(r, kByIndex, row_of(idx, r).of(idx.type), index_size);
        return;
    }
    count_mode(core);
    for (int r = 0; r < rows; ++r) {
        // byte offsets go where the results will stand, or into tmp when those are narrower
        const VectorOperand offsets(size == 4 ? address_of(dst, r)
                                              : tmp.address + uint32_t(int64_t(r) * dst.cols * 4));
        mask_value(core, uint64_t(cols));
        counted_then(core, {Instr::VMULS, uint64_t(size)}, Type::I32, cols, offsets, row_of(idx, r));
        gather(r, 0, offsets.of(Type::U32), 4);
    }
    count_off(core);
}

// TGATHER<Dst, Src, pattern, axis>(dst, src): what the pattern picks of every row, packed; or whole rows.
void gather_by_pattern(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    const Pattern pattern(core, operands[2].option);
    const int size = type_size(src.type), rows = src.valid_rows, cols = src.valid_cols;
    if (size != 2 && size != 4 && !core.register_based())
        core.unsupported("TGATHER of %s tiles by a mask pattern", type_name(src.type));
    constexpr int64_t kOddOnes = 2; // pto::MaskPattern::P1010
    if (size == 8 && cols % 2 && operands[2].option == kOddOnes)
        core.unsupported("TGATHER of every second 64-bit number of an odd row");
    same_size(core, dst, src);
    need_plain_rows(core, dst, "result");
    need_plain_rows(core, src, "source");
    if (is_empty(src)) return;
    count_elements(core, cols);
    if (operands[3].option == 1) { // whole rows
        const int64_t picked = pattern.picked_of(rows);
        need_room(core, dst, "result", picked, cols);
        // the library goes on for as many rows as the source has: what follows both tiles is copied, too
        const int64_t copied = core.register_based() ? picked : rows;
        if (copied > dst.rows)
            core.remark("TGATHER: %lld rows are copied to a tile of %d, and overwrite what lies behind it",
                        (long long)copied, dst.rows);
        for (int64_t r = 0; r < copied; ++r)
            counted(core, Instr::VCOPY, dst.type, cols, row_of(dst, r), row_of(src, pattern.position(r)));
    } else {
        const int64_t picked = pattern.picked_of(cols) * rows;
        if (picked > int64_t(dst.rows) * dst.cols)
            core.kernel_error("TGATHER: %lld elements do not fit a result of %d x %d", (long long)picked,
                              dst.rows, dst.cols);
        const int repeats = rows * static_cast<int>(ceil_div(cols, per_repeat(src.type)));
        core.also(kReads, src.space, src.type, valid_of(src));
        core.vector(by_row({Instr::VREDUCEV2, 0, operands[2].option}, rows, cols), src.type, repeats,
                    int64_t(rows) * cols, VectorOperand(dst.address).spanning(picked * size),
                    rows_of(src, 0).elsewhere());
    }
    count_off(core);
}

// TGATHER<…, cmp>(dst, src, k, counts, tmp, offset): positions of the elements that compare true with their
// row's k, and how many there are.
void gather_by_comparison(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &k = operands[2].tile,
                  &counts = operands[3].tile, &tmp = operands[4].tile;
    const uint64_t offset = number_operand(operands[5]);
    constexpr int64_t kEqual = 0, kGreater = 4; // pto::CmpMode
    const int64_t mode = operands[6].option;
    if (mode != kEqual && mode != kGreater)
        core.unsupported("TGATHER by a comparison other than equal or greater");
    allow_types(core, dst.type, {Type::I32, Type::U32});
    allow_types(core, src.type, {Type::F32, Type::F16, Type::I32});
    need_plain_rows(core, dst, "result");
    need_plain_rows(core, src, "source");
    if (is_empty(src)) return;
    const int rows = src.valid_rows, cols = src.valid_cols, size = type_size(src.type);
    need_room(core, dst, "result", rows, 1);
    // positions are written one by one, then picked by the comparison's bits
    const uint32_t bits_at = scratch_address(core, tmp);
    const uint32_t positions = bits_at + uint32_t(tmp.rows * tmp.cols);
    const uint32_t limits = positions + uint32_t(src.rows * src.cols * 4);
    for (int64_t i = 0; i < int64_t(src.rows) * src.cols; ++i)
        scalar_store(core, positions + uint32_t(i * 4), offset + uint64_t(i), 4);
    handshake(core, PipeId::S, PipeId::V);
    const int limit_size = type_size(k.type);
    if (src.type == Type::I32)
        for (int r = 0; r < src.rows; ++r)
            scalar_store(core, limits + uint32_t(r * 4), scalar_load(core, element_address(k, r), limit_size),
                         4);
    else
        core.vector_counted(rounding(Round::Rint), src.type, rows, VectorOperand(limits).of(src.type),
                            VectorOperand(k.address).of(limit_size == 4 ? Type::I32 : Type::I16));
    count_off(core);
    const int repeats = static_cast<int>(ceil_div(cols, per_repeat(src.type)));
    auto bits = [&](int row) { return VectorOperand(bits_at + uint32_t(row * tmp.cols)); };
    for (int r = 0; r < rows; ++r) {
        handshake(core, PipeId::V, PipeId::S);
        const uint64_t limit = scalar_load(core, limits + uint32_t(r * size), size);
        handshake(core, PipeId::S, PipeId::V);
        core.vector({Instr::VCMPVS, limit, mode == kEqual ? Compare::EQ : Compare::GT}, src.type, repeats,
                    cols, bits(r), row_of(src, r));
    }
    barrier(core);
    under_count(core, cols, [&] {
        for (int r = 0; r < rows; ++r) {
            counted(core, Instr::VREDUCEV2, Type::U32, cols, row_of(dst, r),
                    VectorOperand(positions + uint32_t(int64_t(r) * src.cols * 4)),
                    bits(r).of(Type::U8).spanning((cols + 7) / 8));
            scalar_store(core, element_address(counts, r), uint64_t(kept_count(core)), 4);
        }
    });
}

// --- TGATHERB: blocks of 32 bytes, each from the byte offset that stands for it

struct BlockGather {
    const TileRef &dst, &src, &offsets;
    BlockGather(const Core &core, const Operands &operands)
        : dst(operands[0].tile), src(operands[1].tile), offsets(operands[2].tile) {
        if (type_size(dst.type) > 4) refuse_type(core, dst.type);
        if (type_size(offsets.type) != 4) core.unsupported("TGATHERB by %s offsets", type_name(offsets.type));
        need_plain_rows(core, dst, "result");
        need_plain_rows(core, offsets, "offset tile");
        if (!is_empty(dst)) need_room(core, offsets, "offset tile", dst.valid_rows, blocks());
    }
    int64_t blocks() const { return ceil_div(dst.valid_cols, per_block(dst.type)); }
};

// --- TSCATTER: the rest of the tile is cleared

void check_scatter(const Core &core, const TileRef &dst, const TileRef &src) {
    if (type_size(dst.type) > 4 && !core.register_based()) refuse_type(core, dst.type);
    same_type(core, dst, src);
    need_plain_rows(core, dst, "result");
    need_plain_rows(core, src, "source");
}

void clear_result(Core &core, const TileRef &dst) {
    const int size = type_size(dst.type);
    const int64_t units = int64_t(dst.rows) * dst.cols * size / (size >= 4 ? 4 : 2);
    under_count(core, units, [&] {
        counted(core, Instr::MOVEV, size >= 4 ? Type::U32 : Type::U16, units, VectorOperand(dst.address));
    });
    handshake(core, PipeId::V, PipeId::S);
}

void scatter_by_index(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &idx = operands[2].tile;
    check_scatter(core, dst, src);
    const int index_size = type_size(idx.type), size = type_size(dst.type);
    if (index_size != (size >= 4 ? 4 : 2))
        core.unsupported("TSCATTER of %s tiles by %s indices", type_name(dst.type), type_name(idx.type));
    need_plain_rows(core, idx, "index tile");
    if (is_empty(idx)) return;
    need_room(core, src, "source", idx.valid_rows, idx.valid_cols);
    const int64_t room = int64_t(dst.rows) * dst.cols;
    clear_result(core, dst);
    for (int r = 0; r < idx.valid_rows; ++r)
        for (int c = 0; c < idx.valid_cols; ++c) {
            const uint64_t bits = scalar_load(core, address_of(idx, r, c), index_size);
            const int64_t place = unsigned_of(idx.type) == idx.type ? int64_t(bits)
                                  : index_size == 4                 ? int64_t(int32_t(bits))
                                                                    : int64_t(int16_t(bits));
            if (place < 0 || place >= room)
                core.kernel_error("TSCATTER: index %lld at (%d, %d) lies outside the result's %lld elements",
                                  (long long)place, r, c, (long long)room);
            copy_element(core, element_address(dst, place), address_of(src, r, c), size);
        }
    handshake(core, PipeId::S, PipeId::V);
}

void scatter_by_pattern(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    const Pattern pattern(core, operands[2].option);
    const bool whole_rows = operands[3].option == 1;
    check_scatter(core, dst, src);
    if (is_empty(src)) return;
    const int rows = src.valid_rows, cols = src.valid_cols, size = type_size(dst.type);
    auto row = [&](int r) { return whole_rows ? pattern.position(r) : r; };
    auto col = [&](int c) { return whole_rows ? c : pattern.position(c); };
    need_room(core, dst, "result", row(rows - 1) + 1, col(cols - 1) + 1);
    if (pattern.group == 1 && !core.register_based()) return run(core, Op::TMOV, operands[0], operands[1]);
    if (pattern.group == 1) // every element stays where it is: a copy
        return copy_lines(core, dst.type, {dst.address, int64_t(dst.cols) * size},
                          {src.address, int64_t(src.cols) * size}, rows, int64_t(cols) * size);
    clear_result(core, dst);
    if (whole_rows)
        under_count(core, cols, [&] {
            for (int r = 0; r < rows; ++r)
                counted(core, Instr::VCOPY, dst.type, cols, row_of(dst, row(r)), row_of(src, r));
        });
    else
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c)
                copy_element(core, address_of(dst, r, col(c)), address_of(src, r, c), size);
    handshake(core, PipeId::S, PipeId::V);
}

} // namespace

TILE_OP_BODY(TGATHER) {
    if (operands[2].kind == Operand::Option)
        gather_by_pattern(core, operands);
    else
        (operands.count == 4 ? gather_by_index : gather_by_comparison)(core, operands);
}

TILE_OP_BODY(TGATHERB) {
    const BlockGather t(core, operands);
    const TileRef &dst = t.dst;
    if (is_empty(dst)) return;
    const Type type = type_size(dst.type) == 1 ? Type::U16 : dst.type;
    const int lanes = per_repeat(dst.type), full = dst.valid_cols / lanes, rows = dst.valid_rows;
    // eight offsets of each repeat follow those of the one before
    auto take = [&](int repeats, int width, VectorOperand to, int64_t row, int64_t first) {
        core.also(kReads, t.src.space, t.src.type, whole_of(t.src), false);
        core.vector({Instr::VGATHERB, t.src.address}, type, repeats, int64_t(repeats) * width, to,
                    VectorOperand(address_of(t.offsets, row, first), 1).of(Type::U32).pieces(32, 32));
    };
    for (int r = 0; full > 0 && r < rows; ++r) take(full, lanes, row_of(dst, r), r, 0);
    if (int rest = dst.valid_cols % lanes)
        take(rows, rest, rows_of(dst, 0, int64_t(full) * lanes), 0, int64_t(full) * 8);
}

// With registers a store is as long as the row, and rows have offsets of their own.
FUNCTION_OP_BODY(TGATHERB) {
    const BlockGather t(core, operands);
    for (int r = 0; r < t.dst.valid_rows; ++r) {
        core.also(kReads, t.src.space, t.src.type, whole_of(t.src), false);
        core.vector_counted(
            {Instr::VGATHERB, t.src.address, 1}, t.dst.type, t.dst.valid_cols, row_of(t.dst, r),
            VectorOperand(address_of(t.offsets, r), 1).of(Type::U32).spanning(t.blocks() * 4));
    }
}

TILE_OP_BODY(TSCATTER) {
    (operands[2].kind == Operand::Option ? scatter_by_pattern : scatter_by_index)(core, operands);
}

} // namespace insight_trace::engine
