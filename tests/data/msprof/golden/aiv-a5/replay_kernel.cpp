// The kernel side of a replay, written by Insight Trace. One launch runs every member of the dispatch: the cube
// core the aic member, the vector cores the aiv members.
// member 0: "ADD", aiv
#include <stdint.h>

#ifndef AICORE
#define AICORE [aicore]
#endif
#ifndef __CCE_AICORE__
#define __CCE_AICORE__ 310
#endif
#ifndef PTO_NPU_ARCH_A5
#define PTO_NPU_ARCH_A5
#endif
#if defined(__DAV_CUBE__) || defined(__DAV_VEC__)
#include <cce_aicore_intrinsics.h>
#ifndef EVENT_ID7
#define EVENT_ID7 ((event_t)7)
#endif
#ifndef PIPE_FIX
#define PIPE_FIX ((pipe_t)10)
#endif
#endif

#if defined(__DAV_VEC__)
#include "kernels/aiv/add_scale.cpp"
#endif

// `tables` holds an args array for each core of each block: cube, vector 0, vector 1, with contexts of its own.
extern "C" __global__ AICORE void replay_entry(__gm__ int64_t *tables) {
#if defined(__DAV_CUBE__) || defined(__DAV_VEC__)
    __gm__ int64_t *block = tables;
#endif
#if defined(__DAV_CUBE__)
    (void)block;  // the dispatch has no aic member
#elif defined(__DAV_VEC__)
    if (get_subblockid() == 0) {
        kernel_entry(block + 50);
    }
#else
    (void)tables;
#endif
}
