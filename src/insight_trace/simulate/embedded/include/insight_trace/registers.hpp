// Instructions on vector registers, each line of isa/register.def under the name of the device compiler. One
// is a call of the engine with its registers, its predicate and a word that says the rest.
#pragma once

#include "insight_trace/raw.hpp"
#include "insight_trace/register_types.hpp"

namespace insight_trace {

// One function of the vector unit, from its first instruction to its last.
struct VectorScope {
    explicit VectorScope(Site at) { insight_trace_begin_function(at); }
    ~VectorScope() { insight_trace_end_function(); }
    VectorScope(const VectorScope &) = delete;
};

template <class T> constexpr Type element_type() {
    if constexpr (std::is_same_v<T, vector_address>)
        return Type::U32;
    else
        return type_of<T>();
}
// The bits of a number in the type of a register's elements.
template <class T, class V> inline uint64_t scalar_bits(V value) {
    if constexpr (sizeof(T) == 1 && !std::is_integral_v<T>)
        return value_bits(value); // of a narrow float: its code
    else
        return value_bits(static_cast<T>(value));
}

struct CallOptions {
    uint8_t merges = 0, option[3] = {};
    uint64_t number = 0;
};
template <class D, class A>
inline void register_call(RegisterRow row, void *dst, const void *a, const void *b, const Predicate *mask,
                          const CallOptions &options) {
    insight_trace_register({row,
                            element_type<D>(),
                            element_type<A>(),
                            options.merges,
                            {options.option[0], options.option[1], options.option[2]}},
                           dst, a, b, mask, options.number);
}
// Lanes that are off keep what they hold; they become 0 where nobody says.
constexpr uint8_t merges(Merging mode) { return mode == Merging::Merging; }

// What conversions are told beside their registers, in any order.
struct ConversionOptions {
    Rounding rounding = Rounding::None;
    Saturation saturation = Saturation::Default;
    Part part = Part::EVEN;
    Merging mode = Merging::Zeroing;
    void take(Rounding value) { rounding = value; }
    void take(Saturation value) { saturation = value; }
    void take(Part value) { part = value; }
    void take(Merging value) { mode = value; }
    template <class E, E value> void take(Word<E, value> word) { take(E(word)); }
    template <class E, E value> void take(std::integral_constant<E, value>) { take(value); }
};

} // namespace insight_trace

#define __VEC_SCOPE__ if (::insight_trace::VectorScope insight_trace_scope{INSIGHT_TRACE_SITE}; true)
#if defined(INSIGHT_TRACE_LIBRARY)
#define INSIGHT_TRACE_SITE                                                                                   \
    ::insight_trace::Site {}
#else
#define INSIGHT_TRACE_SITE ::insight_trace::Site::here()
#endif

#define INSIGHT_TRACE_REGISTERS(...)     std::enable_if_t<(::insight_trace::is_register<__VA_ARGS__>), int> = 0
#define INSIGHT_TRACE_REGISTER_ROW(name) ::insight_trace::RegisterRow::name
#define INSIGHT_TRACE_BYTES(reg)         ::insight_trace::register_bytes(reg)
#define INSIGHT_TRACE_ELEMENTS(D, A)     ::insight_trace::ElementOf<D>, ::insight_trace::ElementOf<A>

// --- the forms
#define INSIGHT_TRACE_REGISTER_Unary(name)                                                                   \
    template <class D, class A, INSIGHT_TRACE_REGISTERS(D)>                                                  \
    inline void name(D &&dst, A &&a, const vector_bool &mask,                                                \
                     insight_trace::Merging mode = insight_trace::Merging::Zeroing) {                        \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a), nullptr,     \
            &mask, {insight_trace::merges(mode), {}, 0});                                                    \
    }
#define INSIGHT_TRACE_REGISTER_Reduce(name) INSIGHT_TRACE_REGISTER_Unary(name)
#define INSIGHT_TRACE_REGISTER_Binary(name)                                                                  \
    template <class D, class A, class B, INSIGHT_TRACE_REGISTERS(D)>                                         \
    inline void name(D &&dst, A &&a, B &&b, const vector_bool &mask,                                         \
                     insight_trace::Merging mode = insight_trace::Merging::Zeroing) {                        \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a),              \
            INSIGHT_TRACE_BYTES(b), &mask, {insight_trace::merges(mode), {}, 0});                            \
    }
