// The host runtime under the names that programs use, on a simulated chip (insight-trace exec).
#ifndef INSIGHT_TRACE_ACL_H
#define INSIGHT_TRACE_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int aclError;
typedef int aclStatus;
typedef uint16_t aclFloat16;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;
typedef void *aclrtNotify;
typedef void *aclrtBinHandle;
typedef void *aclrtFuncHandle;
typedef void *aclrtArgsHandle;
typedef void *aclrtParamHandle;
typedef void *aclrtDrvMemHandle;
typedef int aclrtEventWaitStatus;
typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *userData);
typedef void (*aclrtExceptionInfoCallback)(void *info);

#define ACL_PROJECT_ID 0
static const int ACL_SUCCESS = 0;
static const int ACL_ERROR_NONE = 0;
static const int ACL_ERROR_INVALID_PARAM = 100000;
static const int ACL_ERROR_UNINITIALIZE = 100001;
static const int ACL_ERROR_REPEAT_INITIALIZE = 100002;
static const int ACL_ERROR_INVALID_FILE = 100003;
static const int ACL_ERROR_BAD_ALLOC = 200000;
static const int ACL_ERROR_API_NOT_SUPPORT = 200001;
static const int ACL_ERROR_INVALID_DEVICE = 200002;
static const int ACL_ERROR_MEMORY_ADDRESS_UNALIGNED = 200003;
static const int ACL_ERROR_RESOURCE_NOT_MATCH = 200004;
static const int ACL_ERROR_STORAGE_OVER_LIMIT = 300000;
static const int ACL_ERROR_INTERNAL_ERROR = 500000;
static const int ACL_ERROR_FAILURE = 500001;
static const int ACL_ERROR_RT_PARAM_INVALID = 107000;
static const int ACL_ERROR_RT_INVALID_DEVICEID = 107001;
static const int ACL_ERROR_RT_CONTEXT_NULL = 107002;
static const int ACL_ERROR_RT_STREAM_CONTEXT = 107003;
static const int ACL_ERROR_RT_INVALID_MEMCPY_TYPE = 107012;
static const int ACL_ERROR_RT_MEMORY_ALLOCATION = 207001;
static const int ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000;
static const int ACL_ERROR_RT_AICORE_TIMEOUT = 507014;
static const int ACL_ERROR_RT_AICORE_EXCEPTION = 507015;
static const int ACL_ERROR_RT_VECTOR_CORE_TIMEOUT = 507034;
static const int ACL_ERROR_RT_VECTOR_CORE_EXCEPTION = 507035;
static const int ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046;

