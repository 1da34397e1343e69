#include "variants.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failure.hpp"

namespace insight_trace::engine {

uint64_t Variants::row_bytes() const {
    uint64_t bytes = 1;
    for (const Range &range : kept) bytes += range.size;
    return bytes;
}

void Variants::end(bool well) const {
    uint64_t at = static_cast<uint64_t>(own_) * row_bytes() + 1;
    for (const Range &range : kept) {
        const auto *bytes = reinterpret_cast<const char *>(range.address);
        for (uint64_t done = 0; well && done < range.size;) {
            ssize_t written = pwrite(file_, bytes + done, range.size - done, static_cast<off_t>(at + done));
            if (written > 0) done += static_cast<uint64_t>(written);
            well = written > 0 || (written < 0 && errno == EINTR);
        }
        at += range.size;
    }
    _exit(well ? 0 : 1);
}

size_t Variants::start() {
    const uint64_t row = row_bytes();
    file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(row * changes.size())) != 0)
        fail(Fault::Environment, {}, "cannot write %s: %s", path.c_str(), strerror(errno));
    std::map<pid_t, size_t> running;
    auto one_ends = [&] {
        int status = 0;
        pid_t ended = wait(&status);
        if (ended < 0 && errno != EINTR) _exit(2);
        if (ended < 0 || !running.count(ended)) return;
        const char how = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 2;
        if (pwrite(file_, &how, 1, static_cast<off_t>(running[ended] * row)) != 1) _exit(2);
        running.erase(ended);
    };
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < changes.size(); ++i) {
        while (running.size() >= at_once) one_ends();
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        if (passed.count() > seconds) break;
        pid_t child = fork();
        if (child < 0) fail(Fault::Environment, {}, "cannot start a process: %s", strerror(errno));
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            own_ = static_cast<ssize_t>(i);
            return i;
        }
        running[child] = i;
    }
    while (!running.empty()) one_ends();
    _exit(0);
}

} // namespace insight_trace::engine
