// Comparisons into packed masks, and choices by such masks.
//
// A mask has one bit per element: element j of a row is bit j % 8 of byte j / 8 of the mask's row.
#include <algorithm>
#include <cstring>

#include "isa/vector_unit.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

// As pto::CmpMode.
enum class Comparing : uint8_t { EQ, NE, LT, LE, GT, GE };

template <class T> bool holds(T a, T b, Comparing mode) {
    switch (mode) {
    case Comparing::LT:
        return a < b;
    case Comparing::LE:
        return a <= b;
    case Comparing::GT:
        return a > b;
    case Comparing::GE:
        return a >= b;
    default: // NE is EQ with every bit turned afterwards
        return a == b;
    }
}

struct Comparison {
    const TileRef &dst, &src;
    Comparing mode;
};

// What a tile is compared with: another one, of which elements past the end of UB count as 0, or a number.
template <class T> struct Second {
    const TileRef *tile;
    Wide<T> number = Wide<T>(0);

    Wide<T> at(Core &core, int row, int column) const {
        if (!tile) return number;
        const uint64_t index = uint64_t(row) * uint64_t(tile->cols) + uint64_t(column);
        const uint64_t address = tile->address + index * sizeof(T);
        if (address + sizeof(T) > core.space_size(Space::UB)) return Wide<T>(0);
        return Wide<T>(*core.local_as<T>(Space::UB, address, 1));
    }
};

Comparing compare_mode(Core &core, const char *op, const Operand &operand, Type type) {
    int64_t mode = operand.option;
    if (operand.kind != Operand::Option || mode < 0 || mode > static_cast<int64_t>(Comparing::GE))
        core.kernel_error("%s: there is no such comparison", op);
    if (type == Type::I32 && mode > static_cast<int64_t>(Comparing::NE) && !core.register_based())
        core.unsupported("%s of I32 tiles for more than equality", op);
    return static_cast<Comparing>(mode);
}

// 16-bit integers are compared as the halves that they would be.
Type compared_as(Type type) { return type == Type::I16 || type == Type::U16 ? Type::F16 : type; }

// The instruction's mode; unequal is equal with every bit turned afterwards.
uint8_t instruction_mode(Comparing mode) {
    constexpr Compare modes[] = {Compare::EQ, Compare::EQ, Compare::LT,
                                 Compare::LE, Compare::GT, Compare::GE};
    return static_cast<uint8_t>(modes[static_cast<int>(mode)]);
}

void turn_bits(Core &core, const Comparison &job) {
    int64_t bytes = int64_t(job.src.valid_rows) * job.dst.cols * type_size(job.dst.type);
    core.barrier(PipeId::V);
    core.vector_count(executed(Instr::VNOT), Type::U16, bytes / 2, VectorOperand(job.dst.address),
                      VectorOperand(job.dst.address));
}

// With functions every type is compared as it is, and elements that are not valid leave zeros: 16 bytes of
// mask for 128 elements, 32 for 256 bytes. Of 64-bit numbers a row's first 64 are compared, into 32 bytes.
template <class T> void compare_valid(Core &core, const Comparison &job, const Second<T> &other) {
    const int unit = sizeof(T) == 1 || sizeof(T) == 8 ? 256 : 128;
    const int compared = sizeof(T) == 8 ? std::min(job.src.valid_cols, 64) : job.src.valid_cols;
    const int width = (compared + unit - 1) / unit * unit;
    for (int row = 0; row < job.src.valid_rows; ++row) {
        const T *x =
            core.local_as<T>(Space::UB, job.src.address + uint64_t(row) * uint64_t(job.src.cols) * sizeof(T),
                             uint64_t(job.src.valid_cols));
        uint8_t *bits = core.local(Space::UB,
                                   job.dst.address + uint64_t(row) * uint64_t(job.dst.cols) *
                                                         uint64_t(type_size(job.dst.type)),
                                   uint64_t(width / 8));
        for (int i = 0; i < width; i += 8) {
            uint8_t byte = 0;
            for (int bit = 0; bit < 8 && i + bit < compared; ++bit) {
                const bool equal =
                    holds<Wide<T>>(Wide<T>(x[i + bit]), other.at(core, row, i + bit), job.mode);
                byte |= static_cast<uint8_t>((job.mode == Comparing::NE ? !equal : equal) << bit);
            }
            bits[i / 8] = byte;
        }
    }
}

