#include "changes.hpp"

namespace insight_trace::engine {

bool find_field(const std::string &name, Change::Field &found) {
    static const char *const names[] = {"address", "valid_rows", "valid_cols", "type",
                                        "option",  "scalar",     "op"};
    for (int i = 0; i < int(sizeof names / sizeof names[0]); ++i)
        if (name == names[i]) {
            found = static_cast<Change::Field>(i);
            return true;
        }
    return false;
}

static void apply(Operand &operand, Change::Field field, int64_t value) {
    const bool tile = operand.kind == Operand::Tile;
    switch (field) {
    case Change::Field::Address:
        if (tile)
            operand.tile.address = static_cast<uint32_t>(value);
        else if (operand.kind == Operand::Global)
            operand.global.address = static_cast<uint64_t>(value);
        break;
    case Change::Field::ValidRows:
        if (tile) operand.tile.valid_rows = static_cast<int32_t>(value);
        break;
    case Change::Field::ValidCols:
        if (tile) operand.tile.valid_cols = static_cast<int32_t>(value);
        break;
    case Change::Field::Type:
        if (tile) operand.tile.type = static_cast<Type>(value);
        if (operand.kind == Operand::Scalar) operand.scalar.type = static_cast<Type>(value);
        break;
    case Change::Field::Option:
        if (operand.kind == Operand::Option) operand.option = value;
        break;
    case Change::Field::Scalar:
        if (operand.kind == Operand::Scalar) operand.scalar.bits = static_cast<uint64_t>(value);
        break;
    case Change::Field::Op:
        break; // of the call, not of an operand
    }
}

std::vector<Operand> changed_operands(const std::vector<Change> &changes, uint32_t call,
                                      const Operands &operands) {
    std::vector<Operand> list(operands.list, operands.list + operands.count);
    for (const Change &change : changes)
        if (change.call == call && change.operand < list.size())
            apply(list[change.operand], change.field, change.value);
    return list;
}

Op changed_op(const std::vector<Change> &changes, uint32_t call, Op op) {
    for (const Change &change : changes)
        if (change.call == call && change.field == Change::Field::Op && change.value >= 0 &&
            change.value < int64_t(Op::COUNT))
            op = static_cast<Op>(change.value);
    return op;
}

} // namespace insight_trace::engine
