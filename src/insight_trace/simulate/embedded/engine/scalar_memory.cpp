#include "scalar_memory.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "machine.hpp"

namespace insight_trace::engine {
namespace {

constexpr int kLineBits = 6; // 64 bytes

uint64_t g_base = 0, g_size = 0;
void (*g_end)(const Failure &) = nullptr;
bool g_kept_inside = false;

// A plain store that is neither to global nor to on-chip memory.
void check_own(uint64_t address, uint64_t size, const void *caller) {
    if (on_kernel_stack(address, size)) return;
    for (const KernelImage &image : current_machine().job().kernels)
        for (const auto &[from, to] : image.writable)
            if (address >= from && size <= to - address && address < to) return;
    char text[128];
    snprintf(text, sizeof text,
             "the kernel writes to 0x%llx, which is in no buffer and no variable of its own",
             static_cast<unsigned long long>(address));
    g_end(Failure(Fault::Kernel, site_of(caller), text));
}

struct Lines {
    std::unordered_set<uint64_t> held;
    uint64_t last = ~0ull; // nearly every access goes where the one before went
    int64_t load = 0, store = 0;
};
thread_local Lines t_lines;

void check(Core &core, uint64_t address, uint64_t size, bool store, const void *caller) {
    try {
        core.global(address, size, store ? kReadsAndWrites : kReads);
    } catch (Failure &failure) {
        Site found = site_of(caller);
        if (found.file) failure.at = found;
        g_end(failure);
    }
}

void fetch_line(Core &core, uint64_t address, bool store, const void *caller) {
    Lines &lines = t_lines;
    if (!lines.held.insert(address >> kLineBits).second) {
        core.scalar_work(1000);
        return;
    }
    if (!lines.load) {
        lines.load = core.parameters.scalar_load_gm;
        lines.store = core.parameters.scalar_store_gm;
    }
    Site here = core.at;
    Site found = site_of(caller);
    if (found.file) core.at = found;
    Access access;
    access.address = address;
    access.bursts = 1;
    access.burst_bytes = 1 << kLineBits;
    access.write = store;
    core.scalar_access(store ? Instr::ST_XD_XN_IMM : Instr::LD_XD_XN_IMM, Space::GM, address, 1 << kLineBits,
                       store ? lines.store : lines.load, &access);
    core.at = here;
}

// A load or store of on-chip memory by plain dereference, as tile libraries do it: one of the scalar unit.
void touched_on_chip(uint64_t address, uint64_t size, bool store, const void *caller) {
    Core *core = running_core();
    const LocalPlace place = local_place(address);
    if (!core || !place.known || !size) return;
    if (insight_trace_code.where) core->take_code();
    const Site here = core->at, found = site_of(caller);
    if (found.file) core->at = found;
    try {
        if (place.core != core->identity.index)
            core->kernel_error("dereferences an address of the memories of core %d", int(place.core));
        core->local(place.space, place.offset, size);
    } catch (const Failure &failure) {
        g_end(failure);
    }
    const Parameters &parameters = core->parameters;
    core->scalar_access(store ? Instr::ST_XD_XN_IMM : Instr::LD_XD_XN_IMM, place.space, place.offset,
                        int64_t(size), store ? parameters.scalar_store_ub : parameters.scalar_load_ub);
    core->at = here;
}

inline void touched(const void *pointer, uint64_t size, bool store, const void *caller) {
    auto address = reinterpret_cast<uint64_t>(pointer);
    if (address - g_base >= g_size) {
        if (address < kLocalEnd)
            touched_on_chip(address, size, store, caller);
        else if (store && g_kept_inside && running_core())
            check_own(address, size, caller);
        return;
    }
    Core *core = running_core();
    if (!core) return;
    if (insight_trace_code.where) core->take_code();
    check(*core, address, size, store, caller);
    uint64_t line = address >> kLineBits, end = (address + (size ? size - 1 : 0)) >> kLineBits;
    if (line == t_lines.last && line == end) {
        core->scalar_work(1000);
        return;
    }
    for (; line <= end; ++line) fetch_line(*core, line << kLineBits, store, caller);
    t_lines.last = end;
}

} // namespace

Site site_of(const void *caller) { return site_in_kernel(reinterpret_cast<uint64_t>(caller)); }

Site site_in_kernel(uint64_t pc) {
    for (const KernelImage &image : current_machine().job().kernels)
        if (pc >= image.base && pc < image.end)
            return {image.path.c_str(), static_cast<uint32_t>(pc - image.base - 1)};
    return {};
}

void assertion_failed(const char *condition, Site at) {
    Core *core = running_core();
    if (!core || !g_end) return;
    core->at = at;
    try {
        core->kernel_error("assertion '%s' failed", condition);
    } catch (const Failure &failure) {
        g_end(failure);
    }
}

void watch_scalar_memory(uint64_t base, uint64_t size, void (*end)(const Failure &)) {
    g_base = base;
    g_size = size;
    g_end = end;
}

void keep_stores_inside() { g_kept_inside = true; }

void forget_scalar_lines(uint64_t address, bool all) {
    if (all)
        t_lines.held.clear();
    else
        t_lines.held.erase(address >> kLineBits);
    t_lines.last = ~0ull;
}

} // namespace insight_trace::engine

