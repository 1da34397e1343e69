// Blocks that do not talk to each other, in several processes at once.
//
// Each process has some blocks of the job, one after the other, and global memory in common. The first one
// takes over what the others recorded, behind its own rows: those are the rows of a run of all blocks in one
// process, number for number. Where a block meets another one (it wrote where the other was, or waits for
// it), the run is given up as a whole and made again in one process: what both did to global memory is of no
// use then.
#pragma once

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "machine.hpp"

namespace insight_trace::engine {

class Shares {
  public:
    // Makes the other processes, before anything of a kernel runs: `number` tells which one this is. The job
    // has the cores of this process then.
    explicit Shares(Job &job);
    size_t number() const { return number_; }
    // Kernels are loaded, and none has run.
    void keep_data(const Job &job);
    // In others than the first: leaves what was recorded for it. False: it has to be given up.
    bool leave(const Job &job, Machine &machine, Records &records) const;
    // In the first: waits for the others and takes over what they leave. False as above.
    bool take_over(const Job &job, Machine &machine, Records &records);

  private:
    struct Share {
        size_t first, end; // cores
        std::string path;  // of its records
        pid_t process = 0;
        std::unique_ptr<TouchedLines> touched;
    };
    bool kept_data(const Job &job) const;

    size_t number_ = 0;
    std::vector<Share> shares_;
    std::vector<uint64_t> data_; // of each kernel
};

} // namespace insight_trace::engine
