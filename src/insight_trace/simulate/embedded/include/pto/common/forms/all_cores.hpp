// A barrier of all cores of a launch: by the flags of all blocks, or by a counter in global memory.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {

namespace bundled {
// Flags that the library keeps for itself.
constexpr uint8_t kFlagOfVectors = 12, kFlagOfCubes = 11, kFlagToVectors = 13, kFlagOfAllVectors = 14;

inline void meet_at_counter(int32_t *counter, [[maybe_unused]] int32_t cores, insight_trace::Site at) {
    dsb(DSB_DDR, at);
    const int32_t before = static_cast<int32_t>(ld_dev(reinterpret_cast<uint32_t *>(counter), 0, at));
    set_st_atomic_cfg(ATOMIC_S32, ATOMIC_SUM, at);
    dcci(counter, SINGLE_CACHE_LINE, at);
    st_atomic(int32_t(1), counter, at);
    dcci(counter, SINGLE_CACHE_LINE, at);
    dsb(DSB_DDR, at);
    const int32_t target = (before / cores + 1) * cores;
    while (static_cast<int32_t>(ld_dev(reinterpret_cast<uint32_t *>(counter), 0, at)) < target) {
    }
    dsb(DSB_DDR, at);
}

// Cores that take part in a barrier of both kinds.
inline int32_t cores_of_mix([[maybe_unused]] insight_trace::Site at) {
#if defined(__MIX_CORE_AIV_RATIO__)
    const int64_t lanes = __MIX_CORE_AIV_RATIO__;
#elif defined(__DAV_VEC__)
    const int64_t lanes = get_subblockdim(at);
#else
    const int64_t lanes = 1;
#endif
    return static_cast<int32_t>(get_block_num(at) * (1 + lanes));
}
} // namespace bundled

template <SyncCoreType cores = SyncCoreType::AIVOnly> inline void SYNCALL(INSIGHT_TRACE_AT) {
    pipe_barrier(PIPE_ALL, at);
    [[maybe_unused]] auto raise = [&](pipe_t pipe, uint16_t mode, uint16_t flag) {
        ffts_cross_core_sync(pipe, getFFTSMsg(mode, flag), at);
    };
    if constexpr (cores == SyncCoreType::AIVOnly) {
#if defined(__DAV_VEC__)
        raise(PIPE_MTE3, 0, bundled::kFlagOfAllVectors);
        wait_flag_dev(bundled::kFlagOfAllVectors, at);
#endif
    } else if constexpr (cores == SyncCoreType::AICOnly) {
#if defined(__DAV_CUBE__)
        raise(PIPE_FIX, 0, bundled::kFlagOfCubes);
        wait_flag_dev(bundled::kFlagOfCubes, at);
#endif
    } else {
#if defined(__DAV_CUBE__)
        wait_flag_dev(bundled::kFlagOfVectors, at);
        raise(PIPE_FIX, 0, bundled::kFlagOfCubes);
        wait_flag_dev(bundled::kFlagOfCubes, at);
        raise(PIPE_MTE3, 2, bundled::kFlagToVectors);
#else
        raise(PIPE_MTE3, 2, bundled::kFlagOfVectors);
        wait_flag_dev(bundled::kFlagToVectors, at);
#endif
    }
}

template <SyncAllMode mode, SyncCoreType cores = SyncCoreType::AIVOnly, class G,
          std::enable_if_t<is_global<G>::value, int> = 0>
inline void SYNCALL(G &workspace, int32_t used = 0, INSIGHT_TRACE_AT) {
    if constexpr (mode == SyncAllMode::Hard) {
        SYNCALL<cores>(at);
    } else {
#if defined(__DAV_CUBE__)
        constexpr bool takes_part = cores != SyncCoreType::AIVOnly;
#else
        constexpr bool takes_part = cores != SyncCoreType::AICOnly;
#endif
        pipe_barrier(PIPE_ALL, at);
        if constexpr (takes_part) {
            const int32_t all = cores == SyncCoreType::Mix ? bundled::cores_of_mix(at)
                                                           : static_cast<int32_t>(get_block_num(at));
            bundled::meet_at_counter(reinterpret_cast<int32_t *>(workspace.data()), used ? used : all, at);
        }
        pipe_barrier(PIPE_ALL, at);
    }
}

} // namespace pto
