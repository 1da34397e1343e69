// What a process of several recorded, which another one takes over block by block.
#pragma once

#include <string>
#include <vector>

#include "core_step.hpp"
#include "read_table.hpp"
#include "records.hpp"

namespace insight_trace::engine {

// Numbers of another process's rows as numbers of ours, as far as they were taken over.
class Renumbered {
  public:
    void add(uint32_t here) { places_.push_back(here); }
    // Lists are named by their first word: the words up to the next one name nothing.
    void add_from(size_t there, uint32_t here) {
        places_.resize(there, kNone);
        places_.push_back(here);
    }
    uint32_t operator()(uint32_t there) const; // what names no row stays as it is

  private:
    std::vector<uint32_t> places_;
};

class LeftRecords {
  public:
    // The files at `path`, and where its sites are in this process.
    LeftRecords(const std::string &path, std::vector<SiteRow> sites);
    // Appends what lies between the end of the last block and this one's.
    void take_over(const RecordCounts &end, Records &into);

  private:
    void check(const RecordCounts &end) const;
    void take_over_lists(uint32_t end, Records &into);

    ReadTable<Record> rows_;
    ReadTable<OperandRow> operands_;
    ReadTable<CallRow> calls_;
    ReadTable<Geometry> geometries_;
    ReadTable<Footprint> footprints_;
    ReadTable<TileRow> tiles_;
    ReadTable<uint32_t> lists_;
    std::vector<SiteRow> sites_;
    RecordCounts taken_;
    Renumbered site_, geometry_, footprint_, tile_, list_;
};

} // namespace insight_trace::engine
