// Host code that reads or writes device memory: what it touched, and the line that did it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.hpp"

namespace insight_trace_program {
namespace {

struct sigaction g_before{};

uint64_t program_counter(void *context) {
#if defined(__x86_64__)
    return static_cast<uint64_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return static_cast<ucontext_t *>(context)->uc_mcontext.pc;
#else
    return (void)context, 0;
#endif
}
uint64_t frame_pointer(void *context) {
#if defined(__x86_64__)
    return static_cast<uint64_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RSP]);
#else
    return (void)context, 0;
#endif
}

void show_line(uint64_t pc) {
    Dl_info info{};
    if (!dladdr(reinterpret_cast<void *>(pc), &info) || !info.dli_fname) return;
    char offset[32];
    snprintf(offset, sizeof offset, "0x%llx",
             static_cast<unsigned long long>(pc - reinterpret_cast<uint64_t>(info.dli_fbase)));
    const pid_t child = fork();
    if (child == 0) {
        dup2(2, 1);
        execlp("addr2line", "addr2line", "-i", "-f", "-C", "-p", "-e", info.dli_fname, offset, nullptr);
        _exit(127);
    }
    int status = 0;
    if (child > 0) waitpid(child, &status, 0);
}

void on_fault(int signal, siginfo_t *info, void *context) {
    DeviceMemory &memory = Device::get().memory;
    if (memory.is_device(info->si_addr)) {
        const auto address = reinterpret_cast<uint64_t>(info->si_addr);
        const Buffer *buffer = memory.find(address);
        const Buffer *gone = buffer ? nullptr : memory.find(address, false);
        fprintf(stderr,
                "insight-trace: host code touches device memory at 0x%llx%s%s%s; copy it with aclrtMemcpy "
                "first\n",
                static_cast<unsigned long long>(address), buffer || gone ? " in " : "",
                buffer ? buffer->name.c_str()
                : gone ? gone->name.c_str()
                       : "",
                gone ? " (freed)" : "");
        fputs("  at ", stderr);
        fflush(stderr);
        show_line(program_counter(context));
        // in a function of the C library (memcpy, strlen): whoever called it is on the stack
        Dl_info where{};
        if (dladdr(reinterpret_cast<void *>(program_counter(context)), &where) && where.dli_fname &&
            (strstr(where.dli_fname, "libc.so") || strstr(where.dli_fname, "libc-"))) {
            const auto *stack = reinterpret_cast<const uint64_t *>(frame_pointer(context));
            for (int i = 0; stack && i < 512; ++i) {
                Dl_info caller{};
                if (!dladdr(reinterpret_cast<void *>(stack[i]), &caller) || !caller.dli_fname) continue;
                if (strstr(caller.dli_fname, "libc.so") || strstr(caller.dli_fname, "libinsight_trace") ||
                    strstr(caller.dli_fname, "ld-linux"))
                    continue;
                fputs("  called at ", stderr);
                fflush(stderr);
                show_line(stack[i] - 1);
                break;
            }
        }
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
}

} // namespace
} // namespace insight_trace_program
