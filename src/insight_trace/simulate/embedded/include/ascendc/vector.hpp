// AscendC's vector calls: with repeats and strides under a mask, or for a number of elements.
#pragma once

#include "ascendc/tensors.hpp"

namespace AscendC {

enum class RoundMode : uint8_t {
    CAST_NONE,
    CAST_RINT,
    CAST_FLOOR,
    CAST_CEIL,
    CAST_ROUND,
    CAST_TRUNC,
    CAST_ODD
};
enum class MaskMode : uint8_t { NORMAL, COUNTER };
enum class ReduceOrder : uint8_t {
    ORDER_VALUE_INDEX,
    ORDER_INDEX_VALUE,
    ORDER_ONLY_VALUE,
    ORDER_ONLY_INDEX,
};
enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
namespace Pattern::Reduce {
struct RA {};
struct AR {};
} // namespace Pattern::Reduce
constexpr uint64_t MASK_PLACEHOLDER = 0;

struct UnaryRepeatParams {
    uint32_t dstBlkStride = 1, srcBlkStride = 1, dstRepStride = 8, srcRepStride = 8;
    UnaryRepeatParams() = default;
    UnaryRepeatParams(uint32_t dst_block, uint32_t src_block, uint32_t dst_repeat, uint32_t src_repeat)
        : dstBlkStride(dst_block), srcBlkStride(src_block), dstRepStride(dst_repeat),
          srcRepStride(src_repeat) {}
};
struct BinaryRepeatParams {
    uint32_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, dstRepStride = 8, src0RepStride = 8,
             src1RepStride = 8;
    BinaryRepeatParams() = default;
    BinaryRepeatParams(uint32_t dst_block, uint32_t src0_block, uint32_t src1_block, uint32_t dst_repeat,
                       uint32_t src0_repeat, uint32_t src1_repeat)
        : dstBlkStride(dst_block), src0BlkStride(src0_block), src1BlkStride(src1_block),
          dstRepStride(dst_repeat), src0RepStride(src0_repeat), src1RepStride(src1_repeat) {}
};
struct BrcbRepeatParams {
    uint32_t dstBlkStride = 1, dstRepStride = 8;
    BrcbRepeatParams() = default;
    BrcbRepeatParams(uint32_t block, uint32_t repeat) : dstBlkStride(block), dstRepStride(repeat) {}
};
struct CopyRepeatParams {
    uint32_t dstStride = 1, srcStride = 1, dstRepeatSize = 8, srcRepeatSize = 8;
};

template <class T, MaskMode = MaskMode::NORMAL>
inline void SetVectorMask(uint64_t high, uint64_t low, INSIGHT_TRACE_AT) {
    set_vector_mask(high, low, at);
}
inline void ResetMask(INSIGHT_TRACE_AT) { set_vector_mask(~0ull, ~0ull, at); }
inline void SetMaskNorm(INSIGHT_TRACE_AT) { set_mask_norm(at); }
inline void SetMaskCount(INSIGHT_TRACE_AT) { set_mask_count(at); }

namespace detail {
using ::insight_trace::VectorRow;
using ::insight_trace::VectorSteps;

// The first `lanes`, where a call sets a mask of its own.
template <bool sets> inline void first_lanes(uint64_t lanes, ::insight_trace::Site at) {
    if constexpr (sets) pto::SetContinuousMask(static_cast<unsigned>(lanes), at);
}
// One call for `count` elements side by side; all lanes are on afterwards.
template <class Body> inline void counted(uint64_t count, ::insight_trace::Site at, Body body) {
    set_mask_count(at);
    set_vector_mask(0, count, at);
    body();
    set_mask_norm(at);
    set_vector_mask(~0ull, ~0ull, at);
}
template <class D, class S>
inline void issue(VectorRow what, const LocalTensor<D> &dst, const LocalTensor<S> &src0, uint64_t src1,
                  uint64_t repeats, const VectorSteps &steps, ::insight_trace::Site at, uint64_t option = 0) {
    ::insight_trace::vector_call(what, dst.GetPhyAddr(), src0.GetPhyAddr(), src1, repeats, steps, option, at);
}
inline VectorSteps steps_of(const BinaryRepeatParams &p) {
    return {{p.dstBlkStride, p.src0BlkStride, p.src1BlkStride},
            {p.dstRepStride, p.src0RepStride, p.src1RepStride}};
}
inline VectorSteps steps_of(const UnaryRepeatParams &p) {
    return {{p.dstBlkStride, p.srcBlkStride, 0}, {p.dstRepStride, p.srcRepStride, 0}};
}
template <class T> uint64_t address_of(const LocalTensor<T> &tensor) {
    return reinterpret_cast<uint64_t>(tensor.GetPhyAddr());
}
// Elements side by side: a result of half the size takes half the blocks.
template <class D, class S> VectorSteps side_by_side() {
    constexpr uint64_t wide = sizeof(D) > sizeof(S) ? sizeof(D) : sizeof(S);
    return {{1, 1, 1}, {8 * sizeof(D) / wide, 8 * sizeof(S) / wide, 8}};
}
} // namespace detail

#define INSIGHT_TRACE_OF_TWO(name, what)                                                                     \
    template <class T, bool sets = true>                                                                     \
    inline void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,      \
                     uint64_t mask, uint8_t repeats, const BinaryRepeatParams &p, INSIGHT_TRACE_AT) {        \
        detail::first_lanes<sets>(mask, at);                                                                 \
        detail::issue(detail::VectorRow::what, dst, src0, detail::address_of(src1), repeats,                 \
                      detail::steps_of(p), at);                                                              \
    }                                                                                                        \
    template <class T>                                                                                       \
    inline void name(const LocalTensor<T> &dst, const LocalTensor<T> &src0, const LocalTensor<T> &src1,      \
                     uint32_t count, INSIGHT_TRACE_AT) {                                                     \
        detail::counted(count, at, [&] {                                                                     \
            detail::issue(detail::VectorRow::what, dst, src0, detail::address_of(src1), 1, {}, at);          \
        });                                                                                                  \
    }
