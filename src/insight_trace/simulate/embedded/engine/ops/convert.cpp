// TCVT: between element types, with every rounding mode, saturating or not.
#include "isa/function_conversions.hpp"
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
        : core_(core), job_(job), dst_(dst), src_(src), tmp_(tmp) {}

    void run() {
        const int widest = std::max(dst_.size, src_.size), lanes = kRepeatBytes / widest;
        const int tail = dst_.width % lanes;
        auto stride = [&](const Lines &tile, Type type) {
            return type == Type::I4 ? 2 : tile.size == widest ? 8 : 8 / widest * tile.size;
        };
        read_control();
        const uint64_t before = core_.control;
        set_wrapping(!job_.saturate);
        for (int line = 0; line < dst_.lines; ++line)
            portions(dst_.width / lanes, kMostRepeats, [&](int done, int repeat) {
                call(line, done * lanes, repeat, lanes, stride(dst_, job_.to), stride(src_, job_.from));
            });
        if (tail && dst_.lines > 0)
            under_mask(core_, tail, [&] {
                portions(dst_.lines, kMostRepeats, [&](int line, int repeat) {
                    call(line, dst_.width - tail, repeat, tail, dst_.blocks(), src_.blocks());
                });
            });
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
        constexpr uint64_t low_byte = 0xff;
        const Round mode = instr == Instr::VCONV ? mode_of(dst, src0) : Round::None;
        core_.vector({instr, low_byte, mode}, type, repeat, int64_t(repeat) * width, dst, src0, src1);
    }
    // The kernel's rounding applies to what it converts; steps on the way have their own.
    Round mode_of(const VectorOperand &dst, const VectorOperand &src) const {
        return src.element == job_.from && (dst.element == job_.to || is_float(job_.from)) ? job_.mode
                                                                                           : Round::Rint;
    }

    void call(int line, int column, int repeat, int width, int dst_stride, int src_stride) {
        auto place = [&](const Lines &tile, Type type, int stride) { // two of four bits are a byte
            return tile.at(line, type == Type::I4 ? column / 2 : column, stride).of(type);
        };
        const VectorOperand dst = place(dst_, job_.to, dst_stride), src = place(src_, job_.from, src_stride);
        if (job_.from == Type::I32 && job_.to == Type::F16) { // dequantised with the scale 1
            core_.spr_of(Spr::DEQSCALE) = 0x3c00;
            mask_value(core_, 0x3c00);
            barrier(core_);
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
        const VectorOperand tmp = VectorOperand(tmp_->address, src.repeat_stride).of(Type::I32);
        set_wrapping(false);
        one(Instr::VCONV, Type::I32, repeat, width, tmp, src);
        barrier(core_);
        set_wrapping(true);
        one(Instr::VCONV, job_.to, repeat, width, dst, tmp);
    }

    // 64 elements at a time, over 32-bit and, for bytes, 16-bit integers and back.
    void chunks_through_tmp(int repeat, int width, VectorOperand dst, VectorOperand src) {
        const VectorOperand low(tmp_->address), high(tmp_->address + 128);
        auto chunk = [&](int row, int done, int count) {
            auto place = [&](const VectorOperand &o, int size) {
                const int offset = row * o.repeat_stride * kBlockBytes + done * size;
                return VectorOperand(o.address + uint32_t(offset)).of(o.element);
            };
            auto step = [&](Instr instr, Type type, VectorOperand a, VectorOperand b, VectorOperand c = {}) {
                one(instr, type, 1, count, a, b, c);
                barrier(core_);
            };
            const VectorOperand to = place(dst, dst_.size);
            mask_elements(core_, count);
            set_wrapping(false);
            step(Instr::VCONV, Type::I32, low.of(Type::I32), place(src, src_.size));
            set_wrapping(true);
            if (job_.to == Type::I16) return step(Instr::VCONV, Type::I16, to, low.of(Type::I32));
            step(Instr::VCONV, Type::I16, low.of(Type::I16), low.of(Type::I32));
            step(Instr::MOVEV, Type::I16, high, {});
            step(Instr::VAND, Type::I16, low, low, high);
            step(Instr::VCONV, Type::F16, high.of(Type::F16), low.of(Type::I16));
            step(Instr::VCONV, Type::I8, to, high.of(Type::F16));
        };
        for (int row = 0; row < repeat; ++row)
            portions(width, 64, [&](int done, int count) { chunk(row, done, count); });
        mask_all(core_);
    }

    Core &core_;
    const Conversion &job_;
    const Lines &dst_, &src_;
    const TileRef *tmp_;
};

