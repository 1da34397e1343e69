// Instructions of the cube core under the names of the device compiler. Each is spelled out, or takes the
// words that the hardware has. Boxes have 512 bytes.
#pragma once

#include "insight_trace/quant_modes.hpp"
#include "insight_trace/raw.hpp"

namespace __cce_scalar {
enum addr_cal_mode_t : uint8_t { inc = 0, dec = 1 };
}
using __cce_scalar::addr_cal_mode_t;
enum pad_t {
    PAD_NONE,
    PAD_MODE1,
    PAD_MODE2,
    PAD_MODE3,
    PAD_MODE4,
    PAD_MODE5,
    PAD_MODE6,
    PAD_MODE7,
    PAD_MODE8
};

namespace insight_trace {

// `pipe`: whose instructions read it. A later write waits for them there.
inline void set_register(Spr which, uint64_t word, PipeId pipe, Site at) {
    insight_trace_intrinsic(Intrinsic::SetSpr, uint64_t(which), word, uint64_t(pipe), at);
}

template <class T>
inline void to_boxes(T *dst, T *src, uint16_t matrices, uint16_t rows, uint16_t cols, uint64_t from_matrix,
                     uint64_t from_row, uint16_t to_column, uint16_t to_row, uint64_t to_matrix,
                     uint64_t bytes, Site at) {
    const uint64_t values[] = {reinterpret_cast<uint64_t>(dst),
                               reinterpret_cast<uint64_t>(src),
                               matrices,
                               rows,
                               cols,
                               from_matrix,
                               from_row,
                               to_column,
                               to_row,
                               to_matrix,
                               bytes};
    insight_trace_raw(Raw::ToBoxes, values, at);
}
// `turned` in squares: one box of halves, two of bytes or of words, four of half bytes (whose size is 0).
// `first`, `step` and the gaps are in boxes.
template <class T>
inline void load_boxes(Space space, T *dst, T *src, uint32_t first, uint16_t boxes, uint32_t step,
                       uint16_t gap, bool turned, bool down, Site at, uint16_t box_gap = 0,
                       uint64_t of_square = 1, uint64_t size = sizeof(T), uint16_t from_box_gap = 0) {
    const uint64_t values[] = {uint64_t(space),
                               reinterpret_cast<uint64_t>(dst),
                               reinterpret_cast<uint64_t>(src),
                               first,
                               boxes,
                               step,
                               gap,
                               turned,
                               size,
                               down,
                               box_gap,
                               of_square,
                               from_box_gap};
    insight_trace_raw(Raw::LoadBoxes, values, at);
}
template <class T>
inline void load_image(Space space, T *dst, T *src, uint64_t steps, uint64_t window, Site at) {
    const uint64_t values[] = {
        uint64_t(space), reinterpret_cast<uint64_t>(dst), reinterpret_cast<uint64_t>(src), steps, window,
        sizeof(T)};
    insight_trace_raw(Raw::LoadImage, values, at);
}
template <class D, class S>
inline void load_table(Space space, D *dst, S *src, uint64_t pieces, uint64_t bytes, uint64_t dst_step,
                       uint64_t src_step, uint64_t widens, Site at) {
    const uint64_t values[] = {uint64_t(space),
                               reinterpret_cast<uint64_t>(dst),
                               reinterpret_cast<uint64_t>(src),
                               pieces,
                               bytes,
                               dst_step,
                               src_step,
                               widens};
    insight_trace_raw(Raw::LoadTable, values, at);
}
template <class D, class S>
inline void way_out(Space space, D *dst, S *acc, uint64_t first, uint64_t second, Site at,
                    uint64_t cores = 0) {
    const uint64_t values[] = {
        uint64_t(space), reinterpret_cast<uint64_t>(dst), reinterpret_cast<uint64_t>(acc), first,
        second,          uint64_t(type_of<D>()),          uint64_t(type_of<S>()),          cores};
    insight_trace_raw(Raw::StoreAcc, values, at);
}

} // namespace insight_trace