INSIGHT_TRACE_OF_TWO(Add, vadd)
INSIGHT_TRACE_OF_TWO(Sub, vsub)
INSIGHT_TRACE_OF_TWO(Mul, vmul)
INSIGHT_TRACE_OF_TWO(Div, vdiv)
INSIGHT_TRACE_OF_TWO(Max, vmax)
INSIGHT_TRACE_OF_TWO(Min, vmin)
#undef INSIGHT_TRACE_OF_TWO

#define INSIGHT_TRACE_WITH_NUMBER(name, what)                                                                \
    template <class T, bool sets = true, class V>                                                            \
    inline void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, V value, uint64_t mask,           \
                     uint8_t repeats, const UnaryRepeatParams &p, INSIGHT_TRACE_AT) {                        \
        detail::first_lanes<sets>(mask, at);                                                                 \
        detail::issue(detail::VectorRow::what, dst, src, ::insight_trace::number_bits<T>(value), repeats,    \
                      detail::steps_of(p), at);                                                              \
    }                                                                                                        \
    template <class T, class V>                                                                              \
    inline void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, V value, uint32_t count,          \
                     INSIGHT_TRACE_AT) {                                                                     \
        detail::counted(count, at, [&] {                                                                     \
            detail::issue(detail::VectorRow::what, dst, src, ::insight_trace::number_bits<T>(value), 1, {},  \
                          at);                                                                               \
        });                                                                                                  \
    }
INSIGHT_TRACE_WITH_NUMBER(Adds, vadds)
INSIGHT_TRACE_WITH_NUMBER(Muls, vmuls)
INSIGHT_TRACE_WITH_NUMBER(Maxs, vmaxs)
INSIGHT_TRACE_WITH_NUMBER(Mins, vmins)
#undef INSIGHT_TRACE_WITH_NUMBER

#define INSIGHT_TRACE_OF_ONE(name, what)                                                                     \
    template <class T, bool sets = true>                                                                     \
    inline void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask, uint8_t repeats,   \
                     const UnaryRepeatParams &p, INSIGHT_TRACE_AT) {                                         \
        detail::first_lanes<sets>(mask, at);                                                                 \
        detail::issue(detail::VectorRow::what, dst, src, 0, repeats, detail::steps_of(p), at);               \
    }                                                                                                        \
    template <class T>                                                                                       \
    inline void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count,                   \
                     INSIGHT_TRACE_AT) {                                                                     \
        detail::counted(count, at, [&] { detail::issue(detail::VectorRow::what, dst, src, 0, 1, {}, at); }); \
    }
INSIGHT_TRACE_OF_ONE(Exp, vexp)
INSIGHT_TRACE_OF_ONE(Ln, vln)
INSIGHT_TRACE_OF_ONE(Abs, vabs)
INSIGHT_TRACE_OF_ONE(Sqrt, vsqrt)
INSIGHT_TRACE_OF_ONE(Relu, vrelu)
#undef INSIGHT_TRACE_OF_ONE

