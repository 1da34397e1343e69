// The copy of many dimensions of the 950.
#pragma once

#include "insight_trace/raw.hpp"
#include "insight_trace/vector_calls.hpp"

#define INSIGHT_TRACE_ND_SET(name, spr)                                                                      \
    inline void name(uint64_t word, INSIGHT_TRACE_AT) {                                                      \
        insight_trace::set_register(insight_trace::Spr::spr, word, insight_trace::PipeId::MTE2, at);         \
    }
INSIGHT_TRACE_ND_SET(set_pad_cnt_nddma, PAD_CNT_NDDMA)
INSIGHT_TRACE_ND_SET(set_pad_val_nddma, PAD_VAL_NDDMA)
INSIGHT_TRACE_ND_SET(set_loop0_stride_nddma, LOOP0_STRIDE_NDDMA)
INSIGHT_TRACE_ND_SET(set_loop1_stride_nddma, LOOP1_STRIDE_NDDMA)
INSIGHT_TRACE_ND_SET(set_loop2_stride_nddma, LOOP2_STRIDE_NDDMA)
INSIGHT_TRACE_ND_SET(set_loop3_stride_nddma, LOOP3_STRIDE_NDDMA)
INSIGHT_TRACE_ND_SET(set_loop4_stride_nddma, LOOP4_STRIDE_NDDMA)
#undef INSIGHT_TRACE_ND_SET

// Up to five dimensions, the innermost first; their steps and most of their padding are in registers. What
// was loaded before is never kept for the next copy here.
inline void nd_dma_dci() {}
#define INSIGHT_TRACE_ND_COPY(name, size)                                                                    \
    template <class D, class S>                                                                              \
    inline void name(D *dst, S *src, uint8_t, uint32_t count0, uint32_t count1, uint32_t count2,             \
                     uint32_t count3, uint32_t count4, uint8_t before, uint8_t behind, bool constant,        \
                     uint8_t, INSIGHT_TRACE_AT) {                                                            \
        const uint64_t values[] = {reinterpret_cast<uint64_t>(dst),                                          \
                                   reinterpret_cast<uint64_t>(src),                                          \
                                   count0,                                                                   \
                                   count1,                                                                   \
                                   count2,                                                                   \
                                   count3,                                                                   \
                                   count4,                                                                   \
                                   before,                                                                   \
                                   behind,                                                                   \
                                   constant,                                                                 \
                                   size};                                                                    \
        insight_trace_raw(insight_trace::Raw::NdCopy, values, at);                                           \
    }
INSIGHT_TRACE_ND_COPY(nddma_out_to_ub_b8, 1)
INSIGHT_TRACE_ND_COPY(nddma_out_to_ub_b16, 2)
INSIGHT_TRACE_ND_COPY(nddma_out_to_ub_b32, 4)
#undef INSIGHT_TRACE_ND_COPY
