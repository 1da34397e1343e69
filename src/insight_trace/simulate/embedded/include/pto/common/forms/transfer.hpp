// Call forms with template options: between GM and the core.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

template <class TileT, class G> inline RecordEvent TSTORE(const G &dst, const TileT &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSTORE, at, dst, src, AtomicType::AtomicNone,
                         ReluPreMode::NoRelu);
}
template <class TileT, class G, PTO_EVENT(0)>
inline RecordEvent TSTORE(const G &dst, const TileT &src, PTO_AFTER(0), INSIGHT_TRACE_AT) {
    event0.Wait(at);
    return TSTORE(dst, src, at);
}
template <class TileT, class G, AtomicType atomic, ReluPreMode relu = ReluPreMode::NoRelu>
inline RecordEvent TSTORE(const G &dst, const TileT &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSTORE, at, dst, src, atomic, relu);
}
// With a scale for the way out of the accumulator.
template <class TileT, class G, AtomicType atomic = AtomicType::AtomicNone,
          ReluPreMode relu = ReluPreMode::NoRelu>
inline RecordEvent TSTORE(const G &dst, const TileT &src, uint64_t scale, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSTORE, at, dst, src, atomic, relu, scale);
}
template <class TileT, class G, ReluPreMode relu>
inline RecordEvent TSTORE(const G &dst, const TileT &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSTORE, at, dst, src, AtomicType::AtomicNone, relu);
}

namespace bundled {
// A move that the library's inner functions take by the tiles' types and pointers.
template <class D, class S, class To, class From>
void move_by_pointers(To *to, From *from, uint64_t rows, uint64_t cols, insight_trace::Site at) {
    D dst;
    S src;
    TASSIGN(dst, to, at);
    TASSIGN(src, from, at);
    insight_trace::Operand operands[] = {describe(dst), describe(src)};
    for (auto &operand : operands) {
        operand.tile.valid_rows = static_cast<int32_t>(rows);
        operand.tile.valid_cols = static_cast<int32_t>(cols);
    }
    insight_trace_op(insight_trace::Op::TMOV, operands, 2, at);
}
} // namespace bundled

// As the library for a2a3 had it up to April 2026; TMOV took its place.
template <class D, class S, unsigned, unsigned src_stride, unsigned dst_stride>
inline void TCopy(typename D::TileDType to, typename S::TileDType from, uint64_t rows, uint64_t cols,
                  INSIGHT_TRACE_AT) {
    static_assert(src_stride == S::RowStride && dst_stride == D::RowStride,
                  "TCopy with strides that are not those of its tiles is not supported");
    bundled::move_by_pointers<D, S>(to, from, rows, cols, at);
}

} // namespace pto
