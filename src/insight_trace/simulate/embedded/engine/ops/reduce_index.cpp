// Where the largest or smallest value stands, along rows and down columns.
#include "isa/vector_unit.hpp"
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

// The largest or smallest of each repeat, with its index or the index alone.
Operation of_repeats(Instr instr, Order order) { return executed(instr, 0, static_cast<uint8_t>(order)); }
// Every second element, from the first or from the second on.
Operation second_elements(bool odd) { return executed(Instr::VREDUCEV2, 0, odd ? 2 : 1); }

VectorOperand row_at(const TileRef &tile, int64_t row) {
    return VectorOperand(element_address(tile, row * tile.cols),
                         static_cast<uint16_t>(tile.cols / per_block(tile.type)));
}

Type bits_of_type(Type type) {
    constexpr Type kBits[] = {Type::U8, Type::U16, Type::U8, Type::U32};
    return type_size(type) == 8 ? Type::U64 : kBits[type_size(type) - 1];
}

// Indices of 16 bits in place to 32, over floats.
void widen_indices(Core &core, uint32_t address, int rows) {
    mask_value(core, uint64_t(rows));
    const VectorOperand all(address), narrow(address, 4);
    counted(core, executed(Instr::VCONV, 0, static_cast<uint8_t>(Round::Rint)), Type::F32, rows,
            all.of(Type::F32), narrow.of(Type::I16));
    core.barrier(PipeId::V);
    counted(core, executed(Instr::VCONV, 0, static_cast<uint8_t>(Round::Trunc)), Type::I32, rows,
            all.of(Type::I32), all.of(Type::F32));
    core.barrier(PipeId::V);
}

// Every row within one repeat: one instruction for up to 255 rows.
void narrow_rows(Core &core, const ArgOp &op, const ArgTiles &t) {
    int rows = t.src.valid_rows, cols = t.src.valid_cols, lanes = per_repeat(t.src.type);
    const int size = type_size(t.src.type), out_size = type_size(t.index.type);
    const bool pairs = t.value || out_size != 4; // value and index side by side, or the index alone
    const uint32_t out = pairs ? scratch_address(core, t.tmp) : t.index.address;
    const int64_t step = pairs ? 2 * size : int64_t(t.index.cols) * 4; // bytes
    const Operation find = of_repeats(op.whole, pairs ? Order::ValueIndex : Order::OnlyIndex);
    auto to = [&](int first) {
        return VectorOperand(out + uint32_t(first * step), static_cast<uint16_t>(pairs ? 1 : t.index.cols), 0)
            .pieces(static_cast<uint32_t>(pairs ? 2 * size : 4), static_cast<uint32_t>(step));
    };
    if (cols == lanes) {
        count_elements(core, int64_t(rows) * lanes);
        core.vector_counted(find, t.src.type, int64_t(rows) * lanes, to(0), row_at(t.src, 0));
        core.barrier(PipeId::V);
    } else {
        if (!pairs) bit_mode(core);
        mask_elements(core, cols);
        for (int first = 0; first < rows; first += kMostRepeats) {
            int count = std::min(kMostRepeats, rows - first);
            core.vector(find, t.src.type, count, int64_t(count) * cols, to(first), row_at(t.src, first));
            core.barrier(PipeId::V);
        }
    }
    if (!pairs) {
        count_off(core);
        return;
    }
    auto unpack = [&](const TileRef &to, bool odd) {
        core.vector(by_row(second_elements(odd), 1, rows * 2), bits_of_type(t.src.type),
                    static_cast<int>(ceil_div(rows * 2, lanes)), rows * 2,
                    VectorOperand(to.address).spanning(rows * size),
                    VectorOperand(out).spanning(rows * 2 * size));
        core.barrier(PipeId::V);
    };
    const bool value_packed = !t.value || t.value->cols == 1,
               index_packed = t.index.cols == 1 && out_size >= size && out_size <= 2 * size;
    if ((t.value && value_packed) || index_packed) {
        count_mode(core);
        mask_value(core, uint64_t(rows) * 2);
        if (t.value && value_packed) unpack(*t.value, false);
        if (index_packed) {
            unpack(t.index, true);
            if (out_size != size) widen_indices(core, t.index.address, rows);
        }
    }
    count_off(core);
    if (value_packed && index_packed) return;
    handshake(core, PipeId::V, PipeId::S);
    auto store = [&](const TileRef &to, int which) {
        for (int r = 0; r < rows; ++r)
            scalar_store(core, element_address(to, int64_t(r) * to.cols),
                         scalar_load(core, out + uint32_t((r * 2 + which) * size), size), type_size(to.type));
    };
    if (!index_packed) store(t.index, 1);
    if (!value_packed) store(*t.value, 0);
    handshake(core, PipeId::S, PipeId::V);
}

// Wider rows: value and index of each repeat, then of those, until one repeat is left. The scalar unit puts
// the index together. Of a row's scratch each level has its indices, and behind them the values.
struct Levels {
    static constexpr int kMost = 3;
    int count = 0; // before the last
    int64_t elements[kMost], values[kMost], indices[kMost];

