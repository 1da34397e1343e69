// Transposition of a tile.
#include <vector>

#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

// Address registers of the transposing instruction: eight addresses each.
void set_address_registers(Core &core, int count, uint32_t address) {
    if (core.silent || core.register_based()) return; // addresses are operands there
    int64_t cost = core.parameters.register_write;
    for (int i = 0; i < count; ++i) {
        Record r = core.record(Instr::MOVEVA, PipeId::V, Form::Plain);
        r.a = address;
        core.clock.issue(PipeId::V, r, {cost, cost, 0, Stall::None}, core.at);
    }
}

// 16 rows of one block each (32 rows of bytes) become columns; `repeat` such boxes per instruction.
void transpose_boxes(Core &core, const TileRef &src, uint32_t from, uint32_t to, int64_t to_pitch, int repeat,
                     uint16_t to_stride, uint16_t from_stride) {
    bool bytes = type_size(src.type) == 1;
    const int64_t size = type_size(src.type), box_rows = bytes ? 32 : 16;
    Area source = lines_at(from, repeat, from_stride * kBlockBytes, kBlockBytes);
    source.walk[0].count[1] = static_cast<uint32_t>(box_rows);
    source.walk[0].step[1] = src.cols * size;
    Area result = lines_at(to, repeat, to_stride * kBlockBytes, box_rows * size);
    result.walk[0].count[1] = static_cast<uint32_t>(per_block(src.type));
    result.walk[0].step[1] = to_pitch * size;
    set_address_registers(core, bytes ? 8 : 4, from);
    if (repeat == 1) to_stride = from_stride = 0;
    int64_t elements = int64_t(repeat) * 16 * per_block(src.type);
    for (int i = 0; i < (bytes ? 4 : 1); ++i) {
        core.also(kWrites, Space::UB, src.type, result);
        core.also(kReads, Space::UB, src.type, source);
        core.vector(Instr::VNCHWCONV, src.type, repeat, bytes ? elements / 2 : elements,
                    VectorOperand(to, to_stride).elsewhere(), VectorOperand(from, from_stride).elsewhere());
    }
}

// Elements in nested loops: extent, step in the result, step in the source, from the outermost on.
struct Loop {
    int64_t extent, to, from;
};
template <class T> void reorder(T *to, const T *from, const Loop *loop, const Loop *end) {
    for (int64_t i = 0; i < loop->extent; ++i)
        if (loop + 1 == end)
            to[i * loop->to] = from[i * loop->from];
        else
            reorder(to + i * loop->to, from + i * loop->from, loop + 1, end);
}

// Feature maps and filters (pto/common/forms/convolution.hpp): where to begin on both sides, then the loops.
void reorder(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    std::vector<Loop> loops;
    for (uint32_t i = 5; i + 2 < operands.count; i += 3)
        loops.push_back({operands[i].option, operands[i + 1].option, operands[i + 2].option});
    int64_t count = 1, last_to = operands[3].option, last_from = operands[4].option;
    for (const Loop &loop : loops) {
        count *= loop.extent;
        last_to += (loop.extent - 1) * loop.to;
        last_from += (loop.extent - 1) * loop.from;
    }
    const bool zeros = operands[4].option < 0; // kZero
    if (last_to >= dst.cols)
        core.kernel_error("TTRANS: %lld elements of %d do not fit a result of %d", (long long)count, src.cols,
                          dst.cols);
    if (core.computes)
        with_bits(src.type, [&](auto tag) {
            using T = decltype(tag);
            T *to = core.local_as<T>(dst.space, dst.address, uint64_t(dst.cols));
            const T zero{};
            const T *from = zeros ? &zero : core.local_as<T>(src.space, src.address, uint64_t(last_from + 1));
            reorder(to + operands[3].option, zeros ? from : from + operands[4].option, loops.data(),
                    loops.data() + loops.size());
        });
    const int64_t boxes = ceil_div(count, int64_t(16) * per_block(src.type));
    for (int64_t first = 0; first < boxes; first += kMostRepeats) {
        const int repeat = static_cast<int>(std::min<int64_t>(kMostRepeats, boxes - first));
        set_address_registers(core, type_size(src.type) == 1 ? 8 : 4, src.address);
        // somewhere in both: the loops of the library are not followed one by one
        core.also(kWrites, Space::UB, src.type, whole_of(dst), false);
        core.also(kReads, Space::UB, src.type, whole_of(src), false);
        core.vector(Instr::VNCHWCONV, src.type, repeat, int64_t(repeat) * 16 * per_block(src.type),
                    VectorOperand(dst.address, 1).elsewhere(), VectorOperand(src.address, 1).elsewhere());
    }
}

} // namespace

