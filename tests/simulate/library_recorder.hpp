// Stands in for the device compiler under the tile library's own headers: every vector instruction, mask,
// flag and barrier that they ask for is written down. Tiles are ours.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "insight_trace/device.hpp"
#include "pto/common/constants.hpp"
#include "pto/common/pto_tile.hpp"

using std::max;
typedef float float32_t;
typedef half float16_t;

inline std::vector<std::string> said;
inline bool count_mode = false;
alignas(64) inline unsigned char unified_buffer[512 * 1024];

// Under a count mask the repeats do not count; instructions of no repeats do nothing.
inline void note(const char *name, int repeat, int stride) {
    if (count_mode)
        said.push_back(std::string(name) + ":counted");
    else if (repeat > 0)
        said.push_back(std::string(name) + ":" + std::to_string(repeat) + ":" + std::to_string(stride));
}

extern "C" {
void *insight_trace_local(insight_trace::Space, uint64_t address, uint64_t, insight_trace::Site) {
    return unified_buffer + address;
}
void insight_trace_set_flag(insight_trace::PipeId, insight_trace::PipeId, int64_t, insight_trace::Site) {
    said.push_back("SET_FLAG");
}
void insight_trace_wait_flag(insight_trace::PipeId, insight_trace::PipeId, int64_t, insight_trace::Site) {
    said.push_back("WAIT_FLAG");
}
void insight_trace_barrier(insight_trace::PipeId, insight_trace::Site) { said.push_back("BAR"); }
void insight_trace_op(insight_trace::Op, const insight_trace::Operand *, uint32_t, insight_trace::Site) {}
uint64_t insight_trace_get_value(const insight_trace::TileRef *, uint64_t, insight_trace::Site) { return 0; }
void insight_trace_set_value(const insight_trace::TileRef *, uint64_t, uint64_t, insight_trace::Site) {}
uint64_t insight_trace_intrinsic(insight_trace::Intrinsic which, uint64_t a, uint64_t, uint64_t,
                                 insight_trace::Site) {
    using insight_trace::Intrinsic;
    static uint64_t control = 0;
    if (which == Intrinsic::SetMaskNorm) count_mode = false;
    if (which == Intrinsic::SetMaskCount) count_mode = true;
    if (which == Intrinsic::SetCtrl) control = a;
    said.push_back(which == Intrinsic::GetCtrl ? "MOV_XD_SPR" : "MOV_SPR_XN");
    return control;
}
}

#define TWO_IN(call, name)                                                                                   \
    template <class D, class A, class B, class... Rest>                                                      \
    void call(D *, A *, B *, int repeat, int, int, int, int stride, int = 0, int = 0, Rest...) {             \
        note(name, repeat, stride);                                                                          \
    }
#define ONE_IN(call, name)                                                                                   \
    template <class D, class A, class... Rest>                                                               \
    void call(D *, A *, int repeat, int, int, int stride, int = 0, Rest...) {                                \
        note(name, repeat, stride);                                                                          \
    }
#define WITH_SCALAR(call, name)                                                                              \
    template <class D, class A, class S, class... Rest>                                                      \
    void call(D *, A *, S, int repeat, int, int, int stride, int, Rest...) {                                 \
        note(name, repeat, stride);                                                                          \
    }
TWO_IN(vadd, "VADD")
TWO_IN(vsub, "VSUB")
TWO_IN(vmul, "VMUL")
TWO_IN(vdiv, "VDIV")
TWO_IN(vmax, "VMAX")
TWO_IN(vmin, "VMIN")
TWO_IN(vand, "VAND")
TWO_IN(vor, "VOR")
TWO_IN(vmla, "VMLA")
TWO_IN(vmadd, "VMADD")
TWO_IN(vsel, "VSEL")
TWO_IN(vcmpv_eq, "VCMPV")
TWO_IN(vcmpv_lt, "VCMPV")
TWO_IN(vcmpv_gt, "VCMPV")
TWO_IN(vcmpv_ge, "VCMPV")
TWO_IN(vcmpv_le, "VCMPV")
WITH_SCALAR(vadds, "VADDS")
WITH_SCALAR(vmuls, "VMULS")
WITH_SCALAR(vmaxs, "VMAXS")
WITH_SCALAR(vmins, "VMINS")
WITH_SCALAR(vlrelu, "VLRELU")
WITH_SCALAR(vshl, "VSHL")
WITH_SCALAR(vshr, "VSHR")
WITH_SCALAR(vaxpy, "VAXPY")
WITH_SCALAR(vcmpvs_eq, "VCMPVS")
WITH_SCALAR(vcmpvs_lt, "VCMPVS")
WITH_SCALAR(vcmpvs_gt, "VCMPVS")
WITH_SCALAR(vcmpvs_ge, "VCMPVS")
WITH_SCALAR(vcmpvs_le, "VCMPVS")
ONE_IN(vexp, "VEXP")
ONE_IN(vln, "VLN")
ONE_IN(vsqrt, "VSQRT")
ONE_IN(vrsqrt, "VRSQRT")
ONE_IN(vabs, "VABS")
ONE_IN(vnot, "VNOT")
ONE_IN(vrelu, "VRELU")
template <class D, class S> void vector_dup(D *, S, int repeat, int, int, int stride, int64_t) {
    note("MOVEV", repeat, stride);
}
template <class T> void set_cmpmask(T *) { said.push_back("MOV_SPR_XN"); }
template <class T> void set_deqscale(T) { said.push_back("MOV_SPR_XN"); }
template <class D, class S> void pto_copy_ubuf_to_ubuf(D *, S *, int, int, int, int) {
    said.push_back("MOV_UB_TO_UB");
}

namespace pto {
constexpr int B8_DATA_TYPE_OFFSET = 8;
enum class FmodAlgorithm : uint8_t { DEFAULT };
enum class FmodSAlgorithm : uint8_t { DEFAULT };
enum class RemAlgorithm : uint8_t { DEFAULT };
enum class RemSAlgorithm : uint8_t { DEFAULT };
union FloatUnion {
    float f;
    uint32_t i;
};
template <class T> constexpr bool is_conv_tile_v = false;
template <pipe_t From, pipe_t To> inline void PtoSetWaitFlag() {
    set_flag(From, To, 0);
    wait_flag(From, To, 0);
}
} // namespace pto

#define __cce_get_tile_ptr(data) (data)
#define PTO_ASSERT(...)          ((void)0)
#define PTO_STATIC_ASSERT(...)
#define COMMON_HPP // the library's own shared header needs more of the device than is here
