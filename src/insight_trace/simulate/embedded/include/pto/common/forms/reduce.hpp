// Call forms with template options: reductions and broadcasts.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

// The precision that a division asks for makes no difference on this chip.
#define PTO_PRECISE_DIVISION(name)                                                                           \
    template <DivAlgorithm precision, class A, class B, class C>                                             \
    inline RecordEvent name(const A &dst, const B &a, const C &b, INSIGHT_TRACE_AT) {                        \
        return bundled::call(insight_trace::Op::name, at, dst, a, b);                                        \
    }
PTO_PRECISE_DIVISION(TROWEXPANDDIV)
PTO_PRECISE_DIVISION(TCOLEXPANDDIV)
#undef PTO_PRECISE_DIVISION
template <DivAlgorithm precision, class A, class B, class C, class D>
inline RecordEvent TROWEXPANDDIV(const A &dst, const B &a, const C &b, const D &tmp, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TROWEXPANDDIV, at, dst, a, b, tmp);
}

// The library's inner names, as hand-written kernels call them.
template <class D, class S> inline RecordEvent TCOLEXPAND_IMPL(const D &dst, const S &src, INSIGHT_TRACE_AT) {
    return TCOLEXPAND(dst, src, at);
}
template <class D, class A, class B>
inline RecordEvent TROWEXPANDSUB_IMPL(const D &dst, const A &a, const B &b, INSIGHT_TRACE_AT) {
    return TROWEXPANDSUB(dst, a, b, at);
}

} // namespace pto
