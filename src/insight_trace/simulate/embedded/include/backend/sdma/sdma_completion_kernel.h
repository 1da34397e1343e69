// Requests to the SDMA engine beside the core: they are carried out where they are sent.
#pragma once

#include "pto_async_kernel_api.h"

constexpr uint32_t SDMA_SCRATCH_ALIGNMENT = pto::comm::sdma::UB_ALIGN_SIZE;

enum class SdmaOp : uint8_t { TGET = 0, TPUT = 1 };

template <class D, class S, class T> struct SdmaRequestDescriptor {
    SdmaOp op;
    D dst;
    S src;
    T scratch;
    uint8_t *workspace;
    uint32_t sync_id;
};

template <class D, class S, class T>
inline SdmaRequestDescriptor<D, S, T> SdmaTget(const D &dst, const S &src, const T &scratch,
                                               uint8_t *workspace, uint32_t sync_id = 0) {
    return {SdmaOp::TGET, dst, src, scratch, workspace, sync_id};
}
template <class D, class S, class T>
inline SdmaRequestDescriptor<D, S, T> SdmaTput(const D &dst, const S &src, const T &scratch,
                                               uint8_t *workspace, uint32_t sync_id = 0) {
    return {SdmaOp::TPUT, dst, src, scratch, workspace, sync_id};
}

template <class D, class S, class T>
inline bool send_request_entry(AsyncCtx &, const SdmaRequestDescriptor<D, S, T> &request, INSIGHT_TRACE_AT) {
    pto::comm::bundled::copy_by_dma(request.dst, request.src, at);
    return true; // and the task has nothing to wait for
}
