// Call forms with template options: elements change place.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

namespace detail {
template <class T> uint64_t shifted(const T &tile, int64_t elements) {
    return tile.address() + static_cast<uint64_t>(elements) * sizeof(typename T::DType);
}
} // namespace detail

// Another view of the same bytes: no instruction.
template <class Dst, class Src> inline void TRESHAPE(Dst &dst, const Src &src) {
    static_assert(is_tile<Dst>::value && is_tile<Src>::value, "TRESHAPE takes two tiles");
    static_assert(Dst::Loc == Src::Loc, "TRESHAPE: both tiles must lie in the same memory");
    static_assert(Dst::GetSizeInBytes() == Src::GetSizeInBytes(), "TRESHAPE: the tiles differ in bytes");
    static_assert(Dst::isBoxedLayout == Src::isBoxedLayout, "TRESHAPE: a boxed and a plain layout");
    dst.assign(src.address());
}

// A view of a part, from (row, col) on: no instruction.
template <class Dst, class Src> inline void TSUBVIEW(Dst &dst, const Src &src, int row, int col) {
    static_assert(Dst::Loc == Src::Loc, "TSUBVIEW: both tiles must lie in the same memory");
    dst.assign(detail::shifted(src, int64_t(row) * Src::RowStride + int64_t(col) * Src::ColStride));
}

template <TFillPadMode mode, class Dst, class Src>
inline void TFILLPAD(const Dst &dst, const Src &src, INSIGHT_TRACE_AT) {
    constexpr auto op = mode == TFillPadMode::InPlace  ? insight_trace::Op::TFILLPAD_INPLACE
                        : mode == TFillPadMode::Expand ? insight_trace::Op::TFILLPAD_EXPAND
                                                       : insight_trace::Op::TFILLPAD;
    detail::call(op, at, dst, src);
}
template <class T, PadValue pad> inline void TFILLPAD(const T &dst, const T &src, INSIGHT_TRACE_AT) {
    static_assert(T::Loc == TileType::Mat, "TFILLPAD with a pad value takes matrix tiles");
    detail::call(insight_trace::Op::TFILLPAD, at, dst, src);
}

} // namespace pto
