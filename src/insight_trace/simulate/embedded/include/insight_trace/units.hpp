// Instructions of the vector and the cube unit that kernels issue themselves, under the names of the device
// compiler. Steps between blocks and between repeats are in blocks of 32 bytes.
#pragma once

#include "insight_trace/raw.hpp"
#include "pto/common/fixpipe.hpp"
#include "pto/common/pto_tile.hpp"

enum Order_t { VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };
enum addr_cal_mode_t : uint8_t {};
enum pad_t { PAD_NONE };
#define __bf16 bfloat16_t

namespace insight_trace {

template <class T> constexpr Type unit_type() { return pto::detail::type_of<T>(); }

// A number as the bits of an element.
template <class T, class V> uint64_t number_bits(V value) {
    return pto::detail::value_bits(static_cast<T>(value));
}

struct VectorSteps {
    uint64_t blocks[3] = {1, 1, 1}, repeats[3] = {8, 8, 8};
};

template <class D, class S>
inline void raw_vector(RawVector what, D *dst, S *src0, uint64_t src1, uint64_t repeats,
                       const VectorSteps &steps, Site at) {
    const VectorMask &mask = vector_mask();
    const uint64_t values[] = {uint64_t(what),
                               uint64_t(unit_type<S>()),
                               uint64_t(unit_type<D>()),
                               reinterpret_cast<uint64_t>(dst),
                               reinterpret_cast<uint64_t>(src0),
                               src1,
                               repeats,
                               steps.blocks[0],
                               steps.blocks[1],
                               steps.blocks[2],
                               steps.repeats[0],
                               steps.repeats[1],
                               steps.repeats[2],
                               mask.high,
                               mask.low,
                               mask.counts};
    insight_trace_raw(Raw::Vector, values, at);
}

inline void not_modelled(const char *what, Site at) {
    insight_trace_intrinsic(Intrinsic::Unsupported, reinterpret_cast<uint64_t>(what), 0, 0, at);
}

} // namespace insight_trace

#define INSIGHT_TRACE_OF_TWO(name, what)                                                                     \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src0, T *src1, uint8_t repeats, uint8_t dst_block, uint8_t src0_block,       \
                     uint8_t src1_block, uint8_t dst_repeat, uint8_t src0_repeat, uint8_t src1_repeat,       \
                     INSIGHT_TRACE_AT) {                                                                     \
        insight_trace::raw_vector(                                                                           \
            insight_trace::RawVector::what, dst, src0, reinterpret_cast<uint64_t>(src1), repeats,            \
            {{dst_block, src0_block, src1_block}, {dst_repeat, src0_repeat, src1_repeat}}, at);              \
    }
INSIGHT_TRACE_OF_TWO(vadd, Add)
INSIGHT_TRACE_OF_TWO(vsub, Sub)
INSIGHT_TRACE_OF_TWO(vmul, Mul)
INSIGHT_TRACE_OF_TWO(vdiv, Div)
INSIGHT_TRACE_OF_TWO(vmax, Max)
INSIGHT_TRACE_OF_TWO(vmin, Min)
INSIGHT_TRACE_OF_TWO(vand, And)
INSIGHT_TRACE_OF_TWO(vor, Or)
#undef INSIGHT_TRACE_OF_TWO

#define INSIGHT_TRACE_WITH_NUMBER(name, what)                                                                \
    template <class T, class V>                                                                              \
    inline void name(T *dst, T *src, V value, uint8_t repeats, uint16_t dst_block, uint16_t src_block,       \
                     uint16_t dst_repeat, uint16_t src_repeat, INSIGHT_TRACE_AT) {                           \
        insight_trace::raw_vector(insight_trace::RawVector::what, dst, src,                                  \
                                  insight_trace::number_bits<T>(value), repeats,                             \
                                  {{dst_block, src_block, 0}, {dst_repeat, src_repeat, 0}}, at);             \
    }
INSIGHT_TRACE_WITH_NUMBER(vadds, AddS)
INSIGHT_TRACE_WITH_NUMBER(vmuls, MulS)
INSIGHT_TRACE_WITH_NUMBER(vmaxs, MaxS)
INSIGHT_TRACE_WITH_NUMBER(vmins, MinS)
#undef INSIGHT_TRACE_WITH_NUMBER

