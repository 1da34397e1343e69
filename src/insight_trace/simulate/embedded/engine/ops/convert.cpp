// TCVT: between element types, with every rounding mode, saturating or not.
#include <algorithm>
#include <cstring>

#include "convert_narrow.hpp"
#include "elementwise.hpp"
#include "isa/vector_unit.hpp"
#include "rounding.hpp"

namespace insight_trace::engine {

namespace {

constexpr int kSaturationBit = 59; // of the control register; set: results wrap

bool is_float(Type type) {
    return type == Type::F32 || type == Type::F16 || type == Type::BF16 || type == Type::F8E4M3 ||
           type == Type::F8E5M2;
}

// Conversions that wrap unless told to saturate; all others always saturate.
bool narrows(Type from, Type to) {
    return (from == Type::F16 && (to == Type::U8 || to == Type::I8 || to == Type::I16)) ||
           (from == Type::F32 && to == Type::I16) || (from == Type::I64 && to == Type::I32) ||
           (from == Type::I32 && to == Type::I16);
}

struct Conversion {
    Type from, to;
    Round mode;
    bool saturate;
    bool through_i32; // clamped to 32 bits before it wraps
};

// Modes that the hardware lacks for a pair mean its usual one: to nearest for floats, toward zero for
// integers.
Round usual(Type from, Type to, Round mode) {
    bool has_odd = from == Type::F32 && to == Type::F16;
    if (mode != Round::None && (mode != Round::Odd || has_odd)) return mode;
    return is_float(to) ? Round::Rint : Round::Trunc;
}

template <class T> T integer(double rounded, const Conversion &job) {
    if (rounded != rounded) return 0;
    if (job.saturate) {
        if (rounded <= static_cast<double>(std::numeric_limits<T>::min()))
            return std::numeric_limits<T>::min();
        if (rounded >= static_cast<double>(std::numeric_limits<T>::max()))
            return std::numeric_limits<T>::max();
        return static_cast<T>(rounded);
    }
    constexpr double i32_low = -2147483648.0, i32_high = 2147483647.0, i64_end = 9223372036854775808.0;
    if (job.through_i32) rounded = std::max(i32_low, std::min(i32_high, rounded));
    if (rounded >= i64_end) return static_cast<T>(std::numeric_limits<int64_t>::max());
    if (rounded < -i64_end) return static_cast<T>(std::numeric_limits<int64_t>::min());
    return static_cast<T>(static_cast<int64_t>(rounded));
}

template <class T> void load(const uint8_t *from, int count, double *to) {
    const T *typed = reinterpret_cast<const T *>(from);
    for (int i = 0; i < count; ++i) {
        if constexpr (sizeof(T) == 8)
            to[i] = sticky_double(typed[i]);
        else if constexpr (is_real<T>)
            to[i] = double(float(typed[i]));
        else
            to[i] = double(typed[i]);
    }
}

template <class T> void store(const double *from, int count, uint8_t *to, const Conversion &job) {
    T *typed = reinterpret_cast<T *>(to);
    for (int i = 0; i < count; ++i) typed[i] = integer<T>(to_integral(from[i], job.mode), job);
}
template <class Code>
void store_code(const double *from, int count, uint8_t *to, const Conversion &job, const Format &format,
                bool saturate) {
    Code *typed = reinterpret_cast<Code *>(to);
    for (int i = 0; i < count; ++i) typed[i] = static_cast<Code>(encode(from[i], format, job.mode, saturate));
}

// Two elements a byte, the first in the low half.
void store_nibbles(const double *from, int count, uint8_t *to, Round mode) {
    for (int i = 0; i < count; ++i) {
        double rounded = to_integral(from[i], mode);
        int value = rounded != rounded ? 0 : static_cast<int>(std::max(-8.0, std::min(7.0, rounded)));
        int shift = i % 2 * 4;
        to[i / 2] = static_cast<uint8_t>((to[i / 2] & ~(15 << shift)) | (value & 15) << shift);
    }
}
void load_nibbles(const uint8_t *from, int count, double *to) {
    for (int i = 0; i < count; ++i) {
        int value = from[i / 2] >> (i % 2 * 4) & 15;
        to[i] = value < 8 ? value : value - 16;
    }
}

void load_line(Type type, const uint8_t *from, int count, double *to) {
    if (type == Type::I4) return load_nibbles(from, count, to);
    if (type == Type::F8E4M3 || type == Type::F8E5M2) {
        const Format &format = type == Type::F8E4M3 ? kF8E4M3 : kF8E5M2;
        for (int i = 0; i < count; ++i) to[i] = decode(from[i], format);
        return;
    }
    with_type(type, [&](auto tag) { load<decltype(tag)>(from, count, to); });
}

void store_line(const double *from, int count, uint8_t *to, const Conversion &job) {
    switch (job.to) {
    case Type::I4:
        return store_nibbles(from, count, to, job.mode);
    case Type::F32:
        if (job.from == Type::F32) // the same type: to a whole number
            for (int i = 0; i < count; ++i)
                reinterpret_cast<float *>(to)[i] = float(to_integral(from[i], job.mode));
        else
            store_code<uint32_t>(from, count, to, job, kF32, false);
        return;
    case Type::F16:
        return store_code<uint16_t>(from, count, to, job, kF16, false);
    case Type::BF16:
        return store_code<uint16_t>(from, count, to, job, kBF16, false);
    case Type::F8E4M3:
        return store_code<uint8_t>(from, count, to, job, kF8E4M3, job.saturate);
    case Type::F8E5M2:
        return store_code<uint8_t>(from, count, to, job, kF8E5M2, job.saturate);
    default:
        with_type(job.to, [&](auto tag) {
            using T = decltype(tag);
            if constexpr (std::is_integral_v<T>) store<T>(from, count, to, job);
        });
    }
}

template <class From, class To, class Body>
bool convert_fast(const uint8_t *from, int count, uint8_t *to, Body body) {
    const From *x = reinterpret_cast<const From *>(from);
    To *y = reinterpret_cast<To *>(to);
    for (int i = 0; i < count; ++i) y[i] = body(x[i]);
    return true;
}

// Pairs that kernels use all the time, without the way over double.
bool fast_line(const Conversion &job, const uint8_t *from, int count, uint8_t *to) {
    bool nearest = job.mode == Round::Rint;
    switch (job.from) {
    case Type::F32:
        if (job.to == Type::BF16 && nearest)
            return convert_fast<float, uint16_t>(from, count, to, [](float x) { return float_to_bf16(x); });
        if (job.to == Type::F16 && nearest)
            return convert_fast<float, uint16_t>(from, count, to, [](float x) { return float_to_half(x); });
        return false;
    case Type::BF16:
        if (job.to != Type::F32) return false;
        return convert_fast<uint16_t, float>(from, count, to, [](uint16_t x) { return bf16_to_float(x); });
    case Type::F16:
        if (job.to != Type::F32) return false;
        return convert_fast<uint16_t, float>(from, count, to, [](uint16_t x) { return half_to_float(x); });
    case Type::I32:
        if (job.to != Type::F32 || !nearest) return false;
        return convert_fast<int32_t, float>(from, count, to, [](int32_t x) { return float(x); });
    default:
        return false;
    }
}

// Integers stay integers, so that 64 of their bits count.
bool integer_line(const Conversion &job, const uint8_t *from, int count, uint8_t *to) {
    if (job.from == Type::I4 || job.to == Type::I4) return false;
    if (is_float(job.from) || is_float(job.to) || job.from == Type::U64 || job.to == Type::U64) return false;
    with_type(job.from, [&](auto from_tag) {
        using From = decltype(from_tag);
        if constexpr (std::is_integral_v<From>)
            with_type(job.to, [&](auto to_tag) {
                using To = decltype(to_tag);
                if constexpr (std::is_integral_v<To>)
                    convert_fast<From, To>(from, count, to, [&](From x) {
                        int64_t value = static_cast<int64_t>(x);
                        if (job.saturate)
                            value = std::clamp(value, static_cast<int64_t>(std::numeric_limits<To>::min()),
                                               sizeof(To) == 8
                                                   ? std::numeric_limits<int64_t>::max()
                                                   : static_cast<int64_t>(std::numeric_limits<To>::max()));
                        return static_cast<To>(value);
                    });
            });
    });
    return true;
}

void convert_elements(Core &core, const Conversion &job, const Lines &dst, const Lines &src) {
    uint8_t *to = core.local(Space::UB, dst.address, dst.extent() * uint64_t(dst.size));
    const uint8_t *from = core.local(Space::UB, src.address, src.extent() * uint64_t(src.size));
    constexpr int kPiece = 256;
    double piece[kPiece];
    uint8_t kept[kPiece * 8];
    for (int line = 0; line < dst.lines; ++line)
        for (int done = 0; done < dst.width; done += kPiece) {
            int count = std::min(kPiece, dst.width - done);
            auto bytes_to = [&](Type type, const Lines &tile) {
                int64_t inside = type == Type::I4 ? done / 2 : int64_t(done) * tile.size;
                return int64_t(line) * tile.pitch * tile.size + inside;
            };
            uint8_t *into = to + bytes_to(job.to, dst);
            const uint8_t *source = from + bytes_to(job.from, src);
            // dst may lie over src: what is read must be out before anything is written
            memcpy(kept, source, size_t(count) * size_t(src.size));
            if (!fast_line(job, kept, count, into) && !integer_line(job, kept, count, into)) {
                load_line(job.from, kept, count, piece);
                store_line(piece, count, into, job);
            }
            if (holds_numbers(core, job.to)) hold_numbers(job.to, into, count);
        }
}

// --- instructions

class Issuer {
  public:
    Issuer(Core &core, const Conversion &job, const Lines &dst, const Lines &src, const TileRef *tmp)
        : core_(core), job_(job), dst_(dst), src_(src), tmp_(tmp) {
        int widest = std::max(dst.size, src.size);
        per_repeat_ = 256 / widest;
        dst_stride_ = static_cast<uint16_t>(dst.size == widest ? 8 : 8 / src.size * dst.size);
        src_stride_ = static_cast<uint16_t>(src.size == widest ? 8 : 8 / dst.size * src.size);
        if (job.to == Type::I4) dst_stride_ = 2;
        if (job.from == Type::I4) src_stride_ = 2;
    }

