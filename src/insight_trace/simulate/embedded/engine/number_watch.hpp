// Which op made the first NaN and the first infinity out of numbers that were none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core.hpp"

namespace insight_trace::engine {

class NumberWatch {
  public:
    void before(Core &core, const Operands &operands);
    void after(Core &core, Op op, const Operands &operands);
    std::string text() const { return text_; } // lines of the runner's result

  private:
    struct Seen {
        bool nan = false, infinite = false;
        int64_t nan_at[2] = {0, 0}, infinite_at[2] = {0, 0}; // row and column of the first
    };
    static Seen look(Core &core, const Operand &operand);

    std::vector<Seen> before_;
    bool told_[2] = {false, false};
    std::string text_;
};

} // namespace insight_trace::engine
