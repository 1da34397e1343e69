// printf, assert and DumpTensor of AscendC kernels: the text goes to the standard error of the run.
#pragma once

#include <cstdio>

#include "insight_trace/ascendc_calls.hpp"

// The buffer is there for whoever asks, and lies nowhere.
struct insight_trace_print_buffer {
    template <class T> constexpr operator T *() const { return nullptr; }
};
constexpr bool operator!=(insight_trace_print_buffer, decltype(nullptr)) { return true; }
constexpr bool operator==(insight_trace_print_buffer, decltype(nullptr)) { return false; }
inline constexpr insight_trace_print_buffer g_sysPrintFifoSpace{};

// Not the scalar unit's accesses.
#define INSIGHT_TRACE_NO_TOUCH __attribute__((no_sanitize("thread")))

namespace insight_trace {

template <class T> auto printed(T value) {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t> || std::is_same_v<T, float>)
        return static_cast<double>(static_cast<float>(value));
    else
        return value;
}
inline void print(const char *text) {
#if defined(__INSIGHT_TRACE_HOST__) // host code finds the library's printf, too
    fputs(text, stdout);
    return;
#endif
    insight_trace_intrinsic(Intrinsic::Print, reinterpret_cast<uint64_t>(text), 0, 0, Site{});
}
#if defined(__DAV_CUBE__)
constexpr const char *kPrintedKind = "AIC";
#else
constexpr const char *kPrintedKind = "AIV";
#endif
constexpr int kPrintedBytes = 2048;

template <class... Values> inline void print_formatted(const char *format, Values... values) {
    char text[kPrintedBytes];
    int head = 0;
#if !defined(__INSIGHT_TRACE_HOST__)
    head = snprintf(text, sizeof text, "[%s Block %u/%u] ", kPrintedKind,
                    unsigned(__asc_aicore::asc_debug_get_block_idx()),
                    unsigned(__asc_aicore::asc_debug_get_block_total_num()));
#endif
    snprintf(text + head, sizeof text - unsigned(head), format, printed(values)...);
    print(text);
}

// Elements of a tensor, eight a line. On chip `from` is an offset.
template <class T>
INSIGHT_TRACE_NO_TOUCH inline void print_tensor(Space space, T *from, uint32_t desc, uint32_t count) {
    pipe_barrier(PIPE_ALL);
    const T *values = from;
    if (space != Space::GM)
        values = static_cast<const T *>(insight_trace_local(space, reinterpret_cast<uint64_t>(from) & 0xfffff,
                                                            uint64_t(count) * sizeof(T), Site{}));
    print_formatted("DumpTensor: desc=%u, %u elements\n", desc, count);
    char line[kPrintedBytes];
    int used = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if constexpr (std::is_integral_v<T>)
            used += snprintf(line + used, sizeof line - unsigned(used), "%lld ", (long long)values[i]);
        else if constexpr (std::is_convertible_v<T, float>)
            used += snprintf(line + used, sizeof line - unsigned(used), "%f ", double(float(values[i])));
        else
            used += snprintf(line + used, sizeof line - unsigned(used), "? ");
        if (i % 8 != 7 && i + 1 != count) continue;
        snprintf(line + used, sizeof line - unsigned(used), "\n");
        print(line);
        used = 0;
    }
}

} // namespace insight_trace

namespace __asc_aicore {

template <class... Values> inline void printf_impl(const char *format, Values &&...values) {
    ::insight_trace::print_formatted(format, values...);
}
template <class... Values> inline void printf_impl_assert(const char *format, Values &&...values) {
    ::insight_trace::print_formatted(format, values...);
}
template <class... Values>
inline void printf_impl_assert_msg(const char *condition, const char *file, unsigned line,
                                   const char *function, const char *format, Values &&...values) {
    ::insight_trace::print_formatted("[ASSERT] %s:%u: %s: Assertion `%s' failed.\n", file, line, function,
                                     condition);
    ::insight_trace::print_formatted(format, values...);
}
template <class... Values> inline void printf(const char *format, Values &&...values) {
    ::insight_trace::print_formatted(format, values...);
}
template <class... Values> inline void PRINTF(const char *format, Values &&...values) {
    ::insight_trace::print_formatted(format, values...);
}

inline void asc_dump_shape_impl(uint32_t, const uint32_t *) {}
#define INSIGHT_TRACE_DUMPED(name, SPACE)                                                                    \
    template <class T, class... Shape> inline void name(T *input, uint32_t desc, uint32_t count, Shape...) { \
        ::insight_trace::print_tensor(::insight_trace::Space::SPACE, input, desc, count);                    \
    }
INSIGHT_TRACE_DUMPED(asc_dump_gm, GM)
INSIGHT_TRACE_DUMPED(asc_dump_ubuf, UB)
INSIGHT_TRACE_DUMPED(asc_dump_cbuf, L0C)
INSIGHT_TRACE_DUMPED(asc_dump_l1buf, L1)
#undef INSIGHT_TRACE_DUMPED
template <class T, class... Shape> inline void asc_dump(T *, uint32_t, uint32_t, Shape...) {
    ::insight_trace::not_modelled("asc_dump without the memory in its name", ::insight_trace::Site{});
}

} // namespace __asc_aicore
// The device compiler finds these without their namespace.
using __asc_aicore::asc_dump_cbuf;
using __asc_aicore::asc_dump_gm;
using __asc_aicore::asc_dump_l1buf;
using __asc_aicore::asc_dump_ubuf;
