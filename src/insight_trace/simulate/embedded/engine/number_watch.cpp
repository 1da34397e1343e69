#include "number_watch.hpp"

#include <cmath>
#include <sstream>
#include <cstring>

#include "elements.hpp"

namespace insight_trace::engine {

static bool holds_reals(Type type) { return type == Type::F32 || type == Type::F16 || type == Type::BF16; }

static float real_of(Type type, uint64_t bits) {
    if (type == Type::F32) return bits_float(static_cast<uint32_t>(bits));
    if (type == Type::F16) return half_to_float(static_cast<uint16_t>(bits));
    return bf16_to_float(static_cast<uint16_t>(bits));
}

NumberWatch::Seen NumberWatch::look(Core &core, const Operand &operand) {
    Seen seen;
    if (operand.kind == Operand::Scalar && holds_reals(operand.scalar.type)) {
        const float value = real_of(operand.scalar.type, operand.scalar.bits);
        seen.nan = std::isnan(value);
        seen.infinite = std::isinf(value);
    }
    if (operand.kind != Operand::Tile || !holds_reals(operand.tile.type)) return seen;
    const TileRef &tile = operand.tile;
    // only memories of its own: the other core of a cluster says itself what it makes of them
    const bool own = core.identity.cube ? tile.space != Space::UB : tile.space == Space::UB;
    if (!own || tile.space > Space::L0C) return seen;
    auto visit = [&](auto tag) {
        using T = decltype(tag);
        View<T> view(core, tile);
        for (int64_t r = 0; r < tile.valid_rows; ++r)
            for (int64_t c = 0; c < tile.valid_cols; ++c) {
                uint64_t bits = 0;
                const T value = view.at(r, c);
                memcpy(&bits, &value, sizeof value);
                const float number = real_of(tile.type, bits);
                if (std::isfinite(number)) continue;
                const bool nan = std::isnan(number);
                if (nan ? seen.nan : seen.infinite) continue;
                (nan ? seen.nan : seen.infinite) = true;
                int64_t *at = nan ? seen.nan_at : seen.infinite_at;
                at[0] = r;
                at[1] = c;
            }
    };
    if (tile.type == Type::F32)
        visit(uint32_t{});
    else
        visit(uint16_t{});
    return seen;
}

void NumberWatch::before(Core &core, const Operands &operands) {
    before_.clear();
    for (uint32_t i = 0; i < operands.count; ++i) before_.push_back(look(core, operands[i]));
}

void NumberWatch::after(Core &core, Op op, const Operands &operands) {
    if (told_[0] && told_[1]) return;
    bool nan = false, infinite = false;
    for (uint32_t i = 0; i < operands.count; ++i) {
        if (operands[i].kind == Operand::Global) return; // it brings what was there
        nan = nan || before_[i].nan;
        infinite = infinite || before_[i].infinite;
    }
    for (uint32_t i = 0; i < operands.count; ++i) {
        const Seen now = look(core, operands[i]);
        for (bool is_nan : {true, false}) {
            const bool born = is_nan ? now.nan && !nan : now.infinite && !infinite && !nan;
            if (!born || told_[is_nan]) continue;
            told_[is_nan] = true;
            const int64_t *at = is_nan ? now.nan_at : now.infinite_at;
            std::ostringstream line;
            line << "born\t" << is_nan << "\t" << core.rows() - 1 << "\t" << op_names[static_cast<int>(op)]
                 << "\t" << at[0] << "\t" << at[1] << "\n";
            text_ += line.str();
        }
    }
}

} // namespace insight_trace::engine
