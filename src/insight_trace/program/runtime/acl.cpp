// The functions of acl.h and rt.h.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <malloc.h>
#include <map>
#include <new>
#include <set>

#include "acl/acl.h"
#include "runtime.hpp"
#include "runtime/rt.h"

using namespace insight_trace_program;

namespace {

Device &device() { return Device::get(); }
using Lock = std::lock_guard<std::recursive_mutex>;
std::map<uint8_t *, size_t> g_host; // pinned memory of the program, and its bytes
std::set<Event *> g_events;
constexpr int32_t kDevices = 8;

const char *side(const void *pointer) {
    return device().memory.is_device(pointer) ? "the device" : "the host";
}

bool is_pinned(const void *pointer) {
    const auto *byte = static_cast<const uint8_t *>(pointer);
    auto after = g_host.upper_bound(const_cast<uint8_t *>(byte));
    return after != g_host.begin() && byte < std::prev(after)->first + std::prev(after)->second;
}

// A device has no context before a device is set, and answers 107002; here the call goes on.
void needs_device(const char *call) {
    if (device().chosen) return;
    device().chosen = true;
    say("%s before aclrtSetDevice: a device answers 107002, it has no context", call);
}

// Where the program itself may touch `count` bytes; null, and said why, where they are not its own.
uint8_t *touchable(const char *call, const void *pointer, size_t count) {
    DeviceMemory &memory = device().memory;
    if (!memory.is_device(pointer)) return const_cast<uint8_t *>(static_cast<const uint8_t *>(pointer));
    const auto address = reinterpret_cast<uint64_t>(pointer);
    const Buffer *buffer = memory.find(address);
    if (!buffer) {
        const Buffer *gone = memory.find(address, false);
        fail_with(kInvalidParameter, "%s: 0x%llx belongs to no buffer of the device%s%s%s", call,
                  static_cast<unsigned long long>(address), gone ? ": " : "", gone ? gone->name.c_str() : "",
                  gone ? " was there, and was freed" : "");
        return nullptr;
    }
    if (address - buffer->address + count > buffer->copied()) {
        fail_with(kInvalidParameter, "%s: %zu bytes from 0x%llx go past the end of %s (%llu bytes)", call,
                  count, static_cast<unsigned long long>(address), buffer->name.c_str(),
                  static_cast<unsigned long long>(buffer->size));
        return nullptr;
    }
    return memory.host(pointer);
}

// Who called a function of this file.
#define CALLER __builtin_return_address(0)

int copy(const char *call, void *caller, Stream *on, void *to, size_t most, const void *from, size_t count,
         aclrtMemcpyKind kind) {
    Lock lock(device().mutex);
    if (count == 0) return kSuccess;
    if (!to || !from) return fail_with(kInvalidParameter, "%s: a null pointer", call);
    if (most < count)
        return fail_with(kInvalidParameter, "%s: %zu bytes do not fit into %zu", call, count, most);
    const bool to_device = device().memory.is_device(to), from_device = device().memory.is_device(from);
    static const int expected[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
    if (kind <= ACL_MEMCPY_DEVICE_TO_DEVICE &&
        (expected[kind][0] != to_device || expected[kind][1] != from_device)) {
        static const char *names[] = {"HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE"};
        return fail_with(107012, "%s: ACL_MEMCPY_%s, but it copies from %s to %s", call, names[kind],
                         side(from), side(to));
    }
    uint8_t *target = touchable(call, to, count);
    const uint8_t *source = touchable(call, from, count);
    if (!target || !source) return kInvalidParameter;
    if (!on) device().complete_copies(device().default_stream);
    if (!from_device) device().complete_copies(from, count);
    if (!to_device) device().complete_copies(to, count);
    if (on && from_device && !to_device && is_pinned(to))
        device().copies_later(*on, to, source, count, caller);
    else
        memmove(target, source, count);
    if (caller) {
        device().copies(on, call, caller, from, count, false);
        device().copies(on, call, caller, to, count, true);
    }
    if (to_device) device().wrote(reinterpret_cast<uint64_t>(to), count);
    return kSuccess;
}

int fill(const char *call, void *caller, Stream *on, void *pointer, size_t most, int32_t value,
         size_t count) {
    Lock lock(device().mutex);
    if (!pointer || most < count)
        return fail_with(kInvalidParameter, "%s: %zu bytes do not fit", call, count);
    uint8_t *target = touchable(call, pointer, count);
    if (!target) return kInvalidParameter;
    memset(target, value, count);
    device().copies(on, call, caller, pointer, count, true);
    if (device().memory.is_device(pointer)) device().wrote(reinterpret_cast<uint64_t>(pointer), count);
    return kSuccess;
}

int allocate(void **pointer, size_t size) {
    Lock lock(device().mutex);
    needs_device("aclrtMalloc");
    if (!pointer || size == 0) return fail_with(kInvalidParameter, "aclrtMalloc: %zu bytes", size);
    *pointer = device().memory.allocate(size, "buffer");
    if (!*pointer)
        return fail_with(kOutOfMemory,
                         "aclrtMalloc: no room for %zu bytes on the device (%llu of %llu are in use)", size,
                         static_cast<unsigned long long>(device().memory.used()),
                         static_cast<unsigned long long>(device().memory.capacity()));
    return kSuccess;
}

} // namespace

extern "C" {

int insight_trace_not_there(const char *name, void *caller) {
    return fail_with(
        kNotSupported,
        "%s is not there: insight-trace runs kernels that a program launches itself, not the vendor's "
        "operators, models or packages; it was called%s",
        name, caller_of(caller).c_str());
}

aclError aclInit(const char *) {
    if (device().initialised) return kRepeatInitialise;
    device().initialised = true;
    return kSuccess;
}
aclError aclFinalize(void) {
    device().initialised = false;
    return kSuccess;
}
aclError aclFinalizeReference(uint64_t *count) {
    if (count) *count = 0;
    return aclFinalize();
}
aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch) {
    return *major = 1, *minor = 15, *patch = 0, kSuccess;
}
const char *aclrtGetSocName(void) { return device().chip().soc.c_str(); }
const char *aclGetRecentErrMsg(void) {
    static thread_local std::string kept;
    kept.swap(device().error_text);
    device().error_text.clear();
    return kept.c_str();
}
aclError aclrtGetLastError(aclrtLastErrLevel) {
    const int error = device().last_error;
    device().last_error = 0;
    return error;
}
aclError aclrtPeekAtLastError(aclrtLastErrLevel) { return device().last_error; }

float aclFloat16ToFloat(aclFloat16 bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
                   mantissa = bits & 1023;
    float value;
    if (exponent == 31) {
        const uint32_t word = sign | 0x7f800000u | mantissa << 13;
        memcpy(&value, &word, 4);
        return value;
    }
    value = exponent ? std::ldexp(static_cast<float>(mantissa | 1024), static_cast<int>(exponent) - 25)
                     : std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
}
aclFloat16 aclFloatToFloat16(float value) {
    uint32_t word;
    memcpy(&word, &value, 4);
    const auto sign = static_cast<uint16_t>(word >> 16 & 0x8000);
    if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
    const float magnitude = std::fabs(value);
    if (magnitude >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00);
    if (magnitude < 0x1p-14f)
        return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f)));
    int exponent;
    const float fraction = std::frexp(magnitude, &exponent); // 0.5 .. 1
    auto mantissa = static_cast<uint32_t>(std::nearbyint(fraction * 2048.0f));
    if (mantissa == 2048) mantissa = 1024, ++exponent;
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent + 14) << 10 | (mantissa & 1023));
}
size_t aclDataTypeSize(aclDataType type) {
    switch (type) {
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
        return 4;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
        return 2;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
        return 8;
    case ACL_COMPLEX128:
        return 16;
    default:
        return 1;
    }
}

