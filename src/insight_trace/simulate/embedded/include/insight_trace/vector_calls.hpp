// Vector instructions under the names of the device compiler: each line of isa/vector.def becomes a function
// with its arguments spelled out and one with them packed into a word. Steps between blocks and between
// repeats are in blocks of 32 bytes unless a form says otherwise.
#pragma once

#include "insight_trace/cube.hpp"

enum Order_t { VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };
enum ub_addr8_t : uint8_t { VA0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 };
enum vpart_t : uint8_t { L128, H128 };
#define __bf16 bfloat16_t

namespace insight_trace {

template <class T> constexpr Type unit_type() {
    if constexpr (std::is_void_v<T>)
        return Type::U8; // the name says what it is
    else
        return type_of<T>();
}

// A number as the bits of an element.
template <class T, class V> uint64_t number_bits(V value) { return value_bits(static_cast<T>(value)); }

struct VectorSteps {
    uint64_t blocks[3] = {1, 1, 1}, repeats[3] = {8, 8, 8};
};

// The three ways in which words hold steps.
constexpr VectorSteps binary_steps(uint64_t word) {
    return {{field(word, 0, 8), field(word, 8, 8), field(word, 16, 8)},
            {field(word, 24, 8), field(word, 32, 8), field(word, 40, 8)}};
}
constexpr VectorSteps unary_steps(uint64_t word) {
    return {{field(word, 0, 16), field(word, 16, 16), 0},
            {field(word, 32, 8) | field(word, 52, 4) << 8, field(word, 40, 12), 0}};
}
constexpr VectorSteps reduce_steps(uint64_t word) {
    return {{1, field(word, 16, 16), 0}, {field(word, 0, 16), field(word, 32, 16), 0}};
}
constexpr uint64_t repeats_of(uint64_t word) { return field(word, 56, 8); }

inline void vector_call(VectorRow row, uint64_t types, uint64_t dst, uint64_t src0, uint64_t src1,
                        uint64_t repeats, const VectorSteps &steps, uint64_t option, Site at) {
    const uint64_t values[] = {uint64_t(row),
                               types,
                               dst,
                               src0,
                               src1,
                               repeats,
                               steps.blocks[0],
                               steps.blocks[1],
                               steps.blocks[2],
                               steps.repeats[0],
                               steps.repeats[1],
                               steps.repeats[2],
                               option};
    insight_trace_raw(Raw::Vector, values, at);
}
template <class D, class A, class B = A> constexpr uint64_t types_of() {
    return uint64_t(unit_type<D>()) | uint64_t(unit_type<A>()) << 8 | uint64_t(unit_type<B>()) << 16;
}
template <class D, class A>
inline void vector_call(VectorRow row, D *dst, A *src0, uint64_t src1, uint64_t repeats,
                        const VectorSteps &steps, uint64_t option, Site at) {
    vector_call(row, types_of<D, A>(), reinterpret_cast<uint64_t>(dst), reinterpret_cast<uint64_t>(src0),
                src1, repeats, steps, option, at);
}

} // namespace insight_trace

// --- the forms. `row` is the instruction's; the last flag of a call is that of the instruction.
#define INSIGHT_TRACE_ROW(name) ::insight_trace::VectorRow::name
#define INSIGHT_TRACE_Binary(name)                                                                           \
    template <class D, class A, class B>                                                                     \
    inline void name(D *dst, A *src0, B *src1, uint8_t repeats, uint8_t dst_block, uint8_t src0_block,       \
                     uint8_t src1_block, uint8_t dst_repeat, uint8_t src0_repeat, uint8_t src1_repeat,       \
                     INSIGHT_TRACE_AT) {                                                                     \
        insight_trace::vector_call(                                                                          \
            INSIGHT_TRACE_ROW(name), dst, src0, reinterpret_cast<uint64_t>(src1), repeats,                   \
            {{dst_block, src0_block, src1_block}, {dst_repeat, src0_repeat, src1_repeat}}, 0, at);           \
    }                                                                                                        \
    template <class D, class A, class B>                                                                     \
    inline void name(D *dst, A *src0, B *src1, uint64_t word, INSIGHT_TRACE_AT) {                            \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src0, reinterpret_cast<uint64_t>(src1),     \
                                   insight_trace::repeats_of(word), insight_trace::binary_steps(word), 0,    \
                                   at);                                                                      \
    }
