// Kernels that a program loads from a file and launches by their names: the file is a library that our
// compiler made.
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

#include "acl/acl.h"
#include "insight_trace_program/kernel_file.hpp"
#include "runtime.hpp"
#include "runtime/rt.h"

using namespace insight_trace_program;

namespace {

constexpr int kInvalidFile = 100003;
constexpr int kInvalidHandle = 107017;

struct Kernel {
    const insight_trace_kernel_of_file *known;
    std::string name;
};
struct File {
    void *library;
    std::map<std::string, Kernel> kernels;
};
struct Parameter {
    std::vector<uint8_t> value;
    bool place_holder = false; // the value is what a pointer points to
};
struct Arguments {
    const Kernel *kernel;
    std::vector<Parameter> parameters;
    bool owned = true; // ours to delete
};
std::set<File *> g_files;
std::set<Arguments *> g_arguments;
std::set<const Kernel *> g_kernels;
std::map<const void *, aclrtFuncHandle> g_stubs; // what a program calls the kernels that it registered

bool is_ours(const char *path) {
    std::ifstream in(path, std::ios::binary);
    char magic[4] = {};
    return in.read(magic, 4) && memcmp(magic, "\177ELF", 4) == 0;
}

int load(const char *call, const char *path, const char *named, aclrtBinHandle *handle) {
    if (!handle) return fail_with(kInvalidParameter, "%s: a null pointer", call);
    if (!is_ours(path)) return fail_with(kInvalidFile, "%s: %s cannot be read", call, named);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail_with(
            kInvalidFile,
            "%s: %s holds no kernels of this compiler (%s); ascendc_fatbin_library and bisheng -c "
            "--cce-aicore-only make such files",
            call, named, dlerror());
    auto *file = new File{library, {}};
    g_files.insert(file);
    *handle = file;
    return kSuccess;
}

// Where each parameter lies among arguments that are packed like a struct.
std::vector<size_t> offsets_of(const Kernel &kernel) {
    std::vector<size_t> found;
    size_t at = 0;
    for (uint32_t i = 0; i < kernel.known->count; ++i) {
        const size_t alignment = std::max<size_t>(4, kernel.known->parameters[i].alignment);
        at = (at + alignment - 1) / alignment * alignment;
        found.push_back(at);
        at += kernel.known->parameters[i].size;
    }
    return found;
}

const Kernel *kernel_of(const char *call, aclrtFuncHandle handle) {
    const auto *kernel = static_cast<const Kernel *>(handle);
    if (g_kernels.count(kernel)) return kernel;
    fail_with(kInvalidHandle, "%s: this is no kernel that aclrtBinaryGetFunction gave", call);
    return nullptr;
}

Arguments *arguments_of(const char *call, aclrtArgsHandle handle) {
    auto *arguments = static_cast<Arguments *>(handle);
    if (g_arguments.count(arguments)) return arguments;
    fail_with(kInvalidHandle, "%s: these are no arguments that aclrtKernelArgsInit gave", call);
    return nullptr;
}

int launch_packed(const char *call, aclrtFuncHandle handle, uint32_t blocks, const uint8_t *packed,
                  size_t size, void *stream) {
    const Kernel *kernel = kernel_of(call, handle);
    if (!kernel) return kInvalidHandle;
    std::vector<std::vector<uint8_t>> kept;
    std::vector<void *> values;
    const std::vector<size_t> offsets = offsets_of(*kernel);
    for (uint32_t i = 0; i < kernel->known->count; ++i) {
        const size_t wanted = kernel->known->parameters[i].size;
        if (offsets[i] + wanted > size)
            return fail_with(kInvalidParameter,
                             "%s: %zu bytes of arguments, but parameter %u of %s ends at %zu", call, size, i,
                             kernel->name.c_str(), offsets[i] + wanted);
        kept.emplace_back(packed + offsets[i], packed + offsets[i] + wanted);
        kept.back().resize(wanted + 16);
    }
    for (auto &one : kept) values.push_back(one.data());
    kernel->known->launch(blocks, stream, values.data());
    return kSuccess;
}

// Device memory with what a place holder of the arguments stands for; it lives as long as the program.
void *on_device(const void *data, size_t size) {
    Device &device = Device::get();
    void *made = device.memory.allocate(std::max<size_t>(size, 1), "argument");
    if (made) {
        memcpy(device.memory.host(made), data, size);
        device.wrote(reinterpret_cast<uint64_t>(made), size);
    }
    return made;
}

} // namespace