// Row by row, at most 240 repeats at a time. `outer_pieces`: all rows of one piece before the next piece.
void issue_compare(Core &core, const Comparison &job, const TileRef *other, bool outer_pieces,
                   uint64_t number = 0) {
    constexpr int kMost = 240;
    int size = type_size(job.src.type), per_repeat = 256 / size;
    int repeats = (job.src.valid_cols + per_repeat - 1) / per_repeat;
    const Operation instr =
        lowered(core, other ? Instr::VCMPV : Instr::VCMPVS, number, instruction_mode(job.mode));
    Type type = compared_as(job.src.type);
    auto piece = [&](int row, int done) {
        int repeat = std::min(kMost, repeats - done);
        uint32_t offset = static_cast<uint32_t>(done * 256);
        auto at = [&](const TileRef &tile) {
            return VectorOperand(tile.address + static_cast<uint32_t>(row * tile.cols * size) + offset);
        };
        VectorOperand dst(job.dst.address +
                          static_cast<uint32_t>(row * job.dst.cols * type_size(job.dst.type)) +
                          offset / static_cast<uint32_t>(8 * size));
        core.vector(instr, type, repeat, int64_t(repeat) * per_repeat, dst, at(job.src),
                    other ? at(*other) : VectorOperand());
    };
    core.set_register(PipeId::V, 0);
    mask_all(core);
    if (outer_pieces)
        for (int done = 0; done < repeats; done += kMost)
            for (int row = 0; row < job.src.valid_rows; ++row) piece(row, done);
    else
        for (int row = 0; row < job.src.valid_rows; ++row)
            for (int done = 0; done < repeats; done += kMost) piece(row, done);
}

void require_flat(Core &core, const char *op, const TileRef &tile) {
    lines_of(core, op, tile);
    if (!tile.row_major) core.unsupported("%s of column-major tiles", op);
}

// Bit of element (row, column).
bool mask_bit(const uint8_t *mask, int64_t pitch, int row, int column) {
    return mask[row * pitch + column / 8] >> (column % 8) & 1;
}

int64_t mask_pitch(const TileRef &mask) { return int64_t(mask.cols) * type_size(mask.type); }

const uint8_t *mask_bytes(Core &core, const TileRef &mask, const Lines &to) {
    if (to.lines <= 0 || to.width <= 0) return nullptr;
    uint64_t bytes = uint64_t(to.lines - 1) * uint64_t(mask_pitch(mask)) + uint64_t(to.width + 7) / 8;
    return core.local(Space::UB, mask.address, bytes);
}

// CMPMASK from 16 bytes of UB.
void load_mask_register(Core &core, uint32_t address) {
    if (core.computes && !core.register_based())
        memcpy(&core.spr_of(Spr::CMPMASK_LOW), core.local(Space::UB, address, 16), 16);
    core.set_register(PipeId::V, address);
}

} // namespace

TILE_OP_BODY(TCMP) {
    const char *op = "TCMP";
    const TileRef &dst = tile_operand(core, op, operands, 0), &a = tile_operand(core, op, operands, 1),
                  &b = tile_operand(core, op, operands, 2);
    require_type(core, op, b, a.type);
    for (const TileRef *tile : {&dst, &a, &b}) require_flat(core, op, *tile);
    if (operands.count < 4) core.kernel_error("TCMP needs a comparison");
    Comparison job{dst, a, compare_mode(core, op, operands[3], a.type)};
    if (core.register_based()) {
        with_type_of(core, op, a.type, Numbers(), [&](auto tag) {
            using T = decltype(tag);
            if (!core.computes) return;
            View<T>(core, b, a.valid_rows, a.valid_cols); // all of it lies in UB
            compare_valid<T>(core, job, {&b});
        });
        return issue_compare(core, job, &b, false);
    }
    allow_types(core, op, a.type, {Type::F32, Type::F16, Type::I32});
    issue_compare(core, job, &b, false);
    if (job.mode == Comparing::NE) turn_bits(core, job);
}