#define INSIGHT_TRACE_REGISTER_Scalar(name)                                                                  \
    template <class D, class A, class V, INSIGHT_TRACE_REGISTERS(D)>                                         \
    inline void name(D &&dst, A &&a, V value, const vector_bool &mask,                                       \
                     insight_trace::Merging mode = insight_trace::Merging::Zeroing) {                        \
        using namespace insight_trace;                                                                       \
        register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                                         \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a), nullptr,     \
            &mask, {insight_trace::merges(mode), {}, scalar_bits<ElementOf<A>>(value)});                     \
    }
#define INSIGHT_TRACE_REGISTER_Move(name)                                                                    \
    INSIGHT_TRACE_REGISTER_Unary(name) template <class D, class A, INSIGHT_TRACE_REGISTERS(D)>               \
    inline void name(D &&dst, A &&a) {                                                                       \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a), nullptr,     \
            nullptr, {});                                                                                    \
    }
#define INSIGHT_TRACE_REGISTER_Parted(name)                                                                  \
    template <class D, class A, class B, INSIGHT_TRACE_REGISTERS(D)>                                         \
    inline void name(D &&dst, A &&a, B &&b, const vector_bool &mask, insight_trace::Part part) {             \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a),              \
            INSIGHT_TRACE_BYTES(b), &mask, {0, {uint8_t(part)}, 0});                                         \
    }
// Two results.
#define INSIGHT_TRACE_REGISTER_Wide(name)                                                                    \
    template <class D, class E, class A, class B, INSIGHT_TRACE_REGISTERS(D)>                                \
    inline void name(D &&low, E &&high, A &&a, B &&b, const vector_bool &mask) {                             \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(low), INSIGHT_TRACE_BYTES(a),              \
            INSIGHT_TRACE_BYTES(b), &mask, {0, {}, reinterpret_cast<uint64_t>(INSIGHT_TRACE_BYTES(high))});  \
    }
#define INSIGHT_TRACE_REGISTER_Pair(name)                                                                    \
    template <class D, class E, class A, class B, INSIGHT_TRACE_REGISTERS(D)>                                \
    inline void name(D &&low, E &&high, A &&a, B &&b) {                                                      \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(low), INSIGHT_TRACE_BYTES(a),              \
            INSIGHT_TRACE_BYTES(b), nullptr,                                                                 \
            {0, {}, reinterpret_cast<uint64_t>(INSIGHT_TRACE_BYTES(high))});                                 \
    }
// The carry of each lane comes and goes as a predicate.
#define INSIGHT_TRACE_REGISTER_Carry(name)                                                                   \
    template <class D, class A, class B, INSIGHT_TRACE_REGISTERS(D)>                                         \
    inline void name(vector_bool &carry, D &&dst, A &&a, B &&b, const vector_bool &mask) {                   \
        vector_bool *const carries[] = {&carry, nullptr};                                                    \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a),              \
            INSIGHT_TRACE_BYTES(b), &mask, {0, {}, reinterpret_cast<uint64_t>(carries)});                    \
    }
#define INSIGHT_TRACE_REGISTER_CarryIn(name)                                                                 \
    template <class D, class A, class B, INSIGHT_TRACE_REGISTERS(D)>                                         \
    inline void name(vector_bool &carry, D &&dst, A &&a, B &&b, vector_bool &in, const vector_bool &mask) {  \
        vector_bool *const carries[] = {&carry, &in};                                                        \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a),              \
            INSIGHT_TRACE_BYTES(b), &mask, {0, {}, reinterpret_cast<uint64_t>(carries)});                    \
    }
