// Call forms with template options: elements change place.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

enum class GatherAxis : uint8_t { GATHER_ROW, GATHER_COL };
enum class ScatterAxis : uint8_t { SCATTER_ROW, SCATTER_COL };

// How many pairs of each list a merge took before one of them was used up.
struct MrgSortExecutedNumList {
    uint16_t mrgSortList0, mrgSortList1, mrgSortList2, mrgSortList3;
};

namespace bundled {
template <class T> uint64_t shifted(const T &tile, int64_t elements) {
    return tile.address() + static_cast<uint64_t>(elements) * sizeof(typename T::DType);
}
} // namespace bundled

// Another view of the same bytes: no instruction.
template <class Dst, class Src> inline RecordEvent TRESHAPE(Dst &dst, const Src &src) {
    static_assert(is_tile<Dst>::value && is_tile<Src>::value, "TRESHAPE takes two tiles");
    static_assert(Dst::Loc == Src::Loc, "TRESHAPE: both tiles must lie in the same memory");
    static_assert(Dst::GetSizeInBytes() == Src::GetSizeInBytes(), "TRESHAPE: the tiles differ in bytes");
    static_assert(Dst::isBoxedLayout == Src::isBoxedLayout, "TRESHAPE: a boxed and a plain layout");
    dst.assign(src.address());
    return {};
}

// A view of a part, from (row, col) on: no instruction.
template <class Dst, class Src> inline RecordEvent TSUBVIEW(Dst &dst, const Src &src, int row, int col) {
    static_assert(Dst::Loc == Src::Loc, "TSUBVIEW: both tiles must lie in the same memory");
    dst.assign(bundled::shifted(src, int64_t(row) * Src::RowStride + int64_t(col) * Src::ColStride));
    return {};
}

template <TFillPadMode mode, class Dst, class Src>
inline RecordEvent TFILLPAD(const Dst &dst, const Src &src, INSIGHT_TRACE_AT) {
    constexpr auto op = mode == TFillPadMode::InPlace  ? insight_trace::Op::TFILLPAD_INPLACE
                        : mode == TFillPadMode::Expand ? insight_trace::Op::TFILLPAD_EXPAND
                                                       : insight_trace::Op::TFILLPAD;
    return bundled::call(op, at, dst, src);
}
template <class T, PadValue pad> inline RecordEvent TFILLPAD(const T &dst, const T &src, INSIGHT_TRACE_AT) {
    static_assert(T::Loc == TileType::Mat, "TFILLPAD with a pad value takes matrix tiles");
    return bundled::call(insight_trace::Op::TFILLPAD, at, dst, src);
}

// What a pattern picks of every row, packed.
template <class Dst, class Src, MaskPattern pattern = MaskPattern::P1111, auto axis = GatherAxis::GATHER_ROW>
inline RecordEvent TGATHER(const Dst &dst, const Src &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TGATHER, at, dst, src, pattern, axis);
}
// Positions of the elements that compare true with their row's k.
template <class Dst, class Src, class K, class Counts, class Tmp, CmpMode mode>
inline RecordEvent TGATHER(const Dst &dst, const Src &src, const K &k, const Counts &counts, const Tmp &tmp,
                           int offset, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TGATHER, at, dst, src, k, counts, tmp, offset, mode);
}

template <MaskPattern pattern = MaskPattern::P1111, auto axis = ScatterAxis::SCATTER_ROW, class Dst,
          class Src>
inline RecordEvent TSCATTER(const Dst &dst, const Src &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSCATTER, at, dst, src, pattern, axis);
}

