// The launch of a replay, written by Insight Trace.
#include <stdint.h>

#ifndef AICORE
#define AICORE [aicore]
#endif
#ifndef REPLAY_LAUNCH
#define REPLAY_LAUNCH(kernel, blocks, stream, argument) kernel<<<blocks, nullptr, stream>>>(argument)
#endif

extern "C" __global__ AICORE void replay_entry(__gm__ int64_t *tables);

extern "C" void launch_replay(void *tables, void *stream) {
    REPLAY_LAUNCH(replay_entry, 1, stream, (__gm__ int64_t *)tables);
}
