// Host code that reads or writes device memory: what it touched, and the line that did it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <ucontext.h>

#include "runtime.hpp"

namespace insight_trace_program {
namespace {

struct sigaction g_before{};

char *program_counter(void *context) {
#if defined(__x86_64__)
    return reinterpret_cast<char *>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return reinterpret_cast<char *>(static_cast<ucontext_t *>(context)->uc_mcontext.pc);
#else
    return (void)context, nullptr;
#endif
}

// Of the program's own code, not of what it calls in a system library or a header of one.
bool is_own(void *address) {
    Dl_info info{};
    if (!dladdr(address, &info) || !info.dli_fname) return false;
    for (const char *system : {"/libc.so", "/libc-", "/libstdc++", "/libgcc_s", "/ld-linux", "/libm.so",
                               "libascendcl", "libinsight_trace"})
        if (strstr(info.dli_fname, system)) return false;
    return true;
}

// Where the instruction before `address` stands, without the inlined lines of system headers.
bool show_line(void *address, const char *word) {
    Dl_info info{};
    if (!dladdr(address, &info) || !info.dli_fname) return false;
    char command[2048], line[1024];
    snprintf(command, sizeof command, "addr2line -i -f -C -p -e '%s' 0x%llx 2>/dev/null", info.dli_fname,
             static_cast<unsigned long long>(static_cast<char *>(address) -
                                             static_cast<char *>(info.dli_fbase) - 1));
    FILE *pipe = popen(command, "r");
    if (!pipe) return false;
    bool shown = false;
    while (fgets(line, sizeof line, pipe)) {
        if (strstr(line, "/usr/include/") || strstr(line, "??:")) continue;
        const char *text = strncmp(line, " (inlined by) ", 14) == 0 ? line + 14 : line;
        if (!shown) fprintf(stderr, "  %s %s", word, text);
        shown = true;
    }
    pclose(pipe);
    return shown;
}

void on_fault(int signal, siginfo_t *info, void *context) {
    DeviceMemory &memory = Device::get().memory;
    constexpr uint64_t kBefore = 64; // the C library looks in front of what it is told to free
    const auto address = reinterpret_cast<uint64_t>(info->si_addr);
    const uint64_t touched = address < kBase && address + kBefore >= kBase ? kBase : address;
    if (memory.is_device(reinterpret_cast<void *>(touched))) {
        const Buffer *buffer = memory.find(touched);
        const Buffer *gone = buffer ? nullptr : memory.find(touched, false);
        fprintf(stderr,
                "insight-trace: host code touches device memory at 0x%llx%s%s%s; copy it with aclrtMemcpy "
                "first\n",
                static_cast<unsigned long long>(address), buffer || gone ? " in " : "",
                buffer ? buffer->name.c_str()
                : gone ? gone->name.c_str()
                       : "",
                gone ? " (freed)" : "");
        void *frames[64];
        const int count = backtrace(frames, 64);
        char *at = program_counter(context); // this one has not been executed; the others are calls
        int left = 3;
        for (int i = 0; i < count && left; ++i)
            if (is_own(frames[i]) &&
                show_line(frames[i] == at ? at + 1 : frames[i], left == 3 ? "at" : "called at"))
                --left;
        fflush(stderr);
    }
    sigaction(signal, &g_before, nullptr); // whoever was asked before us, or the usual end
    if (g_before.sa_handler == SIG_IGN) ::signal(signal, SIG_DFL);
}

__attribute__((constructor)) void watch() {
    if (!getenv("INSIGHT_TRACE_PROGRAM")) return;
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &g_before);
    void *loads_the_unwinder;
    backtrace(&loads_the_unwinder, 1);
}

} // namespace
} // namespace insight_trace_program
