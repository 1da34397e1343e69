// Steps of an op script, as op_script.py packs them.
#pragma once

#include "insight_trace/abi.hpp"

namespace insight_trace::engine {

struct ScriptStep {
    enum Kind : uint32_t {
        CopyIn,
        CopyOut,
        TileOp,
        Instruction,
        SetFlag,
        WaitFlag,
        Barrier,
        Signal,
        Await
    } kind;
    uint32_t operand_count;
    Op op; // of an Instruction: its number in instructions.def
    Space space;
    // of an Instruction by its pipe: repeats | GM address, bursts, bytes of one | pieces, bytes | m, k, n |
    // thousandths of a cycle; of a flag: from, to, event; of a signal to other cores: pipe, configuration
    uint64_t gm, local, bytes;
    Operand operands[8];
};
static_assert(sizeof(TileRef) == 40 && sizeof(GlobalRef) == 96 && sizeof(Operand) == 104,
              "op_script.py packs these");
static_assert(sizeof(ScriptStep) == 40 + 8 * 104, "op_script.py packs this");

void run_op_script(int64_t *args);

} // namespace insight_trace::engine
