// Where the largest or smallest value stands, along rows and down columns.
#include "isa/vector_unit.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {
namespace {

struct ArgOp {
    Compare better;
    Instr whole, pick;
};
const ArgOp kLargest{Compare::GE, Instr::VCMAX, Instr::VMAX};
const ArgOp kSmallest{Compare::LE, Instr::VCMIN, Instr::VMIN};

// (index, src, tmp) or (value, index, src, tmp)
struct ArgTiles {
    const TileRef *value;
    const TileRef &index, &src, &tmp;
    ArgTiles(const Core &core, const Operands &o, std::initializer_list<Type> types)
        : value(o.count > 3 ? &o[0].tile : nullptr), index(o[o.count - 3].tile), src(o[o.count - 2].tile),
          tmp(o[o.count - 1].tile) {
        allow_types(core, src.type, types);
        need_plain_rows(core, src, "source");
        allow_types(core, index.type, {Type::I32, Type::U32, Type::I16, Type::U16});
        if (value) same_type(core, *value, src);
    }
};

// Every second element, from the first or from the second on.
Operation second_elements(bool odd) { return Operation(Instr::VREDUCEV2, 0, odd ? 2 : 1); }

// Indices of 16 bits in place to 32, over floats.
void widen_indices(Core &core, uint32_t address, int rows) {
    const VectorOperand all(address), narrow(address, 4);
    mask_value(core, uint64_t(rows));
    counted_then(core, rounding(Round::Rint), Type::F32, rows, all.of(Type::F32), narrow.of(Type::I16));
    counted_then(core, rounding(Round::Trunc), Type::I32, rows, all.of(Type::I32), all.of(Type::F32));
}

// Every row within one repeat: one instruction for up to 255 rows.
void narrow_rows(Core &core, const ArgOp &op, const ArgTiles &t) {
    int rows = t.src.valid_rows, cols = t.src.valid_cols, lanes = per_repeat(t.src.type);
    const int size = type_size(t.src.type), out_size = type_size(t.index.type);
    const bool pairs = t.value || out_size != 4; // value and index side by side, or the index alone
    const uint32_t out = pairs ? scratch_address(core, t.tmp) : t.index.address;
    const int64_t step = pairs ? 2 * size : int64_t(t.index.cols) * 4; // bytes
    const Operation find(op.whole, 0, pairs ? Order::ValueIndex : Order::OnlyIndex);
    auto to = [&](int first) {
        return VectorOperand(out + uint32_t(first * step), static_cast<uint16_t>(pairs ? 1 : t.index.cols), 0)
            .pieces(static_cast<uint32_t>(pairs ? 2 * size : 4), static_cast<uint32_t>(step));
    };
    if (cols == lanes) {
        count_elements(core, int64_t(rows) * lanes);
        counted_then(core, find, t.src.type, int64_t(rows) * lanes, to(0), rows_of(t.src, 0));
    } else {
        if (!pairs) bit_mode(core);
        mask_elements(core, cols);
        portions(rows, kMostRepeats, [&](int first, int count) {
            core.vector(find, t.src.type, count, int64_t(count) * cols, to(first), rows_of(t.src, first));
            barrier(core);
        });
    }
    if (!pairs) return count_off(core);
    auto unpack = [&](const TileRef &to, bool odd) {
        core.vector(by_row(second_elements(odd), 1, rows * 2), bits_of(t.src.type),
                    static_cast<int>(ceil_div(rows * 2, lanes)), rows * 2,
                    VectorOperand(to.address).spanning(rows * size),
                    VectorOperand(out).spanning(rows * 2 * size));
        barrier(core);
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
            scalar_store(core, address_of(to, r),
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
            values[count] = at + rounded_up(left * 2, block);
            at += rounded_up(left, block);
        }
    }
};

void wide_rows(Core &core, const ArgOp &op, const ArgTiles &t) {
    const int rows = t.src.valid_rows, lanes = per_repeat(t.src.type), block = per_block(t.src.type);
    const Type type = t.src.type, bits = bits_of(type);
    const int size = type_size(type);
    const auto pair = static_cast<uint32_t>(2 * size); // value and index
    const Operation find(op.whole, 0, Order::ValueIndex);
    if (int64_t(t.src.valid_cols) > int64_t(lanes) * lanes * lanes)
        core.unsupported("%s of rows of %d elements", core.op, t.src.valid_cols);
    const Levels levels(t.src.valid_cols, lanes, block);
    const int64_t last = levels.values[levels.count - 1];
    const uint32_t scratch = scratch_address(core, t.tmp);
    const int64_t pitch =
        core.register_based() ? rounded_up(last + 2 * levels.elements[0], block) : t.tmp.cols;
    auto held = [&](int row, int64_t offset) {
        return scratch + static_cast<uint32_t>((row * pitch + offset) * size);
    };
    count_mode(core);
    for (int r = 0; r < rows; ++r) {
        int64_t count = t.src.valid_cols;
        VectorOperand from = row_of(t.src, r);
        auto find_all = [&](uint32_t into) {
            mask_value(core, uint64_t(count));
            counted_then(core, find, type, count, VectorOperand(into, 1, 0).pieces(pair, pair), from);
        };
        for (int level = 0; level < levels.count; ++level) {
            const uint32_t indices = held(r, levels.indices[level]), values = held(r, levels.values[level]);
            find_all(indices);
            count = levels.elements[level];
            mask_value(core, uint64_t(count) * 2);
            for (bool odd : {false, true}) // values, then indices
                counted_then(core, second_elements(odd), bits, count * 2,
                             VectorOperand(odd ? indices : values).spanning(count * size),
                             VectorOperand(indices).spanning(count * 2 * size));
            from = VectorOperand(values);
        }
        find_all(held(r, last));
    }
    count_off(core);
    handshake(core, PipeId::V, PipeId::S);
    for (int r = 0; r < rows; ++r) {
        uint64_t index = scalar_load(core, held(r, last + 1), size);
        for (int level = levels.count - 1; level >= 0; --level)
            index = index * uint64_t(lanes) +
                    scalar_load(core, held(r, levels.indices[level] + int64_t(index)), size);
        scalar_store(core, address_of(t.index, r), index, type_size(t.index.type));
        if (t.value) copy_element(core, address_of(*t.value, r), held(r, last), size);
    }
    handshake(core, PipeId::S, PipeId::V);
}

void row_arg(Core &core, const Operands &operands, const ArgOp &op) {
    const ArgTiles t(core, operands, {Type::F32, Type::F16});
    if (is_empty(t.src)) return;
    need_room(core, t.index, "result", t.src.valid_rows, 1);
    (t.src.valid_cols <= per_repeat(t.src.type) ? narrow_rows : wide_rows)(core, op, t);
}

// `width` columns from `col` on, row after row.
void some_columns(Core &core, const ArgOp &op, const ArgTiles &t, int col, int width) {
    const Type type = t.src.type;
    const int size = type_size(type), lanes = per_repeat(type);
    const Type number = size == 2 ? Type::I16 : Type::I32, compared = size == 2 ? Type::F16 : Type::F32;
    const bool part = width < lanes, half_index = size == 2 && !t.value;
    const auto gap = uint32_t((col > 0 || !part ? lanes : rounded_up(width, per_block(type))) * size);
    const uint32_t scratch = scratch_address(core, t.tmp);
    VectorOperand counter(scratch, 0), best(scratch + gap, 0);
    VectorOperand index(half_index ? scratch + 2 * gap : element_address(t.index, col), 0);
    auto source = [&](int row) { return VectorOperand(address_of(t.src, row, col), 0); };
    auto copy = [&](VectorOperand to, VectorOperand from) {
        if (part)
            core.vector(Instr::VCOPY, type, 1, width, to, from);
        else
            copy_lines(core, type, {to.address}, {from.address}, 1, kRepeatBytes);
    };
    if (part) count_elements(core, width);
    core.vector(Instr::MOVEV, type, 1, width, counter);
    core.vector(Instr::MOVEV, type, 1, width, index);
    copy(best, source(0));
    barrier(core);
    for (int r = 1; r < t.src.valid_rows; ++r) {
        core.vector({Instr::VADDS, 1}, number, 1, width, counter, counter);
        core.vector({Instr::VCMP, 0, op.better}, compared, 1, width, VectorOperand(), best, source(r));
        barrier(core);
        core.vector(Instr::VSEL, compared, 1, width, index, index, counter);
        core.vector(op.pick, compared, 1, width, best, best, source(r));
        barrier(core);
    }
    if (half_index) { // to half, then to 32 bits
        const Operation away = rounding(Round::Away);
        core.vector(away, Type::F16, 1, width, index.of(Type::F16), index.of(Type::I16));
        barrier(core);
        const VectorOperand to = row_of(t.index, 0, col).of(Type::I32),
                            from = VectorOperand(index.address, 4).of(Type::F16);
        if (part)
            core.vector_counted(away, Type::I32, width, to, from);
        else
            core.vector(away, Type::I32, 2, width, to, from);
        barrier(core);
    }
    if (t.value) {
        copy(VectorOperand(element_address(*t.value, col), 0), best);
        barrier(core);
    }
    if (part) {
        count_off(core);
        barrier(core);
    }
}

// body(column, width) for every repeat's width of columns.
template <class Body> void column_arg(Core &core, const Operands &operands, int least_bytes, Body body) {
    const ArgTiles t(core, operands, {Type::F32, Type::F16, Type::U32, Type::U16});
    if (is_empty(t.src)) return;
    need_room(core, t.index, "result", 1, t.src.valid_cols);
    const int lanes = kRepeatBytes / std::max(type_size(t.src.type), least_bytes);
    portions(t.src.valid_cols, lanes, [&](int col, int width) { body(t, col, width); });
}

void column_arg(Core &core, const Operands &operands, const ArgOp &op) {
    column_arg(core, operands, 1,
               [&](const ArgTiles &t, int col, int width) { some_columns(core, op, t, col, width); });
}

// With registers every type is compared as it is, and indices have 32 bits until they are stored.
void column_arg_in_registers(Core &core, const Operands &operands, const ArgOp &op) {
    column_arg(core, operands, 4, [&](const ArgTiles &t, int col, int width) {
        const Type type = t.src.type;
        const VectorOperand best(kRegisterFile), index(kRegisterFile + 0x1000),
            counter(kRegisterFile + 0x2000), bits(kRegisterFile + 0x3000);
        core.vector_counted(Instr::VCOPY, type, width, best, row_of(t.src, 0, col));
        core.vector_counted(Instr::MOVEV, Type::I32, width, index);
        for (int r = 1; r < t.src.valid_rows; ++r) {
            const VectorOperand source = row_of(t.src, r, col);
            core.vector_counted({Instr::MOVEV, uint64_t(r)}, Type::I32, width, counter);
            core.vector_counted({Instr::VCMPV, 0, op.better}, type, width, bits, best, source);
            core.vector_counted(selected_by(bits.address), Type::I32, width, index, index, counter);
            core.vector_counted(op.pick, type, width, best, best, source);
        }
        const VectorOperand to = row_of(t.index, 0, col);
        if (type_size(t.index.type) == 4)
            core.vector_counted(Instr::VCOPY, Type::I32, width, to, index);
        else
            core.vector_counted(rounding(Round::Trunc), Type::I16, width, to.of(Type::I16),
                                index.of(Type::I32));
        if (t.value) core.vector_counted(Instr::VCOPY, type, width, row_of(*t.value, 0, col), best);
    });
}

} // namespace

TILE_OP_BODY(TROWARGMAX) { row_arg(core, operands, kLargest); }
TILE_OP_BODY(TROWARGMIN) { row_arg(core, operands, kSmallest); }
TILE_OP_BODY(TCOLARGMAX) { column_arg(core, operands, kLargest); }
TILE_OP_BODY(TCOLARGMIN) { column_arg(core, operands, kSmallest); }
FUNCTION_OP_BODY(TCOLARGMAX) { column_arg_in_registers(core, operands, kLargest); }
FUNCTION_OP_BODY(TCOLARGMIN) { column_arg_in_registers(core, operands, kSmallest); }

} // namespace insight_trace::engine
