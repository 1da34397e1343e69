#include "machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace insight_trace::engine {

static thread_local Core *t_core = nullptr;
static Machine *g_machine = nullptr;

Core &current_core() {
    if (insight_trace_code.where) t_core->take_code();
    return *t_core;
}
Core *running_core() { return t_core; }
Machine &current_machine() { return *g_machine; }

Machine::Machine(Job &job, Records &records)
    : job_(job), threads_(job.cores.size()), dice_(job.perturb), records_(records) {
    g_machine = this;
    gm_.regions = job.regions;
    gm_.base = job.gm_base;
    gm_.size = job.gm_size;
    gm_.watched = job.touched;
    std::sort(gm_.regions.begin(), gm_.regions.end(),
              [](const Region &a, const Region &b) { return a.address < b.address; });
    for (size_t i = 0; i < threads_.size(); ++i) {
        threads_[i].core = std::make_unique<Core>(job.cores[i].identity, job.parameters, records, gm_,
                                                  job.timing_only, job.unwritten);
        threads_[i].saved_state = job.kernels[job.cores[i].kernel].initial_state;
        if (job.perturb && !job.timing_only)
            threads_[i].core->late = std::make_unique<LateWork>(*threads_[i].core, job.perturb + i);
        const CoreIdentity &identity = job.cores[i].identity;
        placed_.push_back({&threads_[i].core->clock.steps(), identity.index, identity.block, identity.cube});
    }
    online_ = threads_.size() == 1 && !job.warm && !job.check; // those look at the steps once more
    if (!online_) return;
    new_timeline();
    timeline_->begin(*cache_, true);
    threads_[0].core->clock.place_on(timeline_.get());
}

void Machine::swap_in(size_t index) {
    KernelImage &image = job_.kernels[job_.cores[index].kernel];
    if (image.state_size) memcpy(image.state, threads_[index].saved_state.data(), image.state_size);
}

void Machine::swap_out(size_t index) {
    KernelImage &image = job_.kernels[job_.cores[index].kernel];
    if (image.state_size) memcpy(threads_[index].saved_state.data(), image.state, image.state_size);
}

void Machine::run(size_t first, size_t end) {
    {
        std::unique_lock<std::mutex> lock(mutex_);
        first_ = first;
        end_ = end;
        over_ = false;
        running_ = job_.perturb ? first + dice_() % (end - first) : first;
        for (size_t i = first; i < end; ++i) threads_[i].thread = std::thread(&Machine::body, this, i);
        finished_.wait(lock, [&] { return over_; });
    }
    if (failure_) {
        // the other cores stand where they wait; the process ends with the report
        for (auto &thread : threads_)
            if (thread.thread.joinable()) thread.thread.detach();
        throw *failure_;
    }
    for (size_t i = first; i < end; ++i) threads_[i].thread.join();
}

void Machine::new_timeline() {
    cache_ = std::make_unique<L2Cache>(gm_.base, gm_.size, job_.parameters.l2_capacity / 1000);
    hold(*cache_);
    timeline_ = std::make_unique<Timeline>(job_.parameters, records_, placed_, meetings_, job_.regions);
}

void Machine::hold(L2Cache &cache) const {
    L2Traffic before;
    for (const HeldRange &held : job_.held)
        cache.touch(held.address, static_cast<int64_t>(held.bytes), held.dirty, before, kNobody);
}

void Machine::place() {
    if (!online_) {
        new_timeline();
        place_on(*timeline_, *cache_, true);
    } else {
        timeline_->finish();
    }
    placed_whole_ = true;
}

void Machine::place_on(Timeline &timeline, L2Cache &cache, bool write_records) const {
    if (job_.warm) {
        timeline.begin(cache, false);
        timeline.finish();
    }
    timeline.begin(cache, write_records);
    timeline.finish();
}

int64_t Machine::cycles_without(const std::vector<uint32_t> &rows) const {
    L2Cache cache(gm_.base, gm_.size, job_.parameters.l2_capacity / 1000);
    hold(cache);
    Timeline other(job_.parameters, records_, placed_, meetings_, job_.regions);
    other.leave_out(rows);
    place_on(other, cache, false);
    int64_t last = 0;
    for (const Timeline::CoreTime &core : other.times()) last = std::max(last, core.end);
    return last;
}

