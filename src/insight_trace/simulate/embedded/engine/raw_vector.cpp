// Vector instructions that kernels issue themselves: repeats of 256 bytes, steps in blocks of 32, a mask.
#include <array>
#include <cstring>

#include "ops/steps.hpp"
#include "raw_units.hpp"

namespace insight_trace::engine {

namespace {

constexpr int kMostLanes = 128;

struct Row {
    const char *name;
    Instr instr;
    int sources; // that lie in memory
};
// by RawVector
constexpr Row kRows[] = {
    {"vadd", Instr::VADD, 2},     {"vsub", Instr::VSUB, 2},        {"vmul", Instr::VMUL, 2},
    {"vdiv", Instr::VDIV, 2},     {"vmax", Instr::VMAX, 2},        {"vmin", Instr::VMIN, 2},
    {"vand", Instr::VAND, 2},     {"vor", Instr::VOR, 2},          {"vadds", Instr::VADDS, 1},
    {"vmuls", Instr::VMULS, 1},   {"vmaxs", Instr::VMAXS, 1},      {"vmins", Instr::VMINS, 1},
    {"vexp", Instr::VEXP, 1},     {"vln", Instr::VLN, 1},          {"vabs", Instr::VABS, 1},
    {"vsqrt", Instr::VSQRT, 1},   {"vrsqrt", Instr::VRSQRT, 1},    {"vrec", Instr::VREC, 1},
    {"vrelu", Instr::VRELU, 1},   {"vnot", Instr::VNOT, 1},        {"vcopy", Instr::VCOPY, 1},
    {"vconv", Instr::VCONV, 1},   {"vector_dup", Instr::MOVEV, 0}, {"vcadd", Instr::VCADD, 1},
    {"vcmax", Instr::VCMAX, 1},   {"vcmin", Instr::VCMIN, 1},      {"vcgadd", Instr::VCGADD, 1},
    {"vcgmax", Instr::VCGMAX, 1}, {"vcgmin", Instr::VCGMIN, 1},    {"vbrcb", Instr::VBRCB, 1},
};

bool reduces(RawVector what) { return what >= RawVector::Sum && what <= RawVector::SmallestOfBlock; }
bool reduces_blocks(RawVector what) {
    return what >= RawVector::SumOfBlock && what <= RawVector::SmallestOfBlock;
}

// Lanes of every repeat; a count is used up repeat by repeat.
struct Mask {
    uint64_t high, low;
    bool counts;
    int lanes;

    int64_t repeats(int64_t asked) const { return counts ? (int64_t(low) + lanes - 1) / lanes : asked; }
    bool has(int64_t repeat, int lane) const {
        if (counts) return uint64_t(repeat * lanes + lane) < low;
        return (lane < 64 ? low >> lane : high >> (lane - 64)) & 1;
    }
    int last() const { // of the first repeat, which has no fewer lanes than the others; -1: none
        for (int lane = lanes - 1; lane >= 0; --lane)
            if (has(0, lane)) return lane;
        return -1;
    }
    int64_t elements(int64_t repeat_count) const {
        if (counts) return int64_t(low);
        int64_t in_one = 0;
        for (int lane = 0; lane < lanes; ++lane) in_one += has(0, lane);
        return in_one * repeat_count;
    }
    bool is_prefix() const {
        if (counts) return true;
        bool on = true;
        for (int lane = 0; lane < lanes; ++lane) {
            if (has(0, lane) && !on) return false;
            on = has(0, lane);
        }
        return true;
    }
};

// An operand of an instruction: where each lane of each repeat lies.
struct Lanes {
    uint8_t *base = nullptr;
    int64_t size = 0, block = 0, repeat = 0; // bytes

