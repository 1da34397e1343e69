// Who touched a byte last: for every byte of a memory the last write and the reads after it.
//
// Bytes are kept in blocks of 32 with a bit each, and blocks in pages; a page that was only ever touched as
// a whole is kept as one. So a tile of 16 KiB is sixteen entries, and packed neighbours never meet.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "../record.hpp"

namespace insight_trace::engine::check {

constexpr uint64_t kBlock = 32, kPage = 1024;
constexpr uint32_t kWholeBlock = 0xffffffffu;

struct Touch {
    uint32_t thread; // pipe of a core
    uint32_t number; // of the instruction on its pipe
    uint32_t row;
    uint32_t tile;             // whose bytes it means
    uint32_t victim = kNoTile; // of a write: the tile whose bytes it replaced
    bool write, atomic, exact;
    bool in_place = false; // of a read: the same instruction writes there, too, and must meet who read before
};

class Shadow {
  public:
    // Calls `meet(earlier, address, bytes)` for every earlier touch of these bytes of which one of the two is
    // a write, then remembers this one. `keep(earlier)` says whether an earlier touch that a write covers
    // must stay (writes that may be in any order). Returns how many of the bytes nobody had written.
    template <class Meet, class Keep>
    uint64_t touch(uint64_t address, uint64_t bytes, const Touch &by, Meet &&meet, Keep &&keep);
    // How many touches it remembers, and the bytes that they take with all that is kept around them.
    std::pair<size_t, size_t> size() const {
        size_t entries = 0, bytes = pages_.bucket_count() * sizeof(void *);
        auto add = [&](const Block &block) {
            entries += block.entries.size();
            bytes += block.entries.capacity() * sizeof(Entry);
        };
        for (const auto &[index, page] : pages_) {
            bytes += sizeof(index) + sizeof(page) + 2 * sizeof(void *);
            add(page.whole);
            if (!page.blocks) continue;
            bytes += sizeof(Blocks) + page.blocks->list.capacity() * sizeof(Block);
            for (const Block &block : page.blocks->list) add(block);
        }
        return {entries, bytes};
    }

  private:
    struct Entry {
        Touch by;
        uint32_t mask;
    };
    struct Block {
        std::vector<Entry> entries;
        uint32_t written = 0;
    };
    struct Blocks {                                  // those of a page that were touched
        std::array<uint8_t, kPage / kBlock> place{}; // in the list, from 1 on
        std::vector<Block> list;
        Block &at(uint64_t index) {
            if (!place[index]) {
                list.emplace_back();
                place[index] = static_cast<uint8_t>(list.size());
            }
            return list[place[index] - 1u];
        }
    };
    struct Page {
        Block whole; // of all its blocks alike
        std::unique_ptr<Blocks> blocks;
    };
    static void split(Page &page) {
        page.blocks = std::make_unique<Blocks>();
        if (!page.whole.entries.empty())
            for (uint64_t i = 0; i < kPage / kBlock; ++i) page.blocks->at(i) = page.whole;
        page.whole = {};
    }
    template <class Meet, class Keep>
    static uint64_t touch_block(Block &block, uint32_t mask, uint64_t address, uint64_t scale,
                                const Touch &by, Meet &meet, Keep &keep);
    // What of a block from `first` to `last` (exclusive) as bits.
    static uint32_t bits(uint64_t first, uint64_t last) {
        uint32_t upto = last >= kBlock ? kWholeBlock : (1u << last) - 1;
        return upto & ~((first ? (1u << first) : 1u) - 1);
    }
    Page &page(uint64_t index) {
        if (index != last_index_ || !last_) {
            last_ = &pages_[index];
            last_index_ = index;
        }
        return *last_;
    }

    std::unordered_map<uint64_t, Page> pages_;
    Page *last_ = nullptr;
    uint64_t last_index_ = 0;
};

template <class Meet, class Keep>
uint64_t Shadow::touch_block(Block &block, uint32_t mask, uint64_t address, uint64_t scale, const Touch &by,
                             Meet &meet, Keep &keep) {
    auto &list = block.entries;
    size_t left = 0;
    bool merged = false;
    Touch mine = by;
    // Who read a write comes after it: a write that comes after these reads comes after that write, too.
    uint32_t read_since = 0;
    for (const Entry &entry : list)
        if (by.write && !entry.by.write && entry.by.row != by.row) read_since |= entry.mask;
    for (size_t i = 0; i < list.size(); ++i) {
        Entry &entry = list[i];
        const uint32_t common = entry.mask & mask;
        const bool same = entry.by.row == by.row && entry.by.thread == by.thread;
        const uint32_t meets = entry.by.write ? common & ~read_since : common;
        if (meets && !same && (entry.by.write || by.write))
            meet(entry.by, address + static_cast<uint64_t>(__builtin_ctz(meets)),
                 static_cast<uint64_t>(__builtin_popcount(meets)) * scale);
        if (common && by.write && entry.by.write && entry.by.tile != by.tile) mine.victim = entry.by.tile;
        // A write stands for all before it; a read for earlier reads of its pipe, which has come further.
        const bool covered = by.write ? !keep(entry.by) && (!same || entry.by.write || !common)
                                      : !entry.by.write && entry.by.thread == by.thread && !by.in_place;
        if (common && covered) entry.mask &= ~mask;
        if (entry.by.row == by.row && entry.by.thread == by.thread && entry.by.write == by.write) {
            entry.mask |= mask;
            merged = true;
        }
        if (entry.mask) {
            if (left != i) list[left] = entry;
            ++left;
        }
    }
    list.resize(left);
    if (!merged) list.push_back({mine, mask});
    const uint64_t unwritten = static_cast<uint64_t>(__builtin_popcount(mask & ~block.written)) * scale;
    if (by.write) block.written |= mask;
    return unwritten;
}

template <class Meet, class Keep>
uint64_t Shadow::touch(uint64_t address, uint64_t bytes, const Touch &by, Meet &&meet, Keep &&keep) {
    uint64_t unwritten = 0;
    const uint64_t end = address + bytes;
    while (address < end) {
        const uint64_t index = address / kPage, from = address % kPage;
        const uint64_t upto = end - index * kPage < kPage ? end - index * kPage : kPage;
        Page &here = page(index);
        if (from == 0 && upto == kPage && !here.blocks) {
            unwritten += touch_block(here.whole, kWholeBlock, address, kPage / kBlock, by, meet, keep);
        } else {
            if (!here.blocks) split(here);
            for (uint64_t b = from / kBlock; b * kBlock < upto; ++b) {
                const uint64_t first = from > b * kBlock ? from - b * kBlock : 0;
                const uint64_t last = upto - b * kBlock < kBlock ? upto - b * kBlock : kBlock;
                unwritten += touch_block(here.blocks->at(b), bits(first, last), index * kPage + b * kBlock, 1,
                                         by, meet, keep);
            }
        }
        address = index * kPage + upto;
    }
    return unwritten;
}

} // namespace insight_trace::engine::check