// Of a number, or of the first or last lane of a register.
#define INSIGHT_TRACE_REGISTER_Fill(name)                                                                    \
    template <class D, class V, INSIGHT_TRACE_REGISTERS(D)>                                                  \
    inline void name(D &&dst, V &&value, const vector_bool &mask,                                            \
                     insight_trace::Merging mode = insight_trace::Merging::Zeroing) {                        \
        using namespace insight_trace;                                                                       \
        if constexpr (is_register<V>)                                                                        \
            name(dst, value, mask, Position::Lowest, mode);                                                  \
        else                                                                                                 \
            register_call<INSIGHT_TRACE_ELEMENTS(D, D)>(                                                     \
                INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), nullptr, nullptr, &mask,         \
                {insight_trace::merges(mode), {}, scalar_bits<ElementOf<D>>(value)});                        \
    }                                                                                                        \
    template <class D, class A, INSIGHT_TRACE_REGISTERS(D)>                                                  \
    inline void name(D &&dst, A &&a, const vector_bool &mask, insight_trace::Position position,              \
                     insight_trace::Merging mode) {                                                          \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a), nullptr,     \
            &mask, {insight_trace::merges(mode), {uint8_t(position)}, 0});                                   \
    }
#define INSIGHT_TRACE_REGISTER_Broadcast(name)                                                               \
    template <class D, class V, INSIGHT_TRACE_REGISTERS(D)> inline void name(D &&dst, V value) {             \
        using namespace insight_trace;                                                                       \
        register_call<INSIGHT_TRACE_ELEMENTS(D, D)>(INSIGHT_TRACE_REGISTER_ROW(name),                        \
                                                    INSIGHT_TRACE_BYTES(dst), nullptr, nullptr, nullptr,     \
                                                    {0, {}, scalar_bits<ElementOf<D>>(value)});              \
    }
#define INSIGHT_TRACE_REGISTER_Sequence(name)                                                                \
    template <class D, class V, INSIGHT_TRACE_REGISTERS(D)>                                                  \
    inline void name(D &&dst, V first,                                                                       \
                     insight_trace::Direction direction = insight_trace::Direction::Rising) {                \
        using namespace insight_trace;                                                                       \
        register_call<INSIGHT_TRACE_ELEMENTS(D, D)>(                                                         \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), nullptr, nullptr, nullptr,           \
            {0, {uint8_t(direction)}, scalar_bits<ElementOf<D>>(first)});                                    \
    }
#define INSIGHT_TRACE_REGISTER_Compare(name)                                                                 \
    template <class A, class B, INSIGHT_TRACE_REGISTERS(A)>                                                  \
    inline void name(vector_bool &dst, A &&a, B &&b, const vector_bool &mask) {                              \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(A, A)>(INSIGHT_TRACE_REGISTER_ROW(name), &dst,   \
                                                                   INSIGHT_TRACE_BYTES(a),                   \
                                                                   INSIGHT_TRACE_BYTES(b), &mask, {});       \
    }
#define INSIGHT_TRACE_REGISTER_CompareScalar(name)                                                           \
    template <class A, class V, INSIGHT_TRACE_REGISTERS(A)>                                                  \
    inline void name(vector_bool &dst, A &&a, V value, const vector_bool &mask) {                            \
        using namespace insight_trace;                                                                       \
        register_call<INSIGHT_TRACE_ELEMENTS(A, A)>(INSIGHT_TRACE_REGISTER_ROW(name), &dst,                  \
                                                    INSIGHT_TRACE_BYTES(a), nullptr, &mask,                  \
                                                    {0, {}, scalar_bits<ElementOf<A>>(value)});              \
    }
#define INSIGHT_TRACE_REGISTER_Select(name)                                                                  \
    template <class D, class A, class B, INSIGHT_TRACE_REGISTERS(D)>                                         \
    inline void name(D &&dst, A &&a, B &&b, const vector_bool &mask) {                                       \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a),              \
            INSIGHT_TRACE_BYTES(b), &mask, {});                                                              \
    }
#define INSIGHT_TRACE_REGISTER_Pick(name)                                                                    \
    template <class D, class A, class B, INSIGHT_TRACE_REGISTERS(D)>                                         \
    inline void name(D &&dst, A &&a, B &&index) {                                                            \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a),              \
            INSIGHT_TRACE_BYTES(index), nullptr, {});                                                        \
    }
#define INSIGHT_TRACE_REGISTER_Convert(name)                                                                 \
    template <class D, class A, class... Option, INSIGHT_TRACE_REGISTERS(D)>                                 \
    inline void name(D &&dst, A &&a, const vector_bool &mask, Option... option) {                            \
        insight_trace::ConversionOptions all;                                                                \
        (all.take(option), ...);                                                                             \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a), nullptr,     \
            &mask,                                                                                           \
            {insight_trace::merges(all.mode),                                                                \
             {uint8_t(all.rounding), uint8_t(all.saturation), uint8_t(all.part)},                            \
             0});                                                                                            \
    }
