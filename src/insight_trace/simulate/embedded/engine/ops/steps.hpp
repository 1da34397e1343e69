// Small steps that ops along rows and columns are made of: masks, scalar accesses, checks.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "ops/elementwise.hpp"

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

// The first `rows` and `cols` of a row-major tile, as bytes.
inline uint8_t *bytes_of(Core &core, const TileRef &tile, int64_t rows, int64_t cols) {
    int64_t extent = rows > 0 ? (rows - 1) * tile.cols + cols : 0;
    return core.local(tile.space, tile.address, uint64_t(extent * type_size(tile.type)));
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

// An instruction that a2a3 executes, and that a function of the 950 does in another way: there the op's
// values come from elsewhere.
inline Operation lowered(const Core &core, Instr instr, uint64_t number = 0, uint8_t mode = 0) {
    Operation operation = executed(instr, number, mode);
    operation.executes = !core.register_based();
    return operation;
}

// UB to UB in blocks: `bytes`, of which a chip with functions moves `needed`.
inline void copy_blocks(Core &core, Type type, uint32_t to, uint32_t from, int64_t bytes, int64_t needed) {
    if (core.computes) {
        const auto count = uint64_t(core.register_based() ? needed : bytes);
        memmove(core.local(Space::UB, to, count), core.local(Space::UB, from, count), size_t(count));
    }
    core.move(Instr::MOV_UB_TO_UB, type, to, from, 1, bytes);
}

// --- scalar accesses
inline void scalar_load(Core &core, uint32_t address, int bytes = 0) {
    core.scalar_access(Instr::LD_XD_XN_IMM, Space::UB, address, bytes, core.parameters.scalar_load_ub);
}
inline void scalar_store(Core &core, uint32_t address, int bytes = 0) {
    core.scalar_access(Instr::ST_XD_XN_IMM, Space::UB, address, bytes, core.parameters.scalar_store_ub);
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
