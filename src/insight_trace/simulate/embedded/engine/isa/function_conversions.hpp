// VCONV as the functions of the 950 do it: between all types, over a number of elements that lie side by
// side.
#pragma once

#include "isa/vector_unit.hpp"
#include "isa/rounding.hpp"

namespace insight_trace::engine {

// Beside the rounding: integers keep their low bits, and are held at 32 bits before that.
constexpr uint8_t kWraps = 8, kThroughInt32 = 16;
void execute_function_conversion(Core &core, const VectorInstruction &instruction);

} // namespace insight_trace::engine
