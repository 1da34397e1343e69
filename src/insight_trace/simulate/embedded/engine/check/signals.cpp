#include "signals.hpp"

#include <algorithm>
#include <unordered_set>

#include "../records.hpp"
#include "walks.hpp"

namespace insight_trace::engine::check {

namespace {

constexpr uint8_t kGlobal = static_cast<uint8_t>(Space::GM);
constexpr int kLineBits = 6; // of a core's cache

// Calls `visit(role, begin, end)` for the bytes of global memory that a row touches.
template <class Visit> void each_global(const Records &records, uint32_t row, Visit &&visit) {
    const uint32_t end = row + 1 < records.size() ? records[row + 1].operands : records.operand_count();
    for (uint32_t i = records[row].operands; i < end; ++i) {
        const OperandRow &operand = records.operand(i);
        const Footprint &footprint = records.footprints.rows()[operand.footprint];
        if (footprint.memory != kGlobal) continue;
        for_each_run(footprint.walk, operand.address, type_size(static_cast<Type>(footprint.type)),
                     [&](uint64_t at, uint64_t bytes) { visit(footprint.role, at, at + bytes); });
    }
}

// What a core did last, as far as it tells that it waits for a word to change.
struct Looking {
    std::unordered_set<uint64_t> invalid; // lines that it gave up
    uint32_t load_site = ~0u;             // of its last transfer from global memory, if nothing was
    std::vector<std::pair<uint64_t, uint64_t>> bytes; // done with what it brought but to look at it

    bool lie_in_load(const Records &records, uint32_t row) const {
        bool inside = true;
        each_global(records, row, [&](uint8_t, uint64_t begin, uint64_t end) {
            inside &= std::any_of(bytes.begin(), bytes.end(),
                                  [&](const auto &one) { return begin >= one.first && end <= one.second; });
        });
        return inside;
    }
};

} // namespace

// What the library loads as such words it says itself (LookAtWords). Else two ways to ask again: a scalar
// load behind a DCCI of its line, and the same transfer once more while no unit works with what it brings,
// but for a store of the core's own word among them.
void SignalBlocks::look_for_blocks(const Records &records, size_t cores) {
    std::vector<Looking> looking(cores);
    auto mark = [this](uint64_t begin, uint64_t end) {
        for (uint64_t block = begin >> kBits; block <= (end - 1) >> kBits; ++block) blocks_.push_back(block);
    };
    std::vector<std::pair<uint64_t, uint64_t>> bytes;
    for (uint32_t row = 0; row < records.size(); ++row) {
        const Record &r = records[row];
        const SiteRow &site = records.sites()[r.site];
        Looking &core = looking[r.core];
        switch (site.instr) {
        case Instr::SET_FLAG:
        case Instr::WAIT_FLAG:
        case Instr::BAR:
            continue;
        case Instr::DCCI:
            if (r.a) core.invalid.insert(r.a >> kLineBits);
            continue;
        default:
            break;
        }
        if (site.pipe == PipeId::S) {
            if (site.instr == Instr::LD_XD_XN_IMM && !core.invalid.empty())
                each_global(records, row, [&](uint8_t, uint64_t begin, uint64_t end) {
                    if (core.invalid.erase(begin >> kLineBits)) mark(begin, end);
                });
            continue;
        }
        if (site.pipe == PipeId::MTE3 && core.load_site != ~0u && core.lie_in_load(records, row)) continue;
        bytes.clear();
        if (site.pipe == PipeId::MTE2)
            each_global(records, row, [&](uint8_t role, uint64_t begin, uint64_t end) {
                if (role & kReads) bytes.emplace_back(begin, end);
            });
        const bool again = !bytes.empty() && core.load_site == r.site && core.bytes == bytes;
        const bool said = r.geometry != kNoGeometry && records.geometries.rows()[r.geometry].looks_at_words;
        if (again || (said && site.pipe == PipeId::MTE2))
            for (const auto &[begin, end] : bytes) mark(begin, end);
        core.load_site = bytes.empty() ? ~0u : r.site;
        core.bytes.swap(bytes);
    }
    std::sort(blocks_.begin(), blocks_.end());
    blocks_.erase(std::unique(blocks_.begin(), blocks_.end()), blocks_.end());
}

void SignalBlocks::find(const Records &records, size_t cores) {
    blocks_.clear();
    rows_.clear();
    if (cores < 2) return;
    look_for_blocks(records, cores);
    if (blocks_.empty()) return;
    for (uint32_t row = 0; row < records.size(); ++row)
        each_global(records, row, [&](uint8_t role, uint64_t begin, uint64_t end) {
            auto block = std::lower_bound(blocks_.begin(), blocks_.end(), begin >> kBits);
            for (; block != blocks_.end() && *block <= (end - 1) >> kBits; ++block) {
                if (role & kReads) rows_[row].seen.push_back(*block);
                if (role & kWrites) rows_[row].sent.push_back(*block);
            }
        });
}

bool SignalBlocks::hold(uint64_t address, uint64_t bytes) const {
    if (blocks_.empty()) return false;
    const uint64_t first = address >> kBits, last = (address + bytes - 1) >> kBits;
    const auto from = std::lower_bound(blocks_.begin(), blocks_.end(), first);
    const auto to = std::upper_bound(from, blocks_.end(), last);
    return static_cast<uint64_t>(to - from) == last - first + 1;
}

} // namespace insight_trace::engine::check
