// Vector functions: what the vector part of a tile op is on chips whose vector unit works on registers (950).
//
// The scalar unit pushes one function; the vector unit then loads, computes and stores in loops of its own.
// There are no mask registers to write, no barriers between the steps, and no repeats. A function takes
//     head + slope x loops                        when the tile is one run of elements, and
//     head + (slope x inner loops + row) x rows   when it goes row by row,
// one loop for every 256 bytes. Several instructions in one loop add up.
#pragma once

#include <vector>

#include "core.hpp"

namespace insight_trace::engine {

class VectorFunction {
  public:
    explicit VectorFunction(const Parameters &parameters);

    // A tile op begins. Where the library for this chip writes an op in another way than for a2a3, the
    // function follows from the operands, and what the op's body issues to the vector and scalar unit is
    // left out.
    void open(Op op, const Operands &operands);
    bool is_open() const { return open_; }
    bool replaces_body() const { return open_ && lowered_; }
    // The op's body issues a vector instruction.
    void add(Instr instr, Type type, int64_t loops, int64_t elements, const VectorOperand &dst,
             const VectorOperand &src0, const VectorOperand &src1, const std::vector<Area> &reads,
             const std::vector<Area> &writes);
    // A function of register instructions (isa/reg_function.cpp): what it computed in all, and what it
    // touched.
    struct Lines {
        Area area;
        bool exact = true;
        Lines(const Area &area_, bool exact_ = true) : area(area_), exact(exact_) {}
    };
    void take(Instr instr, Type type, int64_t loops, int64_t elements);
    void take_access(bool stores, Type type, uint64_t address, int64_t loops, int64_t bytes,
                     std::vector<Lines> lines);
    // Issues what has been gathered; the op may go on.
    void flush(Core &core);
    void close(Core &core);

  private:
    struct Work {
        Instr instr;
        Type type;
        int64_t loops, elements;
        VectorOperand dst, src0, src1;
    };
    struct Access {
        uint32_t address;
        Type type;
        int64_t loops, bytes;
        std::vector<Lines> areas;
    };
    void lower(Op op, const Operands &operands);
    int64_t cycles(int64_t &latency, int64_t &alone) const;

    const Parameters &parameters_;
    const int64_t startup_, load_, shared_, step_;
    bool open_ = false, lowered_ = false, nested_ = false;
    int64_t outer_ = 1;
    int64_t as_one_run_ = 0; // loops of a conversion whose rows are one loop each, if they were one run
    std::vector<Work> work_;
    std::vector<Access> loads_, stores_;
};

} // namespace insight_trace::engine
