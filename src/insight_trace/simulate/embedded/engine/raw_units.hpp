// Instructions of the vector and the cube unit that kernels issue themselves (abi.hpp, Raw).
#pragma once

#include "core.hpp"

namespace insight_trace::engine {

void raw_copy(Core &core, const uint64_t *values);
void raw_fill(Core &core, const uint64_t *values);
void raw_vector(Core &core, const uint64_t *values);
void raw_merge(Core &core, const uint64_t *values);
void raw_to_boxes(Core &core, const uint64_t *values);
void raw_load_boxes(Core &core, const uint64_t *values);
void raw_nd_copy(Core &core, const uint64_t *values);
void raw_multiply(Core &core, const uint64_t *values);
void raw_fixpipe(Core &core, const uint64_t *values);
void raw_load_image(Core &core, const uint64_t *values);
void raw_matrices(Core &core, const uint64_t *values);
void raw_load_matrix(Core &core, const uint64_t *values);
void raw_load_scales(Core &core, const uint64_t *values);
void raw_load_sparse(Core &core, const uint64_t *values);
void raw_load_table(Core &core, const uint64_t *values);

} // namespace insight_trace::engine