// --- devices
aclError aclrtSetDevice(int32_t number) {
    if (number < 0 || number >= kDevices)
        return fail_with(107001, "aclrtSetDevice(%d): there are devices 0 to %d", number, kDevices - 1);
    device().current = number;
    device().chosen = true;
    return kSuccess;
}
aclError aclrtResetDevice(int32_t) {
    Lock lock(device().mutex);
    device().synchronize_all();
    device().memory.give_back();
    device().chosen = false;
    return kSuccess;
}
aclError aclrtResetDeviceForce(int32_t number) { return aclrtResetDevice(number); }
aclError aclrtGetDevice(int32_t *number) {
    if (!number) return fail_with(kInvalidParameter, "aclrtGetDevice: a null pointer");
    return *number = device().current, kSuccess;
}
aclError aclrtGetDeviceCount(uint32_t *count) {
    if (!count) return fail_with(kInvalidParameter, "aclrtGetDeviceCount: a null pointer");
    return *count = kDevices, kSuccess;
}
aclError aclrtGetDeviceInfo(uint32_t, aclrtDevAttr attribute, int64_t *value) {
    if (!value) return fail_with(kInvalidParameter, "aclrtGetDeviceInfo: a null pointer");
    const ChipFacts &chip = device().chip();
    switch (static_cast<int>(attribute)) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
        *value = chip.cube_cores;
        break;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
        *value = chip.vector_cores;
        break;
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
        *value = 8;
        break;
    case ACL_DEV_ATTR_WARP_SIZE:
        *value = 32;
        break;
    case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE:
        *value = chip.ub;
        break;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
        *value = static_cast<int64_t>(64ull << 30);
        break;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
        *value = chip.l2;
        break;
    default:
        return fail_with(kInvalidParameter, "aclrtGetDeviceInfo: attribute %d is not known",
                         static_cast<int>(attribute));
    }
    return kSuccess;
}
aclError aclGetDeviceCapability(uint32_t, aclDeviceInfo what, int64_t *value) {
    const ChipFacts &chip = device().chip();
    *value = what == ACL_DEVICE_INFO_AI_CORE_NUM       ? chip.cube_cores
             : what == ACL_DEVICE_INFO_VECTOR_CORE_NUM ? chip.vector_cores
                                                       : chip.l2;
    return kSuccess;
}
aclError aclrtGetRunMode(aclrtRunMode *mode) {
    if (!mode) return fail_with(kInvalidParameter, "aclrtGetRunMode: a null pointer");
    return *mode = ACL_HOST, kSuccess;
}
aclError aclrtSynchronizeDevice(void) {
    Lock lock(device().mutex);
    return device().synchronize_all();
}
aclError aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds) {
    Lock lock(device().mutex);
    bool hangs = device().default_stream.hangs();
    for (const Stream *one : device().streams) hangs |= one->hangs();
    return hangs && milliseconds > 0 ? kWaitTimeout : aclrtSynchronizeDevice();
}
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode) { return kSuccess; }
aclError aclrtSetOpExecuteTimeOut(uint32_t) { return kSuccess; }
aclError aclrtSetOpExecuteTimeOutV2(uint64_t asked, uint64_t *made) { return *made = asked, kSuccess; }
aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t) { return kSuccess; }
aclError aclrtSetOpWaitTimeout(uint32_t) { return kSuccess; }
aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback) { return kSuccess; }
aclError aclrtGetDevicesTopo(uint32_t, uint32_t, uint64_t *value) { return *value = 0, kSuccess; }
aclError aclrtQueryDeviceStatus(int32_t, aclrtDeviceStatus *status) {
    return *status = ACL_RT_DEVICE_STATUS_NORMAL, kSuccess;
}
aclError aclrtGetStreamAvailableNum(uint32_t *count) { return *count = 1024, kSuccess; }

