#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.hpp"

namespace insight_trace_program {

namespace {
// A device hands out memory in steps of 512 bytes and reads a little past an end without a word.
constexpr uint64_t kStep = 512, kPage = 4096, kGap = 4096;
constexpr uint64_t kFilled = 64ull << 20; // larger buffers keep the zeros of fresh pages
constexpr uint64_t kUnwritten = 0xa5;     // what memory holds that somebody had before: nobody may rely on it
} // namespace

bool DeviceMemory::ready() { return alias_ || (!tried_ && map()); }

bool DeviceMemory::map() {
    tried_ = true;
    file_ = memfd_create("insight-trace-device", MFD_CLOEXEC);
    if (file_ < 0) return say("cannot make device memory: %s", strerror(errno)), false;
    for (uint64_t size = 1ull << 38; size >= 1ull << 32; size >>= 2) {
        if (ftruncate(file_, static_cast<off_t>(size)) != 0) continue;
        void *wanted = reinterpret_cast<void *>(kBase);
        // the device's addresses are taken, and nobody here may use them
        void *window = mmap(wanted, size, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (window != wanted) {
            if (window != MAP_FAILED) munmap(window, size);
            continue;
        }
        void *alias = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
        if (alias == MAP_FAILED) {
            munmap(window, size);
            continue;
        }
        madvise(alias, size, MADV_DONTDUMP);
        alias_ = static_cast<uint8_t *>(alias);
        size_ = size;
        capacity_ = std::min<uint64_t>(size, 64ull << 30);
        return true;
    }
    say("cannot map device memory: %s", strerror(errno));
    return false;
}

void *DeviceMemory::allocate(uint64_t bytes, const char *what, bool pooled) {
    if (!ready()) return nullptr;
    const uint64_t stepped = (bytes + kStep - 1) / kStep * kStep + kStep;
    const uint64_t taken = (stepped + kPage - 1) / kPage * kPage + kGap;
    const uint64_t room = pooled ? taken : stepped;
    if (used_ + room > capacity_) return nullptr;
    uint64_t address;
    auto found = free_.lower_bound(taken);
    if (found != free_.end() &&
        (found->first == taken || found->first >= taken + (1 << 20) || taken > (1 << 20))) {
        address = found->second;
        const uint64_t left = found->first - taken;
        free_.erase(found);
        if (left) free_.emplace(left, address + taken);
    } else {
        if (end_ + taken > kBase + size_) return nullptr;
        address = end_;
        end_ += taken;
    }
    freed_.erase(freed_.lower_bound(address), freed_.lower_bound(address + taken));
    used_ += room;
    ++generation_;
    Buffer &made = buffers_[address];
    made = {address, bytes, room, taken, std::string(what) + " " + std::to_string(++count_)};
    // pages that nobody had are zero, as on a device
    if (bytes <= kFilled && address < reached_)
        memset(host(reinterpret_cast<void *>(address)), static_cast<int>(kUnwritten), bytes);
    reached_ = std::max(reached_, end_);
    return reinterpret_cast<void *>(address);
}

bool DeviceMemory::release(void *address) {
    auto found = buffers_.find(reinterpret_cast<uint64_t>(address));
    if (found == buffers_.end()) return false;
    Buffer gone = found->second;
    buffers_.erase(found);
    used_ -= gone.room;
    ++generation_;
    const uint64_t taken = gone.taken;
    const uint64_t offset = gone.address - kBase;
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(taken));
    uint64_t start = gone.address, length = taken;
    if (free_.size() < 4096)
        for (auto at = free_.begin(); at != free_.end();) { // what lies next to it becomes one piece again
            if (at->second + at->first == start || start + length == at->second) {
                start = std::min(start, at->second);
                length += at->first;
                at = free_.erase(at);
            } else {
                ++at;
            }
        }
    if (start + length == end_)
        end_ = start;
    else
        free_.emplace(length, start);
    gone.live = false;
    freed_[gone.address] = gone;
    if (freed_.size() > 4096) freed_.erase(freed_.begin());
    return true;
}

const Buffer *DeviceMemory::find(uint64_t address, bool live) const {
    const auto &from = live ? buffers_ : freed_;
    auto after = from.upper_bound(address);
    if (after == from.begin()) return nullptr;
    const Buffer &found = std::prev(after)->second;
    return address < found.address + found.room ? &found : nullptr;
}

uint64_t hash_of(const uint8_t *bytes, uint64_t count) {
    constexpr uint64_t kPrime = 0x9e3779b97f4a7c15ull;
    uint64_t lanes[4] = {1, 2, 3, 4};
    uint64_t at = 0;
    for (; at + 32 <= count; at += 32)
        for (int lane = 0; lane < 4; ++lane) {
            uint64_t word;
            memcpy(&word, bytes + at + 8 * lane, 8);
            lanes[lane] = (lanes[lane] ^ word) * kPrime;
            lanes[lane] ^= lanes[lane] >> 29;
        }
    uint64_t hash = count;
    for (uint64_t lane : lanes) hash = (hash ^ lane) * kPrime ^ (hash >> 31);
    for (; at < count; ++at) hash = (hash ^ bytes[at]) * kPrime;
    return hash ^ (hash >> 32);
}

void say(const char *format, ...) {
    char text[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fflush(stdout);
    fprintf(stderr, "insight-trace: %s\n", text);
}

int fail_with(int code, const char *format, ...) {
    char text[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    Device &device = Device::get();
    device.error_text = text;
    device.last_error = code;
    say("%s", text);
    return code;
}

} // namespace insight_trace_program
