// A kernel that a program loads from a file and launches by its name: written by program/launchers.py, found
// by the runtime.
#pragma once

#include <cstddef>
#include <cstdint>

struct insight_trace_kernel_of_file {
    void (*launch)(uint32_t blocks, void *stream, void *const *values);
    uint32_t count; // of parameters
    struct {
        size_t size, alignment;
    } parameters[256];
};