    void run() {
        read_control();
        uint64_t before = core_.control;
        set_wrapping(!job_.saturate);
        int head = dst_.width / per_repeat_, tail = dst_.width % per_repeat_;
        for (int line = 0; line < dst_.lines; ++line)
            for (int done = 0; done < head; done += 255)
                call(line, done * per_repeat_, std::min(255, head - done), per_repeat_, dst_stride_,
                     src_stride_);
        if (tail && dst_.lines > 0) {
            mask_elements(core_, tail);
            for (int line = 0; line < dst_.lines; line += 255)
                call(line, head * per_repeat_, std::min(255, dst_.lines - line), tail,
                     static_cast<uint16_t>(dst_.blocks()), static_cast<uint16_t>(src_.blocks()));
            mask_all(core_);
        }
        set_wrapping(before >> kSaturationBit & 1);
    }

  private:
    void read_control() { core_.scalar(Instr::MOV_XD_SPR, core_.control, 1000); }
    void set_wrapping(bool wrapping) {
        read_control();
        uint64_t bit = 1ull << kSaturationBit;
        core_.control = wrapping ? core_.control | bit : core_.control & ~bit;
        core_.set_register(PipeId::S, core_.control);
    }
    void one(Instr instr, Type type, int repeat, int width, VectorOperand dst, VectorOperand src0,
             VectorOperand src1 = {}) {
        // functions convert in registers, and every pair of types
        const bool executes = !core_.register_based();
        const uint64_t low_byte = 0xff;
        const auto mode = static_cast<uint8_t>(instr == Instr::VCONV ? mode_of(dst, src0) : Round::None);
        core_.vector(executes ? executed(instr, low_byte, mode) : Operation(instr), type, repeat,
                     int64_t(repeat) * width, dst, src0, src1);
    }
    // The kernel's rounding applies to what it converts; steps on the way have their own.
    Round mode_of(const VectorOperand &dst, const VectorOperand &src) const {
        return src.element == job_.from && (dst.element == job_.to || is_float(job_.from)) ? job_.mode
                                                                                           : Round::Rint;
    }

