// TCVT: between element types, with every rounding mode, saturating or not.
#include <algorithm>

#include "isa/function_conversions.hpp"
#include "nibbles.hpp"
#include "steps.hpp"

namespace insight_trace::engine {

namespace {

constexpr int kSaturationBit = 59; // of the control register; set: results wrap

// Formats that only the 950 converts.
bool is_narrow(Type type) { return is_nibble(type) || type == Type::HiF8 || type == Type::F8E8M0; }

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
        const uint64_t low_byte = 0xff;
        const auto mode = static_cast<uint8_t>(instr == Instr::VCONV ? mode_of(dst, src0) : Round::None);
        core_.vector(executed(instr, low_byte, mode), type, repeat, int64_t(repeat) * width, dst, src0, src1);
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

namespace {

// What both families read of the operands.
struct Asked {
    const TileRef &dst, &src;
    const TileRef *tmp = nullptr;
    Conversion job;

    Asked(Core &core, const Operands &operands)
        : dst(tile_operand(core, "TCVT", operands, 0)), src(tile_operand(core, "TCVT", operands, 1)) {
        uint32_t next = 2;
        if (next < operands.count && operands[next].kind == Operand::Tile) tmp = &operands[next++].tile;
        const int64_t mode = next < operands.count ? operands[next++].option : 0;
        if (mode < 0 || mode > static_cast<int64_t>(Round::Odd))
            core.kernel_error("TCVT: there is no rounding mode %lld", (long long)mode);
        const bool narrowing = narrows(src.type, dst.type);
        bool saturate = next < operands.count ? operands[next].option == 0 : !narrowing;
        if (!tmp && !narrowing) saturate = true;
        const auto asked = static_cast<Round>(mode);
        job = {src.type, dst.type, is_narrow(dst.type) ? asked : usual(src.type, dst.type, asked), saturate,
               tmp != nullptr};
    }
};

void refuse_other_nibbles(Core &core, Type from, Type to) {
    if ((from == Type::I4 && to != Type::F16) || (to == Type::I4 && from != Type::F16))
        core.unsupported("TCVT from %s to %s", type_name(from), type_name(to));
}

} // namespace

TILE_OP_BODY(TCVT) {
    const Asked asked(core, operands);
    const TileRef &dst = asked.dst, &src = asked.src;
    if (is_narrow(src.type) || is_narrow(dst.type))
        core.unsupported("TCVT from %s to %s on this chip", type_name(src.type), type_name(dst.type));
    refuse_other_nibbles(core, src.type, dst.type);
    if (!has_conversion(src.type, dst.type))
        core.unsupported("TCVT from %s to %s: the vector unit has none", type_name(src.type),
                         type_name(dst.type));
    Lines to = lines_of(core, "TCVT", dst), from = lines_of(core, "TCVT", src, to);
    Issuer(core, asked.job, to, from, asked.tmp).run();
}

namespace {

bool converts_narrow(Type from, Type to) {
    if (to == Type::HiF8) return from == Type::F32 || from == Type::F16;
    if (from == Type::HiF8) return to == Type::F32;
    return (is_nibble(to) && from == Type::BF16) || (is_nibble(from) && to == Type::BF16);
}

void check_narrow(Core &core, const TileRef &dst, const TileRef &src) {
    if (!converts_narrow(src.type, dst.type))
        core.unsupported("TCVT from %s to %s on this chip", type_name(src.type), type_name(dst.type));
    for (const TileRef *tile : {&dst, &src}) {
        if (tile->space != Space::UB || tile->inner || !tile->row_major)
            core.unsupported("TCVT of %s tiles that are not row-major vector tiles", type_name(tile->type));
        if (is_nibble(tile->type) && tile->cols % 2)
            core.unsupported("TCVT of tiles of 4-bit floats of odd width");
    }
    if (dst.valid_rows > src.rows || dst.valid_cols > src.cols)
        core.kernel_error("TCVT: the destination has %d x %d valid elements, a source tile only %d x %d",
                          dst.valid_rows, dst.valid_cols, src.rows, src.cols);
}

} // namespace

// With registers: every pair of types, line by line.
FUNCTION_OP_BODY(TCVT) {
    const Asked asked(core, operands);
    const TileRef &dst = asked.dst, &src = asked.src;
    const Conversion &job = asked.job;
    const bool narrow = is_narrow(src.type) || is_narrow(dst.type), pairs = is_nibble(dst.type);
    Lines to{}, from{};
    if (narrow) {
        check_narrow(core, dst, src);
        auto lines = [&](const TileRef &tile) { // in bytes: two of four bits are one
            const int size = is_nibble(tile.type) ? 1 : type_size(tile.type);
            const int pitch = is_nibble(tile.type) ? tile.cols / 2 : tile.cols;
            return Lines{tile.address, dst.valid_rows, dst.valid_cols, tile.rows, pitch, true, false, size};
        };
        to = lines(dst);
        from = lines(src);
        to.width =
            pairs ? dst.valid_cols / 2 * 2 : dst.valid_cols; // of a last pair with one nothing is written
    } else {
        refuse_other_nibbles(core, src.type, dst.type);
        to = lines_of(core, "TCVT", dst);
        from = lines_of(core, "TCVT", src, to);
        const uint64_t bit = 1ull << kSaturationBit;
        for (bool wraps : {!job.saturate, bool(core.control >> kSaturationBit & 1)})
            core.set_register(PipeId::S, wraps ? core.control | bit : core.control & ~bit);
    }
    const auto mode = static_cast<uint8_t>(static_cast<int>(job.mode) | (job.saturate ? 0 : kWraps) |
                                           (job.through_i32 ? kThroughInt32 : 0));
    auto at = [](const Lines &tile, int line) {
        return VectorOperand(tile.address + static_cast<uint32_t>(int64_t(line) * tile.pitch * tile.size));
    };
    for (int line = 0; line < to.lines; ++line) {
        if (pairs)
            core.vector_counted(executed(Instr::MOVEV), Type::U8, to.pitch, at(to, line)); // whole lines
        core.vector_counted(executed(Instr::VCONV, 0, mode), dst.type, to.width, at(to, line).of(dst.type),
                            at(from, line).of(src.type));
    }
}

} // namespace insight_trace::engine
