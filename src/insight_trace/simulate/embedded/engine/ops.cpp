// Names and bodies of tile ops and instructions, by number.
#include "core.hpp"

namespace insight_trace::engine {

#define TILE_OP(name, ...) TILE_OP_BODY(name);
#include "insight_trace/ops.def"
#undef TILE_OP

// Those that are written; the others are null.
#define TILE_OP(name, ...) [[gnu::weak]] FUNCTION_OP_BODY(name);
#include "insight_trace/ops.def"
#undef TILE_OP

struct OpBodies {
    OpBody body, function;
};
static const OpBodies kOpBodies[] = {
#define TILE_OP(name, ...) {op_##name, function_##name},
#include "insight_trace/ops.def"
#undef TILE_OP
};

void lower(Core &core, Op op, const Operands &operands) {
    const OpBodies &known = kOpBodies[static_cast<int>(op)];
    const char *outer = core.op; // an op may be made of others
    core.op = op_names[static_cast<int>(op)];
    (core.register_based() && known.function ? known.function : known.body)(core, operands);
    core.op = outer;
}

const char *const op_names[] = {
#define TILE_OP(name, ...) #name,
#include "insight_trace/ops.def"
#undef TILE_OP
};

static const char *const kInstrNames[] = {
#define INSTR(name, ...) #name,
#include "instructions.def"
#undef INSTR
};

const char *instr_name(Instr instr) { return kInstrNames[static_cast<int>(instr)]; }

PipeId instr_pipe(Instr instr) {
    constexpr PipeId S = PipeId::S, V = PipeId::V, M = PipeId::M, MTE1 = PipeId::MTE1, MTE2 = PipeId::MTE2,
                     MTE3 = PipeId::MTE3, FIX = PipeId::FIX, ANY = PipeId::COUNT;
    static const PipeId pipes[] = {
#define INSTR(name, pipe, ...) pipe,
#include "instructions.def"
#undef INSTR
    };
    return pipes[static_cast<int>(instr)];
}

bool find_instr(const std::string &name, Instr &found) {
    for (int i = 0; i < kInstrCount; ++i)
        if (name == kInstrNames[i]) {
            found = static_cast<Instr>(i);
            return true;
        }
    return false;
}

} // namespace insight_trace::engine
