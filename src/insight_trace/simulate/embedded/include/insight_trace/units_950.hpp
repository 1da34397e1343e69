// Copies, loads and ways out in the forms of the 950.
#pragma once

#include "insight_trace/cube.hpp"
#include "insight_trace/nd_copy.hpp"
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

// The bias table is named by a number; bfloat16 becomes float, whatever the word says.
template <class S>
inline void copy_cbuf_to_bt(uint64_t dst, S *src, uint16_t convert, uint16_t pieces, uint16_t length,
                            uint16_t src_gap, uint16_t dst_gap, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    constexpr bool brain = std::is_same_v<S, bfloat16_t>;
    const uint64_t bytes = length * kBiasUnit, widens = brain ? 2 : convert & 1;
    load_table(Space::Bias, reinterpret_cast<S *>(dst), src, pieces, bytes,
               (widens ? 2 * bytes : bytes) + dst_gap * kBiasUnit, bytes + src_gap * 32ull, widens, at);
}

// Rows of global memory, or columns, into columns of boxes. MTE2_NZ_PARA has the rest.
namespace insight_trace {
template <class T>
inline void matrices(T *dst, T *src, uint64_t line_step, uint64_t rows, uint64_t cols, uint64_t matrix_step,
                     bool small, bool by_column, Site at) {
    if (small) not_modelled("a load into boxes of four elements (smallC0)", at);
    const uint64_t values[] = {reinterpret_cast<uint64_t>(dst),
                               reinterpret_cast<uint64_t>(src),
                               line_step,
                               matrix_step,
                               rows,
                               cols,
                               sizeof(T),
                               by_column};
    insight_trace_raw(Raw::Matrices, values, at);
}
template <class T>
inline void load_matrix(Space space, T *dst, T *src, uint64_t row, uint64_t col, uint64_t rows, uint64_t cols,
                        uint64_t src_step, uint64_t dst_step, bool turned, uint64_t half_bytes, Site at) {
    const uint64_t values[] = {uint64_t(space),
                               reinterpret_cast<uint64_t>(dst),
                               reinterpret_cast<uint64_t>(src),
                               row,
                               col,
                               rows,
                               cols,
                               src_step,
                               dst_step,
                               turned,
                               half_bytes};
    insight_trace_raw(Raw::LoadMatrix, values, at);
}
} // namespace insight_trace
#define INSIGHT_TRACE_MATRICES(name, by_column)                                                              \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint8_t, uint64_t line_step, uint8_t, uint16_t rows, uint32_t cols,     \
                     uint64_t matrix_step, bool small, INSIGHT_TRACE_AT) {                                   \
        insight_trace::matrices(dst, src, line_step, rows, cols, matrix_step, small, by_column, at);         \
    }
INSIGHT_TRACE_MATRICES(copy_gm_to_cbuf_multi_nd2nz, false)
INSIGHT_TRACE_MATRICES(copy_gm_to_cbuf_multi_dn2nz, true)
#undef INSIGHT_TRACE_MATRICES
// Rows of boxes in 16, columns in 32 bytes, steps from one column of boxes to the next in 512 bytes.
#define INSIGHT_TRACE_LOAD_MATRIX(name, SPACE)                                                               \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint16_t row, uint16_t col, uint8_t rows, uint8_t cols,                 \
                     uint16_t src_step, uint16_t dst_step, bool turned, INSIGHT_TRACE_AT) {                  \
        insight_trace::load_matrix(insight_trace::Space::SPACE, dst, src, row, col, rows, cols, src_step,    \
                                   dst_step, turned, 2 * sizeof(T), at);                                     \
    }
INSIGHT_TRACE_LOAD_MATRIX(load_cbuf_to_ca, L0A)
INSIGHT_TRACE_LOAD_MATRIX(load_cbuf_to_cb, L0B)
#undef INSIGHT_TRACE_LOAD_MATRIX
#define INSIGHT_TRACE_LOAD_MATRIX(name, SPACE)                                                               \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint16_t row, uint16_t col, uint8_t rows, uint8_t cols,                 \
                     uint16_t src_step, uint16_t dst_step, bool turned, INSIGHT_TRACE_AT) {                  \
        insight_trace::load_matrix(insight_trace::Space::SPACE, dst, src, row, col, rows, cols, src_step,    \
                                   dst_step, turned, 1, at);                                                 \
    }
