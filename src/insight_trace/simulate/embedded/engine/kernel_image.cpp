#include "kernel_image.hpp"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <ucontext.h>

namespace insight_trace::engine {

static int find_bounds(dl_phdr_info *info, size_t, void *data) {
    auto *image = static_cast<KernelImage *>(data);
    if (image->path != info->dlpi_name) return 0;
    image->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &header = info->dlpi_phdr[i];
        if (header.p_type == PT_LOAD)
            image->end = std::max<uint64_t>(image->end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
    }
    return 1;
}

static void load(KernelImage &image) {
    void *handle = dlopen(image.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) fail(Fault::Kernel, {}, "cannot load the compiled kernel: %s", dlerror());
    image.call = reinterpret_cast<void (*)(int64_t *)>(dlsym(handle, image.entry.c_str()));
    if (!image.call) fail(Fault::Input, {}, "the kernel has no function %s", image.entry.c_str());
    dl_iterate_phdr(find_bounds, &image);
    auto *begin = static_cast<uint8_t *>(dlsym(handle, "insight_trace_state_begin"));
    auto *end = static_cast<uint8_t *>(dlsym(handle, "insight_trace_state_end"));
    if (!begin || !end) return;
    uint8_t *from = *reinterpret_cast<uint8_t **>(begin), *to = *reinterpret_cast<uint8_t **>(end);
    image.state = from;
    image.state_size = static_cast<uint64_t>(to - from);
    image.initial_state.assign(from, to);
}

void load_kernels(std::vector<KernelImage> &images) {
    for (KernelImage &image : images)
        if (!image.call) load(image);
}

Crash crash_in_kernel(int signal, const siginfo_t *info, const void *context,
                      const std::vector<KernelImage> &images) {
    uint64_t pc = 0;
#if defined(__x86_64__)
    pc = static_cast<uint64_t>(static_cast<const ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    pc = static_cast<const ucontext_t *>(context)->uc_mcontext.pc;
#else
    (void)context;
#endif
    Crash crash{};
    // a jump through a wild pointer, or an abort that the kernel called
    crash.fault = signal == SIGABRT || pc < 4096 ? Fault::Kernel : Fault::OurBug;
    for (const KernelImage &image : images)
        if (pc >= image.base && pc < image.end) {
            crash.fault = Fault::Kernel;
            crash.image = &image;
            crash.offset = pc - image.base;
        }
    if (signal == SIGSEGV || signal == SIGBUS)
        snprintf(crash.message, sizeof crash.message,
                 "the kernel touched address 0x%llx, which belongs to no buffer",
                 static_cast<unsigned long long>(reinterpret_cast<uint64_t>(info->si_addr)));
    else
        snprintf(crash.message, sizeof crash.message, "the kernel ended with signal %d", signal);
    return crash;
}

void catch_crashes(void (*handler)(int, siginfo_t *, void *)) {
    static uint8_t stack[1 << 18];
    stack_t alternative{};
    alternative.ss_sp = stack;
    alternative.ss_size = sizeof stack;
    sigaltstack(&alternative, nullptr);
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND; // a crash in the report ends the program
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}

} // namespace insight_trace::engine
