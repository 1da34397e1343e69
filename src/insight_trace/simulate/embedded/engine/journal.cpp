#include "journal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "failure.hpp"
#include "mapped.hpp"

namespace insight_trace::engine {

namespace {

constexpr uint64_t kGap = 32; // changes so close to each other are one
constexpr size_t kBuffer = 1 << 20;
constexpr auto kGlobal = static_cast<uint8_t>(Space::GM);

using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;

void merge(Ranges &ranges) {
    if (ranges.size() < 2) return;
    std::sort(ranges.begin(), ranges.end());
    size_t last = 0;
    for (size_t i = 1; i < ranges.size(); ++i) {
        if (ranges[i].first <= ranges[last].second)
            ranges[last].second = std::max(ranges[last].second, ranges[i].second);
        else
            ranges[++last] = ranges[i];
    }
    ranges.resize(last + 1);
}

void add_range(Ranges &ranges, uint64_t begin, uint64_t end) {
    if (!ranges.empty() && ranges.back().first <= begin && end <= ranges.back().second) return;
    ranges.emplace_back(begin, end);
}

// A sum over words, each weighted by where it lies: parts can be hashed apart, and zeros cost nothing.
uint64_t hashed(uint64_t address, const uint8_t *bytes, uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i += 8) {
        uint64_t word = 0, weight = (address + i) / 8 + 1;
        memcpy(&word, bytes + i, std::min<uint64_t>(8, count - i));
        weight = (weight ^ weight >> 30) * 0xbf58476d1ce4e5b9ull;
        weight = (weight ^ weight >> 27) * 0x94d049bb133111ebull;
        sum += word * (weight | 1);
    }
    return sum;
}

} // namespace

JournalFile::JournalFile(const std::string &path) : file_(created_file(path)) { buffer_.reserve(kBuffer); }

JournalFile::~JournalFile() { close(file_); }

void JournalFile::flush() {
    const uint8_t *bytes = buffer_.data();
    size_t left = buffer_.size();
    while (left > 0) {
        const ssize_t written = write(file_, bytes, left);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail(Fault::Environment, {}, "no room for the journal: %s", strerror(errno));
        bytes += written;
        left -= static_cast<size_t>(written);
    }
    buffer_.clear();
}

void JournalFile::add(const void *bytes, size_t count) {
    size_ += count;
    const auto *from = static_cast<const uint8_t *>(bytes);
    while (count > 0) {
        const size_t part = std::min(count, kBuffer - buffer_.size());
        buffer_.insert(buffer_.end(), from, from + part);
        from += part;
        count -= part;
        if (buffer_.size() == kBuffer) flush();
    }
}

Journal::Journal(const JournalOptions &options) : options_(options) {
    const auto file = [&](const char *what) { return std::make_unique<JournalFile>(options_.path + what); };
    if (options_.path.empty()) return;
    entries_ = file(".entries");
    contents_ = file(".contents");
    bases_ = file(".bases");
    calls_ = file(".calls");
    operands_ = file(".operands");
    observed_ = file(".observed");
}

void Journal::touch(uint16_t core, Space space, const uint8_t *live, uint64_t size, uint8_t content,
                    uint64_t address, uint64_t bytes) {
    if (!bytes) return;
    Memory &memory = memories_[{core, static_cast<uint8_t>(space)}];
    if (!memory.live) {
        memory.live = live;
        memory.size = size;
        memory.known.assign(size, content);
    }
    add_range(memory.pending, address, address + bytes);
    dirty_ = true;
}

void Journal::touch_global(uint64_t address, uint64_t bytes) {
    if (!bytes) return;
    for (uint64_t page = address / kPage; page <= (address + bytes - 1) / kPage; ++page) {
        auto [place, added] = page_index_.try_emplace(page, static_cast<uint32_t>(pages_.size()));
        if (!added) continue;
        const auto *live = reinterpret_cast<const uint8_t *>(page * kPage);
        Page fresh{page, options_.observed.empty() ? 0 : hashed(page * kPage, live, kPage),
                   std::unique_ptr<uint8_t[]>(new uint8_t[kPage])};
        memcpy(fresh.known.get(), live, kPage);
        if (bases_) {
            const uint64_t start = page * kPage;
            bases_->add(&start, sizeof start);
            bases_->add(live, kPage);
        }
        pages_.push_back(std::move(fresh));
    }
    add_range(global_, address, address + bytes);
    dirty_ = true;
}

void Journal::hold(uint16_t core, Space space, uint64_t address, uint64_t bytes) {
    if (!bytes) return;
    add_range(memories_[{core, static_cast<uint8_t>(space)}].held, address, address + bytes);
    held_ = true;
}

