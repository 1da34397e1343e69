// ACL in host memory, strict about what it is given.
#include <acl/acl.h>
#include <cstdlib>
#include <cstring>

extern "C" {
aclError aclInit(const char *) { return std::getenv("STANDIN_ACL_FAILS") != nullptr ? 500000 : 0; }
aclError aclFinalize() { return 0; }
aclError aclrtSetDevice(int32_t device) { return device < 0 ? 107001 : 0; }
aclError aclrtResetDevice(int32_t) { return 0; }
aclError aclrtCreateStream(aclrtStream *stream) {
    *stream = std::malloc(1);
    return 0;
}
aclError aclrtDestroyStream(aclrtStream stream) {
    std::free(stream);
    return 0;
}
aclError aclrtSynchronizeStream(aclrtStream stream) { return stream == nullptr ? 107003 : 0; }
aclError aclrtMalloc(void **memory, size_t size, aclrtMemMallocPolicy) {
    if (size == 0) return 100000;
    *memory = std::malloc(size);
    if (*memory == nullptr) return 207001;
    std::memset(*memory, 0xA5, size); // device memory is not zero by itself
    return 0;
}
aclError aclrtFree(void *memory) {
    std::free(memory);
    return 0;
}
aclError aclrtMallocHost(void **memory, size_t size) {
    *memory = size == 0 ? nullptr : std::malloc(size);
    return *memory == nullptr ? 207001 : 0;
}
aclError aclrtFreeHost(void *memory) {
    std::free(memory);
    return 0;
}
const char *aclGetRecentErrMsg() { return ""; }
aclError aclrtMemset(void *memory, size_t room, int32_t value, size_t count) {
    if (count > room) return 100000;
    std::memset(memory, value, count);
    return 0;
}
aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t count, aclrtMemcpyKind) {
    if (count > room || count == 0) return 100000;
    std::memcpy(to, from, count);
    return 0;
}
}
