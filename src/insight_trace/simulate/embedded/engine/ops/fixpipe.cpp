#include "fixpipe.hpp"

#include "isa/fixpipe_values.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

// Where the rows of an accumulator go in a tensor.
Area rows_in_gm(const GlobalRef &g, int64_t rows, int64_t cols) {
    const int64_t size = type_size(g.type);
    if (g.stride[4] == 1) return lines_at(g.address, rows, g.stride[3] * size, cols * size);
    Area area = lines_at(g.address, rows, g.stride[3] * size, size);
    area.walk[0].count[1] = static_cast<uint32_t>(cols);
    area.walk[0].step[1] = g.stride[4] * size;
    return area;
}

// The same in a tensor of boxes: the columns of the last one may be fewer.
Area boxes_in_gm(const GlobalRef &g, int64_t rows, int64_t cols) {
    const int64_t size = type_size(g.type), c0 = g.shape[4], box = g.shape[3];
    const bool one_outer = g.shape[1] * c0 >= cols;
    Area area(g.address);
    for (int64_t first = 0; first < cols && area.parts < Area::kMost;) {
        const bool whole = cols - first >= c0;
        const int64_t column = first / c0, boxes = whole ? (one_outer ? (cols - first) / c0 : 1) : 1;
        Traversal &walk = area.add();
        walk.offset = (column / g.shape[1] * g.stride[0] + column % g.shape[1] * g.stride[1]) * size;
        walk.count[0] = static_cast<uint32_t>(boxes);
        walk.step[0] = g.stride[1] * size;
        walk.count[1] = static_cast<uint32_t>(ceil_div(rows, box));
        walk.step[1] = g.stride[2] * size;
        walk.count[2] = static_cast<uint32_t>(box);
        walk.step[2] = g.stride[3] * size;
        walk.run = static_cast<uint32_t>((whole ? c0 : cols - first) * size);
        walk.lead = static_cast<uint32_t>(rows * walk.run);
        first += boxes * c0;
    }
    return area;
}

} // namespace

WayOut::WayOut(const Operands &operands, uint32_t first) {
    int options = 0;
    for (uint32_t i = first; i < operands.count; ++i) {
        if (operands[i].kind != Operand::Option)
            scale = &operands[i];
        else if (options++ == 0)
            relu = operands[i].option != 0;
        else
            mode = static_cast<ToVector>(operands[i].option);
    }
}

void store_accumulator(Core &core, const GlobalRef &g, const TileRef &tile, bool atomic,
                       const WayOut &way_out) {
    int size = type_size(g.type);
    int64_t rows = tile.valid_rows, cols = tile.valid_cols;
    // to NZ, NC1HWC0 and NDC1HWC0 it goes in columns of boxes
    constexpr uint8_t kNC1HWC0 = 12, kNDC1HWC0 = 17;
    const bool nz = g.layout == 2 || g.layout == kNC1HWC0 || g.layout == kNDC1HWC0;
    // images: rows are places and columns are channels, which lie side by side or plane by plane
    constexpr uint8_t kNCHW = 14, kNHWC = 16, kNCDHW = 18;
    const bool planes = g.layout == kNCHW || g.layout == kNCDHW;
    const bool image = core.register_based() && (planes || g.layout == kNHWC);
    if (g.layout > 2 && !nz && !image)
        core.unsupported("TSTORE of an Acc tile to global layout %d", g.layout);
    if (g.layout == kNHWC && g.shape[0] != 1)
        core.unsupported("TSTORE of an Acc tile to several NHWC images");
    const int64_t c0 = g.layout != kNDC1HWC0 ? g.shape[4] : g.type == Type::I32 ? 16 : 32 / size;
    if (g.layout == kNC1HWC0 ? g.stride[3] <= 0 : g.layout == kNDC1HWC0 && g.stride[4] <= 0)
        core.kernel_error("TSTORE to a tensor whose pixels lie %d elements apart", 0);
    const int64_t column_step = g.layout == kNC1HWC0    ? g.shape[0] * g.stride[1] / g.stride[3] * c0
                                : g.layout == kNDC1HWC0 ? g.shape[0] * g.stride[2] / g.stride[4] * c0
                                                        : g.shape[2] * g.shape[3] * c0;
    const bool by_column = nz && (g.layout != 2 || !core.register_based());
    auto address = [&](int64_t r, int64_t c) {
        int64_t offset = 0;
        if (by_column) {
            offset = c / c0 * column_step + r * c0 + c % c0;
        } else if (nz) {
            int64_t box = g.shape[3], column = c / c0;
            offset = column / g.shape[1] * g.stride[0] + column % g.shape[1] * g.stride[1] +
                     r / box * g.stride[2] + r % box * g.stride[3] + c % c0;
        } else if (planes) {
            offset = r + c * g.stride[g.layout == kNCHW ? 2 : 1];
        } else {
            offset = r * g.stride[3] + c * g.stride[4];
        }
        return g.address + uint64_t(offset * size);
    };
    // as far as a row lies side by side in global memory
    const int64_t run = nz ? c0 : !planes && g.stride[4] == 1 ? cols : 1;
    const Area there = by_column
                           ? lines_at(g.address, ceil_div(cols, c0), column_step * size, rows * c0 * size)
                       : nz ? boxes_in_gm(g, rows, cols)
                            : rows_in_gm(g, rows, cols);
    atomic_stores(core, g.type, atomic, [&] {
        write_accumulator(core, tile, way_out.relu, way_out.scale, g.type, run, core.atomic_store, address);
        way_out.set_scale(core, true);
        if (!nz) core.set_register(PipeId::FIX, 1); // how many matrices, and how far apart
        core.fixpipe(Instr::FIX_L0C_TO_OUT, g.type, there, 0, valid_of(tile), rows, cols, rows * cols * size,
                     !nz, nz ? 0 : g.stride[3] * size);
    });
}

