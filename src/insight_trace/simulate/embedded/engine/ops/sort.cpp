// Sorting: groups of 32 values into (value, index) pairs, and merging sorted lists of pairs.
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

constexpr int kGroup = 32;    // values that one repeat sorts
constexpr int kPairBytes = 8; // value in the first bytes, index in the last four

void check_pairs(const Core &core, const TileRef &tile, const TileRef &like) {
    allow_types(core, tile.type, {Type::F32, Type::F16});
    same_type(core, like, tile);
    need_plain_rows(core, tile, "tile");
}

// TMRGSORT(dst, src, block_length): every four neighbouring sorted blocks into one.
void merge_blocks(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    const auto block = static_cast<int64_t>(number_operand(operands[2]));
    check_pairs(core, dst, dst);
    check_pairs(core, src, dst);
    int size = type_size(src.type);
    if (block <= 0 || block * size % kPairBytes)
        core.kernel_error("TMRGSORT: a block length of %lld", (long long)block);
    int64_t pairs = block * size / kPairBytes, repeats = src.valid_cols / (block * 4);
    if (repeats < 1 || repeats > kMostRepeats)
        core.kernel_error("TMRGSORT: %d columns are not 1 to 255 times four blocks of %lld", src.valid_cols,
                          (long long)block);
    int64_t total = pairs * 4 * repeats;
    const int64_t lengths[] = {pairs, pairs, pairs, pairs};
    uint64_t lists[4];
    for (int k = 0; k < 4; ++k) lists[k] = src.address + uint64_t(k * pairs * kPairBytes);
    merge_sorted(core, src.type, dst.address, lists, lengths, repeats, 15, false);
    core.vector(issued_only(Instr::VMS4v2), src.type, merge_repeats(total), total * kPairBytes / size,
                VectorOperand(dst.address).spanning(total * kPairBytes),
                VectorOperand(src.address).spanning(total * kPairBytes));
}

// TMRGSORT<…, exhausted>(dst, executed, tmp, src0, src1[, src2[, src3]]): whole lists into one.
// operands: dst, tmp, address of the executed-number list in the kernel, exhausted, the lists
void merge_lists(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &tmp = operands[1].tile;
    auto *taken_to = reinterpret_cast<uint16_t *>(operands[2].option);
    bool suspend = operands[3].option != 0;
    check_pairs(core, dst, dst);
    check_pairs(core, tmp, dst);
    int size = type_size(dst.type);
    uint64_t lists[4] = {};
    int64_t lengths[4] = {}, total = 0;
    const uint32_t count = std::min<uint32_t>(operands.count - 4, 4);
    for (uint32_t i = 0; i < count; ++i) {
        const TileRef &src = operands[4 + i].tile;
        check_pairs(core, src, dst);
        lists[i] = src.address;
        lengths[i] = int64_t(src.valid_cols) * size / kPairBytes;
        total += lengths[i];
    }
    const MergeResult merged =
        merge_sorted(core, dst.type, tmp.address, lists, lengths, 1, (1 << count) - 1, suspend);
    auto list = [&](uint32_t i) {
        const TileRef &src = operands[i].tile;
        return VectorOperand(src.address).spanning(int64_t(src.valid_cols) * size);
    };
    for (uint32_t i = 6; i < operands.count; ++i)
        core.also(kReads, operands[i].tile.space, dst.type, valid_of(operands[i].tile));
    core.vector(issued_only(Instr::VMS4v2), dst.type, merge_repeats(total), total * kPairBytes / size,
                VectorOperand(tmp.address).spanning(total * kPairBytes), list(4), list(5));
    if (suspend) {
        handshake(core, PipeId::V, PipeId::S);
        core.scalar(Instr::MOV_XD_SPR, 0, 1000);
        if (taken_to)
            for (size_t i = 0; i < 4; ++i) taken_to[i] = static_cast<uint16_t>(merged.taken[i]);
    }
    barrier(core);
    // as much as the result holds
    const int64_t bytes = int64_t(dst.valid_cols) * size;
    copy_lines(core, dst.type, {dst.address}, {tmp.address}, 1, bytes);
}

} // namespace

