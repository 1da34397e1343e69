// Before every source with kernels of the user's own program: what a launch becomes (program/launches.py).
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

// Which cores a kernel is for, where its declaration says so: read from the text by program/core_kinds.py.
#undef __global__
#if defined(INSIGHT_TRACE_PROGRAM)
// The library's functions become part of the kernel, so that debug lines say which line of it called them.
#define __global__ __attribute__((flatten)) __attribute__((insight_trace_kernel))
#else
#define __global__ __attribute__((insight_trace_kernel))
#endif
#ifndef __vector__
#define __vector__ __attribute__((insight_trace_vector_core))
#endif
#ifndef __cube__
#define __cube__ __attribute__((insight_trace_cube_core))
#endif
#ifndef __mix__
#define INSIGHT_TRACE_MIX(cubes, vectors) __attribute__((insight_trace_mix_core_##cubes##_##vectors))
#define __mix__(cubes, vectors)           INSIGHT_TRACE_MIX(cubes, vectors)
#endif

extern "C" {
struct insight_trace_launch_request {
    const char *entry;  // the mangled type that names the entry point
    const char *kernel; // as the source names it
    const char *file;
    uint32_t line;
    uint64_t blocks;
    void *stream;
    const void *arguments;
    uint64_t argument_bytes;
};
int insight_trace_launch(const insight_trace_launch_request *request);
}

namespace insight_trace_program {

struct Place {
    const char *kernel, *file;
    uint32_t line;
};

struct Config {
    uint64_t blocks;
    void *stream;
};
template <class Blocks, class Bytes = int, class Stream = std::nullptr_t>
Config config(Blocks blocks, Bytes = {}, Stream stream = {}) {
    return {static_cast<uint64_t>(blocks), (void *)(stream)};
}

// A literal 0 stays a null pointer or a number, as the kernel's parameter wants it.
struct Zero {
    template <class T> constexpr operator T() const { return T{}; }
};

// How an argument travels: by value, or, where it owns something and stands for a pointer, as that pointer.
struct Pointer {
    void *address;
    template <class T> constexpr operator T *() const { return static_cast<T *>(address); }
};
template <class T>
inline constexpr bool is_owner = std::is_class_v<T> && !std::is_trivially_copyable_v<T> &&
                                 std::is_convertible_v<T &, const volatile void *>;
template <class T, class Plain = std::decay_t<T>, bool = is_owner<Plain>> struct Argument {
    static Plain of(Plain value) { return value; }
};
template <class T, class Plain> struct Argument<T, Plain, true> {
    static Pointer of(T &&owner) { return {const_cast<void *>(static_cast<const volatile void *>(owner))}; }
};

// The entry point of one launch: it takes the arguments as the host packed them. No argument has their type,
// so that its mangled name ends in the same letters for all.
struct Packed;
template <uint64_t Site, class Call, class... Values> struct Entry {
    [[gnu::used]] static void call(Packed *packed) {
        alignas(Call) char none[sizeof(Call)];
        auto &values = *reinterpret_cast<std::tuple<Values...> *>(packed);
        std::apply(*reinterpret_cast<Call *>(none), values);
    }
};

// What a launch is worth as an expression: an error of the launch itself, not of the kernel, which runs later
// on a device.
template <uint64_t Site, class Call, class... Values>
inline int launch(Place place, Config config, Call, Values... values) {
#ifndef __INSIGHT_TRACE_HOST__
    (void)place;
    (void)config;
    (void)&Entry<Site, Call, Values...>::call;
    (void)std::initializer_list<int>{((void)values, 0)...};
    return 0;
#else
    const std::tuple<Values...> packed(values...);
    const insight_trace_launch_request request{typeid(Entry<Site, Call, Values...>).name(),
                                               place.kernel,
                                               place.file,
                                               place.line,
                                               config.blocks,
                                               config.stream,
                                               &packed,
                                               sizeof packed};
    return insight_trace_launch(&request);
#endif
}

} // namespace insight_trace_program
