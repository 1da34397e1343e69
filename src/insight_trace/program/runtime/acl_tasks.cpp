// What a program puts on a stream besides kernels and copies, and what it asks of the device and the toolkit:
// functions of acl.h over those of acl.cpp.
#include <cstdio>
#include <cstring>

#include "acl/acl.h"
#include "runtime.hpp"

using namespace insight_trace_program;

namespace {

Device &device() { return Device::get(); }
using Lock = std::lock_guard<std::recursive_mutex>;

// A value of eight bytes in device memory; null, and said why, where there is none.
uint64_t *value_at(const char *call, void *address) {
    DeviceMemory &memory = device().memory;
    const Buffer *buffer = memory.find(reinterpret_cast<uint64_t>(address));
    if (buffer && reinterpret_cast<uint64_t>(address) + 8 <= buffer->address + buffer->room)
        return reinterpret_cast<uint64_t *>(memory.host(address));
    fail_with(kInvalidParameter, "%s: %p belongs to no buffer of the device", call, address);
    return nullptr;
}

} // namespace

extern "C" {

// --- functions of the host: a stream's tasks before them are done when they are put there
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void *data) {
    if (!function) return fail_with(kInvalidParameter, "aclrtLaunchHostFunc: a null pointer");
    return aclrtLaunchCallback(function, data, ACL_CALLBACK_BLOCK, stream);
}
aclError aclrtSubscribeHostFunc(uint64_t, aclrtStream) { return kSuccess; }
aclError aclrtUnSubscribeHostFunc(uint64_t, aclrtStream) { return kSuccess; }
aclError aclrtProcessHostFunc(int32_t) { return kSuccess; }

// --- notifies: events that a wait takes back
aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t) { return aclrtCreateEvent(notify); }
aclError aclrtDestroyNotify(aclrtNotify notify) { return aclrtDestroyEvent(notify); }
aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
    return aclrtRecordEvent(notify, stream);
}
aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t) {
    Lock lock(device().mutex);
    if (const int error = aclrtStreamWaitEvent(stream, notify)) return error;
    auto *event = static_cast<Event *>(notify);
    if (!event->recorded)
        say("aclrtWaitAndResetNotify: nothing has recorded this notify yet; on a device the stream waits for "
            "it, here "
            "its tasks run in the order of the host");
    event->recorded = false;
    return kSuccess;
}
aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *id) {
    return *id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(notify) >> 4), kSuccess;
}

// --- values in device memory that a stream writes and waits for
aclError aclrtValueWrite(void *address, uint64_t value, uint32_t, aclrtStream stream) {
    Lock lock(device().mutex);
    uint64_t *at = value_at("aclrtValueWrite", address);
    if (!at) return kInvalidParameter;
    *at = value;
    device().copies(&device().stream(stream), "aclrtValueWrite", __builtin_return_address(0), address, 8,
                    true);
    device().wrote(reinterpret_cast<uint64_t>(address), 8);
    return kSuccess;
}
aclError aclrtValueWait(void *address, uint64_t value, uint32_t how, aclrtStream) {
    Lock lock(device().mutex);
    const uint64_t *at = value_at("aclrtValueWait", address);
    if (!at) return kInvalidParameter;
    const bool there = how == ACL_STREAM_WAIT_VALUE_GEQ   ? *at >= value
                       : how == ACL_STREAM_WAIT_VALUE_EQ  ? *at == value
                       : how == ACL_STREAM_WAIT_VALUE_AND ? (*at & value) != 0
                                                          : (~(*at | value)) != 0;
    if (!there)
        say("aclrtValueWait: the value is %llu, and nothing has written what is waited for yet; on a device "
            "the stream "
            "waits, here its tasks run in the order of the host",
            static_cast<unsigned long long>(*at));
    return kSuccess;
}

