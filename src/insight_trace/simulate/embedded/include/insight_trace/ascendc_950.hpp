// What the AscendC library calls on the 950 beside the instructions of registers.hpp and units_950.hpp: the
// device compiler's names for forms, address registers, and what is refused.
#pragma once

#include "insight_trace/registers.hpp"
#include "insight_trace/units_950.hpp"

// The library makes values of these of its own numbers.
using ROUND = insight_trace::Rounding;
using RoundingSaturation = insight_trace::Saturation;
using Mode = insight_trace::Merging;
using Part = insight_trace::Part;
using Part_T = insight_trace::Part;
using HiloPart = insight_trace::Half;
using Pos = insight_trace::Position;
using Order = insight_trace::Direction;
using Post = insight_trace::Post;
using Pat = insight_trace::Pattern;
using Bin = insight_trace::Bins;
using StoreMode = insight_trace::Stored;

// --- address registers: what loops add to a pointer. The device compiler takes the numbers of the loops from
// the loops themselves; here the library hands them over (ascendc.py).
inline vector_address VagCpuSim(uint32_t) { return {0}; }
template <class... More>
inline vector_address VagCpuSim(uint32_t size, uint32_t index, uint32_t stride, More... more) {
    return {size * index * stride + VagCpuSim(size, more...).offset};
}
// What the device compiler would be told.
template <class... Stride> inline vector_address vag_b8(Stride...) { return {0}; }
template <class... Stride> inline vector_address vag_b16(Stride...) { return {0}; }
template <class... Stride> inline vector_address vag_b32(Stride...) { return {0}; }
namespace insight_trace {
template <class P> inline std::decay_t<P> moved(P &&pointer, vector_address by) {
    return reinterpret_cast<std::decay_t<P>>(reinterpret_cast<uint64_t>(pointer) + by.offset);
}
} // namespace insight_trace
template <class R, class P, class D, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_POINTER(P)>
inline void vld(R &&reg, P &&pointer, vector_address by, D dist) {
    vlds(reg, insight_trace::moved(pointer, by), 0, dist);
}
template <class R, class S, class P, class D, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_REGISTERS(S)>
inline void vld(R &&reg, S &&second, P &&pointer, vector_address by, D dist) {
    vlds(reg, second, insight_trace::moved(pointer, by), 0, dist);
}
template <class R, class P, class D, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_POINTER(P)>
inline void vst(R &&reg, P &&pointer, vector_address by, D dist, const vector_bool &mask) {
    vsts(reg, insight_trace::moved(pointer, by), 0, dist, mask);
}
template <class R, class S, class P, class D, INSIGHT_TRACE_REGISTERS(R), INSIGHT_TRACE_REGISTERS(S)>
inline void vst(R &&reg, S &&second, P &&pointer, vector_address by, D dist, const vector_bool &mask) {
    vsts(reg, second, insight_trace::moved(pointer, by), 0, dist, mask);
}
template <class P, class D> inline void pld(vector_bool &dst, P &&pointer, vector_address by, D dist) {
    plds(dst, insight_trace::moved(pointer, by), 0, dist);
}
template <class P, class D> inline void pst(const vector_bool &src, P &&pointer, vector_address by, D dist) {
    psts(src, insight_trace::moved(pointer, by), 0, dist);
}
template <class P> inline void vlda(vector_align &state, P &&pointer, vector_address by) {
    vldas(state, insight_trace::moved(pointer, by));
}
template <class R, class P, INSIGHT_TRACE_REGISTERS(R)>
inline void vldu(R &&reg, vector_align &state, vector_address by, P &&pointer, uint32_t) {
    vldus(reg, state, insight_trace::moved(pointer, by));
}
template <class R, class P, INSIGHT_TRACE_REGISTERS(R)>
inline void vstu(vector_align &state, vector_address by, R &&reg, P &&pointer, insight_trace::Post) {
    vstus(state, by.offset / sizeof(insight_trace::Pointed<P>), reg, pointer, POST_UPDATE);
}
template <class P> inline void vsta(vector_align &state, P &&pointer, vector_address) {
    vstas(state, pointer, 0);
}