typedef enum aclDataType {
    ACL_DT_UNDEFINED = -1,
    ACL_FLOAT = 0,
    ACL_FLOAT16 = 1,
    ACL_INT8 = 2,
    ACL_INT32 = 3,
    ACL_UINT8 = 4,
    ACL_INT16 = 6,
    ACL_UINT16 = 7,
    ACL_UINT32 = 8,
    ACL_INT64 = 9,
    ACL_UINT64 = 10,
    ACL_DOUBLE = 11,
    ACL_BOOL = 12,
    ACL_STRING = 13,
    ACL_COMPLEX64 = 16,
    ACL_COMPLEX128 = 17,
    ACL_BF16 = 27,
    ACL_INT4 = 29,
    ACL_UINT1 = 30,
    ACL_COMPLEX32 = 33,
    ACL_HIFLOAT8 = 34,
    ACL_FLOAT8_E5M2 = 35,
    ACL_FLOAT8_E4M3FN = 36,
    ACL_FLOAT8_E8M0 = 37,
    ACL_FLOAT4_E2M1 = 40,
    ACL_FLOAT4_E1M2 = 41
} aclDataType;
typedef enum aclFormat {
    ACL_FORMAT_UNDEFINED = -1,
    ACL_FORMAT_NCHW = 0,
    ACL_FORMAT_NHWC = 1,
    ACL_FORMAT_ND = 2,
    ACL_FORMAT_NC1HWC0 = 3,
    ACL_FORMAT_FRACTAL_Z = 4,
    ACL_FORMAT_HWCN = 16,
    ACL_FORMAT_NDHWC = 27,
    ACL_FORMAT_FRACTAL_NZ = 29,
    ACL_FORMAT_NCDHW = 30,
    ACL_FORMAT_NDC1HWC0 = 32,
    ACL_FORMAT_NCL = 47
} aclFormat;
typedef enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST,
    ACL_MEM_MALLOC_HUGE_ONLY,
    ACL_MEM_MALLOC_NORMAL_ONLY,
    ACL_MEM_MALLOC_HUGE_FIRST_P2P,
    ACL_MEM_MALLOC_HUGE_ONLY_P2P,
    ACL_MEM_MALLOC_NORMAL_ONLY_P2P,
    ACL_MEM_MALLOC_HUGE1G_ONLY,
    ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
    ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000
} aclrtMemMallocPolicy;
typedef enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST,
    ACL_MEMCPY_HOST_TO_DEVICE,
    ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_DEVICE_TO_DEVICE,
    ACL_MEMCPY_DEFAULT,
    ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE,
    ACL_MEMCPY_INNER_DEVICE_TO_DEVICE,
    ACL_MEMCPY_INTER_DEVICE_TO_DEVICE
} aclrtMemcpyKind;
typedef enum aclrtCmoType {
    ACL_RT_CMO_TYPE_PREFETCH = 0,
    ACL_RT_CMO_TYPE_WRITEBACK,
    ACL_RT_CMO_TYPE_INVALID,
    ACL_RT_CMO_TYPE_FLUSH
} aclrtCmoType;
typedef enum aclrtEventStatus {
    ACL_EVENT_STATUS_COMPLETE = 0,
    ACL_EVENT_STATUS_NOT_READY = 1
} aclrtEventStatus;
typedef enum aclrtEventRecordedStatus {
    ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
    ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;
typedef enum aclrtStreamStatus {
    ACL_STREAM_STATUS_COMPLETE = 0,
    ACL_STREAM_STATUS_NOT_READY = 1
} aclrtStreamStatus;
typedef enum aclrtCallbackBlockType { ACL_CALLBACK_NO_BLOCK, ACL_CALLBACK_BLOCK } aclrtCallbackBlockType;
typedef enum aclrtRunMode { ACL_DEVICE, ACL_HOST } aclrtRunMode;
typedef enum aclrtMemAttr {
    ACL_DDR_MEM,
    ACL_HBM_MEM,
    ACL_DDR_MEM_HUGE,
    ACL_DDR_MEM_NORMAL,
    ACL_HBM_MEM_HUGE,
    ACL_HBM_MEM_NORMAL
} aclrtMemAttr;
typedef enum aclrtDevAttr {
    ACL_DEV_ATTR_AICPU_CORE_NUM = 1,
    ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
    ACL_DEV_ATTR_CUBE_CORE_NUM = 102,
    ACL_DEV_ATTR_VECTOR_CORE_NUM = 201,
    ACL_DEV_ATTR_WARP_SIZE = 202,
    ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE = 205,
    ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301,
    ACL_DEV_ATTR_L2_CACHE_SIZE = 302
} aclrtDevAttr;
typedef enum aclDeviceInfo {
    ACL_DEVICE_INFO_UNDEFINED = -1,
    ACL_DEVICE_INFO_AI_CORE_NUM = 0,
    ACL_DEVICE_INFO_VECTOR_CORE_NUM,
    ACL_DEVICE_INFO_L2_SIZE
} aclDeviceInfo;
typedef enum aclrtMemLocationType {
    ACL_MEM_LOCATION_TYPE_HOST = 0,
    ACL_MEM_LOCATION_TYPE_DEVICE,
    ACL_MEM_LOCATION_TYPE_UNREGISTERED
} aclrtMemLocationType;
typedef enum aclrtDevResLimitType {
    ACL_RT_DEV_RES_CUBE_CORE = 0,
    ACL_RT_DEV_RES_VECTOR_CORE
} aclrtDevResLimitType;
typedef enum aclrtErrorLevel { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;
typedef struct aclrtMallocConfig {
    void *attrs;
    size_t numAttrs;
} aclrtMallocConfig;
typedef struct aclrtMemLocation {
    uint32_t id;
    aclrtMemLocationType type;
} aclrtMemLocation;
typedef struct aclrtPtrAttributes {
    aclrtMemLocation location;
    uint32_t pageSize;
    uint32_t rsv[4];
} aclrtPtrAttributes;

#define ACL_EVENT_TIME_LINE               0x00000008U
#define ACL_EVENT_SYNC                    0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_EXTERNAL                0x00000020U
#define ACL_STREAM_FAST_LAUNCH            0x00000001U
#define ACL_STREAM_FAST_SYNC              0x00000002U
#define ACL_STREAM_PERSISTENT             0x00000004U
#define ACL_STREAM_DEVICE_USE_ONLY        0x00000020U
#define ACL_EVENT_DEVICE_USE_ONLY         0x00000010U
#define ACL_CONTINUE_ON_FAILURE           0x00000000U
#define ACL_STOP_ON_FAILURE               0x00000001U
#define ACL_RT_SUCCESS                    0

aclError aclInit(const char *configPath);
aclError aclFinalize(void);
aclError aclFinalizeReference(uint64_t *count);
aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch);
const char *aclrtGetSocName(void);
const char *aclGetRecentErrMsg(void);
aclError aclrtGetLastError(aclrtLastErrLevel level);
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
float aclFloat16ToFloat(aclFloat16 value);
aclFloat16 aclFloatToFloat16(float value);
size_t aclDataTypeSize(aclDataType type);

aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtResetDeviceForce(int32_t device);
aclError aclrtGetDevice(int32_t *device);
aclError aclrtGetDeviceCount(uint32_t *count);
aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t *value);
aclError aclGetDeviceCapability(uint32_t device, aclDeviceInfo what, int64_t *value);
aclError aclrtGetRunMode(aclrtRunMode *mode);
aclError aclrtSynchronizeDevice(void);
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);
aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);
aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *made);
aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout);
aclError aclrtSetOpWaitTimeout(uint32_t timeout);
aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);
aclError aclrtGetDevicesTopo(uint32_t device, uint32_t other, uint64_t *value);
aclError aclrtGetStreamAvailableNum(uint32_t *count);
aclError aclrtGetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t *value);
aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value);
aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value);

