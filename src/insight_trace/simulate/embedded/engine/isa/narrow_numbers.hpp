// HiFloat8 and floats of four bits: codes and numbers.
#pragma once

#include "elements.hpp"
#include "isa/rounding.hpp"

namespace insight_trace::engine {

// The HiFloat8 nearest to `value`, halves away from zero.
uint8_t hif8_code(double value);
// The code of a number in HiFloat8 or a 4-bit format, and the number of a code.
uint8_t narrow_code(Type type, double value, Round mode);
float narrow_number(Type type, uint8_t code);

} // namespace insight_trace::engine
