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

} // namespace pto
