// Contexts behind slots 48 and 49: which block and which lane of a cluster a kernel runs as.
#pragma once

#include <cstdint>

constexpr int32_t PTO2_EXT_PARAMS_COUNT = 2;
constexpr int32_t SPMD_LOCAL_CONTEXT_INDEX = 48;
constexpr int32_t SPMD_GLOBAL_CONTEXT_INDEX = 49;
constexpr int32_t PAYLOAD_LOCAL_CONTEXT_INDEX = SPMD_LOCAL_CONTEXT_INDEX;
constexpr int32_t PAYLOAD_GLOBAL_CONTEXT_INDEX = SPMD_GLOBAL_CONTEXT_INDEX;

enum DmaWorkspaceKind : int { DMA_WORKSPACE_SDMA = 0, DMA_WORKSPACE_URMA = 1, DMA_WORKSPACE_KIND_COUNT = 2 };

struct PTO2TaskId {
    uint64_t raw;
    static constexpr PTO2TaskId invalid() { return {~0ull}; }
    constexpr bool is_valid() const { return raw != ~0ull; }
    constexpr bool is_invalid() const { return raw == ~0ull; }
};

struct DeferredCompletionEntry {
    uint64_t addr;
    uint64_t backend_cookie;
    uint32_t expected_value;
    uint32_t engine;
    int32_t completion_type;
    uint32_t _pad;
};
static_assert(sizeof(DeferredCompletionEntry) == 32, "an entry has 32 bytes");

constexpr int32_t MAX_COMPLETIONS_PER_TASK = 64;
constexpr int32_t PTO2_ERROR_ASYNC_COMPLETION_INVALID = 101, PTO2_ERROR_ASYNC_WAIT_OVERFLOW = 102,
                  PTO2_ERROR_ASYNC_REGISTRATION_FAILED = 103;

struct AsyncCtx {
    volatile uint32_t *completion_count;
    volatile int32_t *completion_error_code;
    volatile DeferredCompletionEntry *completion_entries;
    uint32_t completion_capacity;
    PTO2TaskId task_token;
};

struct LocalContext {
    union {
        int32_t block_idx;
        int32_t s_block_idx; // its name on a5
    };
    int32_t block_num;
    AsyncCtx async_ctx;
};

struct GlobalContext {
    int32_t sub_block_id;
    uint64_t dma_workspace[DMA_WORKSPACE_KIND_COUNT];
};

inline int32_t get_block_idx(int64_t *args) {
    return reinterpret_cast<LocalContext *>(args[SPMD_LOCAL_CONTEXT_INDEX])->block_idx;
}
inline int32_t get_block_num(int64_t *args) {
    return reinterpret_cast<LocalContext *>(args[SPMD_LOCAL_CONTEXT_INDEX])->block_num;
}
inline int32_t get_sub_block_id(int64_t *args) {
    return reinterpret_cast<GlobalContext *>(args[SPMD_GLOBAL_CONTEXT_INDEX])->sub_block_id;
}
inline uint8_t *get_dma_workspace(int64_t *args, int kind) {
    if (kind < 0 || kind >= DMA_WORKSPACE_KIND_COUNT) return nullptr;
    return reinterpret_cast<uint8_t *>(
        reinterpret_cast<GlobalContext *>(args[SPMD_GLOBAL_CONTEXT_INDEX])->dma_workspace[kind]);
}
inline AsyncCtx get_async_ctx(int64_t *args) {
    return reinterpret_cast<LocalContext *>(args[SPMD_LOCAL_CONTEXT_INDEX])->async_ctx;
}
