// What is force-included before a kernel that compiles against the tile library of a pto-isa checkout: the
// device compiler's own words, types and instructions, then the library's headers as they are.
#pragma once

#define INSIGHT_TRACE_LIBRARY
// The library has an int4b_t of its own, and declares get_block_idx itself as a plain function.
#define int4b_t       insight_trace_int4b_t
#define get_block_idx insight_trace_get_block_idx
#include "insight_trace/device.hpp"
#include "insight_trace/vector_calls.hpp"
#if defined(PTO_NPU_ARCH_A5)
#include "insight_trace/registers.hpp"
#include "insight_trace/units_950.hpp"
#endif
#undef int4b_t
#undef get_block_idx
inline uint32_t get_block_idx() { return static_cast<uint32_t>(insight_trace_get_block_idx()); }

#define __CCE_IS_AICORE__ 1
#define __ssbuf__
#define __simd_vf__
#define __simd_callee__
#define __simt_vf__
#define __simt_callee__
#define __sync_noalias__
#define __check_sync_alias__
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __inout_pipe__(...)
#define __cube__
#define __vector__
#define __mix__(...)
#define __forceinline__ inline
using float16_t = half;
using float32_t = float;

// `[aicore]` stands where C++ has no attribute, so the word goes as soon as the library has defined it. Its
// header of types has two such places itself: in a union, which stands here instead.
#pragma push_macro("__CCE_AICORE__")
#undef __CCE_AICORE__
#define FloatIntUnion insight_trace_FloatIntUnion
#define FloatUnion    insight_trace_FloatUnion
#include <pto/common/type.hpp>
#undef FloatIntUnion
#undef FloatUnion
#undef AICORE
#define AICORE
namespace pto {
template <class T> union FloatIntUnion {
    using UIntegerType = std::conditional_t<sizeof(T) == sizeof(float), uint32_t, uint16_t>;
    UIntegerType i;
    T f;
    constexpr FloatIntUnion() : f(0.0f) {}
    constexpr FloatIntUnion(UIntegerType bits) : i(bits) {}
};
using FloatUnion = FloatIntUnion<float>;
using HalfUnion = FloatIntUnion<half>;
} // namespace pto
// Without address spaces `remove_gm<__gm__ T>` is its own general case: the header is read as host code.
#include <pto/common/memory.hpp>
#include <pto/common/pto_tile.hpp>
#pragma pop_macro("__CCE_AICORE__")

// A tile's address is an offset, and the library dereferences it too: it becomes an address here.
#define TTILE_ASSIGN
namespace pto {
template <class T, class Address> inline void TASSIGN_IMPL(T &object, Address address) {
    if constexpr (is_tile_data_v<T> || is_conv_tile_v<T>) {
        static_assert(std::is_integral_v<Address>, "a tile is placed by a number");
        constexpr auto space = static_cast<insight_trace::Space>(T::Loc);
        auto offset = static_cast<uint64_t>(address);
        // scales belong to a tile of L0, whose address they have by sixteenths
        if constexpr (space == insight_trace::Space::ScaleLeft || space == insight_trace::Space::ScaleRight)
            offset &= 0xffff;
        object.assignData(reinterpret_cast<typename T::TileDType>(insight_trace::address_in(space, offset)));
    } else {
        static_assert(is_global_data_v<T>, "tiles and tensors are placed");
        object.SetAddr(address);
    }
}
} // namespace pto
#include <pto/pto-inst.hpp>