#define INSIGHT_TRACE_REGISTER_Truncate(name)                                                                \
    template <class D, class A, INSIGHT_TRACE_REGISTERS(D)>                                                  \
    inline void name(D &&dst, A &&a, insight_trace::Rounding rounding, const vector_bool &mask,              \
                     insight_trace::Merging mode = insight_trace::Merging::Zeroing) {                        \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a), nullptr,     \
            &mask, {insight_trace::merges(mode), {uint8_t(rounding)}, 0});                                   \
    }
#define INSIGHT_TRACE_REGISTER_Half(name)                                                                    \
    template <class D, class A, INSIGHT_TRACE_REGISTERS(D)>                                                  \
    inline void name(D &&dst, A &&a, insight_trace::Half half) {                                             \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a), nullptr,     \
            nullptr, {0, {uint8_t(half)}, 0});                                                               \
    }                                                                                                        \
    template <class D, class A, INSIGHT_TRACE_REGISTERS(D)>                                                  \
    inline void name(D &&dst, A &&a, insight_trace::Half half, insight_trace::Merging mode) {                \
        if (mode == insight_trace::Merging::Merging)                                                         \
            insight_trace_intrinsic(insight_trace::Intrinsic::Unsupported,                                   \
                                    reinterpret_cast<uint64_t>(#name " that keeps the other half"), 0, 0,    \
                                    insight_trace::Site{});                                                  \
        name(dst, a, half);                                                                                  \
    }
#define INSIGHT_TRACE_REGISTER_Squeeze(name)                                                                 \
    template <class D, class A, INSIGHT_TRACE_REGISTERS(D)>                                                  \
    inline void name(D &&dst, A &&a, const vector_bool &mask, insight_trace::Stored stored) {                \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a), nullptr,     \
            &mask, {0, {uint8_t(stored)}, 0});                                                               \
    }
#define INSIGHT_TRACE_REGISTER_Unsqueeze(name)                                                               \
    template <class D, INSIGHT_TRACE_REGISTERS(D)> inline void name(D &&dst, const vector_bool &mask) {      \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, D)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), nullptr, nullptr, &mask, {});        \
    }
#define INSIGHT_TRACE_REGISTER_Histogram(name)                                                               \
    template <class D, class A, INSIGHT_TRACE_REGISTERS(D)>                                                  \
    inline void name(D &&dst, A &&a, const vector_bool &mask, insight_trace::Bins bins) {                    \
        insight_trace::register_call<INSIGHT_TRACE_ELEMENTS(D, A)>(                                          \
            INSIGHT_TRACE_REGISTER_ROW(name), INSIGHT_TRACE_BYTES(dst), INSIGHT_TRACE_BYTES(a), nullptr,     \
            &mask, {0, {uint8_t(bins)}, 0});                                                                 \
    }
#define INSIGHT_TRACE_REGISTER_PredicateBinary(name)                                                         \
    inline void name(vector_bool &dst, const vector_bool &a, const vector_bool &b,                           \
                     const vector_bool &mask) {                                                              \
        insight_trace::register_call<uint8_t, uint8_t>(INSIGHT_TRACE_REGISTER_ROW(name), &dst, &a, &b,       \
                                                       &mask, {});                                           \
    }
#define INSIGHT_TRACE_REGISTER_PredicateUnary(name)                                                          \
    inline void name(vector_bool &dst, const vector_bool &a, const vector_bool &mask) {                      \
        insight_trace::register_call<uint8_t, uint8_t>(INSIGHT_TRACE_REGISTER_ROW(name), &dst, &a, nullptr,  \
                                                       &mask, {});                                           \
    }
#define INSIGHT_TRACE_REGISTER_PredicateHalf(name)                                                           \
    inline void name(vector_bool &dst, const vector_bool &a, insight_trace::Half half) {                     \
        insight_trace::register_call<uint8_t, uint8_t>(INSIGHT_TRACE_REGISTER_ROW(name), &dst, &a, nullptr,  \
                                                       nullptr, {0, {uint8_t(half)}, 0});                    \
    }
