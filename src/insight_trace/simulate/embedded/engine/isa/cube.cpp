// Instructions of the cube core: into boxes, into L0, products, tables of the bias and of scales.
#include <algorithm>
#include <cstring>
#include <vector>

#include "elements.hpp"
#include "isa/cube_products.hpp"
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

TileRef bias_row(Core &core, Type type, uint64_t address, int64_t cols) {
    TileRef bias{};
    bias.address = static_cast<uint32_t>(offset_in(core, Space::Bias, address));
    bias.space = Space::Bias;
    bias.type = type;
    bias.row_major = 1;
    bias.rows = bias.valid_rows = 1;
    bias.cols = bias.valid_cols = static_cast<int32_t>(cols);
    return bias;
}

// One row by a matrix: the row lies in L0A without boxes. `start`: what is added, a row of the bias table or
// the accumulator itself.
void multiply_row(Core &core, const TileRef &c, uint64_t left, const TileRef &right, int64_t k, int64_t n,
                  const TileRef *start) {
    if (core.computes)
        with_type_of(core, "mad of one row", right.type, Types<float, half, bfloat16_t, int8_t>{},
                     [&](auto tag) {
                         using T = decltype(tag);
                         using Sum = std::conditional_t<std::is_same_v<T, int8_t>, int32_t, float>;
                         const T *a = core.local_as<T>(Space::L0A, left, uint64_t(k));
                         View<T> b(core, right);
                         View<Sum> to(core, c);
                         for (int64_t j = 0; j < n; ++j) {
                             Sum sum = 0;
                             for (int64_t i = 0; i < k; ++i) sum += Sum(a[i]) * Sum(b.at(i, j));
                             to.at(0, j) = start ? View<Sum>(core, *start).at(0, j) + sum : sum;
                         }
                     });
    const int64_t size = type_size(right.type);
    if (start) core.also(kReads, start->space, start->type, part_of(*start, 0, 0, 1, n));
    core.multiply(right.type, 1, k, n, valid_of(c), lines_at(left, 1, 0, k * size), valid_of(right));
}

// Narrow floats with a factor for each 32 of them along k; the factors lie at a sixteenth of the tiles'
// addresses.
void multiply_scaled(Core &core, const TileRef &c, uint64_t left, uint64_t right, int64_t m, int64_t k,
                     int64_t n, Type left_type, Type right_type, const TileRef *bias, bool adds) {
    TileRef a = boxed(Space::L0A, left_type, left, m, k, false, 1, 512),
            b = boxed(Space::L0B, right_type, right, k, n, true, 2, 512);
    a.cols = b.rows = static_cast<int32_t>(round_up(k, 64));
    const int64_t groups = round_up(k, 64) / 32;
    const TileRef a_scale = boxed(Space::ScaleLeft, Type::F8E8M0, left / 16, m, groups, true, 1, 32),
                  b_scale = boxed(Space::ScaleRight, Type::F8E8M0, right / 16, groups, n, false, 2, 32);
    if (!has_scaled_products(left_type) || !has_scaled_products(right_type))
        core.unsupported("mad_mx of %s by %s", type_name(left_type), type_name(right_type));
    multiply_scaled_tiles(core, c, adds ? &c : bias, !adds, a, a_scale, b, b_scale);
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

// The same on the 950, whose register has the steps of the result; the source may lie column by column.
void raw_matrices(Core &core, const uint64_t *v) {
    const uint64_t to = offset_in(core, Space::L1, v[0]), from = v[1], para = core.spr_of(Spr::MTE2_NZ_PARA);
    const int64_t line_step = int64_t(v[2]), from_matrix = int64_t(v[3]), rows = int64_t(v[4]),
                  cols = int64_t(v[5]), size = int64_t(v[6]);
    const bool by_column = v[7];
    const int64_t matrices = int64_t(para & 0xffff), to_row = int64_t(para >> 16 & 0xffff) * kBlock,
                  to_column = int64_t(para >> 32 & 0xffff) * kBlock, to_matrix = int64_t(para >> 48) * kBlock;
    if (matrices <= 0 || rows <= 0 || cols <= 0) return;
    const int64_t in_block = kBlock / size, columns = (cols + in_block - 1) / in_block;
    const int64_t lines = by_column ? cols : rows, run = (by_column ? rows : cols) * size;
    if (core.computes)
        for (int64_t i = 0; i < matrices; ++i) {
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t c = 0; c < columns; ++c)
                    memset(core.local(Space::L1, to + uint64_t(i * to_matrix + r * to_row + c * to_column),
                                      kBlock),
                           0, kBlock);
            for (int64_t line = 0; line < lines; ++line) {
                const uint8_t *source =
                    core.global(from + uint64_t(i * from_matrix + line * line_step), uint64_t(run), kReads);
                for (int64_t at = 0; at < run / size; ++at) {
                    const int64_t r = by_column ? at : line, c = by_column ? line : at;
                    const int64_t place =
                        i * to_matrix + r * to_row + c / in_block * to_column + c % in_block * size;
                    memcpy(core.local(Space::L1, to + uint64_t(place), uint64_t(size)), source + at * size,
                           size_t(size));
                }
            }
        }
    Area there = lines_at(to, columns, to_column, kBlock), here = lines_at(from, lines, line_step, run);
    auto along = [](Area &area, int dim, int64_t count, int64_t step) {
        area.walk[0].count[dim] = static_cast<uint32_t>(count);
        area.walk[0].step[dim] = step;
    };
    along(there, 1, rows, to_row);
    along(there, 2, matrices, to_matrix);
    along(here, 1, matrices, from_matrix);
    const Type type = size == 1 ? Type::U8 : size == 2 ? Type::U16 : Type::U32;
    core.transfer(Instr::MOV_OUT_TO_L1_MULTI_ND2NZ, type, here, there, matrices * lines, run, line_step);
}

