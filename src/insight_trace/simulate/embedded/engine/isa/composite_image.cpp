// Feature maps and filters in another order.
#include <vector>

#include "isa/composites.hpp"
#include "ops/steps.hpp"

namespace insight_trace::engine {

namespace {

// Elements in nested loops: extent, step in the result, step in the source, from the outermost on.
struct Loop {
    int64_t extent, to, from;
};
template <class T> void reorder(T *to, const T *from, const Loop *loop, const Loop *end) {
    for (int64_t i = 0; i < loop->extent; ++i)
        if (loop + 1 == end)
            to[i * loop->to] = from[i * loop->from];
        else
            reorder(to + i * loop->to, from + i * loop->from, loop + 1, end);
}

} // namespace

// Feature maps and filters (pto/common/forms/convolution.hpp): where to begin on both sides, then the loops.
void reorder_image(Core &core, const Operands &operands) {
    const TileRef &dst = operands[0].tile, &src = operands[1].tile;
    std::vector<Loop> loops;
    for (uint32_t i = 5; i + 2 < operands.count; i += 3)
        loops.push_back({operands[i].option, operands[i + 1].option, operands[i + 2].option});
    int64_t count = 1, last_to = operands[3].option, last_from = operands[4].option;
    for (const Loop &loop : loops) {
        count *= loop.extent;
        last_to += (loop.extent - 1) * loop.to;
        last_from += (loop.extent - 1) * loop.from;
    }
    const bool zeros = operands[4].option < 0; // kZero
    if (last_to >= dst.cols)
        core.kernel_error("TTRANS: %lld elements of %d do not fit a result of %d", (long long)count, src.cols,
                          dst.cols);
    if (core.computes)
        with_bits(src.type, [&](auto tag) {
            using T = decltype(tag);
            T *to = core.local_as<T>(dst.space, dst.address, uint64_t(dst.cols));
            const T zero{};
            const T *from = zeros ? &zero : core.local_as<T>(src.space, src.address, uint64_t(last_from + 1));
            reorder(to + operands[3].option, zeros ? from : from + operands[4].option, loops.data(),
                    loops.data() + loops.size());
        });
    const int64_t boxes = ceil_div(count, int64_t(16) * per_block(src.type));
    for (int64_t first = 0; first < boxes; first += kMostRepeats) {
        const int repeat = static_cast<int>(std::min<int64_t>(kMostRepeats, boxes - first));
        const uint64_t places[8] = {src.address};
        for (int i = 0; i < (type_size(src.type) == 1 ? 8 : 4); ++i) set_address_register(core, i, places);
        // somewhere in both: the loops of the library are not followed one by one
        core.also(kWrites, Space::UB, src.type, whole_of(dst), false);
        core.also(kReads, Space::UB, src.type, whole_of(src), false);
        core.vector(issued_only(Instr::VNCHWCONV), src.type, repeat,
                    int64_t(repeat) * 16 * per_block(src.type), VectorOperand(dst.address, 1).elsewhere(),
                    VectorOperand(src.address, 1).elsewhere());
    }
}

} // namespace insight_trace::engine