// Rows of global memory into columns of boxes: strides of the source in elements, of the result in blocks.
#define INSIGHT_TRACE_TO_BOXES(name, bytes)                                                                  \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint8_t, uint16_t matrices, uint16_t rows, uint16_t cols,               \
                     uint16_t from_matrix, uint16_t from_row, uint16_t to_column, uint16_t to_row,           \
                     uint16_t to_matrix, INSIGHT_TRACE_AT) {                                                 \
        insight_trace::to_boxes(dst, src, matrices, rows, cols, from_matrix, from_row, to_column, to_row,    \
                                to_matrix, bytes, at);                                                       \
    }                                                                                                        \
    template <class T> inline void name(T *dst, T *src, uint64_t a, uint64_t b, INSIGHT_TRACE_AT) {          \
        using insight_trace::field;                                                                          \
        insight_trace::to_boxes(dst, src, field(a, 4, 12), field(a, 16, 16), field(a, 32, 16),               \
                                field(a, 48, 16), field(b, 0, 16), field(b, 16, 16), field(b, 32, 16),       \
                                field(b, 48, 16), bytes, at);                                                \
    }
INSIGHT_TRACE_TO_BOXES(copy_gm_to_cbuf_multi_nd2nz_b8, 1)
INSIGHT_TRACE_TO_BOXES(copy_gm_to_cbuf_multi_nd2nz_b16, 2)
INSIGHT_TRACE_TO_BOXES(copy_gm_to_cbuf_multi_nd2nz_b32s, 4)
#undef INSIGHT_TRACE_TO_BOXES

#if !defined(INSIGHT_TRACE_LIBRARY) ||                                                                       \
    !defined(PTO_NPU_ARCH_A5) // else in the form of the 950 (units_950.hpp)
// `step` from one box to the next in L1, `gap` behind each in L0.
#define INSIGHT_TRACE_LOAD_BOXES(name, SPACE)                                                                \
    template <class T, class Mode>                                                                           \
    inline void name(T *dst, T *src, uint16_t first, uint8_t boxes, uint16_t step, uint16_t gap, uint8_t,    \
                     bool turned, Mode mode, INSIGHT_TRACE_AT) {                                             \
        insight_trace::load_boxes(insight_trace::Space::SPACE, dst, src, first, boxes, step, gap, turned,    \
                                  int(mode) == 1, at);                                                       \
    }                                                                                                        \
    template <class T> inline void name(T *dst, T *src, uint64_t word, bool turned, INSIGHT_TRACE_AT) {      \
        using insight_trace::field;                                                                          \
        insight_trace::load_boxes(insight_trace::Space::SPACE, dst, src, field(word, 0, 16),                 \
                                  field(word, 16, 8), field(word, 24, 16), field(word, 44, 16), turned,      \
                                  false, at);                                                                \
    }                                                                                                        \
    template <class T, class Mode>                                                                           \
    inline void name##_transpose(T *dst, T *src, uint16_t first, uint8_t squares, uint16_t step,             \
                                 uint16_t gap, Mode mode, uint16_t box_gap, INSIGHT_TRACE_AT) {              \
        constexpr uint32_t boxes = sizeof(T) == 2 ? 1 : 2;                                                   \
        insight_trace::load_boxes(insight_trace::Space::SPACE, dst, src, first *boxes, squares, step *boxes, \
                                  gap, true, int(mode) == 1, at, box_gap, boxes);                            \
    }
INSIGHT_TRACE_LOAD_BOXES(load_cbuf_to_ca, L0A)
INSIGHT_TRACE_LOAD_BOXES(load_cbuf_to_cb, L0B)
#undef INSIGHT_TRACE_LOAD_BOXES
#if !defined(PTO_NPU_ARCH_A5)
// Integers of four bits, two in a byte, the first in its low half.
#define INSIGHT_TRACE_LOAD_HALF_BYTES(name, SPACE)                                                           \
    template <class Mode>                                                                                    \
    inline void name(void *dst, void *src, uint16_t first, uint8_t boxes, uint16_t step, uint16_t gap,       \
                     uint8_t, bool turned, Mode mode, INSIGHT_TRACE_AT) {                                    \
        insight_trace::load_boxes(insight_trace::Space::SPACE, static_cast<uint8_t *>(dst),                  \
                                  static_cast<uint8_t *>(src), first, boxes, step, gap, turned,              \
                                  int(mode) == 1, at, 0, 1, 0);                                              \
    }
