// Copies and fills that kernels issue themselves, below the tile ops. Lengths and gaps are in blocks of 32
// bytes unless said otherwise.
#pragma once

#include "insight_trace/device.hpp"
#include "insight_trace/type_codes.hpp"

namespace insight_trace {

inline void not_modelled(const char *what, Site at) {
    insight_trace_intrinsic(Intrinsic::Unsupported, reinterpret_cast<uint64_t>(what), 0, 0, at);
}
// Padding in bytes, and the size of an element of it.
struct Padded {
    uint64_t before = 0, behind = 0, size = 1;
};
template <class D, class S>
inline void raw_copy(Space dst_space, D *dst, Space src_space, S *src, uint64_t pieces, uint64_t bytes,
                     uint64_t dst_step, uint64_t src_step, Site at, uint64_t lane = 0,
                     Filling filling = Filling::None, Padded padded = {}) {
    const uint64_t values[] = {uint64_t(dst_space),
                               reinterpret_cast<uint64_t>(dst),
                               uint64_t(src_space),
                               reinterpret_cast<uint64_t>(src),
                               pieces,
                               bytes,
                               dst_step,
                               src_step,
                               lane,
                               padded.before,
                               padded.behind,
                               padded.size,
                               uint64_t(filling)};
    insight_trace_raw(Raw::Copy, values, at);
}
constexpr uint64_t field(uint64_t word, int first, int bits) { return word >> first & ((1ull << bits) - 1); }
constexpr uint64_t kBlock = 32;

// The address of a byte of the running core's memory; what is an address already stays one.
inline uint64_t address_in(Space space, uint64_t offset, INSIGHT_TRACE_AT) {
    constexpr uint64_t kLargest = 1 << 20; // no memory is larger, and all begin above it
    return offset < kLargest ? offset + INSIGHT_TRACE_CALL(LocalBase, space, 0, 0) : offset;
}

// Device assembler in a kernel: what only reads a register of the core has no effect here.
inline void device_assembly(const char *text, Site at) {
    auto names = [text](const char *word) {
        for (const char *p = text; *p; ++p) {
            const char *a = p, *b = word;
            while (*b && *a == *b) ++a, ++b;
            if (!*b) return true;
        }
        return false;
    };
    if (names("trap")) insight_trace_intrinsic(Intrinsic::Trap, 0, 0, 0, at);
    if (!names("MOV %0, PC") && !names("MOV %0, SYS_CNT"))
        insight_trace_intrinsic(Intrinsic::Unsupported,
                                reinterpret_cast<uint64_t>("assembler of the device in a kernel"), 0, 0, at);
}

} // namespace insight_trace

// Spelled out, or in one word: pieces [15:4], their length [31:16], gaps of the source [47:32] and the
// result.
#define INSIGHT_TRACE_COPY(name, TO, FROM)                                                                   \
    template <class D, class S>                                                                              \
    inline void name(D *dst, S *src, uint8_t, uint16_t pieces, uint16_t length, uint16_t src_gap,            \
                     uint16_t dst_gap, INSIGHT_TRACE_AT) {                                                   \
        using namespace insight_trace;                                                                       \
        raw_copy(Space::TO, dst, Space::FROM, src, pieces, length *kBlock, (length + dst_gap) * kBlock,      \
                 (length + src_gap) * kBlock, at);                                                           \
    }                                                                                                        \
    template <class D, class S> inline void name(D *dst, S *src, uint64_t word, INSIGHT_TRACE_AT) {          \
        using insight_trace::field;                                                                          \
        name(dst, src, 0, field(word, 4, 12), field(word, 16, 16), field(word, 32, 16), field(word, 48, 16), \
             at);                                                                                            \
    }
