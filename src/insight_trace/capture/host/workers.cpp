#include "workers.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chips.hpp"

namespace insight_trace::capture {

using engine::fail;
using engine::Fault;

namespace {

// Of a worker's process.
Job *g_job = nullptr;
WorkOrder *g_order = nullptr;
engine::Machine *g_machine = nullptr;

insight_trace::Site where_it_stands() {
    if (engine::Core *core = engine::running_core()) return core->at;
    for (size_t i = 0; g_machine && i < g_machine->core_count(); ++i)
        if (g_machine->core(i).at.file) return g_machine->core(i).at;
    return {nullptr, 0};
}

void on_crash(int signal, siginfo_t *info, void *context) {
    engine::Crash crash = engine::crash_in_kernel(signal, info, context, g_job->machine.kernels);
    Failure &failure = g_order->failure;
    if (crash.image) {
        snprintf(failure.image, sizeof failure.image, "%s", crash.image->path.c_str());
        failure.offset = crash.offset;
    }
    insight_trace::Site at = where_it_stands();
    failure.set(crash.fault, crash.message, at.file, static_cast<int>(at.line));
    failure.signal = signal;
    _exit(1);
}

void on_time(int) {
    char text[128];
    snprintf(text, sizeof text, "the kernel was still running after %g s", g_job->seconds);
    insight_trace::Site at = where_it_stands();
    g_order->failure.set(Fault::Kernel, text, at.file, static_cast<int>(at.line));
    strcpy(g_order->failure.limit, "time");
    _exit(1);
}

#ifdef __GLIBC__
// Only a kernel gets here: a worker leaves by _exit.
void on_kernel_exit(int status, void *) {
    char text[64];
    snprintf(text, sizeof text, "the kernel called exit(%d)", status);
    insight_trace::Site at = where_it_stands();
    g_order->failure.set(Fault::Kernel, text, at.file, static_cast<int>(at.line));
    _exit(1);
}
#endif

void catch_signals() {
    engine::catch_crashes(on_crash);
    struct sigaction late{};
    late.sa_handler = on_time;
    sigaction(SIGALRM, &late, nullptr);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_IGN);
}

void take_remarks(engine::Machine &machine, WorkOrder &order) {
    order.remark_count = 0;
    for (size_t i = 0; i < machine.core_count(); ++i)
        for (const engine::Remark &remark : machine.core(i).remarks) {
            if (order.remark_count == kMaxRemarks) return;
            Remark &to = order.remarks[order.remark_count++];
            snprintf(to.text, sizeof to.text, "%s", remark.text.c_str());
            snprintf(to.file, sizeof to.file, "%s", remark.at.file ? remark.at.file : "");
            to.line = static_cast<int>(remark.at.line);
        }
}

void run_order(Job &job, WorkOrder &order) {
    job.machine.cores.clear();
    for (int i = 0; i < order.core_count; ++i) {
        const CoreOrder &from = order.cores[i];
        bool cube = job.kernels[static_cast<size_t>(from.kernel)].cube;
        engine::CoreJob core;
        core.kernel = from.kernel;
        core.args = from.args;
        core.identity.index = static_cast<uint16_t>(i);
        core.identity.cube = cube;
        core.identity.block = from.block;
        core.identity.block_count = from.block_count;
        core.identity.sub_block = from.lane;
        core.identity.name = "core" + std::to_string(from.block) + (cube ? ".cubecore" : ".veccore") +
                             std::to_string(from.lane);
        job.machine.cores.push_back(core);
    }
    engine::Records records("");
    // not on the stack: where a run fails, its cores still stand where they wait
    auto *made = new engine::Machine(job.machine, records);
    engine::Machine &machine = *made;
    g_machine = made;
    {
        Turn turn(job);
        machine.run();
    }
    order.met_other_blocks = machine.met_other_blocks();
    machine.place();
    order.cycles = 0;
    for (const auto &core : machine.timeline()->times()) order.cycles = std::max(order.cycles, core.end);
    take_remarks(machine, order);
    g_machine = nullptr;
    delete made;
}

[[noreturn]] void work(Job &job, WorkOrder &order, int channel) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    g_job = &job;
    g_order = &order;
    catch_signals();
    engine::enter_sandbox(job.sandbox, 0, 0);
#ifdef __GLIBC__
    on_exit(on_kernel_exit, nullptr);
#endif
    try {
        // here, and not in the process that starts the others: loading runs the kernels' constructors
        alarm_after(job.seconds);
        if (!job.hollow) engine::load_kernels(job.machine.kernels); // else none of them runs
        alarm_after(0);
    } catch (const engine::Failure &failure) {
        order.failure.set(failure.fault, failure.what(), nullptr, 0);
        _exit(1);
    }
    char byte;
    while (read(channel, &byte, 1) == 1) {
        alarm_after(job.seconds);
        try {
            run_order(job, order);
        } catch (const engine::Failure &failure) {
            order.failure.set(failure.fault, failure.what(), failure.at.file,
                              static_cast<int>(failure.at.line));
        } catch (const std::exception &caught) {
            order.failure.set(Fault::OurBug, caught.what(), nullptr, 0);
        }
        alarm_after(0);
        if (write(channel, &byte, 1) != 1 || order.failure.failed) break;
    }
    _exit(0); // cores of a failed run still stand where they wait
}

} // namespace

