// What is done to a value that other cores see: atomic additions, and how a signal is compared.
#pragma once

#include <cstring>

#include "core.hpp"
#include "elements.hpp"

namespace insight_trace::engine {

inline uint64_t read_bits(const uint8_t *from, int size) {
    uint64_t bits = 0;
    memcpy(&bits, from, static_cast<size_t>(size));
    return bits;
}

// Adds in global memory, in the type that set_st_atomic_cfg named (integers of the operand's size without
// it).
inline uint64_t combined(Core &core, uint64_t old_bits, uint64_t new_bits, uint64_t size) {
    auto pick = [&](auto a, auto b) {
        using T = decltype(a);
        switch (core.store_atomic_op) {
        case 1:
            return larger<T>(a, b);
        case 2:
            return smaller<T>(a, b);
        default:
            return T(wrap_add<T>(a, b));
        }
    };
    switch (core.store_atomic_type) { // atomic_type_t
    case 1:
        return float_bits(
            pick(bits_float(static_cast<uint32_t>(old_bits)), bits_float(static_cast<uint32_t>(new_bits))));
    case 2:
        return float_to_half(pick(half_to_float(static_cast<uint16_t>(old_bits)),
                                  half_to_float(static_cast<uint16_t>(new_bits))));
    case 6:
        return float_to_bf16(pick(bf16_to_float(static_cast<uint16_t>(old_bits)),
                                  bf16_to_float(static_cast<uint16_t>(new_bits))));
    default:
        if (size == 1) return uint64_t(pick(static_cast<int8_t>(old_bits), static_cast<int8_t>(new_bits)));
        if (size == 2) return uint64_t(pick(static_cast<int16_t>(old_bits), static_cast<int16_t>(new_bits)));
        if (size == 4) return uint64_t(pick(static_cast<int32_t>(old_bits), static_cast<int32_t>(new_bits)));
        return uint64_t(pick(static_cast<int64_t>(old_bits), static_cast<int64_t>(new_bits)));
    }
}

// Other processes of a capture add to the same memory: a sum that was taken meanwhile is taken again.
template <class T> void add_whole(Core &core, uint8_t *at, uint64_t bits) {
    auto *to = reinterpret_cast<T *>(at);
    T seen = __atomic_load_n(to, __ATOMIC_RELAXED), sum;
    do sum = static_cast<T>(combined(core, seen, bits, sizeof(T)));
    while (!__atomic_compare_exchange_n(to, &seen, sum, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

inline void add_shared(Core &core, uint8_t *to, uint64_t size, uint64_t bits) {
    if (reinterpret_cast<uint64_t>(to) % size == 0 && size == 4) return add_whole<uint32_t>(core, to, bits);
    if (reinterpret_cast<uint64_t>(to) % size == 0 && size == 8) return add_whole<uint64_t>(core, to, bits);
    if (reinterpret_cast<uint64_t>(to) % size == 0 && size == 2) return add_whole<uint16_t>(core, to, bits);
    uint64_t sum = combined(core, read_bits(to, static_cast<int>(size)), bits, size);
    memcpy(to, &sum, static_cast<size_t>(size));
}

inline bool compares(int32_t value, uint64_t how, int32_t wanted) {
    switch (how) { // pto::comm::WaitCmp
    case 0:
        return value == wanted;
    case 1:
        return value != wanted;
    case 2:
        return value > wanted;
    case 3:
        return value >= wanted;
    case 4:
        return value < wanted;
    default:
        return value <= wanted;
    }
}

inline const char *compare_text(uint64_t how) {
    static const char *const text[] = {"==", "!=", ">", ">=", "<", "<="};
    return text[how < 6 ? how : 5];
}

} // namespace insight_trace::engine