// What both families read of the operands.
struct Asked {
    const TileRef &dst, &src;
    const TileRef *tmp = nullptr;
    Conversion job;

    Asked(Core &core, const Operands &operands)
        : dst(tile_operand(core, operands, 0)), src(tile_operand(core, operands, 1)) {
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

[[noreturn]] void refuse_pair(const Core &core, Type from, Type to) {
    core.unsupported("TCVT from %s to %s on this chip", type_name(from), type_name(to));
}

// Integers of four bits go to and from half alone.
bool is_other_nibble(Type from, Type to) {
    return (from == Type::I4 && to != Type::F16) || (to == Type::I4 && from != Type::F16);
}

bool converts_narrow(Type from, Type to) {
    if (to == Type::HiF8) return from == Type::F32 || from == Type::F16;
    if (from == Type::HiF8) return to == Type::F32;
    return (is_nibble(to) && from == Type::BF16) || (is_nibble(from) && to == Type::BF16);
}

// Lines of bytes, as far as dst is valid: two of four bits are one.
Lines narrow_lines(Core &core, const TileRef &tile, const TileRef &dst) {
    const bool nibbles = is_nibble(tile.type);
    need_plain_rows(core, tile, "tile of narrow floats");
    if (nibbles && tile.cols % 2) core.unsupported("TCVT of tiles of 4-bit floats of odd width");
    need_room(core, tile, "tile", dst.valid_rows, dst.valid_cols);
    const int pitch = nibbles ? tile.cols / 2 : tile.cols, size = nibbles ? 1 : type_size(tile.type);
    return {tile.address, dst.valid_rows, dst.valid_cols, tile.rows, pitch, true, false, size};
}

} // namespace

TILE_OP_BODY(TCVT) {
    const Asked asked(core, operands);
    const Type to = asked.dst.type, from = asked.src.type;
    if (is_narrow(from) || is_narrow(to) || is_other_nibble(from, to)) refuse_pair(core, from, to);
    if (!has_conversion(from, to))
        core.unsupported("TCVT from %s to %s: the vector unit has none", type_name(from), type_name(to));
    const Lines dst = lines_of(core, asked.dst), src = lines_of(core, asked.src, dst);
    Issuer(core, asked.job, dst, src, asked.tmp).run();
}

// With registers: every pair of types, line by line.
FUNCTION_OP_BODY(TCVT) {
    const Asked asked(core, operands);
    const TileRef &dst = asked.dst, &src = asked.src;
    const Conversion &job = asked.job;
    const bool pairs = is_nibble(dst.type);
    Lines to{}, from{};
    if (is_narrow(src.type) || is_narrow(dst.type)) {
        if (!converts_narrow(src.type, dst.type)) refuse_pair(core, src.type, dst.type);
        to = narrow_lines(core, dst, dst);
        from = narrow_lines(core, src, dst);
        if (pairs) to.width = to.width / 2 * 2; // of a last pair with one nothing is written
    } else {
        if (is_other_nibble(src.type, dst.type)) refuse_pair(core, src.type, dst.type);
        to = lines_of(core, dst);
        from = lines_of(core, src, to);
        const uint64_t bit = 1ull << kSaturationBit;
        for (bool wraps : {!job.saturate, bool(core.control >> kSaturationBit & 1)})
            core.set_register(PipeId::S, wraps ? core.control | bit : core.control & ~bit);
    }
    const int mode =
        static_cast<int>(job.mode) | (job.saturate ? 0 : kWraps) | (job.through_i32 ? kThroughInt32 : 0);
    for (int line = 0; line < to.lines; ++line) {
        if (pairs) core.vector_counted(Instr::MOVEV, Type::U8, to.pitch, to.at(line)); // whole lines
        core.vector_counted({Instr::VCONV, 0, mode}, dst.type, to.width, to.at(line).of(dst.type),
                            from.at(line).of(src.type));
    }
}

} // namespace insight_trace::engine
