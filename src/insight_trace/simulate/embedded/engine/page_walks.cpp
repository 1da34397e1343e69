#include "page_walks.hpp"

#include <algorithm>

#include "core.hpp"

namespace insight_trace::engine {

PageWalks::PageWalks(const Parameters &parameters, const std::vector<Region> &buffers, size_t cores,
                     size_t clusters)
    : walk_(parameters.page_walk), turns_(parameters.page_turn) {
    if (!turns_.limited()) return;
    for (const Region &region : buffers) {
        const bool large = static_cast<int64_t>(region.size) * 1000 >= parameters.page_large_from;
        const int64_t page = (large ? parameters.page_large : parameters.page_small) / 1000;
        buffers_.push_back({region.address, region.address + std::max(region.size, region.padded),
                            static_cast<uint64_t>(std::max<int64_t>(page, 1)), 0});
    }
    std::sort(buffers_.begin(), buffers_.end(),
              [](const Buffer &a, const Buffer &b) { return a.address < b.address; });
    uint64_t pages = 0;
    for (Buffer &buffer : buffers_) {
        buffer.first = pages;
        pages += (buffer.end - buffer.address) / buffer.page + 1;
    }
    known_.assign(clusters, std::vector<int64_t>(pages, -1));
    free_.assign(cores, 0);
}

const PageWalks::Buffer *PageWalks::buffer_of(uint64_t address) const {
    auto after = std::upper_bound(buffers_.begin(), buffers_.end(), address,
                                  [](uint64_t at, const Buffer &buffer) { return at < buffer.address; });
    if (after == buffers_.begin() || (--after)->end <= address) return nullptr;
    return &*after;
}

int64_t PageWalks::touch(size_t cluster, uint64_t address, uint64_t bytes, int64_t time, int64_t &free) {
    const Buffer *buffer = buffer_of(address);
    if (!buffer || !bytes) return time; // outside every buffer: reported elsewhere
    const uint64_t last = std::min(address + bytes, buffer->end) - 1;
    const uint64_t end = (last - buffer->address) / buffer->page;
    for (uint64_t page = (address - buffer->address) / buffer->page; page <= end; ++page) {
        int64_t &since = known_[cluster][buffer->first + page];
        if (since < 0) since = free = walk(1, std::max(time, free));
        time = std::max(time, since); // it may be under way
    }
    return time;
}

int64_t PageWalks::known(size_t core, size_t cluster, const Access &access, int64_t time) {
    if (!turns_.limited()) return time;
    int64_t store = 0;
    int64_t &free = access.write ? store : free_[core];
    int64_t known = time;
    if (access.step == static_cast<int64_t>(access.burst_bytes)) {
        known = touch(cluster, access.address, uint64_t(access.bursts) * access.burst_bytes, time, free);
    } else {
        uint64_t address = access.address;
        for (uint32_t i = 0; i < access.bursts; ++i, address += static_cast<uint64_t>(access.step))
            known = touch(cluster, address, access.burst_bytes, known, free);
    }
    return access.write ? time : known; // nobody waits for a store
}

} // namespace insight_trace::engine