    void call(int line, int column, int repeat, int width, uint16_t dst_stride, uint16_t src_stride) {
        auto address = [&](const Lines &tile, Type type) { // two of four bits are a byte
            const int64_t inside = type == Type::I4 ? column / 2 : int64_t(column) * tile.size;
            return tile.address + static_cast<uint32_t>(int64_t(line) * tile.pitch * tile.size + inside);
        };
        VectorOperand dst = VectorOperand(address(dst_, job_.to), dst_stride).of(job_.to),
                      src = VectorOperand(address(src_, job_.from), src_stride).of(job_.from);
        if (job_.from == Type::I32 && job_.to == Type::F16) { // dequantised with the scale 1
            core_.spr_of(Spr::DEQSCALE) = 0x3c00;
            core_.set_register(PipeId::V, 0x3c00);
            core_.barrier(PipeId::V);
        }
        if (tmp_ && narrows(job_.from, job_.to) && job_.to != Type::U8 && is_float(job_.from)) {
            read_control();
            if (!job_.saturate)
                return job_.from == Type::F32 ? through_tmp(repeat, width, dst, src)
                                              : chunks_through_tmp(repeat, width, dst, src);
        }
        one(Instr::VCONV, job_.to, repeat, width, dst, src);
    }

    void through_tmp(int repeat, int width, VectorOperand dst, VectorOperand src) {
        VectorOperand tmp = VectorOperand(tmp_->address, src.repeat_stride).of(Type::I32);
        set_wrapping(false);
        one(Instr::VCONV, Type::I32, repeat, width, tmp, src);
        core_.barrier(PipeId::V);
        set_wrapping(true);
        one(Instr::VCONV, job_.to, repeat, width, dst, tmp);
    }