#define INSIGHT_TRACE_REGISTER_Predicate(name)
#define INSIGHT_TRACE_REGISTER_Memory(name)

#define REGISTER(name, cost, form, semantics) INSIGHT_TRACE_REGISTER_##form(name)
#include "insight_trace/isa/register.def"
#undef REGISTER

// --- predicates, by the size of an element
#define INSIGHT_TRACE_PREDICATES(bits, T)                                                                    \
    inline vector_bool pset_##bits(insight_trace::Pattern pattern) {                                         \
        vector_bool made;                                                                                    \
        insight_trace::register_call<T, T>(insight_trace::RegisterRow::pset, &made, nullptr, nullptr,        \
                                           nullptr, {0, {uint8_t(pattern)}, 0});                             \
        return made;                                                                                         \
    }                                                                                                        \
    inline vector_bool pge_##bits(insight_trace::Pattern pattern) { return pset_##bits(pattern); }           \
    /* The first lanes, and what is left over of the number. */                                              \
    template <class N> inline vector_bool plt_##bits(N &&count, insight_trace::Post post) {                  \
        vector_bool made;                                                                                    \
        insight_trace::register_call<T, T>(insight_trace::RegisterRow::plt, &made, nullptr, nullptr,         \
                                           nullptr, {0, {}, uint64_t(count)});                               \
        constexpr uint32_t lanes = CCE_VL / sizeof(T);                                                       \
        if constexpr (!std::is_const_v<std::remove_reference_t<N>>)                                          \
            if (post == insight_trace::Post::Update) count = count > lanes ? count - lanes : 0;              \
        return made;                                                                                         \
    }                                                                                                        \
    inline void pintlv_##bits(vector_bool &low, vector_bool &high, const vector_bool &a,                     \
                              const vector_bool &b) {                                                        \
        insight_trace::register_call<T, T>(insight_trace::RegisterRow::pintlv, &low, &a, &b, nullptr,        \
                                           {0, {}, reinterpret_cast<uint64_t>(&high)});                      \
    }                                                                                                        \
    inline void pdintlv_##bits(vector_bool &low, vector_bool &high, const vector_bool &a,                    \
                               const vector_bool &b) {                                                       \
        insight_trace::register_call<T, T>(insight_trace::RegisterRow::pdintlv, &low, &a, &b, nullptr,       \
                                           {0, {}, reinterpret_cast<uint64_t>(&high)});                      \
    }
INSIGHT_TRACE_PREDICATES(b8, uint8_t)
INSIGHT_TRACE_PREDICATES(b16, uint16_t)
INSIGHT_TRACE_PREDICATES(b32, uint32_t)
#undef INSIGHT_TRACE_PREDICATES
// One piece of a register as a predicate: a bit for each element, spread over the bits of its bytes.
template <class R, INSIGHT_TRACE_REGISTERS(R)> inline void movvp(vector_bool &dst, R &&src, int16_t piece) {
    constexpr uint32_t size = sizeof(insight_trace::ElementOf<R>), lanes = CCE_VL / size;
    const auto *bytes = static_cast<const uint8_t *>(INSIGHT_TRACE_BYTES(src)) + piece * lanes / 8;
    dst = {};
    for (uint32_t lane = 0; lane < lanes; ++lane)
        if (bytes[lane / 8] >> lane % 8 & 1)
            dst.bits[lane * size / 64] |= ((uint64_t(1) << size) - 1) << lane * size % 64;
}

