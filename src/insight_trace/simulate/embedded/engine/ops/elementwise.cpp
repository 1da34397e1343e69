// Element by element: two tiles in, one out.
#include "elementwise.hpp"

namespace insight_trace::engine {

SHARED_LOOPS()

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

TILE_OP_BODY(TADD) { binary(core, operands, "TADD", Instr::VADD, Numbers(), Sum()); }
TILE_OP_BODY(TSUB) { binary(core, operands, "TSUB", Instr::VSUB, Numbers(), Difference()); }
TILE_OP_BODY(TMUL) { binary(core, operands, "TMUL", Instr::VMUL, Numbers(), Product()); }
TILE_OP_BODY(TDIV) { binary(core, operands, "TDIV", Instr::VDIV, Numbers(), Quotient()); }
TILE_OP_BODY(TMAX) { binary(core, operands, "TMAX", Instr::VMAX, Numbers(), Larger()); }
TILE_OP_BODY(TMIN) { binary(core, operands, "TMIN", Instr::VMIN, Numbers(), Smaller()); }

} // namespace insight_trace::engine
