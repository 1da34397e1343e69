// Element by element: the arithmetic over a tile's valid part, and the shapes that most ops have.
#pragma once

#include "vector_walk.hpp"

namespace insight_trace::engine {

// Operands of the cube unit lie in the boxes that it reads: a kernel that was written for the other family
// has its Left tile in another order.
void check_boxes(Core &core, const char *op, const TileRef &a, const TileRef &b, const TileRef &c);

void require_type(Core &core, const char *op, const TileRef &tile, Type type);
// Ops that do nothing on the hardware when valid sizes differ: the kernel is told instead.
void require_valid(Core &core, const char *op, const TileRef &tile, const TileRef &dst);
const TileRef &tile_operand(Core &core, const char *op, const Operands &operands, uint32_t index);
void require_apart(Core &core, const char *op, const TileRef &a, const TileRef &b);

template <class T> T *elements_of(Core &core, const Lines &lines) {
    return core.local_as<T>(Space::UB, lines.address, lines.extent());
}

// --- arithmetic: `body` takes and gives what the type computes in
template <class T, class Body>
HOT_LOOP void map_one(Core &core, const Lines &dst, const Lines &src, Body body) {
    T *to = elements_of<T>(core, dst);
    const T *from = elements_of<T>(core, src);
    for (int line = 0; line < dst.lines; ++line, to += dst.pitch, from += src.pitch)
        for (int i = 0; i < dst.width; ++i) to[i] = T(body(Wide<T>(from[i])));
}

// One line of each.
template <class T, class Body> HOT_LOOP void map_line(T *to, const T *a, const T *b, int count, Body body) {
    for (int i = 0; i < count; ++i) to[i] = T(body(Wide<T>(a[i]), Wide<T>(b[i])));
}

template <class T, class Body>
void map_two(Core &core, const Lines &dst, const Lines &src0, const Lines &src1, Body body) {
    T *to = elements_of<T>(core, dst);
    const T *a = elements_of<T>(core, src0), *b = elements_of<T>(core, src1);
    for (int line = 0; line < dst.lines; ++line, to += dst.pitch, a += src0.pitch, b += src1.pitch)
        map_line<T>(to, a, b, dst.width, body);
}

// dst, too, is an input.
template <class T, class Body>
HOT_LOOP void map_into(Core &core, const Lines &dst, const Lines &src0, const Lines &src1, Body body) {
    T *to = elements_of<T>(core, dst);
    const T *a = elements_of<T>(core, src0), *b = elements_of<T>(core, src1);
    for (int line = 0; line < dst.lines; ++line, to += dst.pitch, a += src0.pitch, b += src1.pitch)
        for (int i = 0; i < dst.width; ++i) to[i] = T(body(Wide<T>(to[i]), Wide<T>(a[i]), Wide<T>(b[i])));
}

// --- ops that are one instruction at each step
template <class List, class Body>
void binary(Core &core, const Operands &operands, const char *op, Instr instr, List types, Body body) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2);
    require_type(core, op, a, dst.type);
    require_type(core, op, b, dst.type);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to);
    with_type_of(core, op, dst.type, types, [&](auto tag) {
        if (core.computes) map_two<decltype(tag)>(core, to, x, y, body);
    });
    auto one = [&](const Step &step) { issue(core, instr, dst.type, step); };
    walk_binary(core, to, x, y, false, one);
}

template <class List, class Body>
void unary(Core &core, const Operands &operands, const char *op, Instr instr, List types, Body body) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    require_type(core, op, src, dst.type);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    with_type_of(core, op, dst.type, types, [&](auto tag) {
        if (core.computes) map_one<decltype(tag)>(core, to, from, body);
    });
    auto one = [&](const Step &step) { issue(core, instr, dst.type, step); };
    walk_unary(core, to, from, one);
}

// The number is taken in the tile's type before anything is computed with it.
template <class List, class Body>
void with_scalar(Core &core, const Operands &operands, const char *op, Instr instr, List types, Body body) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    require_type(core, op, src, dst.type);
    require_valid(core, op, src, dst);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    with_type_of(core, op, dst.type, types, [&](auto tag) {
        using T = decltype(tag);
        Wide<T> value = Wide<T>(scalar_as<T>(operands[2]));
        if (core.computes) map_one<T>(core, to, from, [=](Wide<T> x) { return body(x, value); });
    });
    auto one = [&](const Step &step) { issue(core, instr, dst.type, step); };
    walk_scalar(core, to, from, one);
}

// --- what the hardware computes
// The quotient, toward zero for integers; an integer divided by zero is 0.
template <class T> T quotient(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>)
            if (b == T(-1)) return wrap_sub(T(0), a);
    }
    return T(a / b);
}

// What many ops do with two elements.
#define PAIR_OF_ELEMENTS(name, result)                                                                       \
    struct name {                                                                                            \
        template <class T> T operator()(T a, T b) const { return result; }                                   \
    };
PAIR_OF_ELEMENTS(Sum, wrap_add(a, b))
PAIR_OF_ELEMENTS(Difference, wrap_sub(a, b))
PAIR_OF_ELEMENTS(Product, wrap_mul(a, b))
PAIR_OF_ELEMENTS(Quotient, quotient(a, b))
PAIR_OF_ELEMENTS(Larger, larger(a, b))
PAIR_OF_ELEMENTS(Smaller, smaller(a, b))
#undef PAIR_OF_ELEMENTS

// Their loops are compiled once for all ops, in elementwise.cpp.
#define SHARED_LOOP(where, T, body)                                                                          \
    where template void map_line<T, body>(T *, const T *, const T *, int, body);
#define SHARED_LOOPS_OF(where, T)                                                                            \
    SHARED_LOOP(where, T, Sum)                                                                               \
    SHARED_LOOP(where, T, Difference)                                                                        \
    SHARED_LOOP(where, T, Product)                                                                           \
    SHARED_LOOP(where, T, Quotient)                                                                          \
    SHARED_LOOP(where, T, Larger)                                                                            \
    SHARED_LOOP(where, T, Smaller)
#define SHARED_LOOPS(where)                                                                                  \
    SHARED_LOOPS_OF(where, float)                                                                            \
    SHARED_LOOPS_OF(where, half)                                                                             \
    SHARED_LOOPS_OF(where, bfloat16_t)                                                                       \
    SHARED_LOOPS_OF(where, int32_t)                                                                          \
    SHARED_LOOPS_OF(where, uint32_t)                                                                         \
    SHARED_LOOPS_OF(where, int16_t)                                                                          \
    SHARED_LOOPS_OF(where, uint16_t)                                                                         \
    SHARED_LOOPS_OF(where, int8_t)                                                                           \
    SHARED_LOOPS_OF(where, uint8_t)                                                                          \
    SHARED_LOOPS_OF(where, int64_t)                                                                          \
    SHARED_LOOPS_OF(where, uint64_t)
SHARED_LOOPS(extern)

} // namespace insight_trace::engine
