// Call forms with template options: element by element.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

// An algorithm may be named; the chips modelled here have one for each of these ops.
#define PTO_ALGORITHM_2(name)                                                                                \
    template <auto Algorithm, class A, class B> inline void name(const A &a, const B &b, INSIGHT_TRACE_AT) { \
        detail::call(insight_trace::Op::name, at, a, b);                                                     \
    }
#define PTO_ALGORITHM_3(name)                                                                                \
    template <auto Algorithm, class A, class B, class C>                                                     \
    inline void name(const A &a, const B &b, const C &c, INSIGHT_TRACE_AT) {                                 \
        detail::call(insight_trace::Op::name, at, a, b, c);                                                  \
    }
PTO_ALGORITHM_2(TEXP)
PTO_ALGORITHM_2(TLOG)
PTO_ALGORITHM_2(TSQRT)
PTO_ALGORITHM_2(TRSQRT)
PTO_ALGORITHM_3(TRSQRT)
PTO_ALGORITHM_2(TRECIP)
PTO_ALGORITHM_3(TDIV)
PTO_ALGORITHM_3(TDIVS)

// With a scratch tile and a saturation mode.
template <class A, class B, class C>
inline void TCVT(const A &dst, const B &src, const C &tmp, RoundMode mode, SaturationMode saturation,
                 INSIGHT_TRACE_AT) {
    detail::call(insight_trace::Op::TCVT, at, dst, src, tmp, mode, saturation);
}

} // namespace pto