// --- loads and stores. Offsets are in elements of what is pointed to.
namespace insight_trace {

template <class P> using Pointed = std::remove_pointer_t<std::remove_cv_t<std::remove_reference_t<P>>>;
template <class P>
constexpr bool is_pointer = std::is_pointer_v<std::remove_cv_t<std::remove_reference_t<P>>>;
template <class P> inline uint64_t place(P pointer, int64_t elements) {
    return reinterpret_cast<uint64_t>(pointer) + uint64_t(elements * int64_t(sizeof(Pointed<P>)));
}
template <class P> inline void advance(P &&pointer, int64_t elements) {
    if constexpr (std::is_lvalue_reference_v<P &&> && !std::is_const_v<std::remove_reference_t<P>>)
        pointer += elements;
}
// A library may name the distribution of a load by its number.
template <class D> constexpr DistLoad load_dist(D dist) {
    if constexpr (std::is_convertible_v<D, DistLoad>)
        return dist;
    else
        return DistLoad(uint8_t(::Dist(dist)));
}
// Reads or writes at `address`: the register, another one of a pair, a predicate, what kind.
template <class T>
inline void memory_call(RegisterRow row, void *reg, const void *other, const Predicate *mask, uint8_t kind,
                        uint64_t address) {
    register_call<T, T>(row, reg, other, nullptr, mask, {0, {kind}, address});
}

} // namespace insight_trace

