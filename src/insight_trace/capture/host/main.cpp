// The capture runner: loads a scene's orchestration and kernels, runs them, records every dispatch.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "channel.hpp"
#include "chips.hpp"
#include "pto_orchestration_api.h"
#include "runtime.hpp"
#include "text.hpp"

namespace engine = insight_trace::engine;
using namespace insight_trace::capture;

namespace {

Job g_job;
Recorder g_recorder;
Workers g_workers;
Runtime *g_runtime = nullptr;
Failure g_failure{};
bool g_fatal = false;
volatile sig_atomic_t g_orphaned = 0; // the caller has died

// A caller that was killed cannot write the manifests any more.
void finish_for_a_dead_caller() {
    if (g_job.recover.empty() || !g_orphaned) return;
    prctl(PR_SET_PDEATHSIG, 0);
    signal(SIGHUP, SIG_IGN); // it may come again: once for every thread that the caller had
    std::vector<char *> command;
    for (std::string &part : g_job.recover) command.push_back(part.data());
    command.push_back(nullptr);
    execv(command[0], command.data());
}

// The signal of the caller's death comes only to who has asked for it: one that died before is known by its
// number, which supervisor.py leaves here.
bool caller_is_gone() {
    const char *mark = getenv("INSIGHT_TRACE_SUPERVISED");
    const long caller = mark ? strtol(mark, nullptr, 10) : 0;
    return caller > 0 && caller != getppid();
}

// While the runtime works, the orchestration's own time does not run.
struct InRuntime {
    InRuntime() { alarm_after(0); }
    ~InRuntime() { alarm_after(g_job.seconds); }
};

// The orchestration went wrong, not a kernel: what it submitted before is still run and recorded.
void run_submitted() {
    alarm_after(0);
    try {
        if (g_runtime) g_runtime->finish();
    } catch (const std::exception &) {
    } catch (const Failure &) {
    }
}

[[noreturn]] void end_run(int code) {
    alarm_after(0);
    std::string text = g_failure.failed ? "status\tfailed\n" + failure_lines(g_failure) : "status\tok\n";
    if (g_runtime) {
        if (g_failure.failed) {
            text += g_runtime->running_text();
            try {
                g_runtime->record_unfinished();
            } catch (const std::exception &) {
                text += "lost\t1\n";
            }
        }
        text += g_runtime->remark_text();
        text += "tasks\t" + std::to_string(g_runtime->tasks());
        text += "\ncompleted\t" + std::to_string(g_runtime->completed());
        text += "\ndispatches\t" + std::to_string(g_runtime->dispatches());
        text += "\nmarked\t" + std::to_string(g_runtime->marked());
        if (g_recorder.full()) text += "\nfull\t1";
        text += "\nrows\t" + std::to_string(g_recorder.rows()) + "\n";
    }
    g_workers.end();
    engine::write_result_file(g_job.result_path, text);
    finish_for_a_dead_caller();
    _exit(code);
}

// A crash or a hang of the orchestration itself; everything recorded so far is written out.
void on_crash(int signal, siginfo_t *info, void *) {
    char text[160];
    if (signal == SIGSEGV || signal == SIGBUS)
        snprintf(text, sizeof text, "the orchestration touched address 0x%llx, which it does not have",
                 static_cast<unsigned long long>(reinterpret_cast<uint64_t>(info->si_addr)));
    else
        snprintf(text, sizeof text, "the orchestration ended with signal %d", signal);
    Site site = g_runtime ? g_runtime->last_site : Site{};
    g_failure.set(engine::Fault::Input, text, site.file, site.line);
    g_failure.signal = signal;
    end_run(1);
}

void on_time(int) {
    char text[160];
    snprintf(text, sizeof text, "the orchestration was still running %g s after its last call",
             g_job.seconds);
    Site site = g_runtime ? g_runtime->last_site : Site{};
    g_failure.set(engine::Fault::Input, text, site.file, site.line);
    strcpy(g_failure.limit, "time");
    end_run(1);
}

void on_stop(int signal) {
    if (g_stop_signal) _exit(1);
    g_stop_signal = signal;
}

void on_orphaned(int signal) {
    g_orphaned = 1;
    if (!g_stop_signal) g_stop_signal = signal;
}

void catch_signals() {
    engine::catch_crashes(on_crash);
    struct sigaction late{};
    late.sa_handler = on_time;
    sigaction(SIGALRM, &late, nullptr);
    struct sigaction stop{};
    stop.sa_handler = on_stop;
    sigaction(SIGTERM, &stop, nullptr);
    stop.sa_handler = on_orphaned;
    sigaction(SIGHUP, &stop, nullptr);
    signal(SIGINT, SIG_IGN); // the caller decides, and sends SIGTERM
    signal(SIGPIPE, SIG_IGN);
}

void run_orchestration() {
    if (g_job.channel >= 0) {
        alarm_after(g_job.seconds);
        serve_channel(g_job.channel);
        return alarm_after(0);
    }
    void *handle = dlopen(g_job.orchestration.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) engine::fail(engine::Fault::Input, {}, "cannot load the orchestration: %s", dlerror());
    using Entry = void (*)(const ChipTaskArgs &);
    auto entry = reinterpret_cast<Entry>(dlsym(handle, g_job.function.c_str()));
    if (!entry)
        engine::fail(engine::Fault::Input, {}, "the orchestration has no function %s",
                     g_job.function.c_str());
    static ChipTaskArgs args;
    static std::vector<SceneTensor> tensors(g_job.tensors.begin(), g_job.tensors.end());
    for (const SceneTensor &tensor : tensors) args.add_input(tensor);
    for (uint64_t &scalar : g_job.scalars) args.add_scalar(scalar);
    using Config = PTO2OrchestrationConfig (*)(const ChipTaskArgs &);
    auto config =
        g_job.config.empty() ? nullptr : reinterpret_cast<Config>(dlsym(handle, g_job.config.c_str()));
    if (config) {
        int expected = config(args).expected_arg_count;
        int given = args.tensor_count() + args.scalar_count();
        if (given < expected)
            engine::fail(engine::Fault::Input, {},
                         "the orchestration expects %d arguments and the scene gives only %d", expected,
                         given);
    }
    alarm_after(g_job.seconds);
    entry(args);
    alarm_after(0);
}

} // namespace