    // 64 elements at a time, over 32-bit and, for bytes, 16-bit integers and back.
    void chunks_through_tmp(int repeat, int width, VectorOperand dst, VectorOperand src) {
        constexpr int kChunk = 64;
        VectorOperand low(tmp_->address), high(tmp_->address + 128);
        for (int row = 0; row < repeat; ++row)
            for (int done = 0; done < width; done += kChunk) {
                int count = std::min(kChunk, width - done);
                VectorOperand to(dst.address + uint32_t(row * dst.repeat_stride * 32 + done * dst_.size));
                VectorOperand from(src.address + uint32_t(row * src.repeat_stride * 32 + done * src_.size));
                to = to.of(job_.to);
                from = from.of(job_.from);
                auto step = [&](Instr instr, Type type, VectorOperand a, VectorOperand b,
                                VectorOperand c = {}) {
                    one(instr, type, 1, count, a, b, c);
                    core_.barrier(PipeId::V);
                };
                mask_elements(core_, count);
                set_wrapping(false);
                step(Instr::VCONV, Type::I32, low.of(Type::I32), from);
                set_wrapping(true);
                if (job_.to == Type::I16) {
                    step(Instr::VCONV, Type::I16, to, low.of(Type::I32));
                    continue;
                }
                step(Instr::VCONV, Type::I16, low.of(Type::I16), low.of(Type::I32));
                step(Instr::MOVEV, Type::I16, high, {});
                step(Instr::VAND, Type::I16, low, low, high);
                step(Instr::VCONV, Type::F16, high.of(Type::F16), low.of(Type::I16));
                step(Instr::VCONV, Type::I8, to, high.of(Type::F16));
            }
        mask_all(core_);
    }

    Core &core_;
    const Conversion &job_;
    const Lines &dst_, &src_;
    const TileRef *tmp_;
    int per_repeat_;
    uint16_t dst_stride_, src_stride_;
};

} // namespace

TILE_OP_BODY(TCVT) {
    const TileRef &dst = tile_operand(core, "TCVT", operands, 0),
                  &src = tile_operand(core, "TCVT", operands, 1);
    uint32_t next = 2;
    const TileRef *tmp = nullptr;
    if (next < operands.count && operands[next].kind == Operand::Tile) tmp = &operands[next++].tile;
    int64_t mode = next < operands.count ? operands[next++].option : 0;
    if (mode < 0 || mode > static_cast<int64_t>(Round::Odd))
        core.kernel_error("TCVT: there is no rounding mode %lld", (long long)mode);
    if (is_narrow(src.type) || is_narrow(dst.type))
        return convert_narrow(core, dst, src, static_cast<Round>(mode));
    Type four_bits = Type::I4;
    if ((src.type == four_bits && dst.type != Type::F16) || (dst.type == four_bits && src.type != Type::F16))
        core.unsupported("TCVT from %s to %s", type_name(src.type), type_name(dst.type));
    if (!core.register_based() && !has_conversion(src.type, dst.type))
        core.unsupported("TCVT from %s to %s: the vector unit has none", type_name(src.type),
                         type_name(dst.type));
    bool narrowing = narrows(src.type, dst.type);
    bool saturate = next < operands.count ? operands[next].option == 0 : !narrowing;
    if (!tmp && !narrowing) saturate = true;
    Conversion job{src.type, dst.type, usual(src.type, dst.type, static_cast<Round>(mode)), saturate,
                   tmp != nullptr};
    Lines to = lines_of(core, "TCVT", dst), from = lines_of(core, "TCVT", src, to);
    if (core.computes && core.register_based()) convert_elements(core, job, to, from);
    Issuer(core, job, to, from, tmp).run();
}

} // namespace insight_trace::engine