extern "C" {

aclError aclrtBinaryLoadFromFile(const char *path, aclrtBinaryLoadOptions *, aclrtBinHandle *file) {
    if (!path) return fail_with(kInvalidParameter, "aclrtBinaryLoadFromFile: a null pointer");
    const std::string place = strchr(path, '/') ? path : std::string("./") + path;
    return load("aclrtBinaryLoadFromFile", place.c_str(), path, file);
}
aclError aclrtBinaryLoadFromData(const void *data, size_t size, const aclrtBinaryLoadOptions *,
                                 aclrtBinHandle *file) {
    const int memory = memfd_create("kernels", MFD_CLOEXEC);
    if (!data || memory < 0 || write(memory, data, size) != static_cast<ssize_t>(size))
        return fail_with(kInvalidParameter, "aclrtBinaryLoadFromData: %zu bytes cannot be read", size);
    const int error = load("aclrtBinaryLoadFromData", ("/proc/self/fd/" + std::to_string(memory)).c_str(),
                           "what it was given", file);
    close(memory);
    return error;
}
aclError aclrtBinaryUnLoad(aclrtBinHandle handle) {
    auto *file = static_cast<File *>(handle);
    if (!g_files.erase(file)) return fail_with(kInvalidHandle, "aclrtBinaryUnLoad: no such file is loaded");
    for (const auto &[name, kernel] : file->kernels) g_kernels.erase(&kernel);
    delete file; // the library stays: what it registered is known by its addresses
    return kSuccess;
}
aclError aclrtBinaryGetFunction(const aclrtBinHandle handle, const char *name, aclrtFuncHandle *kernel) {
    auto *file = static_cast<File *>(const_cast<void *>(handle));
    if (!g_files.count(file) || !name || !kernel)
        return fail_with(kInvalidParameter,
                         "aclrtBinaryGetFunction: no such file is loaded, or a null pointer");
    const std::string symbol = std::string("insight_trace_kernel_") + name;
    const auto *known =
        static_cast<const insight_trace_kernel_of_file *>(dlsym(file->library, symbol.c_str()));
    if (!known)
        return fail_with(kInvalidParameter, "aclrtBinaryGetFunction: the file has no kernel %s", name);
    Kernel &one = file->kernels.emplace(name, Kernel{known, name}).first->second;
    g_kernels.insert(&one);
    *kernel = &one;
    return kSuccess;
}

aclError aclrtLaunchKernel(aclrtFuncHandle kernel, uint32_t blocks, const void *arguments, size_t size,
                           aclrtStream stream) {
    return launch_packed("aclrtLaunchKernel", kernel, blocks, static_cast<const uint8_t *>(arguments), size,
                         stream);
}
aclError aclrtLaunchKernelV2(aclrtFuncHandle kernel, uint32_t blocks, const void *arguments, size_t size,
                             aclrtLaunchKernelCfg *, aclrtStream stream) {
    return launch_packed("aclrtLaunchKernelV2", kernel, blocks, static_cast<const uint8_t *>(arguments), size,
                         stream);
}
aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle kernel, uint32_t blocks, aclrtStream stream,
                                       aclrtLaunchKernelCfg *, void *arguments, size_t size,
                                       aclrtPlaceHolderInfo *places, size_t count) {
    std::vector<uint8_t> packed(static_cast<uint8_t *>(arguments), static_cast<uint8_t *>(arguments) + size);
    for (size_t i = 0; i < count; ++i) {
        if (places[i].addrOffset + sizeof(void *) > size || places[i].dataOffset > size)
            return fail_with(kInvalidParameter,
                             "aclrtLaunchKernelWithHostArgs: a place holder past the end of the arguments");
        void *made = on_device(packed.data() + places[i].dataOffset, size - places[i].dataOffset);
        if (!made) return fail_with(kOutOfMemory, "aclrtLaunchKernelWithHostArgs: no room for its arguments");
        memcpy(packed.data() + places[i].addrOffset, &made, sizeof made);
    }
    return launch_packed("aclrtLaunchKernelWithHostArgs", kernel, blocks, packed.data(), size, stream);
}

