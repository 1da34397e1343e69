// Small arithmetic and masks that kernels compute with.
#pragma once

#include "insight_trace/device.hpp"
#include "pto/common/constants.hpp"

namespace pto {

template <class T, class... Types> inline constexpr bool isSupportType = (std::is_same_v<T, Types> || ...);

inline int32_t CeilDivision(int32_t a, int32_t b) { return b == 0 ? 0 : (a + b - 1) / b; }
inline uint32_t CeilAlignment(uint32_t a, uint32_t b) { return b == 0 ? 0 : (a + b - 1) / b * b; }

// The first n lanes of a repeat.
inline void SetContinuousMask(unsigned n, INSIGHT_TRACE_AT) {
    const auto low = [](unsigned bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; };
    set_vector_mask(n > 64 ? low(n - 64) : 0, low(n), at);
}
inline void SetVectorCount(uint64_t n, INSIGHT_TRACE_AT) { set_vector_mask(0, n, at); }
template <class T> inline void SetFullVecMaskByDType(INSIGHT_TRACE_AT) { set_vector_mask(~0ull, ~0ull, at); }
template <class T> inline void SetContMaskByDType(unsigned n, INSIGHT_TRACE_AT) { SetContinuousMask(n, at); }

} // namespace pto
