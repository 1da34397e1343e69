// Copies, loads and ways out in the forms of the 950.
#pragma once

#include "insight_trace/cube.hpp"
#include "insight_trace/vector_calls.hpp"

#define INSIGHT_TRACE_SETS(name, spr, pipe)                                                                  \
    inline void name(uint64_t word, INSIGHT_TRACE_AT) {                                                      \
        insight_trace::set_register(insight_trace::Spr::spr, word, insight_trace::PipeId::pipe, at);         \
    }
INSIGHT_TRACE_SETS(set_loop_size_outtoub, LOOP_SIZE_OUTTOUB, MTE2)
INSIGHT_TRACE_SETS(set_loop1_stride_outtoub, LOOP1_STRIDE_OUTTOUB, MTE2)
INSIGHT_TRACE_SETS(set_loop2_stride_outtoub, LOOP2_STRIDE_OUTTOUB, MTE2)
INSIGHT_TRACE_SETS(set_loop_size_ubtoout, LOOP_SIZE_UBTOOUT, MTE3)
INSIGHT_TRACE_SETS(set_loop1_stride_ubtoout, LOOP1_STRIDE_UBTOOUT, MTE3)
INSIGHT_TRACE_SETS(set_loop2_stride_ubtoout, LOOP2_STRIDE_UBTOOUT, MTE3)
INSIGHT_TRACE_SETS(set_loop_size_outtol1, LOOP_SIZE_OUTTOL1, MTE2)
INSIGHT_TRACE_SETS(set_loop1_stride_outtol1, LOOP1_STRIDE_OUTTOL1, MTE2)
INSIGHT_TRACE_SETS(set_loop2_stride_outtol1, LOOP2_STRIDE_OUTTOL1, MTE2)
INSIGHT_TRACE_SETS(set_pad_val_outtol1, PAD_VAL_OUTTOL1, MTE2)
INSIGHT_TRACE_SETS(set_mte2_nz_para, MTE2_NZ_PARA, MTE2)
INSIGHT_TRACE_SETS(set_loop3_para, LOOP3_PARA, FIX)
INSIGHT_TRACE_SETS(set_channel_para, CHANNEL_PARA, FIX)
#undef INSIGHT_TRACE_SETS

// Lengths and gaps in blocks.
template <class D, class S>
inline void copy_ubuf_to_ubuf(D *dst, S *src, uint16_t pieces, uint16_t length, uint16_t src_gap,
                              uint16_t dst_gap, INSIGHT_TRACE_AT) {
    copy_ubuf_to_ubuf(dst, src, uint8_t(0), pieces, length, src_gap, dst_gap, at);
}

inline void set_padding_b(uint64_t value, INSIGHT_TRACE_AT) { set_padding(value, at); }
inline void set_l3d_rpt_b(uint64_t word, INSIGHT_TRACE_AT) { set_l3d_rpt(word, at); }

// --- functions of many threads: they run one after the other
struct insight_trace_thread {
    uint32_t x, y, z;
};
inline thread_local insight_trace_thread threadIdx{0, 0, 0};
#define LAUNCH_BOUND(...)
namespace cce {
struct dim3 {
    uint32_t x = 1, y = 1, z = 1;
};
template <auto function, class... Argument> inline void async_invoke(dim3 threads, Argument... argument) {
    for (threadIdx.z = 0; threadIdx.z < threads.z; ++threadIdx.z)
        for (threadIdx.y = 0; threadIdx.y < threads.y; ++threadIdx.y)
            for (threadIdx.x = 0; threadIdx.x < threads.x; ++threadIdx.x) function(argument...);
}
template <class... Argument> inline void printf(const char *text, Argument...) {
    insight_trace_intrinsic(insight_trace::Intrinsic::Print, reinterpret_cast<uint64_t>(text), 0, 0, {});
}
} // namespace cce

#define INSIGHT_TRACE_ATOMIC(name, result)                                                                   \
    template <class T> inline T name(T *place, std::common_type_t<T> value) {                                \
        const T old = ld_dev(place);                                                                         \
        const T made = result;                                                                               \
        if (insight_trace::value_bits(made) != insight_trace::value_bits(old)) st_dev(made, place);          \
        return old;                                                                                          \
    }
INSIGHT_TRACE_ATOMIC(atomicAdd, T(old + value))
INSIGHT_TRACE_ATOMIC(atomicMax, old < value ? value : old)
INSIGHT_TRACE_ATOMIC(atomicMin, value < old ? value : old)
#undef INSIGHT_TRACE_ATOMIC