INSIGHT_TRACE_COPY(copy_gm_to_ubuf, UB, GM)
INSIGHT_TRACE_COPY(copy_ubuf_to_gm, GM, UB)
INSIGHT_TRACE_COPY(copy_ubuf_to_ubuf, UB, UB)
INSIGHT_TRACE_COPY(copy_ubuf_to_cbuf, L1, UB)
INSIGHT_TRACE_COPY(copy_cbuf_to_gm, GM, L1)
#undef INSIGHT_TRACE_COPY
// Whole blocks; what pads within each is not modelled.
template <class D, class S, class Pad>
inline void copy_gm_to_cbuf(D *dst, S *src, uint8_t, uint16_t pieces, uint16_t length, uint16_t src_gap,
                            uint16_t dst_gap, Pad mode, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    if (int(mode))
        insight_trace_intrinsic(Intrinsic::Unsupported,
                                reinterpret_cast<uint64_t>("copy_gm_to_cbuf with padding"), 0, 0, at);
    raw_copy(Space::L1, dst, Space::GM, src, pieces, length * kBlock, (length + dst_gap) * kBlock,
             (length + src_gap) * kBlock, at);
}
// Lengths and the gap in global memory in bytes, the gap on chip in blocks, padding in elements.
// In two words: pieces [15:4], bytes [36:16], padding [53:48] and [59:54]; gaps [31:0] and [63:32].
#define INSIGHT_TRACE_ALIGNED(bits, size)                                                                    \
    template <class D, class S>                                                                              \
    inline void copy_gm_to_ubuf_align_##bits(D *dst, S *src, uint8_t, uint16_t pieces, uint32_t bytes,       \
                                             uint8_t before, uint8_t behind, uint32_t src_gap,               \
                                             uint32_t dst_gap, INSIGHT_TRACE_AT) {                           \
        using namespace insight_trace;                                                                       \
        const uint64_t all = uint64_t(before) * size + bytes + uint64_t(behind) * size;                      \
        raw_copy(Space::UB, dst, Space::GM, src, pieces, bytes,                                              \
                 (all + kBlock - 1) / kBlock * kBlock + dst_gap * kBlock, uint64_t(bytes) + src_gap, at, 0,  \
                 Filling::Aligned, {uint64_t(before) * size, uint64_t(behind) * size, size});                \
    }                                                                                                        \
    template <class D, class S>                                                                              \
    inline void copy_ubuf_to_gm_align_##bits(D *dst, S *src, uint8_t, uint16_t pieces, uint32_t bytes,       \
                                             uint8_t, uint8_t, uint32_t src_gap, uint32_t dst_gap,           \
                                             INSIGHT_TRACE_AT) {                                             \
        using namespace insight_trace;                                                                       \
        raw_copy(Space::GM, dst, Space::UB, src, pieces, bytes, uint64_t(bytes) + dst_gap,                   \
                 (bytes + kBlock - 1) / kBlock * kBlock + src_gap * kBlock, at, 0, Filling::Aligned);        \
    }                                                                                                        \
    template <class D, class S>                                                                              \
    inline void copy_gm_to_ubuf_align_##bits(D *dst, S *src, uint64_t word, uint64_t gaps,                   \
                                             INSIGHT_TRACE_AT) {                                             \
        using insight_trace::field;                                                                          \
        copy_gm_to_ubuf_align_##bits(dst, src, 0, field(word, 4, 12), field(word, 16, 21),                   \
                                     field(word, 48, 6), field(word, 54, 6), field(gaps, 0, 32),             \
                                     field(gaps, 32, 32), at);                                               \
    }                                                                                                        \
    template <class D, class S>                                                                              \
    inline void copy_ubuf_to_gm_align_##bits(D *dst, S *src, uint64_t word, uint64_t gaps,                   \
                                             INSIGHT_TRACE_AT) {                                             \
        using insight_trace::field;                                                                          \
        copy_ubuf_to_gm_align_##bits(dst, src, 0, field(word, 4, 12), field(word, 16, 21), 0, 0,             \
                                     field(gaps, 0, 32), field(gaps, 32, 32), at);                           \
    }