// --- contexts: there is one
aclError aclrtCreateContext(aclrtContext *context, int32_t number) {
    if (!context) return fail_with(kInvalidParameter, "aclrtCreateContext: a null pointer");
    return *context = &device(), aclrtSetDevice(number);
}
aclError aclrtDestroyContext(aclrtContext) { return kSuccess; }
aclError aclrtSetCurrentContext(aclrtContext) { return device().chosen = true, kSuccess; }
aclError aclrtGetCurrentContext(aclrtContext *context) {
    if (!context) return fail_with(kInvalidParameter, "aclrtGetCurrentContext: a null pointer");
    return *context = &device(), kSuccess;
}
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream) {
    return *stream = &device().default_stream, kSuccess;
}
aclError aclrtGetPrimaryCtxState(int32_t, uint32_t *flags, int32_t *active) {
    if (flags) *flags = 0;
    return *active = 1, kSuccess;
}

// --- memory
aclError aclrtMalloc(void **pointer, size_t size, aclrtMemMallocPolicy) { return allocate(pointer, size); }
aclError aclrtMallocAlign32(void **pointer, size_t size, aclrtMemMallocPolicy) {
    return allocate(pointer, size);
}
aclError aclrtMallocCached(void **pointer, size_t size, aclrtMemMallocPolicy) {
    return allocate(pointer, size);
}
aclError aclrtMallocWithCfg(void **pointer, size_t size, aclrtMemMallocPolicy, aclrtMallocConfig *) {
    return allocate(pointer, size);
}
aclError aclrtFree(void *pointer) {
    Lock lock(device().mutex);
    if (!pointer) return fail_with(kInvalidParameter, "aclrtFree: a null pointer");
    const Buffer *buffer = device().memory.find(reinterpret_cast<uint64_t>(pointer));
    const uint64_t room = buffer ? buffer->room : 0;
    if (device().memory.release(pointer)) {
        device().forget_accesses(reinterpret_cast<uint64_t>(pointer), room);
        return kSuccess;
    }
    const Buffer *gone = device().memory.find(reinterpret_cast<uint64_t>(pointer), false);
    return fail_with(kInvalidParameter, "aclrtFree: %p is %s", pointer,
                     gone ? "freed already" : "not the start of a buffer that aclrtMalloc returned");
}
aclError aclrtMallocHost(void **pointer, size_t size) {
    if (!pointer) return fail_with(kInvalidParameter, "aclrtMallocHost: a null pointer");
    if (!pointer || size == 0) return fail_with(kInvalidParameter, "aclrtMallocHost: %zu bytes", size);
    *pointer = nullptr;
    if (posix_memalign(pointer, 64, (size + 4095) / 4096 * 4096) != 0)
        return fail_with(kOutOfMemory, "aclrtMallocHost: no room for %zu bytes", size);
    Lock lock(device().mutex);
    g_host[static_cast<uint8_t *>(*pointer)] = size;
    return kSuccess;
}
aclError aclrtMallocHostWithCfg(void **pointer, uint64_t size, aclrtMallocConfig *) {
    return aclrtMallocHost(pointer, size);
}
aclError aclrtFreeHost(void *pointer) {
    Lock lock(device().mutex);
    const auto found = g_host.find(static_cast<uint8_t *>(pointer));
    if (found == g_host.end())
        return fail_with(kInvalidParameter,
                         "aclrtFreeHost: %p did not come from aclrtMallocHost, or is freed already", pointer);
    device().complete_copies(pointer, found->second);
    g_host.erase(found);
    free(pointer);
    return kSuccess;
}
aclError aclrtMemset(void *pointer, size_t most, int32_t value, size_t count) {
    return fill("aclrtMemset", CALLER, nullptr, pointer, most, value, count);
}
aclError aclrtMemsetAsync(void *pointer, size_t most, int32_t value, size_t count, aclrtStream stream) {
    return fill("aclrtMemsetAsync", CALLER, &device().stream(stream), pointer, most, value, count);
}
aclError aclrtMemcpy(void *to, size_t most, const void *from, size_t count, aclrtMemcpyKind kind) {
    return copy("aclrtMemcpy", CALLER, nullptr, to, most, from, count, kind);
}
aclError aclrtMemcpyAsync(void *to, size_t most, const void *from, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
    return copy("aclrtMemcpyAsync", CALLER, &device().stream(stream), to, most, from, count, kind);
}
aclError aclrtMemcpyAsyncWithCondition(void *to, size_t most, const void *from, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
    return aclrtMemcpyAsync(to, most, from, count, kind, stream);
}
static aclError copy_rows(const char *call, void *caller, Stream *on, void *to, size_t to_pitch,
                          const void *from, size_t from_pitch, size_t width, size_t height,
                          aclrtMemcpyKind kind) {
    if (width > to_pitch || width > from_pitch)
        return fail_with(107000, "%s: rows of %zu bytes do not fit into pitches of %zu and %zu", call, width,
                         to_pitch, from_pitch);
    for (size_t row = 0; row < height; ++row)
        if (int error = copy(call, caller, on, static_cast<char *>(to) + row * to_pitch, width,
                             static_cast<const char *>(from) + row * from_pitch, width, kind))
            return error;
    return kSuccess;
}
aclError aclrtMemcpy2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) {
    return copy_rows("aclrtMemcpy2d", CALLER, nullptr, to, to_pitch, from, from_pitch, width, height, kind);
}
aclError aclrtMemcpy2dAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
    return copy_rows("aclrtMemcpy2dAsync", CALLER, &device().stream(stream), to, to_pitch, from, from_pitch,
                     width, height, kind);
}
aclError aclrtMemFlush(void *, size_t) { return kSuccess; }
aclError aclrtMemInvalidate(void *, size_t) { return kSuccess; }
aclError aclrtGetMemInfo(aclrtMemAttr, size_t *free_bytes, size_t *total) {
    *total = 64ull << 30;
    *free_bytes = *total - device().memory.used();
    return kSuccess;
}
aclError aclrtPointerGetAttributes(const void *pointer, aclrtPtrAttributes *attributes) {
    *attributes = {};
    attributes->location.type =
        device().memory.is_device(pointer) ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
    return kSuccess;
}
aclError aclrtCmoAsync(void *, size_t, aclrtCmoType, aclrtStream) { return kSuccess; }

