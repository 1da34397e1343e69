// Instructions that move elements to other places: spreading, gathering, keeping some, turning, sorting.
#include <cstring>
#include <vector>

#include "elements.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

namespace {

uint64_t block_place(const VectorOperand &o, int64_t repeat, int64_t block) {
    return o.address + uint64_t((repeat * o.repeat_stride + block * o.block_stride) * kBytesOfBlock);
}

template <class T> void spread_blocks(Core &core, const VectorInstruction &i) {
    // whole repeats are read; what lies past the end of the memory is nobody's
    const int64_t room = (int64_t(core.space_size(Space::UB)) - int64_t(i.src0.address)) / int64_t(sizeof(T));
    const int64_t there = i.src0.address >= kRegisterFile ? i.repeats * kBlocksOfRepeat
                                                          : std::min(i.repeats * kBlocksOfRepeat, room);
    const T *from = core.local_as<T>(Space::UB, i.src0.address, uint64_t(std::max<int64_t>(there, 0)));
    constexpr int width = kBytesOfBlock / int(sizeof(T));
    for (int64_t r = 0; r < i.repeats; ++r) {
        T values[kBlocksOfRepeat] = {};
        const int64_t left = std::clamp<int64_t>(there - r * kBlocksOfRepeat, 0, kBlocksOfRepeat);
        std::copy_n(from + r * kBlocksOfRepeat, left, values);
        for (int b = 0; b < kBlocksOfRepeat; ++b)
            std::fill_n(core.local_as<T>(Space::UB, block_place(i.dst, r, b), width), width, values[b]);
    }
}

// One byte offset of each element from an address on, or with mode 1 its index, of 16 or 32 bits.
template <class T> void gather_elements(Core &core, const VectorInstruction &i) {
    constexpr int lanes = kBytesOfRepeat / int(sizeof(T));
    const int64_t repeats = i.mask.counts ? (i.mask.count + lanes - 1) / lanes : i.repeats;
    const int last = i.mask.counts && i.mask.count < lanes ? int(i.mask.count) - 1 : i.mask.last(lanes);
    if (repeats <= 0 || last < 0) return;
    const int64_t tail = i.mask.counts ? i.mask.count - (repeats - 1) * lanes : last + 1;
    const uint64_t base = offset_in(core, Space::UB, i.number);
    const bool narrow = i.mode == 1 && type_size(i.from) == 2;
    const int64_t unit = i.mode == 1 ? int64_t(sizeof(T)) : 1, wide = narrow ? 2 : 4;
    const uint8_t *places =
        core.local(Space::UB, i.src0.address, uint64_t(((repeats - 1) * lanes + tail) * wide));
    const LaneOperand to(core, i.dst, sizeof(T), repeats, int(tail) - 1);
    const auto room = static_cast<int64_t>(core.space_size(Space::UB));
    for (int64_t r = 0; r < repeats; ++r) {
        const int count = r + 1 < repeats ? last + 1 : int(tail);
        T values[lanes];
        for (int lane = 0; lane < count; ++lane) {
            if (!i.mask.has(r, lane, lanes)) continue;
            uint32_t place = 0;
            memcpy(&place, places + (r * lanes + lane) * wide, size_t(wide));
            const int64_t offset = narrow ? int64_t(place) * unit : int64_t(int32_t(place)) * unit;
            const int64_t at = int64_t(base) + offset;
            if (at < 0 || at + int64_t(sizeof(T)) > room)
                core.kernel_error("VGATHER: element %lld from 0x%llx on lies outside the memory",
                                  (long long)(offset / int64_t(sizeof(T))), (unsigned long long)base);
            memcpy(&values[lane], core.local(Space::UB, uint64_t(at), sizeof(T)), sizeof(T));
        }
        for (int lane = 0; lane < count; ++lane)
            if (i.mask.has(r, lane, lanes)) memcpy(to.at(r, lane), &values[lane], sizeof(T));
    }
}

// Pairs of a score and an index, eight bytes each.
struct Scored {
    uint8_t bytes[8];
};
// Larger keys come first. A negative NaN, which fills up short groups, is the smallest of all.
int64_t key_of(Type type, const Scored &pair) {
    uint32_t bits = 0;
    if (type == Type::F32) {
        memcpy(&bits, pair.bytes, 4);
    } else {
        uint16_t narrow;
        memcpy(&narrow, pair.bytes, 2);
        bits = uint32_t(narrow) << 16;
    }
    if (bits == 0x80000000u) bits = 0; // minus zero equals zero
    const int64_t magnitude = bits & 0x7fffffffu;
    return bits >> 31 ? -magnitude : magnitude;
}

template <class T> void sort_by_score(Core &core, const VectorInstruction &i) {
    constexpr int count = 32;
    const T *scores = core.local_as<T>(Space::UB, i.src0.address, uint64_t(i.repeats * count));
    const auto *indices = core.local_as<uint32_t>(Space::UB, i.src1.address, uint64_t(i.repeats * count));
    auto *to = core.local_as<Scored>(Space::UB, i.dst.address, uint64_t(i.repeats * count));
    for (int64_t r = 0; r < i.repeats; ++r, scores += count, indices += count, to += count) {
        Scored pairs[count];
        for (int k = 0; k < count; ++k) {
            memset(pairs[k].bytes, 0, 4); // of a half the upper bytes are reserved
            memcpy(pairs[k].bytes, &scores[k], sizeof(T));
            memcpy(pairs[k].bytes + 4, &indices[k], 4);
        }
        std::stable_sort(pairs, pairs + count, [](const Scored &a, const Scored &b) {
            return key_of(type_of<T>(), a) > key_of(type_of<T>(), b);
        });
        std::copy_n(pairs, count, to);
    }
}

} // namespace

