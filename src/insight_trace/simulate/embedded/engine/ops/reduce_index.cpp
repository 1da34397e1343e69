// Where the largest or smallest value stands, along rows and down columns.
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

struct ArgOp {
    const char *name;
    bool largest;
    Instr whole, pick;
};
const ArgOp kRowMax{"TROWARGMAX", true, Instr::VCMAX, Instr::VMAX};
const ArgOp kRowMin{"TROWARGMIN", false, Instr::VCMIN, Instr::VMIN};
const ArgOp kColMax{"TCOLARGMAX", true, Instr::VCMAX, Instr::VMAX};
const ArgOp kColMin{"TCOLARGMIN", false, Instr::VCMIN, Instr::VMIN};

// (index, src, tmp) or (value, index, src, tmp)
struct ArgTiles {
    const TileRef *value;
    const TileRef &index, &src, &tmp;
    explicit ArgTiles(const Operands &o)
        : value(o.count > 3 ? &o[0].tile : nullptr), index(o[o.count - 3].tile), src(o[o.count - 2].tile),
          tmp(o[o.count - 1].tile) {}
};

void check(const Core &core, const ArgOp &op, const ArgTiles &t, std::initializer_list<Type> types) {
    allow_types(core, op.name, t.src.type, types);
    need_plain_rows(core, op.name, t.src, "source");
    allow_types(core, op.name, t.index.type, {Type::I32, Type::U32, Type::I16, Type::U16});
    if (t.value) same_type(core, op.name, *t.value, t.src);
}

void put_index(Core &core, const TileRef &tile, int row, int col, int64_t index) {
    if (type_size(tile.type) == 4)
        View<int32_t>(core, tile, row + 1, col + 1).at(row, col) = static_cast<int32_t>(index);
    else
        View<int16_t>(core, tile, row + 1, col + 1).at(row, col) = static_cast<int16_t>(index);
}

// The first of equal values wins. `lines` searches over `length` elements each, all through at(line, i).
template <class At, class Put> void search(int lines, int length, bool largest, At at, Put put) {
    for (int line = 0; line < lines; ++line) {
        int best = 0;
        auto held = at(line, 0);
        for (int i = 1; i < length; ++i) {
            auto value = at(line, i);
            const bool is_nan = value != value, was_nan = held != held; // NaN wins, as in the vector unit
            if (!was_nan && (is_nan || (largest ? value > held : value < held))) {
                held = value;
                best = i;
            }
        }
        put(line, best, held);
    }
}

VectorOperand row_at(const TileRef &tile, int64_t row) {
    return VectorOperand(element_address(tile, row * tile.cols),
                         static_cast<uint16_t>(tile.cols / per_block(tile.type)));
}

// Every row within one repeat: one instruction for up to 255 rows.
void issue_narrow(Core &core, const ArgOp &op, const ArgTiles &t) {
    int rows = t.src.valid_rows, cols = t.src.valid_cols, lanes = per_repeat(t.src.type);
    const TileRef &out = t.value ? t.tmp : t.index;
    int64_t step = t.value ? 2 : out.cols; // value and index side by side, or the index alone
    auto to = [&](int first) {
        const auto size = static_cast<uint32_t>(type_size(out.type));
        return VectorOperand(element_address(out, first * step), static_cast<uint16_t>(t.value ? 1 : step), 0)
            .pieces(t.value ? 2 * size : size, static_cast<uint32_t>(step) * size);
    };
    if (cols == lanes) {
        count_elements(core, int64_t(rows) * lanes);
        core.vector_counted(op.whole, t.src.type, int64_t(rows) * lanes, to(0), row_at(t.src, 0));
        core.barrier(PipeId::V);
    } else {
        if (!t.value) bit_mode(core);
        mask_elements(core, cols);
        for (int first = 0; first < rows; first += kMostRepeats) {
            int count = std::min(kMostRepeats, rows - first);
            core.vector(op.whole, t.src.type, count, int64_t(count) * cols, to(first), row_at(t.src, first));
            core.barrier(PipeId::V);
        }
    }
    if (!t.value) {
        count_off(core);
        return;
    }
    auto unpack = [&](const TileRef &to) {
        core.vector(Instr::VREDUCEV2, t.src.type, static_cast<int>(ceil_div(rows * 2, lanes)), rows * 2,
                    VectorOperand(to.address).spanning(rows * type_size(t.src.type)),
                    VectorOperand(t.tmp.address).spanning(rows * 2 * type_size(t.src.type)));
        core.barrier(PipeId::V);
    };
    bool value_packed = t.value->cols == 1, index_packed = t.index.cols == 1;
    if (value_packed || index_packed) {
        count_mode(core);
        mask_value(core, uint64_t(rows) * 2);
        if (value_packed) unpack(*t.value);
        if (index_packed) {
            unpack(t.index);
            if (type_size(t.index.type) != type_size(t.src.type)) { // 16-bit indices widen through float
                mask_value(core, uint64_t(rows));
                for (int i = 0; i < 2; ++i) {
                    counted(core, Instr::VCONV, t.index.type, rows, VectorOperand(t.index.address),
                            VectorOperand(t.index.address));
                    core.barrier(PipeId::V);
                }
            }
        }
    }
    count_off(core);
    if (value_packed && index_packed) return;
    handshake(core, PipeId::V, PipeId::S);
    for (int part = 0; part < 2; ++part) {
        const TileRef &to = part ? *t.value : t.index;
        if (to.cols == 1) continue;
        for (int r = 0; r < rows; ++r) {
            scalar_load(core, t.tmp.address + uint32_t((r * 2 + 1 - part) * type_size(t.src.type)));
            scalar_store(core, element_address(to, int64_t(r) * to.cols));
        }
    }
    handshake(core, PipeId::S, PipeId::V);
}

