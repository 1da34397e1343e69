// Each core waits for a flag that the other would raise afterwards.
#include <cstdint>
#include <pto/pto-inst.hpp>

extern "C" void kernel_entry(int64_t *) {
#if defined(__DAV_CUBE__)
    wait_flag_dev(3);
    ffts_cross_core_sync(PIPE_FIX, 1 | 2 << 4 | 2 << 8);
#else
    wait_flag_dev(2);
    ffts_cross_core_sync(PIPE_MTE3, 1 | 2 << 4 | 3 << 8);
#endif
}