// --- other forms of register instructions
inline void pmov(vector_bool &dst, const vector_bool &src) { dst = src; }
template <class P, class D>
inline void plds(vector_bool &dst, P &&pointer, int64_t offset, D dist, insight_trace::Post post) {
    const bool updates = post == insight_trace::Post::Update;
    plds(dst, pointer, updates ? 0 : offset, dist);
    if (updates) pointer = reinterpret_cast<std::decay_t<P>>(reinterpret_cast<uint64_t>(pointer) + offset);
}
template <class P, class D>
inline void psts(const vector_bool &src, P &&pointer, int64_t offset, D dist, insight_trace::Post post) {
    const bool updates = post == insight_trace::Post::Update;
    psts(src, pointer, updates ? 0 : offset, dist);
    if (updates) pointer = reinterpret_cast<std::decay_t<P>>(reinterpret_cast<uint64_t>(pointer) + offset);
}
// A predicate to any address, a bit for each element, behind those of the ones before.
template <class P> inline void pstu(vector_align &state, const vector_bool &src, P &&pointer) {
    constexpr uint32_t size = sizeof(insight_trace::Pointed<P>), bytes = CCE_VL / 8 / size;
    vector_u8 packed;
    __builtin_memset(packed.bytes, 0, sizeof packed.bytes);
    for (uint32_t lane = 0; lane < CCE_VL / size; ++lane)
        packed.bytes[lane / 8] |= uint8_t((src.bits[lane * size / 64] >> (lane * size % 64) & 1) << lane % 8);
    vstus(state, bytes, packed, reinterpret_cast<uint8_t *>(pointer));
    insight_trace::advance(pointer, bytes / size);
}
#define INSIGHT_TRACE_BARRIER(name) constexpr auto name = ::insight_trace::Barrier::SV_ALL;
INSIGHT_TRACE_BARRIER(ST_VLD)
INSIGHT_TRACE_BARRIER(ST_VST)
INSIGHT_TRACE_BARRIER(LD_VST)
#undef INSIGHT_TRACE_BARRIER
struct int4x2_t {
    uint8_t bits;
};
struct hifloat4x2_t {
    uint8_t bits;
};
enum class QuantMode_post : uint64_t { NoConv = 0 };
namespace bisheng::cce {
template <pipe_t pipe> inline void mark_stamp(uint16_t number) {
    ::insight_trace::mark(0x40000000ull | static_cast<uint64_t>(pipe) << 16 | number);
}
} // namespace bisheng::cce
constexpr int32_t get_repeat_ceiling(int32_t whole, int32_t part) { return (whole + part - 1) / part; }
inline int64_t get_ar(INSIGHT_TRACE_AT) {
    return static_cast<int64_t>(INSIGHT_TRACE_CALL(GetSpr, ::insight_trace::Spr::AR, 0, 0));
}

// Predicates out of the vector mask: a bit for each element.
#define INSIGHT_TRACE_MASK(kind, size)                                                                       \
    inline vector_bool movp_##kind(INSIGHT_TRACE_AT) {                                                       \
        const uint64_t mask[] = {INSIGHT_TRACE_CALL(GetSpr, ::insight_trace::Spr::MASK_LOW, 0, 0),           \
                                 INSIGHT_TRACE_CALL(GetSpr, ::insight_trace::Spr::MASK_HIGH, 0, 0)};         \
        vector_bool made{};                                                                                  \
        for (uint32_t byte = 0; byte < CCE_VL; ++byte) {                                                     \
            const uint32_t lane = byte / size;                                                               \
            made.bits[byte / 64] |= (mask[lane / 64] >> (lane % 64) & 1) << (byte % 64);                     \
        }                                                                                                    \
        return made;                                                                                         \
    }
INSIGHT_TRACE_MASK(b16, 2)
INSIGHT_TRACE_MASK(b32, 4)
#undef INSIGHT_TRACE_MASK
// Conversions of four bits, by name.
#define INSIGHT_TRACE_OF_FOUR_BITS(name)                                                                     \
    template <class D, class A, class... Option>                                                             \
    inline void name(D &&dst, A &&src, const vector_bool &mask, Option... option) {                          \
        vcvt(dst, src, mask, option...);                                                                     \
    }
INSIGHT_TRACE_OF_FOUR_BITS(vcvt_s42f16)
INSIGHT_TRACE_OF_FOUR_BITS(vcvt_s42bf16)
INSIGHT_TRACE_OF_FOUR_BITS(vcvt_s42s16)
INSIGHT_TRACE_OF_FOUR_BITS(vcvt_f162s4)
INSIGHT_TRACE_OF_FOUR_BITS(vcvt_s162s4)
#undef INSIGHT_TRACE_OF_FOUR_BITS

