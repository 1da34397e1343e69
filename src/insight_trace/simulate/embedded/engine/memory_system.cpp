#include "memory_system.hpp"

#include <algorithm>

namespace insight_trace::engine {

static constexpr int64_t kMillion = 1000000;

MemorySystem::MemorySystem(const MemoryRates &rates, L2Cache &cache, PageWalks &walks,
                           const std::vector<size_t> &clusters, uint32_t channels_each)
    : rates_(rates), cache_(cache), walks_(walks), clusters_(clusters), each_(channels_each),
      channels_(clusters.size() * channels_each), asked_(clusters.size()) {}

static void add(L2Traffic &to, const L2Traffic &more) {
    to.bytes += more.bytes;
    to.hits += more.hits;
    to.shared += more.shared;
    to.fetched += more.fetched;
    to.replaced += more.replaced;
}

static L2Traffic traffic_of(L2Cache &cache, const Access &access, uint32_t core) {
    L2Traffic traffic;
    auto touch = [&](uint64_t address, int64_t bytes) {
        if (access.past_l2)
            L2Cache::pass(address, bytes, access.write, traffic);
        else
            cache.touch(address, bytes, access.write, traffic, core);
    };
    uint64_t address = access.address;
    if (access.step == static_cast<int64_t>(access.burst_bytes)) {
        touch(address, int64_t(access.bursts) * access.burst_bytes);
        return traffic;
    }
    for (uint32_t i = 0; i < access.bursts; ++i, address += static_cast<uint64_t>(access.step))
        touch(address, access.burst_bytes);
    return traffic;
}

void MemorySystem::look(uint32_t core, const Access &access) {
    add(total_, traffic_of(cache_, access, core));
}

// A block of L2 adds for one access at a time: when all blocks of this one have done so for those before it.
int64_t MemorySystem::take_turns(const Access &access, int64_t begin) {
    constexpr uint64_t kLine = L2Cache::kLine;
    auto each = [&](auto &&visit) {
        uint64_t address = access.address;
        for (uint32_t i = 0; i < access.bursts; ++i, address += static_cast<uint64_t>(access.step))
            for (uint64_t line = address / kLine; line <= (address + access.burst_bytes - 1) / kLine; ++line)
                visit(turns_[line]);
    };
    each([&](int64_t &free) { begin = std::max(begin, free); });
    each([&](int64_t &free) { free = begin + rates_.atomic; });
    return begin;
}

void MemorySystem::submit(uint32_t channel, const Access &access, int64_t start, int64_t latency,
                          uint32_t row) {
    Waiting &waiting = channels_[channel].queue.next();
    waiting.access = access;
    waiting.begin = latency;
    waiting.expected = start + latency + access.data;
    waiting.row = row;
    events_.push({start, order_++, channel, true});
}

// The next access of a channel: those of one channel start in their order.
void MemorySystem::look_up(uint32_t number, int64_t time) {
    Channel &channel = channels_[number];
    Waiting &waiting = channel.queue[channel.looked_up];
    waiting.traffic = traffic_of(cache_, waiting.access, number / each_);
    add(total_, waiting.traffic);
    waiting.begin = walks_.known(number / each_, clusters_[number / each_], waiting.access, time) +
                    waiting.begin + (waiting.traffic.fetched ? rates_.miss : 0);
    if (waiting.access.atomic) waiting.begin = take_turns(waiting.access, waiting.begin);
    if (++channel.looked_up == 1) try_begin(number);
}

// The first in the queue of a channel that is free: now, or when its latency is over.
void MemorySystem::try_begin(uint32_t number) {
    Channel &channel = channels_[number];
    if (channel.busy || !channel.looked_up) return;
    const Waiting &first = channel.queue.front();
    if (first.begin > now_) {
        events_.push({first.begin, order_++, number, false});
        return;
    }
    begin(number, first);
    channel.queue.drop();
    --channel.looked_up;
}

// The time on its channel. Pieces that L2 does not hold wait for HBM, the longer the busier it is: what they
// take is known of one that all cores load.
int64_t MemorySystem::data_phase(const Access &access, const L2Traffic &traffic) const {
    const int64_t data = std::max<int64_t>(1, access.data);
    if (access.missed_piece == access.piece || !traffic.fetched || !rates_.hbm) return data;
    const int64_t alone = traffic.bytes * kMillion / data;
    const int64_t asked = std::min(rates_.hbm, hbm_asked_ + alone * traffic.fetched / traffic.bytes);
    const int64_t more = (access.missed_piece - access.piece) * traffic.fetched / traffic.bytes;
    return std::max(data, access.bursts * (access.piece + more * asked / rates_.hbm));
}

void MemorySystem::begin(uint32_t number, const Waiting &waiting) {
    channels_[number].busy = true;
    const Access &access = waiting.access;
    const L2Traffic &traffic = waiting.traffic;
    const int64_t bytes = std::max<int64_t>(1, traffic.bytes);
    Flow flow{};
    flow.channel = number;
    flow.row = waiting.row;
    flow.holds = access.turn == Turn::Holds;
    flow.expected = waiting.expected;
    flow.left = bytes * kMillion;
    flow.wants = std::max<int64_t>(1, flow.left / data_phase(access, traffic));
    // what a path reaches of the chip's rate is told by how much of it its bytes take
    int64_t l2 = 1000, hbm = 1000;
    if (access.to_l1) {
        if (rates_.l2_to_l1) l2 = rates_.l2 * 1000 / rates_.l2_to_l1;
        if (rates_.hbm_to_l1) hbm = rates_.hbm * 1000 / rates_.hbm_to_l1;
    }
    const int64_t more = access.write ? 0 : traffic.shared * (rates_.shared - 1000) / bytes;
    flow.l2 = l2 * access.weight / 1000 * (1000 + more) / 1000;
    flow.hbm = hbm * access.weight / 1000 * (traffic.fetched + traffic.replaced) / bytes;
    flow.traffic = traffic;
    flow.since = now_;
    flow.rate = flow.given = flow.wants;
    flow.end = now_ + (flow.left + flow.rate - 1) / flow.rate;
    count(flow, 1);
    flows_.push_back(flow);
    if (!free_ || crowded()) changed_ = true;
}

void MemorySystem::count(const Flow &flow, int64_t sign) {
    l2_asked_ += sign * (flow.wants * flow.l2 / 1000);
    hbm_asked_ += sign * (flow.wants * flow.hbm / 1000);
    int64_t &asked = asked_[flow.channel / each_];
    const bool before = asked > rates_.core;
    asked += sign * flow.wants;
    if (rates_.core) full_ports_ += int64_t(asked > rates_.core) - int64_t(before);
}

bool MemorySystem::crowded() const {
    return full_ports_ > 0 || (rates_.l2 && l2_asked_ > rates_.l2) || (rates_.hbm && hbm_asked_ > rates_.hbm);
}

// As much as the others, unless it wants less: the largest share under which all together stay below the
// limit.
int64_t MemorySystem::fair(int64_t limit, int64_t Flow::*weight) const {
    int64_t all = 0;
    for (const Flow &flow : flows_) all += flow.given * (flow.*weight) / 1000;
    if (!limit || all <= limit) return 0; // nobody has to wait
    int64_t share = 0, left = limit, count = 0;
    for (const Flow &flow : flows_) count += flow.*weight > 0;
    // those that want less than an equal part leave the rest to the others
    while (count > 0) {
        share = left / count;
        int64_t rest = limit, more = 0;
        for (const Flow &flow : flows_) {
            if (flow.*weight <= 0) continue;
            const int64_t wanted = flow.given * (flow.*weight) / 1000;
            if (wanted <= share)
                rest -= wanted;
            else
                ++more;
        }
        if (more == count) break;
        left = rest;
        count = more;
    }
    return std::max<int64_t>(1, share);
}

// What one core reads and writes at the same time goes through one port.
void MemorySystem::share_ports() {
    for (Flow &flow : flows_) {
        const uint32_t core = flow.channel / each_;
        if (asked_[core] <= rates_.core) continue;
        // two or three: in order of what they want, each takes an equal part of what is left or less
        int64_t left = rates_.core, same = 0;
        for (const Flow &other : flows_) {
            if (other.channel / each_ != core) continue;
            if (other.wants < flow.wants)
                left -= other.wants;
            else
                ++same;
        }
        flow.given = std::max<int64_t>(1, std::min(flow.wants, left / same));
    }
}

void MemorySystem::share() {
    changed_ = false;
    for (Flow &flow : flows_) flow.given = flow.wants;
    free_ = !crowded();
    if (!free_) {
        if (full_ports_ > 0) share_ports();
        if (int64_t most = fair(rates_.hbm, &Flow::hbm))
            for (Flow &flow : flows_)
                if (flow.hbm > 0)
                    flow.given = std::max<int64_t>(1, std::min(flow.given, most * 1000 / flow.hbm));
        if (int64_t most = fair(rates_.l2, &Flow::l2))
            for (Flow &flow : flows_)
                if (flow.l2 > 0)
                    flow.given = std::max<int64_t>(1, std::min(flow.given, most * 1000 / flow.l2));
    }
    for (Flow &flow : flows_)
        if (flow.given != flow.rate) settle(flow);
}

// From now on at another rate.
void MemorySystem::settle(Flow &flow) {
    flow.left = std::max<int64_t>(0, flow.left - flow.rate * (now_ - flow.since));
    flow.since = now_;
    flow.rate = flow.given;
    flow.end = now_ + (flow.left + flow.rate - 1) / flow.rate;
}

bool MemorySystem::next(Ended &ended) {
    while (true) {
        if (changed_) share();
        size_t first = flows_.size();
        int64_t soonest = INT64_MAX;
        for (size_t i = 0; i < flows_.size(); ++i)
            if (flows_[i].end < soonest) {
                soonest = flows_[i].end;
                first = i;
            }
        if (!events_.empty() && events_.top().time <= soonest) {
            const Event event = events_.top();
            events_.pop();
            now_ = std::max(now_, event.time);
            if (event.looks)
                look_up(event.channel, event.time);
            else
                try_begin(event.channel);
            continue;
        }
        if (first == flows_.size()) return false;
        now_ = std::max(now_, soonest);
        const Flow flow = flows_[first];
        flows_.erase(flows_.begin() + static_cast<std::ptrdiff_t>(first));
        count(flow, -1);
        if (!free_) changed_ = true;
        channels_[flow.channel].busy = false;
        try_begin(flow.channel);
        ended = {flow.channel, flow.row, now_, flow.expected, flow.holds, flow.traffic};
        return true;
    }
}

} // namespace insight_trace::engine