// A number and those that follow it, or with mode 1 those before it, lane after lane over all repeats.
void execute_sequence(Core &core, const VectorInstruction &i) {
    with_type_of(
        core, "vci", i.type, Types<float, half, int32_t, uint32_t, int16_t, uint16_t>(), [&](auto tag) {
            using T = decltype(tag);
            constexpr int lanes = kBytesOfRepeat / int(sizeof(T));
            const int64_t count = i.mask.counts ? i.mask.count : i.repeats * lanes;
            T *to = core.local_as<T>(Space::UB, i.dst.address, uint64_t(std::max<int64_t>(count, 0)));
            T first;
            memcpy(static_cast<void *>(&first), &i.number, sizeof first);
            for (int64_t lane = 0; lane < count; ++lane) {
                const auto step = static_cast<Wide<T>>(i.mode ? -lane : lane);
                to[lane] = T(wrap_add(Wide<T>(first), step));
            }
        });
}

// VINTLV: elements of two sources in turn. VDINTLV: every second element of one, from the first or, with
// mode 1, from the second on.
void execute_interleaving(Core &core, const VectorInstruction &i) {
    with_bits(i.type, [&](auto tag) {
        using T = decltype(tag);
        const int64_t count = i.mask.counts ? i.mask.count : i.repeats * kBytesOfRepeat / int64_t(sizeof(T));
        if (count <= 0) return;
        const bool joins = i.instr == Instr::VINTLV;
        const int64_t read = joins ? (count + 1) / 2 : 2 * count;
        auto source = [&](const VectorOperand &o) {
            const T *first = core.local_as<T>(Space::UB, o.address, uint64_t(read));
            return std::vector<T>(first, first + read); // the result may lie on it
        };
        const std::vector<T> a = source(i.src0), b = joins ? source(i.src1) : std::vector<T>();
        T *to = core.local_as<T>(Space::UB, i.dst.address, uint64_t(count));
        for (int64_t lane = 0; lane < count; ++lane)
            to[lane] = joins ? (lane % 2 ? b : a)[size_t(lane / 2)] : a[size_t(2 * lane + i.mode)];
    });
}

void execute_block_spread(Core &core, const VectorInstruction &i) {
    if (i.repeats <= 0) return;
    if (type_size(i.type) == 4)
        spread_blocks<uint32_t>(core, i);
    else if (type_size(i.type) == 2)
        spread_blocks<uint16_t>(core, i);
    else
        core.unsupported("vbrcb of %s elements", type_name(i.type));
}

