// How kernels call tile ops. Most ops are rows of ops.def; those with template options stand here.
#pragma once

#include "pto/common/event.hpp"
#include "pto/common/conv_tile.hpp"
#include "pto/common/pto_tile.hpp"

namespace pto {

namespace bundled {

// An accumulator in a phase of its use: the op takes part in the unit flag between cube unit and FIXPIPE.
template <class T> struct InPhase {
    const T &tile;
    uint8_t phase;
};
template <auto phase, class T> InPhase<T> in_phase(const T &tile) {
    return {tile, static_cast<uint8_t>(phase)};
}
template <class T> struct is_in_phase : std::false_type {};
template <class T> struct is_in_phase<InPhase<T>> : std::true_type {};

template <class T> insight_trace::Operand describe(const T &value) {
    using insight_trace::Operand;
    Operand operand{};
    if constexpr (is_in_phase<T>::value) {
        operand = describe(value.tile);
        operand.tile.unit_flag = value.phase;
    } else if constexpr (is_tile<T>::value) {
        operand.kind = Operand::Tile;
        operand.tile = value.ref();
    } else if constexpr (is_conv_tile<T>::value) {
        constexpr int64_t c0 = 32 / int64_t(sizeof(typename T::DType));
        operand.kind = Operand::Tile;
        operand.tile = value.ref(value.elements() / c0, c0);
    } else if constexpr (is_global<T>::value) {
        operand.kind = Operand::Global;
        operand.global = value.ref(type_of<typename T::DType>());
    } else if constexpr (std::is_enum_v<T>) {
        operand.kind = Operand::Option;
        operand.option = static_cast<int64_t>(value);
    } else if constexpr (std::is_same_v<T, double>) {
        operand.kind = Operand::Scalar;
        operand.scalar = {value_bits(static_cast<float>(value)), insight_trace::Type::F32};
    } else {
        operand.kind = Operand::Scalar;
        operand.scalar = {value_bits(value), type_of<T>()};
    }
    return operand;
}

template <class... T> RecordEvent call(insight_trace::Op op, insight_trace::Site at, const T &...values) {
    const insight_trace::Operand operands[] = {describe(values)...};
    insight_trace_op(op, operands, sizeof...(T), at);
    return {at};
}

} // namespace bundled

// Every op takes events behind its operands, waits for them first, and gives back what another event records.
#define PTO_EVENT(n) Op From##n, Op To##n, bool Auto##n, event_t Id##n
#define PTO_AFTER(n) Event<From##n, To##n, Auto##n, Id##n> &event##n
#define PTO_FORM_0(name)
#define PTO_FORM_1(name)                                                                                     \
    template <class A> inline RecordEvent name(const A &a, INSIGHT_TRACE_AT) {                               \
        return bundled::call(insight_trace::Op::name, at, a);                                                \
    }                                                                                                        \
    template <class A, PTO_EVENT(0)> inline RecordEvent name(const A &a, PTO_AFTER(0), INSIGHT_TRACE_AT) {   \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a);                                                \
    }                                                                                                        \
    template <class A, PTO_EVENT(0), PTO_EVENT(1)>                                                           \
    inline RecordEvent name(const A &a, PTO_AFTER(0), PTO_AFTER(1), INSIGHT_TRACE_AT) {                      \
        event0.Wait(at);                                                                                     \
        event1.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a);                                                \
    }
#define PTO_FORM_2(name)                                                                                     \
    template <class A, class B> inline RecordEvent name(const A &a, const B &b, INSIGHT_TRACE_AT) {          \
        return bundled::call(insight_trace::Op::name, at, a, b);                                             \
    }                                                                                                        \
    template <class A, class B, PTO_EVENT(0)>                                                                \
    inline RecordEvent name(const A &a, const B &b, PTO_AFTER(0), INSIGHT_TRACE_AT) {                        \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b);                                             \
    }                                                                                                        \
    template <class A, class B, PTO_EVENT(0), PTO_EVENT(1)>                                                  \
    inline RecordEvent name(const A &a, const B &b, PTO_AFTER(0), PTO_AFTER(1), INSIGHT_TRACE_AT) {          \
        event0.Wait(at);                                                                                     \
        event1.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b);                                             \
    }
