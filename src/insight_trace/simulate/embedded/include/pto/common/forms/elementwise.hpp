// Call forms with template options: element by element.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

namespace bundled {
enum class Choice : int64_t {}; // a number that is an option of the op, not a value it computes with
}

enum class FmodAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class FmodSAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RemAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RemSAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };

// An algorithm may be named; the chips modelled here have one for each of these ops.
#define PTO_ALGORITHM_2(name)                                                                                \
    template <auto Algorithm, class A, class B>                                                              \
    inline RecordEvent name(const A &a, const B &b, INSIGHT_TRACE_AT) {                                      \
        return bundled::call(insight_trace::Op::name, at, a, b);                                             \
    }                                                                                                        \
    template <auto Algorithm, class A, class B, PTO_EVENT(0)>                                                \
    inline RecordEvent name(const A &a, const B &b, PTO_AFTER(0), INSIGHT_TRACE_AT) {                        \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b);                                             \
    }
#define PTO_ALGORITHM_3(name)                                                                                \
    template <auto Algorithm, class A, class B, class C>                                                     \
    inline RecordEvent name(const A &a, const B &b, const C &c, INSIGHT_TRACE_AT) {                          \
        return bundled::call(insight_trace::Op::name, at, a, b, c);                                          \
    }                                                                                                        \
    template <auto Algorithm, class A, class B, class C, PTO_EVENT(0)>                                       \
    inline RecordEvent name(const A &a, const B &b, const C &c, PTO_AFTER(0), INSIGHT_TRACE_AT) {            \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c);                                          \
    }
#define PTO_ALGORITHM_4(name)                                                                                \
    template <auto Algorithm, class A, class B, class C, class D>                                            \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, INSIGHT_TRACE_AT) {              \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d);                                       \
    }                                                                                                        \
    template <auto Algorithm, class A, class B, class C, class D, PTO_EVENT(0)>                              \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, PTO_AFTER(0),                    \
                            INSIGHT_TRACE_AT) {                                                              \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d);                                       \
    }                                                                                                        \
    template <auto Algorithm, class A, class B, class C, class D, PTO_EVENT(0), PTO_EVENT(1)>                \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, PTO_AFTER(0), PTO_AFTER(1),      \
                            INSIGHT_TRACE_AT) {                                                              \
        event0.Wait(at);                                                                                     \
        event1.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d);                                       \
    }
PTO_ALGORITHM_2(TEXP)
PTO_ALGORITHM_2(TLOG)
PTO_ALGORITHM_2(TSQRT)
PTO_ALGORITHM_2(TRSQRT)
PTO_ALGORITHM_3(TRSQRT)
PTO_ALGORITHM_2(TRECIP)
PTO_ALGORITHM_3(TDIV)
PTO_ALGORITHM_3(TDIVS)
#define PTO_EXACT_3(name)                                                                                    \
    template <auto Algorithm, class A, class B, class C>                                                     \
    inline RecordEvent name(const A &a, const B &b, const C &c, INSIGHT_TRACE_AT) {                          \
        return bundled::call(insight_trace::Op::name, at, a, b, c, Algorithm);                               \
    }                                                                                                        \
    template <auto Algorithm, class A, class B, class C, PTO_EVENT(0)>                                       \
    inline RecordEvent name(const A &a, const B &b, const C &c, PTO_AFTER(0), INSIGHT_TRACE_AT) {            \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c, Algorithm);                               \
    }
#define PTO_EXACT_4(name)                                                                                    \
    template <auto Algorithm, class A, class B, class C, class D>                                            \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, INSIGHT_TRACE_AT) {              \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d, Algorithm);                            \
    }                                                                                                        \
    template <auto Algorithm, class A, class B, class C, class D, PTO_EVENT(0)>                              \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, PTO_AFTER(0),                    \
                            INSIGHT_TRACE_AT) {                                                              \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d, Algorithm);                            \
    }
PTO_EXACT_3(TFMOD)
PTO_EXACT_3(TFMODS)
PTO_EXACT_4(TREM)
PTO_EXACT_4(TREMS)
PTO_ALGORITHM_4(TPOW)
PTO_ALGORITHM_4(TPOWS)

// With a scratch tile and a saturation mode.
template <class A, class B, class C>
inline RecordEvent TCVT(const A &dst, const B &src, const C &tmp, RoundMode mode, SaturationMode saturation,
                        INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TCVT, at, dst, src, tmp, mode, saturation);
}

// start, start + 1, ... in the first row; or start, start - 1, ...
template <class TileT, class T, int Descending>
inline RecordEvent TCI(const TileT &dst, T start, INSIGHT_TRACE_AT) {
    const auto direction = static_cast<bundled::Choice>(Descending);
    return bundled::call(insight_trace::Op::TCI, at, dst, start, direction);
}
template <class TileT, class TmpT, class T, int Descending>
inline RecordEvent TCI(const TileT &dst, T start, const TmpT &tmp, INSIGHT_TRACE_AT) {
    const auto direction = static_cast<bundled::Choice>(Descending);
    return bundled::call(insight_trace::Op::TCI, at, dst, start, direction, tmp);
}

// Ones at and below (0) or at and above (1) a diagonal.
template <class TileT, int Upper> inline RecordEvent TTRI(const TileT &dst, int diagonal, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TTRI, at, dst, diagonal, static_cast<bundled::Choice>(Upper));
}

// The larger (smaller) of two, and which index goes with it: (values, a, b, indices, of a, of b).
#define PTO_PARTIAL_INDEX(name)                                                                              \
    template <class V, class A, class B, class I, class X, class Y>                                          \
    inline RecordEvent name(const V &values, const A &a, const B &b, const I &indices, const X &x,           \
                            const Y &y, INSIGHT_TRACE_AT) {                                                  \
        return bundled::call(insight_trace::Op::name, at, values, a, b, indices, x, y);                      \
    }
PTO_PARTIAL_INDEX(TPARTARGMAX)
PTO_PARTIAL_INDEX(TPARTARGMIN)
#undef PTO_PARTIAL_INDEX

// To 8-bit integers with a scale, and maybe an offset, for every row.
template <auto Kind, class Out, class Src, class Para>
inline RecordEvent TQUANT(const Out &dst, const Src &src, const Para &scale, const Para *offset = nullptr,
                          INSIGHT_TRACE_AT) {
    // where no scratch is needed the scales stand in its place
    if (offset) return bundled::call(insight_trace::Op::TQUANT, at, dst, src, scale, Kind, scale, *offset);
    return bundled::call(insight_trace::Op::TQUANT, at, dst, src, scale, Kind);
}
template <auto Kind, class Out, class Src, class Para, class Tmp,
          std::enable_if_t<is_tile<Tmp>::value, int> = 0>
inline RecordEvent TQUANT(const Out &dst, const Src &src, const Para &scale, const Tmp &tmp,
                          const Para *offset = nullptr, INSIGHT_TRACE_AT) {
    if (offset)
        return bundled::call(insight_trace::Op::TQUANT, at, dst, src, scale, Kind, tmp, *offset);
    else
        return bundled::call(insight_trace::Op::TQUANT, at, dst, src, scale, Kind, tmp);
}

template <PrintFormat Format = PrintFormat::Width8_Precision4, class T>
inline RecordEvent TPRINT(const T &shown, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TPRINT, at, shown, Format);
}
template <PrintFormat Format = PrintFormat::Width8_Precision4, class T, class G>
inline RecordEvent TPRINT(const T &shown, const G &, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TPRINT, at, shown, Format);
}

} // namespace pto
