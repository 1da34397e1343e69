// Element by element: two tiles in, one out.
#include <algorithm>
#include <vector>

#include "elementwise.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

namespace {

#define PAIR_OF_ELEMENTS(name, result)                                                                       \
    struct name {                                                                                            \
        template <class T> static T of(T a, T b) { return result; }                                          \
    };
PAIR_OF_ELEMENTS(Sum, wrap_add(a, b))
PAIR_OF_ELEMENTS(Difference, wrap_sub(a, b))
PAIR_OF_ELEMENTS(Product, wrap_mul(a, b))
PAIR_OF_ELEMENTS(Quotient, quotient(a, b))
PAIR_OF_ELEMENTS(Larger, larger(a, b))
PAIR_OF_ELEMENTS(Smaller, smaller(a, b))
PAIR_OF_ELEMENTS(And, a &b)
PAIR_OF_ELEMENTS(Or, a | b)
PAIR_OF_ELEMENTS(Xor, a ^ b)
#undef PAIR_OF_ELEMENTS

template <class T, class Result> HOT_LOOP void line(void *to, const void *a, const void *b, int count) {
    T *out = static_cast<T *>(to);
    const T *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
    for (int i = 0; i < count; ++i) out[i] = T(Result::of(Wide<T>(x[i]), Wide<T>(y[i])));
}

template <class Result, class... T> LineOp line_of(Type type, Types<T...>) {
    LineOp found = nullptr;
    ((type == type_of<T>() ? (found = line<T, Result>, true) : false) || ...);
    return found;
}

LineOp line_of(Type type, Pair pair) {
    using Bits = Types<uint32_t, uint16_t, uint8_t, uint64_t>;
    const Type bits = unsigned_of(type);
    switch (pair) {
    case Pair::Sum:
        return line_of<Sum>(bits, Signless());
    case Pair::Difference:
        return line_of<Difference>(bits, Signless());
    case Pair::Product:
        return line_of<Product>(bits, Signless());
    case Pair::Quotient:
        return line_of<Quotient>(type, Numbers());
    case Pair::Larger:
        return line_of<Larger>(type, Numbers());
    case Pair::Smaller:
        return line_of<Smaller>(type, Numbers());
    case Pair::And:
        return line_of<And>(bits, Bits());
    case Pair::Or:
        return line_of<Or>(bits, Bits());
    default:
        return line_of<Xor>(bits, Bits());
    }
}

} // namespace

LineOp line_op(Core &core, const char *op, Type type, Pair pair) {
    LineOp found = line_of(type, pair);
    if (!found) core.unsupported("%s of %s tiles", op, type_name(type));
    return found;
}

void map_lines(Core &core, const Lines &dst, const Lines &src0, const Lines &src1, LineOp op) {
    uint8_t *to = bytes_of(core, dst);
    const uint8_t *a = bytes_of(core, src0), *b = bytes_of(core, src1);
    for (int64_t line = 0; line < dst.lines; ++line)
        op(to + line * dst.pitch * dst.size, a + line * src0.pitch * dst.size,
           b + line * src1.pitch * dst.size, dst.width);
}

void map_number(Core &core, const Lines &dst, const Lines &src, uint64_t bits, bool number_first, LineOp op) {
    uint8_t *to = bytes_of(core, dst);
    const uint8_t *from = bytes_of(core, src);
    const size_t size = size_t(dst.size);
    std::vector<uint8_t> spread(size * size_t(std::max(dst.width, 0)));
    for (size_t at = 0; at < spread.size(); at += size) memcpy(spread.data() + at, &bits, size);
    const uint8_t *number = spread.data();
    for (int64_t line = 0; line < dst.lines; ++line) {
        const uint8_t *x = from + line * src.pitch * dst.size;
        op(to + line * dst.pitch * dst.size, number_first ? number : x, number_first ? x : number, dst.width);
    }
}

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

uint64_t scalar_bits(const Operand &scalar, Type type) {
    return with_type(type, [&](auto tag) { return bits_of(scalar_as<decltype(tag)>(scalar)); });
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