aclError aclrtCreateContext(aclrtContext *context, int32_t device);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetCurrentContext(aclrtContext *context);
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream);
aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t *flags, int32_t *active);

aclError aclrtMalloc(void **pointer, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtMallocAlign32(void **pointer, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtMallocCached(void **pointer, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtMallocWithCfg(void **pointer, size_t size, aclrtMemMallocPolicy policy,
                            aclrtMallocConfig *config);
aclError aclrtFree(void *pointer);
aclError aclrtMallocHost(void **pointer, size_t size);
aclError aclrtMallocHostWithCfg(void **pointer, uint64_t size, aclrtMallocConfig *config);
aclError aclrtFreeHost(void *pointer);
aclError aclrtMemset(void *pointer, size_t most, int32_t value, size_t count);
aclError aclrtMemsetAsync(void *pointer, size_t most, int32_t value, size_t count, aclrtStream stream);
aclError aclrtMemcpy(void *to, size_t most, const void *from, size_t count, aclrtMemcpyKind kind);
aclError aclrtMemcpyAsync(void *to, size_t most, const void *from, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream);
aclError aclrtMemcpyAsyncWithCondition(void *to, size_t most, const void *from, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream);
aclError aclrtMemcpy2d(void *to, size_t toPitch, const void *from, size_t fromPitch, size_t width,
                       size_t height, aclrtMemcpyKind kind);
aclError aclrtMemcpy2dAsync(void *to, size_t toPitch, const void *from, size_t fromPitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream);
aclError aclrtMemFlush(void *pointer, size_t size);
aclError aclrtMemInvalidate(void *pointer, size_t size);
aclError aclrtGetMemInfo(aclrtMemAttr attribute, size_t *free, size_t *total);
aclError aclrtPointerGetAttributes(const void *pointer, aclrtPtrAttributes *attributes);
aclError aclrtCmoAsync(void *pointer, size_t size, aclrtCmoType type, aclrtStream stream);

aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtDestroyStreamForce(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);
aclError aclrtStreamGetId(aclrtStream stream, int32_t *id);
aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority);
aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags);
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);
aclError aclrtStreamAbort(aclrtStream stream);
aclError aclrtLaunchCallback(aclrtCallback function, void *data, int type, aclrtStream stream);
aclError aclrtSubscribeReport(uint64_t thread, aclrtStream stream);
aclError aclrtUnSubscribeReport(uint64_t thread, aclrtStream stream);
aclError aclrtProcessReport(int32_t timeout);