INSIGHT_TRACE_LOAD_MATRIX(load_cbuf_to_ca_s4, L0A)
INSIGHT_TRACE_LOAD_MATRIX(load_cbuf_to_cb_s4, L0B)
#undef INSIGHT_TRACE_LOAD_MATRIX
// Squares, turned; everything in boxes of 512 bytes, also from one box of a square to the next.
template <class T, class Mode>
inline void load_cbuf_to_cb_transpose(T *dst, T *src, uint16_t first, uint8_t squares, uint16_t step,
                                      uint16_t gap, Mode mode, uint16_t box_gap, uint16_t from_box_gap,
                                      INSIGHT_TRACE_AT) {
    insight_trace::load_boxes(insight_trace::Space::L0B, dst, src, first, squares, step, gap, true,
                              int(mode) == 1, at, box_gap, sizeof(T) == 2 ? 1 : 2, sizeof(T), from_box_gap);
}
// Factors of groups: 16 rows by 2 of them are a box of 32 bytes.
#define INSIGHT_TRACE_LOAD_SCALES(name, SPACE)                                                               \
    inline void name(uint64_t dst, void *src, uint16_t row, uint16_t col, uint8_t rows, uint8_t cols,        \
                     uint16_t src_step, uint16_t dst_step, INSIGHT_TRACE_AT) {                               \
        const uint64_t values[] = {uint64_t(insight_trace::Space::SPACE),                                    \
                                   dst,                                                                      \
                                   reinterpret_cast<uint64_t>(src),                                          \
                                   row,                                                                      \
                                   col,                                                                      \
                                   rows,                                                                     \
                                   cols,                                                                     \
                                   src_step,                                                                 \
                                   dst_step};                                                                \
        insight_trace_raw(insight_trace::Raw::LoadScales, values, at);                                       \
    }
INSIGHT_TRACE_LOAD_SCALES(load_cbuf_to_ca_mx, ScaleLeft)
INSIGHT_TRACE_LOAD_SCALES(load_cbuf_to_cb_mx, ScaleRight)
#undef INSIGHT_TRACE_LOAD_SCALES
template <class C, class A, class B>
inline void mad_mx(C *acc, A *left, B *right, uint16_t m, uint16_t k, uint16_t n, uint8_t unit_flag,
                   bool no_row, bool from_bias, bool from_zero, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    const uint64_t values[] = {reinterpret_cast<uint64_t>(acc),
                               reinterpret_cast<uint64_t>(left),
                               reinterpret_cast<uint64_t>(right),
                               m,
                               k,
                               n,
                               uint64_t(type_of<A>()) | uint64_t(type_of<B>()) << 8,
                               (unit_flag & kUnitFlagBits) | (no_row ? kNoRow : 0) | kScaled |
                                   (from_bias ? kFromBias : 0) | (from_zero ? kFromZero : 0)};
    insight_trace_raw(Raw::Multiply, values, at);
}

// The way out of the accumulator, with all that it can do on the way; what is refused has no published
// meaning.
namespace insight_trace {
inline uint64_t way_out_first(uint16_t cols, uint16_t rows, uint32_t to_stride) {
    return uint64_t(cols & 0xfff) << 4 | uint64_t(rows) << 16 | uint64_t(to_stride) << 32;
}
inline uint64_t way_out_second(uint16_t from_stride, uint8_t clip, uint8_t unit_flag, uint64_t mode,
                               uint8_t relu, bool splits, bool to_rows, bool refused, bool to_columns,
                               Site at) {
    if (clip || refused) not_modelled("a form of the fixpipe beyond scales, relu and layouts", at);
    return uint64_t(from_stride) | (mode >> 5 & 1) << 29 | uint64_t(unit_flag & 3) << 32 | (mode & 31) << 34 |
           uint64_t(relu & 7) << 39 | uint64_t(splits) << 42 | uint64_t(to_rows) << 43 |
           uint64_t(to_columns) << 62;
}
} // namespace insight_trace
#define INSIGHT_TRACE_WAY_OUT(name, SPACE)                                                                   \
    template <class D, class S, class Post>                                                                  \
    inline void name(D *dst, S *acc, uint8_t, uint16_t cols, uint16_t rows, uint32_t to_stride,              \
                     uint16_t from_stride, uint8_t, uint8_t clip, uint8_t unit_flag, uint64_t mode,          \
                     uint8_t relu, bool splits, bool to_rows, Post post, uint8_t relu_post, bool clip_post,  \
                     bool loops, uint8_t with, bool antiquant, bool merges, bool pads, bool winograd,        \
                     bool spreads, bool to_columns, INSIGHT_TRACE_AT) {                                      \
        using namespace insight_trace;                                                                       \
        const bool refused = uint64_t(post) || relu_post || clip_post || loops || with || antiquant ||       \
                             merges || pads || winograd || spreads;                                          \
        way_out(Space::SPACE, dst, acc, way_out_first(cols, rows, to_stride),                                \
                way_out_second(from_stride, clip, unit_flag, mode, relu, splits, to_rows, refused,           \
                               to_columns, at),                                                              \
                at);                                                                                         \
    }