#define INSIGHT_TRACE_Compare(name) INSIGHT_TRACE_Binary(name)
#define INSIGHT_TRACE_Narrow(name)                                                                           \
    INSIGHT_TRACE_Binary(name) template <class D, class A>                                                   \
    inline void name(D *dst, A *src0, A *src1, uint8_t repeats, uint8_t dst_block, uint8_t src0_block,       \
                     uint8_t src1_block, uint8_t dst_repeat, uint8_t src0_repeat, uint8_t src1_repeat, bool, \
                     INSIGHT_TRACE_AT) {                                                                     \
        name(dst, src0, src1, repeats, dst_block, src0_block, src1_block, dst_repeat, src0_repeat,           \
             src1_repeat, at);                                                                               \
    }                                                                                                        \
    template <class D, class A>                                                                              \
    inline void name(D *dst, A *src0, A *src1, uint64_t word, bool, INSIGHT_TRACE_AT) {                      \
        name(dst, src0, src1, word, at);                                                                     \
    }
#define INSIGHT_TRACE_Select(name)                                                                           \
    template <class D, class A, class B, class Mode = uint8_t>                                               \
    inline void name(D *dst, A *src0, B *src1, uint8_t repeats, uint8_t dst_block, uint8_t src0_block,       \
                     uint8_t src1_block, uint8_t dst_repeat, uint8_t src0_repeat, uint8_t src1_repeat,       \
                     Mode mode = Mode(), INSIGHT_TRACE_AT) {                                                 \
        insight_trace::vector_call(                                                                          \
            INSIGHT_TRACE_ROW(name), dst, src0, reinterpret_cast<uint64_t>(src1), repeats,                   \
            {{dst_block, src0_block, src1_block}, {dst_repeat, src0_repeat, src1_repeat}},                   \
            static_cast<uint8_t>(mode), at);                                                                 \
    }                                                                                                        \
    template <class D, class A, class B>                                                                     \
    inline void name(D *dst, A *src0, B *src1, uint64_t word, INSIGHT_TRACE_AT) {                            \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src0, reinterpret_cast<uint64_t>(src1),     \
                                   insight_trace::repeats_of(word), insight_trace::binary_steps(word),       \
                                   insight_trace::field(word, 48, 2), at);                                   \
    }
#define INSIGHT_TRACE_CompareToRegister(name)                                                                \
    template <class A>                                                                                       \
    inline void name(A *src0, A *src1, uint8_t repeats, uint8_t dst_block, uint8_t src0_block,               \
                     uint8_t src1_block, uint8_t dst_repeat, uint8_t src0_repeat, uint8_t src1_repeat,       \
                     INSIGHT_TRACE_AT) {                                                                     \
        insight_trace::vector_call(                                                                          \
            INSIGHT_TRACE_ROW(name), src0, src0, reinterpret_cast<uint64_t>(src1), repeats,                  \
            {{dst_block, src0_block, src1_block}, {dst_repeat, src0_repeat, src1_repeat}}, 0, at);           \
    }                                                                                                        \
    template <class A> inline void name(A *src0, A *src1, uint64_t word, INSIGHT_TRACE_AT) {                 \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), src0, src0, reinterpret_cast<uint64_t>(src1),    \
                                   insight_trace::repeats_of(word), insight_trace::binary_steps(word), 0,    \
                                   at);                                                                      \
    }
#define INSIGHT_TRACE_Scalar(name)                                                                           \
    template <class D, class A, class V>                                                                     \
    inline void name(D *dst, A *src, V value, uint8_t repeats, uint16_t dst_block, uint16_t src_block,       \
                     uint16_t dst_repeat, uint16_t src_repeat, INSIGHT_TRACE_AT) {                           \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, insight_trace::number_bits<A>(value),  \
                                   repeats, {{dst_block, src_block, 0}, {dst_repeat, src_repeat, 0}}, 0,     \
                                   at);                                                                      \
    }                                                                                                        \
    template <class D, class A, class V>                                                                     \
    inline void name(D *dst, A *src, V value, uint64_t word, INSIGHT_TRACE_AT) {                             \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, insight_trace::number_bits<A>(value),  \
                                   insight_trace::repeats_of(word), insight_trace::unary_steps(word), 0,     \
                                   at);                                                                      \
    }