// --- streams with settings
aclrtStreamConfigHandle *aclrtCreateStreamConfigHandle(void) { return new aclrtStreamConfigHandle{}; }
aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle) { return delete handle, kSuccess; }
aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle, aclrtStreamConfigAttr attribute,
                                 const void *value, size_t size) {
    if (!handle || !value) return fail_with(kInvalidParameter, "aclrtSetStreamConfigOpt: a null pointer");
    uint64_t word = 0;
    memcpy(&word, value, size < sizeof word ? size : sizeof word);
    if (attribute == ACL_RT_STREAM_FLAG) handle->flag = word;
    if (attribute == ACL_RT_STREAM_PRIORITY) handle->priority = static_cast<uint32_t>(word);
    return kSuccess;
}
aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle) {
    return handle ? aclrtCreateStreamWithConfig(stream, handle->priority, static_cast<uint32_t>(handle->flag))
                  : aclrtCreateStream(stream);
}
aclError aclrtStreamStop(aclrtStream stream) { return aclrtStreamAbort(stream); }
aclError aclrtDeviceGetStreamPriorityRange(int32_t *least, int32_t *greatest) {
    return *least = 7, *greatest = 0, kSuccess;
}
aclError aclrtRegStreamStateCallback(const char *, aclrtStreamStateCallback, void *) { return kSuccess; }
aclError aclrtSetStreamOverflowSwitch(aclrtStream, uint32_t) { return kSuccess; }
aclError aclrtGetStreamOverflowSwitch(aclrtStream, uint32_t *flag) { return *flag = 0, kSuccess; }

// --- the device and the toolkit
static uint32_t g_most_cores[2]; // by kind, as the program limits itself; 0: all
aclError aclrtSetDeviceResLimit(int32_t, aclrtDevResLimitType type, uint32_t value) {
    if (type != ACL_RT_DEV_RES_CUBE_CORE && type != ACL_RT_DEV_RES_VECTOR_CORE)
        return fail_with(kInvalidParameter, "aclrtSetDeviceResLimit: there is no kind %d",
                         static_cast<int>(type));
    const ChipFacts &chip = device().chip();
    const auto most =
        static_cast<uint32_t>(type == ACL_RT_DEV_RES_CUBE_CORE ? chip.cube_cores : chip.vector_cores);
    if (value == 0 || value > most)
        return fail_with(kInvalidParameter, "aclrtSetDeviceResLimit: 1 to %u cores, not %u", most, value);
    g_most_cores[type] = value;
    return kSuccess;
}
aclError aclrtResetDeviceResLimit(int32_t) { return g_most_cores[0] = g_most_cores[1] = 0, kSuccess; }
aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value) {
    const ChipFacts &chip = device().chip();
    *value = static_cast<uint32_t>(type == ACL_RT_DEV_RES_CUBE_CORE ? chip.cube_cores : chip.vector_cores);
    if (type <= ACL_RT_DEV_RES_VECTOR_CORE && g_most_cores[type]) *value = g_most_cores[type];
    return kSuccess;
}
aclError aclrtGetDeviceResLimit(int32_t, aclrtDevResLimitType type, uint32_t *value) {
    return aclrtGetResInCurrentThread(type, value);
}
aclError aclrtGetStreamResLimit(aclrtStream, aclrtDevResLimitType type, uint32_t *value) {
    return aclrtGetResInCurrentThread(type, value);
}
aclError aclrtGetErrorVerbose(int32_t, aclrtErrorInfo *info) {
    if (!info) return fail_with(kInvalidParameter, "aclrtGetErrorVerbose: a null pointer");
    *info = {};
    return kSuccess;
}
aclError aclrtGetDeviceUtilizationRate(int32_t, aclrtUtilizationInfo *info) {
    info->cubeUtilization = info->vectorUtilization = info->aicpuUtilization = info->memoryUtilization = 0;
    return kSuccess;
}
aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode) {
    return *mode = ACL_RT_OVERFLOW_MODE_INFNAN, kSuccess;
}
aclError aclrtGetThreadLastTaskId(uint32_t *id) { return *id = 0, kSuccess; }
aclError aclsysGetVersionStr(char *, char *text) {
    return snprintf(text, ACL_PKG_VERSION_MAX_SIZE, "8.5.0"), kSuccess;
}
aclError aclsysGetVersionNum(char *, int32_t *number) { return *number = 80500000, kSuccess; }
}
