#include "touched_lines.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "failure.hpp"

namespace insight_trace::engine {

// Pages come when they are touched.
static void *shared_bytes(size_t bytes) {
    void *place =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        fail(Fault::Environment, {}, "no memory to watch global memory: %s", strerror(errno));
    return place;
}

TouchedLines::TouchedLines(uint64_t base, uint64_t size)
    : base_(base), words_((size / (64 * 64) / kPage + 1) * kPage) {
    touched_ = static_cast<uint64_t *>(shared_bytes(words_ * sizeof(uint64_t)));
    written_ = static_cast<uint64_t *>(shared_bytes(words_ * sizeof(uint64_t)));
    used_ = static_cast<uint8_t *>(shared_bytes(words_ / kPage));
}

TouchedLines::~TouchedLines() {
    munmap(touched_, words_ * sizeof(uint64_t));
    munmap(written_, words_ * sizeof(uint64_t));
    munmap(used_, words_ / kPage);
}

bool TouchedLines::meets(const TouchedLines &other) const {
    for (size_t page = 0; page < words_ / kPage; ++page) {
        if (!used_[page] || !other.used_[page]) continue;
        uint64_t both = 0;
        for (size_t word = page * kPage; word < (page + 1) * kPage; ++word)
            both |= (written_[word] & other.touched_[word]) | (touched_[word] & other.written_[word]);
        if (both) return true;
    }
    return false;
}

} // namespace insight_trace::engine
