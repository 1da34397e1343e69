// What each kind of instruction costs, from the chip's parameters.
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

struct Conflicts { // cycles lost to unified-buffer banks
    int64_t read = 0;
    int64_t write = 0;
};

// `some_lanes`: under a mask that leaves lanes out, or in count mode.
Cost vector_cost(const Parameters &parameters, Instr instr, Type type, int repeat, const VectorOperand &dst,
                 const VectorOperand &src0, const VectorOperand &src1, bool some_lanes, Conflicts &conflicts);
// `access` is filled; the cost points to it.
Cost transfer_cost(const Parameters &parameters, Instr instr, uint64_t gm, int64_t bursts,
                   int64_t burst_bytes, int64_t gm_step, Access &access);
Cost move_cost(const Parameters &parameters, Instr instr, int64_t repeat, int64_t bytes);
Cost multiply_cost(const Parameters &parameters, Type type, int64_t m, int64_t k, int64_t n);
Cost fixpipe_cost(const Parameters &parameters, Instr instr, int64_t rows, int64_t cols, int64_t bytes,
                  bool to_nd, uint64_t gm, int64_t gm_step, Access &access);

} // namespace insight_trace::engine
