// AscendC's basic calls, as far as kernels beside the tile API use them: tensors, buffers, flags.
#pragma once

#include <algorithm>

#include "insight_trace/prelude.hpp"

using GM_ADDR = uint8_t *;

namespace AscendC {

enum class TPosition : uint8_t {
    GM,
    A1,
    A2,
    B1,
    B2,
    C1,
    C2,
    CO1,
    CO2,
    VECIN,
    VECOUT,
    VECCALC,
    C2PIPE2GM,
};

constexpr int32_t AIC = 1, AIV = 2, MIX = 0;

namespace detail {
constexpr ::insight_trace::Space space_of(TPosition position) {
    using ::insight_trace::Space;
    switch (position) {
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
        return Space::L1;
    case TPosition::A2:
        return Space::L0A;
    case TPosition::B2:
        return Space::L0B;
    case TPosition::C2:
        return Space::Bias;
    case TPosition::CO1:
        return Space::L0C;
    case TPosition::C2PIPE2GM:
        return Space::Scaling;
    case TPosition::GM:
        return Space::GM;
    default:
        return Space::UB;
    }
}
inline void not_modelled(const char *what, ::insight_trace::Site at) {
    ::insight_trace::not_modelled(what, at);
}
} // namespace detail

// Elements of one of a core's memories, from an address on.
template <class T> class LocalTensor {
  public:
    using PrimType = T;
    LocalTensor() = default;
    LocalTensor(::insight_trace::Space space, uint64_t address) : space_(space), address_(address) {}
    LocalTensor operator[](uint32_t element) const { return {space_, address_ + element * sizeof(T)}; }
    template <class U> LocalTensor<U> ReinterpretCast() const { return {space_, address_}; }
    T GetValue(uint32_t index, INSIGHT_TRACE_AT) const {
        const auto tile = ref();
        return ::insight_trace::bits_value<T>(insight_trace_get_value(&tile, index, at));
    }
    template <class V> void SetValue(uint32_t index, V value, INSIGHT_TRACE_AT) const {
        const auto tile = ref();
        insight_trace_set_value(&tile, index, ::insight_trace::value_bits(static_cast<T>(value)), at);
    }
    // What instructions are given: the address in its memory.
    T *GetPhyAddr(uint32_t element = 0) const {
        return reinterpret_cast<T *>(address_ + element * sizeof(T));
    }
    ::insight_trace::Space space() const { return space_; }

  private:
    ::insight_trace::TileRef ref() const {
        ::insight_trace::TileRef tile{};
        tile.address = static_cast<uint32_t>(address_);
        tile.space = space_;
        tile.type = ::insight_trace::type_of<T>();
        return tile;
    }
    ::insight_trace::Space space_ = ::insight_trace::Space::UB;
    uint64_t address_ = 0;
};

template <class T> class GlobalTensor {
  public:
    using PrimType = T;
    void SetGlobalBuffer(T *buffer, uint64_t = 0) { buffer_ = buffer; }
    GlobalTensor operator[](uint64_t element) const {
        GlobalTensor other;
        other.buffer_ = buffer_ + element;
        return other;
    }
    T GetValue(uint64_t index) const { return buffer_[index]; }
    template <class V> void SetValue(uint64_t index, V value) const {
        buffer_[index] = static_cast<T>(value);
    }
    T *GetPhyAddr(uint64_t element = 0) const { return buffer_ + element; }
    void SetL2CacheHint(uint8_t) {}

  private:
    T *buffer_ = nullptr;
};

template <TPosition position> class TBuf {
  public:
    template <class T> LocalTensor<T> Get(uint32_t = 0) const { return {detail::space_of(position), begin}; }
    uint64_t begin = 0;
};

// Gives out the memories of a core from their beginning.
class TPipe {
  public:
    TPipe() {
        for (uint64_t &end : ends()) end = 0;
    }
    template <TPosition position> bool InitBuffer(TBuf<position> &buffer, uint32_t bytes) {
        uint64_t &end = ends()[static_cast<int>(detail::space_of(position))];
        buffer.begin = end;
        end += (bytes + 31) / 32 * 32;
        return true;
    }
    void Destroy() {}

