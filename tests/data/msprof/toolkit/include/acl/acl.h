/* The few functions of ACL that a replay calls, with the types and values of the public header. */
#ifndef STANDIN_ACL_H
#define STANDIN_ACL_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
typedef int aclError;
typedef uint16_t aclFloat16;
enum { ACL_SUCCESS = 0 };
typedef void *aclrtStream;
typedef enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST = 0 } aclrtMemMallocPolicy;
typedef enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST = 0,
    ACL_MEMCPY_HOST_TO_DEVICE = 1,
    ACL_MEMCPY_DEVICE_TO_HOST = 2
} aclrtMemcpyKind;

aclError aclInit(const char *config);
aclError aclFinalize(void);
aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtMalloc(void **memory, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtFree(void *memory);
aclError aclrtMallocHost(void **memory, size_t size);
aclError aclrtFreeHost(void *memory);
const char *aclGetRecentErrMsg(void);
aclError aclrtMemset(void *memory, size_t room, int32_t value, size_t count);
aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t count, aclrtMemcpyKind kind);
#ifdef __cplusplus
}
#endif
#endif
