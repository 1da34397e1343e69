// AscendC's copies between memories, and its calls of the cube unit.
#pragma once

#include "ascendc/vector.hpp"

namespace AscendC {

struct DataCopyParams { // lengths and gaps in blocks of 32 bytes
    uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
    DataCopyParams() = default;
    DataCopyParams(uint16_t count, uint16_t length, uint16_t src_gap, uint16_t dst_gap)
        : blockCount(count), blockLen(length), srcStride(src_gap), dstStride(dst_gap) {}
};
struct DataCopyExtParams { // lengths and gaps of global memory in bytes, gaps on chip in blocks
    uint16_t blockCount = 1;
    uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t length, uint32_t src_gap, uint32_t dst_gap, uint32_t)
        : blockCount(count), blockLen(length), srcStride(src_gap), dstStride(dst_gap) {}
};
template <class T> struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    T paddingValue{};
    DataCopyPadExtParams() = default;
    template <class V>
    DataCopyPadExtParams(bool pads, uint8_t left, uint8_t right, V value)
        : isPad(pads), leftPadding(left), rightPadding(right), paddingValue(static_cast<T>(value)) {}
};
struct Nd2NzParams {
    uint16_t ndNum = 1, nValue = 0, dValue = 0;
    uint32_t srcNdMatrixStride = 0, srcDValue = 0;
    uint16_t dstNzC0Stride = 0, dstNzNStride = 0;
    uint32_t dstNzMatrixStride = 0;
    Nd2NzParams() = default;
    Nd2NzParams(uint16_t matrices, uint16_t rows, uint16_t cols, uint32_t from_matrix, uint32_t from_row,
                uint16_t to_column, uint16_t to_row, uint32_t to_matrix)
        : ndNum(matrices), nValue(rows), dValue(cols), srcNdMatrixStride(from_matrix), srcDValue(from_row),
          dstNzC0Stride(to_column), dstNzNStride(to_row), dstNzMatrixStride(to_matrix) {}
};

namespace detail {
constexpr uint64_t kBlock = 32;
template <class D, class S>
inline void copy(::insight_trace::Space to, D *dst, ::insight_trace::Space from, S *src,
                 const DataCopyParams &p, ::insight_trace::Site at) {
    ::insight_trace::raw_copy(to, dst, from, src, p.blockCount, p.blockLen * kBlock,
                              (p.blockLen + p.dstStride) * kBlock, (p.blockLen + p.srcStride) * kBlock, at);
}
inline DataCopyParams one_piece(uint64_t bytes) { return {1, static_cast<uint16_t>(bytes / kBlock), 0, 0}; }
inline uint64_t whole_blocks(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }
} // namespace detail

template <class T>
inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyParams &p,
                     INSIGHT_TRACE_AT) {
    detail::copy(dst.space(), dst.GetPhyAddr(), ::insight_trace::Space::GM, src.GetPhyAddr(), p, at);
}
template <class T>
inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &p,
                     INSIGHT_TRACE_AT) {
    detail::copy(::insight_trace::Space::GM, dst.GetPhyAddr(), src.space(), src.GetPhyAddr(), p, at);
}
template <class T>
inline void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyParams &p,
                     INSIGHT_TRACE_AT) {
    detail::copy(dst.space(), dst.GetPhyAddr(), src.space(), src.GetPhyAddr(), p, at);
}
template <class To, class From>
inline void DataCopy(const To &dst, const From &src, uint32_t count, INSIGHT_TRACE_AT) {
    DataCopy(dst, src, detail::one_piece(count * sizeof(typename To::PrimType)), at);
}
// Rows into columns of boxes.
template <class T>
inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const Nd2NzParams &p,
                     INSIGHT_TRACE_AT) {
    ::insight_trace::to_boxes(dst.GetPhyAddr(), src.GetPhyAddr(), p.ndNum, p.nValue, p.dValue,
                              p.srcNdMatrixStride, p.srcDValue, p.dstNzC0Stride, p.dstNzNStride,
                              p.dstNzMatrixStride, sizeof(T), at);
}
// On chip a piece begins a block.
template <class T>
inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const DataCopyExtParams &p,
                        const DataCopyPadExtParams<T> &pad, INSIGHT_TRACE_AT) {
    if (pad.leftPadding || (pad.isPad && pad.rightPadding)) detail::not_modelled("DataCopyPad that pads", at);
    ::insight_trace::raw_copy(
        dst.space(), dst.GetPhyAddr(), ::insight_trace::Space::GM, src.GetPhyAddr(), p.blockCount, p.blockLen,
        detail::whole_blocks(p.blockLen) + p.dstStride * detail::kBlock, p.blockLen + p.srcStride, at);
}
template <class T>
inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const DataCopyExtParams &p,
                        INSIGHT_TRACE_AT) {
    ::insight_trace::raw_copy(::insight_trace::Space::GM, dst.GetPhyAddr(), src.space(), src.GetPhyAddr(),
                              p.blockCount, p.blockLen, p.blockLen + p.dstStride,
                              detail::whole_blocks(p.blockLen) + p.srcStride * detail::kBlock, at);
}

