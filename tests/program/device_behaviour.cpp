// Programs of many kinds in one: the first argument says which. Read by test_device_behaviour.py.
#include <acl/acl.h>
#include <runtime/rt.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
#include <pto/pto-inst.hpp>
using namespace pto;
using Row = Tile<TileType::Vec, float, 1, 64, BLayout::RowMajor>;
using Global = GlobalTensor<float, Shape<1, 1, 1, 1, 64>, Stride<64, 64, 64, 64, 1>>;
#define OK(call)                                                                                             \
    do {                                                                                                     \
        int e_ = (call);                                                                                     \
        if (e_) {                                                                                            \
            printf("%s -> %d\n", #call, e_);                                                                 \
        }                                                                                                    \
    } while (0)

namespace deep {
namespace er {
AICORE inline void add_row(__gm__ float *x, __gm__ float *y, float c) {
    Row a;
    TASSIGN(a, 0);
    Global gx(x), gy(y);
    TLOAD(a, gx);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    TADDS(a, a, c);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(gy, a);
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
}
__global__ AICORE void plus(__gm__ float *x, __gm__ float *y, float c, int rows) {
#if defined(__DAV_VEC__)
    for (int r = get_block_idx(); r < rows; r += get_block_num()) add_row(x + 64 * r, y + 64 * r, c);
#endif
}
} // namespace er
} // namespace deep
extern "C" __global__ AICORE void plus_c(__gm__ uint8_t *x, __gm__ uint8_t *y, int rows) {
#if defined(__DAV_VEC__)
    for (int r = get_block_idx(); r < rows; r += get_block_num())
        deep::er::add_row((__gm__ float *)x + 64 * r, (__gm__ float *)y + 64 * r, 1.0f);
#endif
}
struct Table {
    __gm__ float *in[3];
    __gm__ float *out;
};
__global__ AICORE void through_table(__gm__ Table *t, int n) {
#if defined(__DAV_VEC__)
    for (int i = 0; i < n; ++i) deep::er::add_row(t->in[i], t->out + 64 * i, float(i));
#endif
}
__global__ AICORE void many(__gm__ float *a, __gm__ float *b, bool flag, int8_t c, uint16_t d, int64_t e,
                            float f, double g, half h, __gm__ float *i, char j, unsigned k, short l,
                            __gm__ float *m) {
#if defined(__DAV_VEC__)
    float sum = (flag ? 1.0f : 0.0f) + c + d + e + f + (float)g + (float)h + j + k + l;
    deep::er::add_row(a, b, sum);
    deep::er::add_row(i, m, sum);
#endif
}
__global__ AICORE void endless(__gm__ float *x) {
#if defined(__DAV_VEC__)
    Row a;
    TASSIGN(a, 0);
    TADDS(a, a, 1.0f);
    volatile int forever = 1;
    while (forever) {
    }
#endif
}
__global__ AICORE void lone_wait(__gm__ float *x) {
#if defined(__DAV_VEC__)
    Row a;
    TASSIGN(a, 0);
    TADDS(a, a, 1.0f);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID2); // nobody sets it
#endif
}
__global__ AICORE void past_ub(__gm__ float *x, int at) {
#if defined(__DAV_VEC__)
    Row a;
    TASSIGN(a, at);
    Global gx(x);
    TLOAD(a, gx); // past UB
#endif
}
__global__ AICORE void says(__gm__ float *x) {
#if defined(__DAV_VEC__)
    Row a;
    TASSIGN(a, 0);
    TADDS(a, a, 1.0f);
    cce::printf("block %d of %d\n", (int)get_block_idx(), (int)get_block_num());
#endif
}
__global__ AICORE void stops(__gm__ float *) { asm volatile("trap"); } // trap
__global__ AICORE void scalar_sum(__gm__ int32_t *x, __gm__ int32_t *out, int n) {
#if defined(__DAV_VEC__)
    static const int weights[4] = {1, 2, 3, 4};
    int32_t s = 0;
    for (int i = 0; i < n; ++i) s += x[i] * weights[i % 4];
    out[get_block_idx()] = s;
    dcci(out, SINGLE_CACHE_LINE);
    Row a;
    TASSIGN(a, 0);
    TADDS(a, a, 1.0f);
#endif
}
__global__ AICORE void peeks(__gm__ int32_t *out) {
#if defined(__DAV_VEC__)
    out[0] = getenv("A_SECRET") != nullptr;
    out[1] = access("go.sh", R_OK) == 0;
    Row a;
    TASSIGN(a, 0);
    TADDS(a, a, 1.0f);
#endif
}
__global__ AICORE void forks(__gm__ float *x) {
#if defined(__DAV_VEC__)
    Row a;
    TASSIGN(a, 0);
    TADDS(a, a, 1.0f);
    if (fork() == 0) _exit(0);
#endif
}
template <class T> T *dev(size_t n) {
    void *p = nullptr;
    if (aclrtMalloc(&p, n * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST)) exit(9);
    return (T *)p;
}
template <class T> struct Launcher {
    template <int N> static void go(T *x, T *y, aclrtStream s) {
        deep::er::plus<<<N, nullptr, s>>>(x, y, T(N), 4);
    }
};
static float first_of(const float *d, size_t i = 0) {
    float v = -1;
    OK(aclrtMemcpy(&v, 4, d + i, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    return v;
}
static std::vector<float> ones(256, 1.0f);
static float *input() {
    float *x = dev<float>(256);
    OK(aclrtMemcpy(x, 1024, ones.data(), 1024, ACL_MEMCPY_HOST_TO_DEVICE));
    return x;
}
static aclrtStream stream() {
    aclrtStream s;
    OK(aclrtCreateStream(&s));
    return s;
}
static void wait(aclrtStream s) { printf("%d ", aclrtSynchronizeStream(s)); }
static void add3(void *p) { *(int *)p += 3; }
// What a program wraps a buffer and a stream in: copying it would free them.
struct Owned {
    float *pointer = input();
    Owned() = default;
    Owned(const Owned &) = delete;
    ~Owned() { OK(aclrtFree(pointer)); }
    operator float *() const { return pointer; }
};
struct OwnStream {
    aclrtStream made = stream();
    ~OwnStream() { OK(aclrtDestroyStream(made)); }
    operator aclrtStream() const { return made; }
};
struct Packing {
    unsigned rows : 4, blocks : 4;
    static const int kOnes = 1;
};
template <class T, int N> __global__ AICORE void plus_n(__gm__ T *x, int rows) {
#if defined(__DAV_VEC__)
    for (int r = get_block_idx(); r < rows; r += get_block_num())
        deep::er::add_row(x + 64 * r, x + 64 * r, T(N));
#endif
}
#define LAUNCH_AND_WAIT(kernel, blocks, on, ...)                                                             \
    do {                                                                                                     \
        kernel<<<blocks, nullptr, on>>>(__VA_ARGS__);                                                        \
        OK(aclrtSynchronizeStream(on));                                                                      \
    } while (0)
template <class... Given> void forwarded(aclrtStream s, Given &&...given) {
    plus_n<float, 5><<<2, nullptr, s>>>(std::forward<Given>(given)...);
}
static std::map<std::string, std::function<void()>> cases = {
    {"owners",
     [] {
         Owned x;
         OwnStream s;
         const Packing packing{4, 2};
         deep::er::plus<<<packing.blocks, nullptr, s>>>(x, x, Packing::kOnes, packing.rows);
         LAUNCH_AND_WAIT((plus_n<float, 3>), 2, s, x, 4);
         forwarded(s, x, 4);
         std::function<void(float)> add = [&](float c) { deep::er::plus<<<1, nullptr, s>>>(x, x, c, 4); };
         add(10);
         OK(aclrtSynchronizeStream(s));
         printf("%g\n", first_of(x, 255));
     }},
    {"not_waited_for",
     [] {
         float *x = input(), *pinned = nullptr, plain[256] = {};
         OK(aclrtMallocHost((void **)&pinned, 1024));
         memset(pinned, 0, 1024);
         aclrtStream s = stream();
         deep::er::plus<<<1, nullptr, s>>>(x, x, 1.0f, 4);
         OK(aclrtMemcpyAsync(pinned, 1024, x, 1024, ACL_MEMCPY_DEVICE_TO_HOST, s));
         OK(aclrtMemcpyAsync(plain, 1024, x, 1024, ACL_MEMCPY_DEVICE_TO_HOST, s)); // waits: it is not pinned
         printf("%g %g ", pinned[0], plain[0]);
         OK(aclrtSynchronizeStream(s));
         printf("%g ", pinned[0]);
         deep::er::plus<<<1, nullptr, s>>>(x, x, 1.0f, 4);
         OK(aclrtMemcpyAsync(pinned, 1024, x, 1024, ACL_MEMCPY_DEVICE_TO_HOST, s)); // never waited for
         printf("%g\n", pinned[0]);
     }},
    {"pinned_chain",
     [] {
         float *x = input(), *y = dev<float>(256), *pinned = nullptr;
         OK(aclrtMallocHost((void **)&pinned, 1024));
         aclrtStream s = stream();
         deep::er::plus<<<1, nullptr, s>>>(x, x, 1.0f, 4);
         OK(aclrtMemcpyAsync(pinned, 1024, x, 1024, ACL_MEMCPY_DEVICE_TO_HOST, s));
         OK(aclrtMemcpyAsync(y, 1024, pinned, 1024, ACL_MEMCPY_HOST_TO_DEVICE, s));
         OK(aclrtLaunchCallback([](void *seen) { printf("%g ", *(float *)seen); }, pinned, ACL_CALLBACK_BLOCK,
                                s));
         OK(aclrtSynchronizeStream(s));
         printf("%g\n", first_of(y));
         OK(aclrtFreeHost(pinned));
     }},
    {"library_call",
     [] {
         FILE *out = fopen("/dev/null", "w");
         fwrite(input(), 4, 64, out); // reads device memory
         fflush(out);
     }},
    {"c_free",
     [] {
         free(input()); // not of the C library
         puts("freed");
     }},
    {"pitch",
     [] {
         float *x = input(), h[64] = {};
         printf("%d ", aclrtMemcpy2d(x, 16, h, 64, 32, 4, ACL_MEMCPY_HOST_TO_DEVICE));
         printf("%d ", aclrtMemcpy(x, 4096, h, 64, ACL_MEMCPY_HOST_TO_DEVICE));
         printf("%d\n", aclrtMemset(x, 4096, 0, 1200));
     }},
    {"fresh_after_reset",
     [] {
         float *x = input();
         OK(aclrtFree(x));
         uint32_t seen[2] = {};
         for (uint32_t &one : seen) {
             void *p;
             OK(aclrtMalloc(&p, 1024, ACL_MEM_MALLOC_HUGE_FIRST));
             OK(aclrtMemcpy(&one, 4, p, 4, ACL_MEMCPY_DEVICE_TO_HOST));
             OK(aclrtFree(p));
             OK(aclrtResetDevice(0)); // what is free goes back to the system
             OK(aclrtSetDevice(0));
         }
         printf("%x %x\n", seen[0], seen[1]);
     }},
    {"no_device",
     [] {
         OK(aclrtResetDevice(0));
         void *p;
         printf("%d\n", aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST));
     }},
    {"confined",
     [] {
         auto *out = dev<int32_t>(8);
         int32_t seen[2] = {9, 9};
         peeks<<<1, nullptr, nullptr>>>(out);
         OK(aclrtSynchronizeDevice());
         OK(aclrtMemcpy(seen, 8, out, 8, ACL_MEMCPY_DEVICE_TO_HOST));
         forks<<<1, nullptr, nullptr>>>(input());
         printf("%d %d %d\n", seen[0], seen[1], aclrtSynchronizeDevice());
     }},
    {"simple",
     [] {
         float *x = input();
         deep::er::plus<<<4, nullptr, nullptr>>>(x, x, 2.0f, 4);
         printf("%d %g\n", aclrtSynchronizeDevice(), first_of(x, 255));
     }},
    {"externc",
     [] {
         float *x = input();
         aclrtStream s = stream();
         plus_c<<<2, nullptr, s>>>((uint8_t *)x, (uint8_t *)x, 4);
         wait(s);
         printf("%g\n", first_of(x, 64));
     }},
    {"template",
     [] {
         float *x = input();
         aclrtStream s = stream();
         Launcher<float>::go<3>(x, x, s);
         wait(s);
         printf("%g\n", first_of(x, 64));
     }},
    {"table",
     [] {
         Table t;
         for (auto &p : t.in) p = input();
         t.out = dev<float>(192);
         auto *d = dev<Table>(1);
         OK(aclrtMemcpy(d, sizeof t, &t, sizeof t, ACL_MEMCPY_HOST_TO_DEVICE));
         through_table<<<1, nullptr, nullptr>>>(d, 3);
         printf("%d %g %g\n", aclrtSynchronizeDevice(), first_of(t.out, 64), first_of(t.out, 128));
     }},
    {"many",
     [] {
         float *x = input(), *y = dev<float>(64), *z = input(), *w = dev<float>(64);
         many<<<1, nullptr, nullptr>>>(x, y, true, -3, 7, 1000, 0.5f, 0.25, half(2.0f), z, 1, 4u, -2, w);
         printf("%d %g %g\n", aclrtSynchronizeDevice(), first_of(y), first_of(w, 63));
     }},
    {"scalar",
     [] {
         std::vector<int> h{1, 2, 3, 4, 5};
         int *x = dev<int>(16), *o = dev<int>(16);
         OK(aclrtMemcpy(x, 20, h.data(), 20, ACL_MEMCPY_HOST_TO_DEVICE));
         scalar_sum<<<1, nullptr, nullptr>>>(x, o, 5);
         int v = 0;
         int e = aclrtSynchronizeDevice();
         OK(aclrtMemcpy(&v, 4, o, 4, ACL_MEMCPY_DEVICE_TO_HOST));
         printf("%d %d\n", e, v);
     }},
    {"says",
     [] {
         float *x = input();
         says<<<2, nullptr, nullptr>>>(x);
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"worth",
     [] {
         float *x = input();
         printf("%d ", static_cast<int32_t>(deep::er::plus<<<1, nullptr, nullptr>>>(x, x, 1.0f, 1)));
         printf("%d ", deep::er::plus<<<1, nullptr, (void *)"no stream">>>(x, x, 1.0f, 1));
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"stops",
     [] {
         stops<<<1, nullptr, nullptr>>>(input());
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"tasks",
     [] {
         aclrtStream a = stream(), b = stream();
         aclrtNotify notify = nullptr;
         float *x = input();
         int n = 1;
         deep::er::plus<<<1, nullptr, a>>>(x, x, 1.0f, 4);
         OK(aclrtLaunchHostFunc(a, add3, &n));
         OK(aclrtCreateNotify(&notify, 0));
         OK(aclrtRecordNotify(notify, a));
         OK(aclrtWaitAndResetNotify(notify, b, 0));
         deep::er::plus<<<1, nullptr, b>>>(x, x, 1.0f, 4);
         uint64_t *word = dev<uint64_t>(4);
         OK(aclrtValueWrite(word, 7, 0, b));
         OK(aclrtValueWait(word, 7, ACL_STREAM_WAIT_VALUE_GEQ, b));
         OK(aclrtSynchronizeStream(b));
         uint32_t cores = 0;
         OK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, 8));
         OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &cores));
         printf("%d %g %u %d\n", n, first_of(x), cores, aclrtGetRunMode(nullptr));
     }},
    {"wait_first",
     [] {
         uint64_t *word = dev<uint64_t>(4);
         OK(aclrtValueWait(word, 7, ACL_STREAM_WAIT_VALUE_EQ, stream()));
         printf("done\n");
     }},
    {"endless",
     [] {
         float *x = input();
         aclrtStream s = stream();
         endless<<<1, nullptr, s>>>(x);
         printf("%d ", aclrtSynchronizeStreamWithTimeout(s, 500));
         printf("%d ", aclrtSynchronizeStream(s)); // the kernel hangs still
         printf("%d\n", aclrtSynchronizeStream(s));
     }},
    {"lone_wait",
     [] {
         float *x = input();
         lone_wait<<<1, nullptr, nullptr>>>(x);
         printf("%d %s\n", aclrtSynchronizeDevice(), aclGetRecentErrMsg() ? "msg" : "");
     }},
    {"past_ub",
     [] {
         float *x = input();
         past_ub<<<1, nullptr, nullptr>>>(x, 200 * 1024);
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"odd_ub",
     [] {
         float *x = input();
         past_ub<<<1, nullptr, nullptr>>>(x, 4);
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"null",
     [] {
         float *x = input();
         deep::er::plus<<<1, nullptr, nullptr>>>(nullptr, x, 1.0f, 1);
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"stack",
     [] {
         float *x = input();
         float h[64] = {};
         deep::er::plus<<<1, nullptr, nullptr>>>(h, x, 1.0f, 1);
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"past_end",
     [] {
         float *x = input(), *y = dev<float>(64);
         deep::er::plus<<<1, nullptr, nullptr>>>(x, y, 1.0f, 4);
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"freed",
     [] {
         float *x = input(), *y = dev<float>(256);
         OK(aclrtFree(x));
         deep::er::plus<<<1, nullptr, nullptr>>>(x, y, 1.0f, 4);
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"double_free",
     [] {
         float *x = input();
         printf("%d ", aclrtFree(x));
         printf("%d ", aclrtFree(x));
         int h;
         printf("%d ", aclrtFree(&h));
         printf("%d\n", aclrtFreeHost(&h));
     }},
    {"deref",
     [] {
         float *x = input();
         printf("%g\n", x[5]); // a load by the host
     }},
    {"deref_write",
     [] {
         float *x = input();
         memset(x, 0, 64); // a store by the host
         printf("no\n");
     }},
    {"kinds",
     [] {
         float *x = input(), *y = dev<float>(256);
         float h[256];
         printf("%d %d %d %d %d\n", aclrtMemcpy(y, 1024, x, 1024, ACL_MEMCPY_DEVICE_TO_DEVICE),
                aclrtMemcpy(h, 1024, x, 1024, ACL_MEMCPY_HOST_TO_DEVICE),
                aclrtMemcpy(h, 1024, x, 1024, ACL_MEMCPY_DEFAULT),
                aclrtMemcpy(h, 512, x, 1024, ACL_MEMCPY_DEVICE_TO_HOST),
                aclrtMemcpy(x, 4096, ones.data(), 4096, ACL_MEMCPY_HOST_TO_DEVICE));
     }},
    {"oom",
     [] {
         void *p = nullptr;
         printf("%d ", aclrtMalloc(&p, 100ull << 30, ACL_MEM_MALLOC_HUGE_FIRST));
         size_t f, t;
         OK(aclrtGetMemInfo(ACL_HBM_MEM, &f, &t));
         printf("%d\n", f <= t && f > 0);
     }},
    {"device8", [] { printf("%d %d %d\n", aclrtSetDevice(7), aclrtSetDevice(8), aclrtSetDevice(-1)); }},
    {"init2",
     [] { printf("%d %d %d %d\n", aclInit(nullptr), aclInit(nullptr), aclFinalize(), aclrtSetDevice(0)); }},
    {"no_sync",
     [] {
         float *x = input();
         aclrtStream s = stream();
         deep::er::plus<<<1, nullptr, s>>>(x, x, 1.0f, 4);
         printf("%g\n", first_of(x));
     }},
    {"no_sync_default",
     [] {
         float *x = input();
         stream();
         deep::er::plus<<<1, nullptr, nullptr>>>(x, x, 1.0f, 4);
         printf("%g\n", first_of(x));
     }},
    {"no_sync_h2d",
     [] {
         float *x = input();
         aclrtStream s = stream();
         deep::er::plus<<<1, nullptr, s>>>(x, x, 1.0f, 4);
         OK(aclrtMemcpy(x, 1024, ones.data(), 1024, ACL_MEMCPY_HOST_TO_DEVICE));
         OK(aclrtSynchronizeStream(s));
         printf("done\n");
     }},
    {"halves",
     [] {
         float *x = input(), *y = dev<float>(256);
         aclrtStream s = stream(), t = stream();
         deep::er::plus<<<1, nullptr, s>>>(x, y, 1.0f, 2);
         deep::er::plus<<<1, nullptr, t>>>(x + 128, y + 128, 1.0f, 2);
         OK(aclrtSynchronizeDevice());
         printf("%g\n", first_of(y, 255));
     }},
    {"overlap",
     [] {
         float *x = input(), *y = dev<float>(256);
         aclrtStream s = stream(), t = stream();
         deep::er::plus<<<1, nullptr, s>>>(x, y, 1.0f, 3);
         deep::er::plus<<<1, nullptr, t>>>(x, y + 128, 1.0f, 2);
         OK(aclrtSynchronizeDevice());
         printf("done\n");
     }},
    {"async_copy_race",
     [] {
         float *x = input();
         aclrtStream s = stream(), t = stream();
         deep::er::plus<<<1, nullptr, s>>>(x, x, 1.0f, 4);
         void *h;
         OK(aclrtMallocHost(&h, 1024));
         OK(aclrtMemcpyAsync(h, 1024, x, 1024, ACL_MEMCPY_DEVICE_TO_HOST, t));
         OK(aclrtSynchronizeStream(t));
         printf("done\n");
     }},
    {"events",
     [] {
         float *x = input();
         aclrtStream s = stream(), t = stream();
         aclrtEvent a, b, c;
         OK(aclrtCreateEvent(&a));
         OK(aclrtCreateEventWithFlag(&b, ACL_EVENT_TIME_LINE));
         OK(aclrtCreateEvent(&c));
         OK(aclrtRecordEvent(a, s));
         for (int i = 0; i < 5; ++i) deep::er::plus<<<4, nullptr, s>>>(x, x, 1.0f, 4);
         OK(aclrtRecordEvent(b, s));
         OK(aclrtStreamWaitEvent(t, b));
         deep::er::plus<<<4, nullptr, t>>>(x, x, 1.0f, 4);
         OK(aclrtSynchronizeStream(t));
         float ms = 0;
         OK(aclrtSynchronizeEvent(b));
         OK(aclrtEventElapsedTime(&ms, a, b));
         printf("%g %d %d\n", first_of(x), ms > 0.001f && ms < 1, aclrtEventElapsedTime(&ms, a, c));
     }},
    {"callback",
     [] {
         float *x = input();
         aclrtStream s = stream();
         int n = 1;
         deep::er::plus<<<1, nullptr, s>>>(x, x, 1.0f, 4);
         OK(aclrtLaunchCallback(add3, &n, ACL_CALLBACK_BLOCK, s));
         OK(aclrtSynchronizeStream(s));
         printf("%d\n", n);
     }},
    {"memcpy2d",
     [] {
         float *x = dev<float>(256);
         float h[32];
         for (int i = 0; i < 32; ++i) h[i] = i;
         OK(aclrtMemset(x, 1024, 0, 1024));
         OK(aclrtMemcpy2d(x, 256, h, 32, 32, 4, ACL_MEMCPY_HOST_TO_DEVICE));
         printf("%g %g %g\n", first_of(x, 7), first_of(x, 64), first_of(x, 8));
     }},
    {"threads",
     [] {
         std::vector<std::thread> all;
         std::vector<float> got(4);
         for (int i = 0; i < 4; ++i)
             all.emplace_back([i, &got] {
                 OK(aclrtSetDevice(0));
                 float *x = input();
                 aclrtStream s = stream();
                 deep::er::plus<<<2, nullptr, s>>>(x, x, float(i), 4);
                 OK(aclrtSynchronizeStream(s));
                 got[i] = first_of(x, 100);
                 OK(aclrtDestroyStream(s));
                 OK(aclrtFree(x));
             });
         for (auto &t : all) t.join();
         printf("%g %g %g %g\n", got[0], got[1], got[2], got[3]);
     }},
    {"zero_blocks",
     [] {
         float *x = input();
         deep::er::plus<<<0, nullptr, nullptr>>>(x, x, 1.0f, 4);
         printf("%d\n", aclrtSynchronizeDevice());
     }},
    {"many_blocks",
     [] {
         float *x = input();
         deep::er::plus<<<200, nullptr, nullptr>>>(x, x, 1.0f, 4);
         printf("%d %g\n", aclrtSynchronizeDevice(), first_of(x));
     }},
    {"dead_stream",
     [] {
         float *x = input();
         aclrtStream s = stream();
         OK(aclrtDestroyStream(s));
         deep::er::plus<<<1, nullptr, s>>>(x, x, 1.0f, 4);
         printf("%d %d\n", aclrtSynchronizeStream(s), aclrtSynchronizeDevice());
     }},
    {"queries",
     [] {
         uint32_t n;
         OK(aclrtGetDeviceCount(&n));
         int64_t c, v;
         OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &c));
         OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &v));
         aclrtRunMode m;
         OK(aclrtGetRunMode(&m));
         printf("%u %ld %ld %d %s\n", n, (long)c, (long)v, m, aclrtGetSocName());
     }},
    {"error_then_ok",
     [] {
         float *x = input(), *y = dev<float>(64);
         aclrtStream s = stream();
         deep::er::plus<<<1, nullptr, s>>>(x, y, 1.0f, 4);
         printf("%d ", aclrtSynchronizeStream(s));
         printf("%d ", aclrtGetLastError(ACL_RT_THREAD_LEVEL));
         deep::er::plus<<<1, nullptr, s>>>(x, y, 1.0f, 1);
         wait(s);
         printf("%g\n", first_of(y));
     }},
    {"rt",
     [] {
         void *p, *s;
         OK(rtSetDevice(0));
         OK(rtMalloc(&p, 1024, RT_MEMORY_HBM, 0));
         OK(rtStreamCreate(&s, 0));
         OK(rtMemcpy(p, 1024, ones.data(), 1024, RT_MEMCPY_HOST_TO_DEVICE));
         deep::er::plus<<<4, nullptr, s>>>((float *)p, (float *)p, 3.0f, 4);
         OK(rtStreamSynchronize(s));
         printf("%g\n", first_of((float *)p));
         OK(rtFree(p));
         OK(rtStreamDestroy(s));
     }},
    {"reuse",
     [] {
         for (int i = 0; i < 50; ++i) {
             float *x = input();
             deep::er::plus<<<1, nullptr, nullptr>>>(x, x, float(i), 1);
             OK(aclrtSynchronizeDevice());
             if (first_of(x) != 1 + i) printf("wrong %d\n", i);
             OK(aclrtFree(x));
         }
         printf("done\n");
     }},
};
int main(int argc, char **argv) {
    if (argc < 2) {
        for (auto &c : cases) printf("%s ", c.first.c_str());
        return 0;
    }
    OK(aclrtSetDevice(0));
    cases.at(argv[1])();
    return 0;
}
