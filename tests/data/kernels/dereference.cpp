// args[1] elements of args[0] are added up by plain loads; the sum goes where the first one was. With args[2]
// the scalar unit forgets what it has read before it reads it again.
#include <pto/pto-inst.hpp>

#include "tensor.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *values = reinterpret_cast<__gm__ int32_t *>(tensor->buffer.addr);
    int32_t sum = 0;
    for (int64_t i = 0; i < args[1]; ++i) sum += values[i]; // the loop
    if (args[2]) {
        dcci(values, ENTIRE_DATA_CACHE);
        sum += values[1]; // again
    }
    values[0] = sum;
}
