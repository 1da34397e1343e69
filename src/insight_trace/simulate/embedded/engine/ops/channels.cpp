// Images on their way into L1: channels become blocks of 32 bytes.
#include <cstring>

#include "layout_copy.hpp"

namespace insight_trace::engine {

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