void Workers::start(Job &job, uint64_t payload_base) {
    for (int i = 0; i < job.workers; ++i) {
        Worker worker;
        void *shared =
            mmap(nullptr, sizeof(WorkOrder), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int pair[2];
        if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            fail(Fault::Environment, {}, "no room for a worker process: %s", strerror(errno));
        worker.order = static_cast<WorkOrder *>(shared);
        worker.payload = payload_base + static_cast<uint64_t>(i) * kPayloadBytes;
        worker.process = fork();
        if (worker.process < 0) fail(Fault::Environment, {}, "no worker process: %s", strerror(errno));
        if (worker.process == 0) {
            close(pair[0]);
            for (const Worker &other : list_) close(other.channel);
            work(job, *worker.order, pair[1]);
        }
        close(pair[1]);
        worker.channel = pair[0];
        list_.push_back(worker);
    }
}

void Workers::go(int index) {
    Worker &worker = list_[static_cast<size_t>(index)];
    worker.busy = true;
    char byte = 1;
    if (write(worker.channel, &byte, 1) != 1) { /* it is gone: wait() will say so */
    }
}

int Workers::wait(int milliseconds) {
    std::vector<pollfd> polled;
    std::vector<int> index;
    for (int i = 0; i < count(); ++i)
        if (busy(i)) {
            polled.push_back({list_[static_cast<size_t>(i)].channel, POLLIN, 0});
            index.push_back(i);
        }
    if (polled.empty() || poll(polled.data(), polled.size(), milliseconds) <= 0) return -1;
    for (size_t i = 0; i < polled.size(); ++i) {
        if (!polled[i].revents) continue;
        Worker &worker = list_[static_cast<size_t>(index[i])];
        char byte;
        if (read(worker.channel, &byte, 1) != 1 && !worker.order->failure.failed) {
            int status = 0;
            waitpid(worker.process, &status, 0);
            if (WIFEXITED(status)) {
                std::string text =
                    "the kernel ended its process with exit code " + std::to_string(WEXITSTATUS(status));
                worker.order->failure.set(Fault::Kernel, text.c_str(), nullptr, 0);
            } else
                worker.order->failure.set(Fault::Environment, "a worker process was killed (out of memory?)",
                                          nullptr, 0);
            worker.order->failure.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        }
        worker.busy = false;
        return index[i];
    }
    return -1;
}

void Workers::end() {
    for (Worker &worker : list_) {
        if (worker.busy) kill(worker.process, SIGKILL);
        close(worker.channel);
        while (waitpid(worker.process, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    list_.clear();
}

} // namespace insight_trace::capture
