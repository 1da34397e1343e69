// Memory that kernel code reads and writes by plain dereference, on the scalar unit: global and on-chip.
//
// Kernels are compiled with the hooks of a race detector and linked without its runtime: every load and store
// of theirs calls us. Those that go to global memory cost what the scalar unit waits for, once per cache
// line; dcci makes the scalar unit forget its lines.
#pragma once

#include <cstdint>

#include "failure.hpp"

namespace insight_trace::engine {

// Which addresses are global memory; nothing is counted before this is said. `end` ends the run when an
// access goes past every buffer: the hooks are called where the compiler expects no exception.
// Plain stores go to global and on-chip memory, the kernel's own variables and its stack, or end the run: the
// engine shares its process with the kernel.
void keep_stores_inside();
void watch_scalar_memory(uint64_t base, uint64_t size, void (*end)(const Failure &));
// What assert() of a kernel says; returns where no kernel runs.
void assertion_failed(const char *condition, Site at);
// The place in a kernel's object that a call returns to, which is looked up in its debug lines afterwards.
Site site_of(const void *caller);
// The core whose thread this is forgets the line at `address`, or all lines.
void forget_scalar_lines(uint64_t address, bool all);

} // namespace insight_trace::engine