void execute_gather(Core &core, const VectorInstruction &i) {
    const int size = type_size(i.type);
    if (i.mode != 1 && size != 2 && size != 4) core.unsupported("vgather of %s elements", type_name(i.type));
    with_bits(i.type, [&](auto tag) { gather_elements<decltype(tag)>(core, i); });
}

// One offset of each block; no mask. Mode 1, with registers: as many bytes as there are elements.
void execute_block_gather(Core &core, const VectorInstruction &i) {
    if (i.repeats <= 0) return;
    const uint64_t base = offset_in(core, Space::UB, i.number);
    const int64_t bytes = i.mode == 1 ? i.mask.count * type_size(i.type) : i.repeats * kBytesOfRepeat;
    const int64_t blocks = (bytes + kBytesOfBlock - 1) / kBytesOfBlock;
    const auto *offsets = core.local_as<uint32_t>(Space::UB, i.src0.address, uint64_t(blocks));
    for (int64_t first = 0; first < blocks; first += kBlocksOfRepeat) {
        uint8_t kept[kBytesOfRepeat];
        const int64_t count = std::min<int64_t>(kBlocksOfRepeat, blocks - first);
        for (int64_t b = 0; b < count; ++b)
            memcpy(kept + b * kBytesOfBlock, core.local(Space::UB, base + offsets[first + b], kBytesOfBlock),
                   kBytesOfBlock);
        for (int64_t b = 0; b < count; ++b) {
            const auto there = size_t(std::min<int64_t>(kBytesOfBlock, bytes - (first + b) * kBytesOfBlock));
            memcpy(core.local(Space::UB, block_place(i.dst, first / kBlocksOfRepeat, b), there),
                   kept + b * kBytesOfBlock, there);
        }
    }
}

// Elements that a pattern keeps, one after the other over all repeats. In count mode the number of elements
// is that of each repeat; else a repeat is whole, whatever the mask says.
void execute_squeeze(Core &core, const VectorInstruction &i) {
    const int size = type_size(i.type);
    if (size != 2 && size != 4 && !core.register_based())
        core.unsupported("vreducev2 of %s elements", type_name(i.type));
    const int64_t lanes = i.mask.counts ? i.mask.count : kBytesOfRepeat / size;
    uint64_t &kept_count = core.spr[static_cast<size_t>(Spr::RSVD_CNT)];
    kept_count = 0;
    if (i.repeats <= 0 || lanes <= 0) return;
    auto keeps = [&](int64_t lane, const uint8_t *bits) {
        switch (i.mode) {
        case 0:
            return (bits[lane / 8] >> lane % 8 & 1) != 0;
        case 1:
            return lane % 2 == 0;
        case 2:
            return lane % 2 == 1;
        case 7:
            return true;
        default:
            return lane % 4 == i.mode - 3;
        }
    };
    std::vector<uint8_t> kept;
    uint64_t to = i.dst.address;
    for (int64_t r = 0; r < i.repeats; ++r) {
        const uint8_t *bits =
            i.mode == 0
                ? core.local(Space::UB, i.src1.address + uint64_t(r * i.src1.repeat_stride * kBytesOfBlock),
                             uint64_t((lanes + 7) / 8))
                : nullptr;
        kept.clear();
        for (int64_t lane = 0; lane < lanes; ++lane) {
            if (!keeps(lane, bits)) continue;
            const int64_t byte = lane * size;
            const uint8_t *from = core.local(
                Space::UB, block_place(i.src0, r, byte / kBytesOfBlock) + uint64_t(byte % kBytesOfBlock),
                uint64_t(size));
            kept.insert(kept.end(), from, from + size);
        }
        if (!kept.empty()) memcpy(core.local(Space::UB, to, kept.size()), kept.data(), kept.size());
        to += kept.size();
        kept_count += kept.size() / size_t(size);
    }
}

void execute_sort(Core &core, const VectorInstruction &i) {
    if (i.repeats <= 0) return;
    if (i.type == Type::F32)
        sort_by_score<float>(core, i);
    else if (i.type == Type::F16)
        sort_by_score<half>(core, i);
    else
        core.unsupported("vbitsort of %s scores", type_name(i.type));
}