void Machine::place_what_ran() {
    if (!online_) {
        new_timeline();
        timeline_->begin(*cache_, true);
    }
    timeline_->finish(true);
}

Machine::OwnTimes::OwnTimes(const Machine &machine, const TimelineCore &core)
    : cores{core}, cache(machine.gm_.base, machine.gm_.size, machine.job_.parameters.l2_capacity / 1000),
      timeline(machine.job_.parameters, machine.records_, cores, machine.meetings_, machine.job_.regions) {
    timeline.begin(cache, false);
}

Machine::OwnTimes &Machine::own_times(size_t index) {
    own_times_.resize(threads_.size());
    std::unique_ptr<OwnTimes> &own = own_times_[index];
    if (!own) {
        TimelineCore core = placed_[index];
        core.block = 0;
        own = std::make_unique<OwnTimes>(*this, core);
        own->timeline.elsewhere = [this](uint32_t row) {
            return own_times(records_[row].core).timeline.reach(row);
        };
    }
    return *own;
}

int64_t Machine::now(const Core &core) {
    const size_t index = core.identity.index;
    Timeline &timeline = online_ ? *timeline_ : own_times(index).timeline;
    timeline.go_on();
    return timeline.now(0) + core.clock.work();
}

void Machine::body(size_t index) {
    CoreThread &me = threads_[index];
    t_core = me.core.get();
    use_crash_stack();
    {
        std::unique_lock<std::mutex> lock(mutex_);
        me.turn.wait(lock, [&] { return running_ == index || over_; });
        if (over_) return;
    }
    swap_in(index);
    std::unique_ptr<Failure> failure;
    try {
        const CoreJob &core_job = job_.cores[index];
        kernel_begins();
        job_.kernels[core_job.kernel].call(reinterpret_cast<int64_t *>(core_job.args));
        if (me.core->late) me.core->late->drain();
        if (insight_trace_code.where) me.core->take_code();
        me.core->clock.finish(me.core->at);
        me.core->scalar(Instr::END, 0, 1000);
    } catch (const Failure &caught) {
        failure = std::make_unique<Failure>(caught);
        if (!failure->at.file) failure->at = me.core->at;
    } catch (const std::exception &caught) {
        // what goes wrong here ends in a Failure; other exceptions come out of the kernel
        failure = std::make_unique<Failure>(Fault::Kernel, me.core->at,
                                            std::string("the kernel threw an exception: ") + caught.what());
    } catch (...) {
        failure = std::make_unique<Failure>(Fault::Kernel, me.core->at, "the kernel threw an exception");
    }
    std::unique_lock<std::mutex> lock(mutex_);
    swap_out(index);
    me.state = State::Done;
    if (failure) {
        failure_ = std::move(failure);
        over_ = true;
        finished_.notify_all();
        return;
    }
    pass_on(lock, index);
}

// Chooses who runs next: the running core's neighbours in order, so that the order is always the same. Blocks
// that wait for nobody else run one after the other, as they do when several processes have them
// (shares.hpp).
bool Machine::pick_next(size_t from, bool stays) {
    const size_t count = end_ - first_;
    std::vector<size_t> able;
    const int32_t block = threads_[from].core->identity.block;
    stays = stays && !job_.perturb;
    for (size_t step = 1; step <= 2 * count; ++step) {
        if (step > count && !stays) break;
        const size_t index = first_ + (from - first_ + step) % count;
        CoreThread &thread = threads_[index];
        if (stays && (thread.core->identity.block == block) != (step <= count)) continue;
        if (thread.state == State::Blocked && thread.ready()) thread.state = State::Ready;
        if (thread.state != State::Ready) continue;
        able.push_back(index);
        if (!job_.perturb) break;
    }
    if (able.empty()) return false;
    running_ = able[job_.perturb ? dice_() % able.size() : 0];
    return true;
}

