// Element by element: one tile and a scalar in, one tile out.
#include "elementwise.hpp"

#include <algorithm>

namespace insight_trace::engine {

TILE_OP_BODY(TADDS) { with_scalar(core, operands, "TADDS", Instr::VADDS); }
TILE_OP_BODY(TMULS) { with_scalar(core, operands, "TMULS", Instr::VMULS); }
TILE_OP_BODY(TMAXS) { with_scalar(core, operands, "TMAXS", Instr::VMAXS); }
TILE_OP_BODY(TMINS) { with_scalar(core, operands, "TMINS", Instr::VMINS); }

// The library hands the instruction that adds the negated scalar, and negates it as a float.
template <class T> T negated(T value) {
    if constexpr (std::is_integral_v<T>) {
        float negative = -static_cast<float>(value);
        if (negative >= -static_cast<float>(std::numeric_limits<T>::min())) // 2^31 from the least value
            return std::numeric_limits<T>::max();
        return static_cast<T>(negative);
    } else
        return -value;
}
TILE_OP_BODY(TSUBS) {
    const TileRef &dst = tile_operand(core, "TSUBS", operands, 0);
    Operand list[3] = {operands[0], operands[1], operands[2]};
    list[2].kind = Operand::Scalar;
    with_type(dst.type, [&](auto tag) {
        using T = decltype(tag);
        const T value = scalar_as<T>(operands[2]);
        if constexpr (std::is_integral_v<T> && !std::is_signed_v<T>)
            list[2].scalar = {bits_of(wrap_sub(T(0), value)), dst.type};
        else
            list[2].scalar = {bits_of(T(negated(value))), dst.type};
    });
    with_scalar(core, {list, 3}, "TSUBS", Instr::VADDS);
}
// A product with -1.
TILE_OP_BODY(TNEG) {
    Operand list[3] = {operands[0], operands[1], {}};
    list[2].kind = Operand::Scalar;
    list[2].scalar = {~0ull, Type::I64};
    with_scalar(core, {list, 3}, "TNEG", Instr::VMULS);
}

} // namespace insight_trace::engine
