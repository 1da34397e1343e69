// Reductions of a repeat, of its blocks and of its pairs.
//
// A sum is a binary tree of neighbours (0+1, 2+3, …): halves are rounded, and held at the largest number
// unless CTRL says else, at every level. Lanes that are masked off count as nothing and keep their place.
// NaN wins against every number; of several equal values the first one's index counts (as the 950 documents).
#include <cstring>

#include "elements.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

namespace {

template <class T> void round_level(T *level, int count, bool holds) {
    if constexpr (sizeof(T) == 2 && is_real<T>) {
        if (holds) hold_numbers(type_of<T>(), level, count);
    }
}

template <class T> HOT_LOOP void add_neighbours(T *level, int pairs) {
    for (int i = 0; i < pairs; ++i) level[i] = T(wrap_add(Wide<T>(level[2 * i]), Wide<T>(level[2 * i + 1])));
}

// The sum of `count` lanes, a power of two.
template <class T> T tree_sum(T *level, int count, bool holds) {
    for (; count > 1; count /= 2) {
        add_neighbours(level, count / 2);
        round_level(level, count / 2, holds);
    }
    return level[0];
}

template <class T> bool exceeds(T a, T b, bool largest) {
    const auto x = Wide<T>(a), y = Wide<T>(b);
    if (x != x) return y == y;
    if (y != y) return false;
    return largest ? x > y : x < y;
}

struct Shape { // of an instruction over its repeats
    int lanes;
    int64_t repeats;
    int last;
    int64_t tail; // lanes of the last repeat

