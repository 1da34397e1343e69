// Call forms of what only the Ascend 950 has.
#pragma once

#include "pto/common/call_forms.hpp"
#include "pto/common/forms/transfer.hpp"
#if defined(PTO_NPU_ARCH_A5)
#include "pto/npu/a5/utils.hpp"
#endif

// As the library's sorting has them.
#define PTO_CEIL(x, y)        ((((x) + (y) - 1) / (y)) * (y))
#define PTO_DIV_ROUNDUP(x, y) ((((x) + (y) - 1) / (y)))

namespace pto {

constexpr uint32_t BLOCK_SIZE = 32;
constexpr int B4_C0_SIZE = 64; // elements of four bits in a block

// Groups of 32 elements that share an exponent. Axis 1: along rows; 0: along columns, whose exponents may be
// stored in pairs.
template <auto Kind, class Out, class Src, class Exp, class Max, class Scaling, auto alg = QuantScaleAlg::OCP,
          std::enable_if_t<std::is_same_v<std::remove_cv_t<decltype(Kind)>, QuantType>, int> = 0>
inline auto TQUANT(const Out &dst, const Src &src, Exp *exponents, Max *maxima, Scaling *scalings,
                   INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TQUANT, at, dst, src, *exponents, Kind, *maxima, *scalings,
                         bundled::Choice(alg == QuantScaleAlg::NV));
}
template <int axis, auto alg, bool interleaved = false, class Out, class Src, class Exp, class Max,
          class Scaling>
inline auto TQUANT(const Out &dst, const Src &src, Exp *exponents, Max *maxima, Scaling *scalings,
                   INSIGHT_TRACE_AT) {
    constexpr auto kind = alg == MxQuantAlg::Hif4 ? bundled::Choice(4)
                          : alg == MxQuantAlg::OcpMxFp8E4M3 || alg == MxQuantAlg::NvMxFp8E4M3
                              ? bundled::Choice(0)
                              : bundled::Choice(1);
    constexpr auto up = alg == MxQuantAlg::NvMxFp8E4M3 || alg == MxQuantAlg::NvMxFp4E2M1;
    return bundled::call(insight_trace::Op::TQUANT, at, dst, src, *exponents, kind, *maxima, *scalings,
                         bundled::Choice(up | (axis == 0) << 1 | interleaved << 2));
}

// Scales of groups into the boxes that the cube unit reads.
template <class D, class S, class T, std::enable_if_t<is_tile<T>::value, int> = 0>
inline auto TMOV(const D &dst, const S &src, const T &tmp, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, src, tmp);
}
template <int axis, class D, class S, class T, std::enable_if_t<is_tile<T>::value, int> = 0>
inline auto TMOV(const D &dst, const S &src, const T &tmp, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMOV, at, dst, src, tmp, bundled::Choice(axis));
}

template <HistByte byte, class D, class S, class I>
inline auto THISTOGRAM(const D &dst, const S &src, const I &wanted, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::THISTOGRAM, at, dst, src, wanted, byte);
}

using TRandomKey = uint32_t[2];
using TRandomCounter = uint32_t[4];
template <uint16_t Rounds = 10, class D>
inline auto TRANDOM(const D &dst, TRandomKey &key, TRandomCounter &counter, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TRANDOM, at, dst, bundled::Choice(Rounds), key[0], key[1],
                         counter[0], counter[1], counter[2], counter[3]);
}
template <uint16_t Rounds = 10, class D, PTO_EVENT(0)>
inline auto TRANDOM(const D &dst, TRandomKey &key, TRandomCounter &counter, PTO_AFTER(0), INSIGHT_TRACE_AT) {
    event0.Wait(at);
    return TRANDOM<Rounds>(dst, key, counter, at);
}

