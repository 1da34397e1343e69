// What a kernel's own code executes on the scalar unit, between two calls of ours.
//
// Blocks of a compiled kernel add to these counters (simulate/embedded/scalar_code.py); the core takes them
// whenever the kernel calls us, and prices each class by the chip's parameters.
#pragma once

#include <array>
#include <cstdint>

namespace insight_trace::engine {

constexpr int64_t kCodePiece = 2048; // bytes of code that come at a time, as scalar_code.py counts them

struct CodeCounts {
    int64_t plain = 0, multiplies = 0, divides = 0, floats = 0, float_divides = 0;
    uint64_t where = 0; // an address in the block that was entered last; 0: none was since they were taken
    uint64_t loop = 0;  // the same of the last one that a loop begins with; 0: none
    std::array<uint64_t, 4> fetched{}; // pieces of the kernel's code that were entered, a bit each

    // One by one: of `*this = {}` compilers make a `rep stos`, which takes longer to start than all of these.
    void clear() {
        plain = multiplies = divides = floats = float_divides = 0;
        where = loop = 0;
        for (uint64_t &pieces : fetched) pieces = 0;
    }
};

} // namespace insight_trace::engine

extern "C" thread_local insight_trace::engine::CodeCounts insight_trace_code;
