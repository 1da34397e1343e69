// Functions of many threads (SIMT): a kernel that launches one ends with its name and line.
#pragma once

#include "insight_trace/raw.hpp"

#define __launch_bounds__(...)
struct dim3 {
    uint32_t x, y, z;
    constexpr dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline const dim3 blockIdx{0, 0, 0}, blockDim{}, gridDim{};
template <auto function, class... Argument> inline void asc_vf_call(dim3, Argument &&...) {
    insight_trace::not_modelled("asc_vf_call: a function of many threads (SIMT) is not modelled",
                                insight_trace::Site{});
}
namespace AscendC::Simt {
using Dim3 = dim3;
template <auto function, class... Argument> inline void VF_CALL(Dim3, Argument &&...) {
    insight_trace::not_modelled("Simt::VF_CALL: a function of many threads (SIMT) is not modelled",
                                insight_trace::Site{});
}
} // namespace AscendC::Simt
