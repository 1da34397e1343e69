// A program with a kernel of its own: it adds two vectors on the device and checks the result itself.
//
//   insight-trace exec -- sh -c 'bisheng -xcce --npu-arch=dav-2201 -O2 add.cpp -o add -lascendcl && ./add'
#include <cstdio>
#include <vector>

#include <acl/acl.h>
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kRow = 1024;

__global__ AICORE void add(__gm__ float *x, __gm__ float *y, __gm__ float *z, int rows) {
#if defined(__DAV_VEC__)
    using Row = Tile<TileType::Vec, float, 1, kRow, BLayout::RowMajor>;
    using Global = GlobalTensor<float, Shape<1, 1, 1, 1, kRow>, Stride<kRow, kRow, kRow, kRow, 1>>;
    Row a, b;
    TASSIGN(a, 0);
    TASSIGN(b, kRow * sizeof(float));
    for (int row = get_block_idx(); row < rows; row += get_block_num()) {
        Global gx(x + row * kRow), gy(y + row * kRow), gz(z + row * kRow);
        TLOAD(a, gx);
        TLOAD(b, gy);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        TADD(a, a, b);
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        TSTORE(gz, a);
        set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    }
#endif
}

int main() {
    constexpr int kRows = 32, kCount = kRows * kRow;
    constexpr size_t kBytes = kCount * sizeof(float);
    std::vector<float> x(kCount), y(kCount), z(kCount);
    for (int i = 0; i < kCount; ++i) x[i] = static_cast<float>(i), y[i] = 0.5f;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtStream stream = nullptr;
    aclrtCreateStream(&stream);
    void *device[3];
    for (void *&one : device) aclrtMalloc(&one, kBytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(device[0], kBytes, x.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(device[1], kBytes, y.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE);
    add<<<8, nullptr, stream>>>(static_cast<float *>(device[0]), static_cast<float *>(device[1]),
                                static_cast<float *>(device[2]), kRows);
    const int error = aclrtSynchronizeStream(stream);
    aclrtMemcpy(z.data(), kBytes, device[2], kBytes, ACL_MEMCPY_DEVICE_TO_HOST);
    int wrong = 0;
    for (int i = 0; i < kCount; ++i) wrong += z[i] != x[i] + y[i];
    printf("error %d, %d of %d wrong\n", error, wrong, kCount);
    for (void *one : device) aclrtFree(one);
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
    return error != 0 || wrong != 0;
}