    Shape(const VectorInstruction &i, int size) : lanes(kBytesOfRepeat / size) {
        repeats = i.mask.counts ? (i.mask.count + lanes - 1) / lanes : i.repeats;
        last = i.mask.counts && i.mask.count < lanes ? int(i.mask.count) - 1 : i.mask.last(lanes);
        tail = i.mask.counts ? i.mask.count - (repeats - 1) * lanes : last + 1;
    }
    bool empty() const { return repeats <= 0 || last < 0; }
    int count(int64_t r) const { return r + 1 < repeats ? last + 1 : int(tail); }
    LaneOperand source(Core &core, const VectorOperand &o, int size) const {
        if (repeats > 1 && tail != last + 1) LaneOperand(core, o, size, repeats - 1, last);
        return LaneOperand(core, o, size, repeats, int(tail) - 1);
    }
};

// The lanes of a repeat, `none` where a lane is masked off; the first active one, or -1.
template <class T>
int gather(const LaneOperand &from, const VectorInstruction &i, const Shape &shape, int64_t r, T none,
           T *into) {
    from.read(r, shape.count(r), reinterpret_cast<uint8_t *>(into));
    std::fill(into + shape.count(r), into + shape.lanes, none);
    if (i.mask.counts || i.mask.prefix(shape.lanes) == shape.last + 1) return 0;
    int first = -1;
    for (int lane = shape.count(r) - 1; lane >= 0; --lane)
        if (i.mask.has(r, lane, shape.lanes))
            first = lane;
        else
            into[lane] = none;
    return first;
}

template <class T> void sum_repeats(Core &core, const VectorInstruction &i) {
    const Shape shape(i, sizeof(T));
    if (shape.empty()) return;
    const LaneOperand from = shape.source(core, i.src0, sizeof(T));
    const bool to_register = i.mode & 1, holds = holds_numbers(core, type_of<T>());
    const int64_t step = i.dst.repeat_stride;
    T *to = to_register
                ? nullptr
                : core.local_as<T>(Space::UB, i.dst.address, uint64_t((shape.repeats - 1) * step + 1));
    T total{}; // of this instruction: the register keeps nothing of the one before
    for (int64_t r = 0; r < shape.repeats; ++r) {
        T level[kMaximumLanes];
        gather(from, i, shape, r, T(0), level);
        T sum = tree_sum(level, shape.lanes, holds);
        if (!to_register) {
            to[r * step] = sum;
            continue;
        }
        total = T(wrap_add(Wide<T>(total), Wide<T>(sum)));
        round_level(&total, 1, holds);
    }
    if (to_register) {
        uint64_t &kept = core.spr[static_cast<size_t>(Spr::ACC_VAL)];
        kept = 0;
        memcpy(&kept, &total, sizeof total);
    }
}

template <class T> void extreme_repeats(Core &core, const VectorInstruction &i) {
    const Shape shape(i, sizeof(T));
    if (shape.empty()) return;
    const LaneOperand from = shape.source(core, i.src0, sizeof(T));
    const bool largest = i.instr == Instr::VCMAX;
    const auto order = static_cast<Order>(i.mode);
    const bool both = order == Order::ValueIndex || order == Order::IndexValue;
    const int64_t unit = both ? 2 * sizeof(T) : order == Order::OnlyIndex ? 4 : sizeof(T);
    const int64_t step = i.dst.repeat_stride * unit;
    uint8_t *to = core.local(Space::UB, i.dst.address, uint64_t((shape.repeats - 1) * step + unit));
    T best_of_all{};
    uint64_t index_of_all = 0;
    for (int64_t r = 0; r < shape.repeats; ++r, to += step) {
        T lanes[kMaximumLanes];
        from.read(r, shape.count(r), reinterpret_cast<uint8_t *>(lanes));
        int best = -1;
        for (int lane = 0; lane < shape.count(r); ++lane)
            if (i.mask.has(r, lane, shape.lanes) && (best < 0 || exceeds(lanes[lane], lanes[best], largest)))
                best = lane;
        if (best < 0) continue;
        if (r == 0 || exceeds(lanes[best], best_of_all, largest)) {
            best_of_all = lanes[best];
            index_of_all = uint64_t(r * shape.lanes + best);
        }
        const auto index = static_cast<uint64_t>(best);
        if (order == Order::OnlyIndex) {
            memcpy(to, &index, 4);
        } else {
            const size_t value_at = order == Order::IndexValue ? sizeof(T) : 0;
            memcpy(to + value_at, &lanes[best], sizeof(T));
            if (both) memcpy(to + (sizeof(T) - value_at), &index, sizeof(T));
        }
    }
    uint64_t &kept = core.spr[static_cast<size_t>(Spr::MAX_MIN_CNT)];
    kept = index_of_all << 32;
    memcpy(&kept, &best_of_all, sizeof(T));
}

template <class T> void reduce_blocks(Core &core, const VectorInstruction &i) {
    const Shape shape(i, sizeof(T));
    if (shape.empty()) return;
    constexpr int width = kBytesOfBlock / int(sizeof(T));
    const LaneOperand from = shape.source(core, i.src0, sizeof(T));
    const bool sums = i.instr == Instr::VCGADD, largest = i.instr == Instr::VCGMAX;
    const bool holds = holds_numbers(core, type_of<T>());
    const int64_t step = int64_t(i.dst.repeat_stride) * kBlocksOfRepeat;
    const int64_t in_last = (shape.tail + width - 1) / width;
    T *to = core.local_as<T>(Space::UB, i.dst.address, uint64_t((shape.repeats - 1) * step + in_last));
    for (int64_t r = 0; r < shape.repeats; ++r, to += step) {
        T lanes[kMaximumLanes];
        from.read(r, shape.count(r), reinterpret_cast<uint8_t *>(lanes));
        for (int block = 0; block * width < shape.count(r); ++block) {
            T level[width];
            int count = 0, best = -1;
            for (int k = 0; k < width; ++k) {
                const int lane = block * width + k;
                const bool on = lane < shape.count(r) && i.mask.has(r, lane, shape.lanes);
                level[k] = on ? lanes[lane] : T(0);
                if (on && (best < 0 || exceeds(level[k], level[best], largest))) best = k;
                count += on;
            }
            if (count) to[block] = sums ? tree_sum(level, width, holds) : level[best];
        }
    }
}

template <class T> void add_pairs(Core &core, const VectorInstruction &i) {
    const Shape shape(i, sizeof(T));
    if (shape.empty()) return;
    const LaneOperand from = shape.source(core, i.src0, sizeof(T));
    const bool holds = holds_numbers(core, type_of<T>());
    const int64_t step = int64_t(i.dst.repeat_stride) * (kBytesOfRepeat / 2 / int64_t(sizeof(T)));
    T *to = core.local_as<T>(Space::UB, i.dst.address,
                             uint64_t((shape.repeats - 1) * step + (shape.tail + 1) / 2));
    for (int64_t r = 0; r < shape.repeats; ++r, to += step) {
        T level[kMaximumLanes];
        gather(from, i, shape, r, T(0), level);
        add_neighbours(level, shape.lanes / 2);
        round_level(level, shape.lanes / 2, holds);
        for (int pair = 0; 2 * pair < shape.count(r); ++pair)
            if (i.mask.has(r, 2 * pair, shape.lanes) || i.mask.has(r, 2 * pair + 1, shape.lanes))
                to[pair] = level[pair];
    }
}

using Reduced = Numbers;

} // namespace

void execute_reduction(Core &core, const VectorInstruction &i) {
    with_type_of(core, instr_name(i.instr), i.type, Reduced(), [&](auto tag) {
        if (i.instr == Instr::VCADD)
            sum_repeats<decltype(tag)>(core, i);
        else
            extreme_repeats<decltype(tag)>(core, i);
    });
}

void execute_block_reduction(Core &core, const VectorInstruction &i) {
    with_type_of(core, instr_name(i.instr), i.type, Types<float, half>(),
                 [&](auto tag) { reduce_blocks<decltype(tag)>(core, i); });
}

void execute_pair_sums(Core &core, const VectorInstruction &i) {
    with_type_of(core, instr_name(i.instr), i.type, Types<float, half>(),
                 [&](auto tag) { add_pairs<decltype(tag)>(core, i); });
}

} // namespace insight_trace::engine
