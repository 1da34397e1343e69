// What the runner is asked to do, and how it says what came of it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "machine.hpp"
#include "sandbox.hpp"
#include "tensor.h"

namespace insight_trace::capture {

struct KernelEntry {
    int32_t func_id = 0;
    bool cube = false;
    std::string signature; // a letter for each slot: I, O, B (in-out), S; empty: not declared
};

struct Job {
    std::string orchestration, function, config;
    std::string records_path, payload_path, result_path;
    std::vector<std::string> recover; // a command that finishes the dump if the caller is gone
    int channel = -1;                 // socket of an orchestration in another process, instead of a file
    int arena = -1;                   // file descriptor of global memory
    uint64_t base = 0, heap = 0, end = 0;
    int level = 2;
    std::string graph_path; // where the tasks and who waits for whom go; empty: nowhere
    bool hollow = false;    // no kernel is run: only what was submitted is recorded
    // Not empty: only these dispatches are recorded, and the run ends when they are done.
    std::set<uint32_t> picked;
    std::set<int32_t> picked_kernels;   // not empty: the first dispatch of exactly these kernels
    uint64_t picked_task = UINT64_MAX;  // and of this task id, if it is one
    uint64_t most_payload = UINT64_MAX; // bytes
    int workers = 1;
    uint64_t shuffle = 0; // not 0: run ready tasks in a random order
    double seconds = 60;  // that one dispatch, or the orchestration between two calls, may take
    bool rings = true;    // task ids by scope depth; else one plain count
    int32_t clusters = 24;
    std::vector<ChipTensor> tensors;
    uint64_t margin = 0; // bytes after each of them that may be read
    std::vector<std::string> tensor_names;
    std::vector<uint64_t> scalars;
    struct Window {
        uint64_t address, size;
        std::string name;
    };
    std::vector<Window> windows; // memory that chips share, this one's and those of its peers
    uint64_t node = 0;           // address of what chips tell each other; 0: there is one chip alone
    int chip = 0;                // which of them this is
    std::vector<KernelEntry> kernels;
    engine::Sandbox sandbox;
    engine::Job machine; // parameters and kernel images, in the order of `kernels`

    bool in_window(uint64_t address) const {
        for (const Window &window : windows)
            if (address >= window.address && address - window.address < window.size) return true;
        return false;
    }
    bool picks() const { return !picked.empty() || !picked_kernels.empty(); }
    int kernel_row(int32_t func_id) const;
};

// Into `job` line by line, so that where the result goes is known when a later line is wrong.
void read_job(const std::string &path, Job &job);
void map_arena(const Job &job);

// Why the run ended before its end. Text in fixed arrays: it is filled in by signal handlers, and lies in
// memory that processes share.
struct Failure {
    bool failed;
    int fault; // engine::Fault
    int signal;
    char limit[16];
    char message[1024];
    char file[512];
    int line;
    char image[512]; // the shared object in which it crashed
    uint64_t offset;

    void set(engine::Fault fault, const char *text, const char *file, int line);
};

std::string failure_lines(const Failure &failure);
void alarm_after(double seconds); // SIGALRM; 0: none

} // namespace insight_trace::capture