aclError aclrtCreateEvent(aclrtEvent *event);
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);
aclError aclrtSynchronizeEvent(aclrtEvent event);
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);
aclError aclrtEventElapsedTime(float *ms, aclrtEvent start, aclrtEvent end);
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *microseconds);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout);

aclError aclrtGetHardwareSyncAddr(void **address);

// Functions of the host, notifies and values on a stream, streams with settings.
#define ACL_STREAM_WAIT_VALUE_GEQ 0x00000000U
#define ACL_STREAM_WAIT_VALUE_EQ  0x00000001U
#define ACL_STREAM_WAIT_VALUE_AND 0x00000002U
#define ACL_STREAM_WAIT_VALUE_NOR 0x00000003U
#define ACL_PKG_VERSION_MAX_SIZE  128
typedef enum aclrtStreamConfigAttr {
    ACL_RT_STREAM_WORK_ADDR_PTR = 0,
    ACL_RT_STREAM_WORK_SIZE,
    ACL_RT_STREAM_FLAG,
    ACL_RT_STREAM_PRIORITY
} aclrtStreamConfigAttr;
typedef struct aclrtStreamConfigHandle {
    void *workptr;
    size_t workSize;
    size_t flag;
    uint32_t priority;
} aclrtStreamConfigHandle;
typedef enum aclrtStreamState {
    ACL_RT_STREAM_STATE_CREATE_POST = 1,
    ACL_RT_STREAM_STATE_DESTROY_PRE
} aclrtStreamState;
typedef void (*aclrtStreamStateCallback)(aclrtStream stream, aclrtStreamState state, void *userData);
typedef enum aclrtFloatOverflowMode {
    ACL_RT_OVERFLOW_MODE_SATURATION = 0,
    ACL_RT_OVERFLOW_MODE_INFNAN,
    ACL_RT_OVERFLOW_MODE_UNDEF
} aclrtFloatOverflowMode;
typedef enum aclrtDeviceStatus {
    ACL_RT_DEVICE_STATUS_NORMAL = 0,
    ACL_RT_DEVICE_STATUS_ABNORMAL,
    ACL_RT_DEVICE_STATUS_END = 0xFFFF
} aclrtDeviceStatus;
typedef enum aclrtErrorType {
    ACL_RT_NO_ERROR = 0,
    ACL_RT_ERROR_MEMORY,
    ACL_RT_ERROR_L2,
    ACL_RT_ERROR_AICORE,
    ACL_RT_ERROR_LINK,
    ACL_RT_ERROR_L3_PORT,
    ACL_RT_ERROR_OTHERS = 0xFFFF
} aclrtErrorType;
typedef struct aclrtErrorInfo {
    uint8_t tryRepair;
    uint8_t hasDetail;
    uint8_t reserved[2];
    aclrtErrorType errorType;
    uint64_t detail[512];
} aclrtErrorInfo;
typedef struct aclrtUtilizationInfo {
    int32_t cubeUtilization;
    int32_t vectorUtilization;
    int32_t aicpuUtilization;
    int32_t memoryUtilization;
    void *utilizationExtend;
} aclrtUtilizationInfo;
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *data);
aclError aclrtSubscribeHostFunc(uint64_t thread, aclrtStream stream);
aclError aclrtUnSubscribeHostFunc(uint64_t thread, aclrtStream stream);
aclError aclrtProcessHostFunc(int32_t timeout);
aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag);
aclError aclrtDestroyNotify(aclrtNotify notify);
aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout);
aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *id);
aclError aclrtValueWrite(void *address, uint64_t value, uint32_t flag, aclrtStream stream);
aclError aclrtValueWait(void *address, uint64_t value, uint32_t flag, aclrtStream stream);
aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void);
aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle);
aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attribute,
                                 const void *value, size_t size);
aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle);
aclError aclrtStreamStop(aclrtStream stream);
aclError aclrtDeviceGetStreamPriorityRange(int32_t *least, int32_t *greatest);
aclError aclrtRegStreamStateCallback(const char *name, aclrtStreamStateCallback function, void *data);
aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);
aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag);
aclError aclrtSetDeviceResLimit(int32_t device, aclrtDevResLimitType type, uint32_t value);
aclError aclrtResetDeviceResLimit(int32_t device);
aclError aclrtGetErrorVerbose(int32_t device, aclrtErrorInfo *info);
aclError aclrtGetDeviceUtilizationRate(int32_t device, aclrtUtilizationInfo *info);
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode);
aclError aclrtQueryDeviceStatus(int32_t device, aclrtDeviceStatus *status);
aclError aclrtGetThreadLastTaskId(uint32_t *id);
aclError aclsysGetVersionStr(char *package, char *text);
aclError aclsysGetVersionNum(char *package, int32_t *number);

// Kernels in a file of their own (ascendc_fatbin_library), which the program loads and launches by their
// names.
typedef struct aclrtBinaryLoadOptions aclrtBinaryLoadOptions;
typedef struct aclrtLaunchKernelCfg aclrtLaunchKernelCfg;
typedef struct aclrtPlaceHolderInfo {
    uint32_t addrOffset; // of the pointer among the arguments
    uint32_t dataOffset; // of what it is to point to
} aclrtPlaceHolderInfo;
aclError aclrtBinaryLoadFromFile(const char *path, aclrtBinaryLoadOptions *options, aclrtBinHandle *file);
aclError aclrtBinaryLoadFromData(const void *data, size_t size, const aclrtBinaryLoadOptions *options,
                                 aclrtBinHandle *file);
aclError aclrtBinaryUnLoad(aclrtBinHandle file);
aclError aclrtBinaryGetFunction(const aclrtBinHandle file, const char *name, aclrtFuncHandle *kernel);
aclError aclrtLaunchKernel(aclrtFuncHandle kernel, uint32_t blocks, const void *arguments, size_t size,
                           aclrtStream stream);
aclError aclrtLaunchKernelV2(aclrtFuncHandle kernel, uint32_t blocks, const void *arguments, size_t size,
                             aclrtLaunchKernelCfg *settings, aclrtStream stream);
aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle kernel, uint32_t blocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg *settings, aclrtArgsHandle arguments,
                                     void *reserved);
aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle kernel, uint32_t blocks, aclrtStream stream,
                                       aclrtLaunchKernelCfg *settings, void *arguments, size_t size,
                                       aclrtPlaceHolderInfo *places, size_t count);