// The phase steers a unit flag between cube and fixpipe. A vector is a matrix of one row.
template <AccPhase phase, class C, class A, class P, class B, class Q>
inline auto TMATMUL_MX(const C &c, const A &a, const P &p, const B &b, const Q &q, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_MX, at, bundled::in_phase<phase>(c), a, p, b, q);
}
template <AccPhase phase, class C, class A, class P, class B, class Q, class R>
inline auto TMATMUL_MX(const C &c, const A &a, const P &p, const B &b, const Q &q, const R &r,
                       INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_MX, at, bundled::in_phase<phase>(c), a, p, b, q, r);
}
template <class C, class A, class P, class B, class Q>
inline auto TGEMV_MX(const C &c, const A &a, const P &p, const B &b, const Q &q, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_MX, at, c, a, p, b, q);
}
template <class C, class A, class P, class B, class Q, class R>
inline auto TGEMV_MX(const C &c, const A &a, const P &p, const B &b, const Q &q, const R &r,
                     INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_MX, at, c, a, p, b, q, r);
}
template <class C, class A, class P, class B, class Q, PTO_EVENT(0)>
inline auto TGEMV_MX(const C &c, const A &a, const P &p, const B &b, const Q &q, PTO_AFTER(0),
                     INSIGHT_TRACE_AT) {
    event0.Wait(at);
    return TGEMV_MX(c, a, p, b, q, at);
}
template <class C, class A, class P, class B, class Q, class R, PTO_EVENT(0)>
inline auto TGEMV_MX(const C &c, const A &a, const P &p, const B &b, const Q &q, const R &r, PTO_AFTER(0),
                     INSIGHT_TRACE_AT) {
    event0.Wait(at);
    return TGEMV_MX(c, a, p, b, q, r, at);
}
template <AccPhase phase, class C, class A, class P, class B, class Q>
inline auto TGEMV_MX(const C &c, const A &a, const P &p, const B &b, const Q &q, INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_MX, at, bundled::in_phase<phase>(c), a, p, b, q);
}
template <AccPhase phase, class C, class A, class P, class B, class Q, class R>
inline auto TGEMV_MX(const C &c, const A &a, const P &p, const B &b, const Q &q, const R &r,
                     INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::TMATMUL_MX, at, bundled::in_phase<phase>(c), a, p, b, q, r);
}

// Who runs a gather into L1: the scalar unit or threads. The result is the same.
enum class GatherExec : uint8_t { Scalar, Simt };
template <Coalesce mode, GatherOOB beyond, GatherExec, class Dst, class G, class Index, class Scratch>
inline auto MGATHER(const Dst &dst, const G &table, const Index &index, const Scratch &scratch,
                    INSIGHT_TRACE_AT) {
    return bundled::call(insight_trace::Op::MGATHER, at, dst, table, index, scratch, mode, beyond);
}

// One of how many elements a pattern takes.
template <MaskPattern pattern> constexpr int GetTimesByMask() {
    return pattern == MaskPattern::P1111                                    ? 1
           : pattern == MaskPattern::P0101 || pattern == MaskPattern::P1010 ? 2
                                                                            : 4;
}

// Rows into boxes, by the tiles' types and pointers.
template <class T, class D, class S>
inline void TMovToVecNd2Nz(T *to, T *from, uint32_t rows, uint32_t cols, uint32_t, INSIGHT_TRACE_AT) {
    bundled::move_by_pointers<D, S>(to, from, rows, cols, at);
}

// Scales lie at a sixteenth of the address of what they scale.
template <class D, class S> inline void TGET_SCALE_ADDR(D &scales, const S &tile) {
    scales.assign(tile.address() >> 4);
}

template <class T, int R, int C, int VR = R, int VC = C>
using TileLeftScaleCompact = Tile<TileType::ScaleLeft, T, R, C, BLayout::RowMajor, VR, VC, SLayout::RowMajor,
                                  32, PadValue::Null, CompactMode::Normal>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileRightScaleCompact = Tile<TileType::ScaleRight, T, R, C, BLayout::ColMajor, VR, VC,
                                   SLayout::ColMajor, 32, PadValue::Null, CompactMode::Normal>;

} // namespace pto