// A part of a matrix in boxes of 16 rows by 32 bytes, in columns of boxes; turned over where asked for.
void raw_load_matrix(Core &core, const uint64_t *v) {
    const Space space = static_cast<Space>(v[0]);
    const uint64_t to = offset_in(core, space, v[1]), from = offset_in(core, Space::L1, v[2]);
    const int64_t first_row = int64_t(v[3]), first_col = int64_t(v[4]), rows = int64_t(v[5]),
                  cols = int64_t(v[6]);
    const auto from_step = static_cast<int16_t>(v[7]); // goes back, too
    const int64_t to_step = int64_t(v[8]) * kBox, nibbles = int64_t(v[10]);
    const bool turned = v[9], left = space == Space::L0A;
    if (rows <= 0 || cols <= 0) return;
    auto box_at = [&](int64_t row, int64_t col) {
        return from + uint64_t(((first_col + col) * from_step + first_row + row) * kBox);
    };
    if (core.computes && !turned) {
        for (int64_t col = 0; col < cols; ++col)
            for (int64_t row = 0; row < rows; ++row)
                memcpy(core.local(space, to + uint64_t(col * to_step + row * kBox), kBox),
                       core.local(Space::L1, box_at(row, col), kBox), kBox);
    } else if (core.computes) {
        const int64_t in_block = 2 * kBlock / nibbles; // elements
        for (int64_t col = 0; col < cols; ++col)
            for (int64_t row = 0; row < rows; ++row) {
                const uint8_t *box = core.local(Space::L1, box_at(row, col), kBox);
                for (int64_t r = 0; r < 16; ++r)
                    for (int64_t c = 0; c < in_block; ++c) {
                        // what was a column is a row
                        const int64_t there = row * 16 + r, line = col * in_block + c;
                        const uint64_t block = to + uint64_t(there / in_block * to_step + line * kBlock);
                        uint8_t *place = core.local(space, block, kBlock);
                        const int64_t at = there % in_block * nibbles, source = r * 2 * kBlock + c * nibbles;
                        if (nibbles > 1) {
                            memcpy(place + at / 2, box + source / 2, size_t(nibbles / 2));
                            continue;
                        }
                        const int value = box[source / 2] >> (source % 2 * 4) & 15, shift = int(at % 2 * 4);
                        place[at / 2] = uint8_t((place[at / 2] & ~(15 << shift)) | value << shift);
                    }
            }
    }
    const int64_t bytes = rows * cols * kBox;
    const Instr instr = left     ? turned ? Instr::LOAD_L1_TO_L0A_2D_TRANSPOSE : Instr::LOAD_L1_TO_L0A_2D
                        : turned ? Instr::LOAD_L1_TO_L0B_2D_TRANSPOSE
                                 : Instr::LOAD_L1_TO_L0B_2D;
    // turned, columns of boxes of the result come from rows of the source
    const int64_t in_block = 2 * kBlock / nibbles;
    const Area there =
        turned ? lines_at(to, (rows * 16 + in_block - 1) / in_block, to_step, cols * in_block * kBlock)
               : lines_at(to, cols, to_step, rows * kBox);
    core.move(instr, Type::U8, there, lines_at(box_at(0, 0), cols, int64_t(from_step) * kBox, rows * kBox),
              rows * cols, bytes);
}

