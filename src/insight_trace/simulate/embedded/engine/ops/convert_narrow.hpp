// TCVT to and from the formats that only a5 converts: HiFloat8, and floats of four bits.
#pragma once

#include "elements.hpp"
#include "rounding.hpp"

namespace insight_trace::engine {

inline bool is_narrow(Type type) {
    return type == Type::F4E2M1 || type == Type::F4E1M2 || type == Type::HiF8 || type == Type::F8E8M0;
}

// The HiFloat8 nearest to `value`, halves away from zero.
uint8_t hif8_code(double value);
// The code of a number in HiFloat8 or a 4-bit format, and the number of a code.
uint8_t narrow_code(Type type, double value, Round mode);
float narrow_number(Type type, uint8_t code);

// float and half to HiFloat8 and back to float, bfloat16_t to 4-bit floats and back; others are refused.
void convert_narrow(Core &core, const TileRef &dst, const TileRef &src, Round mode);

} // namespace insight_trace::engine
