#include "isa/scalar_unit.hpp"

#include <algorithm>
#include <cstring>

#include "elements.hpp"
#include "isa/vector_unit.hpp"

namespace insight_trace::engine {

static uint8_t *place_of(Core &core, Space space, uint64_t address, int bytes, Role role) {
    return space == Space::GM ? core.global(address, uint64_t(bytes), role)
                              : core.local(space, address, uint64_t(bytes));
}

uint64_t scalar_load(Core &core, uint64_t address, int bytes, Space space) {
    const bool far = space == Space::GM;
    core.scalar_access(Instr::LD_XD_XN_IMM, space, address, bytes,
                       far ? core.parameters.scalar_load_gm : core.parameters.scalar_load_ub);
    uint64_t value = 0;
    if (core.computes) memcpy(&value, place_of(core, space, address, bytes, kReads), size_t(bytes));
    return value;
}

static void store(Core &core, bool holds, uint64_t address, uint64_t value, int bytes, Space space) {
    const bool far = space == Space::GM;
    core.scalar_access(Instr::ST_XD_XN_IMM, space, address, bytes,
                       far ? core.parameters.scalar_store_gm : core.parameters.scalar_store_ub);
    if (core.computes && holds) memcpy(place_of(core, space, address, bytes, kWrites), &value, size_t(bytes));
}

void scalar_store(Core &core, uint64_t address, uint64_t value, int bytes, Space space) {
    store(core, true, address, value, bytes, space);
}

void scalar_store_if(Core &core, bool holds, uint64_t address, uint64_t value, int bytes) {
    store(core, holds, address, value, bytes, Space::UB);
}

uint64_t spread_value(Core &core, uint64_t address, int bytes) {
    uint64_t value = 0;
    if (core.computes) memcpy(&value, core.local(Space::UB, address, uint64_t(bytes)), size_t(bytes));
    return value;
}

uint64_t scalar_result(Core &core, Instr instr, Type type, uint64_t a, uint64_t b) {
    const LaneOp op = arithmetic(instr, type);
    if (!op) core.unsupported("%s of %s elements on the scalar unit", instr_name(instr), type_name(type));
    uint64_t result = 0;
    if (core.computes) op(&result, &a, &b, 1);
    return result;
}

void load_compare_mask(Core &core, uint32_t address) {
    if (core.computes) memcpy(&core.spr_of(Spr::CMPMASK_LOW), core.local(Space::UB, address, 16), 16);
    core.set_register(PipeId::V, address);
}

void set_address_register(Core &core, int which, const uint64_t *places) {
    std::copy_n(places, 8, core.va.begin() + 8 * which);
    if (core.silent || core.register_based()) return;
    const int64_t cost = core.parameters.register_write;
    Record r = core.record(Instr::MOVEVA, PipeId::V, Form::Plain);
    r.a = places[0];
    core.clock.issue(PipeId::V, r, {cost, cost, 0, Stall::None}, core.at);
}

int64_t kept_count(Core &core) {
    core.scalar(Instr::MOV_XD_SPR, 0, 1000);
    return core.computes ? static_cast<int64_t>(core.spr_of(Spr::RSVD_CNT)) : 0;
}

uint64_t bits_of_number(Type type, double number) {
    return with_type(type, [&](auto tag) {
        using T = decltype(tag);
        uint64_t bits = 0;
        if constexpr (is_real<T>) {
            const T value = T(float(number));
            memcpy(&bits, static_cast<const void *>(&value), sizeof value);
        } else {
            bits = number < 0 ? static_cast<uint64_t>(static_cast<int64_t>(number))
                              : static_cast<uint64_t>(number);
        }
        return sizeof(T) == 8 ? bits : bits & ((1ull << 8 * sizeof(T)) - 1);
    });
}

double number_of_bits(Type type, uint64_t bits) {
    return with_type(type, [&](auto tag) {
        decltype(tag) value;
        memcpy(static_cast<void *>(&value), &bits, sizeof value);
        if constexpr (is_real<decltype(tag)>)
            return double(float(value));
        else
            return static_cast<double>(value);
    });
}

uint64_t negated_bits(Type type, uint64_t bits) {
    return with_type(type, [&](auto tag) -> uint64_t {
        using T = decltype(tag);
        T value;
        memcpy(static_cast<void *>(&value), &bits, sizeof value);
        if constexpr (is_real<T>) return bits_of_number(type, -double(float(value)));
        const float negative = -static_cast<float>(value);
        const bool past =
            negative >= -static_cast<float>(std::numeric_limits<T>::min()); // 2^31 from the least
        const T result = past ? std::numeric_limits<T>::max() : static_cast<T>(negative);
        return bits_of_number(type, static_cast<double>(result));
    });
}

uint64_t scalar_bits(const Operand &scalar, Type type) {
    return with_type(type, [&](auto tag) {
        const auto value = scalar_as<decltype(tag)>(scalar);
        uint64_t bits = 0;
        memcpy(&bits, static_cast<const void *>(&value), sizeof value);
        return bits;
    });
}

} // namespace insight_trace::engine
