// Instructions of the vector unit that kernels issue themselves, under the names of the device
// compiler. Steps between blocks and between repeats are in blocks of 32 bytes.
#pragma once

#include "insight_trace/cube.hpp"

enum Order_t { VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };
#define __bf16 bfloat16_t

namespace insight_trace {

// A number as the bits of an element.
template <class T, class V> uint64_t number_bits(V value) { return value_bits(static_cast<T>(value)); }

struct VectorSteps {
    uint64_t blocks[3] = {1, 1, 1}, repeats[3] = {8, 8, 8};
};

template <class D, class S>
inline void raw_vector(RawVector what, D *dst, S *src0, uint64_t src1, uint64_t repeats,
                       const VectorSteps &steps, Site at) {
    const VectorMask &mask = vector_mask();
    const uint64_t values[] = {uint64_t(what),
                               uint64_t(type_of<S>()),
                               uint64_t(type_of<D>()),
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
