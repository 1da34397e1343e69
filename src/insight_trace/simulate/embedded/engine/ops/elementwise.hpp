// Element by element: the arithmetic over a tile's valid part, and the shapes that most ops have.
#pragma once

#include <cstring>

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

// --- what many ops do with two elements: its loops are compiled once, in elementwise.cpp
// And, Or and Xor are of integers.
enum class Pair : uint8_t { Sum, Difference, Product, Quotient, Larger, Smaller, And, Or, Xor };
// One line of each, of elements of the type that it was asked for.
using LineOp = void (*)(void *to, const void *a, const void *b, int count);
LineOp line_op(Core &core, const char *op, Type type, Pair pair);

inline uint8_t *bytes_of(Core &core, const Lines &lines) {
    return core.local(Space::UB, lines.address, lines.extent() * uint64_t(lines.size));
}
void map_lines(Core &core, const Lines &dst, const Lines &src0, const Lines &src1, LineOp op);
// With a number, as the bits of the type, in the place of a tile: of the second, or the first.
void map_number(Core &core, const Lines &dst, const Lines &src, uint64_t bits, bool number_first, LineOp op);

template <class T> uint64_t bits_of(T value) {
    uint64_t bits = 0;
    memcpy(&bits, static_cast<const void *>(&value), sizeof value);
    return bits;
}

uint64_t scalar_bits(const Operand &scalar, Type type); // the number in the tile's type

// --- ops that are one instruction at each step: two tiles, one tile, or a tile and a number in; one out. The
// number is taken in the tile's type before anything is computed with it.
void binary(Core &core, const Operands &operands, const char *op, Instr instr);
void unary(Core &core, const Operands &operands, const char *op, Instr instr);
void with_scalar(Core &core, const Operands &operands, const char *op, Instr instr);

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

} // namespace insight_trace::engine
