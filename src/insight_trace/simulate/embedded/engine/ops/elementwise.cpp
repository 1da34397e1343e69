// Element by element: two tiles in, one out.
#include "elementwise.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

// The vector unit has the instruction for these elements.
static void require_instruction(Core &core, const char *op, Instr instr, Type type) {
    if (!arithmetic(instr, type)) core.unsupported("%s of %s tiles", op, type_name(type));
}

void binary(Core &core, const Operands &operands, const char *op, Instr instr) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2);
    require_type(core, op, a, dst.type);
    require_type(core, op, b, dst.type);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to);
    require_instruction(core, op, instr, dst.type);
    auto one = [&](const Step &step) { issue(core, executed(instr), dst.type, step); };
    walk_binary(core, to, x, y, false, one);
}

void unary(Core &core, const Operands &operands, const char *op, Instr instr) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    require_type(core, op, src, dst.type);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    require_instruction(core, op, instr, dst.type);
    auto one = [&](const Step &step) { issue(core, executed(instr), dst.type, step); };
    walk_unary(core, to, from, one);
}

void with_scalar(Core &core, const Operands &operands, const char *op, Instr instr) {
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    require_type(core, op, src, dst.type);
    require_valid(core, op, src, dst);
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    require_instruction(core, op, instr, dst.type);
    const Operation operation = executed(instr, scalar_bits(operands[2], dst.type));
    auto one = [&](const Step &step) { issue(core, operation, dst.type, step); };
    walk_scalar(core, to, from, one);
}

const char *type_name(Type type) {
    static const char *const names[] = {"F32",    "F16",    "I32",  "I16",    "I8",   "U8",     "BF16",
                                        "I64",    "U64",    "U16",  "U32",    "BOOL", "F8E4M3", "F8E8M0",
                                        "F4E2M1", "F8E5M2", "HIF8", "F4E1M2", "I4"};
    return names[static_cast<int>(type)];
}

void require_type(Core &core, const char *op, const TileRef &tile, Type type) {
    if (tile.type != type)
        core.kernel_error("%s mixes tiles of %s and %s", op, type_name(tile.type), type_name(type));
}

void require_valid(Core &core, const char *op, const TileRef &tile, const TileRef &dst) {
    if (tile.valid_rows != dst.valid_rows || tile.valid_cols != dst.valid_cols)
        core.kernel_error("%s: %d x %d elements of the source are valid and %d x %d of the destination; they "
                          "must be the same",
                          op, tile.valid_rows, tile.valid_cols, dst.valid_rows, dst.valid_cols);
}

const TileRef &tile_operand(Core &core, const char *op, const Operands &operands, uint32_t index) {
    if (index >= operands.count || operands[index].kind != Operand::Tile)
        core.kernel_error("%s: operand %u must be a tile", op, index + 1);
    return operands[index].tile;
}

void require_apart(Core &core, const char *op, const TileRef &a, const TileRef &b) {
    if (a.space == b.space && a.address == b.address)
        core.kernel_error("%s cannot work in place: it overwrites the tile at UB 0x%x before it has read it",
                          op, a.address);
}

TILE_OP_BODY(TADD) { binary(core, operands, "TADD", Instr::VADD); }
TILE_OP_BODY(TSUB) { binary(core, operands, "TSUB", Instr::VSUB); }
TILE_OP_BODY(TMUL) { binary(core, operands, "TMUL", Instr::VMUL); }
TILE_OP_BODY(TDIV) { binary(core, operands, "TDIV", Instr::VDIV); }
TILE_OP_BODY(TMAX) { binary(core, operands, "TMAX", Instr::VMAX); }
TILE_OP_BODY(TMIN) { binary(core, operands, "TMIN", Instr::VMIN); }

} // namespace insight_trace::engine
