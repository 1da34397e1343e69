// A kernel inside the runner: executes a list of tile ops that lies in global memory.
// Asking for the cycles of one op, and testing an op on any type, shape and layout, needs no compiler this
// way.
#include "op_script.hpp"

#include <cstring>

#include "core.hpp"

namespace insight_trace::engine {

// One hardware instruction by itself.
static void run_instruction(Core &core, const ScriptStep &step) {
    auto instr = static_cast<Instr>(step.op);
    if (instr >= Instr::COUNT) core.kernel_error("there is no instruction %d", static_cast<int>(step.op));
    auto repeat = static_cast<int64_t>(step.local), bytes = static_cast<int64_t>(step.bytes);
    switch (instr_pipe(instr)) {
    case PipeId::V:
        if (bytes)
            core.move(instr, Type::F32, 0, 0, repeat, bytes);
        else
            core.vector(instr, Type::F32, static_cast<int>(repeat), repeat * 64, VectorOperand(0));
        break;
    case PipeId::M:
        core.multiply(Type::F16, static_cast<int64_t>(step.gm), repeat, bytes, 0, 0, 0);
        break;
    case PipeId::S:
        core.scalar(instr, 0, bytes);
        break;
    case PipeId::FIX:
        core.fixpipe(instr, Type::F32, step.gm, 0, 0, repeat, bytes / 4, bytes * repeat);
        break;
    default:
        if (step.gm)
            core.transfer(instr, Type::F32, step.gm, 0, repeat, bytes, bytes);
        else
            core.move(instr, Type::F32, 0, 0, repeat, bytes * repeat);
    }
}

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
        case ScriptStep::Instruction:
            run_instruction(core, *step);
            break;
        case ScriptStep::SetFlag:
            insight_trace_set_flag(static_cast<PipeId>(step->gm), static_cast<PipeId>(step->local),
                                   static_cast<int64_t>(step->bytes), core.at);
            break;
        case ScriptStep::WaitFlag:
            insight_trace_wait_flag(static_cast<PipeId>(step->gm), static_cast<PipeId>(step->local),
                                    static_cast<int64_t>(step->bytes), core.at);
            break;
        case ScriptStep::Barrier:
            insight_trace_barrier(static_cast<PipeId>(step->gm), core.at);
            break;
        case ScriptStep::Signal:
            insight_trace_intrinsic(Intrinsic::SetCrossCore, step->gm, step->local, 0, core.at);
            break;
        case ScriptStep::Await:
            insight_trace_intrinsic(Intrinsic::WaitFlagDev, step->gm, step->local, 0, core.at);
            break;
        }
    }
}

} // namespace insight_trace::engine
