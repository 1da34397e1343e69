// Elements of tiles: where they lie, and typed access to them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core.hpp"
#include "insight_trace/numbers.hpp"

// Loops over elements are worth vector code; everything else around an op is compiled quickly. Never inlined:
// one copy for each type and op is enough.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define HOT_LOOP __attribute__((noinline, optimize("tree-vectorize", "vect-cost-model=dynamic")))
#else
#define HOT_LOOP __attribute__((noinline))
#endif

namespace insight_trace::engine {

inline int type_size(Type type) {
    switch (type) {
    case Type::F32:
    case Type::I32:
    case Type::U32:
        return 4;
    case Type::F16:
    case Type::BF16:
    case Type::I16:
    case Type::U16:
        return 2;
    case Type::I64:
    case Type::U64:
        return 8;
    default:
        return 1;
    }
}

// Calls body(T{}) with the C++ type of `type`. Narrow floats that have no arithmetic come as their raw bytes.
template <class Body> decltype(auto) with_type(Type type, Body &&body) {
    switch (type) {
    case Type::F32:
        return body(float{});
    case Type::F16:
        return body(half{});
    case Type::BF16:
        return body(bfloat16_t{});
    case Type::I32:
        return body(int32_t{});
    case Type::U32:
        return body(uint32_t{});
    case Type::I16:
        return body(int16_t{});
    case Type::U16:
        return body(uint16_t{});
    case Type::I8:
        return body(int8_t{});
    case Type::I64:
        return body(int64_t{});
    case Type::U64:
        return body(uint64_t{});
    default:
        return body(uint8_t{});
    }
}

// The same for ops that only move elements: an unsigned type of their size.
template <class Body> decltype(auto) with_bits(Type type, Body &&body) {
    switch (type_size(type)) {
    case 8:
        return body(uint64_t{});
    case 4:
        return body(uint32_t{});
    case 2:
        return body(uint16_t{});
    default:
        return body(uint8_t{});
    }
}

const char *type_name(Type type);
[[noreturn]] void refuse_type(const Core &core, Type type); // by the running op

// Which element types an op takes.
template <class... T> struct Types {};
using Floats = Types<float, half, bfloat16_t>;
using Integers = Types<int32_t, uint32_t, int16_t, uint16_t, int8_t, uint8_t, int64_t, uint64_t>;
using Numbers =
    Types<float, half, bfloat16_t, int32_t, uint32_t, int16_t, uint16_t, int8_t, uint8_t, int64_t, uint64_t>;

// Of which integers are the same bits with and without a sign: sums and products.
using Signless = Types<float, half, bfloat16_t, uint32_t, uint16_t, uint8_t, uint64_t>;

inline Type unsigned_of(Type type) {
    switch (type) {
    case Type::I32:
        return Type::U32;
    case Type::I16:
        return Type::U16;
    case Type::I8:
        return Type::U8;
    case Type::I64:
        return Type::U64;
    default:
        return type;
    }
}

// An unsigned type of the same size.
inline Type bits_of(Type type) {
    const int size = type_size(type);
    return size == 8 ? Type::U64 : size == 4 ? Type::U32 : size == 2 ? Type::U16 : Type::U8;
}

template <class T> constexpr Type type_of() {
    if constexpr (std::is_same_v<T, float>)
        return Type::F32;
    else if constexpr (std::is_same_v<T, half>)
        return Type::F16;
    else if constexpr (std::is_same_v<T, bfloat16_t>)
        return Type::BF16;
    else if constexpr (sizeof(T) == 8)
        return std::is_signed_v<T> ? Type::I64 : Type::U64;
    else if constexpr (sizeof(T) == 4)
        return std::is_signed_v<T> ? Type::I32 : Type::U32;
    else if constexpr (sizeof(T) == 2)
        return std::is_signed_v<T> ? Type::I16 : Type::U16;
    else
        return std::is_signed_v<T> ? Type::I8 : Type::U8;
}

// Calls body(T{}) for the type of the list that `type` is; the op is not supported for any other.
template <class Body, class... T>
void with_type_of(Core &core, const char *op, Type type, Types<T...>, Body &&body) {
    bool known = ((type == type_of<T>() ? (body(T{}), true) : false) || ...);
    if (!known) core.unsupported("%s of %s tiles", op, type_name(type));
}

template <class T>
constexpr bool is_real = std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>;

// What a type computes in: 16-bit floats in float (one rounding per operation, as the hardware's result).
template <class T> using Wide = std::conditional_t<is_real<T>, float, T>;

inline int inner_rows(const TileRef &t) {
    if (t.fractal == 1024) return 16;
    if (t.fractal == 32) return t.inner == 1 ? 16 : 2;
    if (t.inner == 0) return 1;
    return t.inner == 1 ? 16 : 32 / type_size(t.type);
}
inline int inner_cols(const TileRef &t) {
    if (t.fractal == 1024) return 16;
    if (t.fractal == 32) return t.inner == 1 ? 2 : 16;
    if (t.inner == 0) return 1;
    return t.inner == 1 ? 32 / type_size(t.type) : 16;
}

// Element offset of (r, c) from the tile's start (facts: boxes of 16 x 32 bytes, outer and inner order).
inline int64_t tile_offset(const TileRef &t, int64_t r, int64_t c) {
    if (t.inner == 0) return t.row_major ? r * t.cols + c : c * t.rows + r;
    int64_t ir = inner_rows(t), ic = inner_cols(t);
    int64_t rows = t.rows, cols = t.cols;
    if (t.compact == 1) { // box strides follow the valid size, rounded up to whole boxes
        rows = (t.valid_rows + ir - 1) / ir * ir;
        cols = (t.valid_cols + ic - 1) / ic * ic;
    }
    int64_t br = r / ir, bc = c / ic, box = ir * ic;
    int64_t outer = t.row_major ? br * cols * ir + bc * box : bc * rows * ic + br * box;
    return outer + (t.inner == 1 ? (r % ir) * ic + c % ic : (c % ic) * ir + r % ir);
}

// The same without a division for every element: what a row and what a column add to the offset. Boxes have
// powers of two as sizes.
struct TileOrder {
    int row_shift = 0, col_shift = 0;
    int64_t row_mask = 0, col_mask = 0;   // within a box
    int64_t box_row, box_col;             // from a box to the next one
    int64_t inner_row = 0, inner_col = 0; // from an element of a box to the next one

