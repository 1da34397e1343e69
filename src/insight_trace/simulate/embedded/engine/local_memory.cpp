#include "local_memory.hpp"

#include <cstring>
#include <new>
#include <sys/mman.h>

namespace insight_trace::engine {

void LocalMemory::map(uint16_t core, Space space, uint64_t bytes, uint8_t content) {
    const uint64_t number = uint64_t(core) * kSpacesPerCore + static_cast<uint64_t>(space);
    const uint64_t place = kLocalBase + (number << kLocalBits);
    const bool fits = bytes <= kLocalSpan && place + kLocalSpan <= kLocalEnd;
    constexpr int kHow = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *wanted = fits ? reinterpret_cast<void *>(place) : nullptr;
    void *mapped =
        mmap(wanted, bytes, PROT_READ | PROT_WRITE, kHow | (fits ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (mapped == MAP_FAILED && fits) mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kHow, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    bytes_ = static_cast<uint8_t *>(mapped);
    size_ = bytes;
    if (content) memset(bytes_, content, bytes);
}

LocalMemory::~LocalMemory() {
    if (bytes_) munmap(bytes_, size_);
}

} // namespace insight_trace::engine
