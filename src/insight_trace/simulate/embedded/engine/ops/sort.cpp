// Sorting: groups of 32 values into (value, index) pairs, and merging sorted lists of pairs.
#include <cstring>
#include <vector>

#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

constexpr int kGroup = 32;    // values that one repeat sorts
constexpr int kPairBytes = 8; // value in the first bytes, index in the last four

// Larger keys come first. A negative NaN, which fills up short groups, is the smallest of all.
int64_t sort_key(Type type, const uint8_t *value) {
    uint32_t bits;
    if (type == Type::F32) {
        std::memcpy(&bits, value, 4);
    } else {
        uint16_t narrow;
        std::memcpy(&narrow, value, 2);
        bits = uint32_t(narrow) << 16;
    }
    if (bits == 0x80000000u) bits = 0; // minus zero equals zero
    int64_t magnitude = bits & 0x7fffffffu;
    return bits >> 31 ? -magnitude : magnitude;
}

struct Pair {
    uint8_t bytes[kPairBytes];
};

void check_pairs(const Core &core, const char *name, const TileRef &tile, const TileRef &like) {
    allow_types(core, name, tile.type, {Type::F32, Type::F16});
    same_type(core, name, like, tile);
    need_plain_rows(core, name, tile, "tile");
}

// `cols` values of a row, in groups; the last group is filled up when it is short.
void sort_row(const TileRef &src, const uint8_t *values, const uint32_t *indices, int cols, uint8_t *out) {
    int size = type_size(src.type);
    uint32_t lowest = src.type == Type::F32 ? 0xffc00000u : 0xfe00u;
    for (int first = 0; first < cols; first += kGroup) {
        Pair pairs[kGroup] = {};
        for (int i = 0; i < kGroup; ++i) {
            const void *value = first + i < cols ? static_cast<const void *>(values + (first + i) * size)
                                                 : static_cast<const void *>(&lowest);
            std::memcpy(pairs[i].bytes, value, size_t(size));
            std::memcpy(pairs[i].bytes + 4, indices + first + i, 4);
        }
        std::stable_sort(pairs, pairs + kGroup, [&](const Pair &a, const Pair &b) {
            return sort_key(src.type, a.bytes) > sort_key(src.type, b.bytes);
        });
        std::memcpy(out + first * kPairBytes, pairs, sizeof pairs);
    }
}

} // namespace

TILE_OP_BODY(TSORT32) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &idx = operands[2].tile;
    const TileRef *tmp = operands.count > 3 ? &operands[3].tile : nullptr;
    check_pairs(core, "TSORT32", dst, dst);
    check_pairs(core, "TSORT32", src, dst);
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
    if (core.computes) {
        uint8_t *to = bytes_of(core, dst, rows, int64_t(groups) * kGroup * kPairBytes / size);
        const uint8_t *from = bytes_of(core, src, rows, cols);
        for (int r = 0; r < rows; ++r) {
            uint64_t line = idx.address + uint64_t(r * index_step * 4);
            const auto *indices = core.local_as<uint32_t>(idx.space, line, uint64_t(groups) * kGroup);
            std::vector<uint8_t> row(from + int64_t(r) * src.cols * size,
                                     from + (int64_t(r) * src.cols + cols) * size);
            std::vector<uint32_t> kept(indices, indices + groups * kGroup);
            sort_row(src, row.data(), kept.data(), cols, to + int64_t(r) * dst.cols * size);
        }
    }
    auto sort = [&](uint32_t out, uint32_t values, uint32_t indices, int first, int count) {
        core.vector(Instr::VBS32, src.type, count, int64_t(count) * kGroup,
                    VectorOperand(out + uint32_t(first * kGroup * kPairBytes)),
                    VectorOperand(values + uint32_t(first * kGroup * size)),
                    VectorOperand(indices + uint32_t(first * kGroup * 4)));
        core.barrier(PipeId::V);
    };
    auto fill_up = [&](uint32_t group) { // the missing values of a short group
        core.barrier(PipeId::V);
        bit_mode(core);
        mask_value(core, ~((1ull << rest) - 1) & 0xffffffffull);
        core.vector(Instr::MOVEV, src.type, 1, kGroup - rest,
                    VectorOperand(group).masked(~((1ull << rest) - 1) & 0xffffffffull));
        core.barrier(PipeId::V);
    };
    for (int r = 0; r < rows; ++r) {
        uint32_t out = element_address(dst, int64_t(r) * dst.cols);
        uint32_t values = element_address(src, int64_t(r) * src.cols);
        uint32_t indices = idx.address + uint32_t(r * index_step * 4);
        if (!rest) {
            for (int first = 0; first < groups; first += kMostRepeats)
                sort(out, values, indices, first, std::min(kMostRepeats, groups - first));
            continue;
        }
        int64_t bytes = int64_t(src.valid_cols) * size;
        if (src.valid_cols <= kGroup * kMostRepeats) { // the whole row fits the scratch tile
            core.move(Instr::MOV_UB_TO_UB, src.type, tmp->address, values, 1,
                      ceil_div(bytes, kBlockBytes) * kBlockBytes);
            fill_up(tmp->address + uint32_t((groups - 1) * kGroup * size));
            sort(out, tmp->address, indices, 0, groups);
        } else { // only the last group does
            for (int first = 0; first < groups - 1; first += kMostRepeats)
                sort(out, values, indices, first, std::min(kMostRepeats, groups - 1 - first));
            core.move(Instr::MOV_UB_TO_UB, src.type, tmp->address,
                      values + uint32_t((groups - 1) * kGroup * size), 1,
                      ceil_div(int64_t(rest) * size, kBlockBytes) * kBlockBytes);
            fill_up(tmp->address);
            sort(out + uint32_t((groups - 1) * kGroup * kPairBytes), tmp->address,
                 indices + uint32_t((groups - 1) * kGroup * 4), 0, 1);
        }
        mask_all(core);
    }
}

