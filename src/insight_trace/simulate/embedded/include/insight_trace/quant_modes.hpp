// What the fixpipe converts on the way out of the accumulator.
#pragma once

// Names of the device compiler. Of their numbers only 0, 1, 16, 23 and 24 are published; the others are
// chosen so that each fits the five bits of an instruction word.
enum QuantMode_t {
    NoQuant = 0,
    F322F16 = 1,
    VQF322HIF8_PRE = 2,
    QF322HIF8_PRE = 3,
    VQF322FP8_PRE = 4,
    QF322FP8_PRE = 5,
    VQF322F32_PRE = 6,
    QF322F32_PRE = 7,
    VREQ8 = 8,
    REQ8 = 9,
    VDEQF16 = 10,
    DEQF16 = 11,
    VSHIFTS322S16 = 12,
    SHIFTS322S16 = 13,
    VQS322BF16_PRE = 14,
    QS322BF16_PRE = 15,
    F322BF16 = 16,
    VQF322F16_PRE = 17,
    QF322F16_PRE = 18,
    VQF322BF16_PRE = 19,
    QF322BF16_PRE = 20,
    VQF322HIF8_PRE_HYBRID = 21,
    QF322HIF8_PRE_HYBRID = 22,
    VQF322B8_PRE = 23,
    QF322B8_PRE = 24,
};

namespace insight_trace {

// Whether a mode multiplies by scales: not at all, by one for all, or by one for each column.
enum class Scaling : unsigned char { None, One, Each };
constexpr Scaling scaling_of(int mode) {
    switch (mode) {
    case NoQuant:
    case F322F16:
    case F322BF16:
        return Scaling::None;
    case VQF322HIF8_PRE:
    case VQF322HIF8_PRE_HYBRID:
    case VQF322FP8_PRE:
    case VQF322F32_PRE:
    case VREQ8:
    case VDEQF16:
    case VSHIFTS322S16:
    case VQS322BF16_PRE:
    case VQF322F16_PRE:
    case VQF322BF16_PRE:
    case VQF322B8_PRE:
        return Scaling::Each;
    default:
        return Scaling::One;
    }
}

} // namespace insight_trace