MergeResult merge_sorted(Core &core, Type type, uint64_t dst, const uint64_t (&lists)[4],
                         const int64_t (&lengths)[4], int64_t repeats, int valid, bool stops) {
    MergeResult result;
    if (!core.computes) { // without data all that is there is taken
        std::copy_n(lengths, 4, result.taken);
        return result;
    }
    uint64_t to = dst;
    for (int64_t r = 0; r < repeats; ++r) {
        std::vector<Scored> from[4];
        int64_t total = 0;
        for (int list = 0; list < 4; ++list) {
            if (!(valid >> list & 1) || lengths[list] <= 0) continue;
            const uint64_t place = lists[list] + uint64_t(r * 4 * lengths[list]) * sizeof(Scored);
            const auto *pairs = core.local_as<Scored>(Space::UB, place, uint64_t(lengths[list]));
            from[list].assign(pairs, pairs + lengths[list]);
            total += lengths[list];
        }
        auto value = [&](int list, int64_t at) { return key_of(type, from[list][size_t(at)]); };
        std::vector<Scored> merged;
        int64_t taken[4] = {};
        while (int64_t(merged.size()) < total) {
            int best = -1;
            for (int list = 0; list < 4; ++list)
                if (taken[list] < int64_t(from[list].size()) &&
                    (best < 0 || value(list, taken[list]) > value(best, taken[best])))
                    best = list;
            merged.push_back(from[best][size_t(taken[best]++)]);
            if (stops && taken[best] == int64_t(from[best].size())) break;
        }
        if (!merged.empty())
            memcpy(core.local(Space::UB, to, merged.size() * sizeof(Scored)), merged.data(),
                   merged.size() * sizeof(Scored));
        to += merged.size() * sizeof(Scored);
        result.pairs += int64_t(merged.size());
        for (int list = 0; list < 4; ++list) result.taken[list] = taken[list];
    }
    return result;
}

// 16 blocks at the addresses of two registers, turned. With one repeat the stride still counts once.
void execute_transposition(Core &core, const VectorInstruction &i) {
    const int size = i.mode & 7;
    const bool high_to = i.mode & 8, high_from = i.mode & 16;
    auto place = [&](uint64_t va, int which, int64_t r, int64_t stride) {
        const size_t row = size_t(va) * 8 + size_t(which);
        if (row >= core.va.size()) core.kernel_error("VA%d does not exist", int(row / 8));
        const int64_t steps = i.repeats == 1 ? 1 : r;
        return core.va[row] + uint64_t(steps * stride * kBytesOfBlock);
    };
    for (int64_t r = 0; r < i.repeats; ++r) {
        uint8_t from[16][kBytesOfBlock];
        for (int row = 0; row < 16; ++row)
            memcpy(from[row],
                   core.local(Space::UB, place(i.src0.address, row, r, i.src0.repeat_stride), kBytesOfBlock),
                   kBytesOfBlock);
        for (int row = 0; row < 16; ++row) {
            uint8_t *to =
                core.local(Space::UB, place(i.dst.address, row, r, i.dst.repeat_stride), kBytesOfBlock);
            if (size == 1) {
                for (int k = 0; k < 16; ++k) to[k + 16 * high_to] = from[k][row + 16 * high_from];
            } else if (size == 2) {
                for (int k = 0; k < 16; ++k) memcpy(to + 2 * k, from[k] + 2 * row, 2);
            } else { // a row of sixteen in two blocks
                for (int k = 0; k < 8; ++k) memcpy(to + 4 * k, from[8 * (row % 2) + k] + 4 * (row / 2), 4);
            }
        }
    }
}

void execute_square_transposition(Core &core, const VectorInstruction &i) {
    const auto *from = core.local_as<uint16_t>(Space::UB, i.src0.address, 256);
    auto *to = core.local_as<uint16_t>(Space::UB, i.dst.address, 256);
    uint16_t turned[256];
    for (int row = 0; row < 16; ++row)
        for (int col = 0; col < 16; ++col) turned[row * 16 + col] = from[col * 16 + row];
    std::copy_n(turned, 256, to);
}

} // namespace insight_trace::engine