#define INSIGHT_TRACE_POINTER(P) std::enable_if_t<(::insight_trace::is_pointer<P>), int> = 0
template <class R, class P, class Dist, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_POINTER(P)>
inline void vlds(R &&reg, P &&pointer, int64_t offset, Dist dist) {
    using namespace insight_trace;
    memory_call<ElementOf<R>>(RegisterRow::vlds, INSIGHT_TRACE_BYTES(reg), nullptr, nullptr,
                              uint8_t(load_dist(dist)), place(pointer, offset));
}
template <class R, class P, class Dist, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_POINTER(P)>
inline void vlds(R &&reg, P &&pointer, int64_t offset, Dist dist, insight_trace::Post post) {
    const bool updates = post == insight_trace::Post::Update;
    vlds(reg, pointer, updates ? 0 : offset, dist);
    if (updates) insight_trace::advance(pointer, offset);
}
template <class R, class S, class P, class Dist, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_REGISTERS(S)>
inline void vlds(R &&reg, S &&second, P &&pointer, int64_t offset, Dist dist) {
    using namespace insight_trace;
    memory_call<ElementOf<R>>(RegisterRow::vlds, INSIGHT_TRACE_BYTES(reg), INSIGHT_TRACE_BYTES(second),
                              nullptr, uint8_t(load_dist(dist)), place(pointer, offset));
}
template <class R, class S, class P, class Dist, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_REGISTERS(S)>
inline void vlds(R &&reg, S &&second, P &&pointer, int64_t offset, Dist dist, insight_trace::Post post) {
    const bool updates = post == insight_trace::Post::Update;
    vlds(reg, second, pointer, updates ? 0 : offset, dist);
    if (updates) insight_trace::advance(pointer, offset);
}
template <class R, class P, class Dist, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_POINTER(P)>
inline void vsts(R &&reg, P &&pointer, int64_t offset, Dist dist, const vector_bool &mask) {
    using namespace insight_trace;
    memory_call<ElementOf<R>>(RegisterRow::vsts, INSIGHT_TRACE_BYTES(reg), nullptr, &mask,
                              uint8_t(DistVST(dist)), place(pointer, offset));
}
template <class R, class P, class Dist, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_POINTER(P)>
inline void vsts(R &&reg, P &&pointer, int64_t offset, Dist dist, const vector_bool &mask,
                 insight_trace::Post post) {
    const bool updates = post == insight_trace::Post::Update;
    vsts(reg, pointer, updates ? 0 : offset, dist, mask);
    if (updates) insight_trace::advance(pointer, offset);
}
template <class R, class S, class P, class Dist, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_REGISTERS(S)>
inline void vsts(R &&reg, S &&second, P &&pointer, int64_t offset, Dist dist, const vector_bool &mask) {
    using namespace insight_trace;
    memory_call<ElementOf<R>>(RegisterRow::vsts, INSIGHT_TRACE_BYTES(reg), INSIGHT_TRACE_BYTES(second), &mask,
                              uint8_t(DistVST(dist)), place(pointer, offset));
}
template <class R, class S, class P, class Dist, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_REGISTERS(S)>
inline void vsts(R &&reg, S &&second, P &&pointer, int64_t offset, Dist dist, const vector_bool &mask,
                 insight_trace::Post post) {
    const bool updates = post == insight_trace::Post::Update;
    vsts(reg, second, pointer, updates ? 0 : offset, dist, mask);
    if (updates) insight_trace::advance(pointer, offset);
}
// Blocks apart: the distance of two in the high half of the word, how far the pointer goes in the low one, in
// blocks.
template <class R, class P, INSIGHT_TRACE_REGISTERS(R)>
inline void vsstb(R &&reg, P &&pointer, uint32_t word, const vector_bool &mask,
                  insight_trace::Post post = insight_trace::Post::No) {
    using namespace insight_trace;
    register_call<ElementOf<R>, ElementOf<R>>(
        RegisterRow::vsstb, INSIGHT_TRACE_BYTES(reg), nullptr, nullptr, &mask,
        {0, {uint8_t(word >> 16), uint8_t(word >> 24)}, reinterpret_cast<uint64_t>(pointer)});
    if (post == Post::Update) advance(pointer, int64_t(word & 0xffff) * 32 / int64_t(sizeof(Pointed<P>)));
}
template <class R, class P, INSIGHT_TRACE_REGISTERS(R)>
inline void vsldb(R &&reg, P &&pointer, uint32_t word, const vector_bool &mask,
                  insight_trace::Post post = insight_trace::Post::No) {
    using namespace insight_trace;
    register_call<ElementOf<R>, ElementOf<R>>(
        RegisterRow::vsldb, INSIGHT_TRACE_BYTES(reg), nullptr, nullptr, &mask,
        {0, {uint8_t(word >> 16), uint8_t(word >> 24)}, reinterpret_cast<uint64_t>(pointer)});
    if (post == Post::Update) advance(pointer, int64_t(word & 0xffff) * 32 / int64_t(sizeof(Pointed<P>)));
}
// From and to any address, in two parts.
template <class P> inline void vldas(vector_align &state, P &&pointer) {
    using namespace insight_trace;
    memory_call<uint8_t>(RegisterRow::vldas, &state, nullptr, nullptr, 0,
                         reinterpret_cast<uint64_t>(pointer));
}
template <class R, class P, INSIGHT_TRACE_REGISTERS(R)>
inline void vldus(R &&reg, vector_align &state, P &&pointer) {
    using namespace insight_trace;
    memory_call<ElementOf<R>>(RegisterRow::vldus, INSIGHT_TRACE_BYTES(reg), &state, nullptr, 0,
                              reinterpret_cast<uint64_t>(pointer));
}
template <class R, class P, INSIGHT_TRACE_REGISTERS(R)>
inline void vldus(R &&reg, vector_align &state, P &&pointer, int64_t stride, insight_trace::Post post) {
    vldus(reg, state, pointer);
    if (post == insight_trace::Post::Update) insight_trace::advance(pointer, stride);
}
template <class R, class P, INSIGHT_TRACE_REGISTERS(R)>
inline void vstus(vector_align &state, uint32_t count, R &&reg, P &&pointer) {
    using namespace insight_trace;
    const uint64_t values[] = {reinterpret_cast<uint64_t>(pointer), count};
    register_call<ElementOf<R>, ElementOf<R>>(RegisterRow::vstus, &state, INSIGHT_TRACE_BYTES(reg), nullptr,
                                              nullptr, {0, {}, reinterpret_cast<uint64_t>(values)});
}
template <class R, class P, INSIGHT_TRACE_REGISTERS(R)>
inline void vstus(vector_align &state, uint32_t count, R &&reg, P &&pointer, insight_trace::Post post) {
    vstus(state, count, reg, pointer);
    if (post == insight_trace::Post::Update) insight_trace::advance(pointer, count);
}
// As many bytes as the last vsqz kept, behind those of the ones before.
template <class R, class P, INSIGHT_TRACE_REGISTERS(R)>
inline void vstur(vector_align &state, R &&reg, P &&pointer, insight_trace::Post) {
    using namespace insight_trace;
    register_call<ElementOf<R>, ElementOf<R>>(RegisterRow::vstur, &state, INSIGHT_TRACE_BYTES(reg), nullptr,
                                              nullptr, {0, {}, reinterpret_cast<uint64_t>(pointer)});
}
template <class P>
inline void vstas(vector_align &state, P &&, int64_t, insight_trace::Post = insight_trace::Post::No) {
    using namespace insight_trace;
    memory_call<uint8_t>(RegisterRow::vstas, &state, nullptr, nullptr, 0, 0);
}
template <class P> inline void vstar(vector_align &state, P &&) {
    using namespace insight_trace;
    memory_call<uint8_t>(RegisterRow::vstar, &state, nullptr, nullptr, 0, 0);
}
// Elements by their numbers, blocks by their distance in bytes.
#define INSIGHT_TRACE_GATHER(name)                                                                           \
    template <class R, class P, class I, INSIGHT_TRACE_REGISTERS(R)>                                         \
    inline void name(R &&reg, P &&base, I &&index, const vector_bool &mask) {                                \
        using namespace insight_trace;                                                                       \
        register_call<ElementOf<R>, ElementOf<I>>(                                                           \
            RegisterRow::name, INSIGHT_TRACE_BYTES(reg), INSIGHT_TRACE_BYTES(index), nullptr, &mask,         \
            {0, {uint8_t(sizeof(Pointed<P>))}, reinterpret_cast<uint64_t>(base)});                           \
    }
