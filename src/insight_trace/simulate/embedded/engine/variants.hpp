// Many runs of one job in one start of the runner, each with changes of its own, in a process of its own.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "changes.hpp"

namespace insight_trace::engine {

class Variants {
  public:
    // What a run leaves in this range goes into the file.
    struct Range {
        uint64_t address, size;
    };
    std::string path; // one row for each: how it ended (0 not run, 1 well, 2 not well), then the ranges
    std::vector<std::vector<Change>> changes;
    std::vector<Range> kept;
    double seconds = 0; // after which no more are begun
    size_t at_once = 1;

    // Returns in the process of one variant, with its number; the process that was there before ends when all
    // have.
    size_t start();
    bool is_one() const { return own_ >= 0; }
    [[noreturn]] void end(bool well) const;

  private:
    uint64_t row_bytes() const;
    int file_ = -1;
    ssize_t own_ = -1;
};

} // namespace insight_trace::engine
