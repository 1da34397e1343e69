// Call forms of what leaves the accumulator: to which vector core, with which scales, in which phase.
//
// The phase steers a unit flag between cube unit and FIXPIPE, for kernels without flags between the two.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

template <class D, class S, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TMOV(const D &dst, const S &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, src, relu, mode);
}
template <class D, class S, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TMOV(const D &dst, const S &src, uint64_t scale, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, src, relu, mode, scale);
}
template <class D, class S, class F, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TMOV(const D &dst, const S &src, const F &scales, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, src, relu, mode, scales);
}
template <class D, class S, class F, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TMOV_FP(const D &dst, const S &src, const F &scales, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, src, relu, scales);
}
template <STPhase phase, class D, class S> inline auto TMOV(const D &dst, const S &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, bundled::in_phase<phase>(src));
}
template <STPhase phase, class D, class S, ReluPreMode relu>
inline auto TMOV(const D &dst, const S &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, bundled::in_phase<phase>(src), relu);
}
template <STPhase phase, class D, class S, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TMOV(const D &dst, const S &src, uint64_t scale, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, bundled::in_phase<phase>(src), relu, scale);
}
template <STPhase phase, class D, class S, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TMOV(const D &dst, const S &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, bundled::in_phase<phase>(src), relu, mode);
}
template <STPhase phase, class D, class S, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TMOV(const D &dst, const S &src, uint64_t scale, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, bundled::in_phase<phase>(src), relu, mode, scale);
}
template <STPhase phase, class D, class S, class F, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TMOV(const D &dst, const S &src, const F &scales, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, bundled::in_phase<phase>(src), relu, mode, scales);
}
template <STPhase phase, class D, class S, class F, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TMOV_FP(const D &dst, const S &src, const F &scales, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, bundled::in_phase<phase>(src), relu, scales);
}
template <class D, class S, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TEXTRACT(const D &dst, const S &src, uint16_t row, uint16_t col, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TEXTRACT, at, dst, src, row, col, relu, mode);
}
template <class D, class S, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TEXTRACT(const D &dst, const S &src, uint64_t scale, uint16_t row, uint16_t col,
                     INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TEXTRACT, at, dst, src, row, col, relu, mode, scale);
}
template <class D, class S, class F, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TEXTRACT(const D &dst, const S &src, const F &scales, uint16_t row, uint16_t col,
                     INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TEXTRACT, at, dst, src, row, col, relu, mode, scales);
}
template <class D, class S, class F, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TEXTRACT_FP(const D &dst, const S &src, const F &scales, uint16_t row, uint16_t col,
                        INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TEXTRACT, at, dst, src, row, col, relu, scales);
}
template <class D, class S, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TINSERT(const D &dst, const S &src, uint16_t row, uint16_t col, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TINSERT, at, dst, src, row, col, relu, mode);
}
template <class D, class S, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TINSERT(const D &dst, const S &src, uint64_t scale, uint16_t row, uint16_t col,
                    INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TINSERT, at, dst, src, row, col, relu, mode, scale);
}
template <class D, class S, class F, AccToVecMode mode, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TINSERT(const D &dst, const S &src, const F &scales, uint16_t row, uint16_t col,
                    INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TINSERT, at, dst, src, row, col, relu, mode, scales);
}
template <class D, class S, class F, ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TINSERT_FP(const D &dst, const S &src, const F &scales, uint16_t row, uint16_t col,
                       INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TINSERT, at, dst, src, row, col, relu, scales);
}
template <class T, class G, class F, AtomicType atomic = AtomicType::AtomicNone,
          ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TSTORE_FP(const G &dst, const T &src, const F &scales, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSTORE, at, dst, src, atomic, relu, scales);
}
template <STPhase phase, class T, class G> inline auto TSTORE(const G &dst, const T &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSTORE, at, dst, bundled::in_phase<phase>(src),
                         AtomicType::AtomicNone, ReluPreMode::NoRelu);
}
template <STPhase phase, class T, class G, AtomicType atomic>
inline auto TSTORE(const G &dst, const T &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSTORE, at, dst, bundled::in_phase<phase>(src), atomic,
                         ReluPreMode::NoRelu);
}
template <STPhase phase, class T, class G, AtomicType atomic, ReluPreMode relu>
inline auto TSTORE(const G &dst, const T &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSTORE, at, dst, bundled::in_phase<phase>(src), atomic, relu);
}
template <STPhase phase, class T, class G, AtomicType atomic = AtomicType::AtomicNone,
          ReluPreMode relu = ReluPreMode::NoRelu>
inline auto TSTORE(const G &dst, const T &src, uint64_t scale, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TSTORE, at, dst, bundled::in_phase<phase>(src), atomic, relu,
                         scale);
}

// Two windows of a plain tile, each into boxes of its own.
template <class D0, class D1, class S,
          std::enable_if_t<is_tile<D0>::value && is_tile<D1>::value && is_tile<S>::value, int> = 0>
inline auto TEXTRACT(const D0 &dst0, const D1 &dst1, const S &src, uint16_t row0 = 0, uint16_t col0 = 0,
                     uint16_t row1 = 0, uint16_t col1 = 0, INSIGHT_TRACE_AT) {
    bundled::call(insight_trace::Op::TEXTRACT, at, dst0, src, row0, col0);
    return bundled::call(insight_trace::Op::TEXTRACT, at, dst1, src, row1, col1);
}

// In two or four copies: whole boxes, with the rows that are not valid.
template <TInsertMode, class D, class S>
inline RecordEvent TINSERT(const D &dst, const S &src, uint16_t row = 0, uint16_t col = 0, INSIGHT_TRACE_AT) {
    insight_trace::Operand operands[] = {bundled::describe(dst), bundled::describe(src),
                                         bundled::describe(row), bundled::describe(col)};
    operands[1].tile.valid_rows = (src.GetValidRow() + 15) / 16 * 16;
    insight_trace_op(insight_trace::Op::TINSERT, operands, 4, at);
    return {at};
}
template <class D, class S> inline auto TINSERT(const D &dst, const S &src, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TINSERT, at, dst, src, uint16_t(0), uint16_t(0));
}

} // namespace pto