INSIGHT_TRACE_GATHER(vgather2)
INSIGHT_TRACE_GATHER(vgather2_bc)
INSIGHT_TRACE_GATHER(vgatherb)
INSIGHT_TRACE_GATHER(vscatter)
#undef INSIGHT_TRACE_GATHER
template <class R, class P, class I, INSIGHT_TRACE_REGISTERS(R)>
inline void vgatherb(R &&reg, P &&base, I &&index) {
    vector_bool all;
    for (uint64_t &bits : all.bits) bits = ~uint64_t(0);
    vgatherb(reg, base, index, all);
}
// Offsets in bytes.
namespace insight_trace {
template <class D> constexpr Dist predicate_dist(D dist) {
    if constexpr (std::is_convertible_v<D, Dist>) {
        return dist;
    } else {
        const DistLoad load = dist;
        return load == DistLoad::US   ? Dist::DIST_US
               : load == DistLoad::DS ? Dist::DIST_DS
               : load == DistLoad::PK ? Dist::DIST_PK
                                      : Dist::DIST_NORM;
    }
}
} // namespace insight_trace
template <class P, class D> inline void plds(vector_bool &dst, P &&pointer, int64_t offset, D dist) {
    using namespace insight_trace;
    memory_call<uint8_t>(RegisterRow::plds, &dst, nullptr, nullptr, uint8_t(predicate_dist(dist)),
                         reinterpret_cast<uint64_t>(pointer) + uint64_t(offset));
}
template <class P, class D> inline void psts(const vector_bool &src, P &&pointer, int64_t offset, D dist) {
    using namespace insight_trace;
    memory_call<uint8_t>(RegisterRow::psts, const_cast<vector_bool *>(&src), nullptr, nullptr,
                         uint8_t(predicate_dist(dist)),
                         reinterpret_cast<uint64_t>(pointer) + uint64_t(offset));
}
template <class P> inline void sprsts(::Spr, P &&pointer, int64_t offset) {
    using namespace insight_trace;
    memory_call<uint8_t>(RegisterRow::sprsts, nullptr, nullptr, nullptr, 0,
                         reinterpret_cast<uint64_t>(pointer) + uint64_t(offset));
}
inline void sprclr(::Spr) {
    using namespace insight_trace;
    memory_call<uint8_t>(RegisterRow::sprclr, nullptr, nullptr, nullptr, 0, 0);
}
inline void mem_bar(insight_trace::Barrier) {
    using namespace insight_trace;
    memory_call<uint8_t>(RegisterRow::mem_bar, nullptr, nullptr, nullptr, 0, 0);
}

#if !defined(INSIGHT_TRACE_LIBRARY)
// Kernels that use registers beside our own tile ops.
template <class T> using RegTensor = insight_trace::Register<T>;
using MaskReg = vector_bool;
using UnalignReg = vector_align;
// Takes a register's worth of `count` away.
template <class T> inline MaskReg CreatePredicate(uint32_t &count) {
    if constexpr (sizeof(T) == 1)
        return plt_b8(count, POST_UPDATE);
    else if constexpr (sizeof(T) == 2)
        return plt_b16(count, POST_UPDATE);
    else
        return plt_b32(count, POST_UPDATE);
}
#endif
