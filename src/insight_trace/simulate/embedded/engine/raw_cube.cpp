// Instructions of the cube core that kernels issue themselves: into boxes, into L0, products, and out again.
#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/compose.hpp"
#include "ops/fixpipe.hpp"
#include "raw_units.hpp"

namespace insight_trace::engine {

namespace {

constexpr int64_t kBlock = 32, kBox = 512;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// A tile of the cube core in whole boxes.
TileRef boxed(Space space, Type type, uint64_t address, int64_t rows, int64_t cols, bool row_major,
              uint8_t inner, int32_t fractal) {
    TileRef tile{};
    tile.address = static_cast<uint32_t>(address);
    tile.space = space;
    tile.type = type;
    tile.row_major = row_major;
    tile.inner = inner;
    tile.fractal = fractal;
    tile.rows = static_cast<int32_t>(round_up(rows, inner_rows(tile)));
    tile.cols = static_cast<int32_t>(round_up(cols, inner_cols(tile)));
    tile.valid_rows = static_cast<int32_t>(rows);
    tile.valid_cols = static_cast<int32_t>(cols);
    return tile;
}

TileRef accumulator(Type type, uint64_t address, int64_t rows, int64_t cols) {
    return boxed(Space::L0C, type, address, rows, cols, false, 1, 1024);
}

// One row by a matrix: the row lies in L0A without boxes.
void multiply_row(Core &core, uint64_t acc, uint64_t left, const TileRef &right, int64_t k, int64_t n,
                  bool adds) {
    const TileRef c = accumulator(Type::F32, acc, 1, n);
    if (core.computes)
        with_type_of(core, "mad of one row", right.type, Types<float, half, bfloat16_t>{}, [&](auto tag) {
            using T = decltype(tag);
            const T *a = core.local_as<T>(Space::L0A, left, uint64_t(k));
            View<T> b(core, right);
            View<float> to(core, c);
            for (int64_t j = 0; j < n; ++j) {
                float sum = 0;
                for (int64_t i = 0; i < k; ++i) sum += float(a[i]) * float(b.at(i, j));
                to.at(0, j) = adds ? to.at(0, j) + sum : sum;
            }
        });
    const int64_t size = type_size(right.type);
    if (adds) core.also(kReads, Space::L0C, Type::F32, valid_of(c));
    core.multiply(right.type, 1, k, n, valid_of(c), lines_at(left, 1, 0, k * size), valid_of(right));
}

} // namespace

void raw_to_boxes(Core &core, const uint64_t *v) {
    const uint64_t to = offset_in(core, Space::L1, v[0]), from = v[1];
    const int64_t matrices = int64_t(v[2]), rows = int64_t(v[3]), cols = int64_t(v[4]), size = int64_t(v[10]);
    const int64_t from_matrix = int64_t(v[5]) * size, from_row = int64_t(v[6]) * size;
    const int64_t to_column = int64_t(v[7]) * kBlock, to_row = int64_t(v[8]) * kBlock,
                  to_matrix = int64_t(v[9]) * size;
    const int64_t bytes = cols * size, columns = (bytes + kBlock - 1) / kBlock;
    if (matrices <= 0 || rows <= 0 || bytes <= 0) return;
    if (core.computes)
        for (int64_t i = 0; i < matrices; ++i)
            for (int64_t r = 0; r < rows; ++r) {
                const uint8_t *row =
                    core.global(from + uint64_t(i * from_matrix + r * from_row), uint64_t(bytes), kReads);
                for (int64_t c = 0; c < columns; ++c) {
                    uint8_t *block = core.local(
                        Space::L1, to + uint64_t(i * to_matrix + r * to_row + c * to_column), kBlock);
                    const int64_t there = std::min(kBlock, bytes - c * kBlock);
                    memcpy(block, row + c * kBlock, size_t(there));
                    memset(block + there, 0, size_t(kBlock - there)); // the last block is filled up
                }
            }
    Area there = lines_at(to, columns, to_column, kBlock),
         here = lines_at(from, matrices, from_matrix, bytes);
    auto along = [](Area &area, int dim, int64_t count, int64_t step) {
        area.walk[0].count[dim] = static_cast<uint32_t>(count);
        area.walk[0].step[dim] = step;
    };
    along(there, 1, rows, to_row);
    along(there, 2, matrices, to_matrix);
    along(here, 1, rows, from_row);
    const Type type = size == 1 ? Type::U8 : size == 2 ? Type::U16 : Type::U32;
    core.transfer(Instr::MOV_OUT_TO_L1_MULTI_ND2NZ, type, here, there, matrices * rows, bytes, from_row);
}

void raw_load_boxes(Core &core, const uint64_t *v) {
    const Space space = static_cast<Space>(v[0]);
    const uint64_t to = offset_in(core, space, v[1]), from = offset_in(core, Space::L1, v[2]) + v[3] * kBox;
    const int64_t boxes = int64_t(v[4]), from_step = int64_t(v[5]) * kBox, to_step = int64_t(v[6] + 1) * kBox;
    const bool turned = v[7] != 0, left = space == Space::L0A;
    if (turned && v[8] != 2) core.unsupported("a load that turns boxes of %d-byte elements", int(v[8]));
    if (boxes <= 0) return;
    if (core.computes)
        for (int64_t i = 0; i < boxes; ++i) {
            const uint8_t *box = core.local(Space::L1, from + uint64_t(i * from_step), kBox);
            uint8_t *into = core.local(space, to + uint64_t(i * to_step), kBox);
            if (!turned) {
                memcpy(into, box, kBox);
                continue;
            }
            for (int r = 0; r < 16; ++r)
                for (int c = 0; c < 16; ++c) memcpy(into + (c * 16 + r) * 2, box + (r * 16 + c) * 2, 2);
        }
    const Instr instr = left     ? turned ? Instr::LOAD_L1_TO_L0A_2D_TRANSPOSE : Instr::LOAD_L1_TO_L0A_2D
                        : turned ? Instr::LOAD_L1_TO_L0B_2D_TRANSPOSE
                                 : Instr::LOAD_L1_TO_L0B_2D;
    core.move(instr, Type::U8, lines_at(to, boxes, to_step, kBox), lines_at(from, boxes, from_step, kBox),
              boxes, boxes * kBox);
}

void raw_multiply(Core &core, const uint64_t *v) {
    const uint64_t acc = offset_in(core, Space::L0C, v[0]), left = offset_in(core, Space::L0A, v[1]),
                   right = offset_in(core, Space::L0B, v[2]);
    const int64_t m = int64_t(v[3]), k = int64_t(v[4]), n = int64_t(v[5]);
    const Type type = static_cast<Type>(v[6]);
    const bool adds = v[7] != 0;
    if (m <= 0 || k <= 0 || n <= 0) return;
    const TileRef b = boxed(Space::L0B, type, right, k, n, true, 2, 512);
    if (m == 1 && type != Type::I8) return multiply_row(core, acc, left, b, k, n, adds);
    const TileRef a = boxed(Space::L0A, type, left, m, k, !core.register_based(), 1, 512);
    const TileRef c = accumulator(type == Type::I8 ? Type::I32 : Type::F32, acc, m, n);
    run(core, adds ? Op::TMATMUL_ACC : Op::TMATMUL, as_operand(c), as_operand(a), as_operand(b));
}

void raw_store_accumulator(Core &core, const uint64_t *v) {
    const int64_t cols = int64_t(v[2]), rows = int64_t(v[3]);
    if (cols <= 0 || rows <= 0) return;
    const Type type = static_cast<Type>(v[6]);
    TileRef tile = accumulator(type == Type::I32 ? Type::I32 : Type::F32, offset_in(core, Space::L0C, v[1]),
                               int64_t(v[5]), cols);
    tile.valid_rows = static_cast<int32_t>(rows);
    GlobalRef g{};
    g.address = v[0];
    for (int i = 0; i < 3; ++i) g.shape[i] = 1;
    g.shape[3] = rows;
    g.shape[4] = cols;
    g.stride[3] = int64_t(v[4]);
    g.stride[4] = 1;
    g.type = type;
    store_accumulator(core, g, tile, false, WayOut(v[7] != 0, nullptr));
}

} // namespace insight_trace::engine
