#include "l2_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "failure.hpp"

namespace insight_trace::engine {

static constexpr int64_t kEpochLines = 2048; // 1 MB: how finely the order of use is kept
static constexpr uint64_t kSectors = L2Cache::kLine / L2Cache::kSector;
static constexpr uint32_t kWhole = (1u << kSectors) - 1;
// Of a line that was written last: those that read it do not meet each other there.
static constexpr uint16_t kNoReader = 0xffff;
// Bytes of the sectors in a set of them: processors of the least common kind cannot count bits.
static constexpr int64_t kBytesOf[] = {0,   128, 128, 256, 128, 256, 256, 384,
                                       128, 256, 256, 384, 256, 384, 384, 512};
static_assert(sizeof kBytesOf / sizeof kBytesOf[0] == kWhole + 1);

L2Cache::L2Cache(uint64_t base, uint64_t size, int64_t capacity)
    : base_(base / kLine), lines_(size / kLine + 2), capacity_(capacity / kLine), epochs_(1) {
    // pages come when touched: a pool of 40 GB costs an address range
    auto map = [&](int kind) {
        return mmap(nullptr, lines_ * sizeof(Line), PROT_READ | PROT_WRITE,
                    kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    };
    void *mapped = map(MAP_PRIVATE);
    // a limit on data counts all of a private range, and every core that asks for the time has one
    if (mapped == MAP_FAILED) mapped = map(MAP_SHARED);
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

inline uint64_t L2Cache::bits_of(const Line &line) {
    uint64_t bits;
    memcpy(&bits, &line, sizeof bits);
    return bits;
}

inline void L2Cache::use(Line &line, uint32_t sectors, bool write, uint32_t core, L2Traffic &traffic) {
    const uint16_t reader = write ? kNoReader : static_cast<uint16_t>(core);
    const uint32_t now = first_ + static_cast<uint32_t>(epochs_.size()) - 1;
    const bool held = line.epoch >= first_;
    const uint32_t had = held ? line.sectors : 0;
    const int64_t found = kBytesOf[had & sectors];
    const int64_t wanted = kBytesOf[sectors];
    traffic.hits += found;
    traffic.bytes += wanted;
    if (line.core != reader && line.core != kNoReader) traffic.shared += found;
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
        line.core = reader;
        return;
    } else {
        Epoch &last = epoch(line.epoch);
        --last.lines;
        last.dirty -= line.dirty;
    }
    line = {now, reader, static_cast<uint8_t>(had | sectors), dirty};
    Epoch &current = epochs_.back();
    ++current.lines;
    current.dirty += dirty;
    if (current.lines >= kEpochLines) epochs_.emplace_back();
    if (held_ > capacity_) make_room();
}

void L2Cache::pass(uint64_t address, int64_t bytes, bool write, L2Traffic &traffic) {
    if (bytes <= 0) return;
    const uint64_t first = address / kSector, last = (address + static_cast<uint64_t>(bytes) - 1) / kSector;
    const int64_t all = static_cast<int64_t>(last - first + 1) * kSector;
    traffic.bytes += all;
    (write ? traffic.replaced : traffic.fetched) += all;
}

void L2Cache::touch(uint64_t address, int64_t bytes, bool write, L2Traffic &traffic, uint32_t core) {
    if (bytes <= 0) return;
    const uint64_t first = address / kSector, last = (address + static_cast<uint64_t>(bytes) - 1) / kSector;
    if (capacity_ <= 0) return pass(address, bytes, write, traffic);
    uint64_t line = first / kSectors - base_, end = last / kSectors - base_;
    if (line >= lines_) return; // outside every buffer: reported elsewhere
    const uint32_t head = kWhole & ~((1u << (first % kSectors)) - 1), tail = (2u << (last % kSectors)) - 1;
    if (line == end) return use(entries_[line], head & tail, write, core, traffic);
    if (head != kWhole) use(entries_[line++], head, write, core, traffic);
    const bool beyond = end >= lines_; // it ends with the last line there is
    if (beyond) end = lines_;
    const bool short_tail = !beyond && tail != kWhole;
    use_whole(line, beyond || short_tail ? end : end + 1, write, core, traffic);
    if (short_tail) use(entries_[end], tail, write, core, traffic);
}

// Whole lines up to `end`. Those that this core used last, in this epoch, stay as they are.
void L2Cache::use_whole(uint64_t line, uint64_t end, bool write, uint32_t core, L2Traffic &traffic) {
    const Line mattering{~0u, 0xffff, 0xff, static_cast<uint8_t>(write ? 0xff : 0)};
    const uint64_t mask = bits_of(mattering);
    while (line < end) {
        const uint32_t now = first_ + static_cast<uint32_t>(epochs_.size()) - 1;
        const Line same{now, write ? kNoReader : static_cast<uint16_t>(core), kWhole, 1};
        const uint64_t wanted = bits_of(same) & mask, begin = line;
        auto differs = [&](uint64_t at) { return (bits_of(entries_[at]) & mask) ^ wanted; };
        while (line + 4 <= end &&
               !(differs(line) | differs(line + 1) | differs(line + 2) | differs(line + 3)))
            line += 4;
        while (line < end && !differs(line)) ++line;
        traffic.bytes += static_cast<int64_t>(line - begin) * kLine;
        traffic.hits += static_cast<int64_t>(line - begin) * kLine;
        if (line < end) use(entries_[line++], kWhole, write, core, traffic);
    }
}

} // namespace insight_trace::engine