namespace detail {
// The conversion of the vector unit between two types with a rounding.
struct CastRow {
    ::insight_trace::VectorRow row;
    ::insight_trace::Type from, to;
    RoundMode mode;
};
template <class D, class S> inline VectorRow cast_row(RoundMode mode, ::insight_trace::Site at) {
    using enum_type = ::insight_trace::Type;
    enum class Rounding { Rint, Away, Floor, Ceil, Trunc, Odd };
    constexpr RoundMode modes[] = {RoundMode::CAST_RINT, RoundMode::CAST_ROUND, RoundMode::CAST_FLOOR,
                                   RoundMode::CAST_CEIL, RoundMode::CAST_TRUNC, RoundMode::CAST_ODD};
#define VECTOR(name, ...)
#define REQUANTISE(name, ...)
#define NARROW(name, ...)
#define CONVERT(name, from, to, rounding)                                                                    \
    {VectorRow::name, enum_type::from, enum_type::to, modes[static_cast<int>(Rounding::rounding)]},
    constexpr CastRow rows[] = {
#include "insight_trace/isa/vector.def"
    };
#undef VECTOR
#undef REQUANTISE
#undef NARROW
#undef CONVERT
    for (const CastRow &one : rows)
        if (one.from == ::insight_trace::unit_type<S>() && one.to == ::insight_trace::unit_type<D>() &&
            (one.mode == mode || (mode == RoundMode::CAST_NONE && one.mode == RoundMode::CAST_RINT)))
            return one.row;
    ::AscendC::detail::not_modelled("Cast between these types with this rounding", at);
    return VectorRow::COUNT;
}
} // namespace detail
template <class D, class S, bool sets = true>
inline void Cast(const LocalTensor<D> &dst, const LocalTensor<S> &src, RoundMode mode, uint64_t mask,
                 uint8_t repeats, const UnaryRepeatParams &p, INSIGHT_TRACE_AT) {
    detail::first_lanes<sets>(mask, at);
    detail::issue(detail::cast_row<D, S>(mode, at), dst, src, 0, repeats, detail::steps_of(p), at);
}
template <class D, class S>
inline void Cast(const LocalTensor<D> &dst, const LocalTensor<S> &src, RoundMode mode, uint32_t count,
                 INSIGHT_TRACE_AT) {
    detail::counted(count, at, [&] {
        detail::issue(detail::cast_row<D, S>(mode, at), dst, src, 0, 1, detail::side_by_side<D, S>(), at);
    });
}
template <class T, bool sets = true, class V>
inline void Duplicate(const LocalTensor<T> &dst, V value, uint64_t mask, uint8_t repeats, uint16_t dst_block,
                      uint8_t dst_repeat, INSIGHT_TRACE_AT) {
    detail::first_lanes<sets>(mask, at);
    detail::issue(detail::VectorRow::vector_dup, dst, dst, ::insight_trace::number_bits<T>(value), repeats,
                  {{dst_block, 0, 0}, {dst_repeat, 0, 0}}, at);
}
template <class T, class V>
inline void Duplicate(const LocalTensor<T> &dst, V value, uint32_t count, INSIGHT_TRACE_AT) {
    detail::counted(count, at, [&] {
        detail::issue(detail::VectorRow::vector_dup, dst, dst, ::insight_trace::number_bits<T>(value), 1, {},
                      at);
    });
}
template <class T, bool sets = true>
inline void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask, uint8_t repeats,
                 const CopyRepeatParams &p, INSIGHT_TRACE_AT) {
    detail::first_lanes<sets>(mask, at);
    detail::issue(detail::VectorRow::vcopy, dst, src, 0, repeats,
                  {{p.dstStride, p.srcStride, 0}, {p.dstRepeatSize, p.srcRepeatSize, 0}}, at);
}
template <class T>
inline void Brcb(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint8_t repeats,
                 const BrcbRepeatParams &p, INSIGHT_TRACE_AT) {
    detail::issue(detail::VectorRow::vbrcb, dst, src, 0, repeats,
                  {{p.dstBlkStride, 1, 0}, {p.dstRepStride, 1, 0}}, at);
}

#define INSIGHT_TRACE_OF_BLOCKS(name, what)                                                                  \
    template <class T, bool sets = true>                                                                     \
    inline void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint8_t repeats, uint64_t mask,   \
                     uint32_t dst_repeat, uint32_t src_block, uint32_t src_repeat, INSIGHT_TRACE_AT) {       \
        detail::first_lanes<sets>(mask, at);                                                                 \
        detail::issue(detail::VectorRow::what, dst, src, 0, repeats,                                         \
                      {{1, src_block, 0}, {dst_repeat, src_repeat, 0}}, at);                                 \
    }
