// Gather inside the vector core's memory: by element index, by mask pattern, by comparison, by block.
#include <cstring>
#include <vector>

#include "ops/patterns.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

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
    if (core.computes) {
        // the hardware adds index * size to the source's address, whatever lies there
        int64_t room = (int64_t(core.space_size(src.space)) - src.address) / size;
        uint8_t *to = bytes_of(core, dst, rows, cols);
        const uint8_t *from = core.local(src.space, src.address, 0);
        for (int r = 0; r < rows; ++r) {
            // indices are read before the row is written: the result may lie on them
            std::vector<int64_t> line;
            for (int c = 0; c < cols; ++c)
                line.push_back(narrow ? int64_t(View<uint16_t>(core, idx, rows, cols).at(r, c))
                                      : int64_t(View<int32_t>(core, idx, rows, cols).at(r, c)));
            for (int c = 0; c < cols; ++c) {
                int64_t i = line[size_t(c)];
                if (i < 0 || i >= room)
                    core.kernel_error("TGATHER: index %lld at (%d, %d) lies outside the memory", (long long)i,
                                      r, c);
                std::memmove(to + (int64_t(r) * dst.cols + c) * size, from + i * size, size_t(size));
            }
        }
    }
    count_mode(core);
    for (int r = 0; r < rows; ++r) {
        // byte offsets go where the results will stand, or into tmp when those are narrower
        uint32_t out = element_address(dst, int64_t(r) * dst.cols);
        uint32_t offsets = size == 4 ? out : tmp.address + uint32_t(int64_t(r) * dst.cols * 4);
        mask_value(core, uint64_t(cols));
        counted(core, Instr::VMULS, Type::I32, cols, VectorOperand(offsets),
                VectorOperand(element_address(idx, int64_t(r) * idx.cols)));
        core.barrier(PipeId::V);
        core.also(kReads, src.space, src.type, whole_of(src), false);
        counted(core, Instr::VGATHER, dst.type, cols, VectorOperand(out),
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
    uint8_t *to = core.local(dst.space, dst.address, uint64_t(capacity * size));
    const uint8_t *from = bytes_of(core, src, src.valid_rows, src.valid_cols);
    count_elements(core, src.valid_cols);
    if (rows_picked) {
        int rows = static_cast<int>(pattern.picked_of(src.valid_rows));
        if (rows > dst.rows || src.valid_cols > dst.cols)
            core.kernel_error("TGATHER: %d rows of %d do not fit a result of %d x %d", rows, src.valid_cols,
                              dst.rows, dst.cols);
        for (int r = 0; r < rows; ++r) {
            int64_t source = pattern.position(r);
            if (core.computes)
                std::memmove(to + int64_t(r) * dst.cols * size, from + source * src.cols * size,
                             size_t(src.valid_cols * size));
            counted(core, Instr::VCOPY, dst.type, src.valid_cols,
                    VectorOperand(element_address(dst, int64_t(r) * dst.cols)),
                    VectorOperand(element_address(src, source * src.cols)));
        }
    } else {
        int64_t picked = pattern.picked_of(src.valid_cols);
        if (picked * src.valid_rows > capacity)
            core.kernel_error("TGATHER: %lld elements do not fit a result of %d x %d",
                              (long long)(picked * src.valid_rows), dst.rows, dst.cols);
        if (core.computes)
            for (int r = 0; r < src.valid_rows; ++r)
                for (int64_t i = 0; i < picked; ++i, to += size)
                    std::memmove(to, from + (int64_t(r) * src.cols + pattern.position(i)) * size,
                                 size_t(size));
        int repeats = src.valid_rows * static_cast<int>(ceil_div(src.valid_cols, per_repeat(src.type)));
        core.also(kReads, src.space, src.type, valid_of(src));
        core.vector(
            Instr::VREDUCEV2, src.type, repeats, int64_t(src.valid_rows) * src.valid_cols,
            VectorOperand(dst.address).spanning(picked * src.valid_rows * size),
            VectorOperand(src.address, static_cast<uint16_t>(src.cols * size / kBlockBytes)).elsewhere());
    }
    count_off(core);
}

// TGATHER<…, cmp>(dst, src, k, counts, tmp, offset): positions of the elements that compare true with their
// row's k, and how many there are.
void gather_by_comparison(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &k = operands[2].tile,
                  &counts = operands[3].tile, &tmp = operands[4].tile;
    int64_t offset = scalar_as<int64_t>(operands[5]);
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
    if (core.computes)
        with_type(src.type, [&](auto tag) {
            using T = decltype(tag);
            View<T> from(core, src, rows, cols);
            View<int32_t> to(core, dst), many(core, counts);
            for (int r = 0; r < rows; ++r) {
                T limit;
                if (type_size(k.type) == 4)
                    limit = T(View<int32_t>(core, k).data[r]);
                else
                    limit = T(View<int16_t>(core, k).data[r]);
                int found = 0;
                for (int c = 0; c < cols; ++c) {
                    T value = from.data[int64_t(r) * src.cols + c];
                    if (!(mode == kEqual ? value == limit : value > limit)) continue;
                    if (found == dst.cols)
                        core.kernel_error("TGATHER: row %d has more hits than the result's %d columns", r,
                                          dst.cols);
                    to.data[int64_t(r) * dst.cols + found++] =
                        static_cast<int32_t>(offset + int64_t(r) * src.cols + c);
                }
                many.data[r] = found;
            }
        });
    // positions are written one by one, then picked by the comparison's bits
    uint32_t positions = tmp.address + uint32_t(tmp.rows * tmp.cols);
    uint32_t limits = positions + uint32_t(src.rows * src.cols * 4);
    for (int64_t i = 0; i < int64_t(src.rows) * src.cols; ++i)
        scalar_store(core, positions + uint32_t(i * 4));
    handshake(core, PipeId::S, PipeId::V);
    if (src.type == Type::I32)
        for (int r = 0; r < src.rows; ++r) {
            scalar_load(core, element_address(k, r));
            scalar_store(core, limits + uint32_t(r * 4));
        }
    else
        core.vector(Instr::VCONV, src.type,
                    static_cast<int>(ceil_div(rows, kRepeatBytes / type_size(k.type))), rows,
                    VectorOperand(limits).spanning(rows * size),
                    VectorOperand(k.address).of(k.type).spanning(rows * type_size(k.type)));
    count_off(core);
    int repeats = static_cast<int>(ceil_div(cols, per_repeat(src.type)));
    for (int r = 0; r < rows; ++r) {
        handshake(core, PipeId::V, PipeId::S);
        scalar_load(core, limits + uint32_t(r * size));
        handshake(core, PipeId::S, PipeId::V);
        core.vector(Instr::VCMPVS, src.type, repeats, cols,
                    VectorOperand(tmp.address + uint32_t(r * tmp.cols)),
                    VectorOperand(element_address(src, int64_t(r) * src.cols)));
    }
    core.barrier(PipeId::V);
    count_elements(core, cols);
    for (int r = 0; r < rows; ++r) {
        counted(core, Instr::VREDUCEV2, Type::U32, cols,
                VectorOperand(element_address(dst, int64_t(r) * dst.cols)),
                VectorOperand(positions + uint32_t(int64_t(r) * src.cols * 4)),
                VectorOperand(tmp.address + uint32_t(r * tmp.cols)).of(Type::U8).spanning((cols + 7) / 8));
        core.scalar(Instr::MOV_XD_SPR, 0, 1000);
        scalar_store(core, element_address(counts, r));
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

// Blocks of 32 bytes, each from the byte offset that stands for it.
TILE_OP_BODY(TGATHERB) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &offsets = operands[2].tile;
    int size = type_size(dst.type), block = per_block(dst.type);
    if (size > 4) core.unsupported("TGATHERB of %s tiles", type_name(dst.type));
    if (type_size(offsets.type) != 4) core.unsupported("TGATHERB by %s offsets", type_name(offsets.type));
    need_plain_rows(core, "TGATHERB", dst, "result");
    need_plain_rows(core, "TGATHERB", offsets, "offset tile");
    if (is_empty(dst)) return;
    int rows = dst.valid_rows, blocks = static_cast<int>(ceil_div(dst.valid_cols, block));
    if (offsets.rows < rows || offsets.cols < blocks)
        core.kernel_error("TGATHERB: %d x %d offsets for %d rows of %d blocks", offsets.rows, offsets.cols,
                          rows, blocks);
    if (core.computes) {
        View<uint32_t> offset(core, offsets, rows, blocks);
        uint8_t *to = bytes_of(core, dst, rows, dst.valid_cols);
        for (int r = 0; r < rows; ++r)
            for (int b = 0; b < blocks; ++b) {
                uint64_t from = uint64_t(src.address) + offset.data[int64_t(r) * offsets.cols + b];
                std::memmove(to + int64_t(r) * dst.cols * size + b * kBlockBytes,
                             core.local(src.space, from, kBlockBytes),
                             size_t(std::min(kBlockBytes, (dst.valid_cols - b * block) * size)));
            }
    }
    Type type = size == 1 ? Type::U16 : dst.type;
    int lanes = per_repeat(dst.type), full = dst.valid_cols / lanes;
    for (int r = 0; full > 0 && r < rows; ++r) {
        core.also(kReads, src.space, src.type, whole_of(src), false);
        core.vector(Instr::VGATHERB, type, full, int64_t(full) * lanes,
                    VectorOperand(element_address(dst, int64_t(r) * dst.cols)),
                    VectorOperand(element_address(offsets, int64_t(r) * offsets.cols), 1)
                        .of(Type::U32)
                        .pieces(32, 32));
    }
    if (int rest = dst.valid_cols % lanes) {
        core.also(kReads, src.space, src.type, whole_of(src), false);
        core.vector(Instr::VGATHERB, type, rows, int64_t(rows) * rest,
                    VectorOperand(element_address(dst, int64_t(full) * lanes),
                                  static_cast<uint16_t>(dst.cols / block)),
                    VectorOperand(element_address(offsets, int64_t(full) * 8), 1)
                        .of(Type::U32)
                        .pieces(uint32_t(4 * ceil_div(rest, block)), uint32_t(offsets.cols * 4)));
    }
}

} // namespace insight_trace::engine
