#include "operands.hpp"

#include <algorithm>

#include "elements.hpp"

namespace insight_trace::engine {

namespace {

constexpr int64_t kBlock = 32;

// A stretch of rows or columns of a boxed tile: `boxes` whole boxes, or part of one.
struct Stretch {
    int64_t first, boxes, inside; // element it begins with; how many boxes; elements of each
};

int split(int64_t begin, int64_t count, int64_t box, Stretch *into) {
    int found = 0;
    const int64_t end = begin + count;
    if (begin % box && begin < end) {
        int64_t part = std::min(end, (begin / box + 1) * box) - begin;
        into[found++] = {begin, 1, part};
        begin += part;
    }
    if (int64_t boxes = (end - begin) / box; boxes > 0) {
        into[found++] = {begin, boxes, box};
        begin += boxes * box;
    }
    if (begin < end) into[found++] = {begin, 1, end - begin};
    return found;
}

uint32_t narrow(int64_t value) { return static_cast<uint32_t>(value); }

} // namespace

Area part_of(const TileRef &tile, int64_t row, int64_t col, int64_t rows, int64_t cols) {
    Area area(tile.address);
    const bool four_bits = tile.type == Type::F4E2M1 || tile.type == Type::F4E1M2;
    const int64_t size = type_size(tile.type);
    if (four_bits) { // boxes of 32 bytes along the pairs: all of the tile is near enough the truth
        area.add().run = narrow(int64_t(tile.rows) * tile.cols / 2);
        return area;
    }
    if (rows <= 0 || cols <= 0) return lines_at(tile.address, 0, 0, 0);
    if (tile.inner == 0) {
        Traversal &walk = area.add();
        walk.offset = tile_offset(tile, row, col) * size;
        walk.count[0] = narrow(tile.row_major ? rows : cols);
        walk.step[0] = (tile.row_major ? tile.cols : tile.rows) * size;
        walk.run = narrow((tile.row_major ? cols : rows) * size);
        return area;
    }
    const int64_t ir = inner_rows(tile), ic = inner_cols(tile);
    Stretch down[3], across[3];
    const int downs = split(row, rows, ir, down), acrosses = split(col, cols, ic, across);
    const int64_t to_row = tile_offset(tile, ir, 0), to_col = tile_offset(tile, 0, ic);
    for (int i = 0; i < downs; ++i)
        for (int j = 0; j < acrosses; ++j) {
            Traversal &walk = area.add();
            walk.offset = tile_offset(tile, down[i].first, across[j].first) * size;
            walk.count[0] = narrow(down[i].boxes);
            walk.step[0] = to_row * size;
            walk.count[1] = narrow(across[j].boxes);
            walk.step[1] = to_col * size;
            walk.count[2] = narrow(tile.inner == 1 ? down[i].inside : across[j].inside);
            walk.step[2] = (tile.inner == 1 ? ic : ir) * size;
            walk.run = narrow((tile.inner == 1 ? across[j].inside : down[i].inside) * size);
        }
    return area;
}

Area in_core(uint8_t owner, Area area) {
    area.owner = owner;
    return area;
}

Area named_at(uint64_t address, Area area) {
    for (int i = 0; i < area.parts; ++i)
        area.walk[i].offset += static_cast<int64_t>(area.address) - static_cast<int64_t>(address);
    area.address = address;
    return area;
}

Area whole_of(const TileRef &tile) { return part_of(tile, 0, 0, tile.rows, tile.cols); }
Area valid_of(const TileRef &tile) { return part_of(tile, 0, 0, tile.valid_rows, tile.valid_cols); }

Area lines_at(uint64_t address, int64_t count, int64_t step, int64_t run) {
    Area area(address);
    Traversal &walk = area.add();
    walk.count[0] = narrow(std::max<int64_t>(count, 0));
    walk.step[0] = step;
    walk.run = narrow(std::max<int64_t>(run, 0));
    return area;
}

Area lines_of_tensor(const GlobalRef &g, bool columns, int64_t length) {
    const int64_t size = type_size(g.type);
    Area area = lines_at(g.address, 1, 0, length * size);
    const int dims[] = {0, 1, 2, columns ? 4 : 3};
    for (int i = 0; i < 4; ++i) {
        area.walk[0].count[i] = narrow(std::max<int64_t>(0, g.shape[dims[i]]));
        area.walk[0].step[i] = g.stride[dims[i]] * size;
    }
    return area;
}

Role role_of(Instr instr, int which) {
    if (which != 0) return kReads;
    switch (instr) { // what adds to its result
    case Instr::VAXPY:
    case Instr::VMADD:
    case Instr::VMLA:
    case Instr::VMADDRELU:
        return kReadsAndWrites;
    default:
        return kWrites;
    }
}

Traversal walk_of(const Repeats &repeats, int which, const VectorOperand &operand) {
    Traversal walk;
    if (!operand.used || operand.unseen || operand.address >= kRegisterFile || repeats.repeat <= 0)
        return walk;
    if (repeats.elements <= 0 && !operand.piece) return walk; // every lane is masked
    const int64_t size = type_size(operand.typed ? operand.element : repeats.type);
    int64_t piece = operand.piece, apart = operand.distance, lanes = repeats.lanes;
    const bool even = repeats.elements % repeats.repeat == 0 && !repeats.counted;
    int64_t active = even ? repeats.elements / repeats.repeat : lanes;
    bool rest_is_short = !even;
    if (!piece) {
        switch (repeats.instr) {
        case Instr::VCADD: // one element of each repeat; the result's stride counts elements
        case Instr::VCMAX:
        case Instr::VCMIN:
            if (which == 0) {
                piece = size;
                apart = operand.repeat_stride * size;
            }
            break;
        case Instr::VCGADD: // one of each block
        case Instr::VCGMAX:
        case Instr::VCGMIN:
            if (which == 0) {
                piece = 8 * size;
                apart = operand.repeat_stride * 8 * size;
            }
            break;
        case Instr::VCPADD: // one of each pair
            if (which == 0) {
                piece = (repeats.repeat == 1 ? repeats.elements : active) / 2 * size;
                apart = operand.repeat_stride * 4 * kBlock;
            }
            break;
        case Instr::VBRCB: // eight elements to eight blocks
            if (which == 0) {
                active = lanes;
                rest_is_short = false;
            } else {
                piece = apart = 8 * size;
            }
            break;
        case Instr::VCMPV: // a bit of each lane
        case Instr::VCMPVS:
            if (which == 0) piece = apart = lanes / 8;
            break;
        case Instr::VBS32: // 32 values and as many indices to pairs of eight bytes
            piece = apart = which == 0 ? 256 : which == 1 ? 32 * size : 128;
            break;
        default:
            break;
        }
    }
    if (piece) {
        walk.run = narrow(piece);
        walk.count[0] = narrow(operand.piece && !operand.distance ? 1 : repeats.repeat);
        walk.step[0] = apart;
        return walk;
    }
    const int64_t bytes = lanes * size;
    walk.run = narrow(std::min(bytes, kBlock));
    walk.count[0] = narrow(repeats.repeat);
    walk.step[0] = operand.repeat_stride * kBlock;
    walk.count[1] = narrow(operand.block_stride ? std::max<int64_t>(1, bytes / kBlock) : 1);
    walk.step[1] = operand.block_stride * kBlock;
    if (operand.mask) {
        walk.mask[0] = operand.mask;
        return walk;
    }
    if (rest_is_short && operand.block_stride)
        walk.total = narrow(repeats.elements * size);
    else if (active < lanes)
        walk.lead = narrow(std::min<int64_t>(active * size, int64_t(walk.count[1]) * walk.run));
    return walk;
}

Ends ends_of(Instr instr) {
    switch (instr) {
    case Instr::MOV_OUT_TO_UB:
    case Instr::MOV_OUT_TO_UB_ALIGN:
        return {Space::UB, Space::GM};
    case Instr::MOV_OUT_TO_L1:
    case Instr::MOV_OUT_TO_L1_MULTI_ND2NZ:
        return {Space::L1, Space::GM};
    case Instr::MOV_UB_TO_OUT:
    case Instr::MOV_UB_TO_OUT_ALIGN:
        return {Space::GM, Space::UB};
    case Instr::MOV_L1_TO_OUT:
        return {Space::GM, Space::L1};
    case Instr::MOV_UB_TO_L1:
        return {Space::L1, Space::UB};
    case Instr::SET_L1_2D:
        return {Space::L1, Space::L1};
    case Instr::LOAD_L1_TO_L0A_2D:
    case Instr::LOAD_L1_TO_L0A_3Dv2:
    case Instr::LOAD_L1_TO_L0A_2D_TRANSPOSE:
        return {Space::L0A, Space::L1};
    case Instr::LOAD_L1_TO_L0B_2D:
    case Instr::LOAD_L1_TO_L0B_3Dv2:
    case Instr::LOAD_L1_TO_L0B_2D_TRANSPOSE:
        return {Space::L0B, Space::L1};
    case Instr::MOV_L1_TO_UB:
        return {Space::UB, Space::L1};
    case Instr::MOV_L1_TO_BT:
        return {Space::Bias, Space::L1};
    case Instr::MOV_L1_TO_FB:
        return {Space::Scaling, Space::L1};
    case Instr::FIX_L0C_TO_OUT:
        return {Space::GM, Space::L0C};
    case Instr::FIX_L0C_TO_L1:
        return {Space::L1, Space::L0C};
    case Instr::FIX_L0C_TO_UB:
        return {Space::UB, Space::L0C};
    default:
        return {Space::UB, Space::UB};
    }
}

} // namespace insight_trace::engine