    explicit TileOrder(const TileRef &t) {
        const int64_t ir = inner_rows(t), ic = inner_cols(t);
        while (int64_t(1) << row_shift < ir) ++row_shift;
        while (int64_t(1) << col_shift < ic) ++col_shift;
        row_mask = ir - 1;
        col_mask = ic - 1;
        box_row = tile_offset(t, ir, 0);
        box_col = tile_offset(t, 0, ic);
        if (ir > 1) inner_row = tile_offset(t, 1, 0);
        if (ic > 1) inner_col = tile_offset(t, 0, 1);
    }
    int64_t row(int64_t r) const { return (r >> row_shift) * box_row + (r & row_mask) * inner_row; }
    int64_t col(int64_t c) const { return (c >> col_shift) * box_col + (c & col_mask) * inner_col; }
};

// Elements that a tile takes in its memory.
inline int64_t tile_extent(const TileRef &t) {
    if (t.inner == 0 || t.compact != 1) return int64_t(t.rows) * t.cols;
    const int64_t ir = inner_rows(t), ic = inner_cols(t);
    return (t.valid_rows + ir - 1) / ir * ir * ((t.valid_cols + ic - 1) / ic * ic);
}

// A tile of boxes that is larger than its memory: of it the valid part alone is there, without gaps between
// boxes.
inline TileRef compact_if_larger(const Core &core, TileRef tile) {
    const int64_t bytes = int64_t(tile.rows) * tile.cols * type_size(tile.type);
    if (uint64_t(bytes) > core.space_size(tile.space)) tile.compact = 1;
    return tile;
}

// A tile with its bytes at hand. Every offset that is used lies within its space (checked once here).
template <class T> struct View {
    T *data;
    const TileRef &ref;
    int64_t row_step, col_step; // elements; 0 when boxed
    TileOrder order;

    View(Core &core, const TileRef &tile) : View(core, tile, tile.rows, tile.cols) {}
    // Of which only the first `rows` and `cols` are used: a tile that is a window into a larger one may be
    // declared to reach past the end of the memory.
    View(Core &core, const TileRef &tile, int64_t rows, int64_t cols)
        : data(nullptr), ref(tile), row_step(0), col_step(0), order(tile) {
        int64_t extent = tile_extent(tile);
        if (tile.inner == 0) {
            row_step = tile.row_major ? tile.cols : 1;
            col_step = tile.row_major ? 1 : tile.rows;
            extent = rows > 0 && cols > 0 ? (rows - 1) * row_step + (cols - 1) * col_step + 1 : 0;
        }
        data = core.local_as<T>(tile.space, tile.address, uint64_t(extent));
    }
    T &at(int64_t r, int64_t c) const {
        return ref.inner == 0 ? data[r * row_step + c * col_step] : data[order.row(r) + order.col(c)];
    }
};

template <class T> T scalar_as(const Operand &operand) {
    if (operand.kind == Operand::Option) return static_cast<T>(operand.option);
    uint64_t bits = operand.scalar.bits;
    switch (operand.scalar.type) {
    case Type::F32:
        return static_cast<T>(bits_float(static_cast<uint32_t>(bits)));
    case Type::F16:
        return static_cast<T>(half_to_float(static_cast<uint16_t>(bits)));
    case Type::BF16:
        return static_cast<T>(bf16_to_float(static_cast<uint16_t>(bits)));
    case Type::I32:
        return static_cast<T>(static_cast<int32_t>(bits));
    case Type::I16:
        return static_cast<T>(static_cast<int16_t>(bits));
    case Type::I8:
        return static_cast<T>(static_cast<int8_t>(bits));
    case Type::I64:
        return static_cast<T>(static_cast<int64_t>(bits));
    default:
        return static_cast<T>(bits);
    }
}

// Integer arithmetic wraps as the hardware does, without undefined behaviour.
template <class T> T wrap_add(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else
        return a + b;
}
template <class T> T wrap_sub(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
    } else
        return a - b;
}
template <class T> T wrap_mul(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
        return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    } else
        return a * b;
}

