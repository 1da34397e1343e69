#include "timings.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failure.hpp"

namespace insight_trace::engine {

static int opened(const std::string &path, int how) {
    const int file = open(path.c_str(), how | O_CLOEXEC, 0600);
    if (file < 0) fail(Fault::Environment, {}, "cannot open %s: %s", path.c_str(), strerror(errno));
    return file;
}

static void *mapped_shared(size_t bytes, int file) {
    const int how = file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void *found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, how, file, 0);
    if (found == MAP_FAILED) fail(Fault::Environment, {}, "no memory for timings: %s", strerror(errno));
    return found;
}

uint64_t Timings::largest_gm() const {
    uint64_t most = 0;
    for (const Group &group : groups) most = std::max(most, group.gm_size);
    return most;
}

void Timings::start() {
    uint64_t bytes = 0;
    for (const Group &group : groups) {
        firsts_.push_back(total_);
        blobs_.push_back(bytes);
        total_ += group.count;
        bytes += group.count * group.bytes;
    }
    if (!total_) _exit(0);
    const int rows = opened(rows_path, O_RDWR | O_CREAT);
    const auto size = static_cast<off_t>(total_ * sizeof(TimingRow));
    if (ftruncate(rows, size) != 0 || posix_fallocate(rows, 0, size) != 0)
        fail(Fault::Environment, {}, "no room for %llu timings", static_cast<unsigned long long>(total_));
    rows_ = static_cast<TimingRow *>(mapped_shared(static_cast<size_t>(size), rows));
    close(rows);
    shared_ = new (mapped_shared(sizeof(Shared), -1)) Shared{};
    images_ = opened(images_path, O_RDONLY);
    bytes_ = opened(bytes_path, O_RDONLY);

    std::vector<pid_t> workers(std::min({at_once, kMostWorkers, static_cast<size_t>(total_)}), 0);
    const auto begin = std::chrono::steady_clock::now();
    auto is_over = [&] {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        return shared_->next >= total_ || passed.count() > seconds;
    };
    int idle_ends = 0; // processes that ended before they had a launch
    auto begin_worker = [&](size_t place) {
        const pid_t child = fork();
        if (child < 0) fail(Fault::Environment, {}, "cannot start a process: %s", strerror(errno));
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            worker_ = static_cast<int>(place);
        }
        workers[place] = child;
        return child == 0;
    };
    for (size_t place = 0; place < workers.size(); ++place)
        if (begin_worker(place)) return;
    while (std::any_of(workers.begin(), workers.end(), [](pid_t each) { return each != 0; })) {
        int status = 0;
        const pid_t ended = wait(&status);
        if (ended < 0 && errno == EINTR) continue;
        if (ended < 0) _exit(2);
        const auto found = std::find(workers.begin(), workers.end(), ended);
        if (found == workers.end()) continue;
        *found = 0;
        const auto place = static_cast<size_t>(found - workers.begin());
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue; // nothing was left to do
        const uint64_t at = shared_->at[place].exchange(0);
        const bool stale = WIFEXITED(status) && WEXITSTATUS(status) == kStale;
        if (at && at <= total_ && !stale && rows_[at - 1].status != TimingRow::Failed) {
            TimingRow &row = rows_[at - 1]; // it could not say why
            row.status = TimingRow::Failed;
            snprintf(row.text, sizeof row.text,
                     "status\tfailed\nfault\tkernel\nmessage\tthe kernel ended its process (%s %d)\n",
                     WIFSIGNALED(status) ? "signal" : "exit code",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
        if (!at && !stale && ++idle_ends > 3) _exit(2);
        if (!is_over() && begin_worker(place)) return;
    }
    _exit(0);
}

Timings::Launch Timings::next(uint64_t base) {
    const uint64_t number = shared_->next.fetch_add(1);
    if (number >= total_) return {nullptr, 0};
    shared_->at[static_cast<size_t>(worker_)] = number + 1;
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), number);
    const auto index = static_cast<size_t>(after - firsts_.begin()) - 1;
    const Group &group = groups[index];
    void *wanted = reinterpret_cast<void *>(base);
    // what a launch writes is its own, and gone afterwards
    constexpr int kHow = MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    if (mmap(wanted, group.gm_size, PROT_READ | PROT_WRITE, kHow, images_, static_cast<off_t>(group.image)) !=
        wanted)
        fail(Fault::Environment, {}, "cannot map global memory: %s", strerror(errno));
    const uint64_t from = blobs_[index] + (number - firsts_[index]) * group.bytes;
    if (group.bytes && pread(bytes_, reinterpret_cast<void *>(group.address), group.bytes,
                             static_cast<off_t>(from)) != static_cast<ssize_t>(group.bytes))
        fail(Fault::Environment, {}, "the arguments of a launch cannot be read");
    return {&group, number};
}

void Timings::done(const Launch &launch, uint64_t base, const TimingRow &row) {
    rows_[launch.number] = row;
    munmap(reinterpret_cast<void *>(base), launch.group->gm_size);
}

void Timings::report(const std::string &head) {
    const uint64_t at = shared_->at[static_cast<size_t>(worker_)];
    if (at && at <= total_) {
        TimingRow &row = rows_[at - 1];
        snprintf(row.text, sizeof row.text, "%s", head.c_str());
        row.status = TimingRow::Failed;
    }
    _exit(1);
}

} // namespace insight_trace::engine
