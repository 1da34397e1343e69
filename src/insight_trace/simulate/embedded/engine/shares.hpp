// Blocks that do not talk to each other, in several processes at once.
//
// Each process takes the next block that nobody has, runs it and takes another; global memory they have in
// common. The first one then puts together what all of them recorded, block by block: those are the rows of
// a run of all blocks in one process, number for number, whoever ran which. Where a block meets another one
// (it wrote where the other was, or waits for it), the run is given up as a whole and made again in one
// process: what both did to global memory is of no use then.
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
    // records to a place of this process's own then, and so do kernels that print.
    explicit Shares(Job &job);
    size_t number() const { return number_; }
    // Kernels are loaded, and none has run.
    void keep_data(const Job &job);
    // Runs blocks until none is left. False: the run has to be given up.
    bool run(const Job &job, Machine &machine, Records &records);
    // Leaves what was recorded for the first process. False as above.
    bool leave(const Job &job, Machine &machine, Records &records) const;
    // In the first: waits for the others. False as above.
    bool wait() const;
    // The same after that, with a machine in which nothing ran and records without rows: what all of them
    // leave. The job records where it did before there were several.
    bool take_over(const Job &job, Machine &machine, Records &records) const;
    const std::string &records_path() const { return records_path_; }
    // A process gives up: the others need not go on. Allowed in a signal handler.
    void give_up() noexcept;
    // One of the processes has no room for its tables: the run is not made again in one process, but
    // elsewhere.
    void lack_room() noexcept;
    bool lacks_room() const noexcept;
    bool prints_without_end() const; // so much that a run in one process has to tell it
    void print_own() const noexcept; // what the kernels of this process printed so far

  private:
    struct Block {
        size_t first, end; // cores
    };
    struct Process {
        std::string path; // of its records
        pid_t process = 0;
        std::unique_ptr<TouchedLines> touched;
    };
    // What a block left behind it in its process.
    struct Ran {
        uint64_t block, printed, meetings;
        RecordCounts records;
    };
    struct Common; // all processes see it
    class Left;
    bool kept_data(const Job &job) const;
    void print_here() const; // where the runner prints, as before

    size_t number_ = 0;
    int printed_[2] = {-1, -1}; // where standard output and error went
    std::string records_path_;
    std::vector<Block> blocks_;
    std::vector<Process> processes_;
    Common *common_ = nullptr;
    std::vector<uint64_t> data_; // of each kernel
    std::vector<Ran> ran_;       // in this process, in the order of blocks
};

} // namespace insight_trace::engine
