// Waits until everything that the kernel stored has left the core.
#pragma once

inline void pipe_sync(INSIGHT_TRACE_AT) {
#if defined(__DAV_CUBE__)
    constexpr pipe_t last = PIPE_FIX;
#else
    constexpr pipe_t last = PIPE_MTE3;
#endif
    set_flag(last, PIPE_S, EVENT_ID7, at);
    wait_flag(last, PIPE_S, EVENT_ID7, at);
}