template <class Dst, class Src>
inline RecordEvent TMRGSORT(const Dst &dst, const Src &src, uint32_t block_length, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMRGSORT, at, dst, src, block_length);
}
namespace bundled {
enum ListAddress : int64_t {};
inline ListAddress address_of(MrgSortExecutedNumList &list) {
    return static_cast<ListAddress>(reinterpret_cast<int64_t>(&list));
}
enum Exhausted : int64_t {};
} // namespace bundled
template <class Dst, class Tmp, class A, class B, bool exhausted>
inline RecordEvent TMRGSORT(const Dst &dst, MrgSortExecutedNumList &executed, const Tmp &tmp, const A &a,
                            const B &b, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMRGSORT, at, dst, tmp, bundled::address_of(executed),
                         bundled::Exhausted(exhausted), a, b);
}
template <class Dst, class Tmp, class A, class B, class C, bool exhausted>
inline RecordEvent TMRGSORT(const Dst &dst, MrgSortExecutedNumList &executed, const Tmp &tmp, const A &a,
                            const B &b, const C &c, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMRGSORT, at, dst, tmp, bundled::address_of(executed),
                         bundled::Exhausted(exhausted), a, b, c);
}
template <class Dst, class Tmp, class A, class B, class C, class D, bool exhausted>
inline RecordEvent TMRGSORT(const Dst &dst, MrgSortExecutedNumList &executed, const Tmp &tmp, const A &a,
                            const B &b, const C &c, const D &d, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMRGSORT, at, dst, tmp, bundled::address_of(executed),
                         bundled::Exhausted(exhausted), a, b, c, d);
}
template <class A, class B> constexpr uint32_t GETMRGSORTTMPSIZE() { return A::Cols + B::Cols; }
template <class A, class B, class C> constexpr uint32_t GETMRGSORTTMPSIZE() {
    return A::Cols + B::Cols + C::Cols;
}
template <class A, class B, class C, class D> constexpr uint32_t GETMRGSORTTMPSIZE() {
    return A::Cols + B::Cols + C::Cols + D::Cols;
}

template <class Dst, class A, class B, class DstCount, class ACount, class BCount>
inline RecordEvent TCONCAT(const Dst &dst, const A &a, const B &b, const DstCount &dst_count,
                           const ACount &a_count, const BCount &b_count, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TCONCAT, at, dst, a, b, dst_count, a_count, b_count);
}

// The same under the library's inner name.
template <class Dst, class A, class B>
inline RecordEvent TCONCAT_IMPL(const Dst &dst, const A &a, const B &b, INSIGHT_TRACE_AT) {
    return TCONCAT(dst, a, b, at);
}
template <class Dst, class A, class B, class ACount, class BCount>
inline RecordEvent TCONCAT_IMPL(const Dst &dst, const A &a, const B &b, const ACount &a_count,
                                const BCount &b_count, INSIGHT_TRACE_AT) {
    return TCONCAT(dst, a, b, a_count, b_count, at);
}
template <class Dst, class A, class B, class DstCount, class ACount, class BCount>
inline RecordEvent TCONCAT_IMPL(const Dst &dst, const A &a, const B &b, const DstCount &dst_count,
                                const ACount &a_count, const BCount &b_count, INSIGHT_TRACE_AT) {
    return TCONCAT(dst, a, b, dst_count, a_count, b_count, at);
}

// Rows or elements of a table in global memory, by index.
template <Coalesce mode = Coalesce::Row, GatherOOB beyond = GatherOOB::Undefined, class Dst, class G,
          class Index>
inline RecordEvent MGATHER(const Dst &dst, const G &table, const Index &index, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::MGATHER, at, dst, table, index, mode, beyond);
}
template <Coalesce mode = Coalesce::Elem, GatherOOB beyond = GatherOOB::Undefined, class Dst, class G,
          class Index, class Scratch>
inline RecordEvent MGATHER(const Dst &dst, const G &table, const Index &index, const Scratch &scratch,
                           INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::MGATHER, at, dst, table, index, scratch, mode, beyond);
}
template <Coalesce mode = Coalesce::Row, ScatterAtomicOp combine = ScatterAtomicOp::None,
          ScatterOOB beyond = ScatterOOB::Undefined, ScatterConflict conflict = ScatterConflict::Last,
          class G, class Src, class Index>
inline RecordEvent MSCATTER(const G &table, const Src &src, const Index &index, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::MSCATTER, at, table, src, index, mode, combine, beyond);
}

} // namespace pto