aclError aclrtKernelArgsGetHandleMemSize(aclrtFuncHandle, size_t *size) {
    return *size = sizeof(Arguments), kSuccess;
}
aclError aclrtKernelArgsGetMemSize(aclrtFuncHandle, size_t given, size_t *size) {
    return *size = given, kSuccess;
}
aclError aclrtKernelArgsInit(aclrtFuncHandle handle, aclrtArgsHandle *made) {
    const Kernel *kernel = kernel_of("aclrtKernelArgsInit", handle);
    if (!kernel) return kInvalidHandle;
    auto *arguments = new Arguments{kernel, {}};
    g_arguments.insert(arguments);
    *made = arguments;
    return kSuccess;
}
aclError aclrtKernelArgsInitByUserMem(aclrtFuncHandle handle, aclrtArgsHandle memory, void *, size_t) {
    const Kernel *kernel = kernel_of("aclrtKernelArgsInitByUserMem", handle);
    if (!kernel || !memory) return kInvalidHandle;
    g_arguments.insert(new (memory) Arguments{kernel, {}, false});
    return kSuccess;
}
aclError aclrtKernelArgsAppend(aclrtArgsHandle handle, void *value, size_t size,
                               aclrtParamHandle *parameter) {
    Arguments *arguments = arguments_of("aclrtKernelArgsAppend", handle);
    if (!arguments) return kInvalidHandle;
    if (!value) return fail_with(kInvalidParameter, "aclrtKernelArgsAppend: a null pointer");
    const auto *bytes = static_cast<const uint8_t *>(value);
    arguments->parameters.push_back({{bytes, bytes + size}});
    if (parameter) *parameter = reinterpret_cast<void *>(arguments->parameters.size());
    return kSuccess;
}
aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle handle, aclrtParamHandle *parameter) {
    Arguments *arguments = arguments_of("aclrtKernelArgsAppendPlaceHolder", handle);
    if (!arguments) return kInvalidHandle;
    arguments->parameters.push_back({{}, true});
    if (parameter) *parameter = reinterpret_cast<void *>(arguments->parameters.size());
    return kSuccess;
}
aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle handle, aclrtParamHandle parameter, size_t size,
                                             void **buffer) {
    Arguments *arguments = arguments_of("aclrtKernelArgsGetPlaceHolderBuffer", handle);
    const size_t number = reinterpret_cast<size_t>(parameter);
    if (!arguments || number == 0 || number > arguments->parameters.size() ||
        !arguments->parameters[number - 1].place_holder)
        return fail_with(kInvalidParameter, "aclrtKernelArgsGetPlaceHolderBuffer: no such place holder");
    arguments->parameters[number - 1].value.resize(size);
    *buffer = arguments->parameters[number - 1].value.data();
    return kSuccess;
}
aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle handle, aclrtParamHandle parameter, void *value,
                                   size_t size) {
    Arguments *arguments = arguments_of("aclrtKernelArgsParaUpdate", handle);
    const size_t number = reinterpret_cast<size_t>(parameter);
    if (!arguments || !value || number == 0 || number > arguments->parameters.size())
        return fail_with(kInvalidParameter, "aclrtKernelArgsParaUpdate: no such parameter");
    const auto *bytes = static_cast<const uint8_t *>(value);
    arguments->parameters[number - 1].value.assign(bytes, bytes + size);
    return kSuccess;
}
aclError aclrtKernelArgsFinalize(aclrtArgsHandle handle) {
    return arguments_of("aclrtKernelArgsFinalize", handle) ? kSuccess : kInvalidHandle;
}
aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle handle, uint32_t blocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg *, aclrtArgsHandle given, void *) {
    const Kernel *kernel = kernel_of("aclrtLaunchKernelWithConfig", handle);
    Arguments *arguments = kernel ? arguments_of("aclrtLaunchKernelWithConfig", given) : nullptr;
    if (!arguments) return kInvalidHandle;
    if (arguments->parameters.size() != kernel->known->count)
        return fail_with(kInvalidParameter, "aclrtLaunchKernelWithConfig: %s has %u parameters, not %zu",
                         kernel->name.c_str(), kernel->known->count, arguments->parameters.size());
    std::vector<std::vector<uint8_t>> kept;
    std::vector<void *> values;
    for (uint32_t i = 0; i < kernel->known->count; ++i) {
        std::vector<uint8_t> bytes = arguments->parameters[i].value;
        if (arguments->parameters[i].place_holder) {
            void *made = on_device(bytes.data(), bytes.size());
            if (!made)
                return fail_with(kOutOfMemory, "aclrtLaunchKernelWithConfig: no room for its arguments");
            bytes.assign(sizeof made, 0);
            memcpy(bytes.data(), &made, sizeof made);
        }
        bytes.resize(kernel->known->parameters[i].size + 16);
        kept.push_back(std::move(bytes));
    }
    for (auto &one : kept) values.push_back(one.data());
    kernel->known->launch(blocks, stream, values.data());
    return kSuccess;
}

// --- the same by the lower runtime
rtError_t rtDevBinaryRegister(const rtDevBinary_t *file, void **handle) {
    if (!file) return fail_with(kInvalidParameter, "rtDevBinaryRegister: a null pointer");
    return aclrtBinaryLoadFromData(file->data, file->length, nullptr, handle);
}
rtError_t rtDevBinaryUnRegister(void *handle) { return aclrtBinaryUnLoad(handle); }
rtError_t rtFunctionRegister(void *handle, const void *stub, const char *name, const void *, uint32_t) {
    aclrtFuncHandle kernel = nullptr;
    if (const int error = aclrtBinaryGetFunction(handle, name, &kernel)) return error;
    g_stubs[stub] = kernel;
    return kSuccess;
}
rtError_t rtKernelLaunch(const void *stub, uint32_t blocks, void *arguments, uint32_t size, rtSmDesc_t *,
                         rtStream_t stream) {
    const auto known = g_stubs.find(stub);
    if (known == g_stubs.end())
        return fail_with(kInvalidParameter,
                         "rtKernelLaunch: rtFunctionRegister was not called for this stub");
    return launch_packed("rtKernelLaunch", known->second, blocks, static_cast<const uint8_t *>(arguments),
                         size, stream);
}
rtError_t rtKernelLaunchWithFlag(const void *stub, uint32_t blocks, void *arguments, uint32_t size,
                                 rtSmDesc_t *memory, rtStream_t stream, uint32_t) {
    return rtKernelLaunch(stub, blocks, arguments, size, memory, stream);
}
}
