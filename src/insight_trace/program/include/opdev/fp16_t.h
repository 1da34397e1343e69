// The 16-bit floats of host code under the names of the vendor's operator library.
#pragma once

#include "insight_trace/numbers.hpp"

namespace op {
using fp16_t = ::half;
using bfloat16 = ::bfloat16_t;
} // namespace op