void move_accumulator(Core &core, const TileRef &dst, Corner to, const TileRef &src, Corner from,
                      int64_t rows, int64_t cols, const WayOut &way_out) {
    const bool to_vector = dst.space == Space::UB;
    if (!to_vector && dst.space != Space::L1)
        core.kernel_error("%s out of an Acc tile goes to Vec or Mat", core.op);
    if (to_vector && !core.register_based())
        core.unsupported("%s from an Acc to a Vec tile: this chip has no such path", core.op);
    if (rows <= 0 || cols <= 0) return;
    const bool by_rows = way_out.mode == ToVector::SplitRows, by_cols = way_out.mode == ToVector::SplitCols;
    if ((by_rows || by_cols) && (way_out.scale || dst.type != src.type || (dst.inner == 0 && !dst.row_major)))
        core.kernel_error("%s to both vector cores neither converts nor turns", core.op);
    if (dst.inner != 0) // whole blocks
        cols = rounded_up(cols, by_rows ? 16 : by_cols ? 32 : inner_cols(dst));
    const int64_t part_rows = by_rows ? rows / 2 : rows, part_cols = by_cols ? cols / 2 : cols;
    const int64_t put_rows = std::min({part_rows, src.rows - from.row, dst.rows - to.row});
    const int64_t put_cols = std::min({part_cols, src.cols - from.col, dst.cols - to.col});
    const int parts = by_rows || by_cols ? 2 : 1;
    for (int part = 0; part < parts; ++part) {
        const int64_t lane = parts == 2 ? part : way_out.mode == ToVector::Second ? 1 : 0;
        const Corner corner{from.row + (by_rows ? part * part_rows : 0),
                            from.col + (by_cols ? part * part_cols : 0)};
        move_accumulator_part(core, dst, to, src, corner, put_rows, put_cols, lane, way_out.relu,
                              way_out.scale);
    }
    Instr instr = to_vector ? Instr::FIX_L0C_TO_UB : Instr::FIX_L0C_TO_L1;
    const Area there = part_of(dst, to.row, to.col, put_rows, put_cols);
    const uint8_t first = to_vector ? vector_core(way_out.mode == ToVector::Second ? 1 : 0) : 0;
    way_out.set_scale(core, false);
    if (parts == 2) core.also(kWrites, dst.space, dst.type, in_core(vector_core(1), there));
    core.fixpipe(instr, dst.type, 0, in_core(first, there),
                 part_of(src, from.row, from.col, std::min<int64_t>(rows, src.rows - from.row),
                         std::min<int64_t>(cols, src.cols - from.col)),
                 rows, cols, rows * cols * type_size(dst.type));
}

} // namespace insight_trace::engine
