// A kernel inside the runner: executes a list of tile ops that lies in global memory.
// Asking for the cycles of one op, and testing an op on any type, shape and layout, needs no compiler this
// way.
#include "op_script.hpp"

#include <cstring>

#include "core.hpp"

namespace insight_trace::engine {

void run_op_script(int64_t *args) {
    Core &core = current_core();
    const auto *count = reinterpret_cast<const uint64_t *>(core.global(static_cast<uint64_t>(args[0]), 8));
    uint64_t address = static_cast<uint64_t>(args[0]) + 8;
    for (uint64_t i = 0; i < *count; ++i, address += sizeof(ScriptStep)) {
        const auto *step = reinterpret_cast<const ScriptStep *>(core.global(address, sizeof(ScriptStep)));
        core.at = {"op", static_cast<uint32_t>(i + 1)};
        switch (step->kind) {
        case ScriptStep::CopyIn:
            memcpy(core.local(step->space, step->local, step->bytes), core.global(step->gm, step->bytes),
                   step->bytes);
            break;
        case ScriptStep::CopyOut:
            memcpy(core.global(step->gm, step->bytes), core.local(step->space, step->local, step->bytes),
                   step->bytes);
            break;
        case ScriptStep::TileOp:
            if (step->op >= Op::COUNT)
                core.kernel_error("there is no tile op %d", static_cast<int>(step->op));
            insight_trace_op(step->op, step->operands, step->operand_count, core.at);
            break;
        }
    }
}

} // namespace insight_trace::engine
