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

// Kernels that a program registers itself, from a file that the compiler made of the device's half alone.
#define RT_DEV_BINARY_MAGIC_ELF        0x43554245U
#define RT_DEV_BINARY_MAGIC_ELF_AIVEC  0x41415246U
#define RT_DEV_BINARY_MAGIC_ELF_AICUBE 0x41494343U
typedef struct tagRtDevBinary {
    uint32_t magic;
    uint32_t version;
    const void *data;
    uint64_t length;
} rtDevBinary_t;
typedef struct tagRtSmDesc rtSmDesc_t;
rtError_t rtDevBinaryRegister(const rtDevBinary_t *file, void **handle);
rtError_t rtDevBinaryUnRegister(void *handle);
rtError_t rtFunctionRegister(void *handle, const void *stub, const char *name, const void *kernel,
                             uint32_t mode);
rtError_t rtKernelLaunch(const void *stub, uint32_t blocks, void *arguments, uint32_t size,
                         rtSmDesc_t *memory, rtStream_t stream);
rtError_t rtKernelLaunchWithFlag(const void *stub, uint32_t blocks, void *arguments, uint32_t size,
                                 rtSmDesc_t *memory, rtStream_t stream, uint32_t flags);

#ifdef __cplusplus
}
#endif
#endif
