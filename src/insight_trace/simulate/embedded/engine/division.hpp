// Whole numbers divided by zero in a kernel: the device's scalar unit goes on, where this processor stops.
#pragma once

namespace insight_trace::engine {

// Called with the context of a SIGFPE: gives the division that stopped a result (0, and what was divided as
// the remainder; of the smallest number by -1 that number) and goes behind it. False where it is no such
// division.
bool go_on_after_division(void *context);

} // namespace insight_trace::engine
