// The host runtime as device tests use it: memory and launches of the modelled chip.
#pragma once

#include <cstddef>
#include <cstdint>

using aclError = int;
using aclStatus = int;
using aclFloat16 = uint16_t;
using aclrtStream = void *;
using aclrtContext = void *;
constexpr aclError ACL_SUCCESS = 0;
constexpr aclError ACL_ERROR_NONE = 0;

enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY };
enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST,
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_DEVICE_TO_DEVICE
};
enum aclrtCmoType { ACL_RT_CMO_TYPE_PREFETCH = 0, ACL_RT_CMO_TYPE_WRITEBACK, ACL_RT_CMO_TYPE_INVALID };

extern "C" {
aclError aclrtMalloc(void **made, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *memory);
aclError aclrtMallocHost(void **made, size_t size);
aclError aclrtFreeHost(void *memory);
aclError aclrtMemset(void *memory, size_t most, int32_t value, size_t size);
aclError aclrtMemcpy(void *to, size_t most, const void *from, size_t size, aclrtMemcpyKind kind);
float aclFloat16ToFloat(aclFloat16 bits);
}
// What there is nothing to do for: launches run to their end at once.
inline aclError aclInit(const char *) { return ACL_SUCCESS; }
inline aclError aclFinalize() { return ACL_SUCCESS; }
inline aclError aclrtSetDevice(int32_t) { return ACL_SUCCESS; }
inline aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }
inline aclError aclrtCreateContext(aclrtContext *made, int32_t) { return *made = nullptr, ACL_SUCCESS; }
inline aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
inline aclError aclrtCreateStream(aclrtStream *made) { return *made = nullptr, ACL_SUCCESS; }
inline aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeDevice() { return ACL_SUCCESS; }
inline aclError aclrtCmoAsync(void *, size_t, aclrtCmoType, aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtMemcpyAsync(void *to, size_t most, const void *from, size_t size, aclrtMemcpyKind kind,
                                 aclrtStream) {
    return aclrtMemcpy(to, most, from, size, kind);
}
inline aclError aclrtMemsetAsync(void *memory, size_t most, int32_t value, size_t size, aclrtStream) {
    return aclrtMemset(memory, most, value, size);
}
inline const char *aclGetRecentErrMsg() { return ""; }
