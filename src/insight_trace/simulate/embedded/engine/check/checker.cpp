#include "checker.hpp"

#include <algorithm>
#include <cstring>

#include "../elements.hpp"
#include "walks.hpp"

namespace insight_trace::engine::check {

namespace {

constexpr uint8_t kGlobal = static_cast<uint8_t>(Space::GM);
constexpr uint32_t kIdentical = 16; // repeats from which a vector result is there when the next one needs it

bool is_scalar(uint32_t thread) { return thread % kPipes == static_cast<uint32_t>(PipeId::S); }

} // namespace

Checker::Checker(const Records &records, const std::vector<CoreIdentity> &cores, const GlobalMemory &gm,
                 const Options &options)
    : records_(records), cores_(cores), gm_(gm), options_(options) {}

uint32_t Checker::repeats_of(const Record &r) const {
    return r.geometry == kNoGeometry ? 0 : records_.geometries.rows()[r.geometry].repeat;
}

bool Checker::is_atomic(const Record &r) const {
    return r.geometry != kNoGeometry && records_.geometries.rows()[r.geometry].atomic;
}

uint32_t Checker::operand_end(uint32_t row) const {
    return row + 1 < records_.size() ? records_[row + 1].operands : records_.operand_count();
}

Shadow &Checker::shadow(uint16_t core, uint8_t memory) {
    return shadows_[{memory == kGlobal ? uint16_t(0) : core, memory}];
}

std::vector<Found> Checker::run() {
    shadows_.clear();
    found_.clear();
    needs_.clear();
    racing_.clear();
    site_writes_.assign(records_.sites().size(), 0);
    site_read_.assign(records_.sites().size(), 0);
    written_.clear();
    dirty_.clear();
    tile_told_.assign(records_.tiles.rows().size(), 0);
    signals_.find(records_, cores_.size());
    Order order(cores_, signals_, [this](const Step &step, uint32_t number, const Time &before) {
        accesses(step, number, before);
    });
    for (uint32_t row = 0; row < records_.size(); ++row) {
        Step step{};
        if (options_.memory) look_at_contract(row);
        if (!step_of(row, step)) continue;
        if (options_.memory && (step.kind == StepKind::Set || step.kind == StepKind::Wait) &&
            (records_[row].a >> 16) > 7 && (records_[row].a >> 16) < kEvents)
            report({Kind::EventId, Severity::Warning, kNoPartner, row});
        if (options_.memory && step.kind == StepKind::Barrier && step.pipe == PipeId::S) {
            report({Kind::BarrierScalar, Severity::Error, kNoPartner, row});
            continue;
        }
        order.add(step);
    }
    order.finish();
    if (options_.memory) {
        for (const DoubleSet &twice : order.double_sets()) {
            // a race that has the same edge missing says it better
            Step step{};
            step_of(twice.second, step);
            const auto missing = std::pair(uint32_t(Order::thread(step.core, step.to)),
                                           uint32_t(Order::thread(step.core, step.from)));
            if (!twice.certain && racing_.count(missing)) continue;
            report({Kind::DoubleSet, twice.certain ? Severity::Error : Severity::Warning, twice.first,
                    twice.second});
        }
        for (const CrossFault &fault : order.cross_faults()) {
            Found found{fault.overflow ? Kind::Overflow : Kind::LeftOver,
                        fault.overflow ? Severity::Error : Severity::Warning, kNoPartner, fault.row};
            found.count = fault.count;
            report(found);
        }
        for (uint32_t row = 0; row < records_.size(); ++row) {
            uint32_t site = records_[row].site;
            // on chips with vector registers a result reaches memory by a store of its own
            const bool in_register = options_.vector_in_order && records_.sites()[site].pipe == PipeId::V;
            if (site_writes_[site] && !site_read_[site] && !in_register) {
                report({Kind::Unread, Severity::Note, kNoPartner, row});
                site_read_[site] = 1;
            }
        }
    }
    std::vector<Found> all;
    for (const auto &[key, found] : found_) all.push_back(found);
    std::stable_sort(all.begin(), all.end(), [](const Found &a, const Found &b) {
        return std::tie(a.severity, a.second, a.first) < std::tie(b.severity, b.second, b.first);
    });
    return all;
}

void Checker::report(const Found &found) {
    auto site = [this](uint32_t row) { return row == kNoPartner ? kNoPartner : records_[row].site; };
    auto [place, added] = found_.try_emplace(
        Key{found.kind, found.severity, site(found.first), site(found.second), found.memory}, found);
    if (added) return;
    Found &known = place->second;
    known.count += found.second != known.second || found.first != known.first;
    known.begin = std::min(known.begin, found.begin);
    known.end = std::max(known.end, found.end);
}

void Checker::look_at_address(const Step &step, const Footprint &footprint, const OperandRow &operand) {
    const Record &r = records_[step.row];
    const auto form = static_cast<Form>(r.form);
    if (footprint.memory == kGlobal) {
        const Region *region = gm_.find(operand.address);
        if (!region) return;
        const bool writes = (footprint.role & kWrites) != 0;
        if (writes) written_.insert(region->address);
        if (step.pipe == PipeId::S) return; // whole lines of the cache: what is used of them is not known
        // past what the kernel is told of, but inside the buffer: somebody's bytes, maybe meant
        const uint64_t size = region->address + region->size;
        const uint64_t limit = region->view ? std::min(region->address + region->view, size) : size;
        uint64_t begin = ~uint64_t(0), end = 0;
        for_each_run(footprint.walk, operand.address, 1, [&](uint64_t at, uint64_t bytes) {
            if (at + bytes <= limit) return;
            begin = std::min(begin, std::max(at, limit));
            end = std::max(end, at + bytes);
        });
        if (end)
            report({Kind::PastTensor, end > size ? Severity::Error : Severity::Note, kNoPartner, step.row,
                    footprint.memory, 0, false, writes, begin, end});
        return;
    }
    const bool blocks = footprint.memory <= static_cast<uint8_t>(Space::L1) && step.pipe != PipeId::S;
    const bool named = footprint.which < 3 && (form == Form::Transfer || form == Form::Local);
    if (blocks && named && operand.address % 32 != 0)
        report({Kind::Misaligned, Severity::Error, kNoPartner, step.row, footprint.memory, r.core, false,
                (footprint.role & kWrites) != 0, operand.address, operand.address + 32});
}

// The core whose memory an operand lies in.
uint16_t Checker::owner_of(const Step &step, const Footprint &footprint) const {
    if (footprint.memory == kGlobal || footprint.owner == 0) return step.core;
    const CoreIdentity &me = cores_[step.core];
    for (uint16_t i = 0; i < cores_.size(); ++i) {
        const CoreIdentity &other = cores_[i];
        if (other.block != me.block) continue;
        if (footprint.owner == 1 ? other.cube : !other.cube && other.sub_block == footprint.owner - 2)
            return i;
    }
    return step.core; // nothing runs there
}

// A scalar store stays in its core's cache until the kernel writes the line back.
void Checker::look_at_cache(const Step &step) {
    constexpr int kLineBits = 6;
    const Record &r = records_[step.row];
    const Instr instr = records_.sites()[r.site].instr;
    if (instr == Instr::DCCI) {
        for (auto line = dirty_.begin(); line != dirty_.end();)
            line = line->second.core == r.core && (!r.a || line->first == r.a >> kLineBits)
                       ? dirty_.erase(line)
                       : std::next(line);
        return;
    }
    const bool cached = instr == Instr::ST_XD_XN_IMM || instr == Instr::LD_XD_XN_IMM;
    for (uint32_t i = r.operands; i < operand_end(step.row); ++i) {
        const OperandRow &operand = records_.operand(i);
        const Footprint &footprint = records_.footprints.rows()[operand.footprint];
        if (footprint.memory != kGlobal) continue;
        if (cached && (footprint.role & kWrites)) {
            dirty_[operand.address >> kLineBits] = {r.core, step.row};
            continue;
        }
        if (dirty_.empty() || !(footprint.role & kReads)) continue;
        for_each_run(footprint.walk, operand.address, 1, [&](uint64_t at, uint64_t bytes) {
            for (const auto &[line, dirty] : dirty_) {
                const uint64_t begin = line << kLineBits, end = begin + (1u << kLineBits);
                if (at >= end || at + bytes <= begin) continue;
                const bool own = dirty.core == r.core;
                if (own && step.pipe == PipeId::S) continue; // through the same cache
                report({Kind::NoDcci, own ? Severity::Warning : Severity::Error, dirty.row, step.row, kGlobal,
                        0, true, false, begin, end});
            }
        });
    }
}

void Checker::accesses(const Step &step, uint32_t number, const Time &before) {
    const Record &r = records_[step.row];
    if (options_.memory && (!dirty_.empty() || step.pipe == PipeId::S)) look_at_cache(step);
    const uint32_t end = operand_end(step.row);
    const auto thread = static_cast<uint32_t>(Order::thread(step.core, step.pipe));
    uint32_t written = 0; // memories, as bits
    for (uint32_t i = r.operands; i < end; ++i) {
        const Footprint &footprint = records_.footprints.rows()[records_.operand(i).footprint];
        if (footprint.role & kWrites) written |= 1u << footprint.memory;
    }
    // what an instruction reads it reads before it writes
    for (bool write : {false, true})
        for (uint32_t i = r.operands; i < end; ++i) {
            const OperandRow &operand = records_.operand(i);
            const Footprint &footprint = records_.footprints.rows()[operand.footprint];
            if (!(footprint.role & (write ? kWrites : kReads))) continue;
            if (options_.memory) look_at_address(step, footprint, operand);
            const uint16_t owner = owner_of(step, footprint);
            const bool atomic = write && is_atomic(r);
            Touch touch{thread,
                        number,
                        step.row,
                        operand.tile,
                        kNoTile,
                        write,
                        atomic,
                        footprint.exact != 0,
                        (written >> footprint.memory & 1) != 0};
            const bool on_chip = footprint.memory != kGlobal;
            const Region *region = on_chip || write ? nullptr : gm_.find(operand.address);
            const bool undefined = on_chip || (region && region->only_output && step.pipe != PipeId::S);
            const bool accumulates = records_.sites()[r.site].instr == Instr::MMAD &&
                                     footprint.memory == static_cast<uint8_t>(Space::L0C);
            if (write && on_chip) site_writes_[r.site] = 1;
            Shadow &memory = shadow(owner, footprint.memory);
            const int size = type_size(static_cast<Type>(footprint.type));
            for_each_run(footprint.walk, operand.address, size, [&](uint64_t at, uint64_t bytes) {
                uint64_t unwritten = memory.touch(
                    at, bytes, touch,
                    [&](const Touch &earlier, uint64_t where, uint64_t common) {
                        meet(earlier, touch, step, before, footprint.memory, owner, where, common);
                    },
                    [&](const Touch &earlier) { return earlier.atomic && atomic; });
                if (options_.memory && !write && undefined && unwritten && touch.exact)
                    report({accumulates ? Kind::Accumulator : Kind::Unwritten,
                            accumulates ? Severity::Error
                            : on_chip   ? Severity::Note
                                        : Severity::Warning,
                            kNoPartner, step.row, footprint.memory, owner, false, false, at, at + bytes});
            });
        }
}

Severity Checker::same_pipe_severity(const Touch &earlier, const Step &step) const {
    if (step.pipe != PipeId::V) {
        const bool moves = step.pipe == PipeId::MTE2 || step.pipe == PipeId::MTE3;
        return moves || !options_.vector_in_order ? Severity::Error : Severity::Note;
    }
    // The same bytes in the same order, and many of them: the first results are there in time.
    const Record &before = records_[earlier.row], &now = records_[step.row];
    if (!earlier.write || repeats_of(before) < kIdentical) return Severity::Error;
    for (uint32_t i = before.operands; i < operand_end(earlier.row); ++i) {
        const OperandRow &made = records_.operand(i);
        const Footprint &by = records_.footprints.rows()[made.footprint];
        if (!(by.role & kWrites)) continue;
        for (uint32_t j = now.operands; j < operand_end(step.row); ++j) {
            const OperandRow &used = records_.operand(j);
            const Footprint &with = records_.footprints.rows()[used.footprint];
            if ((with.role & kReads) && made.address == used.address && by.memory == with.memory &&
                memcmp(&by.walk, &with.walk, sizeof(Traversal)) == 0)
                return Severity::Note;
        }
    }
    return Severity::Error;
}

void Checker::need(const Touch &earlier, const Step &step) {
    for (auto known = needs_.rbegin(); known != needs_.rend() && known->row == step.row; ++known)
        if (known->thread == earlier.thread) {
            known->number = std::max(known->number, earlier.number);
            return;
        }
    needs_.push_back({step.row, earlier.thread, earlier.number});
}

bool Checker::partly_overlap(uint32_t one, uint32_t other) const {
    if (one == kNoTile || other == kNoTile) return false;
    // up to the last valid element: a slice of a tile is as wide as that tile, and ends with its own part
    auto bytes = [](const TileRow &tile) {
        const auto rows = uint64_t(std::max(1, tile.row_major ? tile.valid_rows : tile.valid_cols));
        const auto cols = uint64_t(std::max(1, tile.row_major ? tile.valid_cols : tile.valid_rows));
        const uint64_t elements = tile.inner
                                      ? uint64_t(tile.rows) * uint64_t(tile.cols)
                                      : (rows - 1) * uint64_t(tile.row_major ? tile.cols : tile.rows) + cols;
        return elements * uint64_t(type_size(static_cast<Type>(tile.type)));
    };
    const TileRow &a = records_.tiles.rows()[one], &b = records_.tiles.rows()[other];
    const uint64_t a_end = a.address + bytes(a), b_end = b.address + bytes(b);
    const bool apart = a_end <= b.address || b_end <= a.address;
    const bool inside =
        (a.address >= b.address && a_end <= b_end) || (b.address >= a.address && b_end <= a_end);
    return !apart && !inside;
}

void Checker::meet(const Touch &earlier, const Touch &later, const Step &step, const Time &before,
                   uint8_t memory, uint16_t owner, uint64_t address, uint64_t bytes) {
    if (earlier.write && !later.write) {
        site_read_[records_[earlier.row].site] = 1;
        const bool replaced = options_.memory && earlier.victim != kNoTile && earlier.victim == later.tile &&
                              earlier.tile != later.tile;
        if (replaced && partly_overlap(earlier.tile, later.tile))
            report({Kind::Overlap, Severity::Warning, earlier.row, step.row, memory, owner, true, false,
                    address, address + bytes});
        // what a tile op writes beside its tiles is the library's own
        const bool library = earlier.tile == kNoTile && records_[earlier.row].call != kNoCall &&
                             records_[earlier.row].call != records_[step.row].call;
        if (replaced && library)
            report({Kind::Scratch, Severity::Error, earlier.row, step.row, memory, owner, true, false,
                    address, address + bytes});
    }
    if (earlier.atomic && later.atomic) return;
    const bool same_pipe = earlier.thread == later.thread;
    const bool same_core = earlier.thread / kPipes == later.thread / kPipes;
    if (same_pipe) { // what the pipe keeps in order by itself
        if (step.pipe == PipeId::S || step.pipe == PipeId::M) return;
        if (step.pipe == PipeId::V && options_.vector_in_order) return;
        if (later.number - earlier.number >
            options_.depths[cores_[step.core].cube][static_cast<size_t>(step.pipe)])
            return;
        // inside a tile op the library has its own reasons
        if (records_[earlier.row].call != kNoCall && records_[earlier.row].call == records_[step.row].call)
            return;
    }
    // words in global memory that cores poll are ordered by the cache's own instructions
    if (!same_core && is_scalar(earlier.thread) && is_scalar(later.thread)) return;
    if (!same_core && memory == kGlobal && signals_.hold(address, bytes)) return;
    if (before[earlier.thread] >= earlier.number) return need(earlier, step);
    Found found{same_pipe   ? Kind::SamePipe
                : same_core ? Kind::Race
                            : Kind::Cores,
                same_pipe ? same_pipe_severity(earlier, step) : Severity::Error,
                earlier.row,
                step.row,
                memory,
                owner,
                earlier.write,
                later.write,
                address,
                address + bytes};
    const bool both_exact = earlier.exact && later.exact;
    if (earlier.atomic != later.atomic && earlier.write && later.write) found.kind = Kind::AtomicMix;
    // scratch that the library hides from the kernel is nobody's to order
    const bool hidden = same_pipe && memory != kGlobal && (earlier.tile == kNoTile || later.tile == kNoTile);
    if (!both_exact || hidden) found.severity = Severity::Note;
    if (found.severity == Severity::Error) racing_.emplace(earlier.thread, later.thread);
    report(found);
}

} // namespace insight_trace::engine::check