// Factors of groups of 32 elements, in boxes of 16 by 2 bytes, rows of boxes one after the other.
void raw_load_scales(Core &core, const uint64_t *v) {
    const Space space = static_cast<Space>(v[0]);
    // a sixteenth of the address of their tile in L0, or an address of their own
    const LocalPlace tile = local_place(v[1] << 4);
    const bool of_tile = tile.known && tile.space == (space == Space::ScaleLeft ? Space::L0A : Space::L0B);
    const uint64_t to = of_tile ? tile.offset >> 4 : offset_in(core, space, v[1]),
                   from = offset_in(core, Space::L1, v[2]);
    const int64_t first_row = int64_t(v[3]), first_col = int64_t(v[4]), rows = int64_t(v[5]),
                  cols = int64_t(v[6]), from_step = int64_t(v[7]) * kBlock, to_step = int64_t(v[8]) * kBlock;
    if (rows <= 0 || cols <= 0) return;
    const uint64_t first = from + uint64_t(first_row * from_step + first_col * kBlock);
    if (core.computes)
        for (int64_t row = 0; row < rows; ++row)
            memcpy(core.local(space, to + uint64_t(row * to_step), uint64_t(cols * kBlock)),
                   core.local(Space::L1, first + uint64_t(row * from_step), uint64_t(cols * kBlock)),
                   size_t(cols * kBlock));
    core.move(space == Space::ScaleLeft ? Instr::LOAD_L1_TO_L0A_2D : Instr::LOAD_L1_TO_L0B_2D, Type::U8,
              lines_at(to, rows, to_step, cols * kBlock), lines_at(first, rows, from_step, cols * kBlock),
              rows, rows * cols * kBlock, &space);
}

namespace {

// Lines of 32 bytes whose elements are turned over: line i of the result is element i of every line.
void turn_square(const uint8_t *from, uint8_t *to, int64_t lines, int64_t size) {
    for (int64_t r = 0; r < lines; ++r)
        for (int64_t c = 0; c < kBlock / size; ++c)
            memcpy(to + c * kBlock + r * size, from + r * kBlock + c * size, size_t(size));
}

// A square of 16 x 16 words, whose two boxes of 8 columns lie one behind the other: so do those of the
// result.
void turn_words(const uint8_t *from, uint8_t *to) {
    for (int64_t r = 0; r < 16; ++r)
        for (int64_t c = 0; c < 16; ++c)
            memcpy(to + r / 8 * kBox + c * kBlock + r % 8 * 4, from + c / 8 * kBox + r * kBlock + c % 8 * 4,
                   4);
}

// Lines of half bytes, 64 of them.
void turn_half_bytes(const uint8_t *from, uint8_t *to) {
    constexpr int64_t kSide = 2 * kBlock;
    memset(to, 0, size_t(kSide * kBlock));
    for (int64_t r = 0; r < kSide; ++r)
        for (int64_t c = 0; c < kSide; ++c) {
            const int value = from[r * kBlock + c / 2] >> (c % 2 * 4) & 15;
            to[c * kBlock + r / 2] |= uint8_t(value << (r % 2 * 4));
        }
}

} // namespace