// The number may be the first element of a tile: the scalar unit reads it.
TILE_OP_BODY(TCMPS) {
    const char *op = "TCMPS";
    const TileRef &dst = tile_operand(core, op, operands, 0), &src = tile_operand(core, op, operands, 1);
    for (const TileRef *tile : {&dst, &src}) require_flat(core, op, *tile);
    if (operands.count < 4) core.kernel_error("TCMPS needs a comparison");
    Comparison job{dst, src, compare_mode(core, op, operands[3], src.type)};
    bool from_tile = operands[2].kind == Operand::Tile;
    if (from_tile) {
        for (PipeId pipe : {PipeId::V, PipeId::MTE1, PipeId::MTE2}) handshake(core, pipe, PipeId::S);
        core.scalar_access(Instr::LD_XD_XN_IMM, Space::UB, operands[2].tile.address, 0,
                           core.parameters.scalar_load_ub);
    }
    if (core.register_based()) {
        with_type_of(core, op, src.type, Numbers(), [&](auto tag) {
            using T = decltype(tag);
            if (!core.computes) return;
            const Wide<T> value =
                Wide<T>(from_tile ? *core.local_as<T>(Space::UB, operands[2].tile.address, 1)
                                  : scalar_as<T>(operands[2]));
            compare_valid<T>(core, job, {nullptr, value});
        });
        return issue_compare(core, job, nullptr, true);
    }
    allow_types(core, op, compared_as(src.type), {Type::F32, Type::F16, Type::I32});
    uint64_t number = 0;
    if (from_tile) {
        if (core.computes)
            memcpy(&number, core.local(Space::UB, operands[2].tile.address, uint64_t(type_size(src.type))),
                   size_t(type_size(src.type)));
    } else { // of 16-bit integers their bits
        number = scalar_bits(operands[2], compared_as(src.type) == src.type ? src.type : Type::I16);
    }
    issue_compare(core, job, nullptr, true, number);
    if (job.mode == Comparing::NE) turn_bits(core, job);
}