// NaN wins, as in the vector unit.
template <class T> T larger(T a, T b) { return (a > b || a != a) ? a : b; }
template <class T> T smaller(T a, T b) { return (a < b || a != a) ? a : b; }

// --- floats of four bits: two in a byte, the first in the low half. Tiles and tensors count them one by one.
inline bool is_nibble(Type type) { return type == Type::F4E2M1 || type == Type::F4E1M2; }

// The same tile in bytes: pairs lie along its rows, or along its columns where columns are contiguous. A last
// element without a partner has a byte of its own.
inline bool pairs_along_columns(const TileRef &tile) {
    return tile.inner == 2 || (tile.inner == 0 && !tile.row_major);
}
inline TileRef as_bytes(Core &core, const TileRef &tile) {
    const bool down = pairs_along_columns(tile);
    if ((down ? tile.rows : tile.cols) % 2) core.unsupported("a tile of 4-bit floats of odd width");
    TileRef bytes = tile;
    bytes.type = Type::U8;
    (down ? bytes.rows : bytes.cols) /= 2;
    int32_t &valid = down ? bytes.valid_rows : bytes.valid_cols;
    valid = (valid + 1) / 2;
    return bytes;
}

inline GlobalRef as_bytes(const GlobalRef &g) {
    GlobalRef bytes = g;
    bytes.type = Type::U8;
    const int along = g.layout == 1 ? 3 : 4; // DN: pairs lie along the columns
    bytes.shape[along] = (bytes.shape[along] + 1) / 2;
    for (int i = 0; i < 5; ++i)
        if (i != along) bytes.stride[i] /= 2;
    return bytes;
}

} // namespace insight_trace::engine
