#include "report.hpp"

#include <algorithm>
#include <sstream>

#include "checker.hpp"
#include "redundant.hpp"

namespace insight_trace::engine::check {

namespace {

// Each group costs a pass over the steps; a kernel with more than this is not looked at for redundancy.
constexpr uint64_t kMostSteps = 40'000'000;

// What leaving a group out would save is timed for the most frequent ones; that many rows are placed again.
constexpr uint64_t kMostTimed = 400'000;

void write_rows(std::ostream &out, const std::vector<uint32_t> &rows) {
    for (size_t i = 0; i < rows.size(); ++i) out << (i ? "," : "") << rows[i];
    if (rows.empty()) out << "-";
}

} // namespace

std::string report_of(const Records &records, const Machine &machine) {
    std::vector<CoreIdentity> cores;
    for (const CoreJob &job : machine.job().cores) cores.push_back(job.identity);
    Options options;
    options.vector_in_order = machine.job().parameters.vector_functions != 0;
    Checker checker(records, cores, machine.global_memory(), options);
    std::ostringstream out;
    out << "checked\n";
    for (const Found &found : checker.run()) {
        out << "found\t" << int(found.kind) << "\t" << int(found.severity) << "\t"
            << int64_t(int32_t(found.first)) << "\t" << found.second << "\t" << int(found.memory) << "\t"
            << found.core << "\t" << found.first_writes << "\t" << found.second_writes << "\t" << found.begin
            << "\t" << found.end << "\t" << found.count << "\n";
    }
    for (uint64_t address : checker.written()) out << "wrote\t" << address << "\n";
    const std::vector<SyncGroup> groups = sync_groups(records, checker);
    if (uint64_t(records.size()) * groups.size() > kMostSteps) {
        out << "redundant_skipped\t" << groups.size() << "\n";
        return out.str();
    }
    Redundancy redundancy(records, cores, checker);
    std::vector<size_t> idle = redundant_groups(redundancy, groups);
    std::stable_sort(idle.begin(), idle.end(),
                     [&](size_t a, size_t b) { return groups[a].rows.size() > groups[b].rows.size(); });
    const int64_t whole = idle.empty() ? 0 : machine.cycles_without({});
    uint64_t timed = 0;
    for (size_t i : idle) {
        out << "redundant\t";
        write_rows(out, groups[i].sets);
        out << "\t";
        write_rows(out, groups[i].waits);
        out << "\t" << groups[i].rows.size() << "\t";
        timed += records.size();
        if (timed <= kMostTimed || timed == records.size())
            out << whole - machine.cycles_without(groups[i].rows) << "\n";
        else
            out << "-\n";
    }
    return out.str();
}

} // namespace insight_trace::engine::check