  private:
    using Ends = uint64_t[static_cast<int>(::insight_trace::Space::GM) + 1];
    static Ends &ends() {
        static thread_local Ends of_core; // a core is a thread
        return of_core;
    }
};

// --- flags between pipes: each event is named after the two
#define INSIGHT_TRACE_EVENT(from, to) from##_##to = PIPE_##from << 4 | PIPE_##to
enum class HardEvent : uint8_t {
    INSIGHT_TRACE_EVENT(MTE2, MTE1),
    INSIGHT_TRACE_EVENT(MTE1, MTE2),
    INSIGHT_TRACE_EVENT(MTE1, M),
    INSIGHT_TRACE_EVENT(M, MTE1),
    INSIGHT_TRACE_EVENT(MTE2, V),
    INSIGHT_TRACE_EVENT(V, MTE2),
    INSIGHT_TRACE_EVENT(MTE3, V),
    INSIGHT_TRACE_EVENT(V, MTE3),
    INSIGHT_TRACE_EVENT(M, V),
    INSIGHT_TRACE_EVENT(V, M),
    INSIGHT_TRACE_EVENT(MTE3, MTE1),
    INSIGHT_TRACE_EVENT(MTE1, MTE3),
    INSIGHT_TRACE_EVENT(MTE1, V),
    INSIGHT_TRACE_EVENT(V, MTE1),
    INSIGHT_TRACE_EVENT(MTE2, M),
    INSIGHT_TRACE_EVENT(M, MTE2),
    INSIGHT_TRACE_EVENT(M, MTE3),
    INSIGHT_TRACE_EVENT(MTE3, M),
    INSIGHT_TRACE_EVENT(MTE3, MTE2),
    INSIGHT_TRACE_EVENT(MTE2, MTE3),
    INSIGHT_TRACE_EVENT(S, V),
    INSIGHT_TRACE_EVENT(V, S),
    INSIGHT_TRACE_EVENT(S, MTE2),
    INSIGHT_TRACE_EVENT(MTE2, S),
    INSIGHT_TRACE_EVENT(S, MTE3),
    INSIGHT_TRACE_EVENT(MTE3, S),
    INSIGHT_TRACE_EVENT(M, S),
    INSIGHT_TRACE_EVENT(S, M),
    INSIGHT_TRACE_EVENT(M, FIX),
    INSIGHT_TRACE_EVENT(FIX, M),
    INSIGHT_TRACE_EVENT(MTE2, FIX),
    INSIGHT_TRACE_EVENT(FIX, MTE2),
    INSIGHT_TRACE_EVENT(FIX, S),
    INSIGHT_TRACE_EVENT(FIX, MTE3),
    INSIGHT_TRACE_EVENT(MTE1, FIX),
    INSIGHT_TRACE_EVENT(FIX, MTE1),
};
#undef INSIGHT_TRACE_EVENT
namespace detail {
constexpr pipe_t from_of(HardEvent event) { return static_cast<pipe_t>(static_cast<uint8_t>(event) >> 4); }
constexpr pipe_t to_of(HardEvent event) { return static_cast<pipe_t>(static_cast<uint8_t>(event) & 15); }
} // namespace detail
template <HardEvent event> inline void SetFlag(int32_t id, INSIGHT_TRACE_AT) {
    set_flag(detail::from_of(event), detail::to_of(event), id, at);
}
template <HardEvent event> inline void WaitFlag(int32_t id, INSIGHT_TRACE_AT) {
    wait_flag(detail::from_of(event), detail::to_of(event), id, at);
}
template <pipe_t pipe> inline void PipeBarrier(INSIGHT_TRACE_AT) { pipe_barrier(pipe, at); }
template <uint8_t mode, pipe_t pipe> inline void CrossCoreSetFlag(uint16_t id, INSIGHT_TRACE_AT) {
    ffts_cross_core_sync(pipe, pto::getFFTSMsg(mode, id), at);
}
template <uint8_t mode = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t id, INSIGHT_TRACE_AT) {
    wait_flag_dev(id, at);
}
template <bool vectors_only = true> inline void SyncAll(INSIGHT_TRACE_AT) {
    pto::SYNCALL<vectors_only ? pto::SyncCoreType::AIVOnly : pto::SyncCoreType::Mix>(at);
}

inline int64_t GetBlockIdx(INSIGHT_TRACE_AT) { return get_block_idx(at); }
inline int64_t GetBlockNum(INSIGHT_TRACE_AT) { return get_block_num(at); }
inline int64_t GetSubBlockIdx(INSIGHT_TRACE_AT) { return get_subblockid(at); }
inline int64_t GetSubBlockNum(INSIGHT_TRACE_AT) { return get_subblockdim(at); }
inline void SetAtomicNone(INSIGHT_TRACE_AT) { set_atomic_none(at); }
inline float ToFloat(bfloat16_t value) { return value; }
inline float ToFloat(half value) { return value; }

namespace Std {
template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; }
} // namespace Std

} // namespace AscendC

inline AscendC::TPipe *GetTPipePtr() {
    static thread_local AscendC::TPipe pipe;
    return &pipe;
}
#if defined(__DAV_CUBE__)
constexpr int32_t g_coreType = AscendC::AIC;
#else
constexpr int32_t g_coreType = AscendC::AIV;
#endif
