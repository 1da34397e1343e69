// Element by element: the arithmetic over a tile's valid part, and the shapes that most ops have.
#pragma once

#include <cstring>

#include "isa/scalar_unit.hpp"
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

// --- ops that are one instruction at each step: two tiles, one tile, or a tile and a number in; one out. The
// number is taken in the tile's type before anything is computed with it.
void binary(Core &core, const Operands &operands, const char *op, Instr instr);
void unary(Core &core, const Operands &operands, const char *op, Instr instr);
void with_scalar(Core &core, const Operands &operands, const char *op, Instr instr);

} // namespace insight_trace::engine
