// Counts of bytes, and random numbers: what only the 950 has as ops.
#include <array>

#include "isa/composites.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

void only_with_functions(const Core &core) {
    if (!core.register_based()) core.unsupported("%s on this chip", core.op);
}

// Whether the bytes above the counted one are those that were asked for.
bool passes(uint64_t value, int size, int byte, const uint8_t *wanted, int64_t step) {
    for (int above = size - 1, i = 0; above > byte; --above, ++i)
        if ((value >> (8 * above) & 0xff) != wanted[i * step]) return false;
    return true;
}

// Ten (or seven) rounds of Philox 4x32.
std::array<uint32_t, 4> scrambled(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        const uint64_t a = uint64_t(counter[0]) * 0xd2511f53u, b = uint64_t(counter[2]) * 0xcd9e8d57u;
        counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
                   uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return counter;
}

std::array<uint32_t, 4> advanced(std::array<uint32_t, 4> counter, uint32_t by) {
    uint64_t carry = by;
    for (uint32_t &word : counter) {
        carry += word;
        word = uint32_t(carry);
        carry >>= 32;
    }
    return counter;
}

} // namespace

// dst, src, the bytes above that are wanted, which byte: for every row, how many numbers have at most that
// byte.
void count_bytes(Core &core, const Operands &operands) {
    only_with_functions(core);
    const TileRef &dst = tile_operand(core, operands, 0), &src = tile_operand(core, operands, 1),
                  &wanted = tile_operand(core, operands, 2);
    const int byte = static_cast<int>(operands[3].option), size = type_size(src.type);
    require_type(core, dst, Type::U32);
    allow_types(core, src.type, {Type::U16, Type::U32});
    if (byte < 0 || byte >= size)
        core.kernel_error("THISTOGRAM: a %s has no byte %d", type_name(src.type), byte);
    constexpr int64_t kBytes = 256;
    if (core.computes && !is_empty(src))
        with_type_of(core, core.op, src.type, Types<uint16_t, uint32_t>(), [&](auto tag) {
            using T = decltype(tag);
            View<T> in(core, src);
            uint32_t *out =
                core.local_as<uint32_t>(Space::UB, dst.address, uint64_t(src.valid_rows * kBytes));
            // a byte for every row, or the same bytes for all, one below the other
            const bool each = size == 2;
            const uint8_t *bytes = core.local(Space::UB, wanted.address,
                                              uint64_t(each ? src.valid_rows : 2 * int64_t(wanted.cols) + 1));
            for (int64_t r = 0; r < src.valid_rows; ++r) {
                uint32_t counts[kBytes] = {};
                for (int64_t c = 0; c < src.valid_cols; ++c) {
                    const uint64_t value = in.at(r, c);
                    if (passes(value, size, byte, each ? bytes + r : bytes, wanted.cols))
                        ++counts[value >> (8 * byte) & 0xff];
                }
                for (int64_t i = 0, sum = 0; i < kBytes; ++i)
                    out[r * kBytes + i] = uint32_t(sum += counts[i]);
            }
        });
    const int64_t elements = int64_t(src.valid_rows) * src.valid_cols;
    core.vector(issued_only(Instr::VCONV), src.type,
                static_cast<int>(ceil_div(elements, per_repeat(src.type))), elements,
                VectorOperand(dst.address), VectorOperand(src.address));
}

// dst, rounds, two words of key, four words of counter.
void fill_with_random_numbers(Core &core, const Operands &operands) {
    only_with_functions(core);
    const TileRef &dst = tile_operand(core, operands, 0);
    allow_types(core, dst.type, {Type::I32, Type::U32});
    need_plain_rows(core, dst, "destination");
    if (operands.count < 8) core.kernel_error("TRANDOM needs a key and a counter");
    const int rounds = static_cast<int>(operands[1].option);
    std::array<uint32_t, 2> key;
    std::array<uint32_t, 4> counter;
    for (uint32_t i = 0; i < 2; ++i) key[i] = scalar_as<uint32_t>(operands[2 + i]);
    for (uint32_t i = 0; i < 4; ++i) counter[i] = scalar_as<uint32_t>(operands[4 + i]);
    constexpr int64_t kLanes = 64, kEach = 4;
    const int64_t width = dst.valid_cols, loops = ceil_div(width, kLanes * kEach);
    if (core.computes && !is_empty(dst)) {
        View<uint32_t> out(core, dst);
        for (int64_t r = 0; r < dst.valid_rows; ++r)
            for (int64_t loop = 0; loop < loops; ++loop) {
                for (int64_t lane = 0; lane < kLanes; ++lane) {
                    const auto words = scrambled(advanced(counter, uint32_t(lane)), key, rounds);
                    for (int64_t i = 0; i < kEach; ++i) {
                        const int64_t at = (loop * kLanes + lane) * kEach + i;
                        if (at < width) out.at(r, at) = words[size_t(i)];
                    }
                }
                counter = advanced(counter, uint32_t(loop + 1 < loops ? kLanes : (width - 1) % kLanes + 1));
            }
    }
    const int64_t elements = int64_t(dst.valid_rows) * width;
    core.vector(issued_only(Instr::VMUL), Type::U32, static_cast<int>(ceil_div(elements, kLanes)), elements,
                VectorOperand(dst.address));
}

} // namespace insight_trace::engine
