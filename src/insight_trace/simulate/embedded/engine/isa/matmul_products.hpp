// Products of matrices as the cube unit forms them.
#pragma once

#include <cstdint>

namespace insight_trace::engine {

// Columns lie in panels of so many, each panel row by row: element (p, j) of a matrix of k rows is at
// (j / kPanel * k + p) * kPanel + j % kPanel.
constexpr int64_t kPanel = 16;

// sum = left x right: `left` has m rows of k, `right` is k rows in panels, `sum` m rows in panels. Each
// element is the sum over k in order from 0, with a rounding after every product and after every sum.
void multiply_panels(const float *left, const float *right, float *sum, int64_t m, int64_t k, int64_t panels);
// The same modulo 2^32.
void multiply_panels(const uint32_t *left, const uint32_t *right, uint32_t *sum, int64_t m, int64_t k,
                     int64_t panels);
// The same, the product kept in double until it is added, as a fused multiply-add does.
void multiply_panels_fused(const float *left, const float *right, float *sum, int64_t m, int64_t k,
                           int64_t panels);

} // namespace insight_trace::engine