namespace {

struct List {
    const Pair *pairs;
    int64_t count;
    int64_t taken = 0;
};

// Merges sorted lists; of equal values the earlier list's comes first. With `suspend` the merge ends as soon
// as one list has been used up.
std::vector<Pair> merge(Type type, std::vector<List> &lists, bool suspend) {
    std::vector<Pair> merged;
    while (true) {
        List *best = nullptr;
        for (List &list : lists) {
            if (list.taken == list.count) {
                if (suspend) return merged;
                continue;
            }
            if (!best ||
                sort_key(type, list.pairs[list.taken].bytes) > sort_key(type, best->pairs[best->taken].bytes))
                best = &list;
        }
        if (!best) return merged;
        merged.push_back(best->pairs[best->taken++]);
    }
}

// The merge unit's time goes with the data: a repeat is what four lists of 32 pairs are.
int merge_repeats(int64_t pairs) {
    return static_cast<int>(std::max<int64_t>(1, ceil_div(pairs, 4 * kGroup)));
}

// TMRGSORT(dst, src, block_length): every four neighbouring sorted blocks into one.
void merge_blocks(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    int64_t block = scalar_as<int64_t>(operands[2]);
    check_pairs(core, "TMRGSORT", dst, dst);
    check_pairs(core, "TMRGSORT", src, dst);
    int size = type_size(src.type);
    if (block <= 0 || block * size % kPairBytes)
        core.kernel_error("TMRGSORT: a block length of %lld", (long long)block);
    int64_t pairs = block * size / kPairBytes, repeats = src.valid_cols / (block * 4);
    if (repeats < 1 || repeats > kMostRepeats)
        core.kernel_error("TMRGSORT: %d columns are not 1 to 255 times four blocks of %lld", src.valid_cols,
                          (long long)block);
    int64_t total = pairs * 4 * repeats;
    if (core.computes) {
        const Pair *from = core.local_as<Pair>(src.space, src.address, uint64_t(total));
        std::vector<Pair> out;
        for (int64_t i = 0; i < repeats; ++i) {
            std::vector<List> lists;
            for (int64_t k = 0; k < 4; ++k) lists.push_back({from + (i * 4 + k) * pairs, pairs});
            std::vector<Pair> part = merge(src.type, lists, false);
            out.insert(out.end(), part.begin(), part.end());
        }
        std::memcpy(core.local(dst.space, dst.address, uint64_t(total * kPairBytes)), out.data(),
                    size_t(total * kPairBytes));
    }
    core.vector(Instr::VMS4v2, src.type, merge_repeats(total), total * kPairBytes / size,
                VectorOperand(dst.address).spanning(total * kPairBytes),
                VectorOperand(src.address).spanning(total * kPairBytes));
}

// TMRGSORT<…, exhausted>(dst, executed, tmp, src0, src1[, src2[, src3]]): whole lists into one.
// operands: dst, tmp, address of the executed-number list in the kernel, exhausted, the lists
void merge_lists(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &tmp = operands[1].tile;
    auto *executed = reinterpret_cast<uint16_t *>(operands[2].option);
    bool suspend = operands[3].option != 0;
    check_pairs(core, "TMRGSORT", dst, dst);
    check_pairs(core, "TMRGSORT", tmp, dst);
    int size = type_size(dst.type);
    std::vector<List> lists;
    int64_t total = 0;
    for (uint32_t i = 4; i < operands.count; ++i) {
        const TileRef &src = operands[i].tile;
        check_pairs(core, "TMRGSORT", src, dst);
        int64_t count = int64_t(src.valid_cols) * size / kPairBytes;
        lists.push_back({core.local_as<Pair>(src.space, src.address, uint64_t(count)), count});
        total += count;
    }
    if (core.computes) {
        std::vector<Pair> merged = merge(dst.type, lists, suspend);
        // merged in tmp, then as much as the result holds is copied
        size_t bytes = merged.size() * kPairBytes;
        std::memcpy(core.local(tmp.space, tmp.address, bytes), merged.data(), bytes);
        size_t kept = size_t(dst.valid_cols) * size_t(size);
        std::memmove(core.local(dst.space, dst.address, kept), core.local(tmp.space, tmp.address, kept),
                     kept);
    }
    auto list = [&](uint32_t i) {
        const TileRef &src = operands[i].tile;
        return VectorOperand(src.address).spanning(int64_t(src.valid_cols) * size);
    };
    for (uint32_t i = 6; i < operands.count; ++i)
        core.also(kReads, operands[i].tile.space, dst.type, valid_of(operands[i].tile));
    core.vector(Instr::VMS4v2, dst.type, merge_repeats(total), total * kPairBytes / size,
                VectorOperand(tmp.address).spanning(total * kPairBytes), list(4), list(5));
    if (suspend) {
        handshake(core, PipeId::V, PipeId::S);
        core.scalar(Instr::MOV_XD_SPR, 0, 1000);
        if (executed)
            for (size_t i = 0; i < 4; ++i)
                executed[i] = i < lists.size()
                                  ? static_cast<uint16_t>(core.computes ? lists[i].taken : lists[i].count)
                                  : uint16_t(0);
    }
    core.barrier(PipeId::V);
    core.move(Instr::MOV_UB_TO_UB, dst.type, dst.address, tmp.address, 1,
              ceil_div(int64_t(dst.valid_cols) * size, kBlockBytes) * kBlockBytes);
}

} // namespace

TILE_OP_BODY(TMRGSORT) {
    if (operands.count == 3)
        merge_blocks(core, operands);
    else
        merge_lists(core, operands);
}

} // namespace insight_trace::engine
