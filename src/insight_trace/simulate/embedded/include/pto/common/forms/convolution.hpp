// Call forms of convolutions: feature maps and filters come and go as rows of whole blocks.
#pragma once

#include "pto/common/call_forms.hpp"
#include "pto/common/conv_tile.hpp"

namespace pto {

namespace bundled {
inline insight_trace::Operand operand_of(const insight_trace::TileRef &tile) {
    insight_trace::Operand operand{};
    operand.kind = insight_trace::Operand::Tile;
    operand.tile = tile;
    return operand;
}
// Five extents and steps of a tensor whose innermost elements lie side by side.
template <class G>
insight_trace::Operand rows_of(const G &g, const int64_t (&shape)[5], const int64_t (&stride)[4]) {
    insight_trace::Operand operand{};
    operand.kind = insight_trace::Operand::Global;
    operand.global = g.ref(type_of<typename G::DType>());
    for (int i = 0; i < 5; ++i) {
        operand.global.shape[i] = shape[i];
        operand.global.stride[i] = i < 4 ? stride[i] : 1;
    }
    operand.global.layout = static_cast<uint8_t>(Layout::ND);
    return operand;
}
} // namespace bundled

// Channels that lie as an image has them, put into blocks of C0 on their way: the tensor's extents and steps
// as
// [.., .., group, row, channel], and how many blocks the first of each lie apart in the tile.
namespace bundled {
template <class Dst, class G>
void load_channels(const Dst &dst, const G &g, const int64_t (&shape)[5], const int64_t (&stride)[5],
                   const int64_t (&blocks)[5], insight_trace::Site at) {
    constexpr int64_t c0 = 32 / int64_t(sizeof(typename Dst::DType));
    insight_trace::Operand operands[7] = {operand_of(dst.ref(dst.elements() / c0, c0))};
    operands[1].kind = insight_trace::Operand::Global;
    operands[1].global = g.ref(type_of<typename G::DType>());
    operands[1].global.layout = static_cast<uint8_t>(Layout::ND);
    for (int i = 0; i < 5; ++i) {
        operands[1].global.shape[i] = shape[i];
        operands[1].global.stride[i] = stride[i];
        operands[2 + i].kind = insight_trace::Operand::Option;
        operands[2 + i].option = blocks[i];
    }
    insight_trace_op(insight_trace::Op::TLOAD, operands, 7, at);
}
} // namespace bundled

template <TileType L, class E, int B, Layout Y, class S, class G>
inline RecordEvent TLOAD(const ConvTile<L, E, B, Y, S> &dst, const G &src, INSIGHT_TRACE_AT) {
    using Dst = ConvTile<L, E, B, Y, S>;
    static_assert(Dst::Loc == TileType::Mat, "a ConvTile is loaded into Mat");
    if constexpr (Dst::layout != G::layout) {
        auto n = [&](int dim) { return int64_t(src.GetShape(dim)); };
        auto step = [&](int dim) { return int64_t(src.GetStride(dim)); };
        auto to = [&](int dim) { return dst.GetShape(dim); };
        if constexpr (Y == Layout::NC1HWC0 && (G::layout == Layout::NHWC || G::layout == Layout::NCHW)) {
            constexpr bool last = G::layout == Layout::NHWC; // where the channels are
            constexpr int h = last ? 2 : 3, w = last ? 3 : 4, c = last ? 4 : 2;
            bundled::load_channels(dst, src, {1, n(1), n(h), n(w), n(c)},
                                   {0, step(1), step(h), step(w), step(c)},
                                   {0, to(1) * to(2) * to(3), to(3), 1, to(2) * to(3)}, at);
        } else if constexpr (Y == Layout::NDC1HWC0 && G::layout == Layout::NCDHW) {
            const int64_t plane = to(3) * to(4);
            bundled::load_channels(dst, src, {n(0), n(2), n(3), n(4), n(1)},
                                   {step(0), step(2), step(3), step(4), step(1)},
                                   {to(1) * to(2) * plane, to(2) * plane, to(4), 1, plane}, at);
        } else if constexpr ((Y == Layout::FRACTAL_Z && G::layout == Layout::NCHW) ||
                             (Y == Layout::FRACTAL_Z_3D && G::layout == Layout::NCDHW)) {
            constexpr bool deep = G::layout == Layout::NCDHW;
            constexpr int64_t c0 = 32 / int64_t(sizeof(E));
            constexpr int filter = deep ? 0 : 1, c = filter + 1;
            const int64_t places = deep ? step(2) * n(2) : step(2); // all of height and width
            const int64_t filters = to(1) * to(2), c1 = (n(c) + c0 - 1) / c0;
            bundled::load_channels(dst, src, {1, 1, n(filter), places, n(c)},
                                   {0, 0, step(filter), 1, step(c)},
                                   {0, 0, 1, filters, filters * (to(0) / c1)}, at);
        } else {
            insight_trace_intrinsic(
                insight_trace::Intrinsic::Unsupported,
                reinterpret_cast<uint64_t>("TLOAD of a ConvTile from a tensor of another layout"), 0, 0, at);
        }
        return {at};
    }
    constexpr int64_t c0 = 32 / int64_t(sizeof(E));
    auto d = [&](int dim) { return dst.GetShape(dim); };
    auto s = [&](int dim) { return src.GetStride(dim); };
    auto load = [&](const insight_trace::Operand &rows) {
        int64_t lines = 1;
        for (int i = 0; i < 4; ++i) lines *= rows.global.shape[i];
        const insight_trace::Operand operands[] = {bundled::operand_of(dst.ref(lines, rows.global.shape[4])),
                                                   rows};
        insight_trace_op(insight_trace::Op::TLOAD, operands, 2, at);
    };
    // on a2a3 planes whose rows follow each other are lines of one instruction
    [[maybe_unused]] auto whole_planes = [&](int c1, int h, int w) {
#if defined(PTO_NPU_ARCH_A5)
        return false;
#else
        const int64_t plane = d(h) * d(w), gap = (s(c1) - plane * c0) / c0;
        return (s(h) == d(w) * c0 || d(h) == 1) && gap <= 65535 && d(c1) <= 4095 && plane <= 65535;
#endif
    };
    if constexpr (Y == Layout::NC1HWC0) {
        if (whole_planes(1, 2, 3))
            load(bundled::rows_of(src, {1, 1, d(0), d(1), d(2) * d(3) * c0}, {0, 0, s(0), s(1)}));
        else
            load(bundled::rows_of(src, {1, d(0), d(1), d(2), d(3) * c0}, {0, s(0), s(1), s(2)}));
    } else if constexpr (Y == Layout::NDC1HWC0) {
        if (whole_planes(2, 3, 4))
            load(bundled::rows_of(src, {1, d(0), d(1), d(2), d(3) * d(4) * c0}, {0, s(0), s(1), s(2)}));
        else
            load(bundled::rows_of(src, {d(0), d(1), d(2), d(3), d(4) * c0}, {s(0), s(1), s(2), s(3)}));
    } else {
        static_assert(Y == Layout::FRACTAL_Z || Y == Layout::FRACTAL_Z_3D,
                      "TLOAD of a ConvTile takes NC1HWC0, NDC1HWC0, FRACTAL_Z or FRACTAL_Z_3D");
        if constexpr (Dst::totalDimCount == 4) {
            // the gap behind a line is counted from the tensor's extents
            const int64_t line = d(1) * d(2) * c0, gap = s(1) - src.GetShape(2) * src.GetShape(3) * c0;
            load(bundled::rows_of(src, {1, 1, 1, d(0), line}, {0, 0, 0, line + gap}));
        } else {
            const int64_t line = d(3) * c0, gap = s(2) - src.GetShape(3) * c0;
            const bool together = d(0) * d(1) * d(2) <= 4095;
            if (together)
                load(bundled::rows_of(src, {1, 1, 1, d(0) * d(1) * d(2), line}, {0, 0, 0, line + gap}));
            else
                load(bundled::rows_of(src, {1, 1, d(0), d(1) * d(2), line}, {0, 0, s(0), line + gap}));
        }
    }
    return {at};
}

// --- filters go to the right operand: [C1 x H x W, N, C0] are boxes of C0 rows and 16 columns
namespace bundled {
template <class Filter> insight_trace::Operand filter_matrix(const Filter &src) {
    static_assert(Filter::layout == Layout::FRACTAL_Z || Filter::layout == Layout::FRACTAL_Z_3D,
                  "a filter has the layout FRACTAL_Z");
    constexpr int64_t c0 = 32 / int64_t(sizeof(typename Filter::DType));
    const bool split = Filter::totalDimCount == 4; // N as N/16 and 16
    const int64_t n = split ? src.GetShape(1) * src.GetShape(2) : src.GetShape(3);
    insight_trace::TileRef tile = src.ref(src.elements() / (n * c0) * c0, n);
    tile.inner = static_cast<uint8_t>(SLayout::ColMajor);
    return operand_of(tile);
}
} // namespace bundled
template <class D, TileType L, class E, int B, Layout Y, class S>
inline RecordEvent TMOV(const D &dst, const ConvTile<L, E, B, Y, S> &src, INSIGHT_TRACE_AT) {
    const insight_trace::Operand operands[] = {bundled::describe(dst), bundled::filter_matrix(src)};
    insight_trace_op(insight_trace::Op::TMOV, operands, 2, at);
    return {at};
}
template <class D, TileType L, class E, int B, Layout Y, class S, class Row, class Col>
inline RecordEvent TEXTRACT(const D &dst, const ConvTile<L, E, B, Y, S> &src, const Row &row, const Col &col,
                            INSIGHT_TRACE_AT) {
    const insight_trace::Operand operands[] = {bundled::describe(dst), bundled::filter_matrix(src),
                                               bundled::describe(row), bundled::describe(col)};
    insight_trace_op(insight_trace::Op::TEXTRACT, operands, 4, at);
    return {at};
}

// --- patches of a feature map as rows of the left operand
namespace bundled {
// Registers that one core has: what SETFMATRIX and SET_IMG2COL_* leave for TIMG2COL.
struct PatchRegisters {
    int64_t height = 0, width = 0, pads[4] = {};
    uint64_t padding = 0;
    int64_t repeats = 1, box_step = 0, first_box = 0; // the last two on the 950 only
};
// Two of each; on a2a3 there is one padding and one word of repeats for both.
inline PatchRegisters &patch_registers(bool b) {
    static thread_local PatchRegisters registers[2]; // a core is a thread
    return registers[b];
}
inline PatchRegisters &common_registers([[maybe_unused]] bool b) {
#if defined(PTO_NPU_ARCH_A5)
    return patch_registers(b);
#else
    return patch_registers(false);
#endif
}
constexpr bool is_b(SetFmatrixMode mode) {
    return mode == SetFmatrixMode::FMATRIX_B_AUTO || mode == SetFmatrixMode::FMATRIX_B_MANUAL;
}
constexpr bool is_manual(SetFmatrixMode mode) {
    return mode == SetFmatrixMode::FMATRIX_A_MANUAL || mode == SetFmatrixMode::FMATRIX_B_MANUAL;
}
template <class T> void set_map(const T &src, bool b) {
    auto &map = patch_registers(b);
    map.height = src.GetFmapH();
    map.width = src.GetFmapW();
    for (int i = 0; i < 4; ++i) map.pads[i] = src.GetPadList(static_cast<uint8_t>(i));
}
template <class T> void set_padding_of(const T &src, bool b) {
    common_registers(b).padding = value_bits(src.GetPadValue());
}
template <class T> void set_repeats(const T &src, bool b) {
    auto &registers = common_registers(b);
    registers.repeats = src.GetRepeatTime();
    registers.box_step = src.GetDstStride();
    registers.first_box = src.GetDstMposition();
}
} // namespace bundled
template <class T, SetFmatrixMode mode = SetFmatrixMode::FMATRIX_A_MANUAL>
inline RecordEvent SETFMATRIX(const T &src, INSIGHT_TRACE_AT) {
    if constexpr (bundled::is_manual(mode)) bundled::set_map(src, bundled::is_b(mode));
    return {at};
}
template <class T, SetFmatrixMode mode = SetFmatrixMode::FMATRIX_A_MANUAL>
inline RecordEvent SET_IMG2COL_PADDING(const T &src, INSIGHT_TRACE_AT) {
    if constexpr (bundled::is_manual(mode)) bundled::set_padding_of(src, bundled::is_b(mode));
    return {at};
}
template <class T, SetFmatrixMode mode = SetFmatrixMode::FMATRIX_A_MANUAL>
inline RecordEvent SET_IMG2COL_RPT(const T &src, INSIGHT_TRACE_AT) {
    if constexpr (bundled::is_manual(mode)) bundled::set_repeats(src, bundled::is_b(mode));
    return {at};
}
#define PTO_SETTING(name)                                                                                    \
    template <class T, SetFmatrixMode mode = SetFmatrixMode::FMATRIX_A_MANUAL, PTO_EVENT(0)>                 \
    inline RecordEvent name(const T &src, PTO_AFTER(0), INSIGHT_TRACE_AT) {                                  \
        event0.Wait(at);                                                                                     \
        return name<T, mode>(src, at);                                                                       \
    }
PTO_SETTING(SETFMATRIX)
PTO_SETTING(SET_IMG2COL_PADDING)
PTO_SETTING(SET_IMG2COL_RPT)
#undef PTO_SETTING
template <class D, class T, SetFmatrixMode mode = SetFmatrixMode::FMATRIX_A_MANUAL>
inline RecordEvent TIMG2COL(const D &dst, const T &src, uint16_t row = 0, uint16_t col = 0,
                            INSIGHT_TRACE_AT) {
    static_assert(T::layout == Layout::NC1HWC0 || T::layout == Layout::NDC1HWC0,
                  "TIMG2COL takes a feature map in NC1HWC0 or NDC1HWC0");
    if constexpr (!bundled::is_manual(mode)) {
        bundled::set_map(src, bundled::is_b(mode));
        bundled::set_padding_of(src, bundled::is_b(mode));
        bundled::set_repeats(src, bundled::is_b(mode));
    }
    if (src.GetTranspose())
        insight_trace_intrinsic(insight_trace::Intrinsic::Unsupported,
                                reinterpret_cast<uint64_t>("TIMG2COL that transposes"), 0, 0, at);
    constexpr int64_t c0 = 32 / int64_t(sizeof(typename T::DType));
    const auto &map = bundled::patch_registers(bundled::is_b(mode));
    const auto &common = bundled::common_registers(bundled::is_b(mode));
    auto field = [](int64_t value, int shift) {
        return static_cast<int64_t>(static_cast<uint64_t>(value) << shift);
    };
    int64_t size = map.width | field(map.height, 16);
    for (int i = 0; i < 4; ++i) size |= field(map.pads[i], 32 + 8 * i);
    // where from and how many channels; the map; the filter; the padding; repeats and where boxes go
    const int64_t values[] = {row | field(col, 16) | field(src.GetChannelSize(), 32), size,
                              src.GetFilterW() | field(src.GetFilterH(), 16) | field(src.GetStrideW(), 32) |
                                  field(src.GetStrideH(), 40) | field(src.GetDilationW(), 48) |
                                  field(src.GetDilationH(), 56),
                              static_cast<int64_t>(common.padding),
                              common.repeats | field(common.box_step, 16) | field(common.first_box, 32)};
    constexpr int count = sizeof values / sizeof values[0];
    insight_trace::Operand operands[2 + count] = {bundled::describe(dst),
                                                  bundled::operand_of(src.ref(src.elements() / c0, c0))};
    for (int i = 0; i < count; ++i) {
        operands[2 + i].kind = insight_trace::Operand::Option;
        operands[2 + i].option = values[i];
    }
    insight_trace_op(insight_trace::Op::TIMG2COL, operands, 2 + count, at);
    return {at};
}
template <class D, class T, SetFmatrixMode mode = SetFmatrixMode::FMATRIX_A_MANUAL, PTO_EVENT(0)>
inline RecordEvent TIMG2COL(const D &dst, const T &src, uint16_t row, uint16_t col, PTO_AFTER(0),
                            INSIGHT_TRACE_AT) {
    event0.Wait(at);
    return TIMG2COL<D, T, mode>(dst, src, row, col, at);
}

// --- feature maps and filters from one layout to another: elements in nested loops, each with a step per
// side
namespace bundled {
struct Loop {
    int64_t extent, to, from;
};
constexpr int64_t kZero = -1; // as a place in the source: zeros
template <class D, class S, class Tmp, int N>
void reorder(const D &dst, const S &src, const Tmp &tmp, int64_t to, int64_t from, const Loop (&loops)[N],
             insight_trace::Site at) {
    insight_trace::Operand operands[5 + 3 * N] = {operand_of(dst.ref(1, dst.elements())),
                                                  operand_of(src.ref(1, src.elements())), describe(tmp)};
    int64_t values[2 + 3 * N] = {to, from};
    for (int i = 0; i < N; ++i) {
        if (loops[i].extent == 0) return;
        values[2 + 3 * i] = loops[i].extent;
        values[3 + 3 * i] = loops[i].to;
        values[4 + 3 * i] = loops[i].from;
    }
    for (int i = 0; i < 2 + 3 * N; ++i) {
        operands[3 + i].kind = insight_trace::Operand::Option;
        operands[3 + i].option = values[i];
    }
    insight_trace_op(insight_trace::Op::TTRANS, operands, 5 + 3 * N, at);
}
} // namespace bundled
template <TileType L, class E, int B, Layout Y, class S, TileType M, int C, Layout Z, class T, class Tmp>
inline RecordEvent TTRANS(const ConvTile<L, E, B, Y, S> &dst, const ConvTile<M, E, C, Z, T> &src,
                          const Tmp &tmp, INSIGHT_TRACE_AT) {
    using bundled::Loop;
    auto d = [&](int dim) { return dst.GetShape(dim); };
    auto s = [&](int dim) { return src.GetShape(dim); };
    constexpr bool grouped =
        Y == Layout::GNC1HWC0 || Y == Layout::GNCHW || Z == Layout::GNC1HWC0 || Z == Layout::GNCHW;
    constexpr int at_n = grouped ? 1 : 0; // a group is an outer dimension
    const int64_t groups = grouped ? s(0) : 1, n = s(at_n);
    if constexpr ((Z == Layout::NCHW && Y == Layout::NC1HWC0) ||
                  (Z == Layout::GNCHW && Y == Layout::GNC1HWC0)) {
        const int64_t channels = s(at_n + 1), pixels = s(at_n + 2) * s(at_n + 3), c0 = d(at_n + 4);
        const int64_t whole = channels / c0, rest = channels % c0, image = d(at_n + 1) * pixels * c0;
        bundled::reorder(dst, src, tmp, 0, 0,
                         {Loop{groups * n, image, channels * pixels}, Loop{whole, pixels * c0, c0 * pixels},
                          Loop{pixels, c0, 1}, Loop{c0, 1, pixels}},
                         at);
        bundled::reorder(
            dst, src, tmp, whole * pixels * c0, whole * c0 * pixels,
            {Loop{groups * n, image, channels * pixels}, Loop{pixels, c0, 1}, Loop{rest, 1, pixels}}, at);
    } else if constexpr ((Z == Layout::NC1HWC0 && Y == Layout::NCHW) ||
                         (Z == Layout::GNC1HWC0 && Y == Layout::GNCHW)) {
        const int64_t channels = d(at_n + 1), pixels = s(at_n + 2) * s(at_n + 3), c0 = s(at_n + 4);
        const int64_t whole = channels / c0, rest = channels % c0, image = s(at_n + 1) * pixels * c0;
        bundled::reorder(dst, src, tmp, 0, 0,
                         {Loop{groups * n, channels * pixels, image}, Loop{whole, c0 * pixels, pixels * c0},
                          Loop{pixels, 1, c0}, Loop{c0, pixels, 1}},
                         at);
        bundled::reorder(
            dst, src, tmp, whole * c0 * pixels, whole * pixels * c0,
            {Loop{groups * n, channels * pixels, image}, Loop{pixels, 1, c0}, Loop{rest, pixels, 1}}, at);
    } else if constexpr ((Z == Layout::NC1HWC0 || Z == Layout::GNC1HWC0) && Y == Layout::FRACTAL_Z) {
        const int64_t pixels = s(at_n + 1) * s(at_n + 2) * s(at_n + 3), c0 = s(at_n + 4),
                      padded = d(1) * d(2);
        // groups lie as far apart as if they had the padded number of filters
        const int64_t group = pixels * padded * c0;
        bundled::reorder(dst, src, tmp, 0, 0,
                         {Loop{groups, group, group}, Loop{n, c0, pixels * c0}, Loop{pixels, padded * c0, c0},
                          Loop{c0, 1, 1}},
                         at);
        if (grouped)
            bundled::reorder(dst, src, tmp, n * c0, bundled::kZero,
                             {Loop{groups, group, 0}, Loop{padded - n, c0, 0}, Loop{pixels, padded * c0, 0},
                              Loop{c0, 1, 0}},
                             at);
    } else {
        static_assert(Z == Layout::NCDHW && Y == Layout::FRACTAL_Z_3D,
                      "TTRANS between these layouts is not supported");
        const int64_t channels = s(1), depth = s(2), pixels = s(3) * s(4), padded = d(1) * d(2), c0 = d(3);
        const int64_t whole = channels / c0, rest = channels % c0, c1 = (channels + c0 - 1) / c0;
        const int64_t volume = depth * pixels, plane = c1 * pixels * padded * c0;
        bundled::reorder(dst, src, tmp, 0, 0,
                         {Loop{depth, plane, pixels}, Loop{whole, pixels * padded * c0, c0 * volume},
                          Loop{pixels, padded * c0, 1}, Loop{n, c0, channels * volume}, Loop{c0, 1, volume}},
                         at);
        bundled::reorder(dst, src, tmp, whole * pixels * padded * c0, whole * c0 * volume,
                         {Loop{depth, plane, pixels}, Loop{pixels, padded * c0, 1},
                          Loop{n, c0, channels * volume}, Loop{rest, 1, volume}},
                         at);
    }
    return {at};
}

} // namespace pto
