#include "kernel_image.hpp"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <ucontext.h>

#include "sandbox.hpp"

namespace insight_trace::engine {

static int find_bounds(dl_phdr_info *info, size_t, void *data) {
    auto *image = static_cast<KernelImage *>(data);
    if (image->path != info->dlpi_name) return 0;
    image->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD) continue;
        const uint64_t from = info->dlpi_addr + header.p_vaddr, to = from + header.p_memsz;
        image->end = std::max<uint64_t>(image->end, to);
        if (header.p_flags & PF_W) image->writable.emplace_back(from, to);
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

// All bytes, those between variables too, which a sanitizer lets nobody read.
__attribute__((no_sanitize("address"))) static uint64_t hashed(uint64_t hash, uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to; ++at) {
        hash = (hash ^ *reinterpret_cast<const uint8_t *>(at)) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }
    return hash;
}

uint64_t KernelImage::data_hash() const {
    const uint64_t own = reinterpret_cast<uint64_t>(state), own_end = own + state_size;
    uint64_t hash = 0;
    for (const auto &[from, to] : writable) {
        const bool holds = state_size && own >= from && own_end <= to;
        hash = hashed(hash, from, holds ? own : to);
        if (holds) hash = hashed(hash, own_end, to);
    }
    return hash;
}

void load_kernels(std::vector<KernelImage> &images) {
    for (KernelImage &image : images) load_kernel(image);
}

void load_kernel(KernelImage &image) {
    if (!image.call) load(image);
}

// Where the calling thread's stack lies; known from use_crash_stack on.
static thread_local uint64_t t_stack_begin = 0, t_stack_end = 0;
static thread_local uint64_t t_kernel_top = 0; // where the kernel's part of it ends

__attribute__((noinline)) void kernel_begins() {
    t_kernel_top = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
}

bool on_kernel_stack(uint64_t address, uint64_t size) {
    return address >= t_stack_begin && address < t_kernel_top && size <= t_kernel_top - address;
}

namespace {

struct Registers {
    uint64_t pc = 0, sp = 0;
};

Registers registers_of(const void *context) {
#if defined(__x86_64__)
    const auto &all = static_cast<const ucontext_t *>(context)->uc_mcontext.gregs;
    return {static_cast<uint64_t>(all[REG_RIP]), static_cast<uint64_t>(all[REG_RSP])};
#elif defined(__aarch64__)
    const auto &all = static_cast<const ucontext_t *>(context)->uc_mcontext;
    return {all.pc, all.sp};
#else
    (void)context;
    return {};
#endif
}

bool place_in(uint64_t pc, const std::vector<KernelImage> &images, Crash &crash) {
    for (const KernelImage &image : images)
        if (pc >= image.base && pc < image.end) {
            crash.image = &image;
            crash.offset = pc - image.base;
            return true;
        }
    return false;
}

extern "C" char __executable_start, etext; // of this program, from the linker

bool is_ours(uint64_t pc) {
    return pc >= reinterpret_cast<uint64_t>(&__executable_start) && pc < reinterpret_cast<uint64_t>(&etext);
}

// A crash in a library: whoever called it stands on the stack, nearest first.
Fault caller_of(uint64_t sp, const std::vector<KernelImage> &images, Crash &crash, bool called) {
    constexpr uint64_t kMost = 4096;
    for (uint64_t at = sp & ~7ull, n = 0; at >= t_stack_begin && at + 8 <= t_stack_end && n < kMost;
         at += 8, ++n) {
        const uint64_t word = *reinterpret_cast<const uint64_t *>(at);
        if (place_in(word - 1, images, crash)) return Fault::Kernel;
        if (!called && is_ours(word)) return Fault::OurBug;
    }
    return Fault::Kernel; // a stack that the kernel left behind: a jump to nowhere, a longjmp
}

} // namespace

Crash crash_in_kernel(int signal, const siginfo_t *info, const void *context,
                      const std::vector<KernelImage> &images) {
    const Registers at = registers_of(context);
    const uint64_t touched = reinterpret_cast<uint64_t>(info->si_addr);
    const bool memory = signal == SIGSEGV || signal == SIGBUS;
    // below the stack's lowest page, or with the stack pointer itself there: an array larger than the stack
    constexpr uint64_t kNear = 1 << 20, kFar = 1 << 30;
    auto below = [](uint64_t address, uint64_t reach) {
        return t_stack_begin && address < t_stack_begin + 4096 && address + reach > t_stack_begin;
    };
    const bool full = memory && (below(touched, kNear) || below(at.sp, kFar));
    Crash crash{};
    crash.fault = Fault::Kernel;
    // an abort or a forbidden call comes out of a library, and never from us
    const bool called = signal == SIGSYS || signal == SIGABRT;
    if (!place_in(at.pc, images, crash) && !full) {
        const Fault whose = is_ours(at.pc) ? Fault::OurBug : caller_of(at.sp, images, crash, called);
        if (!called) crash.fault = whose;
    }
    const char *call = signal == SIGSYS ? forbidden_call(info->si_syscall) : nullptr;
    const bool thrown = signal == SIGABRT && (std::current_exception() || std::uncaught_exceptions());
    if (thrown && t_first_failure.what[0]) {
        crash.fault = t_first_failure.fault;
        crash.at = t_first_failure.at;
        crash.image = nullptr;
        snprintf(crash.message, sizeof crash.message, "%s", t_first_failure.what);
    } else if (full)
        snprintf(crash.message, sizeof crash.message,
                 "the kernel overflowed its stack of %llu KiB: a recursion without end, or arrays too large "
                 "for it",
                 static_cast<unsigned long long>((t_stack_end - t_stack_begin) >> 10));
    else if (signal == SIGSYS)
        snprintf(crash.message, sizeof crash.message,
                 "the kernel called %s (system call %d), which no kernel may", call ? call : "the system",
                 info->si_syscall);
    else if (memory)
        snprintf(crash.message, sizeof crash.message,
                 "the kernel touched address 0x%llx, which belongs to no buffer",
                 static_cast<unsigned long long>(touched));
    else if (signal == SIGABRT)
        snprintf(crash.message, sizeof crash.message, "the kernel aborted (signal %d)", signal);
    else
        snprintf(crash.message, sizeof crash.message, "the kernel ended with signal %d", signal);
    return crash;
}

namespace {

// The stack of a crash report, until its thread ends: a sanitizer frees what it finds in its place.
class CrashStack {
  public:
    CrashStack() {
        stack_t mine{};
        mine.ss_sp = bytes_;
        mine.ss_size = sizeof bytes_;
        sigaltstack(&mine, &before_);
    }
    ~CrashStack() { sigaltstack(&before_, nullptr); }

  private:
    uint8_t bytes_[1 << 17];
    stack_t before_{};
};

} // namespace

void use_crash_stack() {
    static thread_local CrashStack stack;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void *begin = nullptr;
    size_t size = 0;
    if (pthread_attr_getstack(&attributes, &begin, &size) == 0) {
        t_stack_begin = reinterpret_cast<uint64_t>(begin);
        t_stack_end = t_stack_begin + size;
    }
    pthread_attr_destroy(&attributes);
}

void catch_crashes(void (*handler)(int, siginfo_t *, void *)) {
    use_crash_stack();
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND; // a crash in the report ends the program
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGXFSZ, SIGXCPU})
        sigaction(signal, &action, nullptr);
}

} // namespace insight_trace::engine