#define INSIGHT_TRACE_CompareNumber(name) INSIGHT_TRACE_Scalar(name)
// The last flag rounds what is shifted out.
#define INSIGHT_TRACE_Shift(name)                                                                            \
    INSIGHT_TRACE_Scalar(name) template <class T, class V>                                                   \
    inline void name(T *dst, T *src, V value, uint8_t repeats, uint16_t dst_block, uint16_t src_block,       \
                     uint16_t dst_repeat, uint16_t src_repeat, bool rounds, INSIGHT_TRACE_AT) {              \
        if (rounds) insight_trace::not_modelled(#name " that rounds", at);                                   \
        name(dst, src, value, repeats, dst_block, src_block, dst_repeat, src_repeat, at);                    \
    }                                                                                                        \
    template <class T, class V>                                                                              \
    inline void name(T *dst, T *src, V value, uint64_t word, bool rounds, INSIGHT_TRACE_AT) {                \
        if (rounds) insight_trace::not_modelled(#name " that rounds", at);                                   \
        name(dst, src, value, word, at);                                                                     \
    }
#define INSIGHT_TRACE_Unary(name)                                                                            \
    template <class D, class A>                                                                              \
    inline void name(D *dst, A *src, uint8_t repeats, uint16_t dst_block, uint16_t src_block,                \
                     uint16_t dst_repeat, uint16_t src_repeat, INSIGHT_TRACE_AT) {                           \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, 0, repeats,                            \
                                   {{dst_block, src_block, 0}, {dst_repeat, src_repeat, 0}}, 0, at);         \
    }                                                                                                        \
    template <class D, class A> inline void name(D *dst, A *src, uint64_t word, INSIGHT_TRACE_AT) {          \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, 0, insight_trace::repeats_of(word),    \
                                   insight_trace::unary_steps(word), 0, at);                                 \
    }
#define INSIGHT_TRACE_Fill(name)                                                                             \
    template <class T, class V>                                                                              \
    inline void name(T *dst, V value, uint8_t repeats, uint16_t dst_block, uint16_t, uint16_t dst_repeat,    \
                     uint16_t, INSIGHT_TRACE_AT) {                                                           \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, dst, insight_trace::number_bits<T>(value),  \
                                   repeats, {{dst_block, 0, 0}, {dst_repeat, 0, 0}}, 0, at);                 \
    }                                                                                                        \
    template <class T, class V> inline void name(T *dst, V value, uint64_t word, INSIGHT_TRACE_AT) {         \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, dst, insight_trace::number_bits<T>(value),  \
                                   insight_trace::repeats_of(word), insight_trace::unary_steps(word), 0,     \
                                   at);                                                                      \
    }
// The result's steps count elements: one of each repeat, or what the order says.
#define INSIGHT_TRACE_REDUCED(name, Option)                                                                  \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint8_t repeats, uint16_t dst_repeat, uint16_t src_block,               \
                     uint16_t src_repeat, Option option, INSIGHT_TRACE_AT) {                                 \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, 0, repeats,                            \
                                   {{1, src_block, 0}, {dst_repeat, src_repeat, 0}}, uint64_t(option), at);  \
    }                                                                                                        \
    template <class T> inline void name(T *dst, T *src, uint64_t word, Option option, INSIGHT_TRACE_AT) {    \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, 0, insight_trace::repeats_of(word),    \
                                   insight_trace::reduce_steps(word), uint64_t(option), at);                 \
    }
#define INSIGHT_TRACE_Extreme(name) INSIGHT_TRACE_REDUCED(name, Order_t)
#define INSIGHT_TRACE_Reduce(name)                                                                           \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint8_t repeats, uint16_t dst_repeat, uint16_t src_block,               \
                     uint16_t src_repeat, INSIGHT_TRACE_AT) {                                                \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, 0, repeats,                            \
                                   {{1, src_block, 0}, {dst_repeat, src_repeat, 0}}, 0, at);                 \
    }                                                                                                        \
    template <class T> inline void name(T *dst, T *src, uint64_t word, INSIGHT_TRACE_AT) {                   \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, 0, insight_trace::repeats_of(word),    \
                                   insight_trace::reduce_steps(word), 0, at);                                \
    }
