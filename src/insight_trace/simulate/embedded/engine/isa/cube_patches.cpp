// LOAD_L1_TO_L0A_3Dv2 as TIMG2COL issues it: patches of a feature map become rows of the left operand of a
// product.
#include <algorithm>
#include <cstring>

#include "elements.hpp"
#include "isa/moves.hpp"

namespace insight_trace::engine {

// Operands: the Left tile, the map in L1, then words as pto/common/forms/convolution.hpp packs them.
void load_patches(Core &core, const Operands &operands) {
    const TileRef dst = compact_if_larger(core, operands[0].tile), &src = operands[1].tile;
    auto field = [&](uint32_t word, int shift, int bits) {
        return static_cast<int64_t>(static_cast<uint64_t>(operands[2 + word].option) >> shift &
                                    ((1ull << bits) - 1));
    };
    const int64_t first_row = field(0, 0, 16), first_col = field(0, 16, 16), channels = field(0, 32, 16);
    const int64_t width = field(1, 0, 16), height = field(1, 16, 16);
    const int64_t left = field(1, 32, 8), right = field(1, 40, 8), top = field(1, 48, 8),
                  bottom = field(1, 56, 8);
    const int64_t filter_w = field(2, 0, 16), filter_h = field(2, 16, 16);
    const int64_t stride_w = field(2, 32, 8), stride_h = field(2, 40, 8);
    const int64_t dilation_w = field(2, 48, 8), dilation_h = field(2, 56, 8);
    const uint64_t padding = static_cast<uint64_t>(operands[5].option);
    const int64_t repeats = field(4, 0, 16), box_step = field(4, 16, 16), first_box = field(4, 32, 16);
    const int size = type_size(dst.type);
    const int64_t c0 = 32 / size;
    if (dst.space != Space::L0A || src.space != Space::L1 || dst.type != src.type)
        core.kernel_error("TIMG2COL goes from a Mat to a Left tile of the same type");
    if (dst.inner != 1 || bool(dst.row_major) == core.register_based())
        core.kernel_error("TIMG2COL: the Left tile has boxes that this chip does not read");
    if (height <= 0 || width <= 0) core.kernel_error("TIMG2COL before SETFMATRIX: the map has no size");
    if (filter_h <= 0 || filter_w <= 0 || stride_h <= 0 || stride_w <= 0 || dilation_h <= 0 ||
        dilation_w <= 0)
        core.kernel_error("TIMG2COL with a filter, stride or dilation of 0");
    if (repeats != 1) core.unsupported("TIMG2COL with %lld repeats", (long long)repeats);
    if (core.register_based()) {
        if (first_box) core.unsupported("TIMG2COL to a box of its own in the Left tile");
        // where the next column of boxes goes: as high as the tile, or as its valid part
        const int64_t boxes = (dst.valid_rows + 15) / 16;
        if (dst.valid_cols > c0 && box_step != boxes && box_step != (dst.rows + 15) / 16)
            core.kernel_error(
                "TIMG2COL puts columns of boxes %lld boxes apart, where the Left tile has %lld in a "
                "column: set SetDstStride, and SET_IMG2COL_RPT or an AUTO mode",
                (long long)box_step, (long long)boxes);
    }
    const int64_t out_w = (width + left + right - (dilation_w * (filter_w - 1) + 1)) / stride_w + 1;
    const int64_t out_h = (height + top + bottom - (dilation_h * (filter_h - 1) + 1)) / stride_h + 1;
    const int64_t rows = dst.valid_rows, cols = (dst.valid_cols + c0 - 1) / c0 * c0;
    if (out_w <= 0 || out_h <= 0) core.kernel_error("TIMG2COL: the filter does not fit the padded map");
    const int64_t taps = filter_h * filter_w, most = (channels + c0 - 1) / c0 * taps * c0;
    if (first_col + cols > most)
        core.kernel_error("TIMG2COL of columns up to %lld: %lld channels and %lld taps have %lld",
                          (long long)(first_col + cols), (long long)channels, (long long)taps,
                          (long long)most);
    if (core.computes)
        with_type(dst.type, [&](auto tag) {
            using T = decltype(tag);
            int64_t extent = tile_extent(dst); // rows and columns may be more than the tile has
            if (rows > 0 && cols > 0) extent = std::max(extent, tile_offset(dst, rows - 1, cols - 1) + 1);
            T *to = core.local_as<T>(dst.space, dst.address, uint64_t(extent));
            const uint64_t maps = uint64_t((channels + c0 - 1) / c0) * uint64_t(height * width * c0);
            const T *from = core.local_as<T>(src.space, src.address, maps);
            T pad;
            memcpy(&pad, &padding, sizeof pad);
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t c = 0; c < cols; ++c) {
                    const int64_t pixel = first_row + r, k = first_col + c;
                    const int64_t tap = k / c0 % taps, c1 = k / c0 / taps;
                    const int64_t y = pixel / out_w * stride_h - top + tap / filter_w * dilation_h;
                    const int64_t x = pixel % out_w * stride_w - left + tap % filter_w * dilation_w;
                    const bool inside = pixel < out_w * out_h && y >= 0 && y < height && x >= 0 && x < width;
                    to[tile_offset(dst, r, c)] =
                        inside ? from[((c1 * height + y) * width + x) * c0 + k % c0] : pad;
                }
        });
    core.set_register(PipeId::MTE1, uint64_t(height) << 16 | uint64_t(width));
    core.move(Instr::LOAD_L1_TO_L0A_3Dv2, dst.type, part_of(dst, 0, 0, rows, cols), whole_of(src), 1,
              rows * cols * size);
}

} // namespace insight_trace::engine
