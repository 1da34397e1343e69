#include "left_records.hpp"

#include <algorithm>

#include "failure.hpp"

namespace insight_trace::engine {

uint32_t Renumbered::operator()(uint32_t there) const {
    if (there == kNone) return there;
    if (there >= places_.size() || places_[there] == kNone)
        fail(Fault::OurBug, {}, "a share of the blocks names row %u", there);
    return places_[there];
}

LeftRecords::LeftRecords(const std::string &path, std::vector<SiteRow> sites)
    : rows_(path), operands_(path + ".operands"), calls_(path + ".calls"), geometries_(path + ".geometries"),
      footprints_(path + ".footprints"), tiles_(path + ".tiles"), lists_(path + ".lists"),
      sites_(std::move(sites)) {}

// A kernel may have written over the counts.
void LeftRecords::check(const RecordCounts &end) const {
    const auto within = [](uint32_t from, uint32_t to, size_t size) { return from <= to && to <= size; };
    if (within(taken_.rows, end.rows, rows_.size()) &&
        within(taken_.operands, end.operands, operands_.size()) &&
        within(taken_.calls, end.calls, calls_.size()) &&
        within(taken_.geometries, end.geometries, geometries_.size()) &&
        within(taken_.footprints, end.footprints, footprints_.size()) &&
        within(taken_.tiles, end.tiles, tiles_.size()) && within(taken_.lists, end.lists, lists_.size()) &&
        within(taken_.sites, end.sites, sites_.size()))
        return;
    fail(Fault::OurBug, {}, "a share of the blocks counts rows that it does not have");
}

template <class Row>
static void intern(const ReadTable<Row> &table, uint32_t from, uint32_t to, Interned<Row> &into,
                   Renumbered &here) {
    for (uint32_t i = from; i < to; ++i) here.add(into.index_of(table[i]));
}

void LeftRecords::take_over_lists(uint32_t end, Records &into) {
    std::vector<uint32_t> one;
    for (uint32_t at = taken_.lists; at < end; at += 1 + static_cast<uint32_t>(one.size())) {
        one.resize(std::min(lists_[at], end - at - 1));
        for (size_t i = 0; i < one.size(); ++i) one[i] = tile_(lists_[at + 1 + i]);
        list_.add_from(at, into.list(one));
    }
}

// Tables keep what repeats at its first appearance: what a block used first, in the order of blocks, is what
// one process would have met first.
void LeftRecords::take_over(const RecordCounts &end, Records &into) {
    check(end);
    for (uint32_t i = taken_.sites; i < end.sites; ++i)
        site_.add(into.site({sites_[i].file, sites_[i].line}, sites_[i].instr, sites_[i].pipe));
    intern(geometries_, taken_.geometries, end.geometries, into.geometries, geometry_);
    intern(footprints_, taken_.footprints, end.footprints, into.footprints, footprint_);
    intern(tiles_, taken_.tiles, end.tiles, into.tiles, tile_);
    take_over_lists(end.lists, into);
    const RecordCounts had = into.counts();
    for (uint32_t i = taken_.calls; i < end.calls; ++i)
        into.call(static_cast<Op>(calls_[i].op), calls_[i].core, list_(calls_[i].tiles));
    for (uint32_t i = taken_.operands; i < end.operands; ++i)
        into.operand(operands_[i].address, footprint_(operands_[i].footprint), tile_(operands_[i].tile));
    for (uint32_t i = taken_.rows; i < end.rows; ++i) {
        Record record = rows_[i];
        record.site = site_(record.site);
        record.geometry = geometry_(record.geometry);
        record.operands += had.operands - taken_.operands;
        if (record.call != kNoCall) record.call += had.calls - taken_.calls;
        into.append(record);
    }
    taken_ = end;
    rows_.drop(end.rows);
    operands_.drop(end.operands);
}

} // namespace insight_trace::engine