INSIGHT_TRACE_ALIGNED(b8, 1)
INSIGHT_TRACE_ALIGNED(b16, 2)
INSIGHT_TRACE_ALIGNED(b32, 4)
#undef INSIGHT_TRACE_ALIGNED
// What fills up the blocks of padded loads: the bits of an element.
inline void set_mov_pad_val(uint64_t value, INSIGHT_TRACE_AT) {
    INSIGHT_TRACE_CALL(SetSpr, insight_trace::Spr::MOV_PAD_VAL, value, insight_trace::PipeId::MTE2);
}
// To one vector core of the cluster.
template <class D, class S>
inline void copy_cbuf_to_ubuf(D *dst, S *src, uint8_t lane, uint16_t pieces, uint16_t length,
                              uint16_t src_gap, uint16_t dst_gap, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    raw_copy(Space::UB, dst, Space::L1, src, pieces, length * kBlock, (length + dst_gap) * kBlock,
             (length + src_gap) * kBlock, at, lane);
}
// Of the 950: lengths and steps from start to start in bytes, padding in elements; the whole is repeated as
// the loop registers say (units_950.hpp).
template <class D, class S>
inline void copy_ubuf_to_gm_align_v2(D *dst, S *src, uint8_t, uint32_t pieces, uint32_t bytes, uint8_t,
                                     uint64_t dst_step, uint64_t src_step, INSIGHT_TRACE_AT) {
    using namespace insight_trace;
    raw_copy(Space::GM, dst, Space::UB, src, pieces, bytes, dst_step, src_step, at, 0, Filling::Looped);
}
#define INSIGHT_TRACE_LOOPED(name, SPACE)                                                                    \
    template <class D, class S>                                                                              \
    inline void name(D *dst, S *src, uint8_t, uint32_t pieces, uint32_t bytes, uint8_t before,               \
                     uint8_t behind, bool constant, uint8_t, uint64_t src_step, uint32_t dst_step,           \
                     INSIGHT_TRACE_AT) {                                                                     \
        using namespace insight_trace;                                                                       \
        constexpr uint64_t size = sizeof(S);                                                                 \
        raw_copy(Space::SPACE, dst, Space::GM, src, pieces, bytes, dst_step, src_step, at, 0,                \
                 constant ? Filling::LoopedPadded : Filling::Looped, {before * size, behind * size, size});  \
    }
INSIGHT_TRACE_LOOPED(copy_gm_to_ubuf_align_v2, UB)
INSIGHT_TRACE_LOOPED(copy_gm_to_cbuf_align_v2, L1)
#undef INSIGHT_TRACE_LOOPED
// Fills, of two or four bytes over and over. Repeats in bits 0..14, blocks of one in 16..30, the gap between
// two in 32..46; a block has 32 bytes in L1 and 512 in L0.
namespace insight_trace {
template <class T, class V>
inline void fill_matrix(Space space, T *dst, uint64_t repeats, V value, uint64_t block, Site at) {
    const uint64_t count = repeats & 0x7fff, blocks = repeats >> 16 & 0x7fff, gap = repeats >> 32 & 0x7fff;
    uint64_t pattern;
    if constexpr (std::is_same_v<V, half> || std::is_same_v<V, bfloat16_t>)
        pattern = value.bits;
    else
        pattern = as_bits(value);
    const uint64_t values[] = {uint64_t(space),         reinterpret_cast<uint64_t>(dst), count,
                               blocks * block,          (blocks + gap) * block,          pattern,
                               sizeof(V) == 2 ? 2u : 4u};
    insight_trace_raw(Raw::Fill, values, at);
}
} // namespace insight_trace
#define INSIGHT_TRACE_FILL(name, SPACE, block)                                                               \
    template <class T, class V> inline void name(T *dst, int64_t repeats, V value, INSIGHT_TRACE_AT) {       \
        insight_trace::fill_matrix(insight_trace::Space::SPACE, dst, uint64_t(repeats), value, block, at);   \
    }                                                                                                        \
    template <class T, class V>                                                                              \
    inline void name##_bf16(T *dst, int64_t repeats, V value, INSIGHT_TRACE_AT) {                            \
        name(dst, repeats, bfloat16_t(value), at);                                                           \
    }                                                                                                        \
    template <class T> inline void name##_h(T *dst, int64_t repeats, half value, INSIGHT_TRACE_AT) {         \
        name(dst, repeats, value, at);                                                                       \
    }                                                                                                        \
    template <class T> inline void name##_ui(T *dst, int64_t repeats, uint32_t value, INSIGHT_TRACE_AT) {    \
        name(dst, repeats, value, at);                                                                       \
    }
