/* Included first when the stand-in compiler meets device code. */
#include <stdint.h>
#define __gm__
#define __global__
#define __aicore__
#define AICORE
#define REPLAY_LAUNCH(kernel, blocks, stream, argument)                                                      \
    do {                                                                                                     \
        (void)(stream);                                                                                      \
        kernel(argument);                                                                                    \
        standin_launch(blocks, argument);                                                                    \
    } while (0)
extern "C" void standin_launch(int64_t blocks, int64_t *tables);