#define INSIGHT_TRACE_Sum(name) INSIGHT_TRACE_Reduce(name) INSIGHT_TRACE_REDUCED(name, bool)
#define INSIGHT_TRACE_MaskRegister(name)                                                                     \
    template <class T> inline void name(T *place, INSIGHT_TRACE_AT) {                                        \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), place, place, 0, 1, {}, 0, at);                  \
    }
#define INSIGHT_TRACE_Spread(name)                                                                           \
    template <class T>                                                                                       \
    inline void name(T *dst, T *src, uint16_t dst_block, uint16_t dst_repeat, uint8_t repeats,               \
                     INSIGHT_TRACE_AT) {                                                                     \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, 0, repeats,                            \
                                   {{dst_block, 1, 0}, {dst_repeat, 1, 0}}, 0, at);                          \
    }                                                                                                        \
    template <class T> inline void name(T *dst, T *src, uint64_t word, INSIGHT_TRACE_AT) {                   \
        insight_trace::VectorSteps steps = insight_trace::unary_steps(word);                                 \
        steps.blocks[1] = steps.repeats[1] = 1;                                                              \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, 0, insight_trace::repeats_of(word),    \
                                   steps, 0, at);                                                            \
    }
// An offset in bytes of each element (or block), from `base` on.
#define INSIGHT_TRACE_Gather(name)                                                                           \
    template <class T>                                                                                       \
    inline void name(T *dst, uint32_t *offsets, uint32_t base, uint16_t dst_repeat, uint8_t repeats,         \
                     INSIGHT_TRACE_AT) {                                                                     \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, offsets, base, repeats,                     \
                                   {{1, 1, 0}, {dst_repeat, 8, 0}}, 0, at);                                  \
    }                                                                                                        \
    template <class T> inline void name(T *dst, uint32_t *offsets, uint64_t word, INSIGHT_TRACE_AT) {        \
        name(dst, offsets, uint32_t(word),                                                                   \
             uint16_t(insight_trace::field(word, 32, 8) | insight_trace::field(word, 52, 4) << 8),           \
             uint8_t(insight_trace::repeats_of(word)), at);                                                  \
    }
#define INSIGHT_TRACE_GatherBlocks(name)                                                                     \
    template <class T>                                                                                       \
    inline void name(T *dst, uint32_t *offsets, uint32_t base, uint16_t dst_repeat, uint8_t dst_block,       \
                     uint8_t repeats, INSIGHT_TRACE_AT) {                                                    \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, offsets, base, repeats,                     \
                                   {{dst_block, 1, 0}, {dst_repeat, 8, 0}}, 0, at);                          \
    }                                                                                                        \
    template <class T> inline void name(T *dst, uint32_t *offsets, uint64_t word, INSIGHT_TRACE_AT) {        \
        name(dst, offsets, uint32_t(word),                                                                   \
             uint16_t(insight_trace::field(word, 32, 8) | insight_trace::field(word, 52, 4) << 8),           \
             uint8_t(insight_trace::field(word, 40, 8)), uint8_t(insight_trace::repeats_of(word)), at);      \
    }
#define INSIGHT_TRACE_Squeeze(name)                                                                          \
    template <class T, class Pattern>                                                                        \
    inline void name(T *dst, T *src0, T *src1, uint16_t repeats, uint8_t src0_block, Pattern pattern,        \
                     uint16_t src0_repeat, uint16_t src1_repeat, INSIGHT_TRACE_AT) {                         \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src0, reinterpret_cast<uint64_t>(src1),     \
                                   repeats, {{1, src0_block, 1}, {8, src0_repeat, src1_repeat}},             \
                                   static_cast<uint8_t>(pattern), at);                                       \
    }                                                                                                        \
    template <class T> inline void name(T *dst, T *src0, T *src1, uint64_t word, INSIGHT_TRACE_AT) {         \
        name(dst, src0, src1,                                                                                \
             uint16_t(insight_trace::field(word, 0, 8) | insight_trace::repeats_of(word) << 8),              \
             uint8_t(word >> 8), uint8_t(word >> 16), uint16_t(word >> 24), uint16_t(word >> 40), at);       \
    }