// --- the cube unit
struct LoadData2DParams { // in boxes of 512 bytes
    uint16_t startIndex = 0, repeatTimes = 0, srcStride = 0, sid = 0, dstGap = 0;
    bool ifTranspose = false;
    uint8_t addrMode = 0;
};
struct LoadData2dTransposeParams {
    uint16_t startIndex = 0, repeatTimes = 0, srcStride = 0, dstGap = 0, dstFracGap = 0;
    uint8_t addrMode = 0;
};
template <class T> struct LoadData3DParamsV2 {
    uint16_t kExtension = 0, mExtension = 0, channelSize = 0;
    bool enTranspose = false, fMatrixCtrl = false;
};
struct IsResetLoad3dConfig {
    bool isSetFMatrix = true, isSetPadding = true;
};
enum class FmatrixMode : uint8_t { FMATRIX_LEFT, FMATRIX_RIGHT };
struct MmadParams {
    uint16_t m = 0, n = 0, k = 0;
    uint8_t unitFlag = 0;
    bool kDirectionAlign = false, cmatrixSource = false, cmatrixInitVal = true;
};
struct FixpipeConfig {
    bool rows;
};
constexpr FixpipeConfig CFG_ROW_MAJOR{true}, CFG_NZ{false};
struct FixpipeParamsV220 {
    uint16_t nSize = 0, mSize = 0, srcStride = 0;
    uint32_t dstStride = 0;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    uint16_t ndNum = 1, srcNdStride = 0, dstNdStride = 0;
    bool reluEn = false;
    uint8_t unitFlag = 0;
    bool isChannelSplit = false;
};

template <class T>
inline void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src, const LoadData2DParams &p,
                     INSIGHT_TRACE_AT) {
    ::insight_trace::load_boxes(dst.space(), dst.GetPhyAddr(), src.GetPhyAddr(), p.startIndex, p.repeatTimes,
                                p.srcStride, p.dstGap, p.ifTranspose, false, at);
}
template <class T>
inline void LoadDataWithTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                  const LoadData2dTransposeParams &p, INSIGHT_TRACE_AT) {
    constexpr uint32_t boxes = sizeof(T) == 2 ? 1 : 2;
    ::insight_trace::load_boxes(dst.space(), dst.GetPhyAddr(), src.GetPhyAddr(), p.startIndex * boxes,
                                p.repeatTimes, p.srcStride * boxes, p.dstGap, true, false, at, p.dstFracGap,
                                boxes);
}
template <class T, const IsResetLoad3dConfig &>
inline void LoadData(const LocalTensor<T> &, const LocalTensor<T> &, const LoadData3DParamsV2<T> &,
                     INSIGHT_TRACE_AT) {
    detail::not_modelled("AscendC::LoadData of patches", at);
}
template <class List>
inline void SetFmatrix(uint16_t, uint16_t, const List &, FmatrixMode, INSIGHT_TRACE_AT) {
    detail::not_modelled("AscendC::SetFmatrix", at);
}
template <class C, class A, class B>
inline void Mmad(const LocalTensor<C> &acc, const LocalTensor<A> &left, const LocalTensor<B> &right,
                 const MmadParams &p, INSIGHT_TRACE_AT) {
    mad(acc.GetPhyAddr(), left.GetPhyAddr(), right.GetPhyAddr(), p.m, p.k, p.n, p.unitFlag, p.kDirectionAlign,
        p.cmatrixSource, p.cmatrixInitVal, at);
}
template <class C, class A, class B, class Bias>
inline void Mmad(const LocalTensor<C> &, const LocalTensor<A> &, const LocalTensor<B> &,
                 const LocalTensor<Bias> &, const MmadParams &, INSIGHT_TRACE_AT) {
    detail::not_modelled("AscendC::Mmad with a bias", at);
}
template <class D, class S, const FixpipeConfig &config = CFG_ROW_MAJOR>
inline void Fixpipe(const GlobalTensor<D> &dst, const LocalTensor<S> &src, const FixpipeParamsV220 &p,
                    INSIGHT_TRACE_AT) {
    ::set_nd_para(p.ndNum | uint64_t(p.srcNdStride) << 16 | uint64_t(p.dstNdStride) << 32, at);
    if (p.quantPre != QuantMode_t::NoQuant) ::set_quant_pre(p.deqScalar, at);
    copy_matrix_cc_to_gm(dst.GetPhyAddr(), src.GetPhyAddr(), 0, p.nSize, p.mSize, p.dstStride, p.srcStride,
                         p.unitFlag, p.quantPre, p.reluEn, p.isChannelSplit, config.rows, at);
}

} // namespace AscendC