// Wider rows: one value and index per repeat, those again, and the scalar unit puts the index together.
void issue_wide(Core &core, const ArgOp &op, const ArgTiles &t) {
    int rows = t.src.valid_rows, lanes = per_repeat(t.src.type);
    Type type = t.src.type;
    const int64_t size = type_size(type);
    const auto pair = static_cast<uint32_t>(2 * size); // value and index
    count_mode(core);
    int levels = 0;
    for (int r = 0; r < rows; ++r) {
        int64_t count = t.src.valid_cols;
        VectorOperand from = row_at(t.src, r), held(element_address(t.tmp, int64_t(r) * t.tmp.cols));
        for (levels = 0; count > lanes; ++levels) {
            mask_value(core, uint64_t(count));
            counted(core, op.whole, type, count, held.pieces(pair, pair), from);
            core.barrier(PipeId::V);
            count = ceil_div(count, lanes);
            mask_value(core, uint64_t(count) * 2);
            for (int i = 0; i < 2; ++i) { // values, then indices
                counted(core, Instr::VREDUCEV2, type, count * 2, held.spanning(count * size),
                        held.spanning(count * 2 * size));
                core.barrier(PipeId::V);
            }
            from = held;
        }
        mask_value(core, uint64_t(count));
        counted(core, op.whole, type, count, held.pieces(pair, pair), held);
        core.barrier(PipeId::V);
    }
    count_off(core);
    handshake(core, PipeId::V, PipeId::S);
    for (int r = 0; r < rows; ++r) {
        uint32_t held = element_address(t.tmp, int64_t(r) * t.tmp.cols);
        for (int i = 0; i <= levels; ++i) scalar_load(core, held);
        scalar_store(core, element_address(t.index, int64_t(r) * t.index.cols));
        if (t.value) {
            scalar_load(core, held);
            scalar_store(core, element_address(*t.value, int64_t(r) * t.value->cols));
        }
    }
    handshake(core, PipeId::S, PipeId::V);
}

void row_arg(Core &core, const Operands &operands, const ArgOp &op) {
    ArgTiles t(operands);
    check(core, op, t, {Type::F32, Type::F16});
    if (is_empty(t.src)) return;
    if (t.index.rows < t.src.valid_rows)
        core.kernel_error("%s: %d rows do not fit the %d of the result", op.name, t.src.valid_rows,
                          t.index.rows);
    if (core.computes)
        with_type(t.src.type, [&](auto tag) {
            using T = decltype(tag);
            View<T> from(core, t.src, t.src.valid_rows, t.src.valid_cols);
            search(
                t.src.valid_rows, t.src.valid_cols, op.largest,
                [&](int row, int i) { return Wide<T>(from.at(row, i)); },
                [&](int row, int best, auto value) {
                    put_index(core, t.index, row, 0, best);
                    if (t.value) View<T>(core, *t.value, row + 1, 1).at(row, 0) = T(value);
                });
        });
    if (t.src.valid_cols <= per_repeat(t.src.type))
        issue_narrow(core, op, t);
    else
        issue_wide(core, op, t);
}