#define PTO_FORM_3(name)                                                                                     \
    template <class A, class B, class C>                                                                     \
    inline RecordEvent name(const A &a, const B &b, const C &c, INSIGHT_TRACE_AT) {                          \
        return bundled::call(insight_trace::Op::name, at, a, b, c);                                          \
    }                                                                                                        \
    template <class A, class B, class C, PTO_EVENT(0)>                                                       \
    inline RecordEvent name(const A &a, const B &b, const C &c, PTO_AFTER(0), INSIGHT_TRACE_AT) {            \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c);                                          \
    }                                                                                                        \
    template <class A, class B, class C, PTO_EVENT(0), PTO_EVENT(1)>                                         \
    inline RecordEvent name(const A &a, const B &b, const C &c, PTO_AFTER(0), PTO_AFTER(1),                  \
                            INSIGHT_TRACE_AT) {                                                              \
        event0.Wait(at);                                                                                     \
        event1.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c);                                          \
    }
#define PTO_FORM_4(name)                                                                                     \
    template <class A, class B, class C, class D>                                                            \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, INSIGHT_TRACE_AT) {              \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d);                                       \
    }                                                                                                        \
    template <class A, class B, class C, class D, PTO_EVENT(0)>                                              \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, PTO_AFTER(0),                    \
                            INSIGHT_TRACE_AT) {                                                              \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d);                                       \
    }                                                                                                        \
    template <class A, class B, class C, class D, PTO_EVENT(0), PTO_EVENT(1)>                                \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, PTO_AFTER(0), PTO_AFTER(1),      \
                            INSIGHT_TRACE_AT) {                                                              \
        event0.Wait(at);                                                                                     \
        event1.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d);                                       \
    }
#define PTO_FORM_5(name)                                                                                     \
    template <class A, class B, class C, class D, class E>                                                   \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, const E &e, INSIGHT_TRACE_AT) {  \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d, e);                                    \
    }                                                                                                        \
    template <class A, class B, class C, class D, class E, PTO_EVENT(0)>                                     \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, const E &e, PTO_AFTER(0),        \
                            INSIGHT_TRACE_AT) {                                                              \
        event0.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d, e);                                    \
    }                                                                                                        \
    template <class A, class B, class C, class D, class E, PTO_EVENT(0), PTO_EVENT(1)>                       \
    inline RecordEvent name(const A &a, const B &b, const C &c, const D &d, const E &e, PTO_AFTER(0),        \
                            PTO_AFTER(1), INSIGHT_TRACE_AT) {                                                \
        event0.Wait(at);                                                                                     \
        event1.Wait(at);                                                                                     \
        return bundled::call(insight_trace::Op::name, at, a, b, c, d, e);                                    \
    }
#define TILE_OP(name, one, other, ...) PTO_FORM_##one(name) PTO_FORM_##other(name)
#include "insight_trace/ops.def"
#undef TILE_OP

// Places a tile at a byte offset of its memory, or at another tile's data(); a global tensor at an address.
template <class T, class Address> inline void TASSIGN(T &target, Address address, INSIGHT_TRACE_AT) {
    if constexpr (is_global<T>::value) {
        target.SetAddr((typename T::DType *)address);
    } else {
        const uint64_t value = (uint64_t)address;
        const uint64_t base =
            (uint64_t)insight_trace_local(static_cast<insight_trace::Space>(T::Loc), 0, 1, at);
        // data() gives host addresses; everything below them is an offset already
        target.assign(value >= base && base != 0 && value - base < (1u << 20) ? value - base : value);
    }
}
template <size_t Address, class T> inline void TASSIGN(T &target, INSIGHT_TRACE_AT) {
    TASSIGN(target, Address, at);
}

} // namespace pto

#include "pto/common/forms/transfer.hpp"
#include "pto/common/forms/elementwise.hpp"
#include "pto/common/forms/reduce.hpp"
#include "pto/common/forms/rearrange.hpp"
#include "pto/common/forms/cube.hpp"
#include "pto/common/forms/a5.hpp"
#include "pto/common/forms/way_out.hpp"
#include "pto/common/forms/convolution.hpp"
#include "pto/common/forms/all_cores.hpp"