void Journal::compare(uint32_t row, uint16_t core, uint8_t memory, uint64_t address, const uint8_t *live,
                      uint8_t *known, uint64_t bytes) {
    uint64_t at = 0;
    const auto differs = [&](uint64_t i) { return live[i] != known[i]; };
    while (at < bytes) {
        // whole blocks that are the same are passed over quickly
        while (at + 64 <= bytes && !memcmp(live + at, known + at, 64)) at += 64;
        while (at < bytes && !differs(at)) ++at;
        if (at >= bytes) return;
        uint64_t last = at;
        for (uint64_t i = at + 1; i < bytes && i - last <= kGap; ++i)
            if (differs(i)) last = i;
        const uint64_t length = last + 1 - at;
        memcpy(known + at, live + at, length);
        const JournalEntry entry{
            address + at, contents_->size(), row, static_cast<uint32_t>(length), core, memory, {}};
        entries_->add(&entry, sizeof entry);
        contents_->add(live + at, length);
        at = last + 1;
    }
}

void Journal::settle(uint32_t row) {
    const bool writes = entries_ && !full_ && row >= options_.first;
    if (writes && !dirty_ && !held_ && !in_call_ && !carries_) {
        complete_ = row + 1;
    } else if (writes) {
        for (auto &[key, memory] : memories_) {
            const Ranges fresh = memory.pending;
            for (const Ranges *more : {&memory.held, &memory.carried})
                memory.pending.insert(memory.pending.end(), more->begin(), more->end());
            merge(memory.pending);
            for (const auto &[begin, end] : memory.pending)
                if (memory.live)
                    compare(row, key.first, key.second, begin, memory.live + begin,
                            memory.known.data() + begin, std::min(end, memory.size) - begin);
            memory.carried = in_call_ ? memory.pending : fresh;
            memory.pending.clear();
        }
        const Ranges fresh = global_;
        global_.insert(global_.end(), global_carried_.begin(), global_carried_.end());
        merge(global_);
        for (const auto &[begin, end] : global_)
            for (uint64_t at = begin; at < end;) {
                const uint64_t stop = std::min(end, at / kPage * kPage + kPage);
                Page &page = pages_[page_index_.at(at / kPage)];
                compare(row, 0, kGlobal, at, reinterpret_cast<const uint8_t *>(at),
                        page.known.get() + at % kPage, stop - at);
                at = stop;
            }
        global_carried_ = in_call_ ? global_ : fresh;
        global_.clear();
        complete_ = row + 1;
        full_ = options_.bytes && contents_->size() > options_.bytes;
    } else if (entries_ && !full_) { // before the first row: kept until then
        for (auto &[key, memory] : memories_)
            if (memory.pending.size() > 4096) merge(memory.pending);
        if (global_.size() > 4096) merge(global_);
    } else {
        for (auto &[key, memory] : memories_) memory.pending.clear();
        global_.clear();
    }
    carries_ = dirty_ || in_call_; // what was touched before a row may be written after it
    dirty_ &= entries_ && !full_ && !writes;
    if (options_.observed.count(row)) observe(row);
}

void Journal::observe(uint32_t row) {
    Observed seen{pages_.size(), 0, {}};
    for (const Page &page : pages_)
        seen.global +=
            hashed(page.number * kPage, reinterpret_cast<const uint8_t *>(page.number * kPage), kPage);
    for (const auto &[key, memory] : memories_)
        if (memory.live) seen.local[key] = hashed(0, memory.live, memory.size);
    observations_[row] = std::move(seen); // the last time counts
}

void Journal::begin_call(Op op, uint16_t core, const Operand *operands, uint32_t count, uint32_t rows) {
    begin_work(rows);
    if (!calls_) return;
    const JournalCall call{
        rows, operand_count_, static_cast<uint16_t>(op), core, static_cast<uint16_t>(count), 0};
    calls_->add(&call, sizeof call);
    operands_->add(operands, count * sizeof(Operand));
    operand_count_ += count;
}

void Journal::begin_work(uint32_t rows) {
    settle(rows ? rows - 1 : 0);
    in_call_ = true;
}

void Journal::end_call(uint32_t rows) {
    settle(rows ? rows - 1 : 0);
    in_call_ = false;
}

void Journal::finish(uint32_t rows) {
    settle(rows ? rows - 1 : 0);
    if (!entries_) return;
    for (const auto &[row, seen] : observations_) {
        uint64_t global = seen.global;
        for (size_t i = seen.pages; i < pages_.size(); ++i) global += pages_[i].base;
        const uint64_t all[] = {row, 0, kGlobal, global};
        observed_->add(all, sizeof all);
        for (const auto &[key, hash] : seen.local) {
            const uint64_t one[] = {row, key.first, key.second, hash};
            observed_->add(one, sizeof one);
        }
    }
    for (JournalFile *file :
         {entries_.get(), contents_.get(), bases_.get(), calls_.get(), operands_.get(), observed_.get()})
        file->flush();
}

} // namespace insight_trace::engine
