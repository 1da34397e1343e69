// The cube unit: TMATMUL and its relatives.
#include <vector>

#include "elementwise.hpp"
#include "insight_trace/narrow.hpp"

namespace insight_trace::engine {

namespace {

// A tile's valid part as plain rows of the type that products are taken in.
template <class W, class T>
HOT_LOOP std::vector<W> gathered(Core &core, const TileRef &tile, int64_t rows, int64_t cols) {
    View<T> view(core, tile);
    std::vector<W> out(size_t(rows) * size_t(cols));
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) out[size_t(r * cols + c)] = static_cast<W>(view.at(r, c));
    return out;
}

bool is_float8(Type type) { return type == Type::F8E4M3 || type == Type::F8E5M2; }

template <class W> std::vector<W> gathered_as(Core &core, const TileRef &tile, int64_t rows, int64_t cols) {
    if (is_float8(tile.type) || tile.type == Type::HiF8) {
        auto decode = tile.type == Type::F8E4M3   ? e4m3_to_float
                      : tile.type == Type::F8E5M2 ? e5m2_to_float
                                                  : hif8_to_float;
        std::vector<W> out;
        for (uint8_t code : gathered<uint8_t, uint8_t>(core, tile, rows, cols))
            out.push_back(static_cast<W>(decode(code)));
        return out;
    }
    return with_type(tile.type, [&](auto tag) { return gathered<W, decltype(tag)>(core, tile, rows, cols); });
}

// sum over k in order, one output row at a time; products of 16-bit floats are exact in float.
HOT_LOOP void multiply_rows(const std::vector<float> &a, const std::vector<float> &b, std::vector<float> &sum,
                            int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; ++i) {
        float *row = sum.data() + i * n;
        for (int64_t p = 0; p < k; ++p) {
            float left = a[size_t(i * k + p)];
            const float *right = b.data() + p * n;
            for (int64_t j = 0; j < n; ++j) row[j] += left * right[j];
        }
    }
}

// float x float: the product keeps its low bits until it is added, as a fused multiply-add does.
HOT_LOOP void multiply_rows_fused(const std::vector<float> &a, const std::vector<float> &b,
                                  std::vector<float> &sum, int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; ++i) {
        float *row = sum.data() + i * n;
        for (int64_t p = 0; p < k; ++p) {
            double left = double(a[size_t(i * k + p)]);
            const float *right = b.data() + p * n;
            for (int64_t j = 0; j < n; ++j)
                row[j] = static_cast<float>(double(row[j]) + left * double(right[j]));
        }
    }
}

HOT_LOOP void multiply_rows_int(const std::vector<int32_t> &a, const std::vector<int32_t> &b,
                                std::vector<int32_t> &sum, int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t p = 0; p < k; ++p) {
            int32_t left = a[size_t(i * k + p)];
            for (int64_t j = 0; j < n; ++j) {
                int32_t &to = sum[size_t(i * n + j)];
                to = wrap_add(to, left * b[size_t(p * n + j)]);
            }
        }
}

template <class W>
HOT_LOOP void store_sum(Core &core, const TileRef &c, const TileRef *added, bool added_is_row,
                        const std::vector<W> &sum, int64_t m, int64_t n) {
    View<W> to(core, c);
    if (!added) {
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) to.at(i, j) = sum[size_t(i * n + j)];
        return;
    }
    with_type(added->type, [&](auto tag) {
        View<decltype(tag)> from(core, *added);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
                to.at(i, j) =
                    wrap_add(static_cast<W>(from.at(added_is_row ? 0 : i, j)), sum[size_t(i * n + j)]);
    });
}

bool supported(const Core &core, Type a, Type b, Type c) {
    const bool eight_bits = (is_float8(a) && is_float8(b)) || (a == Type::HiF8 && b == Type::HiF8);
    if (eight_bits) return core.register_based() && c == Type::F32;
    if (a == Type::I8 && b == Type::I8) return c == Type::I32;
    bool same = a == b && (a == Type::F16 || a == Type::BF16 || a == Type::F32);
    return same && c == Type::F32;
}

