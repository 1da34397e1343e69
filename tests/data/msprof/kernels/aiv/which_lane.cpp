// slot 5 [lane, block_num, sub_block_id, 1]; shares names with add_scale.cpp on purpose
#include "../shared/tensor_view.h"

namespace {
constexpr int kInput = 4;
int32_t offset_of(int64_t) { return 1; }
} // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *local = reinterpret_cast<__gm__ int32_t *>(args[48]);
    auto *global = reinterpret_cast<__gm__ int32_t *>(args[49]);
    auto *to = data_of<int32_t>(args, 5) + 4 * global[0];
    to[0] = local[0];
    to[1] = local[1];
    to[2] = global[0];
    to[3] = offset_of(kInput);
}
