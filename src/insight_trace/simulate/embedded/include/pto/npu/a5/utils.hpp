// Where the scales of a matrix tile lie: at a sixteenth of its own address.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

constexpr uint32_t SHIFT_MX_ADDR = 4;

template <class T> inline uint64_t GetScaleAddr(T *data, INSIGHT_TRACE_AT) {
    const auto address = reinterpret_cast<uint64_t>(data);
    constexpr insight_trace::Space spaces[] = {insight_trace::Space::L0A, insight_trace::Space::L0B};
    for (auto space : spaces) {
        const auto base = reinterpret_cast<uint64_t>(insight_trace_local(space, 0, 1, at));
        if (address >= base && address - base < (1u << 20)) return (address - base) >> SHIFT_MX_ADDR;
    }
    return address >> SHIFT_MX_ADDR;
}

} // namespace pto
