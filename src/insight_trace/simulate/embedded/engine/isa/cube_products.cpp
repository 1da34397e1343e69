// MMAD: the product of two tiles in boxes, and what is added to it.
#include "isa/cube_products.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "elements.hpp"
#include "insight_trace/narrow.hpp"
#include "isa/matmul_products.hpp"

namespace insight_trace::engine {

namespace {

bool is_float8(Type type) { return type == Type::F8E4M3 || type == Type::F8E5M2; }

// The tiles of the cube unit lie in boxes; each is read as one run of memory.
template <class T, class W, class Convert>
HOT_LOOP void read_box(const T *from, W *to, int64_t count, Convert convert) {
    for (int64_t i = 0; i < count; ++i) to[i] = convert(from[i]);
}

// Boxes of at most 512 elements, converted: body(first row, first column, elements).
template <class W, class T, class Convert, class Body>
void for_boxes(Core &core, const TileRef &tile, int64_t rows, int64_t cols, Convert convert, Body body) {
    View<T> view(core, tile);
    const int64_t ir = inner_rows(tile), ic = inner_cols(tile);
    const int64_t room = int64_t(core.space_size(tile.space) - tile.address) / int64_t(sizeof(T));
    W box[512];
    for (int64_t r = 0; r < rows; r += ir)
        for (int64_t c = 0; c < cols; c += ic) {
            const T *first = &view.at(r, c);
            const int64_t left = room - (first - view.data);
            if (left <= 0)
                core.kernel_error(
                    "a product of %lld x %lld elements reads past the %llu bytes of %s: its tile at 0x%llx "
                    "has %d x %d",
                    (long long)rows, (long long)cols, (unsigned long long)core.space_size(tile.space),
                    space_name(tile.space), (unsigned long long)tile.address, tile.rows, tile.cols);
            // a tile may end within a box, at the end of its memory
            read_box(first, box, std::min<int64_t>(ir * ic, left), convert);
            body(r, c, box);
        }
}

// Calls body(convert, T{}) with what makes a number of a tile's elements.
template <class W, class Body> void with_elements(Type type, Body body) {
    auto plain = [&](auto tag) { body([](auto value) { return static_cast<W>(value); }, tag); };
    if constexpr (std::is_same_v<W, int32_t>) {
        plain(int8_t{});
    } else if (is_float8(type) || type == Type::HiF8) {
        auto decode = type == Type::F8E4M3   ? e4m3_to_float
                      : type == Type::F8E5M2 ? e5m2_to_float
                                             : hif8_to_float;
        body([decode](uint8_t code) { return decode(code); }, uint8_t{});
    } else if (type == Type::F16) {
        plain(half{});
    } else if (type == Type::BF16) {
        plain(bfloat16_t{});
    } else {
        plain(float{});
    }
}

// The left tile's valid part row by row: boxes have their rows one after the other.
template <class W>
void left_rows(Core &core, const TileRef &tile, int64_t m, int64_t k, std::vector<W> &out) {
    out.resize(size_t(m) * size_t(k));
    const int64_t ir = inner_rows(tile), ic = inner_cols(tile);
    with_elements<W>(tile.type, [&](auto convert, auto tag) {
        for_boxes<W, decltype(tag)>(core, tile, m, k, convert, [&](int64_t r, int64_t c, const W *box) {
            const int64_t width = std::min(ic, k - c);
            for (int64_t i = 0; i < std::min(ir, m - r); ++i)
                std::copy_n(box + i * ic, width, out.data() + (r + i) * k + c);
        });
    });
}

// The right tile's in panels (matmul_products.hpp): boxes are as wide and have their columns one after the
// other.
template <class W>
void right_panels(Core &core, const TileRef &tile, int64_t k, int64_t n, std::vector<W> &out) {
    out.resize(size_t((n + kPanel - 1) / kPanel * kPanel * k));
    if (n % kPanel) std::fill_n(out.data() + n / kPanel * kPanel * k, kPanel * k, W(0));
    const int64_t ir = inner_rows(tile), ic = inner_cols(tile);
    with_elements<W>(tile.type, [&](auto convert, auto tag) {
        for_boxes<W, decltype(tag)>(core, tile, k, n, convert, [&](int64_t r, int64_t c, const W *box) {
            const int64_t rows = std::min(ir, k - r), cols = std::min(ic, n - c);
            for (int64_t j = 0; j < cols; ++j) {
                W *to = out.data() + ((c + j) / kPanel * k + r) * kPanel + (c + j) % kPanel;
                for (int64_t i = 0; i < rows; ++i) to[i * kPanel] = box[j * ir + i];
            }
        });
    });
}

// Bytes of two integers of four bits along k, in lines of `width`: the low halves of a line, then the high
// ones.
void split_bytes(const std::vector<int32_t> &bytes, int64_t width, std::vector<int32_t> &out) {
    out.resize(2 * bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) {
        const size_t line = i / size_t(width), at = i % size_t(width);
        int32_t *low = out.data() + 2 * line * size_t(width) + at;
        low[0] = ((bytes[i] & 15) ^ 8) - 8;
        low[width] = bytes[i] >> 4;
    }
}

// How many elements of a row lie side by side in every box of a tile.
int64_t run_along_row(const TileRef &tile) { return tile.inner == 1 ? inner_cols(tile) : 1; }

// What is added to a product, in panels: an accumulator, or one row for all.
template <class W>
void added_panels(Core &core, const TileRef &tile, bool is_row, int64_t m, int64_t n, std::vector<W> &out) {
    out.resize(size_t((n + kPanel - 1) / kPanel * kPanel * m));
    std::vector<W> row(is_row ? size_t(n) : 0);
    if (is_row)
        with_type(tile.type, [&](auto tag) {
            View<decltype(tag)> from(core, tile);
            for (int64_t j = 0; j < n; ++j) row[size_t(j)] = static_cast<W>(from.at(0, j));
        });
    else if (tile.type != type_of<W>())
        core.unsupported("an accumulator of %s added to one of %s", type_name(tile.type),
                         type_name(type_of<W>()));
    const int64_t run = is_row ? kPanel : run_along_row(tile);
    const TileOrder order(tile);
    const W *from = is_row ? row.data() : View<W>(core, tile).data;
    for (int64_t j = 0; j < n; j += run)
        for (int64_t i = 0; i < m; ++i)
            std::copy_n(from + (is_row ? j : order.row(i) + order.col(j)), std::min(run, n - j),
                        out.data() + (j / kPanel * m + i) * kPanel + j % kPanel);
}

template <class W> HOT_LOOP void add_to(std::vector<W> &sum, const std::vector<W> &added) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = wrap_add(added[i], sum[i]);
}

template <class W> HOT_LOOP void add_in_place(W *to, const W *sum, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = wrap_add(to[i], sum[i]);
}

bool same_tile(const TileRef &a, const TileRef &b) {
    auto size = [](const TileRef &t) { return std::tuple(t.rows, t.cols, t.valid_rows, t.valid_cols); };
    auto layout = [](const TileRef &t) { return std::tuple(t.row_major, t.inner, t.fractal, t.compact); };
    return a.address == b.address && a.type == b.type && size(a) == size(b) && layout(a) == layout(b);
}

template <class W>
void store_sum(Core &core, const TileRef &c, const TileRef *added, bool added_is_row, std::vector<W> &sum,
               int64_t m, int64_t n) {
    const bool in_place = added && !added_is_row && same_tile(*added, c);
    if (added && !in_place) {
        static thread_local std::vector<W> more; // used again: fresh pages cost as much as the product
        added_panels<W>(core, *added, added_is_row, m, n, more);
        add_to(sum, more);
    }
    View<W> to(core, c);
    const TileOrder order(c);
    const int64_t run = run_along_row(c);
    // rows of a panel lie one after the other in an accumulator, too
    const bool has_panels =
        run == kPanel && order.row(1) == kPanel && order.row(inner_rows(c)) == inner_rows(c) * kPanel;
    for (int64_t j = 0; j < n; j += run) {
        const int64_t width = std::min(run, n - j), rows = has_panels && width == kPanel ? m : 1;
        for (int64_t i = 0; i < m; i += rows) {
            const W *from = sum.data() + (j / kPanel * m + i) * kPanel + j % kPanel;
            if (in_place)
                add_in_place(&to.at(i, j), from, rows * width);
            else
                std::copy_n(from, rows * width, &to.at(i, j));
        }
    }
}

uint32_t *unsigned_of(std::vector<int32_t> &numbers) { return reinterpret_cast<uint32_t *>(numbers.data()); }

// Short floats of the cube unit: 11 bits of mantissa on a2a3, ten on a5. Nearest; halves away from zero, or
// to even. What is smaller than a normal float is 0.
float shortened(float value, int bits, bool away) {
    const uint32_t word = float_bits(value), drop = 23 - static_cast<uint32_t>(bits), one = 1u << drop;
    if ((word & 0x7f800000u) == 0x7f800000u) return value;
    if ((word & 0x7f800000u) == 0) return bits_float(word & 0x80000000u);
    const uint32_t half = away ? one >> 1 : (one >> 1) - 1 + (word >> drop & 1);
    return bits_float((word + half) & ~(one - 1));
}

} // namespace