// --- streams
aclError aclrtCreateStream(aclrtStream *stream) {
    if (!stream) return fail_with(kInvalidParameter, "aclrtCreateStream: a null pointer");
    Lock lock(device().mutex);
    if (!stream) return fail_with(kInvalidParameter, "aclrtCreateStream: a null pointer");
    needs_device("aclrtCreateStream");
    static int count = 0;
    auto *made = new Stream;
    made->number = ++count;
    device().streams.push_back(made);
    *stream = made;
    return kSuccess;
}
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t, uint32_t) {
    return aclrtCreateStream(stream);
}
aclError aclrtDestroyStream(aclrtStream stream) {
    Lock lock(device().mutex);
    auto &all = device().streams;
    for (size_t i = 0; i < all.size(); ++i)
        if (all[i] == stream) {
            device().host_knows(all[i]->known); // it ends when its work is done
            delete all[i];
            all.erase(all.begin() + static_cast<ptrdiff_t>(i));
            return kSuccess;
        }
    return fail_with(kInvalidParameter, "aclrtDestroyStream: there is no such stream");
}
aclError aclrtDestroyStreamForce(aclrtStream stream) { return aclrtDestroyStream(stream); }
aclError aclrtSynchronizeStream(aclrtStream stream) {
    Lock lock(device().mutex);
    if (!device().is_stream(stream))
        return fail_with(107003, "aclrtSynchronizeStream: there is no such stream");
    return device().synchronize(device().stream(stream));
}
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t milliseconds) {
    Lock lock(device().mutex);
    const bool hangs = device().is_stream(stream) && device().stream(stream).hangs();
    return hangs && milliseconds > 0 ? kWaitTimeout : aclrtSynchronizeStream(stream);
}
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status) {
    Lock lock(device().mutex);
    if (!device().is_stream(stream)) return fail_with(107003, "aclrtStreamQuery: there is no such stream");
    device().host_knows(device().stream(stream).known);
    return *status = ACL_STREAM_STATUS_COMPLETE, kSuccess;
}
aclError aclrtStreamGetId(aclrtStream stream, int32_t *id) {
    return *id = device().stream(stream).number, kSuccess;
}
aclError aclrtStreamGetPriority(aclrtStream, uint32_t *priority) { return *priority = 0, kSuccess; }
aclError aclrtStreamGetFlags(aclrtStream, uint32_t *flags) { return *flags = 0, kSuccess; }
aclError aclrtSetStreamFailureMode(aclrtStream, uint64_t) { return kSuccess; }
aclError aclrtStreamAbort(aclrtStream) { return kSuccess; }
aclError aclrtLaunchCallback(aclrtCallback function, void *data, int, aclrtStream stream) {
    {
        Lock lock(device().mutex);
        device().complete_copies(device().stream(stream)); // it comes behind them
    }
    return function(data), kSuccess;
}
aclError aclrtSubscribeReport(uint64_t, aclrtStream) { return kSuccess; }
aclError aclrtUnSubscribeReport(uint64_t, aclrtStream) { return kSuccess; }
aclError aclrtProcessReport(int32_t) { return kSuccess; }

