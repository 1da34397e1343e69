// What a run does otherwise than its kernel says: one operand of one tile op, to see what follows from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core.hpp"

namespace insight_trace::engine {

struct Change {
    enum class Field : uint8_t {
        Address,
        ValidRows,
        ValidCols,
        Type,
        Option,
        Scalar,
        KeepRow, // this row of the tile stays as it was
        Keep,    // the tile stays as it was
    };
    uint32_t call; // in the order of execution, all cores together
    uint32_t operand;
    Field field;
    int64_t value;
};
bool find_field(const std::string &name, Change::Field &found);

// One call with its changes applied.
class ChangedCall {
  public:
    ChangedCall(Core &core, const std::vector<Change> &changes, uint32_t call, const Operands &operands);
    Operands operands() const { return {list_.data(), static_cast<uint32_t>(list_.size())}; }
    void restore(); // what stays as it was

  private:
    struct Saved {
        uint8_t *place;
        std::vector<uint8_t> bytes;
    };
    void save(const TileRef &tile, int64_t row, int64_t rows);
    Core &core_;
    std::vector<Operand> list_;
    std::vector<Saved> saved_;
};

} // namespace insight_trace::engine