INSIGHT_TRACE_LOAD_HALF_BYTES(load_cbuf_to_ca_s4, L0A)
INSIGHT_TRACE_LOAD_HALF_BYTES(load_cbuf_to_cb_s4, L0B)
#undef INSIGHT_TRACE_LOAD_HALF_BYTES
template <class Mode>
inline void load_cbuf_to_cb_transpose_s4(void *dst, void *src, uint16_t first, uint8_t squares, uint16_t step,
                                         uint16_t gap, Mode mode, uint16_t box_gap, INSIGHT_TRACE_AT) {
    insight_trace::load_boxes(insight_trace::Space::L0B, static_cast<uint8_t *>(dst),
                              static_cast<uint8_t *>(src), first * 4u, squares, step * 4u, gap, true,
                              int(mode) == 1, at, box_gap, 4, 0);
}
#endif
#endif

#if !defined(PTO_NPU_ARCH_A5)
// Boxes of global memory into L1: `step` from one to the next there, `gap` behind each in L1.
template <class T, class Mode>
inline void load_gm_to_cbuf(T *dst, T *src, uint16_t first, uint8_t boxes, uint16_t step, uint16_t gap,
                            uint8_t, Mode mode, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    constexpr int64_t kBox = 512;
    raw_copy(Space::L1, dst, Space::GM, reinterpret_cast<uint8_t *>(src) + first * kBox, boxes, kBox,
             uint64_t((gap + 1) * kBox), uint64_t((int(mode) == 1 ? -1 : 1) * step * kBox), at);
}
// Boxes of bytes, and which two of four elements along k each pair of them goes with: a quarter as many
// bytes.
inline void load_cbuf_to_cb_sp(int8_t *dst, int8_t *both, uint16_t first, uint8_t boxes, INSIGHT_TRACE_AT) {
    const uint64_t values[] = {reinterpret_cast<uint64_t>(dst), reinterpret_cast<uint64_t>(both), first,
                               boxes};
    insight_trace_raw(insight_trace::Raw::LoadSparse, values, at);
}
#endif

// --- images: a window goes over one, and every place of it is a row
inline void set_fmatrix(uint64_t word, INSIGHT_TRACE_AT) {
    insight_trace::set_register(insight_trace::Spr::FMATRIX, word, insight_trace::PipeId::MTE1, at);
}
inline void set_fmatrix_b(uint64_t word, INSIGHT_TRACE_AT) {
    insight_trace::set_register(insight_trace::Spr::FMATRIX_B, word, insight_trace::PipeId::MTE1, at);
}
inline void set_l3d_rpt(uint64_t word, INSIGHT_TRACE_AT) {
    insight_trace::set_register(insight_trace::Spr::L3D_RPT, word, insight_trace::PipeId::MTE1, at);
}
inline void set_padding(uint64_t value, INSIGHT_TRACE_AT) {
    insight_trace::set_register(insight_trace::Spr::PADDING, value, insight_trace::PipeId::MTE1, at);
}
#define INSIGHT_TRACE_LOAD_IMAGE(name, SPACE)                                                                \
    template <class T> inline void name(T *dst, T *src, uint64_t steps, uint64_t window, INSIGHT_TRACE_AT) { \
        insight_trace::load_image(insight_trace::Space::SPACE, dst, src, steps, window, at);                 \
    }                                                                                                        \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint16_t k_step, uint16_t m_step, uint16_t k_first, uint16_t m_first,   \
                     uint8_t stride_w, uint8_t stride_h, uint8_t filter_w, uint8_t filter_h,                 \
                     uint8_t dilation_w, uint8_t dilation_h, bool wide, bool high, bool turned,              \
                     bool right_map, uint16_t channels, INSIGHT_TRACE_AT) {                                  \
        const uint64_t steps =                                                                               \
            uint64_t(k_step) | uint64_t(m_step) << 16 | uint64_t(k_first) << 32 | uint64_t(m_first) << 48;   \
        const uint64_t window = uint64_t(stride_w & 63) | uint64_t(stride_h & 63) << 6 |                     \
                                uint64_t(filter_w) << 12 | uint64_t(filter_h) << 20 |                        \
                                uint64_t(dilation_w) << 28 | uint64_t(dilation_h) << 36 |                    \
                                uint64_t(wide) << 44 | uint64_t(high) << 45 | uint64_t(turned) << 46 |       \
                                uint64_t(right_map) << 47 | uint64_t(channels) << 48;                        \
        insight_trace::load_image(insight_trace::Space::SPACE, dst, src, steps, window, at);                 \
    }