// --- events: a stream's simulated clock
static Event *event_of(const char *call, aclrtEvent event) {
    auto *one = static_cast<Event *>(event);
    if (g_events.count(one)) return one;
    fail_with(kInvalidParameter, "%s: there is no such event", call);
    return nullptr;
}
aclError aclrtCreateEvent(aclrtEvent *event) {
    if (!event) return fail_with(kInvalidParameter, "aclrtCreateEvent: a null pointer");
    Lock lock(device().mutex);
    auto *made = new Event;
    g_events.insert(made);
    *event = made;
    return kSuccess;
}
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t) { return aclrtCreateEvent(event); }
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t) { return aclrtCreateEvent(event); }
aclError aclrtDestroyEvent(aclrtEvent event) {
    Lock lock(device().mutex);
    Event *one = event_of("aclrtDestroyEvent", event);
    if (!one) return kInvalidParameter;
    g_events.erase(one);
    delete one;
    return kSuccess;
}
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
    Lock lock(device().mutex);
    Event *one = event_of("aclrtRecordEvent", event);
    if (!one) return kInvalidParameter;
    one->clock = device().stream(stream).clock;
    one->known = device().stream(stream).known;
    one->recorded = true;
    return kSuccess;
}
aclError aclrtResetEvent(aclrtEvent event, aclrtStream) {
    if (Event *one = event_of("aclrtResetEvent", event)) one->recorded = false;
    return kSuccess;
}
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status) {
    *status = ACL_EVENT_STATUS_COMPLETE;
    return aclrtSynchronizeEvent(event);
}
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status) {
    *status = ACL_EVENT_RECORDED_STATUS_COMPLETE;
    return aclrtSynchronizeEvent(event);
}
aclError aclrtSynchronizeEvent(aclrtEvent event) {
    Lock lock(device().mutex);
    Event *one = event_of("aclrtSynchronizeEvent", event);
    if (!one) return kInvalidParameter;
    device().host_knows(one->known);
    return kSuccess;
}
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t) { return aclrtSynchronizeEvent(event); }
aclError aclrtEventElapsedTime(float *ms, aclrtEvent start, aclrtEvent end) {
    if (!ms) return fail_with(kInvalidParameter, "aclrtEventElapsedTime: a null pointer");
    Lock lock(device().mutex);
    Event *first = event_of("aclrtEventElapsedTime", start), *last = event_of("aclrtEventElapsedTime", end);
    if (!first || !last) return kInvalidParameter;
    if (!first->recorded || !last->recorded)
        return fail_with(kInvalidParameter, "aclrtEventElapsedTime: an event was not recorded");
    *ms = static_cast<float>((last->clock - first->clock) / 1000.0);
    return kSuccess;
}
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *microseconds) {
    Event *one = event_of("aclrtEventGetTimestamp", event);
    if (!one) return kInvalidParameter;
    *microseconds = static_cast<uint64_t>(one->clock);
    return kSuccess;
}
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
    Lock lock(device().mutex);
    Event *one = event_of("aclrtStreamWaitEvent", event);
    if (!one) return kInvalidParameter;
    Stream &waits = device().stream(stream);
    if (one->recorded && one->clock > waits.clock) waits.clock = one->clock;
    if (one->recorded) waits.known.learn(one->known);
    return kSuccess;
}
aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t) {
    return aclrtStreamWaitEvent(stream, event);
}

