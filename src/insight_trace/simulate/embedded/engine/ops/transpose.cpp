// Transposition of a tile.
#include "isa/composites.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

// Boxes of 16 rows of one block each (32 rows of bytes) become columns; `repeat` of them per instruction, so
// many blocks apart.
struct Boxes {
    const TileRef &src;
    uint32_t from;
    int rows; // of the box that are there; the unit reads the start of UB for the others
    uint32_t to;
    int64_t to_pitch; // bytes
    int repeat;
    uint16_t to_stride, from_stride;
};

void transpose(Core &core, const Boxes &boxes) {
    const int size = type_size(boxes.src.type);
    const bool bytes = size == 1;
    const int64_t from_pitch = int64_t(boxes.src.cols) * size;
    uint64_t from[32] = {}, to[32];
    for (int i = 0; i < boxes.rows; ++i) from[i] = boxes.from + uint64_t(i * from_pitch);
    for (int i = 0; i < 32; ++i) // a row of sixteen 32-bit elements is two blocks
        to[i] = boxes.to +
                uint64_t(size == 4 ? i / 2 * boxes.to_pitch + i % 2 * kBlockBytes : i * boxes.to_pitch);
    auto places = [&](int which, const uint64_t *list) { // of two registers
        set_address_register(core, which, list);
        set_address_register(core, which + 1, list + 8);
    };
    places(2, from);
    places(0, to);
    if (bytes) {
        places(4, from + 16);
        places(6, to + 16);
    }
    VectorInstruction turn;
    turn.instr = Instr::VNCHWCONV;
    turn.type = turn.to = turn.from = turn.second = boxes.src.type;
    turn.repeats = boxes.repeat;
    const bool once = boxes.repeat == 1;
    auto one = [&](uint32_t into, uint32_t out_of, int halves) {
        turn.mode = static_cast<uint8_t>(size | halves);
        turn.dst = VectorOperand(into, once ? uint16_t(0) : boxes.to_stride);
        turn.src0 = VectorOperand(out_of, once ? uint16_t(0) : boxes.from_stride);
        core.issue(turn);
    };
    constexpr int kHighTo = 8, kHighFrom = 16;
    one(0, 2, 0);
    if (!bytes) return;
    one(6, 2, kHighFrom);
    one(0, 4, kHighTo);
    one(6, 4, kHighTo | kHighFrom);
}

} // namespace

TILE_OP_BODY(TTRANS) {
    if (operands.count > 3) return reorder_image(core, operands);
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    int size = type_size(src.type);
    if (size > 4) refuse_type(core, src.type);
    same_size(core, dst, src);
    need_plain_rows(core, dst, "result");
    need_plain_rows(core, src, "source");
    if (is_empty(src)) return;
    int rows = src.valid_rows, cols = src.valid_cols;
    need_room(core, dst, "result", cols, rows);
    int block = per_block(src.type), box_rows = size == 1 ? 32 : 16;
    if (dst.cols % box_rows || src.cols % block) { // element by element on the scalar unit
        handshake(core, PipeId::V, PipeId::S);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c)
                copy_element(core, address_of(dst, c, r), address_of(src, r, c), size);
        handshake(core, PipeId::S, PipeId::V);
        return;
    }
    const uint32_t tmp = scratch_address(core, operands[2].tile);
    int across = static_cast<int>(ceil_div(cols, block)), down = rows / box_rows, rest = rows % box_rows;
    const int64_t pitch = rounded_up(rows, box_rows) * size; // bytes of the scratch tile's rows
    auto blocks = [&](int64_t bytes) { return static_cast<uint16_t>(bytes / kBlockBytes); };
    if (down)
        for (int i = 0; i < across; ++i)
            transpose(core, {src, element_address(src, int64_t(i) * block), box_rows,
                             tmp + uint32_t(i * block * pitch), pitch, down, blocks(box_rows * size),
                             blocks(int64_t(box_rows) * src.cols * size)});
    if (rest)
        transpose(core, {src, element_address(src, int64_t(down) * box_rows * src.cols), rest,
                         tmp + uint32_t(down * box_rows * size), pitch, across, blocks(block * pitch), 1});
    barrier(core);
    copy_lines(core, dst.type, {dst.address, int64_t(dst.cols) * size}, {tmp, pitch}, cols,
               int64_t(rows) * size);
}

} // namespace insight_trace::engine
