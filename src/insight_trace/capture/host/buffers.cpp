#include "buffers.hpp"

#include <algorithm>
#include <sys/mman.h>

namespace insight_trace::capture {

static constexpr uint64_t kAlignment = 512;
static constexpr uint64_t kPage = 4096;

static uint64_t aligned(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

void Buffers::start(const Job &job) {
    for (size_t i = 0; i < job.tensors.size(); ++i) {
        Buffer &buffer = by_address_[job.tensors[i].buffer.addr];
        buffer.size = job.tensors[i].buffer.size;
        buffer.name = job.tensor_names[i];
    }
    for (const Job::Window &window : job.windows) {
        Buffer &buffer = by_address_[window.address];
        buffer.size = std::max(buffer.size, window.size);
        if (buffer.name.empty()) buffer.name = window.name;
    }
    next_ = job.heap;
    end_ = job.end;
}

Buffer *Buffers::find(uint64_t address) {
    auto after = by_address_.upper_bound(address);
    if (after == by_address_.begin()) return nullptr;
    auto &[base, buffer] = *std::prev(after);
    return address < base + std::max<uint64_t>(buffer.size, 1) ? &buffer : nullptr;
}

uint64_t Buffers::allocate(uint64_t bytes) {
    uint64_t address = next_;
    if (bytes > end_ - next_)
        engine::fail(engine::Fault::Input, {}, "the tensors of this run need more than %llu GB",
                     static_cast<unsigned long long>((end_ - next_) >> 30));
    next_ = aligned(next_ + std::max<uint64_t>(bytes, 1), kAlignment);
    Buffer &buffer = by_address_[address];
    buffer.size = bytes;
    return address;
}

uint64_t Buffers::heap_position() { return next_ = aligned(next_, kPage); }

// Whole pages go back to the system; addresses are not used again, so what a run sees never depends on time.
void Buffers::release(uint64_t begin, uint64_t end) {
    if (begin == end) return;
    by_address_.erase(by_address_.lower_bound(begin), by_address_.lower_bound(end));
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_REMOVE);
}

} // namespace insight_trace::capture