void raw_load_boxes(Core &core, const uint64_t *v) {
    const Space space = static_cast<Space>(v[0]);
    // a square of 16 x 16 halves is one box, one of 32 x 32 bytes or 16 x 16 words two, one of 64 x 64 half
    // bytes four
    const int64_t of_square = int64_t(v[11]), square = of_square * kBox;
    const uint64_t to = offset_in(core, space, v[1]),
                   from = offset_in(core, Space::L1, v[2]) + v[3] * uint64_t(kBox);
    const int64_t boxes = int64_t(v[4]), to_step = int64_t(v[6] + 1) * kBox,
                  part_step = int64_t(v[10] + 1) * kBox, from_part_step = int64_t(v[12] + 1) * kBox;
    const int64_t from_step = int64_t(v[5]) * kBox * (v[9] ? -1 : 1), size = int64_t(v[8]);
    const bool turned = v[7] != 0, left = space == Space::L0A;
    if (turned && size == 0 && of_square != 4) core.unsupported("a load that turns boxes of half bytes");
    if (turned && size == 4 && of_square != 2)
        core.unsupported("a load that turns single boxes of 4-byte elements");
    if (boxes <= 0) return;
    if (core.computes)
        for (int64_t i = 0; i < boxes; ++i) {
            uint8_t taken[4 * kBox], result[4 * kBox];
            for (int64_t part = 0; part < of_square; ++part)
                memcpy(taken + part * kBox,
                       core.local(Space::L1, from + uint64_t(i * from_step + part * from_part_step), kBox),
                       kBox);
            if (turned && size == 0)
                turn_half_bytes(taken, result);
            else if (turned && size == 4)
                turn_words(taken, result);
            else if (turned)
                turn_square(taken, result, 16 * of_square, size);
            else
                memcpy(result, taken, size_t(square));
            for (int64_t part = 0; part < of_square; ++part)
                memcpy(core.local(space, to + uint64_t(i * to_step + part * part_step), kBox),
                       result + part * kBox, kBox);
        }
    const Instr instr = left     ? turned ? Instr::LOAD_L1_TO_L0A_2D_TRANSPOSE : Instr::LOAD_L1_TO_L0A_2D
                        : turned ? Instr::LOAD_L1_TO_L0B_2D_TRANSPOSE
                                 : Instr::LOAD_L1_TO_L0B_2D;
    Area there = lines_at(to, boxes, to_step, kBox);
    there.walk[0].count[1] = static_cast<uint32_t>(of_square);
    there.walk[0].step[1] = part_step;
    Area here = lines_at(from, boxes, from_step, from_part_step == kBox ? square : kBox);
    if (from_part_step != kBox) {
        here.walk[0].count[1] = static_cast<uint32_t>(of_square);
        here.walk[0].step[1] = from_part_step;
    }
    core.move(instr, Type::U8, there, here, boxes, boxes * square);
}

// Boxes of bytes one after the other, and which two of four elements along k theirs are: two bits for each,
// in a memory of its own that a quarter of the address in L0B stands for, as it has a quarter of the size.
void raw_load_sparse(Core &core, const uint64_t *v) {
    constexpr int64_t kChoices = kBox / 4;
    const uint64_t to = offset_in(core, Space::L0B, v[0]), index = to / 4,
                   from = offset_in(core, Space::L1, v[1] & 0xffffffffu) + v[2] * kBox,
                   chosen = offset_in(core, Space::L1, v[1] >> 32) + v[2] * kChoices;
    const int64_t boxes = int64_t(v[3]), bytes = boxes * kBox, more = boxes * kChoices;
    if (boxes <= 0) return;
    if (core.computes) {
        memcpy(core.local(Space::L0B, to, uint64_t(bytes)), core.local(Space::L1, from, uint64_t(bytes)),
               size_t(bytes));
        memcpy(core.local(Space::ScaleRight, index, uint64_t(more)),
               core.local(Space::L1, chosen, uint64_t(more)), size_t(more));
    }
    core.also(kReads, Space::L1, Type::U8, lines_at(chosen, 1, 0, more));
    core.also(kWrites, Space::ScaleRight, Type::U8, lines_at(index, 1, 0, more));
    core.move(Instr::LOAD_L1_TO_L0B_2D, Type::U8, lines_at(to, 1, 0, bytes), lines_at(from, 1, 0, bytes),
              boxes, bytes);
}