INSIGHT_TRACE_WAY_OUT(copy_matrix_cc_to_cbuf, L1)
INSIGHT_TRACE_WAY_OUT(copy_matrix_cc_to_gm, GM)
#undef INSIGHT_TRACE_WAY_OUT
template <class D, class S, class Post>
inline void copy_matrix_cc_to_ub(D *dst, S *acc, uint8_t, uint16_t cols, uint16_t rows, uint32_t to_stride,
                                 uint16_t from_stride, uint8_t both, bool second, uint8_t clip,
                                 uint8_t unit_flag, uint64_t mode, uint8_t relu, bool splits, bool to_rows,
                                 Post post, uint8_t relu_post, bool clip_post, bool loops, uint8_t with,
                                 bool antiquant, bool merges, bool pads, bool winograd, bool spreads,
                                 bool to_columns, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    const bool refused = uint64_t(post) || relu_post || clip_post || loops || with || antiquant || merges ||
                         pads || winograd || spreads;
    way_out(
        Space::UB, dst, acc, way_out_first(cols, rows, to_stride),
        way_out_second(from_stride, clip, unit_flag, mode, relu, splits, to_rows, refused, to_columns, at),
        at,
        both == 1   ? kSplitRows
        : both == 2 ? kSplitColumns
        : second    ? kSecondCore
                    : 0);
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

// Of the scalar unit and of threads, in global memory: what was there before.
#define INSIGHT_TRACE_ATOMIC(name, result)                                                                   \
    template <class T> inline T name(T *place, std::common_type_t<T> value, INSIGHT_TRACE_AT) {              \
        using namespace insight_trace;                                                                       \
        const T old = bits_value<T>(INSIGHT_TRACE_CALL(LoadDev, place, sizeof(T), 0));                       \
        const T made = result;                                                                               \
        if (value_bits(made) != value_bits(old))                                                             \
            INSIGHT_TRACE_CALL(StoreDev, place, sizeof(T), value_bits(made));                                \
        return old;                                                                                          \
    }
INSIGHT_TRACE_ATOMIC(atomicAdd, T(old + value))
INSIGHT_TRACE_ATOMIC(atomicMax, old < value ? value : old)
INSIGHT_TRACE_ATOMIC(atomicMin, value < old ? value : old)
INSIGHT_TRACE_ATOMIC(atomicSub, T(old - value))
INSIGHT_TRACE_ATOMIC(atomicExch, value)
INSIGHT_TRACE_ATOMIC(atomicAnd, T(old &value))
INSIGHT_TRACE_ATOMIC(atomicOr, T(old | value))
INSIGHT_TRACE_ATOMIC(atomicXOr, T(old ^ value))
INSIGHT_TRACE_ATOMIC(atomicInc, old >= value ? T(0) : T(old + 1)) // up to a number and round again
INSIGHT_TRACE_ATOMIC(atomicDec, old == 0 || old > value ? value : T(old - 1)) // and down again
#undef INSIGHT_TRACE_ATOMIC
template <class T>
inline T atomicCAS(T *place, std::common_type_t<T> compare, std::common_type_t<T> value, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    const T old = bits_value<T>(INSIGHT_TRACE_CALL(LoadDev, place, sizeof(T), 0));
    if (old == compare && value_bits(old) != value_bits(value))
        INSIGHT_TRACE_CALL(StoreDev, place, sizeof(T), value_bits(value));
    return old;
}
