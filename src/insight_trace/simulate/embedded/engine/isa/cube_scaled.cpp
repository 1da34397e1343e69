// MMAD of narrow floats with one power of two for every 32 of them along k.
#include <cmath>
#include <vector>

#include "insight_trace/narrow.hpp"
#include "isa/cube_products.hpp"
#include "isa/nibble_tiles.hpp"

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

} // namespace

bool has_scaled_products(Type type) { return decoder(type) != nullptr; }

void multiply_scaled_tiles(Core &core, const TileRef &c, const TileRef *added, bool added_is_row,
                           const TileRef &a, const TileRef &a_scale, const TileRef &b,
                           const TileRef &b_scale) {
    const int64_t m = a.valid_rows, k = a.valid_cols, n = b.valid_cols;
    const bool accumulates = added && !added_is_row;
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