void raw_multiply(Core &core, const uint64_t *v) {
    const int64_t m = int64_t(v[3]), k = int64_t(v[4]), n = int64_t(v[5]);
    const Type type = static_cast<Type>(v[6] & 0xff);
    const bool from_zero = v[7] & kFromZero, from_bias = !from_zero && v[7] & kFromBias;
    const bool adds = !from_zero && !from_bias;
    const uint64_t acc = offset_in(core, Space::L0C, from_bias ? v[0] & 0xffffffffu : v[0]),
                   left = offset_in(core, Space::L0A, v[1]), right = offset_in(core, Space::L0B, v[2]);
    if (m <= 0 || k <= 0 || n <= 0) return;
    core.use_unit_flag(v[7] & kUnitFlagBits);
    const Type right_type = v[6] >> 8 ? static_cast<Type>(v[6] >> 8) : type; // 0: floats, or not said
    const TileRef b = boxed(Space::L0B, right_type, right, k, n, true, 2, 512);
    const Type sum = type == Type::I8 || type == Type::I4 ? Type::I32 : Type::F32;
    const TileRef c = accumulator(sum, acc, m, n);
    const TileRef bias = bias_row(core, sum, from_bias ? v[0] >> 32 : 0, n);
    if (type == Type::I4) {
        if (m == 1) core.unsupported("mad_s4 of one row without boxes (GEMV)");
        if (k % 2) core.unsupported("mad_s4 with an odd number of elements along k");
        multiply_half_bytes(core, c,
                            adds        ? &c
                            : from_bias ? &bias
                                        : nullptr,
                            from_bias,
                            boxed(Space::L0A, Type::I8, left, m, k / 2, !core.register_based(), 1, 512),
                            boxed(Space::L0B, Type::I8, right, k / 2, n, true, 2, 512));
        return core.use_unit_flag(0);
    }
    if (v[7] & kSparse) {
        if (m == 1) core.unsupported("mad_sp of one row (GEMV)");
        if (k % 4) core.unsupported("mad_sp with %lld elements along k, which are no fours", (long long)k);
        multiply_sparse(core, c,
                        adds        ? &c
                        : from_bias ? &bias
                                    : nullptr,
                        from_bias, boxed(Space::L0A, type, left, m, k, true, 1, 512),
                        boxed(Space::L0B, type, right, k / 2, n, true, 2, 512), right / 4);
        return core.use_unit_flag(0);
    }
    if (v[7] & kScaled) {
        // how a row and its factors lie without boxes is not published
        if (m == 1 && !(v[7] & kNoRow)) core.unsupported("mad_mx of one row without boxes (GEMV)");
        multiply_scaled(core, c, left, right, m, k, n, type, static_cast<Type>(v[6] >> 8),
                        from_bias ? &bias : nullptr, adds);
        return core.use_unit_flag(0);
    }
    if (m == 1 && !(v[7] & kNoRow)) {
        multiply_row(core, c, left, b, k, n, adds ? &c : from_bias ? &bias : nullptr);
        return core.use_unit_flag(0);
    }
    TileRef a = boxed(Space::L0A, type, left, m, k, !core.register_based(), 1, 512);
    if (v[7] & kWholeSteps) a.cols = static_cast<int32_t>(round_up(k, 16)); // floats: K in steps of 16, not 8
    if (!has_products(core, a.type, b.type, c.type))
        core.unsupported("mad of %s by %s", type_name(a.type), type_name(b.type));
    multiply_tiles(core, c,
                   adds        ? &c
                   : from_bias ? &bias
                               : nullptr,
                   from_bias, compact_if_larger(core, a), b);
    core.use_unit_flag(0);
}