void Machine::pass_on(std::unique_lock<std::mutex> &, size_t from, bool stays) {
    bool all_done = false, waited = false;
    do {
        if (pick_next(from, stays)) {
            if (waited) job_.other_chips->helped();
            threads_[running_].turn.notify_one();
            return;
        }
        waited = true;
        all_done = true;
        for (size_t i = first_; i < end_; ++i) all_done = all_done && threads_[i].state == State::Done;
    } while (!all_done && job_.other_chips && job_.other_chips->wait());
    if (!all_done) {
        Site where{};
        for (size_t i = first_; i < end_; ++i)
            if (threads_[i].state == State::Blocked && !where.file) where = threads_[i].where;
        failure_ = std::make_unique<Failure>(Fault::Kernel, where, deadlock_text());
    }
    over_ = true;
    finished_.notify_all();
    for (size_t i = first_; i < end_; ++i) threads_[i].turn.notify_all();
}

void Machine::wait_until(Core &core, const std::string &what, const std::function<bool()> &ready) {
    size_t index = core.identity.index;
    CoreThread &me = threads_[index];
    std::unique_lock<std::mutex> lock(mutex_);
    bool hand_on = job_.perturb && dice_() % 2;
    if (!hand_on && ready()) return;
    swap_out(index);
    me.state = State::Blocked;
    me.what = what;
    me.where = core.at;
    me.ready = ready;
    pass_on(lock, index);
    me.turn.wait(lock, [&] { return (running_ == index && me.state == State::Ready) || over_; });
    if (over_) {
        // the run ended with a failure elsewhere: stay here, the process is about to end
        me.turn.wait(lock, [] { return false; });
    }
    swap_in(index);
}

void Machine::yield(Core &core) {
    if (threads_.size() == 1) return;
    if (job_.blocks_meet) job_.blocks_meet();
    size_t index = core.identity.index;
    CoreThread &me = threads_[index];
    std::unique_lock<std::mutex> lock(mutex_);
    swap_out(index);
    pass_on(lock, index, false);
    if (running_ != index) me.turn.wait(lock, [&] { return running_ == index || over_; });
    if (over_) me.turn.wait(lock, [] { return false; });
    swap_in(index);
}

void Machine::poll(Core &core, uint64_t address, uint64_t content) {
    // so many looks in a row that find nothing new: no loop with a bound of its own waits that long
    constexpr uint64_t kHopeless = 20000;
    meets_other_blocks();
    CoreThread &me = threads_[core.identity.index];
    me.polled = address;
    me.where = core.at;
    auto [place, fresh] = seen_.try_emplace(address, content);
    if (fresh || place->second != content) {
        if (job_.other_chips && idle_polls_ > threads_.size()) job_.other_chips->helped();
        place->second = content;
        idle_polls_ = 0;
    } else if (++idle_polls_ > (job_.other_chips ? threads_.size() : kHopeless)) {
        if (!job_.other_chips || !job_.other_chips->wait())
            throw Failure(Fault::Kernel, core.at, deadlock_text());
    }
    yield(core);
}

std::string Machine::deadlock_text() const {
    constexpr size_t kMost = 12; // a hundred blocks wait for the same thing
    std::string text;
    size_t shown = 0, left_out = 0;
    for (const CoreThread &thread : threads_) {
        const bool ended = thread.state == State::Done;
        // a core that has ended explains why others of its block wait in vain
        if (ended && threads_.size() > kMost) continue;
        if (shown++ >= kMost) {
            ++left_out;
            continue;
        }
        text += (text.empty() ? "deadlock: " : "; ") + thread.core->identity.name;
        if (ended) {
            text += " has ended";
            continue;
        }
        if (thread.state == State::Blocked) {
            text += " waits for " + thread.what;
        } else {
            char address[24];
            snprintf(address, sizeof address, "0x%llx", (unsigned long long)thread.polled);
            const Region *region = gm_.find(thread.polled);
            text += std::string(" polls ") + address + (region ? " in " + region->name : "");
        }
        if (thread.where.file) {
            const char *slash = strrchr(thread.where.file, '/');
            text += " at " + std::string(slash ? slash + 1 : thread.where.file) + ":" +
                    std::to_string(thread.where.line);
        }
    }
    if (left_out) text += "; and " + std::to_string(left_out) + " cores more";
    return text;
}

} // namespace insight_trace::engine