uint64_t insight_trace_capture_submit(const TaskCall *call, const ChipTensor **outputs, uint32_t *count) {
    InRuntime in;
    return g_runtime->submit(*call, outputs, *count);
}
void insight_trace_capture_scope(bool begin, bool manual, Site site) {
    InRuntime in;
    if (begin)
        g_runtime->scope_begin(manual);
    else
        g_runtime->scope_end(site);
}
uint64_t insight_trace_capture_get(const ChipTensor *tensor, uint32_t ndims, const uint32_t *indices,
                                   Site site) {
    InRuntime in;
    return g_fatal ? 0 : g_runtime->get(*tensor, ndims, indices, site);
}
void insight_trace_capture_set(const ChipTensor *tensor, uint32_t ndims, const uint32_t *indices,
                               uint64_t value, Site site) {
    InRuntime in;
    if (!g_fatal) g_runtime->set(*tensor, ndims, indices, value, site);
}
int32_t insight_trace_capture_cores(bool cube) { return cube ? g_job.clusters : 2 * g_job.clusters; }
bool insight_trace_capture_is_fatal() { return g_fatal; }
void insight_trace_capture_fatal(int32_t code, const char *text, Site site) {
    if (g_fatal) return;
    g_fatal = true;
    std::string message = "the orchestration reported error " + std::to_string(code) + ": " + text;
    g_failure.set(engine::Fault::Input, message.c_str(), site.file, site.line);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: capture-runner JOB\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGHUP); // not what the caller sends: who is gone cannot write the manifests
    try {
        read_job(argv[1], g_job);
        if (caller_is_gone()) {
            g_orphaned = 1;
            finish_for_a_dead_caller();
            return 1;
        }
        map_arena(g_job);
        if (g_job.sandbox.on) engine::enter_host_sandbox(g_job.sandbox);
        for (const Job::Window &window : g_job.windows)
            g_job.machine.regions.push_back({window.address, window.size, window.size, window.name});
        for (size_t i = 0; i < g_job.tensors.size(); ++i) {
            const auto &buffer = g_job.tensors[i].buffer;
            if (g_job.in_window(buffer.addr)) continue; // it may use all of the window
            engine::Region region{buffer.addr, buffer.size, buffer.size + g_job.margin,
                                  g_job.tensor_names[i]};
            region.exact = true;
            g_job.machine.regions.push_back(region);
        }
        uint64_t payload = g_job.heap;
        g_job.heap += (kMaxWorkers * kPayloadBytes + 4095) / 4096 * 4096;
        g_job.machine.regions.push_back(
            {payload, g_job.end - payload, g_job.end - payload, "the runtime's memory"});
        g_job.machine.gm_base = g_job.base;
        g_job.machine.gm_size = g_job.end - g_job.base;
        static Neighbours neighbours(g_job);
        if (g_job.node) g_job.machine.other_chips = &neighbours;
        g_workers.start(g_job, payload);
        catch_signals();
        g_recorder.open(g_job);
        // not on the stack: what it holds is still needed when an exception has left this block
        static Runtime runtime(g_job, g_recorder, g_workers);
        g_runtime = &runtime;
        run_orchestration();
        runtime.finish();
        runtime.write_graph();
    } catch (const AllPicked &) {
        end_run(0);
    } catch (const Failure &failure) {
        g_failure = failure;
        end_run(1);
    } catch (const OrchestrationError &error) {
        g_failure.set(engine::Fault::Input, error.what(), error.site.file, error.site.line);
        run_submitted();
        end_run(1);
    } catch (const engine::Failure &failure) {
        g_failure.set(failure.fault, failure.what(), failure.at.file, static_cast<int>(failure.at.line));
        end_run(1);
    } catch (const std::exception &caught) {
        Site site = g_runtime ? g_runtime->last_site : Site{};
        g_failure.set(engine::Fault::Input,
                      (std::string("the orchestration threw an exception: ") + caught.what()).c_str(),
                      site.file, site.line);
        run_submitted();
        end_run(1);
    }
    end_run(g_failure.failed ? 1 : 0);
}
