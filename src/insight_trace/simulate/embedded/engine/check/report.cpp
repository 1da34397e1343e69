#include "report.hpp"

#include <sstream>

#include "checker.hpp"
#include "redundant.hpp"

namespace insight_trace::engine::check {

namespace {

// Each group costs a pass over the steps; a kernel with more than this is not looked at for redundancy.
constexpr uint64_t kMostSteps = 40'000'000;

void write_sites(std::ostream &out, const std::vector<uint32_t> &sites) {
    for (size_t i = 0; i < sites.size(); ++i) out << (i ? "," : "") << sites[i];
    if (sites.empty()) out << "-";
}

} // namespace

std::string report_of(const Records &records, const Machine &machine) {
    std::vector<CoreIdentity> cores;
    for (const CoreJob &job : machine.job().cores) cores.push_back(job.identity);
    Options options;
    options.vector_in_order = machine.job().parameters.vector_functions != 0;
    Checker checker(records, cores, machine.global_memory(), options);
    std::ostringstream out;
    for (const Found &found : checker.run()) {
        out << "found\t" << int(found.kind) << "\t" << int(found.severity) << "\t"
            << int64_t(int32_t(found.first)) << "\t" << found.second << "\t" << int(found.memory) << "\t"
            << found.core << "\t" << found.first_writes << "\t" << found.second_writes << "\t" << found.begin
            << "\t" << found.end << "\t" << found.count << "\n";
    }
    const std::vector<SyncGroup> groups = sync_groups(records, checker);
    if (uint64_t(records.size()) * groups.size() > kMostSteps) {
        out << "redundant_skipped\t" << groups.size() << "\n";
        return out.str();
    }
    Redundancy redundancy(records, cores, checker);
    for (size_t i : redundant_groups(redundancy, groups)) {
        out << "redundant\t" << groups[i].barrier << "\t";
        write_sites(out, groups[i].sets);
        out << "\t";
        write_sites(out, groups[i].waits);
        out << "\t" << groups[i].rows.front() << "\t" << groups[i].rows.size() << "\n";
    }
    return out.str();
}

} // namespace insight_trace::engine::check
