// Small steps that ops along rows and columns are made of: masks, scalar accesses, checks.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "isa/moves.hpp"
#include "isa/scalar_unit.hpp"
#include "ops/elementwise.hpp"
#include "isa/rounding.hpp"

namespace insight_trace::engine {

constexpr int kBlockBytes = 32;
constexpr int kMostRepeats = 255;
// The last 8 KB of the vector core's memory, which the tile library keeps for itself on a2a3.
constexpr uint32_t kScratch = 184 * 1024;

inline int per_block(Type type) { return kBlockBytes / type_size(type); }
inline int per_repeat(Type type) { return kRepeatBytes / type_size(type); }
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Elements between two rows.
inline int row_step(const TileRef &tile) { return tile.row_major ? tile.cols : 1; }
inline bool fixed_cols(const TileRef &tile) { return !(tile.dynamic & 2); }
inline uint32_t element_address(const TileRef &tile, int64_t elements) {
    return tile.address + static_cast<uint32_t>(elements * type_size(tile.type));
}

// --- masks beyond those of vector_walk.hpp
inline void count_mode(Core &core) { core.set_register(PipeId::V, 1); }
inline void bit_mode(Core &core) { core.set_register(PipeId::V, 0); }
inline void mask_value(Core &core, uint64_t value) { core.set_register(PipeId::V, value); }

// One instruction in count mode, the mode having been set before: as many repeats as the elements need.
inline void counted(Core &core, const Operation &instr, Type type, int64_t elements, VectorOperand dst,
                    VectorOperand src0 = {}, VectorOperand src1 = {}) {
    if (elements > 0)
        core.vector_counted(instr, type, elements, dst, src0, src1);
    else // with nothing to do it still goes through the pipe
        core.vector(instr, type, 1, 0, dst, src0, src1);
}

// A choice by bits at an address, as functions make it by a predicate.
inline Operation selected_by(uint32_t bits) { return executed(Instr::VSEL, bits, 3); }

// Where a chip with functions holds what a2a3 has in a scratch tile.
inline uint32_t scratch_address(const Core &core, const TileRef &tmp) {
    return core.register_based() ? kRegisterFile : tmp.address;
}

// --- checks
// The 950's functions take every number: what its library does not take does not compile there.
inline bool is_number(Type type) { return type <= Type::U32; }
inline void allow_types(const Core &core, const char *op, Type type, std::initializer_list<Type> allowed) {
    if (core.register_based() && is_number(type)) return;
    if (std::find(allowed.begin(), allowed.end(), type) == allowed.end())
        core.unsupported("%s of %s tiles", op, type_name(type));
}
inline void same_type(const Core &core, const char *op, const TileRef &a, const TileRef &b) {
    if (a.type != b.type)
        core.kernel_error("%s: element types differ (%s and %s)", op, type_name(a.type), type_name(b.type));
}
inline void need_plain_rows(const Core &core, const char *op, const TileRef &tile, const char *which) {
    if (tile.space != Space::UB) core.kernel_error("%s: %s must be a vector tile", op, which);
    if (!tile.row_major || tile.inner != 0) core.unsupported("%s whose %s is not row major", op, which);
}
inline bool is_empty(const TileRef &tile) { return tile.valid_rows <= 0 || tile.valid_cols <= 0; }

} // namespace insight_trace::engine
