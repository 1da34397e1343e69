#include "redundant.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

namespace insight_trace::engine::check {

namespace {

// Sites that belong together end up with the same root.
struct Roots {
    std::vector<uint32_t> parent;
    explicit Roots(size_t count) : parent(count) { std::iota(parent.begin(), parent.end(), 0u); }
    uint32_t of(uint32_t site) {
        while (parent[site] != site) site = parent[site] = parent[parent[site]];
        return site;
    }
    void join(uint32_t a, uint32_t b) { parent[of(a)] = of(b); }
};

} // namespace

std::vector<SyncGroup> sync_groups(const Records &records, const Checker &checker) {
    using Key = std::tuple<uint16_t, PipeId, PipeId, int>;
    std::map<Key, std::deque<uint32_t>> sets, waits;
    Roots roots(records.sites().size());
    std::vector<uint32_t> rows;
    for (uint32_t row = 0; row < records.size(); ++row) {
        Step step{};
        // what a tile op does inside is not the kernel's to leave out
        if (records[row].call != kNoCall || !checker.step_of(row, step)) continue;
        if (step.kind == StepKind::Barrier) rows.push_back(row);
        if (step.kind != StepKind::Set && step.kind != StepKind::Wait) continue;
        rows.push_back(row);
        const Key key{step.core, step.from, step.to, step.event};
        auto &mine = (step.kind == StepKind::Set ? sets : waits)[key];
        auto &others = (step.kind == StepKind::Set ? waits : sets)[key];
        if (others.empty()) {
            mine.push_back(row);
        } else {
            roots.join(records[row].site, records[others.front()].site);
            others.pop_front();
        }
    }
    std::map<uint32_t, size_t> index;
    std::vector<SyncGroup> groups;
    for (uint32_t row : rows) {
        const uint32_t site = records[row].site, root = roots.of(site);
        auto [found, added] = index.try_emplace(root, groups.size());
        if (added) groups.emplace_back();
        SyncGroup &group = groups[found->second];
        group.rows.push_back(row);
        const Instr instr = records.sites()[site].instr;
        group.barrier = instr == Instr::BAR;
        if (group.barrier) group.strength = static_cast<PipeId>(records[row].a) == PipeId::ALL ? 2 : 1;
        auto &lines = instr == Instr::SET_FLAG ? group.sets : group.waits;
        const bool known = std::any_of(lines.begin(), lines.end(),
                                       [&](uint32_t other) { return records[other].site == site; });
        if (!known) lines.push_back(row);
    }
    return groups;
}

Redundancy::Redundancy(const Records &records, const std::vector<CoreIdentity> &cores, const Checker &checker)
    : records_(records), cores_(cores), first_need_(records.size() + 1, 0), needs_(checker.needs()),
      signals_(checker.signals()) {
    for (uint32_t row = 0; row < records.size(); ++row) {
        Step step{};
        if (checker.step_of(row, step)) steps_.push_back(step);
    }
    // needs come grouped by row, though rows of different pipes may stand in another order
    std::fill(first_need_.begin(), first_need_.end(), kNoPartner);
    for (uint32_t i = 0; i < needs_.size(); ++i)
        if (first_need_[needs_[i].row] == kNoPartner) first_need_[needs_[i].row] = i;
}

uint32_t Redundancy::unordered_without(const std::vector<uint32_t> &rows) {
    uint32_t lost = kNoPartner;
    Order order(cores_, signals_, [&](const Step &step, uint32_t, const Time &before) {
        if (lost != kNoPartner) return;
        for (uint32_t i = first_need_[step.row]; i < needs_.size() && needs_[i].row == step.row; ++i)
            if (before[needs_[i].thread] < needs_[i].number) lost = step.row;
    });
    std::vector<uint32_t> left_out = rows;
    std::sort(left_out.begin(), left_out.end());
    for (Step step : steps_) {
        if (std::binary_search(left_out.begin(), left_out.end(), step.row)) {
            if (step.kind != StepKind::Wait) continue; // only waits have a number of their own
            step.kind = StepKind::Nothing;
        }
        order.add(step);
        if (lost != kNoPartner) return lost;
    }
    order.finish();
    return lost;
}

std::vector<size_t> redundant_groups(Redundancy &redundancy, const std::vector<SyncGroup> &groups,
                                     size_t most) {
    std::vector<size_t> found, order(groups.size());
    std::iota(order.begin(), order.end(), size_t(0));
    // What costs most goes first: a barrier of all pipes makes flags look idle that do its work for less.
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return groups[a].strength > groups[b].strength; });
    if (order.size() > most) order.resize(most);
    std::vector<uint32_t> left_out;
    for (size_t i : order) {
        std::vector<uint32_t> tried = left_out;
        tried.insert(tried.end(), groups[i].rows.begin(), groups[i].rows.end());
        if (redundancy.unordered_without(tried) != kNoPartner) continue;
        left_out = std::move(tried);
        found.push_back(i);
    }
    return found;
}

} // namespace insight_trace::engine::check
