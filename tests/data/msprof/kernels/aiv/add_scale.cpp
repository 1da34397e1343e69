// slot 3 = slot 2 + scale, where scale is the float whose bits are in slot 6
#include "../shared/tensor_view.h"
#include <cstring>

namespace {
constexpr int kInput = 2;
float offset_of(int64_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}
} // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *in = view_of(args, kInput);
    for (uint32_t i = 0; i < in->shapes[0]; ++i) {
        data_of<float>(args, 3)[i] = data_of<float>(args, kInput)[i] + offset_of(args[6]);
    }
}