bool has_products(const Core &core, Type a, Type b, Type c) {
    const bool eight_bits = (is_float8(a) && is_float8(b)) || (a == Type::HiF8 && b == Type::HiF8);
    if (eight_bits) return core.register_based() && c == Type::F32;
    if (a == Type::I8 && b == Type::I8) return c == Type::I32;
    bool same = a == b && (a == Type::F16 || a == Type::BF16 || a == Type::F32);
    return same && c == Type::F32;
}

void multiply_tiles(Core &core, const TileRef &c, const TileRef *added, bool added_is_row, const TileRef &a,
                    const TileRef &b) {
    const int64_t m = a.valid_rows, k = a.valid_cols, n = b.valid_cols;
    if (core.computes) {
        const int64_t panels = (n + kPanel - 1) / kPanel;
        const auto elements = size_t(panels * kPanel * m);
        if (c.type == Type::I32) {
            static thread_local std::vector<int32_t> left, right, sum;
            left_rows(core, a, m, k, left);
            right_panels(core, b, k, n, right);
            sum.resize(elements);
            multiply_panels(unsigned_of(left), unsigned_of(right), unsigned_of(sum), m, k, panels);
            store_sum(core, c, added, added_is_row, sum, m, n);
        } else {
            static thread_local std::vector<float> left, right, sum;
            left_rows(core, a, m, k, left);
            right_panels(core, b, k, n, right);
            if (a.type == Type::F32 && core.control >> 46 & 1)
                for (auto *side : {&left, &right})
                    for (float &value : *side)
                        value = shortened(value, core.register_based() ? 10 : 11, core.control >> 47 & 1);
            sum.resize(elements);
            if (a.type == Type::F32)
                multiply_panels_fused(left.data(), right.data(), sum.data(), m, k, panels);
            else // products of 16-bit floats are exact in float
                multiply_panels(left.data(), right.data(), sum.data(), m, k, panels);
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

void multiply_half_bytes(Core &core, const TileRef &c, const TileRef *added, bool added_is_row,
                         const TileRef &a, const TileRef &b) {
    const int64_t m = a.valid_rows, pairs = a.valid_cols, k = 2 * pairs, n = b.valid_cols;
    if (core.computes) {
        const int64_t panels = (n + kPanel - 1) / kPanel;
        static thread_local std::vector<int32_t> bytes, left, right, sum;
        left_rows(core, a, m, pairs, bytes);
        split_bytes(bytes, 1, left);
        right_panels(core, b, pairs, n, bytes);
        split_bytes(bytes, kPanel, right);
        sum.resize(size_t(panels * kPanel * m));
        multiply_panels(unsigned_of(left), unsigned_of(right), unsigned_of(sum), m, k, panels);
        store_sum(core, c, added, added_is_row, sum, m, n);
    }
    if (added)
        core.also(kReads, added->space, added->type,
                  added_is_row ? part_of(*added, 0, 0, 1, n) : part_of(*added, 0, 0, m, n));
    core.multiply(Type::I4, m, k, n, part_of(c, 0, 0, m, n), part_of(a, 0, 0, m, pairs),
                  part_of(b, 0, 0, pairs, n));
}

void multiply_sparse(Core &core, const TileRef &c, const TileRef *added, bool added_is_row, const TileRef &a,
                     const TileRef &b, uint64_t choices) {
    const int64_t m = a.valid_rows, k = a.valid_cols, half = b.valid_rows, n = b.valid_cols;
    const int64_t wide = b.cols / 16, of_box = 128; // bytes of choices that go with a box
    const int64_t bytes = b.rows / 32 * wide * of_box;
    if (core.computes) {
        const uint8_t *chosen = core.local(Space::ScaleRight, choices, uint64_t(bytes));
        const int64_t panels = (n + kPanel - 1) / kPanel;
        static thread_local std::vector<int32_t> left, dense, right, sum;
        left_rows(core, a, m, k, left);
        right_panels(core, b, half, n, dense);
        right.assign(size_t(panels * kPanel * k), 0);
        for (int64_t i = 0; i < half; i += 2)
            for (int64_t j = 0; j < n; ++j) {
                // boxes in rows; in one 16 lines of 32 elements, each with two bits
                const int64_t at = (i / 32 * wide + j / 16) * of_box + j % 16 * 8 + i % 32 / 4;
                const int64_t first = chosen[at] >> i % 4 * 2 & 3, behind = chosen[at] >> (i % 4 * 2 + 2) & 3;
                if (first == 3 || behind == 3)
                    core.kernel_error(
                        "mad_sp: a choice of column %lld is 3, which there is not: of four elements "
                        "the first one is 0 to 2 and the second one that and 1",
                        (long long)j);
                // a second one before the first is the first again
                const int64_t second = std::max(first, 1 + behind), panel = j / kPanel, lane = j % kPanel;
                const int32_t *from = &dense[size_t((panel * half + i) * kPanel + lane)];
                int32_t *to = &right[size_t((panel * k + 2 * i) * kPanel + lane)];
                to[first * kPanel] += from[0];
                to[second * kPanel] += from[kPanel];
            }
        sum.resize(size_t(panels * kPanel * m));
        multiply_panels(unsigned_of(left), unsigned_of(right), unsigned_of(sum), m, k, panels);
        store_sum(core, c, added, added_is_row, sum, m, n);
    }
    if (added)
        core.also(kReads, added->space, added->type,
                  added_is_row ? part_of(*added, 0, 0, 1, n) : part_of(*added, 0, 0, m, n));
    core.also(kReads, Space::ScaleRight, Type::U8, lines_at(choices, 1, 0, bytes));
    // what is chosen is multiplied as always: half as many steps along k
    core.multiply(a.type, m, half, n, part_of(c, 0, 0, m, n), part_of(a, 0, 0, m, k),
                  part_of(b, 0, 0, half, n));
}

} // namespace insight_trace::engine