#define INSIGHT_TRACE_Sort(name)                                                                             \
    template <class T>                                                                                       \
    inline void name(T *dst, T *scores, uint32_t *indices, uint8_t repeats, INSIGHT_TRACE_AT) {              \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, scores,                                     \
                                   reinterpret_cast<uint64_t>(indices), repeats, {}, 0, at);                 \
    }
#define INSIGHT_TRACE_Merge(name)                                                                            \
    template <class T>                                                                                       \
    inline void name(T *dst, T **lists, uint64_t lengths, uint64_t how, INSIGHT_TRACE_AT) {                  \
        const uint64_t values[] = {uint64_t(insight_trace::unit_type<T>()),                                  \
                                   reinterpret_cast<uint64_t>(dst),                                          \
                                   reinterpret_cast<uint64_t>(lists[0]),                                     \
                                   reinterpret_cast<uint64_t>(lists[1]),                                     \
                                   reinterpret_cast<uint64_t>(lists[2]),                                     \
                                   reinterpret_cast<uint64_t>(lists[3]),                                     \
                                   lengths,                                                                  \
                                   how};                                                                     \
        insight_trace_raw(insight_trace::Raw::Merge, values, at);                                            \
    }                                                                                                        \
    template <class T>                                                                                       \
    inline void name(T *dst, T **lists, uint8_t repeats, uint16_t first, uint16_t second, uint16_t third,    \
                     uint16_t fourth, bool stops, uint8_t valid, INSIGHT_TRACE_AT) {                         \
        name(dst, lists,                                                                                     \
             uint64_t(first) | uint64_t(second) << 16 | uint64_t(third) << 32 | uint64_t(fourth) << 48,      \
             uint64_t(repeats) | uint64_t(valid & 15) << 8 | uint64_t(stops) << 12, at);                     \
    }
#define INSIGHT_TRACE_Turn(name)                                                                             \
    inline void name(ub_addr8_t dst, ub_addr8_t src, uint8_t repeats, uint16_t dst_repeat,                   \
                     uint16_t src_repeat, INSIGHT_TRACE_AT) {                                                \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), insight_trace::types_of<uint16_t, uint16_t>(),   \
                                   dst, src, 0, repeats, {{1, 1, 0}, {dst_repeat, src_repeat, 0}}, 0, at);   \
    }                                                                                                        \
    inline void name(ub_addr8_t dst, ub_addr8_t src, uint64_t word, INSIGHT_TRACE_AT) {                      \
        name(dst, src, uint8_t(insight_trace::repeats_of(word)), uint16_t(word), uint16_t(word >> 16), at);  \
    }
#define INSIGHT_TRACE_TurnBytes(name)                                                                        \
    inline void name(ub_addr8_t dst, ub_addr8_t src, uint8_t repeats, uint16_t dst_repeat,                   \
                     uint16_t src_repeat, bool dst_high, bool src_high, INSIGHT_TRACE_AT) {                  \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), insight_trace::types_of<uint8_t, uint8_t>(),     \
                                   dst, src, 0, repeats, {{1, 1, 0}, {dst_repeat, src_repeat, 0}},           \
                                   uint64_t(dst_high) << 3 | uint64_t(src_high) << 4, at);                   \
    }                                                                                                        \
    inline void name(ub_addr8_t dst, ub_addr8_t src, uint64_t word, bool dst_high, bool src_high,            \
                     INSIGHT_TRACE_AT) {                                                                     \
        name(dst, src, uint8_t(insight_trace::repeats_of(word)), uint16_t(word), uint16_t(word >> 16),       \
             dst_high, src_high, at);                                                                        \
    }
#define INSIGHT_TRACE_TurnSquare(name)                                                                       \
    template <class T> inline void name(T *dst, T *src, INSIGHT_TRACE_AT) {                                  \
        insight_trace::vector_call(INSIGHT_TRACE_ROW(name), dst, src, 0, 1, {}, 0, at);                      \
    }