// `width` columns from `col` on, row after row.
void issue_columns(Core &core, const ArgOp &op, const ArgTiles &t, int col, int width) {
    Type type = t.src.type;
    int size = type_size(type), lanes = per_repeat(type);
    bool part = width < lanes, half_index = size == 2 && !t.value;
    uint32_t gap =
        uint32_t((col > 0 || !part ? lanes : ceil_div(width, per_block(type)) * per_block(type)) * size);
    VectorOperand counter(t.tmp.address, 0), best(t.tmp.address + gap, 0);
    VectorOperand index(half_index ? t.tmp.address + 2 * gap : element_address(t.index, col), 0);
    auto source = [&](int row) {
        return VectorOperand(element_address(t.src, int64_t(row) * t.src.cols + col), 0);
    };
    auto copy = [&](VectorOperand to, VectorOperand from) {
        if (part)
            core.vector(Instr::VCOPY, type, 1, width, to, from);
        else
            core.move(Instr::MOV_UB_TO_UB, type, to.address, from.address, 1, kRepeatBytes);
    };
    if (part) {
        count_elements(core, width);
    }
    core.vector(Instr::MOVEV, type, 1, width, counter);
    core.vector(Instr::MOVEV, type, 1, width, index);
    copy(best, source(0));
    core.barrier(PipeId::V);
    for (int r = 1; r < t.src.valid_rows; ++r) {
        core.vector(Instr::VADDS, size == 2 ? Type::I16 : Type::I32, 1, width, counter, counter);
        core.vector(Instr::VCMP, type, 1, width, VectorOperand(), best, source(r));
        core.barrier(PipeId::V);
        core.vector(Instr::VSEL, type, 1, width, index, index, counter);
        core.vector(op.pick, type, 1, width, best, best, source(r));
        core.barrier(PipeId::V);
    }
    if (half_index) { // to half, then to 32 bits
        core.vector(Instr::VCONV, Type::F16, 1, width, index.of(Type::F16), index.of(Type::I16));
        core.barrier(PipeId::V);
        core.vector(Instr::VCONV, Type::I32, 2, width,
                    VectorOperand(element_address(t.index, col), 8).spanning(4 * width),
                    index.of(Type::F16).spanning(2 * width));
        core.barrier(PipeId::V);
    }
    if (t.value) {
        copy(VectorOperand(element_address(*t.value, col), 0), best);
        core.barrier(PipeId::V);
    }
    if (part) {
        count_off(core);
        core.barrier(PipeId::V);
    }
}

void column_arg(Core &core, const Operands &operands, const ArgOp &op) {
    ArgTiles t(operands);
    check(core, op, t, {Type::F32, Type::F16, Type::U32, Type::U16});
    if (is_empty(t.src)) return;
    if (t.index.cols < t.src.valid_cols)
        core.kernel_error("%s: %d columns do not fit the %d of the result", op.name, t.src.valid_cols,
                          t.index.cols);
    if (core.computes)
        with_type(t.src.type, [&](auto tag) {
            using T = decltype(tag);
            View<T> from(core, t.src, t.src.valid_rows, t.src.valid_cols);
            search(
                t.src.valid_cols, t.src.valid_rows, op.largest,
                [&](int col, int i) { return Wide<T>(from.at(i, col)); },
                [&](int col, int best, auto value) {
                    put_index(core, t.index, 0, col, best);
                    if (t.value) View<T>(core, *t.value, 1, col + 1).at(0, col) = T(value);
                });
        });
    int lanes = per_repeat(t.src.type);
    for (int col = 0; col < t.src.valid_cols; col += lanes)
        issue_columns(core, op, t, col, std::min(lanes, t.src.valid_cols - col));
}

} // namespace

TILE_OP_BODY(TROWARGMAX) { row_arg(core, operands, kRowMax); }
TILE_OP_BODY(TROWARGMIN) { row_arg(core, operands, kRowMin); }
TILE_OP_BODY(TCOLARGMAX) { column_arg(core, operands, kColMax); }
TILE_OP_BODY(TCOLARGMIN) { column_arg(core, operands, kColMin); }

} // namespace insight_trace::engine