INSIGHT_TRACE_OF_BLOCKS(BlockReduceSum, vcgadd)
INSIGHT_TRACE_OF_BLOCKS(BlockReduceMax, vcgmax)
INSIGHT_TRACE_OF_BLOCKS(BlockReduceMin, vcgmin)
#undef INSIGHT_TRACE_OF_BLOCKS
template <class T, bool sets = true>
inline void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask,
                           uint8_t repeats, uint32_t dst_repeat, uint32_t src_block, uint32_t src_repeat,
                           INSIGHT_TRACE_AT) {
    detail::first_lanes<sets>(mask, at);
    detail::issue(detail::VectorRow::vcadd, dst, src, 0, repeats,
                  {{1, src_block, 0}, {dst_repeat, src_repeat, 0}}, at);
}
template <class T, bool sets = true>
inline void WholeReduceMax(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask,
                           uint8_t repeats, uint32_t dst_repeat, uint32_t src_block, uint32_t src_repeat,
                           ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, INSIGHT_TRACE_AT) {
    detail::first_lanes<sets>(mask, at);
    detail::issue(detail::VectorRow::vcmax, dst, src, 0, repeats,
                  {{1, src_block, 0}, {dst_repeat, src_repeat, 0}}, at, uint64_t(order));
}

// --- of whole tensors. Along the first of two dimensions: row after row
namespace detail {
template <class T>
inline void along_rows(VectorRow what, const LocalTensor<T> &dst, const LocalTensor<T> &src, uint32_t rows,
                       uint32_t cols, ::insight_trace::Site at) {
    counted(cols, at, [&] {
        issue(VectorRow::vcopy, dst, src, 0, 1, {}, at);
        for (uint32_t r = 1; r < rows; ++r) {
            pipe_barrier(PIPE_V, at);
            issue(what, dst, dst, address_of(src[r * cols]), 1, {}, at);
        }
    });
    pipe_barrier(PIPE_V, at);
}
} // namespace detail
#define INSIGHT_TRACE_ALONG(name, what)                                                                      \
    template <class T, class Along, bool reuses = false, class Shape>                                        \
    inline void name(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LocalTensor<uint8_t> &,     \
                     const Shape &shape, bool, INSIGHT_TRACE_AT) {                                           \
        if constexpr (std::is_same_v<Along, Pattern::Reduce::RA>)                                            \
            detail::along_rows(detail::VectorRow::what, dst, src, shape[0], shape[1], at);                   \
        else                                                                                                 \
            detail::not_modelled("AscendC::" #name " along the last dimension", at);                         \
    }
INSIGHT_TRACE_ALONG(ReduceSum, vadd)
INSIGHT_TRACE_ALONG(ReduceMax, vmax)
#undef INSIGHT_TRACE_ALONG

// A row to many rows, or each element of a column to a row.
template <class T, int dimensions, int axis, bool reuses = false, class Shape>
inline void BroadCast(const LocalTensor<T> &dst, const LocalTensor<T> &src, const Shape &dst_shape,
                      const Shape &, const LocalTensor<uint8_t> &spare, INSIGHT_TRACE_AT) {
    constexpr uint32_t block = 32 / sizeof(T), lanes = 256 / sizeof(T), most = 248; // rows of an instruction
    const uint32_t rows = dst_shape[0], cols = dst_shape[1];
    if (dimensions != 2 || cols % block || cols / block > 255)
        detail::not_modelled("BroadCast of this shape", at);
    if constexpr (axis == 0) {
        detail::counted(cols, at, [&] {
            for (uint32_t r = 0; r < rows; ++r)
                detail::issue(detail::VectorRow::vcopy, dst[r * cols], src, 0, 1, {}, at);
        });
    } else {
        const auto blocks = spare.template ReinterpretCast<T>();
        for (uint32_t first = 0; first < rows; first += most) {
            const uint32_t count = Std::min(most, rows - first);
            Brcb(blocks, src[first], (count + 7) / 8, {1, 8}, at);
            pipe_barrier(PIPE_V, at);
            for (uint32_t c = 0; c < cols; c += lanes)
                Copy(dst[first * cols + c], blocks, Std::min(lanes, cols - c), count, {1, 0, cols / block, 1},
                     at);
            pipe_barrier(PIPE_V, at);
        }
        ResetMask(at);
    }
    pipe_barrier(PIPE_V, at);
}

// --- calls that a kernel names and that are not modelled: it stops where it calls one
template <class D, class S, class V>
inline void CompareScalar(const D &, const S &, V, CMPMODE, uint32_t, INSIGHT_TRACE_AT) {
    detail::not_modelled("AscendC::CompareScalar", at);
}
template <class D, class S, class V, class P>
inline void CompareScalar(const D &, const S &, V, CMPMODE, uint64_t, uint8_t, const P &, INSIGHT_TRACE_AT) {
    detail::not_modelled("AscendC::CompareScalar", at);
}
template <class D, class M, class S, class V>
inline void Select(const D &, const M &, const S &, const V &, SELMODE, uint32_t, INSIGHT_TRACE_AT) {
    detail::not_modelled("AscendC::Select", at);
}
template <class D, class M, class S, class V, class P>
inline void Select(const D &, const M &, const S &, const V &, SELMODE, uint64_t, uint8_t, const P &,
                   INSIGHT_TRACE_AT) {
    detail::not_modelled("AscendC::Select", at);
}

} // namespace AscendC