TILE_OP_BODY(TTRANS) {
    if (operands.count > 3) return reorder(core, operands);
    const TileRef &dst = operands[0].tile, &src = operands[1].tile, &tmp = operands[2].tile;
    int size = type_size(src.type);
    if (size > 4) core.unsupported("TTRANS of %s tiles", type_name(src.type));
    if (size != type_size(dst.type))
        core.kernel_error("TTRANS: element types differ in size (%s and %s)", type_name(dst.type),
                          type_name(src.type));
    need_plain_rows(core, "TTRANS", dst, "result");
    need_plain_rows(core, "TTRANS", src, "source");
    if (is_empty(src)) return;
    int rows = src.valid_rows, cols = src.valid_cols;
    if (dst.rows < cols || dst.cols < rows)
        core.kernel_error("TTRANS: %d x %d does not fit a result of %d x %d", cols, rows, dst.rows, dst.cols);
    if (core.computes)
        with_bits(src.type, [&](auto tag) {
            using T = decltype(tag);
            View<T> to(core, dst, cols, rows), from(core, src, rows, cols);
            std::vector<T> kept(from.data, from.data + int64_t(rows - 1) * src.cols + cols);
            for (int r = 0; r < rows; ++r)
                for (int c = 0; c < cols; ++c)
                    to.data[int64_t(c) * dst.cols + r] = kept[size_t(r) * size_t(src.cols) + size_t(c)];
        });
    int block = per_block(src.type), box_rows = size == 1 ? 32 : 16;
    if (dst.cols % box_rows || src.cols % block) { // element by element on the scalar unit
        handshake(core, PipeId::V, PipeId::S);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c) {
                scalar_load(core, element_address(src, int64_t(r) * src.cols + c));
                scalar_store(core, element_address(dst, int64_t(c) * dst.cols + r));
            }
        handshake(core, PipeId::S, PipeId::V);
        return;
    }
    int across = static_cast<int>(ceil_div(cols, block)), down = rows / box_rows, rest = rows % box_rows;
    int64_t pitch = ceil_div(rows, box_rows) * box_rows; // of the scratch tile
    auto blocks = [&](int64_t elements) { return static_cast<uint16_t>(elements * size / kBlockBytes); };
    auto scratch = [&](int64_t elements) { return tmp.address + uint32_t(elements * size); };
    if (down)
        for (int i = 0; i < across; ++i)
            transpose_boxes(core, src, element_address(src, int64_t(i) * block), scratch(i * block * pitch),
                            pitch, down, blocks(box_rows), blocks(int64_t(box_rows) * src.cols));
    if (rest)
        transpose_boxes(core, src, element_address(src, int64_t(down) * box_rows * src.cols),
                        scratch(down * box_rows), pitch, across, blocks(block * pitch), 1);
    core.barrier(PipeId::V);
    core.move(Instr::MOV_UB_TO_UB, dst.type,
              lines_at(dst.address, cols, int64_t(dst.cols) * size, rows * size),
              lines_at(tmp.address, cols, pitch * size, rows * size), cols,
              int64_t(cols) * ceil_div(int64_t(rows) * size, kBlockBytes) * kBlockBytes);
}

} // namespace insight_trace::engine