// Short floats of the cube unit: 11 bits of mantissa on a2a3, ten on a5. Nearest; halves away from zero, or
// to even. What is smaller than a normal float is 0.
float shortened(float value, int bits, bool away) {
    const uint32_t word = float_bits(value), drop = 23 - static_cast<uint32_t>(bits), one = 1u << drop;
    if ((word & 0x7f800000u) == 0x7f800000u) return value;
    if ((word & 0x7f800000u) == 0) return bits_float(word & 0x80000000u);
    const uint32_t half = away ? one >> 1 : (one >> 1) - 1 + (word >> drop & 1);
    return bits_float((word + half) & ~(one - 1));
}

void matmul(Core &core, const char *op, const TileRef &c, const TileRef *added, bool added_is_row,
            const TileRef &a, const TileRef &b) {
    if (a.space != Space::L0A || b.space != Space::L0B || c.space != Space::L0C)
        core.kernel_error("%s multiplies a Left by a Right tile into an Acc tile", op);
    if (!supported(core, a.type, b.type, c.type))
        core.unsupported("%s of %s by %s tiles into %s", op, type_name(a.type), type_name(b.type),
                         type_name(c.type));
    check_boxes(core, op, a, b, c);
    int64_t m = a.valid_rows, k = a.valid_cols, n = b.valid_cols;
    if (m <= 0 || k <= 0 || n <= 0)
        core.kernel_error("%s of an empty tile (m %lld, k %lld, n %lld)", op, (long long)m, (long long)k,
                          (long long)n);
    if (m > c.rows || n > c.cols || k > b.rows)
        core.kernel_error("%s: %lld x %lld by %d x %lld does not fit a %d x %d accumulator", op, (long long)m,
                          (long long)k, b.rows, (long long)n, c.rows, c.cols);
    if (core.computes) {
        if (c.type == Type::I32) {
            auto left = gathered_as<int32_t>(core, a, m, k), right = gathered_as<int32_t>(core, b, k, n);
            std::vector<int32_t> sum(size_t(m) * size_t(n));
            multiply_rows_int(left, right, sum, m, k, n);
            store_sum(core, c, added, added_is_row, sum, m, n);
        } else {
            auto left = gathered_as<float>(core, a, m, k), right = gathered_as<float>(core, b, k, n);
            if (a.type == Type::F32 && core.control >> 46 & 1)
                for (auto *side : {&left, &right})
                    for (float &value : *side)
                        value = shortened(value, core.register_based() ? 10 : 11, core.control >> 47 & 1);
            std::vector<float> sum(size_t(m) * size_t(n));
            (a.type == Type::F32 ? multiply_rows_fused : multiply_rows)(left, right, sum, m, k, n);
            store_sum(core, c, added, added_is_row, sum, m, n);
        }
    }
    // a single row would start the vector-matrix mode, so the hardware is given sixteen
    if (added)
        core.also(kReads, added->space, added->type,
                  added_is_row ? part_of(*added, 0, 0, 1, n) : part_of(*added, 0, 0, m, n));
    core.multiply(a.type, m == 1 ? 16 : m, k, n, part_of(c, 0, 0, m, n), part_of(a, 0, 0, m, k),
                  part_of(b, 0, 0, k, n));
}

} // namespace

void check_boxes(Core &core, const char *op, const TileRef &a, const TileRef &b, const TileRef &c) {
    const bool nz = core.register_based();
    if (a.inner != 1 || bool(a.row_major) == nz)
        core.kernel_error("%s takes a Left tile in %s on this chip: TileLeft has it", op,
                          nz ? "NZ (column-major boxes)" : "ZZ (row-major boxes)");
    if (b.inner != 2 || !b.row_major) core.kernel_error("%s takes a Right tile in ZN: TileRight has it", op);
    if (c.inner != 1 || c.row_major) core.kernel_error("%s takes an Acc tile in NZ: TileAcc has it", op);
}

TILE_OP_BODY(TMATMUL) {
    matmul(core, "TMATMUL", operands[0].tile, nullptr, false, operands[1].tile, operands[2].tile);
}

TILE_OP_BODY(TMATMUL_ACC) {
    bool shared = operands.count == 3;
    const TileRef &in = operands[shared ? 0 : 1].tile;
    matmul(core, "TMATMUL_ACC", operands[0].tile, &in, false, operands[shared ? 1 : 2].tile,
           operands[shared ? 2 : 3].tile);
}

TILE_OP_BODY(TMATMUL_BIAS) {
    matmul(core, "TMATMUL_BIAS", operands[0].tile, &operands[3].tile, true, operands[1].tile,
           operands[2].tile);
}

} // namespace insight_trace::engine
