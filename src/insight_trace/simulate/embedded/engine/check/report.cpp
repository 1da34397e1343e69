#include "report.hpp"

#include <algorithm>
#include <sstream>

#include "checker.hpp"
#include "redundant.hpp"

namespace insight_trace::engine::check {

namespace {

// Each group costs a pass over the steps; of a long run only so many are tried, and a few at least.
constexpr size_t kMostSteps = 2'000'000, kFewest = 4;

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
    for (bool cube : {false, true}) options.depths[cube] = queue_depths(machine.job().parameters, cube);
    Checker checker(records, cores, machine.global_memory(), options);
    std::ostringstream out;
    for (const Found &found : checker.run()) {
        out << "found\t" << int(found.kind) << "\t" << int(found.severity) << "\t"
            << int64_t(int32_t(found.first)) << "\t" << found.second << "\t" << int(found.memory) << "\t"
            << found.core << "\t" << found.first_writes << "\t" << found.second_writes << "\t" << found.begin
            << "\t" << found.end << "\t" << found.count << "\n";
    }
    out << "checked\t" << checker.memory().first << "\t" << checker.memory().second << "\n";
    for (uint64_t address : checker.written()) out << "wrote\t" << address << "\n";
    const std::vector<SyncGroup> groups = sync_groups(records, checker);
    Redundancy redundancy(records, cores, checker);
    const size_t most = std::max(kFewest, kMostSteps / std::max<size_t>(1, records.size()));
    out << "tried\t" << std::min(most, groups.size()) << "\t" << groups.size() << "\n";
    std::vector<size_t> idle = redundant_groups(redundancy, groups, most);
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
