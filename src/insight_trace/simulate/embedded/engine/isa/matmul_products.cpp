// How wide the machine computes changes no bit of a result: rows and columns go side by side, k never.
#include "isa/matmul_products.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define INLINE __attribute__((always_inline)) inline

namespace insight_trace::engine {

namespace {

// As many elements as a register has bytes for.
template <class T, int Bytes> struct Packed {
    typedef T type __attribute__((vector_size(Bytes)));
};

// `Rows` rows of one panel, kept in registers while k goes by.
template <class T, int Bytes, int Rows> INLINE void block(const T *a, const T *b, T *sum, int64_t k) {
    using V = typename Packed<T, Bytes>::type;
    constexpr int kParts = int(kPanel * sizeof(T)) / Bytes, kEach = int(kPanel) / kParts;
    V acc[Rows][kParts] = {};
    for (int64_t p = 0; p < k; ++p) {
#pragma GCC unroll 8
        for (int i = 0; i < kParts; ++i) {
            V right;
            memcpy(&right, b + p * kPanel + i * kEach, sizeof right);
#pragma GCC unroll 8
            for (int r = 0; r < Rows; ++r) acc[r][i] += a[r * k + p] * right;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int i = 0; i < kParts; ++i) memcpy(sum + r * kPanel + i * kEach, &acc[r][i], sizeof(V));
}

template <int Bytes, int Rows>
INLINE void fused_block(const float *a, const float *b, float *sum, int64_t k) {
    using D = typename Packed<double, Bytes>::type;
    using F = typename Packed<float, Bytes / 2>::type;
    constexpr int kParts = int(kPanel * sizeof(double)) / Bytes, kEach = int(kPanel) / kParts;
    F acc[Rows][kParts] = {};
    for (int64_t p = 0; p < k; ++p) {
#pragma GCC unroll 8
        for (int i = 0; i < kParts; ++i) {
            F right;
            memcpy(&right, b + p * kPanel + i * kEach, sizeof right);
            const D wide = __builtin_convertvector(right, D);
#pragma GCC unroll 8
            for (int r = 0; r < Rows; ++r) {
                const D total = __builtin_convertvector(acc[r][i], D) + double(a[r * k + p]) * wide;
                acc[r][i] = __builtin_convertvector(total, F);
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int i = 0; i < kParts; ++i) memcpy(sum + r * kPanel + i * kEach, &acc[r][i], sizeof(F));
}

template <class T, int Bytes, int Rows>
INLINE void multiply(const T *left, const T *right, T *sum, int64_t m, int64_t k, int64_t panels) {
    for (int64_t panel = 0; panel < panels; ++panel) {
        const T *b = right + panel * k * kPanel;
        T *to = sum + panel * m * kPanel;
        int64_t i = 0;
        for (; i + Rows <= m; i += Rows) block<T, Bytes, Rows>(left + i * k, b, to + i * kPanel, k);
        for (; i < m; ++i) block<T, Bytes, 1>(left + i * k, b, to + i * kPanel, k);
    }
}

template <int Bytes, int Rows>
INLINE void multiply_fused(const float *left, const float *right, float *sum, int64_t m, int64_t k,
                           int64_t panels) {
    for (int64_t panel = 0; panel < panels; ++panel) {
        const float *b = right + panel * k * kPanel;
        float *to = sum + panel * m * kPanel;
        int64_t i = 0;
        for (; i + Rows <= m; i += Rows) fused_block<Bytes, Rows>(left + i * k, b, to + i * kPanel, k);
        for (; i < m; ++i) fused_block<Bytes, 1>(left + i * k, b, to + i * kPanel, k);
    }
}

// Each product for each width of registers that the machine may have.
#define PRODUCTS(name, attributes, bytes, rows)                                                              \
    struct name {                                                                                            \
        attributes static void plain(const float *a, const float *b, float *to, int64_t m, int64_t k,        \
                                     int64_t panels) {                                                       \
            multiply<float, bytes, rows>(a, b, to, m, k, panels);                                            \
        }                                                                                                    \
        attributes static void whole(const uint32_t *a, const uint32_t *b, uint32_t *to, int64_t m,          \
                                     int64_t k, int64_t panels) {                                            \
            multiply<uint32_t, bytes, rows>(a, b, to, m, k, panels);                                         \
        }                                                                                                    \
        attributes static void fused(const float *a, const float *b, float *to, int64_t m, int64_t k,        \
                                     int64_t panels) {                                                       \
            multiply_fused<bytes, rows>(a, b, to, m, k, panels);                                             \
        }                                                                                                    \
    };

PRODUCTS(Narrow, , 16, 2)

#if defined(__x86_64__)
PRODUCTS(Avx2, __attribute__((target("avx2"))), 32, 4)
PRODUCTS(Avx512, __attribute__((target("avx512f,avx512dq"))), 64, 8)

// What the processor has and the system saves: 0, 2 or 512.
int found_width() {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if ((low & 0xe6) == 0xe6 && (b & bit_AVX512F) && (b & bit_AVX512DQ)) return 512;
    return (low & 6) == 6 && (b & bit_AVX2) ? 2 : 0;
}
const int kWidth = found_width();

#define ON_THE_WIDEST(product, ...)                                                                          \
    (kWidth == 512 ? Avx512::product : kWidth == 2 ? Avx2::product : Narrow::product)(__VA_ARGS__)
#else
#define ON_THE_WIDEST(product, ...) Narrow::product(__VA_ARGS__)
#endif

} // namespace

void multiply_panels(const float *left, const float *right, float *sum, int64_t m, int64_t k,
                     int64_t panels) {
    ON_THE_WIDEST(plain, left, right, sum, m, k, panels);
}

void multiply_panels(const uint32_t *left, const uint32_t *right, uint32_t *sum, int64_t m, int64_t k,
                     int64_t panels) {
    ON_THE_WIDEST(whole, left, right, sum, m, k, panels);
}

void multiply_panels_fused(const float *left, const float *right, float *sum, int64_t m, int64_t k,
                           int64_t panels) {
    ON_THE_WIDEST(fused, left, right, sum, m, k, panels);
}

} // namespace insight_trace::engine
