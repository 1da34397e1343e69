// Instructions that kernels issue themselves (abi.hpp, Raw).
#include "late_work.hpp"
#include "machine.hpp"
#include "raw_units.hpp"
#include "scalar_memory.hpp"

using namespace insight_trace;
using namespace insight_trace::engine;

uint64_t insight_trace::engine::offset_in(Core &core, Space space, uint64_t address) {
    return core.offset_of(space, address);
}

void insight_trace::engine::perform(Core &core, Raw which, const uint64_t *values) {
    constexpr void (*kBodies[])(Core &, const uint64_t *) = {
        raw_copy,     raw_fill,        raw_vector,      raw_to_boxes,   raw_load_boxes,
        raw_multiply, raw_fixpipe,     raw_load_image,  raw_load_table, raw_merge,
        raw_matrices, raw_load_matrix, raw_load_scales, raw_nd_copy,    raw_load_sparse};
    kBodies[static_cast<int>(which)](core, values);
}

extern "C" void insight_trace_raw(Raw which, const uint64_t *values, Site at) {
    Core &core = current_core();
    core.at =
        at.file ? at : site_of(__builtin_return_address(0)); // of a tile library: the place in its object
    current_machine().progressed();
    if (!core.late) {
        Journal *journal = core.journal();
        if (journal) journal->begin_work(core.rows());
        perform(core, which, values);
        if (journal) journal->end_call(core.rows());
        return;
    }
    current_machine().interrupt(core);
    core.late->some();
    core.used_pipes = 0;
    core.used_unit = {};
    core.computes = false;
    perform(core, which, values);
    core.late->raw(core.used_pipes, which, values);
}