// --- the lower runtime
rtError_t rtGetC2cCtrlAddr(uint64_t *address, uint32_t *size) {
    Lock lock(device().mutex);
    constexpr uint32_t kBytes = 1 << 16;
    if (!device().sync_address)
        device().sync_address =
            reinterpret_cast<uint64_t>(device().memory.allocate(kBytes, "the cores' flags"));
    if (!device().sync_address) return kOutOfMemory;
    *address = device().sync_address;
    if (size) *size = kBytes;
    return kSuccess;
}
aclError aclrtGetHardwareSyncAddr(void **address) {
    uint64_t found = 0;
    const int error = rtGetC2cCtrlAddr(&found, nullptr);
    *address = reinterpret_cast<void *>(found);
    return error;
}
rtError_t rtGetAiCoreCount(uint32_t *count) {
    return *count = static_cast<uint32_t>(device().chip().cube_cores), kSuccess;
}
rtError_t rtGetDeviceCount(int32_t *count) { return *count = kDevices, kSuccess; }
rtError_t rtSetDevice(int32_t number) { return aclrtSetDevice(number); }
rtError_t rtDeviceReset(int32_t number) { return aclrtResetDevice(number); }
rtError_t rtDeviceSynchronize(void) { return aclrtSynchronizeDevice(); }
rtError_t rtMalloc(void **pointer, uint64_t size, rtMemType_t, uint16_t) { return allocate(pointer, size); }
rtError_t rtFree(void *pointer) { return aclrtFree(pointer); }
rtError_t rtMallocHost(void **pointer, uint64_t size, uint16_t) { return aclrtMallocHost(pointer, size); }
rtError_t rtFreeHost(void *pointer) { return aclrtFreeHost(pointer); }
rtError_t rtMemcpy(void *to, uint64_t most, const void *from, uint64_t count, rtMemcpyKind_t kind) {
    return copy("rtMemcpy", CALLER, nullptr, to, most, from, count, static_cast<aclrtMemcpyKind>(kind));
}
rtError_t rtMemset(void *pointer, uint64_t most, uint32_t value, uint64_t count) {
    return fill("rtMemset", CALLER, nullptr, pointer, most, static_cast<int32_t>(value), count);
}
rtError_t rtGetAiCpuCount(uint32_t *count) { return *count = 8, kSuccess; }
rtError_t rtStreamQuery(rtStream_t stream) {
    aclrtStreamStatus status;
    return aclrtStreamQuery(stream, &status);
}
rtError_t rtStreamCreate(rtStream_t *stream, int32_t) { return aclrtCreateStream(stream); }
rtError_t rtStreamDestroy(rtStream_t stream) { return aclrtDestroyStream(stream); }
rtError_t rtStreamSynchronize(rtStream_t stream) { return aclrtSynchronizeStream(stream); }
rtError_t rtStreamCreateWithFlags(rtStream_t *stream, int32_t, uint32_t) { return aclrtCreateStream(stream); }
rtError_t rtStreamWaitEvent(rtStream_t stream, rtEvent_t event) {
    return aclrtStreamWaitEvent(stream, event);
}
rtError_t rtEventCreate(rtEvent_t *event) { return aclrtCreateEvent(event); }
rtError_t rtEventCreateWithFlag(rtEvent_t *event, uint32_t) { return aclrtCreateEvent(event); }
rtError_t rtEventDestroy(rtEvent_t event) { return aclrtDestroyEvent(event); }
rtError_t rtEventRecord(rtEvent_t event, rtStream_t stream) { return aclrtRecordEvent(event, stream); }
rtError_t rtEventSynchronize(rtEvent_t event) { return aclrtSynchronizeEvent(event); }
rtError_t rtEventElapsedTime(float *ms, rtEvent_t start, rtEvent_t end) {
    return aclrtEventElapsedTime(ms, start, end);
}
rtError_t rtMemcpyAsync(void *to, uint64_t most, const void *from, uint64_t count, rtMemcpyKind_t kind,
                        rtStream_t stream) {
    return copy("rtMemcpyAsync", CALLER, &device().stream(stream), to, most, from, count,
                static_cast<aclrtMemcpyKind>(kind));
}
rtError_t rtMemsetAsync(void *pointer, uint64_t most, uint32_t value, uint64_t count, rtStream_t stream) {
    return fill("rtMemsetAsync", CALLER, &device().stream(stream), pointer, most, static_cast<int32_t>(value),
                count);
}
rtError_t rtGetDevice(int32_t *number) { return aclrtGetDevice(number); }
rtError_t rtGetSocVersion(char *name, uint32_t most) {
    return snprintf(name, most, "%s", device().chip().soc.c_str()), kSuccess;
}

