// Compiled kernels in this process: how they are loaded, and what a crash in one of them says.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "failure.hpp"

namespace insight_trace::engine {

struct KernelImage {
    std::string path, entry;
    void (*call)(int64_t *args) = nullptr; // set beforehand: nothing is to be loaded
    uint64_t base = 0, end = 0;            // where it is mapped
    uint8_t *state = nullptr;              // its per-core section, if it has one
    uint64_t state_size = 0;
    std::vector<uint8_t> initial_state;
    std::vector<std::pair<uint64_t, uint64_t>> writable; // from, to: its other variables lie there
    // Of all variables that cores share.
    uint64_t data_hash() const;
};

void load_kernels(std::vector<KernelImage> &images);
void load_kernel(KernelImage &image); // if it is not there yet

// Filled in by a signal handler, so it takes no memory.
struct Crash {
    Fault fault;
    char message[400];
    const KernelImage *image; // in which it happened, or null
    uint64_t offset;          // in the image
    Site at;                  // of a failure that a destructor of the kernel's did not let out, or none
};
Crash crash_in_kernel(int signal, const siginfo_t *info, const void *context,
                      const std::vector<KernelImage> &images);

// Calls `handler` when the program crashes, on a stack of its own: the crash may be that of a full stack.
void catch_crashes(void (*handler)(int, siginfo_t *, void *));
// The calling thread runs a kernel from here on: what lies below on its stack is the kernel's.
void kernel_begins();
bool on_kernel_stack(uint64_t address, uint64_t size);
// The same stack for the calling thread; every thread that runs a kernel has to ask for its own.
void use_crash_stack();

} // namespace insight_trace::engine
