// Loads and stores of vector registers: distributions, blocks apart, any address, by numbers.
#include "insight_trace/register_forms.hpp"
#include "isa/register_unit.hpp"
#include "scalar_memory.hpp"

namespace insight_trace::engine {

namespace {

constexpr int kBlock = 32, kBlocks = kRegister / kBlock;

template <class To, class From> void widen(uint8_t *to, const uint8_t *from) {
    for (int i = 0; i < kRegister / int(sizeof(To)); ++i) {
        From element;
        memcpy(&element, from + i * int(sizeof(From)), sizeof element);
        const To wide = element;
        memcpy(to + i * int(sizeof(To)), &wide, sizeof wide);
    }
}
template <class T> void spread(uint8_t *to, const uint8_t *from) {
    for (int at = 0; at < kRegister; at += int(sizeof(T))) memcpy(to + at, from, sizeof(T));
}
// Each element `times` times, one after the other.
template <class T> void repeat(uint8_t *to, const uint8_t *from, int times) {
    for (int i = 0; i < kRegister / int(sizeof(T)); ++i)
        memcpy(to + i * int(sizeof(T)), from + i / times * int(sizeof(T)), sizeof(T));
}
template <class T> void every_second(uint8_t *to, const uint8_t *from, int first) {
    for (int i = 0; i < kRegister / int(sizeof(T)); ++i)
        memcpy(to + i * int(sizeof(T)), from + (2 * i + first) * int(sizeof(T)), sizeof(T));
}

void note_place(const RegisterCall &call) { call.core.at = site_of(call.caller); }

// Bytes of a run up to the last lane that is on, and whether all of them are.
struct Stored {
    int lanes;
    bool all;
};
Stored stored_lanes(const Predicate &mask, int size) {
    const int first = first_lanes(mask, size);
    if (first >= 0) return {first, true};
    int last = kRegister / size - 1;
    while (last >= 0 && !is_on(mask, last * size)) --last;
    return {last + 1, false};
}

// The low `to` bytes of each element of `from` bytes, side by side.
void store_packed(const RegisterCall &call, int from, int to) {
    const Stored stored = stored_lanes(*call.mask, from);
    if (!stored.lanes) return;
    uint8_t *place = ub_bytes(call, kWrites, call.number, stored.lanes * to, stored.all);
    if (!call.core.computes) return;
    if (stored.all && from == to) {
        memcpy(place, call.dst, size_t(stored.lanes * to));
        return;
    }
    for (int i = 0; i < stored.lanes; ++i)
        if (stored.all || is_on(*call.mask, i * from))
            memcpy(place + i * to, call.dst + i * from, size_t(to));
}

// A lane that is on stores its element of both registers. The vendor's page of the store says that it ignores
// the mask; its 64-bit tile ops, verified on a board, keep what lies behind their rows only with it.
template <class T> void store_alternating(const RegisterCall &call) {
    constexpr int size = sizeof(T);
    const Stored stored = stored_lanes(*call.mask, size);
    if (!stored.lanes) return;
    uint8_t *place = ub_bytes(call, kWrites, call.number, 2 * stored.lanes * size, stored.all);
    if (!call.core.computes) return;
    for (int i = 0; i < stored.lanes; ++i) {
        if (!stored.all && !is_on(*call.mask, i * size)) continue;
        memcpy(place + 2 * i * size, call.dst + i * size, size);
        memcpy(place + (2 * i + 1) * size, call.a + i * size, size);
    }
}

int load_bytes(DistLoad dist) {
    switch (dist) {
    case DistLoad::BRC_B8:
        return 1;
    case DistLoad::BRC_B16:
        return 2;
    case DistLoad::BRC_B32:
        return 4;
    case DistLoad::US:
    case DistLoad::US_B8:
    case DistLoad::US_B16:
    case DistLoad::UNPK_B8:
    case DistLoad::UNPK_B16:
    case DistLoad::UNPK_B32:
        return kRegister / 2;
    case DistLoad::UNPK4_B8:
        return kRegister / 4;
    case DistLoad::BLK:
    case DistLoad::E2B_B32:
        return kBlock;
    case DistLoad::E2B_B16:
        return kBlock / 2;
    case DistLoad::NORM:
        return kRegister;
    default:
        return 2 * kRegister;
    }
}

} // namespace

void register_load(const RegisterCall &call) {
    const auto dist = static_cast<DistLoad>(call.option(0));
    const uint8_t *from = ub_bytes(call, kReads, call.number, load_bytes(dist));
    if (!call.core.computes) return;
    uint8_t *to = call.dst, *second = const_cast<uint8_t *>(call.a);
    switch (dist) {
    case DistLoad::NORM:
        memcpy(to, from, kRegister);
        return;
    case DistLoad::BRC_B8:
        return spread<uint8_t>(to, from);
    case DistLoad::BRC_B16:
        return spread<uint16_t>(to, from);
    case DistLoad::BRC_B32:
        return spread<uint32_t>(to, from);
    case DistLoad::US_B8:
        return repeat<uint8_t>(to, from, 2);
    case DistLoad::US_B16:
        return repeat<uint16_t>(to, from, 2);
    case DistLoad::DS_B8:
        return every_second<uint8_t>(to, from, 0);
    case DistLoad::DS_B16:
        return every_second<uint16_t>(to, from, 0);
    case DistLoad::UNPK_B8:
        return widen<uint16_t, uint8_t>(to, from);
    case DistLoad::UNPK_B16:
        return widen<uint32_t, uint16_t>(to, from);
    case DistLoad::UNPK_B32:
        return widen<uint64_t, uint32_t>(to, from);
    case DistLoad::UNPK4_B8:
        return widen<uint32_t, uint8_t>(to, from);
    case DistLoad::BLK:
        for (int i = 0; i < kBlocks; ++i) memcpy(to + i * kBlock, from, kBlock);
        return;
    case DistLoad::E2B_B16:
        return repeat<uint16_t>(to, from, kBlock / 2);
    case DistLoad::E2B_B32:
        return repeat<uint32_t>(to, from, kBlock / 4);
    case DistLoad::DINTLV_B8:
        every_second<uint8_t>(to, from, 0);
        return every_second<uint8_t>(second, from, 1);
    case DistLoad::DINTLV_B16:
        every_second<uint16_t>(to, from, 0);
        return every_second<uint16_t>(second, from, 1);
    case DistLoad::DINTLV_B32:
        every_second<uint32_t>(to, from, 0);
        return every_second<uint32_t>(second, from, 1);
    case DistLoad::BDINTLV:
        for (int i = 0; i < kBlocks; ++i) {
            memcpy(to + i * kBlock, from + 2 * i * kBlock, kBlock);
            memcpy(second + i * kBlock, from + (2 * i + 1) * kBlock, kBlock);
        }
        return;
    default:
        call.unsupported("this distribution of a load");
    }
}

void register_store(const RegisterCall &call) {
    switch (static_cast<DistVST>(call.option(0))) {
    case DistVST::DIST_NORM_B8:
        return store_packed(call, 1, 1);
    case DistVST::DIST_NORM_B16:
        return store_packed(call, 2, 2);
    case DistVST::DIST_NORM_B32:
        return store_packed(call, 4, 4);
    case DistVST::DIST_PK_B16:
        return store_packed(call, 2, 1);
    case DistVST::DIST_PK_B32:
        return store_packed(call, 4, 2);
    case DistVST::DIST_PK_B64:
        return store_packed(call, 8, 4);
    case DistVST::DIST_PK4_B32:
        return store_packed(call, 4, 1);
    case DistVST::DIST_ONEPT_B8:
    case DistVST::DIST_ONEPT_B16:
    case DistVST::DIST_ONEPT_B32: { // whatever the mask says
        const int size = 1 << (call.option(0) - static_cast<int>(DistVST::DIST_ONEPT_B8));
        uint8_t *place = ub_bytes(call, kWrites, call.number, size);
        if (call.core.computes) memcpy(place, call.dst, size_t(size));
        return;
    }
    case DistVST::DIST_INTLV_B8:
        return store_alternating<uint8_t>(call);
    case DistVST::DIST_INTLV_B16:
        return store_alternating<uint16_t>(call);
    case DistVST::DIST_INTLV_B32:
        return store_alternating<uint32_t>(call);
    default:
        call.unsupported("this distribution of a store");
    }
}

// Blocks of which no lane is on are left out.
static int64_t block_step(const RegisterCall &call) {
    return int64_t(call.option(0) | call.option(1) << 8) * kBlock;
}
static bool block_is_on(const Predicate &mask, int block) {
    return mask.bits[block / 2] >> (block % 2 * 32) & 0xffffffffu;
}

void register_block_store(const RegisterCall &call) {
    const int size = call.size();
    for (int block = 0; block < kBlocks; ++block) {
        if (!block_is_on(*call.mask, block)) continue;
        uint8_t *place = ub_bytes(call, kWrites, call.number + uint64_t(block * block_step(call)), kBlock);
        if (call.core.computes)
            for (int at = 0; at < kBlock; at += size)
                if (is_on(*call.mask, block * kBlock + at))
                    memcpy(place + at, call.dst + block * kBlock + at, size_t(size));
    }
}

void register_block_load(const RegisterCall &call) {
    uint8_t result[kRegister] = {};
    for (int block = 0; block < kBlocks; ++block) {
        if (!block_is_on(*call.mask, block)) continue;
        const uint8_t *place =
            ub_bytes(call, kReads, call.number + uint64_t(block * block_step(call)), kBlock);
        if (call.core.computes) memcpy(result + block * kBlock, place, kBlock);
    }
    write_lanes(call, result);
}

// --- any address. A load needs what vldas put into the alignment register; here the bytes are read at once.
void register_prepared_load(const RegisterCall &call) {
    auto *state = reinterpret_cast<AlignRegister *>(call.dst);
    state->end = call.core.offset_of(Space::UB, call.number);
    state->count = 0;
}

void register_unaligned_load(const RegisterCall &call) {
    const uint8_t *from = ub_bytes(call, kReads, call.number, kRegister);
    if (call.core.computes) memcpy(call.dst, from, kRegister);
}

namespace {

void flush(const RegisterCall &call, AlignRegister &state) {
    if (!state.count) return;
    uint8_t *place = ub_bytes(call, kWrites, state.end - state.count, state.count);
    if (call.core.computes) memcpy(place, state.bytes, state.count);
    state.count = 0;
}

// Whole blocks go to memory, the rest stays in the alignment register.
void store_anywhere(const RegisterCall &call, AlignRegister &state, uint64_t address, int64_t bytes) {
    const uint64_t begin = call.core.offset_of(Space::UB, address);
    if (state.count && state.end != begin) {
        note_place(call);
        call.core.kernel_error(
            "a store at 0x%llx of UB goes on from 0x%llx: what the alignment register holds "
            "was not flushed (vstas, vstar)",
            (unsigned long long)begin, (unsigned long long)state.end);
    }
    if (bytes > kRegister) bytes = kRegister;
    uint8_t all[kRegister + kBlock];
    memcpy(all, state.bytes, state.count);
    memcpy(all + state.count, call.a, size_t(bytes));
    const uint64_t from = begin - state.count, end = begin + uint64_t(bytes), whole = end / kBlock * kBlock;
    if (whole > from) {
        uint8_t *place = ub_bytes(call, kWrites, from, int64_t(whole - from));
        if (call.core.computes) memcpy(place, all, whole - from);
        state.count = uint32_t(end - whole);
        memcpy(state.bytes, all + (whole - from), state.count);
    } else {
        state.count = uint32_t(end - from);
        memcpy(state.bytes, all, state.count);
    }
    state.end = end;
}

} // namespace

void register_unaligned_store(const RegisterCall &call) {
    const auto *values = reinterpret_cast<const uint64_t *>(call.number);
    store_anywhere(call, *reinterpret_cast<AlignRegister *>(call.dst), values[0],
                   int64_t(values[1]) * call.size());
}

void register_squeezed_store(const RegisterCall &call) {
    uint64_t &stored = call.core.spr_of(Spr::AR);
    const uint64_t kept = call.core.spr_of(Spr::SQZN);
    store_anywhere(call, *reinterpret_cast<AlignRegister *>(call.dst), call.number + stored, int64_t(kept));
    stored += kept;
}

void register_flush(const RegisterCall &call) { flush(call, *reinterpret_cast<AlignRegister *>(call.dst)); }

// --- by numbers
namespace {

uint64_t index_at(const RegisterCall &call, int lane) {
    switch (type_size(call.word.from)) {
    case 1:
        return call.a[lane];
    case 2:
        return reinterpret_cast<const uint16_t *>(call.a)[lane];
    case 8:
        return reinterpret_cast<const uint64_t *>(call.a)[lane];
    default:
        return reinterpret_cast<const uint32_t *>(call.a)[lane];
    }
}

// Bytes around all elements that the lanes name, and a call for each lane.
template <class Body>
void each_place(const RegisterCall &call, Role role, int lane_size, int element, Body &&body) {
    uint64_t low = ~0ull, high = 0;
    for (int lane = 0; lane < kRegister / lane_size; ++lane) {
        if (!is_on(*call.mask, lane * lane_size)) continue;
        const uint64_t index = index_at(call, lane);
        low = std::min(low, index);
        high = std::max(high, index);
    }
    if (low > high) return;
    const uint64_t first = call.number + low * uint64_t(element);
    uint8_t *place = ub_bytes(call, role, first, int64_t(high - low + 1) * element, low == high);
    for (int lane = 0; lane < kRegister / lane_size; ++lane)
        if (is_on(*call.mask, lane * lane_size))
            body(lane, place + (index_at(call, lane) - low) * uint64_t(element));
}

} // namespace

// A lane is as wide as the wider of element and number: bytes become halfwords.
void register_gather(const RegisterCall &call) {
    if (!call.core.computes) return; // where it reads, the data say
    const int element = call.option(0), lane = std::max(type_size(call.word.from), element);
    uint8_t result[kRegister] = {};
    each_place(call, kReads, lane, element,
               [&](int i, const uint8_t *place) { memcpy(result + i * lane, place, size_t(element)); });
    memcpy(call.dst, result, kRegister);
}

void register_scatter(const RegisterCall &call) {
    const int element = call.option(0);
    if (!call.core.computes) return;
    const int lane = std::max(type_size(call.word.from), element);
    each_place(call, kWrites, lane, element,
               [&](int i, uint8_t *place) { memcpy(place, call.dst + i * lane, size_t(element)); });
}

// Eight blocks, by their distance in bytes.
void register_block_gather(const RegisterCall &call) {
    if (!call.core.computes) return;
    uint8_t result[kRegister] = {};
    for (int block = 0; block < kBlocks; ++block)
        if (block_is_on(*call.mask, block))
            memcpy(result + block * kBlock,
                   ub_bytes(call, kReads, call.number + index_at(call, block), kBlock), kBlock);
    write_lanes(call, result);
}

// --- predicates and special registers
void register_predicate_load(const RegisterCall &call) {
    const auto dist = static_cast<Dist>(call.option(0));
    const int bytes = dist == Dist::DIST_US ? 16 : dist == Dist::DIST_DS ? 64 : 32;
    const uint8_t *from = ub_bytes(call, kReads, call.number, bytes);
    if (!call.core.computes) return;
    Predicate result{};
    for (int i = 0; i < kRegister; ++i) {
        const int bit = dist == Dist::DIST_US ? i / 2 : dist == Dist::DIST_DS ? 2 * i : i;
        if (from[bit / 8] >> (bit % 8) & 1) turn_on(result, i);
    }
    memcpy(call.dst, &result, sizeof result);
}

void register_predicate_store(const RegisterCall &call) {
    const auto dist = static_cast<Dist>(call.option(0));
    const bool packs = dist == Dist::DIST_PK;
    uint8_t *to = ub_bytes(call, kWrites, call.number, packs ? 16 : 32);
    if (!call.core.computes) return;
    const auto &from = *reinterpret_cast<const Predicate *>(call.dst);
    if (!packs) {
        memcpy(to, &from, 32);
        return;
    }
    uint8_t bits[16] = {};
    for (int i = 0; i < kRegister / 2; ++i)
        if (is_on(from, 2 * i)) bits[i / 8] = uint8_t(bits[i / 8] | 1 << (i % 8));
    memcpy(to, bits, sizeof bits);
}

void register_register_store(const RegisterCall &call) {
    uint8_t *to = ub_bytes(call, kWrites, call.number, 4);
    const auto value = static_cast<uint32_t>(call.core.spr_of(Spr::AR));
    if (call.core.computes) memcpy(to, &value, sizeof value);
}

void register_register_clear(const RegisterCall &call) { call.core.spr_of(Spr::AR) = 0; }

void register_memory_barrier(const RegisterCall &) {} // loads and stores of a function are in order here

} // namespace insight_trace::engine
