// Which function executes an instruction: the fourth column of instructions.def.
#include "elements.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

// Executed where their operands are decoded, or by the tile op that issues them.
constexpr VectorSemantics execute_none = nullptr, execute_unit = nullptr, execute_control = nullptr;

static const VectorSemantics kSemantics[] = {
#define INSTR(name, pipe, form, semantics) execute_##semantics,
#include "instructions.def"
#undef INSTR
};

VectorSemantics vector_semantics(Instr instr) { return kSemantics[static_cast<size_t>(instr)]; }

void execute(Core &core, const VectorInstruction &instruction) {
    const VectorSemantics body = vector_semantics(instruction.instr);
    if (!body) core.unsupported("%s below the tile ops", instr_name(instruction.instr));
    body(core, instruction);
}

} // namespace insight_trace::engine