INSIGHT_TRACE_LOAD_IMAGE(img2colv2_cbuf_to_ca, L0A)
INSIGHT_TRACE_LOAD_IMAGE(img2colv2_cbuf_to_cb, L0B)
#undef INSIGHT_TRACE_LOAD_IMAGE
#if !defined(PTO_NPU_ARCH_A5)
// Of four bits: what is even along k is an image of bytes with half as many.
inline void img2colv2_cbuf_to_ca_s4(void *dst, void *src, uint16_t k_step, uint16_t m_step, uint16_t k_first,
                                    uint16_t m_first, uint8_t stride_w, uint8_t stride_h, uint8_t filter_w,
                                    uint8_t filter_h, uint8_t dilation_w, uint8_t dilation_h, bool wide,
                                    bool high, bool turned, bool right_map, uint16_t channels,
                                    INSIGHT_TRACE_AT) {
    if (turned || (k_step | k_first | channels) % 2)
        insight_trace::not_modelled("img2colv2_cbuf_to_ca_s4 that turns, or goes by odd numbers along k", at);
    img2colv2_cbuf_to_ca(static_cast<uint8_t *>(dst), static_cast<uint8_t *>(src), uint16_t(k_step / 2),
                         m_step, uint16_t(k_first / 2), m_first, stride_w, stride_h, filter_w, filter_h,
                         dilation_w, dilation_h, wide, high, turned, right_map, uint16_t(channels / 2), at);
}
#endif

// --- products. The address of a bias stands in the high half of the accumulator's. What the eighth argument
// says depends on the chip.
namespace insight_trace {
#if defined(PTO_NPU_ARCH_A5)
constexpr uint64_t kEighth = kNoRow;
#else
constexpr uint64_t kEighth = kWholeSteps;
#endif
} // namespace insight_trace
template <class C, class A, class B>
inline void mad(C *acc, A *left, B *right, uint16_t m, uint16_t k, uint16_t n, uint8_t unit_flag,
                bool whole_steps, bool from_bias, bool from_zero, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    const uint64_t values[] = {reinterpret_cast<uint64_t>(acc),
                               reinterpret_cast<uint64_t>(left),
                               reinterpret_cast<uint64_t>(right),
                               m,
                               k,
                               n,
                               uint64_t(type_of<A>()) | uint64_t(type_of<B>()) << 8,
                               (unit_flag & kUnitFlagBits) | (whole_steps ? kEighth : 0) |
                                   (from_bias ? kFromBias : 0) | (from_zero ? kFromZero : 0)};
    insight_trace_raw(Raw::Multiply, values, at);
}
template <class C, class A, class B>
inline void mad(C *acc, A *left, B *right, uint64_t word, INSIGHT_TRACE_AT) {
    using insight_trace::field;
    mad(acc, left, right, field(word, 0, 12), field(word, 12, 12), field(word, 24, 12), field(word, 55, 2),
        field(word, 58, 1), field(word, 62, 1), field(word, 63, 1), at);
}
#if !defined(PTO_NPU_ARCH_A5)
// Integers of four bits, two in a byte along k.
template <class C>
inline void mad_s4(C *acc, void *left, void *right, uint16_t m, uint16_t k, uint16_t n, uint8_t unit_flag,
                   bool, bool from_bias, bool from_zero, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    const uint64_t values[] = {reinterpret_cast<uint64_t>(acc),
                               reinterpret_cast<uint64_t>(left),
                               reinterpret_cast<uint64_t>(right),
                               m,
                               k,
                               n,
                               uint64_t(Type::I4) | uint64_t(Type::I4) << 8,
                               (unit_flag & kUnitFlagBits) | (from_bias ? kFromBias : 0) |
                                   (from_zero ? kFromZero : 0)};
    insight_trace_raw(Raw::Multiply, values, at);
}
// By bytes of which two of four along k are there; the others of the left side are left out.
inline void mad_sp(int32_t *acc, int8_t *left, int8_t *right, uint16_t m, uint16_t k, uint16_t n,
                   uint8_t unit_flag, bool from_bias, bool from_zero, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    const uint64_t values[] = {reinterpret_cast<uint64_t>(acc),
                               reinterpret_cast<uint64_t>(left),
                               reinterpret_cast<uint64_t>(right),
                               m,
                               k,
                               n,
                               uint64_t(Type::I8) | uint64_t(Type::I8) << 8,
                               (unit_flag & kUnitFlagBits) | kSparse | (from_bias ? kFromBias : 0) |
                                   (from_zero ? kFromZero : 0)};
    insight_trace_raw(Raw::Multiply, values, at);
}
#endif
// Units of the two tables: lengths and the gap in the table, the gap in L1.
namespace insight_trace {
#if defined(PTO_NPU_ARCH_A5)
constexpr uint64_t kBiasUnit = 32, kScaleUnit = 64;
#else
constexpr uint64_t kBiasUnit = 64, kScaleUnit = 128;
#endif
} // namespace insight_trace
// Bias: `convert` makes floats of halves.
template <class D, class S>
inline void copy_cbuf_to_bt(D *dst, S *src, uint16_t convert, uint16_t pieces, uint16_t length,
                            uint16_t src_gap, uint16_t dst_gap, INSIGHT_TRACE_AT) {
    using insight_trace::kBiasUnit;
    const uint64_t bytes = length * kBiasUnit, written = convert & 1 ? 2 * bytes : bytes;
    insight_trace::load_table(insight_trace::Space::Bias, dst, src, pieces, bytes,
                              written + dst_gap * kBiasUnit, bytes + src_gap * 32ull, convert & 1, at);
}
// Scales of the fixpipe.
template <class D, class S>
inline void copy_cbuf_to_fbuf(D *dst, S *src, uint16_t pieces, uint16_t length, uint16_t src_gap,
                              uint16_t dst_gap, INSIGHT_TRACE_AT) {
    using insight_trace::kScaleUnit;
    const uint64_t bytes = length * kScaleUnit;
    insight_trace::load_table(insight_trace::Space::Scaling, dst, src, pieces, bytes,
                              bytes + dst_gap * kScaleUnit, bytes + src_gap * 32ull, false, at);
}

