// The lower runtime under the names that programs use.
#ifndef INSIGHT_TRACE_RT_H
#define INSIGHT_TRACE_RT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t rtError_t;
typedef void *rtStream_t;
typedef void *rtEvent_t;
typedef void *rtContext_t;
typedef uint32_t rtMemType_t;
typedef enum tagRtMemcpyKind {
    RT_MEMCPY_HOST_TO_HOST,
    RT_MEMCPY_HOST_TO_DEVICE,
    RT_MEMCPY_DEVICE_TO_HOST,
    RT_MEMCPY_DEVICE_TO_DEVICE
} rtMemcpyKind_t;
#define RT_ERROR_NONE              0
#define RT_MEMORY_DEFAULT          0x0
#define RT_MEMORY_HBM              0x2
#define RT_STREAM_DEFAULT          0x0
#define RT_STREAM_PRIORITY_DEFAULT 0

rtError_t rtGetC2cCtrlAddr(uint64_t *address, uint32_t *size);
rtError_t rtGetAiCoreCount(uint32_t *count);
rtError_t rtGetDeviceCount(int32_t *count);
rtError_t rtSetDevice(int32_t device);
rtError_t rtDeviceReset(int32_t device);
rtError_t rtDeviceSynchronize(void);
rtError_t rtMalloc(void **pointer, uint64_t size, rtMemType_t type, uint16_t module);
rtError_t rtFree(void *pointer);
rtError_t rtMallocHost(void **pointer, uint64_t size, uint16_t module);
rtError_t rtFreeHost(void *pointer);
rtError_t rtMemcpy(void *to, uint64_t most, const void *from, uint64_t count, rtMemcpyKind_t kind);
rtError_t rtMemset(void *pointer, uint64_t most, uint32_t value, uint64_t count);
rtError_t rtStreamCreate(rtStream_t *stream, int32_t priority);
rtError_t rtStreamDestroy(rtStream_t stream);
rtError_t rtStreamSynchronize(rtStream_t stream);
rtError_t rtStreamQuery(rtStream_t stream);
rtError_t rtStreamCreateWithFlags(rtStream_t *stream, int32_t priority, uint32_t flags);
rtError_t rtStreamWaitEvent(rtStream_t stream, rtEvent_t event);
rtError_t rtEventCreate(rtEvent_t *event);
rtError_t rtEventCreateWithFlag(rtEvent_t *event, uint32_t flag);
rtError_t rtEventDestroy(rtEvent_t event);
rtError_t rtEventRecord(rtEvent_t event, rtStream_t stream);
rtError_t rtEventSynchronize(rtEvent_t event);
rtError_t rtEventElapsedTime(float *ms, rtEvent_t start, rtEvent_t end);
rtError_t rtMemcpyAsync(void *to, uint64_t most, const void *from, uint64_t count, rtMemcpyKind_t kind,
                        rtStream_t stream);
rtError_t rtMemsetAsync(void *pointer, uint64_t most, uint32_t value, uint64_t count, rtStream_t stream);
rtError_t rtGetDevice(int32_t *device);
rtError_t rtGetAiCpuCount(uint32_t *count);
rtError_t rtGetSocVersion(char *name, uint32_t most);

#ifdef __cplusplus
}
#endif
#endif
