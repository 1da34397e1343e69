#include "steps.hpp"

namespace insight_trace::engine {

const char *type_name(Type type) {
    static const char *const names[] = {"F32",    "F16",    "I32",  "I16",    "I8",   "U8",     "BF16",
                                        "I64",    "U64",    "U16",  "U32",    "BOOL", "F8E4M3", "F8E8M0",
                                        "F4E2M1", "F8E5M2", "HIF8", "F4E1M2", "I4"};
    return names[static_cast<int>(type)];
}

void refuse_type(const Core &core, Type type) {
    core.unsupported("%s of %s tiles", core.op, type_name(type));
}

void require_type(Core &core, const TileRef &tile, Type type) {
    if (tile.type != type)
        core.kernel_error("%s mixes tiles of %s and %s", core.op, type_name(tile.type), type_name(type));
}

void require_valid(Core &core, const TileRef &tile, const TileRef &dst) {
    if (!same_valid(tile, dst))
        core.kernel_error("%s: %d x %d elements of the source are valid and %d x %d of the destination; they "
                          "must be the same",
                          core.op, tile.valid_rows, tile.valid_cols, dst.valid_rows, dst.valid_cols);
}

const TileRef &tile_operand(Core &core, const Operands &operands, uint32_t index) {
    if (index >= operands.count || operands[index].kind != Operand::Tile)
        core.kernel_error("%s: operand %u must be a tile", core.op, index + 1);
    return operands[index].tile;
}

void require_apart(Core &core, const TileRef &a, const TileRef &b) {
    if (a.space == b.space && a.address == b.address)
        core.kernel_error("%s cannot work in place: it overwrites the tile at UB 0x%x before it has read it",
                          core.op, a.address);
}

void allow_types(const Core &core, Type type, std::initializer_list<Type> allowed) {
    if (core.register_based() && is_number(type)) return;
    if (std::find(allowed.begin(), allowed.end(), type) == allowed.end()) refuse_type(core, type);
}

void same_type(const Core &core, const TileRef &a, const TileRef &b) {
    if (a.type != b.type)
        core.kernel_error("%s: element types differ (%s and %s)", core.op, type_name(a.type),
                          type_name(b.type));
}

void same_size(const Core &core, const TileRef &a, const TileRef &b) {
    if (type_size(a.type) != type_size(b.type))
        core.kernel_error("%s: element types differ in size (%s and %s)", core.op, type_name(a.type),
                          type_name(b.type));
}

void need_plain_rows(const Core &core, const TileRef &tile, const char *which) {
    if (tile.space != Space::UB) core.kernel_error("%s: %s must be a vector tile", core.op, which);
    if (!tile.row_major || tile.inner != 0) core.unsupported("%s whose %s is not row major", core.op, which);
}

void need_room(const Core &core, const TileRef &tile, const char *which, int64_t rows, int64_t cols) {
    if (rows > tile.rows || cols > tile.cols)
        core.kernel_error("%s: %lld x %lld elements do not fit the %s of %d x %d", core.op, (long long)rows,
                          (long long)cols, which, tile.rows, tile.cols);
}

Unary::Unary(Core &core, const Operands &operands)
    : dst(tile_operand(core, operands, 0)), src(tile_operand(core, operands, 1)), type(dst.type) {
    require_type(core, src, type);
    to = lines_of(core, dst);
    from = lines_of(core, src, to);
}

Binary::Binary(Core &core, const Operands &operands)
    : dst(tile_operand(core, operands, 0)), a(tile_operand(core, operands, 1)),
      b(tile_operand(core, operands, 2)), type(dst.type) {
    require_type(core, a, type);
    require_type(core, b, type);
    to = lines_of(core, dst);
    x = lines_of(core, a, to);
    y = lines_of(core, b, to);
}

void require_instruction(const Core &core, Instr instr, Type type) {
    if (!arithmetic(instr, type)) refuse_type(core, type);
}

void binary(Core &core, const Operands &operands, Instr instr) {
    const Binary t(core, operands);
    require_instruction(core, instr, t.type);
    walk_binary(core, t.to, t.x, t.y, false, each(core, instr, t.type));
}

void unary(Core &core, const Operands &operands, Instr instr) {
    const Unary t(core, operands);
    require_instruction(core, instr, t.type);
    walk_unary(core, t.to, t.from, each(core, instr, t.type));
}

void with_scalar(Core &core, const Operands &operands, Instr instr) {
    const Unary t(core, operands);
    require_valid(core, t.src, t.dst);
    require_instruction(core, instr, t.type);
    walk_scalar(core, t.to, t.from, each(core, {instr, scalar_bits(operands[2], t.type)}, t.type));
}

} // namespace insight_trace::engine