// --- the way out of the accumulator
inline void set_nd_para(uint64_t word, INSIGHT_TRACE_AT) {
    insight_trace::set_register(insight_trace::Spr::ND_PARA, word, insight_trace::PipeId::FIX, at);
}
inline void set_quant_pre(uint64_t word, INSIGHT_TRACE_AT) {
    insight_trace::set_register(insight_trace::Spr::QUANT_PRE, word, insight_trace::PipeId::FIX, at);
}
inline void set_fpc(uint64_t word, INSIGHT_TRACE_AT) {
    insight_trace::set_register(insight_trace::Spr::FPC, word, insight_trace::PipeId::FIX, at);
}
#define INSIGHT_TRACE_WAY_OUT(name, SPACE)                                                                   \
    template <class D, class S>                                                                              \
    inline void name(D *dst, S *acc, uint64_t first, uint64_t second, INSIGHT_TRACE_AT) {                    \
        insight_trace::way_out(insight_trace::Space::SPACE, dst, acc, first, second, at);                    \
    }                                                                                                        \
    template <class D, class S>                                                                              \
    inline void name(D *dst, S *acc, uint8_t, uint16_t cols, uint16_t rows, uint32_t to_stride,              \
                     uint16_t from_stride, uint8_t unit_flag, uint64_t mode, uint8_t relu, bool splits,      \
                     bool to_rows, INSIGHT_TRACE_AT) {                                                       \
        insight_trace::way_out(                                                                              \
            insight_trace::Space::SPACE, dst, acc,                                                           \
            uint64_t(cols & 0xfff) << 4 | uint64_t(rows) << 16 | uint64_t(to_stride) << 32,                  \
            uint64_t(from_stride) | uint64_t(unit_flag & 3) << 32 | (mode & 31) << 34 |                      \
                uint64_t(relu & 7) << 39 | uint64_t(splits) << 42 | uint64_t(to_rows) << 43,                 \
            at);                                                                                             \
    }
INSIGHT_TRACE_WAY_OUT(copy_matrix_cc_to_gm, GM)
INSIGHT_TRACE_WAY_OUT(copy_matrix_cc_to_cbuf, L1)
#undef INSIGHT_TRACE_WAY_OUT
