// What the way out of the accumulator does, as a type.
#pragma once

#include "insight_trace/quant_modes.hpp"
#include "pto/common/type.hpp"

namespace pto {

enum class LayoutMode_t : uint8_t { NZ2NZ = 0, NZ2ND = 1, NZ2DN = 2 };
enum ClipReluMode_t { NOCLIP_RELU = 0, CLIP_RELU = 1 };
enum class DequantType { SCALAR = 0, TENSOR = 1 };

template <LayoutMode_t layout = LayoutMode_t::NZ2ND, QuantMode_t quant = NoQuant,
          ReluPreMode relu = ReluPreMode::NoRelu, STPhase phase = STPhase::Unspecified, uint8_t lane = 0,
          AtomicType atomic = AtomicType::AtomicNone, ClipReluMode_t clip = NOCLIP_RELU, bool split = false>
struct FixpipeParams {
    static constexpr LayoutMode_t LayoutMode = layout;
    static constexpr QuantMode_t QuantPre = quant;
    static constexpr ReluPreMode ReluMode = relu;
    static constexpr STPhase Phase = phase;
    static constexpr uint8_t SubBlockId = lane;
    static constexpr AtomicType AtomicT = atomic;
    static constexpr ClipReluMode_t ClipReluMode = clip;
    static constexpr bool IsChannelSplit = split;
};

} // namespace pto
