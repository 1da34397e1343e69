// What a kernel prints: on stderr, unless the program around it shows it as its own.
#pragma once

#include <cstdint>
#include <cstdio>

namespace insight_trace::engine {

extern FILE *g_kernel_output;
extern uint64_t g_kernel_texts; // how many were printed

void print_for_kernel(const char *text);

} // namespace insight_trace::engine
