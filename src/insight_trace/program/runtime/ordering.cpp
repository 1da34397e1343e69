// What is put on different streams has no order but by events and waits: who may touch the same bytes at
// once.
#include <algorithm>
#include <cstring>

#include "runtime.hpp"

namespace insight_trace_program {

namespace {
constexpr size_t kRemembered = 256; // launches and copies; older ones have surely been waited for

// The first bytes that both touch and one writes.
bool common_of(const std::vector<Touched> &a, const std::vector<Touched> &b, Touched &found) {
    for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
        if (a[i].end <= b[k].begin)
            ++i;
        else if (b[k].end <= a[i].begin)
            ++k;
        else if (a[i].writes || b[k].writes) {
            found = {std::max(a[i].begin, b[k].begin), std::min(a[i].end, b[k].end), b[k].writes};
            return true;
        } else
            a[i].end < b[k].end ? ++i : ++k;
    }
    return false;
}
bool writes(const std::vector<Touched> &touched, const Touched &common) {
    return std::any_of(touched.begin(), touched.end(), [&](const Touched &one) {
        return one.writes && one.begin < common.end && common.begin < one.end;
    });
}
} // namespace

void Device::say_race(const Access &one, const Access &other, const Touched &common, const char *why) {
    auto place = [](const Access &of) { return of.caller ? "called" + caller_of(of.caller) : of.place; };
    const std::string first = place(one), second = place(other);
    if (!races_said_.insert(one.what + first + other.what + second).second) return;
    const Buffer *buffer = memory.find(common.begin);
    const uint64_t from = buffer ? common.begin - buffer->address : 0;
    say("race between streams: %s %s bytes %llu to %llu of %s while %s %s them, and %s\n  %s\n  %s",
        one.what.c_str(), writes(one.touched, common) ? "writes" : "reads",
        static_cast<unsigned long long>(from),
        static_cast<unsigned long long>(from + common.end - common.begin - 1),
        buffer ? buffer->name.c_str() : "device memory", other.what.c_str(),
        writes(other.touched, common) ? "writes" : "reads", why, first.c_str(), second.c_str());
}

// `known`: what certainly came before. The host itself is known to wait for the default stream.
void Device::compare(const Known &known, Access fresh, bool by_host) {
    for (const Access &one : accesses_) {
        if (one.stream == fresh.stream || (by_host && one.stream == default_stream.number)) continue;
        const auto found = known.launches.find(one.stream);
        if (found != known.launches.end() && one.count <= found->second) continue;
        Touched common{};
        if (!common_of(one.touched, fresh.touched, common)) continue;
        say_race(one, fresh, common,
                 by_host ? "the program has not waited for that stream"
                         : "no event or synchronize lies between them");
        break;
    }
    if (by_host || fresh.touched.empty()) return;
    if (accesses_.size() >= kRemembered) accesses_.erase(accesses_.begin());
    accesses_.push_back(std::move(fresh));
}

void Device::copies(Stream *on, const char *call, void *caller, const void *pointer, uint64_t bytes,
                    bool writes) {
    if (streams.empty() || !memory.is_device(pointer) || !bytes) return;
    const auto address = reinterpret_cast<uint64_t>(pointer);
    const std::vector<Touched> touched{{address, address + bytes, writes}};
    if (!on) return compare(host, {-1, 0, touched, call, "", caller}, true);
    on->known.learn(host);
    const uint64_t count = ++on->known.launches[on->number];
    compare(on->known, {on->number, count, touched, call, "", caller}, false);
}

// Something that a device lets a kernel do, once for each line.
void Device::note(const std::string &kernel, const std::string &place, const std::string &what) {
    if (notes_said_.size() < 20 && notes_said_.insert(place).second)
        say("%s %s\n  in the kernel at %s", kernel.c_str(), what.c_str(), source_line(place).c_str());
}

void Device::forget_accesses(uint64_t address, uint64_t bytes) {
    for (Access &one : accesses_)
        one.touched.erase(std::remove_if(one.touched.begin(), one.touched.end(),
                                         [&](const Touched &part) {
                                             return part.begin < address + bytes && address < part.end;
                                         }),
                          one.touched.end());
}

template <class Condition> void Device::complete_where(Condition condition) {
    auto rest = std::stable_partition(arriving_.begin(), arriving_.end(), condition);
    for (auto one = arriving_.begin(); one != rest; ++one)
        memcpy(one->to, one->bytes.data(), one->bytes.size());
    arriving_.erase(arriving_.begin(), rest);
}

void Device::host_knows(const Known &waited) {
    host.learn(waited);
    complete_where([&](const Arriving &one) {
        const auto found = host.launches.find(one.stream);
        return found != host.launches.end() && one.count <= found->second;
    });
}

void Device::copies_later(Stream &on, void *to, const uint8_t *from, uint64_t bytes, void *caller) {
    const uint64_t count = ++on.known.launches[on.number];
    arriving_.push_back({on.number, count, static_cast<uint8_t *>(to), {from, from + bytes}, caller});
}

void Device::complete_copies(const void *host_memory, uint64_t bytes) {
    const auto *begin = static_cast<const uint8_t *>(host_memory);
    complete_where(
        [&](const Arriving &one) { return one.to < begin + bytes && begin < one.to + one.bytes.size(); });
}

void Device::complete_copies(const Stream &of) {
    complete_where([&](const Arriving &one) { return one.stream == of.number; });
}

void Device::say_unfinished_copies() {
    std::set<std::string> said;
    for (const Arriving &one : arriving_)
        if (const std::string place = caller_of(one.caller); said.insert(place).second)
            say("aclrtMemcpyAsync to the host%s: the program ended without waiting for its stream, and what "
                "it copied was not there",
                place.c_str());
    arriving_.clear();
}

} // namespace insight_trace_program