TILE_OP_BODY(TSEL) {
    const char *op = "TSEL";
    const TileRef &dst = tile_operand(core, op, operands, 0), &mask = tile_operand(core, op, operands, 1),
                  &a = tile_operand(core, op, operands, 2), &b = tile_operand(core, op, operands, 3),
                  &tmp = tile_operand(core, op, operands, 4);
    require_type(core, op, a, dst.type);
    require_type(core, op, b, dst.type);
    for (const TileRef *tile : {&dst, &mask, &a, &b}) require_flat(core, op, *tile);
    Lines to = lines_of(core, op, dst), x = lines_of(core, op, a, to), y = lines_of(core, op, b, to);
    if (to.size != 2 && to.size != 4 && !core.register_based())
        core.unsupported("TSEL of %s tiles", type_name(dst.type));
    const Type plain = to.size == 8   ? Type::U64
                       : to.size == 4 ? Type::U32
                       : to.size == 2 ? Type::U16
                                      : Type::U8;
    if (core.computes && core.register_based())
        with_type_of(core, op, plain, Types<uint64_t, uint32_t, uint16_t, uint8_t>(), [&](auto tag) {
            using T = decltype(tag);
            const uint8_t *bits = mask_bytes(core, mask, to);
            T *into = elements_of<T>(core, to);
            const T *first = elements_of<T>(core, x), *second = elements_of<T>(core, y);
            for (int row = 0; row < to.lines; ++row, into += to.pitch, first += x.pitch, second += y.pitch)
                for (int i = 0; i < to.width; ++i)
                    into[i] = mask_bit(bits, mask_pitch(mask), row, i) ? first[i] : second[i];
        });
    int words = to.size == 2 ? 4 : 2; // of the mask register
    Type type = to.size == 4 ? Type::F32 : Type::F16;
    core.set_register(PipeId::V, 1);
    for (int row = 0; row < to.lines; ++row) {
        auto at = [&](const Lines &tile) {
            return VectorOperand(tile.address + static_cast<uint32_t>(row * tile.pitch * tile.size));
        };
        core.set_register(PipeId::V, static_cast<uint64_t>(words));
        const uint64_t bits_at = mask.address + uint64_t(row) * uint64_t(mask_pitch(mask));
        core.vector_counted(lowered(core, Instr::MOVEV, bits_at), Type::U32, words,
                            VectorOperand(tmp.address));
        core.barrier(PipeId::V);
        load_mask_register(core, tmp.address);
        core.barrier(PipeId::V);
        core.set_register(PipeId::V, static_cast<uint64_t>(to.width));
        core.also(
            kReads, Space::UB, Type::U8,
            lines_at(mask.address + uint64_t(row) * uint64_t(mask_pitch(mask)), 1, 0, (to.width + 7) / 8));
        core.vector_counted(lowered(core, Instr::VSEL, 0, 2), type, to.width, at(to), at(x), at(y));
    }
    count_off(core);
}

TILE_OP_BODY(TSELS) {
    const char *op = "TSELS";
    const TileRef &dst = tile_operand(core, op, operands, 0), &mask = tile_operand(core, op, operands, 1),
                  &src = tile_operand(core, op, operands, 2), &tmp = tile_operand(core, op, operands, 3);
    require_type(core, op, src, dst.type);
    for (const TileRef *tile : {&dst, &mask, &src}) require_flat(core, op, *tile);
    if (operands.count < 5) core.kernel_error("TSELS needs a number");
    Lines to = lines_of(core, op, dst), from = lines_of(core, op, src, to);
    if (to.size != 2 && to.size != 4 && !core.register_based())
        core.unsupported("TSELS of %s tiles", type_name(dst.type));
    with_type_of(core, op, dst.type, Numbers(), [&](auto tag) {
        using T = decltype(tag);
        if (!core.computes) return;
        T value = scalar_as<T>(operands[4]);
        if (!core.register_based()) { // the scalar unit's store
            *core.local_as<T>(Space::UB, tmp.address, 1) = value;
            return;
        }
        const uint8_t *bits = mask_bytes(core, mask, to);
        T *into = elements_of<T>(core, to);
        const T *x = elements_of<T>(core, from);
        for (int row = 0; row < to.lines; ++row, into += to.pitch, x += from.pitch)
            for (int i = 0; i < to.width; ++i)
                into[i] = mask_bit(bits, mask_pitch(mask), row, i) ? x[i] : value;
    });
    core.scalar_access(Instr::ST_XD_XN_IMM, Space::UB, tmp.address, to.size, core.parameters.scalar_store_ub);
    count_elements(core, to.width);
    handshake(core, PipeId::S, PipeId::V);
    load_mask_register(core, tmp.address);
    core.barrier(PipeId::V);
    for (int row = 0; row < to.lines; ++row)
        core.vector_counted(lowered(core, Instr::VSEL, 0, 1), to.size == 4 ? Type::F32 : Type::F16, to.width,
                            VectorOperand(to.address + static_cast<uint32_t>(row * to.pitch * to.size)),
                            VectorOperand(from.address + static_cast<uint32_t>(row * from.pitch * from.size)),
                            VectorOperand(mask.address + static_cast<uint32_t>(row * mask_pitch(mask)))
                                .of(Type::U8)
                                .spanning((to.width + 7) / 8));
    count_off(core);
}

} // namespace insight_trace::engine