thread_local insight_trace::engine::CodeCounts insight_trace_code;

using insight_trace::engine::touched;

// assert() of a kernel ends the run with its line.
extern "C" void __assert_fail(const char *condition, const char *file, unsigned line,
                              const char *) noexcept(true) {
    insight_trace::engine::assertion_failed(condition, {file, line});
    fprintf(stderr, "%s:%u: assertion '%s' failed\n", file, line, condition);
    abort();
}

// The hooks, as g++ and clang++ call them.
#define HOOK(name, size, store)                                                                              \
    extern "C" void __tsan_##name(void *p) { touched(p, size, store, __builtin_return_address(0)); }
#define HOOKS(size)                                                                                          \
    HOOK(read##size, size, false)                                                                            \
    HOOK(write##size, size, true)                                                                            \
    HOOK(unaligned_read##size, size, false)                                                                  \
    HOOK(unaligned_write##size, size, true)                                                                  \
    HOOK(volatile_read##size, size, false)                                                                   \
    HOOK(volatile_write##size, size, true)                                                                   \
    HOOK(unaligned_volatile_read##size, size, false)                                                         \
    HOOK(unaligned_volatile_write##size, size, true)                                                         \
    HOOK(read_write##size, size, true)                                                                       \
    HOOK(unaligned_read_write##size, size, true)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

extern "C" {
void __tsan_read_range(void *p, long size) {
    touched(p, static_cast<uint64_t>(size), false, __builtin_return_address(0));
}
void __tsan_write_range(void *p, long size) {
    touched(p, static_cast<uint64_t>(size), true, __builtin_return_address(0));
}
void *__tsan_memcpy(void *to, const void *from, uint64_t size) {
    touched(from, size, false, __builtin_return_address(0));
    touched(to, size, true, __builtin_return_address(0));
    return memcpy(to, from, size);
}
void *__tsan_memmove(void *to, const void *from, uint64_t size) {
    touched(from, size, false, __builtin_return_address(0));
    touched(to, size, true, __builtin_return_address(0));
    return memmove(to, from, size);
}
void *__tsan_memset(void *to, int value, uint64_t size) {
    touched(to, size, true, __builtin_return_address(0));
    return memset(to, value, size);
}
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
}

// Atomic operations are replaced by calls, so these do the work too. One core runs at a time: the strictest
// order costs nothing.
#define RMW(bits, T, op)                                                                                     \
    extern "C" T __tsan_atomic##bits##_fetch_##op(T *p, T value, int) {                                      \
        touched(p, sizeof(T), true, __builtin_return_address(0));                                            \
        return __atomic_fetch_##op(p, value, __ATOMIC_SEQ_CST);                                              \
    }
#define ATOMICS(bits, T)                                                                                     \
    RMW(bits, T, add)                                                                                        \
    RMW(bits, T, sub)                                                                                        \
    RMW(bits, T, and)                                                                                        \
    RMW(bits, T, or)                                                                                         \
    RMW(bits, T, xor)                                                                                        \
    RMW(bits, T, nand)                                                                                       \
    extern "C" T __tsan_atomic##bits##_load(const T *p, int) {                                               \
        touched(p, sizeof(T), false, __builtin_return_address(0));                                           \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                         \
    }                                                                                                        \
    extern "C" void __tsan_atomic##bits##_store(T *p, T value, int) {                                        \
        touched(p, sizeof(T), true, __builtin_return_address(0));                                            \
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                        \
    }                                                                                                        \
    extern "C" T __tsan_atomic##bits##_exchange(T *p, T value, int) {                                        \
        touched(p, sizeof(T), true, __builtin_return_address(0));                                            \
        return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                              \
    }                                                                                                        \
    extern "C" int __tsan_atomic##bits##_compare_exchange_strong(T *p, T *old, T value, int, int) {          \
        touched(p, sizeof(T), true, __builtin_return_address(0));                                            \
        return __atomic_compare_exchange_n(p, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
    }                                                                                                        \
    extern "C" int __tsan_atomic##bits##_compare_exchange_weak(T *p, T *old, T value, int, int) {            \
        touched(p, sizeof(T), true, __builtin_return_address(0));                                            \
        return __atomic_compare_exchange_n(p, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
    }                                                                                                        \
    extern "C" T __tsan_atomic##bits##_compare_exchange_val(T *p, T old, T value, int, int) {                \
        touched(p, sizeof(T), true, __builtin_return_address(0));                                            \
        __atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
        return old;                                                                                          \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
