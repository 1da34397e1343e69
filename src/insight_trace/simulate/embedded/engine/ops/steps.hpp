// What lowerings share: places in tiles, masks, steps of the vector and the scalar unit, checks.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "isa/moves.hpp"
#include "isa/rounding.hpp"
#include "isa/scalar_unit.hpp"
#include "isa/vector_unit.hpp"
#include "ops/vector_walk.hpp"

namespace insight_trace::engine {

constexpr int kBlockBytes = 32;
constexpr int kMostRepeats = 255;
// The last 8 KB of the vector core's memory, which the tile library keeps for itself on a2a3.
constexpr uint32_t kScratch = 184 * 1024;

inline int per_block(Type type) { return kBlockBytes / type_size(type); }
inline int per_repeat(Type type) { return kRepeatBytes / type_size(type); }
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t rounded_up(int64_t value, int64_t unit) { return ceil_div(value, unit) * unit; }

// --- places in tiles without boxes
inline int row_step(const TileRef &tile) { return tile.row_major ? tile.cols : 1; } // elements
inline int row_blocks(const TileRef &tile) { return tile.cols / per_block(tile.type); }
inline bool fixed_cols(const TileRef &tile) { return !(tile.dynamic & 2); }
inline uint32_t element_address(const TileRef &tile, int64_t elements) {
    return tile.address + static_cast<uint32_t>(elements * type_size(tile.type));
}
inline uint32_t address_of(const TileRef &tile, int64_t row, int64_t col = 0) {
    return element_address(tile, row * tile.cols + col);
}
// An operand that goes on along the row, and one that has a row in each repeat.
inline VectorOperand row_of(const TileRef &tile, int64_t row, int64_t col = 0) {
    return VectorOperand(address_of(tile, row, col));
}
inline VectorOperand rows_of(const TileRef &tile, int64_t row, int64_t col = 0) {
    return VectorOperand(address_of(tile, row, col), row_blocks(tile));
}
// Where a chip with functions holds what a2a3 has in a scratch tile.
inline uint32_t scratch_address(const Core &core, const TileRef &tmp) {
    return core.register_based() ? kRegisterFile : tmp.address;
}

// --- masks beyond those of vector_walk.hpp
inline void count_mode(Core &core) { core.set_register(PipeId::V, 1); }
inline void bit_mode(Core &core) { core.set_register(PipeId::V, 0); }
inline void mask_value(Core &core, uint64_t value) { core.set_register(PipeId::V, value); }

// What is done under a mask of so many lanes, and under a count.
template <class Body> void under_mask(Core &core, int lanes, Body body) {
    mask_elements(core, lanes);
    body();
    mask_all(core);
}
template <class Body> void under_count(Core &core, int64_t elements, Body body) {
    count_elements(core, elements);
    body();
    count_off(core);
}
// The repeats of all columns from the first on, `lanes` at a time, the last ones under a mask:
// body(column, width).
template <class Body> void column_repeats(Core &core, int cols, int lanes, Body body) {
    for (int col = 0; col + lanes <= cols; col += lanes) body(col, lanes);
    if (int rest = cols % lanes) under_mask(core, rest, [&] { body(cols - rest, rest); });
}
// In portions that a repeat count can hold: body(first, count).
template <class Body> void portions(int all, int most, Body body) {
    for (int first = 0; first < all; first += most) body(first, std::min(most, all - first));
}

// --- steps
inline void barrier(Core &core) { core.barrier(PipeId::V); }
// One instruction in count mode, the mode having been set before: as many repeats as the elements need.
inline void counted(Core &core, const Operation &instr, Type type, int64_t elements, VectorOperand dst,
                    VectorOperand src0 = {}, VectorOperand src1 = {}) {
    if (elements > 0)
        core.vector_counted(instr, type, elements, dst, src0, src1);
    else // with nothing to do it still goes through the pipe
        core.vector(instr, type, 1, 0, dst, src0, src1);
}
// The same, and what comes behind waits for it.
inline void counted_then(Core &core, const Operation &instr, Type type, int64_t elements, VectorOperand dst,
                         VectorOperand src0 = {}, VectorOperand src1 = {}) {
    counted(core, instr, type, elements, dst, src0, src1);
    barrier(core);
}
// What an op does at each step of its walk, where that is one instruction.
inline auto each(Core &core, const Operation &operation, Type type) {
    return [&core, operation, type](const Step &step) { issue(core, operation, type, step); };
}
inline Operation rounding(Round mode) { return Operation(Instr::VCONV, 0, mode); }
// A choice by bits at an address, as functions make it by a predicate.
inline Operation selected_by(uint32_t bits) { return Operation(Instr::VSEL, bits, 3); }
inline uint64_t number_operand(const Operand &operand) { return scalar_bits(operand, Type::I64); }
// The scalar unit copies an element.
inline void copy_element(Core &core, uint32_t to, uint32_t from, int size) {
    scalar_store(core, to, scalar_load(core, from, size), size);
}

// --- ops that are made of other ops
template <class... T> void run(Core &core, Op op, const T &...operands) {
    const Operand list[] = {operands...};
    lower(core, op, {list, sizeof...(T)});
}
template <class... T> void run_then(Core &core, Op op, const T &...operands) {
    run(core, op, operands...);
    barrier(core);
}
inline Operand as_operand(const TileRef &tile) {
    Operand operand{};
    operand.kind = Operand::Tile;
    operand.tile = tile;
    return operand;
}
inline Operand as_operand(int64_t option) {
    Operand operand{};
    operand.kind = Operand::Option;
    operand.option = option;
    return operand;
}

// --- checks
inline bool is_real_type(Type type) { return type == Type::F32 || type == Type::F16 || type == Type::BF16; }
// The 950's functions take every number: what its library does not take does not compile there.
inline bool is_number(Type type) { return type <= Type::U32; }
inline bool is_empty(const TileRef &tile) { return tile.valid_rows <= 0 || tile.valid_cols <= 0; }
inline bool same_valid(const TileRef &a, const TileRef &b) {
    return a.valid_rows == b.valid_rows && a.valid_cols == b.valid_cols;
}
void require_type(Core &core, const TileRef &tile, Type type);
// Ops that do nothing on the hardware when valid sizes differ: the kernel is told instead.
void require_valid(Core &core, const TileRef &tile, const TileRef &dst);
const TileRef &tile_operand(Core &core, const Operands &operands, uint32_t index);
void require_apart(Core &core, const TileRef &a, const TileRef &b);
void allow_types(const Core &core, Type type, std::initializer_list<Type> allowed);
void same_type(const Core &core, const TileRef &a, const TileRef &b);
void same_size(const Core &core, const TileRef &a, const TileRef &b);
void need_plain_rows(const Core &core, const TileRef &tile, const char *which);
// `rows` x `cols` elements fit the tile.
void need_room(const Core &core, const TileRef &tile, const char *which, int64_t rows, int64_t cols);

// A result and its first source, or its first two, of one type; sources as far as the result is valid.
struct Unary {
    const TileRef &dst, &src;
    Type type;
    Lines to, from;
    Unary(Core &core, const Operands &operands);
};
struct Binary {
    const TileRef &dst, &a, &b;
    Type type;
    Lines to, x, y;
    Binary(Core &core, const Operands &operands);
};

// --- ops that are one instruction at each step: two tiles, one tile, or a tile and a number in; one out. The
// number is taken in the tile's type before anything is computed with it.
void require_instruction(const Core &core, Instr instr, Type type);
void binary(Core &core, const Operands &operands, Instr instr);
void unary(Core &core, const Operands &operands, Instr instr);
void with_scalar(Core &core, const Operands &operands, Instr instr);

} // namespace insight_trace::engine
