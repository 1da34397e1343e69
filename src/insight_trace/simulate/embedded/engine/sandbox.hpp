// What this process gives up before it loads a kernel. A kernel is code that somebody else wrote.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace insight_trace::engine {

struct Sandbox {
    bool on = false, strict = false;
    std::vector<std::string> readable, writable; // folders, for strict
    uint64_t files = 0, file = 0;                // open files; bytes of one file; 0: as many as we may
};

// Takes the job lines sandbox, allow and bound; false: the line is none of these.
bool read_sandbox(const std::vector<std::string> &fields, Sandbox &into);

// Limits, no new privileges, no processes, no signals to others; strict: files of those folders alone, no
// network. A call that is not allowed raises SIGSYS. `data_bytes` bounds private memory, `seconds` the time
// on CPUs.
void enter_sandbox(const Sandbox &sandbox, uint64_t data_bytes, double seconds);

// For a process that has to start others: looking into other processes is forbidden; strict as above.
void enter_host_sandbox(const Sandbox &sandbox);

// The name of a call that is not allowed, or null.
const char *forbidden_call(int number);

} // namespace insight_trace::engine