template <class D, class S, class I> inline void vbs(D *dst, S *src, I *index, uint64_t word) {
    vbitsort(dst, src, index, uint8_t(word >> 56));
}
// Multiplied, then rounded to halves, away from zero where two are as near.
template <class D, class A, class V, class P>
inline void vmulscvt(D &&dst, A &&src, V value, const vector_bool &mask, P part) {
    insight_trace::Register<insight_trace::ElementOf<A>> product;
    vmuls(product, src, value, mask);
    vcvt(dst, product, mask, ROUND_A, part);
}

// A part of a matrix in boxes of 16 rows by 32 bytes, in columns of boxes, from global memory into L1. The
// step from one column to the next there, in boxes, stands in a register.
inline void set_mte2_src_para(uint64_t word, INSIGHT_TRACE_AT) {
    insight_trace::set_register(insight_trace::Spr::MTE2_SRC_PARA, word, insight_trace::PipeId::MTE2, at);
}
#define INSIGHT_TRACE_LOAD_PART(name)                                                                        \
    template <class D, class S>                                                                              \
    inline void name(D *dst, S *src, uint32_t row, uint32_t col, uint16_t dst_step, uint16_t rows,           \
                     uint16_t cols, uint8_t, uint8_t unpacks, uint8_t, INSIGHT_TRACE_AT) {                   \
        using namespace insight_trace;                                                                       \
        constexpr int64_t kBox = 512;                                                                        \
        if (unpacks) not_modelled(#name " that decompresses", at);                                           \
        const auto step =                                                                                    \
            static_cast<int32_t>(INSIGHT_TRACE_CALL(GetSpr, ::insight_trace::Spr::MTE2_SRC_PARA, 0, 0));     \
        auto *first = (uint8_t *)src + (int64_t(col) * step + row) * kBox;                                   \
        raw_copy(Space::L1, dst, Space::GM, first, cols, uint64_t(rows *kBox), uint64_t(dst_step *kBox),     \
                 uint64_t(step *kBox), at);                                                                  \
    }
INSIGHT_TRACE_LOAD_PART(load_gm_to_cbuf_2dv2)
INSIGHT_TRACE_LOAD_PART(load_gm_to_cbuf_2dv2_s4)
#undef INSIGHT_TRACE_LOAD_PART

// What the headers of the C API name beside.
inline void set_pad_val_outtoub(uint32_t value, INSIGHT_TRACE_AT) { set_mov_pad_val(value, at); }
inline void set_quant_post(uint64_t) {} // what reads these two is refused where it is asked for
inline void set_relu_alpha(uint64_t) {}
// Whole blocks of 32 bytes, or padding in every block; how far several pieces lie apart is not published.
inline void copy_gm_to_cbuf_v2(void *dst, void *src, uint8_t, uint32_t pieces, uint32_t length,
                               uint8_t padding, uint8_t, uint64_t, uint32_t, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    if (padding || pieces > 1) not_modelled("copy_gm_to_cbuf_v2 of several pieces or with padding", at);
    raw_copy(Space::L1, dst, Space::GM, src, pieces, length * kBlock, length * kBlock, length * kBlock, at);
}

// --- what is not modelled: a kernel that comes to it ends with its name and line
#define INSIGHT_TRACE_REFUSED(name)                                                                          \
    template <class... T> inline void name(T...) {                                                           \
        ::insight_trace::not_modelled(#name " is not modelled", ::insight_trace::Site{});                    \
    }
INSIGHT_TRACE_REFUSED(ldva)
INSIGHT_TRACE_REFUSED(broadcast_ub_to_cc)
INSIGHT_TRACE_REFUSED(create_cbuf_matrix_bf16)
INSIGHT_TRACE_REFUSED(dci)
INSIGHT_TRACE_REFUSED(copy_matrix_cc_to_cbuf_s4)
INSIGHT_TRACE_REFUSED(copy_matrix_cc_to_gm_s4)
INSIGHT_TRACE_REFUSED(copy_matrix_cc_to_ub_s4)
#undef INSIGHT_TRACE_REFUSED
