// The way out of the accumulator as one instruction: conversion, scales, relu, and the layout of what is
// written.
#include <algorithm>
#include <cstring>
#include <vector>

#include "insight_trace/quant_modes.hpp"
#include "isa/stores.hpp"
#include "cluster.hpp"
#include "elements.hpp"
#include "isa/fixpipe_values.hpp"
#include "raw_units.hpp"

namespace insight_trace::engine {

namespace {

constexpr int64_t kBlock = 32, kColumns = 16,
                  kMatrixUnit = 1024; // bytes; columns of a box; bytes between matrices

int64_t field(uint64_t word, int first, int bits) { return int64_t(word >> first & ((1ull << bits) - 1)); }

// The words of the instruction, taken apart.
struct WayOutWords {
    int64_t cols, rows, to_stride, from_stride, unit_flag, mode, relu;
    bool splits, to_rows, to_columns;
    WayOutWords(uint64_t first, uint64_t second)
        : cols(field(first, 4, 12)), rows(field(first, 16, 16)), to_stride(field(first, 32, 32)),
          from_stride(field(second, 0, 16)), unit_flag(field(second, 32, 2)), mode(field(second, 34, 5)),
          relu(field(second, 39, 3)), splits(field(second, 42, 1)), to_rows(field(second, 43, 1)),
          to_columns(field(second, 62, 1)) {}
};

// 16-bit floats of this chip are held at their largest number, and NaN becomes 0, whatever CTRL says.
void hold(Type type, void *values, int64_t count) {
    const uint16_t infinity = type == Type::F16 ? 0x7c00 : 0x7f80;
    auto *numbers = static_cast<uint16_t *>(values);
    for (int64_t i = 0; i < count; ++i) {
        const uint16_t magnitude = numbers[i] & 0x7fff, sign = numbers[i] & 0x8000;
        if (magnitude >= infinity) numbers[i] = magnitude > infinity ? 0 : uint16_t(sign | (infinity - 1));
    }
}

} // namespace

void raw_fixpipe(Core &core, const uint64_t *v) {
    const Space space = static_cast<Space>(v[0]);
    const WayOutWords words(v[3], v[4]);
    const Type type = static_cast<Type>(v[5]), from_type = static_cast<Type>(v[6]);
    const bool out = space == Space::GM;
    const uint64_t to = out ? v[1] : offset_in_cluster(core, space, v[1]),
                   from = offset_in(core, Space::L0C, v[2]);
    // the 950 has another register for them, and counts steps in other units
    const bool newer = core.register_based();
    const uint64_t matrices_word = core.spr_of(newer ? Spr::LOOP3_PARA : Spr::ND_PARA);
    const bool plain = words.to_rows || words.to_columns; // no boxes
    const int64_t matrices = plain ? field(matrices_word, 0, 16) : 1;
    if (words.rows <= 0 || words.cols <= 0 || matrices <= 0) return;
    if (words.relu > 1) core.unsupported("the fixpipe's relu of kind %lld", (long long)words.relu);
    if (from_type != Type::F32 && from_type != Type::I32)
        core.unsupported("the fixpipe out of an accumulator of %s", type_name(from_type));
    const int64_t size = type_size(type);

    const Scaling scaling = scaling_of(int(words.mode));
    const uint64_t one = core.spr_of(Spr::QUANT_PRE);
    std::vector<uint64_t> scales;
    const uint64_t table = uint64_t(field(core.spr_of(Spr::FPC), 8, 8)) * 128 %
                           std::max<uint64_t>(1, core.space_size(Space::Scaling));
    if (scaling == Scaling::Each) {
        const uint64_t bytes = uint64_t(words.cols) * 8;
        core.also(kReads, Space::Scaling, Type::U64, lines_at(table, 1, 0, int64_t(bytes)));
        if (core.computes) {
            scales.resize(size_t(words.cols));
            memcpy(scales.data(), core.local(Space::Scaling, table, bytes), size_t(bytes));
        }
    }
    const uint64_t *factors = scaling == Scaling::None  ? nullptr
                              : scaling == Scaling::One ? &one
                                                        : scales.data();

    // columns of a box of the result: as many as fill a block; 32-bit results keep 16 unless they are split
    const int64_t box = words.splits ? 8 : size == 4 ? kColumns : std::max(kColumns, kBlock / size);
    const int64_t to_matrix = field(matrices_word, 32, newer ? 32 : 16) * size,
                  from_matrix = field(matrices_word, 16, 16) * (newer ? kColumns * 4 : kMatrixUnit);
    const int64_t from_column = words.from_stride * kColumns * 4,
                  to_column = words.to_stride * (newer ? size : kBlock);
    const bool split_rows = v[7] & kSplitRows, split_cols = v[7] & kSplitColumns;
    auto source_of = [&](int64_t matrix, int64_t column) {
        return from + uint64_t(matrix * from_matrix + column * from_column);
    };
    const bool combines = out && stores_combine(core);
    const int64_t part_rows = split_rows ? (words.rows + 1) / 2 : words.rows,
                  part_cols = split_cols ? (words.cols + 1) / 2 : words.cols;
    if (core.computes) {
        std::vector<uint32_t> line(size_t(words.cols) + kColumns);
        std::vector<uint64_t> result(size_t(words.cols) + kColumns); // room for any type
        const auto *bytes = reinterpret_cast<const uint8_t *>(result.data());
        auto store = [&](uint64_t offset, const uint8_t *values, int64_t count, Core *owner) {
            if (!owner) return; // nothing runs there
            const uint64_t length = uint64_t(count * size);
            uint8_t *place = out ? core.global(to + offset, length, combines ? kReadsAndWrites : kWrites)
                                 : owner->local(space, to + offset, length);
            if (combines)
                combine_with(core, place, values, length);
            else
                memcpy(place, values, size_t(length));
        };
        for (int64_t matrix = 0; matrix < matrices; ++matrix)
            for (int64_t r = 0; r < words.rows; ++r) {
                for (int64_t c = 0; c < words.cols; c += kColumns) {
                    const int64_t count = std::min(kColumns, words.cols - c);
                    memcpy(line.data() + c,
                           core.local(Space::L0C,
                                      source_of(matrix, c / kColumns) + uint64_t(r * kColumns * 4),
                                      uint64_t(count) * 4),
                           size_t(count) * 4);
                }
                convert_values(from_type, line.data(), words.cols, type, words.relu != 0, factors,
                               scaling == Scaling::One ? 1 : words.cols, result.data());
                if (!core.register_based() && (type == Type::F16 || type == Type::BF16))
                    hold(type, result.data(), words.cols);
                // of two vector cores each has half of the rows, or of the columns
                const int64_t lane = split_rows ? r / part_rows : v[7] & kSecondCore ? 1 : 0;
                const int64_t row = split_rows ? r % part_rows : r;
                for (int64_t first = 0, half = 0; first < words.cols; first += part_cols, ++half) {
                    Core *owner = out ? &core : owner_of(core, space, split_cols ? half : lane);
                    const uint8_t *values = bytes + first * size;
                    const int64_t count = std::min(part_cols, words.cols - first);
                    if (words.to_rows)
                        store(uint64_t(matrix * to_matrix + row * words.to_stride * size), values, count,
                              owner);
                    else if (words.to_columns)
                        for (int64_t c = 0; c < count; ++c)
                            store(uint64_t(matrix * to_matrix + (c * words.to_stride + row) * size),
                                  values + c * size, 1, owner);
                    else
                        for (int64_t c = 0; c < count; c += box)
                            store(uint64_t(c / box * to_column + row * box * size), values + c * size,
                                  std::min(box, count - c), owner);
                }
            }
    }
    const int64_t rows = words.rows * matrices, columns = (words.cols + kColumns - 1) / kColumns;
    Area source = lines_at(from, columns, from_column, words.rows * kColumns * 4);
    source.walk[0].count[1] = static_cast<uint32_t>(matrices);
    source.walk[0].step[1] = from_matrix;
    Area there = words.to_rows ? lines_at(to, part_rows, words.to_stride * size, part_cols * size)
                 : words.to_columns
                     ? lines_at(to, part_cols, words.to_stride * size, part_rows * size)
                     : lines_at(to, (part_cols + box - 1) / box, to_column, part_rows * box * size);
    if (space == Space::UB) {
        if (split_rows || split_cols) core.also(kWrites, space, type, in_core(vector_core(1), there));
        there = in_core(vector_core(v[7] & kSecondCore ? 1 : 0), there);
    }
    if (plain) {
        there.walk[0].count[1] = static_cast<uint32_t>(matrices);
        there.walk[0].step[1] = to_matrix;
    }
    core.use_unit_flag(uint64_t(words.unit_flag));
    core.atomic_store = combines;
    core.fixpipe(out                  ? Instr::FIX_L0C_TO_OUT
                 : space == Space::UB ? Instr::FIX_L0C_TO_UB
                                      : Instr::FIX_L0C_TO_L1,
                 type, out ? there : Area(0), there, source, rows, words.cols, rows * words.cols * size,
                 words.to_rows, words.to_rows ? words.to_stride * size : 0);
    core.atomic_store = false;
    core.use_unit_flag(0);
}

} // namespace insight_trace::engine
