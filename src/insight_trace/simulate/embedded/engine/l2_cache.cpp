#include "l2_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "failure.hpp"

namespace insight_trace::engine {

static constexpr int64_t kEpochLines = 2048; // 1 MB: how finely the order of use is kept

L2Cache::L2Cache(uint64_t base, uint64_t size, int64_t capacity)
    : base_(base / kLine), lines_(size / kLine + 2), capacity_(capacity / kLine), epochs_(1) {
    // pages come when touched: a pool of 40 GB costs an address range
    void *mapped = mmap(nullptr, lines_ * sizeof(Line), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) fail(Fault::Environment, {}, "no memory for the L2: %s", strerror(errno));
    entries_ = static_cast<Line *>(mapped);
}

L2Cache::~L2Cache() { munmap(entries_, lines_ * sizeof(Line)); }

void L2Cache::make_room() {
    while (held_ > capacity_ && epochs_.size() > 1) {
        held_ -= epochs_.front().lines;
        owed_ += epochs_.front().dirty;
        epochs_.pop_front();
        ++first_;
    }
}

inline void L2Cache::use(Line &line, uint32_t sectors, bool write, uint32_t core, L2Traffic &traffic) {
    const uint32_t now = first_ + static_cast<uint32_t>(epochs_.size()) - 1;
    const bool held = line.epoch >= first_;
    const uint32_t had = held ? line.sectors : 0;
    const int64_t found = __builtin_popcount(had & sectors) * kSector;
    const int64_t wanted = __builtin_popcount(sectors) * kSector;
    traffic.hits += found;
    traffic.bytes += wanted;
    if (line.core != core) traffic.shared += found;
    if (!write) traffic.fetched += wanted - found;
    const uint8_t dirty = held ? line.dirty | uint8_t(write) : uint8_t(write);
    if (!held) {
        ++held_;
        if (owed_ > 0) {
            --owed_;
            traffic.replaced += kLine;
        }
    } else if (line.epoch == now && dirty == line.dirty) {
        line.sectors |= static_cast<uint8_t>(sectors);
        line.core = static_cast<uint16_t>(core);
        return;
    } else {
        Epoch &last = epoch(line.epoch);
        --last.lines;
        last.dirty -= line.dirty;
    }
    line = {now, static_cast<uint16_t>(core), static_cast<uint8_t>(had | sectors), dirty};
    Epoch &current = epochs_.back();
    ++current.lines;
    current.dirty += dirty;
    if (current.lines >= kEpochLines) epochs_.emplace_back();
    if (held_ > capacity_) make_room();
}

void L2Cache::touch(uint64_t address, int64_t bytes, bool write, L2Traffic &traffic, uint32_t core) {
    if (bytes <= 0) return;
    uint64_t first = address / kSector, last = (address + static_cast<uint64_t>(bytes) - 1) / kSector;
    constexpr uint64_t kSectors = kLine / kSector;
    if (capacity_ <= 0) {
        const int64_t all = static_cast<int64_t>(last - first + 1) * kSector;
        traffic.bytes += all;
        (write ? traffic.replaced : traffic.fetched) += all;
        return;
    }
    while (first <= last) {
        const uint64_t line = first / kSectors, end = std::min(last, line * kSectors + kSectors - 1);
        const uint32_t sectors = (2u << (end % kSectors)) - (1u << (first % kSectors));
        if (line - base_ >= lines_) return; // outside every buffer: reported elsewhere
        use(entries_[line - base_], sectors, write, core, traffic);
        first = end + 1;
    }
}

} // namespace insight_trace::engine
