// Element by element: one tile and a scalar in, one tile out.
#include "elementwise.hpp"

#include <algorithm>

namespace insight_trace::engine {

TILE_OP_BODY(TADDS) {
    with_scalar(core, operands, "TADDS", Instr::VADDS, Numbers(),
                [](auto a, auto b) { return wrap_add(a, b); });
}
TILE_OP_BODY(TMULS) {
    with_scalar(core, operands, "TMULS", Instr::VMULS, Numbers(),
                [](auto a, auto b) { return wrap_mul(a, b); });
}
TILE_OP_BODY(TMAXS) {
    with_scalar(core, operands, "TMAXS", Instr::VMAXS, Numbers(),
                [](auto a, auto b) { return larger(a, b); });
}
TILE_OP_BODY(TMINS) {
    with_scalar(core, operands, "TMINS", Instr::VMINS, Numbers(),
                [](auto a, auto b) { return smaller(a, b); });
}

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
    with_scalar(core, operands, "TSUBS", Instr::VADDS, Numbers(), [](auto a, auto b) {
        using T = decltype(a);
        if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
            return wrap_add(a, negated(b));
        else
            return wrap_sub(a, b);
    });
}
// A product with -1.
TILE_OP_BODY(TNEG) {
    Operand list[3] = {operands[0], operands[1], {}};
    list[2].kind = Operand::Scalar;
    list[2].scalar = {~0ull, Type::I64};
    with_scalar(core, {list, 3}, "TNEG", Instr::VMULS, Numbers(),
                [](auto a, auto b) { return wrap_mul(a, b); });
}

} // namespace insight_trace::engine