// --- what torch's device asks for
void *insight_trace_allocate(uint64_t bytes) {
    Lock lock(device().mutex);
    device().chosen = true;
    return device().memory.allocate(bytes ? bytes : 1, "tensor", true);
}
void insight_trace_release(void *pointer) {
    Lock lock(device().mutex);
    if (const Buffer *buffer = device().memory.find(reinterpret_cast<uint64_t>(pointer)))
        device().forget_accesses(buffer->address, buffer->room);
    device().memory.release(pointer);
}
int insight_trace_copy(void *to, const void *from, uint64_t count) {
    return copy("a copy of a tensor", nullptr, nullptr, to, count, from, count, ACL_MEMCPY_DEFAULT);
}
void *insight_trace_host_view(const void *pointer) {
    return device().memory.is_device(pointer) ? device().memory.host(pointer) : const_cast<void *>(pointer);
}
void insight_trace_wrote(const void *pointer, uint64_t bytes) {
    Lock lock(device().mutex);
    device().wrote(reinterpret_cast<uint64_t>(pointer), bytes);
}
uint64_t insight_trace_memory_used(void) { return device().memory.used(); }
}

#define NOT_THERE(result, name, ...)                                                                         \
    extern "C" __attribute__((noinline)) result name(...) {                                                  \
        insight_trace_not_there(#name, __builtin_return_address(0));                                         \
        __VA_ARGS__;                                                                                         \
    }
#include "not_there.def"
#undef NOT_THERE

__attribute__((destructor)) static void at_the_end() { device().say_unfinished_copies(); }
