// Call forms with template options: the cube core.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

// The phase steers a unit flag between cube unit and FIXPIPE, for kernels without flags between the two.
template <AccPhase phase, class C, class A, class B>
inline RecordEvent TMATMUL(const C &c, const A &a, const B &b, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL, at, bundled::in_phase<phase>(c), a, b);
}
template <AccPhase phase, class C, class A, class B>
inline RecordEvent TMATMUL_ACC(const C &out, const C &in, const A &a, const B &b, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_ACC, at, bundled::in_phase<phase>(out), in, a, b);
}
template <AccPhase phase, class C, class A, class B>
inline RecordEvent TMATMUL_ACC(const C &c, const A &a, const B &b, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_ACC, at, bundled::in_phase<phase>(c), a, b);
}
template <AccPhase phase, class C, class A, class B, class Bias>
inline RecordEvent TMATMUL_BIAS(const C &c, const A &a, const B &b, const Bias &bias, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_BIAS, at, bundled::in_phase<phase>(c), a, b, bias);
}
template <class C, class A, class B, class D, class E, class F>
inline RecordEvent TMATMUL_MX(const C &c, const A &a, const B &b, const D &d, const E &e, const F &f,
                              INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_MX, at, c, a, b, d, e, f);
}
template <class D, class S, ReluPreMode relu>
inline RecordEvent TMOV(const D &dst, const S &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, src, relu);
}
template <class D, class S, ReluPreMode relu = ReluPreMode::NoRelu>
inline RecordEvent TMOV(const D &dst, const S &src, uint64_t scale, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, src, relu, scale);
}
template <class D, class S, ReluPreMode relu>
inline RecordEvent TEXTRACT(const D &dst, const S &src, uint16_t row, uint16_t col, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TEXTRACT, at, dst, src, row, col, relu);
}
template <class D, class S, ReluPreMode relu = ReluPreMode::NoRelu>
inline RecordEvent TEXTRACT(const D &dst, const S &src, uint64_t scale, uint16_t row, uint16_t col,
                            INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TEXTRACT, at, dst, src, row, col, relu, scale);
}
template <class D, class S, ReluPreMode relu>
inline RecordEvent TINSERT(const D &dst, const S &src, uint16_t row, uint16_t col, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TINSERT, at, dst, src, row, col, relu);
}
template <class D, class S, ReluPreMode relu = ReluPreMode::NoRelu>
inline RecordEvent TINSERT(const D &dst, const S &src, uint64_t scale, uint16_t row, uint16_t col,
                           INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TINSERT, at, dst, src, row, col, relu, scale);
}

// A vector by a matrix: the same product of one row.
#define PTO_GEMV(name, product)                                                                              \
    template <class C, class A, class B>                                                                     \
    inline RecordEvent name(const C &c, const A &a, const B &b, INSIGHT_TRACE_AT) {                          \
        return bundled::call(insight_trace::Op::product, at, c, a, b);                                       \
    }                                                                                                        \
    template <AccPhase phase, class C, class A, class B>                                                     \
    inline RecordEvent name(const C &c, const A &a, const B &b, INSIGHT_TRACE_AT) {                          \
        return bundled::call(insight_trace::Op::product, at, bundled::in_phase<phase>(c), a, b);             \
    }
#define PTO_GEMV_WITH(name, product)                                                                         \
    template <class C, class D, class A, class B>                                                            \
    inline RecordEvent name(const C &c, const D &d, const A &a, const B &b, INSIGHT_TRACE_AT) {              \
        return bundled::call(insight_trace::Op::product, at, c, d, a, b);                                    \
    }                                                                                                        \
    template <AccPhase phase, class C, class D, class A, class B>                                            \
    inline RecordEvent name(const C &c, const D &d, const A &a, const B &b, INSIGHT_TRACE_AT) {              \
        return bundled::call(insight_trace::Op::product, at, bundled::in_phase<phase>(c), d, a, b);          \
    }
PTO_GEMV(TGEMV, TMATMUL)
PTO_GEMV_WITH(TGEMV_ACC, TMATMUL_ACC)
PTO_GEMV_WITH(TGEMV_BIAS, TMATMUL_BIAS)
#undef PTO_GEMV
#undef PTO_GEMV_WITH

} // namespace pto