#define VECTOR(name, instr, form, mode) INSIGHT_TRACE_##form(name)
#define CONVERT(name, from, to, mode)   INSIGHT_TRACE_Unary(name)
#define REQUANTISE(name, mode)          INSIGHT_TRACE_Unary(name)
#define NARROW(name, instr, from, to)   INSIGHT_TRACE_Narrow(name)
#include "insight_trace/isa/vector.def"
#undef VECTOR
#undef CONVERT
#undef REQUANTISE
#undef NARROW

// --- registers that these instructions read and leave
#define INSIGHT_TRACE_READS(name, spr)                                                                       \
    inline int64_t name(INSIGHT_TRACE_AT) {                                                                  \
        return static_cast<int64_t>(INSIGHT_TRACE_CALL(GetSpr, ::insight_trace::Spr::spr, 0, 0));            \
    }
INSIGHT_TRACE_READS(get_acc_val, ACC_VAL)
INSIGHT_TRACE_READS(get_max_min_cnt, MAX_MIN_CNT)
INSIGHT_TRACE_READS(get_rsvd_cnt, RSVD_CNT)
INSIGHT_TRACE_READS(get_vms4_sr, VMS4_SR)
#undef INSIGHT_TRACE_READS
// A half, or a word of scale, offset and sign.
template <class T> inline void set_deqscale(T value, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(SetSpr, ::insight_trace::Spr::DEQSCALE, ::insight_trace::value_bits(value),
                       ::insight_trace::PipeId::V);
}
// Eight places in UB, or half of them from memory.
inline void set_va_reg_sb(ub_addr8_t va, uint64_t *addresses, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(SetVa, uint64_t(va) * 8, addresses, 0);
}
inline void vld_va_reg(ub_addr8_t va, uint64_t *addresses, vpart_t part, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(SetVa, uint64_t(va) * 8 + (part == H128 ? 4 : 0), addresses, 1);
}

// --- functions of the scalar unit on bits and numbers
inline int64_t sff0(uint64_t value) { return ~value ? __builtin_ctzll(~value) : -1; }
inline int64_t sff1(uint64_t value) { return value ? __builtin_ctzll(value) : -1; }
inline int64_t bcnt0(uint64_t value) { return 64 - __builtin_popcountll(value); }
inline int64_t bcnt1(uint64_t value) { return __builtin_popcountll(value); }
inline int64_t clz(uint64_t value) { return value ? __builtin_clzll(value) : 64; }
// Bits from the top that repeat the sign, without the sign itself.
inline int64_t sflbits(int64_t value) { return value == 0 || value == -1 ? 63 : __builtin_clrsbll(value); }
#define INSIGHT_TRACE_TO_INTEGER(name, function)                                                             \
    inline int32_t name(float value) {                                                                       \
        const float whole = function(value);                                                                 \
        return whole != whole     ? 0                                                                        \
               : whole >= 0x1p31f ? INT32_MAX                                                                \
               : whole < -0x1p31f ? INT32_MIN                                                                \
                                  : static_cast<int32_t>(whole);                                             \
    }
INSIGHT_TRACE_TO_INTEGER(conv_f322s32r, __builtin_nearbyintf)
INSIGHT_TRACE_TO_INTEGER(conv_f322s32a, __builtin_roundf)
INSIGHT_TRACE_TO_INTEGER(conv_f322s32f, __builtin_floorf)
INSIGHT_TRACE_TO_INTEGER(conv_f322s32c, __builtin_ceilf)
INSIGHT_TRACE_TO_INTEGER(conv_f322s32z, __builtin_truncf)
#undef INSIGHT_TRACE_TO_INTEGER
// To odd: what is cut off sets the last bit.
inline half conv_f322f16o(float value) {
    half cut = value;
    if (float(cut) == value || value != value) return cut;
    const float magnitude = value < 0 ? -value : value, kept = float(cut) < 0 ? -float(cut) : float(cut);
    if (kept > magnitude) --cut.bits; // toward zero
    cut.bits |= 1;
    return cut;
}
// The number itself.
template <class T> constexpr T get_imm(T value) { return value; }
