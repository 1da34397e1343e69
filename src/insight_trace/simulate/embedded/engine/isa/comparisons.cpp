// Comparisons to bits, and selections by them. A bit is one lane, the first lane in the lowest bit.
#include <cstring>
#include <vector>

#include "elements.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

namespace {

template <class T> bool compares(T a, T b, Compare how) { // NaN is unequal to everything
    const auto x = Wide<T>(a), y = Wide<T>(b);
    switch (how) {
    case Compare::LT:
        return x < y;
    case Compare::GT:
        return x > y;
    case Compare::EQ:
        return x == y;
    case Compare::LE:
        return x <= y;
    case Compare::GE:
        return x >= y;
    default:
        return x != y;
    }
}

template <class T, Compare how> HOT_LOOP void bits_of_lanes(const T *a, const T *b, int lanes, uint8_t *to) {
    for (int byte = 0; byte < lanes / 8; ++byte) {
        unsigned bits = 0;
        for (int k = 0; k < 8; ++k) bits |= unsigned(compares(a[8 * byte + k], b[8 * byte + k], how)) << k;
        to[byte] = static_cast<uint8_t>(bits);
    }
}
template <class T> void bits_of_lanes(const T *a, const T *b, int lanes, uint8_t *to, Compare how) {
    switch (how) {
    case Compare::LT:
        return bits_of_lanes<T, Compare::LT>(a, b, lanes, to);
    case Compare::GT:
        return bits_of_lanes<T, Compare::GT>(a, b, lanes, to);
    case Compare::EQ:
        return bits_of_lanes<T, Compare::EQ>(a, b, lanes, to);
    case Compare::LE:
        return bits_of_lanes<T, Compare::LE>(a, b, lanes, to);
    case Compare::GE:
        return bits_of_lanes<T, Compare::GE>(a, b, lanes, to);
    default:
        return bits_of_lanes<T, Compare::NE>(a, b, lanes, to);
    }
}

// A whole repeat of an operand. What lies past the end of the memory counts as 0.
template <class T> void read_repeat(Core &core, const VectorOperand &o, int64_t r, T *into) {
    auto *bytes = reinterpret_cast<uint8_t *>(into);
    for (int block = 0; block < kBlocksOfRepeat; ++block, bytes += kBytesOfBlock) {
        const uint64_t at =
            o.address + uint64_t((r * o.repeat_stride + int64_t(block) * o.block_stride) * kBytesOfBlock);
        const uint64_t size = at >= kRegisterFile ? ~0ull : core.space_size(Space::UB);
        const uint64_t there = at >= size ? 0 : std::min<uint64_t>(kBytesOfBlock, size - at);
        if (there < kBytesOfBlock) memset(bytes, 0, kBytesOfBlock);
        if (there) memcpy(bytes, core.local(Space::UB, at, there), size_t(there));
    }
}

// The mask is not read: every lane of every repeat gives a bit.
template <class T> void compare(Core &core, const VectorInstruction &i) {
    constexpr int lanes = kBytesOfRepeat / int(sizeof(T));
    const bool to_register = i.instr == Instr::VCMP, with_number = i.instr == Instr::VCMPVS;
    // with registers a count says how many lanes there are
    const int64_t repeats = to_register                              ? 1
                            : i.mask.counts && core.register_based() ? (i.mask.count + lanes - 1) / lanes
                                                                     : i.repeats;
    if (repeats <= 0) return;
    T a[lanes], b[lanes];
    if (with_number) {
        T number;
        memcpy(&number, &i.number, sizeof number);
        std::fill_n(b, lanes, number);
    }
    const auto how = static_cast<Compare>(i.mode & 7);
    uint8_t bits[lanes / 8];
    if (to_register) {
        read_repeat(core, i.src0, 0, a);
        read_repeat(core, i.src1, 0, b);
        bits_of_lanes(a, b, lanes, bits, how);
        auto *kept = reinterpret_cast<uint8_t *>(&core.spr[static_cast<size_t>(Spr::CMPMASK_LOW)]);
        for (int lane = 0; lane < lanes; ++lane)
            if (i.mask.has(0, lane, lanes))
                kept[lane / 8] = static_cast<uint8_t>((kept[lane / 8] & ~(1 << lane % 8)) |
                                                      (bits[lane / 8] & 1 << lane % 8));
        return;
    }
    const bool exact = i.mask.counts && core.register_based();
    const int64_t unit = i.mode & kWholeWords ? (i.mode & kWideWords ? 32 : 16) : 1;
    const int64_t used = exact ? (i.mask.count + 7) / 8 : repeats * (lanes / 8),
                  bytes = (used + unit - 1) / unit * unit;
    std::vector<uint8_t> all(size_t(std::max(bytes, repeats * (lanes / 8))));
    for (int64_t r = 0; r < repeats; ++r) {
        read_repeat(core, i.src0, r, a);
        if (!with_number) read_repeat(core, i.src1, r, b);
        bits_of_lanes(a, b, lanes, all.data() + r * (lanes / 8), how);
    }
    if (exact) { // a predicate has no bits past its elements
        std::fill(all.begin() + used, all.end(), uint8_t(0));
        if (i.mask.count % 8) all[size_t(used - 1)] &= uint8_t((1 << i.mask.count % 8) - 1);
    }
    memcpy(core.local(Space::UB, i.dst.address, uint64_t(bytes)), all.data(), size_t(bytes));
}

// Mode 0: bits in CMPMASK, the same for every repeat. Mode 1: src1 is a stream of bits, and CMPMASK a number.
// Mode 2: CMPMASK holds the address of the stream. Mode 3, with registers: the instruction has it.
template <class T> void select(Core &core, const VectorInstruction &i) {
    constexpr int lanes = kBytesOfRepeat / int(sizeof(T)), mask_bytes = lanes / 8;
    const int64_t repeats = i.mask.counts ? (i.mask.count + lanes - 1) / lanes : i.repeats;
    const int last = i.mask.counts && i.mask.count < lanes ? int(i.mask.count) - 1 : i.mask.last(lanes);
    if (repeats <= 0 || last < 0) return;
    const uint64_t *kept = &core.spr[static_cast<size_t>(Spr::CMPMASK_LOW)];
    const int64_t tail = i.mask.counts ? i.mask.count - (repeats - 1) * lanes : last + 1;
    auto operand = [&](const VectorOperand &o) {
        if (repeats > 1 && tail != last + 1) LaneOperand(core, o, sizeof(T), repeats - 1, last);
        return LaneOperand(core, o, sizeof(T), repeats, int(tail) - 1);
    };
    const LaneOperand to = operand(i.dst), x = operand(i.src0);
    LaneOperand y;
    T number;
    memcpy(&number, kept, sizeof number);
    if (i.mode != 1) y = operand(i.src1);
    const uint8_t *stream = reinterpret_cast<const uint8_t *>(kept);
    if (i.mode != 0) {
        const uint64_t place = i.mode == 1   ? i.src1.address
                               : i.mode == 3 ? i.number
                                             : offset_in(core, Space::UB, static_cast<uint32_t>(kept[0]));
        const int64_t bytes = (repeats - 1) * mask_bytes + (tail + 7) / 8;
        stream = core.local(Space::UB, place, uint64_t(bytes));
    }
    for (int64_t r = 0; r < repeats; ++r) {
        const int count = r + 1 < repeats ? last + 1 : int(tail);
        T a[lanes], b[lanes];
        uint8_t bits[mask_bytes];
        memcpy(bits, stream, size_t((count + 7) / 8));
        x.read(r, count, reinterpret_cast<uint8_t *>(a));
        if (i.mode == 1)
            std::fill_n(b, count, number);
        else
            y.read(r, count, reinterpret_cast<uint8_t *>(b));
        for (int lane = 0; lane < count; ++lane)
            if (i.mask.has(r, lane, lanes))
                memcpy(to.at(r, lane), bits[lane / 8] >> lane % 8 & 1 ? &a[lane] : &b[lane], sizeof(T));
        if (i.mode != 0) stream += mask_bytes;
    }
}

} // namespace

void execute_comparison(Core &core, const VectorInstruction &i) {
    with_type_of(core, instr_name(i.instr), i.type, Numbers(),
                 [&](auto tag) { compare<decltype(tag)>(core, i); });
}

void execute_selection(Core &core, const VectorInstruction &i) {
    if (i.mode > 3) core.unsupported("vsel in mode %d", i.mode);
    const int size = type_size(i.type);
    if (size != 2 && size != 4 && i.mode != 3) core.unsupported("vsel of %s elements", type_name(i.type));
    with_bits(i.type, [&](auto tag) { select<decltype(tag)>(core, i); });
}

} // namespace insight_trace::engine