namespace {

// A window that goes over an image in L1 (C1, H, W, C0), and the matrix that comes of it: a row for each
// place of the window, a column for each of its elements (C1, window rows, window columns, C0).
struct ImageWindow {
    int64_t width, height, left, right, top, bottom; // of the image, and of what is around it
    int64_t stride_w, stride_h, filter_w, filter_h, dilation_w, dilation_h, c0;

    int64_t places_across() const {
        return (width + left + right - dilation_w * (filter_w - 1) - 1) / stride_w + 1;
    }
    // Where an element of the matrix lies in the image, in elements; -1: around it.
    int64_t at(int64_t row, int64_t col) const {
        const int64_t across = places_across();
        const int64_t channel = col % c0, inside = col / c0, kw = inside % filter_w,
                      kh = inside / filter_w % filter_h, c1 = inside / (filter_w * filter_h);
        const int64_t x = row % across * stride_w - left + kw * dilation_w,
                      y = row / across * stride_h - top + kh * dilation_h;
        if (x < 0 || y < 0 || x >= width || y >= height) return -1;
        return ((c1 * height + y) * width + x) * c0 + channel;
    }
};

} // namespace

void raw_load_image(Core &core, const uint64_t *v) {
    const Space space = static_cast<Space>(v[0]);
    const bool to_left = space == Space::L0A;
    const uint64_t to = offset_in(core, space, v[1]), from = offset_in(core, Space::L1, v[2]);
    const uint64_t steps = v[3], window = v[4];
    auto field = [](uint64_t word, int first, int bits) {
        return int64_t(word >> first & ((1ull << bits) - 1));
    };
    const int64_t size = int64_t(v[5]), c0 = kBlock / size;
    const int64_t k_step = field(steps, 0, 16), m_step = field(steps, 16, 16), k_first = field(steps, 32, 16),
                  m_first = field(steps, 48, 16);
    if (k_step <= 0 || m_step <= 0) return;
    const bool turned = field(window, 46, 1);
    const uint64_t map = core.spr_of(field(window, 47, 1) ? Spr::FMATRIX_B : Spr::FMATRIX);
    const uint64_t repeats = core.spr_of(Spr::L3D_RPT);
    if (field(repeats, 16, 8) > 1) core.unsupported("a load of an image with a repeat count (set_l3d_rpt)");
    ImageWindow image{};
    image.width = field(map, 0, 16);
    image.height = field(map, 16, 16);
    image.left = field(map, 32, 8);
    image.right = field(map, 40, 8);
    image.top = field(map, 48, 8);
    image.bottom = field(map, 56, 8);
    image.stride_w = std::max<int64_t>(1, field(window, 0, 6));
    image.stride_h = std::max<int64_t>(1, field(window, 6, 6));
    image.filter_w = std::max<int64_t>(1, field(window, 12, 8) + 256 * field(window, 44, 1));
    image.filter_h = std::max<int64_t>(1, field(window, 20, 8) + 256 * field(window, 45, 1));
    image.dilation_w = std::max<int64_t>(1, field(window, 28, 8));
    image.dilation_h = std::max<int64_t>(1, field(window, 36, 8));
    image.c0 = c0;
    if (image.width <= 0 || image.height <= 0)
        core.kernel_error("a load of an image of %lld x %lld pixels: set_fmatrix comes first",
                          (long long)image.height, (long long)image.width);
    // rows and columns of what lies in L0 afterwards
    const int64_t rows = to_left && turned ? k_step : m_step, cols = to_left && turned ? m_step : k_step;
    const Type type = size == 1 ? Type::U8 : size == 2 ? Type::U16 : Type::U32;
    const TileRef tile = to_left ? boxed(space, type, to, rows, cols, !core.register_based(), 1, 512)
                                 : boxed(space, type, to, rows, cols, true, 2, 512);
    const TileOrder order(tile);
    const int64_t channels = round_up(field(window, 48, 16), c0);
    const uint64_t image_bytes = uint64_t(image.width * image.height * channels * size);
    if (core.computes) {
        const uint64_t padding = core.spr_of(Spr::PADDING);
        uint8_t *into = core.local(space, to, uint64_t(tile.rows) * uint64_t(tile.cols) * uint64_t(size));
        const uint8_t *pixels = core.local(Space::L1, from, 1);
        const uint64_t room = core.space_size(Space::L1) - from;
        auto copy = [&](auto element) {
            using T = decltype(element);
            for (int64_t m = 0; m < m_step; ++m)
                // the channels of one pixel lie side by side
                for (int64_t k = 0, count; k < k_step; k += count) {
                    count = std::min(c0 - (k_first + k) % c0, k_step - k);
                    const int64_t source = image.at(m_first + m, k_first + k);
                    if (source >= 0 && uint64_t((source + count) * size) > room)
                        core.kernel_error(
                            "a load of an image reads up to 0x%llx of L1, which has 0x%llx bytes",
                            (unsigned long long)(from + uint64_t((source + count) * size)),
                            (unsigned long long)core.space_size(Space::L1));
                    for (int64_t i = 0; i < count; ++i) {
                        const int64_t place = to_left && turned ? order.row(k + i) + order.col(m)
                                                                : order.row(m) + order.col(k + i);
                        element = static_cast<T>(padding);
                        if (source >= 0) memcpy(&element, pixels + (source + i) * size, sizeof element);
                        memcpy(into + place * size, &element, sizeof element);
                    }
                }
        };
        if (size == 1) copy(uint8_t{});
        if (size == 2) copy(uint16_t{});
        if (size == 4) copy(uint32_t{});
        core.local(Space::L1, from, std::min(image_bytes, room)); // what the journal knows of
    }
    const int64_t bytes = int64_t(tile.rows) * tile.cols * size;
    const bool plain =
        image.filter_w == 1 && image.filter_h == 1 && image.height == 1 && !image.left && image.stride_w == 1;
    // a window of one pixel copies columns of boxes; of others it is said where the image lies
    const int64_t last = std::min<int64_t>(m_first + m_step, image.width * image.height);
    const Area source = plain ? lines_at(from + uint64_t((k_first / c0 * image.width + m_first) * kBlock),
                                         (k_step + c0 - 1) / c0, image.width * kBlock,
                                         std::max<int64_t>(0, last - m_first) * kBlock)
                              : lines_at(from, 1, 0, int64_t(image_bytes));
    core.move(to_left ? Instr::LOAD_L1_TO_L0A_3Dv2 : Instr::LOAD_L1_TO_L0B_3Dv2, type,
              lines_at(to, 1, 0, bytes), source, 1, bytes);
}

