/* What a replay needs of the device compiler's built-ins, on the host. */
#ifndef STANDIN_CCE_AICORE_INTRINSICS_H
#define STANDIN_CCE_AICORE_INTRINSICS_H
#include <stdint.h>
enum event_t : int {};
enum pipe_t : int {};
extern "C" int64_t standin_block;
extern "C" int64_t standin_lane;
inline int64_t get_block_idx() { return standin_block; }
inline int64_t get_subblockid() { return standin_lane; }
#endif