    Levels(int64_t cols, int64_t lanes, int64_t block) {
        int64_t at = 0;
        for (int64_t left = cols; left > lanes; ++count) {
            left = ceil_div(left, lanes);
            elements[count] = left;
            indices[count] = at;
            values[count] = at + ceil_div(left * 2, block) * block;
            at += ceil_div(left, block) * block;
        }
    }
};

void wide_rows(Core &core, const ArgOp &op, const ArgTiles &t) {
    const int rows = t.src.valid_rows, lanes = per_repeat(t.src.type), block = per_block(t.src.type);
    const Type type = t.src.type, bits = bits_of_type(type);
    const int size = type_size(type);
    const auto pair = static_cast<uint32_t>(2 * size); // value and index
    const Operation find = of_repeats(op.whole, Order::ValueIndex);
    if (int64_t(t.src.valid_cols) > int64_t(lanes) * lanes * lanes)
        core.unsupported("%s of rows of %d elements", op.name, t.src.valid_cols);
    const Levels levels(t.src.valid_cols, lanes, block);
    const int64_t last = levels.values[levels.count - 1];
    const uint32_t scratch = scratch_address(core, t.tmp);
    auto held = [&](int row, int64_t offset) {
        const int64_t pitch =
            core.register_based() ? ceil_div(last + 2 * levels.elements[0], block) * block : t.tmp.cols;
        return scratch + static_cast<uint32_t>((row * pitch + offset) * size);
    };
    count_mode(core);
    for (int r = 0; r < rows; ++r) {
        int64_t count = t.src.valid_cols;
        VectorOperand from = row_at(t.src, r);
        from.repeat_stride = 8;
        for (int level = 0; level < levels.count; ++level) {
            const uint32_t indices = held(r, levels.indices[level]), values = held(r, levels.values[level]);
            mask_value(core, uint64_t(count));
            counted(core, find, type, count, VectorOperand(indices, 1, 0).pieces(pair, pair), from);
            core.barrier(PipeId::V);
            count = levels.elements[level];
            mask_value(core, uint64_t(count) * 2);
            for (bool odd : {false, true}) { // values, then indices
                counted(core, second_elements(odd), bits, count * 2,
                        VectorOperand(odd ? indices : values).spanning(count * size),
                        VectorOperand(indices).spanning(count * 2 * size));
                core.barrier(PipeId::V);
            }
            from = VectorOperand(values);
        }
        mask_value(core, uint64_t(count));
        const uint32_t found = held(r, last);
        counted(core, find, type, count, VectorOperand(found, 1, 0).pieces(pair, pair), VectorOperand(found));
        core.barrier(PipeId::V);
    }
    count_off(core);
    handshake(core, PipeId::V, PipeId::S);
    for (int r = 0; r < rows; ++r) {
        uint64_t index = scalar_load(core, held(r, last + 1), size);
        for (int level = levels.count - 1; level >= 0; --level)
            index = index * uint64_t(lanes) +
                    scalar_load(core, held(r, levels.indices[level] + int64_t(index)), size);
        scalar_store(core, element_address(t.index, int64_t(r) * t.index.cols), index,
                     type_size(t.index.type));
        if (t.value)
            scalar_store(core, element_address(*t.value, int64_t(r) * t.value->cols),
                         scalar_load(core, held(r, last), size), size);
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
    if (t.src.valid_cols <= per_repeat(t.src.type))
        narrow_rows(core, op, t);
    else
        wide_rows(core, op, t);
}

// `width` columns from `col` on, row after row.
void some_columns(Core &core, const ArgOp &op, const ArgTiles &t, int col, int width) {
    const Type type = t.src.type;
    const int size = type_size(type), lanes = per_repeat(type);
    const Type number = size == 2 ? Type::I16 : Type::I32, compared = size == 2 ? Type::F16 : Type::F32;
    const bool part = width < lanes, half_index = size == 2 && !t.value;
    const uint32_t gap =
        uint32_t((col > 0 || !part ? lanes : ceil_div(width, per_block(type)) * per_block(type)) * size);
    const uint32_t scratch = scratch_address(core, t.tmp);
    VectorOperand counter(scratch, 0), best(scratch + gap, 0);
    VectorOperand index(half_index ? scratch + 2 * gap : element_address(t.index, col), 0);
    auto source = [&](int row) {
        return VectorOperand(element_address(t.src, int64_t(row) * t.src.cols + col), 0);
    };
    auto copy = [&](VectorOperand to, VectorOperand from) {
        if (part)
            core.vector(executed(Instr::VCOPY), type, 1, width, to, from);
        else
            copy_lines(core, type, {to.address}, {from.address}, 1, kRepeatBytes);
    };
    if (part) count_elements(core, width);
    core.vector(executed(Instr::MOVEV), type, 1, width, counter);
    core.vector(executed(Instr::MOVEV), type, 1, width, index);
    copy(best, source(0));
    core.barrier(PipeId::V);
    const auto how = static_cast<uint8_t>(op.largest ? Compare::GE : Compare::LE);
    for (int r = 1; r < t.src.valid_rows; ++r) {
        core.vector(executed(Instr::VADDS, 1), number, 1, width, counter, counter);
        core.vector(executed(Instr::VCMP, 0, how), compared, 1, width, VectorOperand(), best, source(r));
        core.barrier(PipeId::V);
        core.vector(executed(Instr::VSEL), compared, 1, width, index, index, counter);
        core.vector(executed(op.pick), compared, 1, width, best, best, source(r));
        core.barrier(PipeId::V);
    }
    if (half_index) { // to half, then to 32 bits
        const auto away = static_cast<uint8_t>(Round::Away);
        core.vector(executed(Instr::VCONV, 0, away), Type::F16, 1, width, index.of(Type::F16),
                    index.of(Type::I16));
        core.barrier(PipeId::V);
        const VectorOperand to = VectorOperand(element_address(t.index, col), 8).of(Type::I32),
                            from = VectorOperand(index.address, 4).of(Type::F16);
        if (part)
            core.vector_counted(executed(Instr::VCONV, 0, away), Type::I32, width, to, from);
        else
            core.vector(executed(Instr::VCONV, 0, away), Type::I32, 2, width, to, from);
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

void check_columns(Core &core, const ArgOp &op, const ArgTiles &t) {
    check(core, op, t, {Type::F32, Type::F16, Type::U32, Type::U16});
    if (!is_empty(t.src) && t.index.cols < t.src.valid_cols)
        core.kernel_error("%s: %d columns do not fit the %d of the result", op.name, t.src.valid_cols,
                          t.index.cols);
}

void column_arg(Core &core, const Operands &operands, const ArgOp &op) {
    ArgTiles t(operands);
    check_columns(core, op, t);
    if (is_empty(t.src)) return;
    int lanes = per_repeat(t.src.type);
    for (int col = 0; col < t.src.valid_cols; col += lanes)
        some_columns(core, op, t, col, std::min(lanes, t.src.valid_cols - col));
}

// With registers every type is compared as it is, and indices have 32 bits until they are stored.
void column_arg_in_registers(Core &core, const Operands &operands, const ArgOp &op) {
    ArgTiles t(operands);
    check_columns(core, op, t);
    if (is_empty(t.src)) return;
    const Type type = t.src.type;
    const int lanes = kRepeatBytes / std::max(type_size(type), 4);
    VectorOperand best(kRegisterFile), index(kRegisterFile + 0x1000), counter(kRegisterFile + 0x2000),
        bits(kRegisterFile + 0x3000);
    const Operation compare =
        executed(Instr::VCMPV, 0, static_cast<uint8_t>(op.largest ? Compare::GE : Compare::LE));
    for (int col = 0; col < t.src.valid_cols; col += lanes) {
        const int width = std::min(lanes, t.src.valid_cols - col);
        auto source = [&](int row) {
            return VectorOperand(element_address(t.src, int64_t(row) * t.src.cols + col));
        };
        core.vector_counted(executed(Instr::VCOPY), type, width, best, source(0));
        core.vector_counted(executed(Instr::MOVEV), Type::I32, width, index);
        for (int r = 1; r < t.src.valid_rows; ++r) {
            core.vector_counted(executed(Instr::MOVEV, uint64_t(r)), Type::I32, width, counter);
            core.vector_counted(compare, type, width, bits, best, source(r));
            core.vector_counted(selected_by(bits.address), Type::I32, width, index, index, counter);
            core.vector_counted(executed(op.pick), type, width, best, best, source(r));
        }
        const VectorOperand to(element_address(t.index, col));
        if (type_size(t.index.type) == 4)
            core.vector_counted(executed(Instr::VCOPY), Type::I32, width, to, index);
        else
            core.vector_counted(executed(Instr::VCONV, 0, static_cast<uint8_t>(Round::Trunc)), Type::I16,
                                width, to.of(Type::I16), VectorOperand(index.address).of(Type::I32));
        if (t.value)
            core.vector_counted(executed(Instr::VCOPY), type, width,
                                VectorOperand(element_address(*t.value, col)), best);
    }
}

} // namespace

TILE_OP_BODY(TROWARGMAX) { row_arg(core, operands, kRowMax); }
TILE_OP_BODY(TROWARGMIN) { row_arg(core, operands, kRowMin); }
TILE_OP_BODY(TCOLARGMAX) { column_arg(core, operands, kColMax); }
TILE_OP_BODY(TCOLARGMIN) { column_arg(core, operands, kColMin); }
FUNCTION_OP_BODY(TCOLARGMAX) { column_arg_in_registers(core, operands, kColMax); }
FUNCTION_OP_BODY(TCOLARGMIN) { column_arg_in_registers(core, operands, kColMin); }

} // namespace insight_trace::engine