#define INSIGHT_TRACE_OF_ONE(name, what, To, From)                                                           \
    inline void name(To *dst, From *src, uint8_t repeats, uint16_t dst_block, uint16_t src_block,            \
                     uint16_t dst_repeat, uint16_t src_repeat, INSIGHT_TRACE_AT) {                           \
        insight_trace::raw_vector(insight_trace::RawVector::what, dst, src, 0, repeats,                      \
                                  {{dst_block, src_block, 0}, {dst_repeat, src_repeat, 0}}, at);             \
    }
template <class T>
INSIGHT_TRACE_OF_ONE(vexp, Exp, T, T)
template <class T>
INSIGHT_TRACE_OF_ONE(vln, Ln, T, T)
template <class T>
INSIGHT_TRACE_OF_ONE(vabs, Abs, T, T)
template <class T>
INSIGHT_TRACE_OF_ONE(vsqrt, Sqrt, T, T)
template <class T>
INSIGHT_TRACE_OF_ONE(vrsqrt, Rsqrt, T, T)
template <class T>
INSIGHT_TRACE_OF_ONE(vrec, Rec, T, T)
template <class T>
INSIGHT_TRACE_OF_ONE(vrelu, Relu, T, T)
template <class T>
INSIGHT_TRACE_OF_ONE(vnot, Not, T, T)
template <class T>
INSIGHT_TRACE_OF_ONE(vcopy, Copy, T, T)
INSIGHT_TRACE_OF_ONE(vconv_f322f16, Convert, half, float)
    INSIGHT_TRACE_OF_ONE(vconv_f322f16r, Convert, half, float)
        INSIGHT_TRACE_OF_ONE(vconv_f322bf16r, Convert, bfloat16_t, float)
            INSIGHT_TRACE_OF_ONE(vconv_f162f32, Convert, float, half)
                INSIGHT_TRACE_OF_ONE(vconv_bf162f32, Convert, float, bfloat16_t)
#undef INSIGHT_TRACE_OF_ONE

    // A repeat to one element: those of the result lie `dst_repeat` elements apart.
    template <class T>
    inline void vcadd(T *dst, T *src, uint8_t repeats, uint16_t dst_repeat, uint16_t src_block,
                      uint16_t src_repeat, bool = false, INSIGHT_TRACE_AT) {
    insight_trace::raw_vector(insight_trace::RawVector::Sum, dst, src, 0, repeats,
                              {{1, src_block, 0}, {dst_repeat, src_repeat, 0}}, at);
}
#define INSIGHT_TRACE_EXTREME(name, what)                                                                    \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint8_t repeats, uint16_t dst_repeat, uint16_t src_block,               \
                     uint16_t src_repeat, Order_t order, INSIGHT_TRACE_AT) {                                 \
        if (order != ONLY_VALUE) insight_trace::not_modelled(#name " with an index", at);                    \
        insight_trace::raw_vector(insight_trace::RawVector::what, dst, src, 0, repeats,                      \
                                  {{1, src_block, 0}, {dst_repeat, src_repeat, 0}}, at);                     \
    }
INSIGHT_TRACE_EXTREME(vcmax, Largest)
INSIGHT_TRACE_EXTREME(vcmin, Smallest)
#undef INSIGHT_TRACE_EXTREME
// Each block to one element, eight side by side for each repeat.
#define INSIGHT_TRACE_OF_BLOCKS(name, what)                                                                  \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint8_t repeats, uint16_t dst_repeat, uint16_t src_block,               \
                     uint16_t src_repeat, INSIGHT_TRACE_AT) {                                                \
        insight_trace::raw_vector(insight_trace::RawVector::what, dst, src, 0, repeats,                      \
                                  {{1, src_block, 0}, {dst_repeat, src_repeat, 0}}, at);                     \
    }
INSIGHT_TRACE_OF_BLOCKS(vcgadd, SumOfBlock)
INSIGHT_TRACE_OF_BLOCKS(vcgmax, LargestOfBlock)
INSIGHT_TRACE_OF_BLOCKS(vcgmin, SmallestOfBlock)
#undef INSIGHT_TRACE_OF_BLOCKS
template <class T>
inline void vbrcb(T *dst, T *src, uint16_t dst_block, uint16_t dst_repeat, uint8_t repeats,
                  INSIGHT_TRACE_AT) {
    insight_trace::raw_vector(insight_trace::RawVector::Spread, dst, src, 0, repeats,
                              {{dst_block, 1, 0}, {dst_repeat, 1, 0}}, at);
}
template <class T, class V>
inline void vector_dup(T *dst, V value, uint8_t repeats, uint16_t dst_block, uint16_t, uint16_t dst_repeat,
                       uint16_t, INSIGHT_TRACE_AT) {
    insight_trace::raw_vector(insight_trace::RawVector::Fill, dst, dst, insight_trace::number_bits<T>(value),
                              repeats, {{dst_block, 0, 0}, {dst_repeat, 0, 0}}, at);
}