// The bias table and the fixpipe's buffer.
void raw_load_table(Core &core, const uint64_t *v) {
    const Space space = static_cast<Space>(v[0]);
    const uint64_t to = offset_in(core, space, v[1]), from = offset_in(core, Space::L1, v[2]);
    const uint64_t pieces = v[3], bytes = v[4], to_step = v[5], from_step = v[6];
    const bool widens = v[7] != 0; // to floats
    const uint64_t written = widens ? 2 * bytes : bytes;
    if (!pieces || !bytes) return;
    if (core.computes)
        for (uint64_t i = 0; i < pieces; ++i) {
            const uint8_t *source = core.local(Space::L1, from + i * from_step, bytes);
            uint8_t *place = core.local(space, to + i * to_step, written);
            if (!widens) {
                memcpy(place, source, size_t(bytes));
                continue;
            }
            for (uint64_t at = 0; at < bytes; at += 2) {
                uint16_t bits;
                memcpy(&bits, source + at, 2);
                const float wide = v[7] == 2 ? bf16_to_float(bits) : half_to_float(bits);
                memcpy(place + 2 * at, &wide, 4);
            }
        }
    const int64_t count = int64_t(pieces);
    core.move(space == Space::Bias ? Instr::MOV_L1_TO_BT : Instr::MOV_L1_TO_FB, Type::U8,
              lines_at(to, count, int64_t(to_step), int64_t(written)),
              lines_at(from, count, int64_t(from_step), int64_t(bytes)), count, count * int64_t(bytes));
}

} // namespace insight_trace::engine
