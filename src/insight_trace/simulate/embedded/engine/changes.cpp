#include "changes.hpp"

#include <cstring>

#include "elements.hpp"

namespace insight_trace::engine {

bool find_field(const std::string &name, Change::Field &found) {
    static const char *const names[] = {"address", "valid_rows", "valid_cols", "type",
                                        "option",  "scalar",     "keep_row",   "keep"};
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
        break;
    case Change::Field::Option:
        if (operand.kind == Operand::Option) operand.option = value;
        break;
    case Change::Field::Scalar:
        if (operand.kind == Operand::Scalar) operand.scalar.bits = static_cast<uint64_t>(value);
        break;
    case Change::Field::KeepRow:
    case Change::Field::Keep:
        break;
    }
}

ChangedCall::ChangedCall(Core &core, const std::vector<Change> &changes, uint32_t call,
                         const Operands &operands)
    : core_(core), list_(operands.list, operands.list + operands.count) {
    for (const Change &change : changes) {
        if (change.call != call || change.operand >= list_.size()) continue;
        Operand &operand = list_[change.operand];
        apply(operand, change.field, change.value);
        if (operand.kind != Operand::Tile) continue;
        const TileRef &tile = operand.tile;
        if (change.field == Change::Field::Keep) save(tile, 0, tile.rows);
        if (change.field == Change::Field::KeepRow && change.value < tile.rows) save(tile, change.value, 1);
    }
}

void ChangedCall::save(const TileRef &tile, int64_t row, int64_t rows) {
    const auto size = static_cast<size_t>(type_size(tile.type));
    uint8_t *memory = core_.local(tile.space, tile.address, uint64_t(tile_extent(tile)) * size);
    for (int64_t r = row; r < row + rows; ++r)
        for (int64_t c = 0; c < tile.cols; ++c) {
            const int64_t offset = tile_offset(tile, r, c);
            if (offset >= tile_extent(tile)) continue;
            uint8_t *place = memory + size_t(offset) * size;
            saved_.push_back({place, {place, place + size}});
        }
}

void ChangedCall::restore() {
    for (const Saved &one : saved_) memcpy(one.place, one.bytes.data(), one.bytes.size());
}

} // namespace insight_trace::engine
