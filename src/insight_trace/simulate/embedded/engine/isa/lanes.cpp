// The walk over the lanes of an instruction: masks, repeats, strides, and what is held at the largest number.
#include <array>
#include <cstring>

#include "elements.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

LaneMask LaneMask::first(int64_t lanes) {
    LaneMask mask;
    for (uint64_t &word : mask.bits) {
        word = lanes >= 64 ? ~0ull : lanes <= 0 ? 0 : (1ull << lanes) - 1;
        lanes -= 64;
    }
    return mask;
}

int LaneMask::prefix(int lanes) const {
    if (counts) return lanes;
    const int found = last(lanes) + 1;
    const LaneMask whole = first(found), used = first(lanes);
    for (size_t word = 0; word < bits.size(); ++word)
        if ((bits[word] & used.bits[word]) != whole.bits[word]) return -1;
    return found;
}

int LaneMask::last(int lanes) const {
    if (counts) return lanes - 1;
    for (int word = (lanes - 1) / 64; word >= 0; --word) {
        uint64_t used = bits[size_t(word)];
        if (lanes - 64 * word < 64) used &= (1ull << (lanes - 64 * word)) - 1;
        if (used) return 64 * word + 63 - __builtin_clzll(used);
    }
    return -1;
}

LaneOperand::LaneOperand(Core &core, const VectorOperand &operand, int size_, int64_t repeats, int last)
    : size(size_), block(int64_t(operand.block_stride) * kBytesOfBlock),
      repeat(int64_t(operand.repeat_stride) * kBytesOfBlock) {
    if (repeats <= 0 || last < 0) return;
    int64_t end = 0; // of the block that reaches farthest
    const int64_t bytes = int64_t(last + 1) * size, blocks = (bytes - 1) / kBytesOfBlock;
    end = blocks * block + (bytes - 1) % kBytesOfBlock + 1;
    if (blocks > 0) end = std::max(end, (blocks - 1) * block + kBytesOfBlock);
    base = core.local(Space::UB, operand.address, uint64_t((repeats - 1) * repeat + end));
}

void LaneOperand::read(int64_t r, int count, uint8_t *into) const {
    const uint8_t *from = base + r * repeat;
    int64_t left = int64_t(count) * size;
    if (block == kBytesOfBlock) {
        memcpy(into, from, size_t(left));
        return;
    }
    for (; left > 0; left -= kBytesOfBlock, from += block, into += kBytesOfBlock)
        memcpy(into, from, size_t(std::min<int64_t>(left, kBytesOfBlock)));
}

namespace {

template <uint16_t infinity> HOT_LOOP void hold(uint16_t *numbers, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const uint16_t bits = numbers[i], magnitude = bits & 0x7fff;
        const uint16_t most = static_cast<uint16_t>((bits & 0x8000) | (infinity - 1));
        numbers[i] = magnitude < infinity ? bits : magnitude == infinity ? most : uint16_t(0);
    }
}

// Bytes of a number side by side, as many as a walk reads at once.
constexpr int64_t kSpreadBytes = 4096;
struct Spread {
    alignas(32) std::array<uint8_t, kSpreadBytes> bytes;
    int64_t elements = 0;
    void fill(uint64_t number, int size, int64_t wanted) {
        elements = std::min(wanted, kSpreadBytes / size);
        for (int64_t i = 0; i < elements; ++i) memcpy(bytes.data() + i * size, &number, size_t(size));
    }
};

struct Walk {
    Core &core;
    const LaneWork &work;
    LaneOperand to, a, b;
    const uint8_t *number = nullptr;
    bool holds;