    Lanes(Core &core, uint64_t address, int64_t size_, uint64_t block_step, uint64_t repeat_step,
          int64_t repeats, int last)
        : size(size_), block(int64_t(block_step) * kBlockBytes), repeat(int64_t(repeat_step) * kBlockBytes) {
        if (repeats > 0 && last >= 0)
            base = core.local(Space::UB, address, uint64_t((repeats - 1) * repeat + offset(last) + size));
    }
    int64_t offset(int lane) const {
        const int64_t byte = lane * size;
        return byte / kBlockBytes * block + byte % kBlockBytes;
    }
    template <class T> T get(int64_t r, int lane) const {
        T value;
        memcpy(&value, base + r * repeat + offset(lane), sizeof(T));
        return value;
    }
    template <class T> void put(int64_t r, int lane, T value) const {
        memcpy(base + r * repeat + offset(lane), &value, sizeof(T));
    }
};

template <class T> T of_two(RawVector what, T a, T b) {
    using W = Wide<T>;
    switch (what) {
    case RawVector::Add:
    case RawVector::AddS:
        return T(wrap_add(W(a), W(b)));
    case RawVector::Sub:
        return T(wrap_sub(W(a), W(b)));
    case RawVector::Mul:
    case RawVector::MulS:
        return T(wrap_mul(W(a), W(b)));
    case RawVector::Div:
        return T(quotient(W(a), W(b)));
    case RawVector::Max:
    case RawVector::MaxS:
        return T(larger(W(a), W(b)));
    default:
        return T(smaller(W(a), W(b)));
    }
}

template <class T> T of_one(RawVector what, T a) {
    const auto x = static_cast<double>(Wide<T>(a));
    switch (what) {
    case RawVector::Exp:
        return T(static_cast<float>(std::exp(x)));
    case RawVector::Ln:
        return T(static_cast<float>(std::log(x)));
    case RawVector::Sqrt:
        return T(static_cast<float>(std::sqrt(x)));
    case RawVector::Rsqrt:
        return T(static_cast<float>(1 / std::sqrt(x)));
    case RawVector::Rec:
        return T(static_cast<float>(1 / x));
    case RawVector::Abs:
        return a < T(0) ? T(-a) : a;
    default: // relu
        return a > T(0) || a != a ? a : T(0);
    }
}

template <class T> T number_of(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}

struct Work {
    RawVector what;
    Type type, result;
    uint64_t dst, src0, src1;
    int64_t repeats;
    const uint64_t *blocks, *steps; // of dst, src0, src1
    Mask mask;
};

// Elements of one repeat are read before any of it is written.
template <class T> void element_by_element(Core &core, const Work &w) {
    const int last = w.mask.last();
    const Lanes to(core, w.dst, sizeof(T), w.blocks[0], w.steps[0], w.repeats, last);
    const int sources = kRows[static_cast<int>(w.what)].sources;
    const Lanes a =
        sources > 0 ? Lanes(core, w.src0, sizeof(T), w.blocks[1], w.steps[1], w.repeats, last) : to;
    const Lanes b =
        sources > 1 ? Lanes(core, w.src1, sizeof(T), w.blocks[2], w.steps[2], w.repeats, last) : to;
    const T number = number_of<T>(w.src1);
    std::array<T, kMostLanes> out;
    for (int64_t r = 0; r < w.repeats; ++r) {
        for (int lane = 0; lane <= last; ++lane) {
            if (!w.mask.has(r, lane)) continue;
            if (w.what == RawVector::Fill)
                out[size_t(lane)] = number;
            else if (w.what == RawVector::Copy)
                out[size_t(lane)] = a.get<T>(r, lane);
            else if (sources == 2)
                out[size_t(lane)] = of_two(w.what, a.get<T>(r, lane), b.get<T>(r, lane));
            else if (w.what >= RawVector::Exp)
                out[size_t(lane)] = of_one(w.what, a.get<T>(r, lane));
            else
                out[size_t(lane)] = of_two(w.what, a.get<T>(r, lane), number);
        }
        for (int lane = 0; lane <= last; ++lane)
            if (w.mask.has(r, lane)) to.put(r, lane, out[size_t(lane)]);
    }
}

void bit_by_bit(Core &core, const Work &w) {
    const int last = w.mask.last();
    const Lanes to(core, w.dst, 2, w.blocks[0], w.steps[0], w.repeats, last),
        a(core, w.src0, 2, w.blocks[1], w.steps[1], w.repeats, last);
    const bool two = w.what != RawVector::Not;
    const Lanes b = two ? Lanes(core, w.src1, 2, w.blocks[2], w.steps[2], w.repeats, last) : a;
    for (int64_t r = 0; r < w.repeats; ++r)
        for (int lane = 0; lane <= last; ++lane) {
            if (!w.mask.has(r, lane)) continue;
            const uint16_t x = a.get<uint16_t>(r, lane), y = b.get<uint16_t>(r, lane);
            to.put(r, lane, uint16_t(!two ? ~x : w.what == RawVector::And ? x & y : x | y));
        }
}

template <class T> void reduced(Core &core, const Work &w) {
    const int last = w.mask.last();
    const bool blocks = reduces_blocks(w.what);
    const Lanes from(core, w.src0, sizeof(T), w.blocks[1], w.steps[1], w.repeats, last);
    const int64_t in_repeat = blocks ? kRepeatBytes / kBlockBytes : 1;
    const int64_t step = int64_t(w.steps[0]) * in_repeat;
    T *to = core.local_as<T>(Space::UB, w.dst, uint64_t((w.repeats - 1) * step + in_repeat));
    const int width = blocks ? kBlockBytes / int(sizeof(T)) : w.mask.lanes;
    const bool sums = w.what == RawVector::Sum || w.what == RawVector::SumOfBlock;
    const bool largest = w.what == RawVector::Largest || w.what == RawVector::LargestOfBlock;
    const Pair pair = sums ? Pair::Sum : largest ? Pair::Larger : Pair::Smaller;
    const LaneFold fold = lane_fold(core, "a reduction", type_of<T>(), pair);
    for (int64_t r = 0; r < w.repeats; ++r) {
        std::array<T, kRepeatBytes / kBlockBytes> out;
        std::array<bool, kRepeatBytes / kBlockBytes> any{};
        for (int64_t part = 0; part < in_repeat; ++part) {
            std::array<T, kMostLanes> lanes;
            int count = 0;
            for (int i = 0; i < width; ++i)
                if (const int lane = int(part) * width + i; lane <= last && w.mask.has(r, lane))
                    lanes[size_t(count++)] = from.get<T>(r, lane);
            if (!(any[size_t(part)] = count > 0)) continue;
            fold(lanes.data(), count, &out[size_t(part)]);
        }
        for (int64_t part = 0; part < in_repeat; ++part)
            if (any[size_t(part)]) to[r * step + part] = out[size_t(part)];
    }
}

template <class From, class To> void converted(Core &core, const Work &w) {
    const int last = w.mask.last();
    const Lanes to(core, w.dst, sizeof(To), w.blocks[0], w.steps[0], w.repeats, last),
        from(core, w.src0, sizeof(From), w.blocks[1], w.steps[1], w.repeats, last);
    std::array<To, kMostLanes> out;
    for (int64_t r = 0; r < w.repeats; ++r) {
        for (int lane = 0; lane <= last; ++lane)
            if (w.mask.has(r, lane)) out[size_t(lane)] = To(static_cast<float>(from.get<From>(r, lane)));
        for (int lane = 0; lane <= last; ++lane)
            if (w.mask.has(r, lane)) to.put(r, lane, out[size_t(lane)]);
    }
}

template <class T> void spread(Core &core, const Work &w) {
    constexpr int64_t blocks = kRepeatBytes / kBlockBytes;
    const T *from = core.local_as<T>(Space::UB, w.src0, uint64_t(w.repeats * blocks));
    std::array<T, blocks> values;
    for (int64_t r = 0; r < w.repeats; ++r) {
        std::copy_n(from + r * blocks, blocks, values.data());
        for (int64_t b = 0; b < blocks; ++b) {
            T *to = core.local_as<T>(
                Space::UB,
                w.dst + uint64_t((r * int64_t(w.steps[0]) + b * int64_t(w.blocks[0])) * kBlockBytes),
                kBlockBytes / sizeof(T));
            std::fill_n(to, kBlockBytes / sizeof(T), values[size_t(b)]);
        }
    }
}

void compute(Core &core, const Work &w) {
    const char *name = kRows[static_cast<int>(w.what)].name;
    if (w.what == RawVector::And || w.what == RawVector::Or || w.what == RawVector::Not)
        return bit_by_bit(core, w);
    if (w.what == RawVector::Spread)
        return type_size(w.type) == 4 ? spread<uint32_t>(core, w) : spread<uint16_t>(core, w);
    if (w.what == RawVector::Convert) {
        if (w.type == Type::F32 && w.result == Type::F16) return converted<float, half>(core, w);
        if (w.type == Type::F32 && w.result == Type::BF16) return converted<float, bfloat16_t>(core, w);
        if (w.type == Type::F16 && w.result == Type::F32) return converted<half, float>(core, w);
        if (w.type == Type::BF16 && w.result == Type::F32) return converted<bfloat16_t, float>(core, w);
        core.unsupported("vconv from %s to %s", type_name(w.type), type_name(w.result));
    }
    if (reduces(w.what))
        return with_type_of(core, name, w.type, Types<float, half>{},
                            [&](auto tag) { reduced<decltype(tag)>(core, w); });
    const bool real = w.what >= RawVector::Exp && w.what <= RawVector::Rec && w.what != RawVector::Abs;
    if (real)
        return with_type_of(core, name, w.type, Types<float, half>{},
                            [&](auto tag) { element_by_element<decltype(tag)>(core, w); });
    with_type_of(core, name, w.type, Types<float, half, bfloat16_t, int32_t, uint32_t, int16_t, uint16_t>{},
                 [&](auto tag) { element_by_element<decltype(tag)>(core, w); });
}

} // namespace

void raw_vector(Core &core, const uint64_t *v) {
    Work w{static_cast<RawVector>(v[0]),
           static_cast<Type>(v[1]),
           static_cast<Type>(v[2]),
           offset_in(core, Space::UB, v[3]),
           v[4],
           v[5],
           int64_t(v[6]),
           v + 7,
           v + 10,
           {v[13], v[14], v[15] != 0, 0}};
    const Row &row = kRows[static_cast<int>(w.what)];
    if (row.sources > 0) w.src0 = offset_in(core, Space::UB, w.src0);
    if (row.sources > 1) w.src1 = offset_in(core, Space::UB, w.src1);
    const bool converts = w.what == RawVector::Convert;
    const bool bits = w.what == RawVector::And || w.what == RawVector::Or || w.what == RawVector::Not;
    const int widest = bits ? 2 : std::max(type_size(w.type), converts ? type_size(w.result) : 0);
    w.mask.lanes = kRepeatBytes / widest;
    if (w.what == RawVector::Spread) w.mask = {~0ull, ~0ull, false, kRepeatBytes / widest};
    w.repeats = w.mask.repeats(w.repeats);
    if (w.repeats <= 0) return;
    if (core.computes) compute(core, w);
    auto operand = [&](int which, uint64_t address) {
        VectorOperand made(static_cast<uint32_t>(address), static_cast<uint16_t>(w.steps[which]),
                           static_cast<uint16_t>(w.blocks[which]));
        const bool result = which == 0;
        if (converts) made = made.of(result ? w.result : w.type);
        return w.mask.is_prefix() || w.mask.lanes > 64 || (result && reduces(w.what))
                   ? made
                   : made.masked(w.mask.low);
    };
    const Type type = bits                                                  ? Type::U16
                      : converts && type_size(w.result) > type_size(w.type) ? w.result
                                                                            : w.type;
    core.vector(row.instr, type, static_cast<int>(w.repeats), w.mask.elements(w.repeats), operand(0, w.dst),
                row.sources > 0 ? operand(1, w.src0) : VectorOperand(),
                row.sources > 1 ? operand(2, w.src1) : VectorOperand());
}

} // namespace insight_trace::engine