// --- the cube core
namespace insight_trace {
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
template <class T>
inline void load_boxes(Space space, T *dst, T *src, uint16_t first, uint16_t boxes, uint16_t step,
                       uint16_t gap, bool turned, Site at) {
    const uint64_t values[] = {uint64_t(space),
                               reinterpret_cast<uint64_t>(dst),
                               reinterpret_cast<uint64_t>(src),
                               first,
                               boxes,
                               step,
                               gap,
                               turned,
                               sizeof(T)};
    insight_trace_raw(Raw::LoadBoxes, values, at);
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
    }
INSIGHT_TRACE_TO_BOXES(copy_gm_to_cbuf_multi_nd2nz_b8, 1)
INSIGHT_TRACE_TO_BOXES(copy_gm_to_cbuf_multi_nd2nz_b16, 2)
INSIGHT_TRACE_TO_BOXES(copy_gm_to_cbuf_multi_nd2nz_b32s, 4)
#undef INSIGHT_TRACE_TO_BOXES

// Boxes of 512 bytes: `step` from one to the next in L1, `gap` behind each in L0.
template <class T>
inline void load_cbuf_to_ca(T *dst, T *src, uint16_t first, uint8_t boxes, uint16_t step, uint16_t gap,
                            uint8_t, bool turned, addr_cal_mode_t, INSIGHT_TRACE_AT) {
    insight_trace::load_boxes(insight_trace::Space::L0A, dst, src, first, boxes, step, gap, turned, at);
}
template <class T>
inline void load_cbuf_to_cb(T *dst, T *src, uint16_t first, uint8_t boxes, uint16_t step, uint16_t gap,
                            uint8_t, bool turned, addr_cal_mode_t, INSIGHT_TRACE_AT) {
    insight_trace::load_boxes(insight_trace::Space::L0B, dst, src, first, boxes, step, gap, turned, at);
}
template <class T>
inline void load_cbuf_to_cb_transpose(T *dst, T *src, uint16_t first, uint8_t boxes, uint16_t step,
                                      uint16_t gap, addr_cal_mode_t, uint16_t, INSIGHT_TRACE_AT) {
    insight_trace::load_boxes(insight_trace::Space::L0B, dst, src, first, boxes, step, gap, true, at);
}

template <class C, class A>
inline void mad(C *acc, A *left, A *right, uint16_t m, uint16_t k, uint16_t n, uint8_t unit_flag, bool,
                bool from_bias, bool from_zero, INSIGHT_TRACE_AT) {
    if (unit_flag || from_bias) insight_trace::not_modelled("mad with a unit flag or a bias", at);
    const uint64_t values[] = {reinterpret_cast<uint64_t>(acc),
                               reinterpret_cast<uint64_t>(left),
                               reinterpret_cast<uint64_t>(right),
                               m,
                               k,
                               n,
                               uint64_t(insight_trace::unit_type<A>()),
                               !from_zero};
    insight_trace_raw(insight_trace::Raw::Multiply, values, at);
}

// How the fixpipe puts matrices apart: one matrix is all that a store of a kernel's own has here.
inline void set_nd_para(uint64_t matrices, INSIGHT_TRACE_AT) {
    if ((matrices & 0xffff) > 1) insight_trace::not_modelled("set_nd_para for several matrices", at);
}
inline void set_padding(uint64_t) {} // of loads that pad images
template <class D, class S>
inline void copy_matrix_cc_to_gm(D *dst, S *acc, uint8_t, uint16_t cols, uint16_t rows, uint32_t to_row,
                                 uint16_t acc_rows, uint8_t unit_flag, int64_t quantises, uint8_t relu,
                                 bool splits, bool to_rows, INSIGHT_TRACE_AT) {
    const bool plain = quantises == NoQuant || quantises == F322F16 || quantises == F322BF16;
    if (unit_flag || !plain || splits || !to_rows)
        insight_trace::not_modelled("copy_matrix_cc_to_gm but for plain rows", at);
    const uint64_t values[] = {reinterpret_cast<uint64_t>(dst),
                               reinterpret_cast<uint64_t>(acc),
                               cols,
                               rows,
                               to_row,
                               acc_rows,
                               uint64_t(insight_trace::unit_type<D>()),
                               relu};
    insight_trace_raw(insight_trace::Raw::StoreAcc, values, at);
}