    // From `elements` on in line, or from the beginning of a repeat.
    void sweep(int64_t elements, int64_t r, int64_t count) const {
        auto place = [&](const LaneOperand &o) {
            return o.base ? o.base + elements * o.size + r * o.repeat : nullptr;
        };
        run(place(to), place(a), number ? number : place(b), count);
    }
    void run(uint8_t *into, const uint8_t *x, const uint8_t *y, int64_t count) const {
        const void *second = work.context ? work.context : y;
        work.op(into, work.swapped ? second : x, work.swapped ? x : second, count);
        if (holds) hold_numbers(work.saturates, into, count);
    }
    // Every lane of a repeat in its place, whatever the strides and the mask.
    void one_by_one(int64_t r, int count, const LaneMask &mask, int lanes) const {
        alignas(32) uint8_t out[kMaximumLanes * 8], x[kMaximumLanes * 8], y[kMaximumLanes * 8];
        if (work.a_size) a.read(r, count, x);
        if (work.b_size && !number) b.read(r, count, y);
        if (work.reads_result) to.read(r, count, out);
        run(out, x, number ? number : y, count);
        const auto size = size_t(work.to_size);
        for (int lane = 0; lane < count; ++lane)
            if (mask.has(r, lane, lanes)) memcpy(to.at(r, lane), out + size_t(lane) * size, size);
    }
};

// Two operands whose bytes may be worked on in one sweep: they are the same lanes, or a repeat never reaches
// what another place of the sweep writes.
bool apart(const LaneOperand &to, const LaneOperand &from, int64_t bytes) {
    const int64_t distance = std::abs(to.base - from.base);
    return (distance == 0 && to.size == from.size) || distance >= bytes;
}

} // namespace

void hold_numbers(Type type, void *numbers, int64_t count) {
    if (type == Type::F16)
        hold<0x7c00>(static_cast<uint16_t *>(numbers), count);
    else
        hold<0x7f80>(static_cast<uint16_t *>(numbers), count);
}

void walk_lanes(Core &core, const VectorInstruction &i, const LaneWork &work) {
    const int widest = std::max({work.to_size, work.a_size, work.number ? 0 : work.b_size});
    const int lanes = kBytesOfRepeat / widest;
    const int64_t repeats = i.mask.counts ? (i.mask.count + lanes - 1) / lanes : i.repeats;
    const int last = i.mask.counts && i.mask.count < lanes ? int(i.mask.count) - 1 : i.mask.last(lanes);
    if (repeats <= 0 || last < 0) return;
    const int64_t tail =
        i.mask.counts ? i.mask.count - (repeats - 1) * lanes : last + 1; // of the last repeat
    auto operand = [&](const VectorOperand &o, int size) {
        if (tail == last + 1) return LaneOperand(core, o, size, repeats, last);
        if (repeats > 1) LaneOperand(core, o, size, repeats - 1, last); // checked
        return LaneOperand(core, o, size, repeats, int(tail) - 1);
    };
    Walk walk{core, work, operand(i.dst, work.to_size), {}, {}, nullptr, holds_numbers(core, work.saturates)};
    if (work.a_size) walk.a = operand(i.src0, work.a_size);
    if (work.b_size && !work.number) walk.b = operand(i.src1, work.b_size);
    Spread spread;
    if (work.number) {
        spread.fill(i.number, work.b_size, repeats * lanes);
        walk.number = spread.bytes.data();
    }
    const int prefix = i.mask.prefix(lanes);
    auto in_line = [&](const LaneOperand &o) {
        return !o.base || o.block == kBytesOfBlock || (last + 1) * o.size <= kBytesOfBlock;
    };
    const bool plain = prefix > 0 && in_line(walk.to) && in_line(walk.a) && in_line(walk.b) &&
                       (!walk.a.base || apart(walk.to, walk.a, kBytesOfRepeat)) &&
                       (!walk.b.base || apart(walk.to, walk.b, kBytesOfRepeat));
    if (!plain) {
        for (int64_t r = 0; r < repeats; ++r)
            walk.one_by_one(r, r + 1 < repeats ? last + 1 : int(tail), i.mask, lanes);
        return;
    }
    auto follows = [&](const LaneOperand &o) { return !o.base || o.repeat == lanes * o.size; };
    const bool whole = i.mask.counts || prefix == lanes;
    if (repeats == 1 || (whole && follows(walk.to) && follows(walk.a) && follows(walk.b))) {
        const int64_t all = (repeats - 1) * lanes + tail;
        const int64_t step = walk.number ? spread.elements : all;
        for (int64_t done = 0; done < all; done += step) walk.sweep(done, 0, std::min(step, all - done));
        return;
    }
    for (int64_t r = 0; r < repeats; ++r) walk.sweep(0, r, r + 1 < repeats ? last + 1 : tail);
}

} // namespace insight_trace::engine