aclError aclrtKernelArgsInit(aclrtFuncHandle kernel, aclrtArgsHandle *arguments);
aclError aclrtKernelArgsGetHandleMemSize(aclrtFuncHandle kernel, size_t *size);
aclError aclrtKernelArgsGetMemSize(aclrtFuncHandle kernel, size_t given, size_t *size);
aclError aclrtKernelArgsInitByUserMem(aclrtFuncHandle kernel, aclrtArgsHandle arguments, void *memory,
                                      size_t size);
aclError aclrtKernelArgsAppend(aclrtArgsHandle arguments, void *value, size_t size,
                               aclrtParamHandle *parameter);
aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle arguments, aclrtParamHandle *parameter);
aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle arguments, aclrtParamHandle parameter,
                                             size_t size, void **buffer);
aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle arguments, aclrtParamHandle parameter, void *value,
                                   size_t size);
aclError aclrtKernelArgsFinalize(aclrtArgsHandle arguments);

// Names of other parts of the vendor's library: declared, so that a call says at run time what is not there.
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclOpExecutor aclOpExecutor;
typedef struct aclTensorDesc aclTensorDesc;
typedef struct aclDataBuffer aclDataBuffer;
typedef struct aclmdlDesc aclmdlDesc;
typedef struct aclmdlDataset aclmdlDataset;
typedef struct aclopAttr aclopAttr;
#ifdef __cplusplus
aclTensor *aclCreateTensor(...);
aclScalar *aclCreateScalar(...);
aclIntArray *aclCreateIntArray(...);
aclTensorList *aclCreateTensorList(...);
aclTensorDesc *aclCreateTensorDesc(...);
aclDataBuffer *aclCreateDataBuffer(...);
aclError aclDestroyTensor(...);
aclError aclDestroyScalar(...);
aclError aclDestroyIntArray(...);
aclError aclDestroyTensorList(...);
aclError aclDestroyDataBuffer(...);
void aclDestroyTensorDesc(...);
aclError aclmdlLoadFromFile(...);
aclError aclmdlLoadFromMem(...);
aclError aclmdlExecute(...);
aclError aclmdlUnload(...);
aclmdlDesc *aclmdlCreateDesc(...);
aclError aclmdlGetDesc(...);
aclError aclopExecuteV2(...);
aclError aclopCompileAndExecute(...);
aclError aclopSetModelDir(...);
aclError aclopRegisterCompileFunc(...);
aclError aclrtBinaryGetFunctionByEntry(...);
aclError aclrtLaunchKernelWithArgsArray(...);
aclError aclrtReserveMemAddress(...);
aclError aclrtMallocPhysical(...);
aclError aclrtMapMem(...);
aclError aclrtIpcMemGetExportKey(...);
aclError aclrtIpcMemImportByKey(...);
aclError aclrtDeviceEnablePeerAccess(...);
aclError aclrtDeviceCanAccessPeer(...);
aclError aclrtSetStreamResLimit(...);
aclError aclrtSetStreamAttribute(...);
aclError aclrtGetStreamAttribute(...);
aclError aclrtHostRegister(...);
aclError aclrtHostUnregister(...);
aclError aclrtReleaseMemAddress(...);
aclError aclrtFreePhysical(...);
aclError aclrtUnmapMem(...);
aclError aclrtMemSetAccess(...);
aclError aclrtMemGetAllocationGranularity(...);
aclError aclrtMemExportToShareableHandle(...);
aclError aclrtMemImportFromShareableHandle(...);
aclError aclrtDeviceDisablePeerAccess(...);
aclError aclrtDevicePeerAccessStatus(...);
aclError aclrtMemcpyBatch(...);
aclError aclmdlRICaptureBegin(...);
aclError aclmdlRICaptureEnd(...);
aclError aclmdlRIExecuteAsync(...);
aclError aclmdlRIDestroy(...);
aclError aclrtIpcMemClose(...);
aclError aclprofInit(...);
aclError aclprofStart(...);
aclError aclprofStop(...);
aclError aclprofFinalize(...);
#endif

#ifdef __cplusplus
}
#endif

#endif