INSIGHT_TRACE_FILL(create_cbuf_matrix, L1, 32)
INSIGHT_TRACE_FILL(create_ca_matrix, L0A, 512)
INSIGHT_TRACE_FILL(create_cb_matrix, L0B, 512)
#undef INSIGHT_TRACE_FILL

// What has no meaning here yet: a kernel that comes to it ends with its name and line.
#define INSIGHT_TRACE_REFUSED(name)                                                                          \
    template <class... T> inline void name(T...) {                                                           \
        insight_trace_intrinsic(::insight_trace::Intrinsic::Unsupported,                                     \
                                reinterpret_cast<uint64_t>(#name " below the tile ops"), 0, 0,               \
                                ::insight_trace::Site{});                                                    \
    }
#if !defined(INSIGHT_TRACE_LIBRARY) || !defined(PTO_NPU_ARCH_A5)
INSIGHT_TRACE_REFUSED(load_cbuf_to_ca_mx)
INSIGHT_TRACE_REFUSED(load_cbuf_to_cb_mx)
INSIGHT_TRACE_REFUSED(mad_mx)
#endif
#if !defined(INSIGHT_TRACE_LIBRARY) && defined(PTO_NPU_ARCH_A5)
INSIGHT_TRACE_REFUSED(load_cbuf_to_ca_s4)
INSIGHT_TRACE_REFUSED(load_cbuf_to_cb_s4)
#endif
#if defined(PTO_NPU_ARCH_A5)
INSIGHT_TRACE_REFUSED(mad_s4)
INSIGHT_TRACE_REFUSED(load_cbuf_to_cb_transpose_s4)
INSIGHT_TRACE_REFUSED(img2colv2_cbuf_to_ca_s4)
#endif
#if defined(PTO_NPU_ARCH_A5)
INSIGHT_TRACE_REFUSED(mad_sp)
INSIGHT_TRACE_REFUSED(load_gm_to_cbuf)
INSIGHT_TRACE_REFUSED(load_cbuf_to_cb_sp)
#endif
INSIGHT_TRACE_REFUSED(load_gm_to_ca)
INSIGHT_TRACE_REFUSED(load_gm_to_cb)
INSIGHT_TRACE_REFUSED(load_image_to_cbuf)
INSIGHT_TRACE_REFUSED(img2colv2_cbuf_to_ub)
INSIGHT_TRACE_REFUSED(copy_matrix_cbuf_to_cc)
INSIGHT_TRACE_REFUSED(copy_matrix_cc_to_cbuf_b4)
#undef INSIGHT_TRACE_REFUSED

// The instruction cache is not modelled.
inline void preload(const void *, int64_t) {}
inline uint64_t get_icache_prl_st() { return 0; }

// A tile's data() is its pointer already.
template <class T> inline T *__cce_get_tile_ptr(T *pointer) { return pointer; }

// `asm volatile(…)` of a kernel is for another processor. A function-like macro: the plain word is not
// touched.
#define volatile(...)                                                                                        \
    volatile("");                                                                                            \
    ::insight_trace::device_assembly(#__VA_ARGS__, ::insight_trace::Site::here())
