// TMATMUL_MX: narrow floats with one power of two for every 32 of them along k.
#include <cmath>
#include <vector>

#include "elementwise.hpp"
#include "insight_trace/narrow.hpp"
#include "nibbles.hpp"

namespace insight_trace::engine {

namespace {

constexpr int64_t kGroup = 32;

using Decode = float (*)(uint8_t);

Decode decoder(Type type) {
    switch (type) {
    case Type::F8E4M3:
        return e4m3_to_float;
    case Type::F8E5M2:
        return e5m2_to_float;
    case Type::F4E2M1:
        return e2m1_to_float;
    case Type::F4E1M2:
        return e1m2_to_float;
    default:
        return nullptr;
    }
}

// 2^(bits - 127), or not a number.
double scale_of(uint8_t bits) { return bits == 0xff ? std::nan("") : std::ldexp(1.0, int(bits) - 127); }

// The valid part, each element with its group's scale: doubles, since scales alone span the floats.
std::vector<double> scaled(Core &core, const TileRef &tile, const TileRef &scales, bool along_cols,
                           int64_t rows, int64_t cols) {
    Decode decode = decoder(tile.type);
    View<uint8_t> exponents(core, scales);
    std::vector<double> out(size_t(rows) * size_t(cols));
    auto fill = [&](auto value_at) {
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c) {
                uint8_t exponent = along_cols ? exponents.at(r, c / kGroup) : exponents.at(r / kGroup, c);
                out[size_t(r * cols + c)] = double(decode(value_at(r, c))) * scale_of(exponent);
            }
    };
    if (is_nibble(tile.type)) {
        Nibbles values(core, tile);
        fill([&](int64_t r, int64_t c) { return values.get(r, c); });
    } else {
        View<uint8_t> values(core, tile);
        fill([&](int64_t r, int64_t c) { return values.at(r, c); });
    }
    return out;
}

void check(Core &core, const TileRef &c, const TileRef &a, const TileRef &a_scale, const TileRef &b,
           const TileRef &b_scale) {
    if (!core.register_based()) core.unsupported("TMATMUL_MX on this chip: only a5 multiplies with scales");
    if (a.space != Space::L0A || b.space != Space::L0B || c.space != Space::L0C || c.type != Type::F32)
        core.kernel_error("TMATMUL_MX multiplies a Left by a Right tile into an Acc tile of float");
    if (!decoder(a.type) || !decoder(b.type) || is_nibble(a.type) != is_nibble(b.type))
        core.unsupported("TMATMUL_MX of %s by %s tiles", type_name(a.type), type_name(b.type));
    if (a_scale.type != Type::F8E8M0 || b_scale.type != Type::F8E8M0)
        core.kernel_error("TMATMUL_MX takes scales of float8_e8m0_t");
    check_boxes(core, "TMATMUL_MX", a, b, c);
    if (a.cols % 64) core.kernel_error("TMATMUL_MX takes Left tiles of whole 64 columns, not %d", a.cols);
    int64_t groups = (a.valid_cols + kGroup - 1) / kGroup;
    if (a_scale.cols < groups || b_scale.rows < groups || a_scale.rows < a.valid_rows ||
        b_scale.cols < b.valid_cols)
        core.kernel_error("TMATMUL_MX: fewer scales than groups of 32 elements");
    if (a.valid_rows > c.rows || b.valid_cols > c.cols || a.valid_cols > b.rows)
        core.kernel_error("TMATMUL_MX: the product does not fit the accumulator");
}

} // namespace

// (c, a, scales, b, scales), with an accumulator to add before a, or a bias row behind.
TILE_OP_BODY(TMATMUL_MX) {
    const TileRef &c = operands[0].tile;
    const bool accumulates = operands.count == 6 && operands[1].tile.space == Space::L0C;
    const uint32_t first = accumulates ? 2 : 1;
    const TileRef &a = operands[first].tile, &a_scale = operands[first + 1].tile;
    const TileRef &b = operands[first + 2].tile, &b_scale = operands[first + 3].tile;
    const TileRef *added = operands.count < 6 ? nullptr : &operands[accumulates ? 1 : 5].tile;
    check(core, c, a, a_scale, b, b_scale);
    const int64_t m = a.valid_rows, k = a.valid_cols, n = b.valid_cols;
    if (core.computes) {
        std::vector<double> left = scaled(core, a, a_scale, true, m, k),
                            right = scaled(core, b, b_scale, false, k, n);
        std::vector<float> row(static_cast<size_t>(n));
        View<float> to(core, c);
        for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j)
                row[size_t(j)] = added ? View<float>(core, *added).at(accumulates ? i : 0, j) : 0.0f;
            for (int64_t p = 0; p < k; ++p)
                for (int64_t j = 0; j < n; ++j)
                    row[size_t(j)] = static_cast<float>(double(row[size_t(j)]) +
                                                        left[size_t(i * k + p)] * right[size_t(p * n + j)]);
            for (int64_t j = 0; j < n; ++j) to.at(i, j) = row[size_t(j)];
        }
    }
    if (added) core.also(kReads, added->space, added->type, part_of(*added, 0, 0, accumulates ? m : 1, n));
    const int64_t groups = (k + kGroup - 1) / kGroup;
    core.also(kReads, a_scale.space, a_scale.type, part_of(a_scale, 0, 0, m, groups));
    core.also(kReads, b_scale.space, b_scale.type, part_of(b_scale, 0, 0, groups, n));
    core.multiply(a.type, m == 1 ? 16 : m, k, n, part_of(c, 0, 0, m, n), part_of(a, 0, 0, m, k),
                  part_of(b, 0, 0, k, n));
}

} // namespace insight_trace::engine
