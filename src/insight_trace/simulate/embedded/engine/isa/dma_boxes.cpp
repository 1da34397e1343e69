// DMA that puts elements in boxes of 32 bytes: scales of narrow floats, channels of images.
#include <algorithm>
#include <cstring>

#include "elements.hpp"
#include "isa/tile_dma.hpp"

namespace insight_trace::engine {

// All scales of a tile, in the boxes that it has, as one run.
static void load_all_scales(Core &core, const TileRef &tile, const GlobalRef &g) {
    int64_t count = int64_t(tile.rows) * tile.cols, given = 1;
    for (int64_t extent : g.shape) given *= extent;
    if (given != count)
        core.unsupported("TLOAD of %lld scales into a tile of %lld", (long long)given, (long long)count);
    if (core.computes)
        memcpy(core.local(tile.space, tile.address, uint64_t(count)),
               core.global(g.address, uint64_t(count), kReads), size_t(count));
    core.transfer(Instr::MOV_OUT_TO_L1, tile.type, g.address, tile.address, 1, count, count);
}

// Scales lie in GM in the boxes that the tile has: 16 lines by a pair of groups.
void load_scales(Core &core, const TileRef &tile, const GlobalRef &g) {
    const bool left = g.layout == MX_A_ZZ;
    const int64_t lines = g.shape[0] * g.shape[1] * g.shape[3], groups = g.shape[2] * g.shape[4];
    if (tile.fractal != 32 || tile.space != Space::L1)
        core.unsupported("TLOAD of scales into a tile that does not hold them in boxes of 32 bytes");
    if (g.shape[3] != 16 || g.shape[4] != 2) return load_all_scales(core, tile, g);
    if ((left ? lines : groups) > tile.rows || (left ? groups : lines) > tile.cols)
        core.kernel_error("TLOAD of %lld x %lld scales into a %d x %d tile", (long long)lines,
                          (long long)groups, tile.rows, tile.cols);
    if (core.computes) {
        View<uint8_t> to(core, tile);
        for (int64_t line = 0; line < lines; ++line)
            for (int64_t group = 0; group < groups; ++group) {
                const int64_t box = line / 16, offset = box / g.shape[1] * g.stride[0] +
                                                        box % g.shape[1] * g.stride[1] +
                                                        group / 2 * g.stride[2] + line % 16 * g.stride[3] +
                                                        group % 2 * g.stride[4];
                const uint8_t scale = *core.global(g.address + uint64_t(offset), 1, kReads);
                (left ? to.at(line, group) : to.at(group, line)) = scale;
            }
    }
    const int64_t count = lines * groups;
    core.transfer(Instr::MOV_OUT_TO_L1, tile.type, g.address, tile.address, 1, count, count);
}

// Scales that lie in GM in pairs along k are put into boxes on their way.
void load_scale_pairs(Core &core, const TileRef &tile, const GlobalRef &g) {
    const bool left = g.layout == MX_A_ND || g.layout == MX_A_DN;
    const bool pair_by_pair = g.layout == MX_A_DN || g.layout == MX_B_ND;
    // a shape that does not count pairs leaves it to the tile how many there are
    const bool by_tile = g.shape[4] != 2;
    const int64_t lines =
        by_tile ? (left ? tile.valid_rows : tile.valid_cols) : g.shape[pair_by_pair ? 3 : 2];
    const int64_t groups =
        by_tile ? (left ? tile.valid_cols : tile.valid_rows) : 2 * g.shape[pair_by_pair ? 2 : 3];
    const int64_t outer = pair_by_pair ? groups / 2 : lines, inner = pair_by_pair ? lines : groups / 2;
    if (tile.fractal != 32 || tile.space != Space::L1 || groups % 2)
        core.unsupported("TLOAD of scales into a tile that does not hold them in boxes of 32 bytes");
    if ((left ? lines : groups) > tile.rows || (left ? groups : lines) > tile.cols)
        core.kernel_error("TLOAD of %lld x %lld scales into a %d x %d tile", (long long)lines,
                          (long long)groups, tile.rows, tile.cols);
    if (core.computes) {
        View<uint8_t> to(core, tile);
        for (int64_t i = 0; i < outer; ++i)
            for (int64_t j = 0; j < inner; ++j) {
                const uint8_t *pair =
                    core.global(g.address + uint64_t(i * g.stride[2] + j * g.stride[3]), 2, kReads);
                for (int64_t q = 0; q < 2; ++q) {
                    const int64_t group = 2 * (pair_by_pair ? i : j) + q, line = pair_by_pair ? j : i;
                    (left ? to.at(line, group) : to.at(group, line)) = pair[q];
                }
            }
    }
    Area gm = lines_at(g.address, outer, g.stride[2], 2);
    gm.walk[0].count[1] = static_cast<uint32_t>(inner);
    gm.walk[0].step[1] = g.stride[3];
    core.transfer(Instr::MOV_OUT_TO_L1_MULTI_ND2NZ, tile.type, gm,
                  left ? part_of(tile, 0, 0, lines, groups) : part_of(tile, 0, 0, groups, lines), outer,
                  inner * 2, g.stride[2]);
}

void load_channels(Core &core, const Operands &operands) {
    const TileRef &tile = operands[0].tile;
    const GlobalRef &g = operands[1].global;
    if (!core.register_based()) core.unsupported("TLOAD of a ConvTile from a tensor of another layout");
    const int64_t size = type_size(tile.type), c0 = 32 / size, channels = g.shape[4];
    const int64_t depth = (channels + c0 - 1) / c0; // blocks
    auto apart = [&](int dim) { return operands[uint32_t(2 + dim)].option; };
    int64_t furthest = 0;
    for (int dim = 0; dim < 5; ++dim) {
        const int64_t count = dim < 4 ? g.shape[dim] : depth;
        if (count == 0) return;
        furthest += (count - 1) * apart(dim);
    }
    if (furthest >= int64_t(tile.rows))
        core.kernel_error("TLOAD of a ConvTile: block %lld of a tile of %d", (long long)furthest, tile.rows);
    for (int64_t i = 0; i < g.shape[0]; ++i)
        for (int64_t j = 0; j < g.shape[1]; ++j) {
            const uint64_t from = g.address + uint64_t((i * g.stride[0] + j * g.stride[1]) * size);
            const uint64_t to = tile.address + uint64_t((i * apart(0) + j * apart(1)) * 32);
            for (int64_t group = 0; core.computes && group < g.shape[2]; ++group)
                for (int64_t row = 0; row < g.shape[3]; ++row)
                    for (int64_t block = 0; block < depth; ++block) {
                        const int64_t place = group * apart(2) + row * apart(3) + block * apart(4);
                        uint8_t *out = core.local(tile.space, to + uint64_t(place * 32), 32);
                        memset(out, 0, 32); // behind the last channel
                        for (int64_t c = block * c0; c < std::min(channels, (block + 1) * c0);
                             ++c, out += size) {
                            const int64_t offset = group * g.stride[2] + row * g.stride[3] + c * g.stride[4];
                            memcpy(out, core.global(from + uint64_t(offset * size), uint64_t(size), kReads),
                                   size_t(size));
                        }
                    }
            // whichever lies side by side in GM is a line of it
            const bool side_by_side = g.stride[4] == 1;
            const int64_t lines = side_by_side ? g.shape[3] : channels;
            const int64_t run = (side_by_side ? channels : g.shape[3]) * size;
            const int64_t step = (side_by_side ? g.stride[3] : g.stride[4]) * size;
            Area gm = lines_at(from, lines, step, run);
            gm.walk[0].count[1] = static_cast<uint32_t>(g.shape[2]);
            gm.walk[0].step[1] = g.stride[2] * size;
            Area local = lines_at(to, g.shape[3], apart(3) * 32, 32);
            local.walk[0].count[1] = static_cast<uint32_t>(g.shape[2]);
            local.walk[0].step[1] = apart(2) * 32;
            local.walk[0].count[2] = static_cast<uint32_t>(depth);
            local.walk[0].step[2] = apart(4) * 32;
            core.transfer(Instr::MOV_OUT_TO_L1_MULTI_ND2NZ, tile.type, gm, local, lines * g.shape[2], run,
                          step);
        }
}

} // namespace insight_trace::engine