TILE_OP_BODY(TSORT32) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &idx = operands[2].tile;
    const TileRef *tmp = operands.count > 3 ? &operands[3].tile : nullptr;
    check_pairs(core, dst, dst);
    check_pairs(core, src, dst);
    if (idx.type != Type::U32 && idx.type != Type::I32)
        core.unsupported("TSORT32 with %s indices", type_name(idx.type));
    if (dst.valid_rows <= 0 || src.valid_cols <= 0) return;
    int rows = dst.valid_rows, size = type_size(src.type);
    int rest = tmp ? src.valid_cols % kGroup : 0;
    int groups = src.valid_cols / kGroup + (rest ? 1 : 0);
    int cols = rest ? src.valid_cols : groups * kGroup; // without tmp a short group is left out
    if (!groups) return;
    const int64_t line_bytes = int64_t(dst.cols) * size, written = int64_t(groups) * kGroup * kPairBytes;
    if (src.rows < rows || line_bytes < int64_t(cols) * kPairBytes)
        core.kernel_error("TSORT32: a result of %d x %d cannot hold the pairs of %d x %d", dst.rows, dst.cols,
                          rows, src.valid_cols);
    if (line_bytes < written) // row after row, so that the valid pairs stay
        core.remark("TSORT32 writes whole groups of 32 pairs: %lld bytes past the end of every row",
                    (long long)(written - line_bytes));
    int64_t index_step = idx.valid_rows == 1 ? 0 : idx.cols;
    // with functions a row lies in registers on the way
    const uint32_t held = core.register_based() ? kRegisterFile : tmp ? tmp->address : 0;
    auto sort = [&](uint32_t out, uint32_t values, uint32_t indices, int first, int count) {
        core.vector(Instr::VBS32, src.type, count, int64_t(count) * kGroup,
                    VectorOperand(out + uint32_t(first * kGroup * kPairBytes)),
                    VectorOperand(values + uint32_t(first * kGroup * size)),
                    VectorOperand(indices + uint32_t(first * kGroup * 4)));
        barrier(core);
    };
    auto fill_up = [&](uint32_t group) { // the missing values of a short group
        const uint64_t missing = ~((1ull << rest) - 1) & 0xffffffffull;
        barrier(core);
        bit_mode(core);
        mask_value(core, missing);
        core.vector({Instr::MOVEV, src.type == Type::F32 ? 0xffc00000u : 0xfe00u}, src.type, 1, kGroup - rest,
                    VectorOperand(group).masked(missing));
        barrier(core);
    };
    for (int r = 0; r < rows; ++r) {
        uint32_t out = address_of(dst, r);
        uint32_t values = address_of(src, r);
        uint32_t indices = idx.address + uint32_t(r * index_step * 4);
        if (!rest) {
            portions(groups, kMostRepeats,
                     [&](int first, int count) { sort(out, values, indices, first, count); });
            continue;
        }
        int64_t bytes = int64_t(src.valid_cols) * size;
        if (src.valid_cols <= kGroup * kMostRepeats) { // the whole row fits the scratch tile
            copy_lines(core, src.type, {held}, {values}, 1, bytes);
            fill_up(held + uint32_t((groups - 1) * kGroup * size));
            sort(out, held, indices, 0, groups);
        } else { // only the last group does
            portions(groups - 1, kMostRepeats,
                     [&](int first, int count) { sort(out, values, indices, first, count); });
            copy_lines(core, src.type, {held}, {values + uint32_t((groups - 1) * kGroup * size)}, 1,
                       int64_t(rest) * size);
            fill_up(held);
            sort(out + uint32_t((groups - 1) * kGroup * kPairBytes), held,
                 indices + uint32_t((groups - 1) * kGroup * 4), 0, 1);
        }
        mask_all(core);
    }
}

TILE_OP_BODY(TMRGSORT) { (operands.count == 3 ? merge_blocks : merge_lists)(core, operands); }

} // namespace insight_trace::engine
