// How the cube core and the vector cores of a cluster meet in hand-written kernels.
#pragma once

#include "pto/common/event.hpp"

namespace pto {

enum CVCommFftsEvent : uint16_t { CV_COMM_CTRL = 12, CV_COMM_RSVD_13, CV_COMM_RSVD_14, CV_COMM_RSVD_15 };
constexpr int kCvCommSlotBytes = 512;
constexpr int kCvMaxCores = 25;
enum CVSyncMode : uint16_t {
    C_ALL_CORE_SYNC = 0,
    V_ALL_CORE_SYNC = 0,
    V_SUBCORES_SYNC = 1,
    CV_CORE_SYNC = 2
};

inline uint16_t _getFFTSMsg(CVSyncMode mode, uint16_t flag, uint16_t base = 1) {
    return getFFTSMsg(mode, flag, base);
}

// The slot of a block's cluster: the cube core writes its own number where the vector cores read it.
template <int SlotBytes = kCvCommSlotBytes, int MostCores = kCvMaxCores>
inline int TSYNC_CVID(int block, [[maybe_unused]] uint8_t *buffer, INSIGHT_TRACE_AT) {
    [[maybe_unused]] auto *place = reinterpret_cast<volatile uint32_t *>(buffer + size_t(block) * SlotBytes);
#if defined(__DAV_CUBE__)
    const int slot = static_cast<int>(get_coreid(at) & 0x7f) % MostCores;
    place[0] = static_cast<uint32_t>(slot);
    dcci(place, SINGLE_CACHE_LINE, at);
    dsb(DSB_DDR, at);
    ffts_cross_core_sync(PIPE_MTE2, getFFTSMsg(CV_CORE_SYNC, CV_COMM_CTRL), at);
    return slot;
#else
    dcci(place, SINGLE_CACHE_LINE, at);
    wait_flag_dev(CV_COMM_CTRL, at);
    return static_cast<int>(place[0]);
#endif
}

enum class SyncOpType : uint8_t { TSTORE_C2GM, TSTORE_V2GM, TLOAD };

// Two flags: one says that data is there, the next that its place is free again.
template <SyncOpType Producer, SyncOpType Consumer> struct TSync_Custom {
    static_assert(Producer != SyncOpType::TLOAD && Consumer == SyncOpType::TLOAD, "a store, then a load");
    static constexpr bool is_c2v = Producer == SyncOpType::TSTORE_C2GM;
    static constexpr bool is_v2c = !is_c2v;
    uint16_t flag_id;

    void record(INSIGHT_TRACE_AT) const { raise(is_c2v ? PIPE_FIX : PIPE_MTE3, flag_id, at); }
    void wait(INSIGHT_TRACE_AT) const { wait_flag_dev(flag_id, at); }
    void allocate(INSIGHT_TRACE_AT) const { wait_flag_dev(flag_id + 1, at); }
    void free(INSIGHT_TRACE_AT) const { raise(PIPE_MTE2, static_cast<uint16_t>(flag_id + 1), at); }

  private:
    static void raise(pipe_t pipe, uint16_t flag, insight_trace::Site at) {
        ffts_cross_core_sync(pipe, getFFTSMsg(CV_CORE_SYNC, flag), at);
    }
};

} // namespace pto
