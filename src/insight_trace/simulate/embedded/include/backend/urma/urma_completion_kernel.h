// Requests to the URMA engine beside the core: they are carried out where they are sent.
#pragma once

#include "pto_async_kernel_api.h"

enum class UrmaOp : uint8_t { TGET = 0, TPUT = 1 };

template <class D, class S> struct UrmaRequestDescriptor {
    UrmaOp op;
    D dst;
    S src;
    uint8_t *workspace;
    uint32_t remote_rank;
};

template <class D, class S>
inline UrmaRequestDescriptor<D, S> UrmaTget(const D &dst, const S &src, uint8_t *workspace, uint32_t rank) {
    return {UrmaOp::TGET, dst, src, workspace, rank};
}
template <class D, class S>
inline UrmaRequestDescriptor<D, S> UrmaTput(const D &dst, const S &src, uint8_t *workspace, uint32_t rank) {
    return {UrmaOp::TPUT, dst, src, workspace, rank};
}

namespace pto2::urma_backend {
template <class T> inline T *peer_mr_ptr(uint8_t *, uint32_t, uint64_t, INSIGHT_TRACE_AT) {
    pto::comm::bundled::not_modelled("the memory of another rank", at);
}
} // namespace pto2::urma_backend

template <class D, class S>
inline bool send_request_entry(AsyncCtx &, const UrmaRequestDescriptor<D, S> &request, INSIGHT_TRACE_AT) {
    pto::comm::bundled::copy_by_dma(request.dst, request.src, at);
    return true;
}
