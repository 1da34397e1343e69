// The runner: reads a job, maps global memory, runs the kernels, writes the instruction stream and a result.
// A crash or a hang ends this process with a report that names the kernel line; it never ends the caller.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <pthread.h>
#include <semaphore.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "check/report.hpp"
#include "job_lines.hpp"
#include "scalar_memory.hpp"
#include "shares.hpp"
#include "text.hpp"

using namespace insight_trace;
using namespace insight_trace::engine;

namespace {

constexpr int kNotConfined = 125; // exit code: the program was not started

Job g_job;
Sandbox g_sandbox;
Variants g_variants;
Timings g_timings;
Records *g_records = nullptr;
Machine *g_active = nullptr;
std::atomic<bool> g_reported{false};
std::atomic<pthread_t> g_reporter{};
Shares *g_shares = nullptr; // null: this process runs all blocks

// Allowed in a signal handler.
[[noreturn]] void end_with(const char *text) {
    if (g_reported.exchange(true))
        while (true) pause();
    const auto size = static_cast<ssize_t>(strlen(text));
    const int file = open(g_job.result_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    _exit(write(file, text, static_cast<size_t>(size)) == size ? 1 : 2);
}

[[noreturn]] void end_without_room() {
    if (g_records) g_records->discard();
    end_with("status\tfailed\nfault\tenvironment\nmessage\tno room in memory for the instructions\nlimit\t"
             "room\nend\n");
}

// The blocks cannot be run apart, or one of them fails, which a run in one process tells best: the caller
// makes it. Allowed in a signal handler.
[[noreturn]] void give_up() {
    if (g_shares) g_shares->give_up();
    if (g_shares && g_shares->number()) _exit(1);
    if (g_shares && g_shares->lacks_room()) end_without_room();
    end_with("status\ttogether\nend\n");
}

// The tables have become too large for memory: the caller makes the run again with its files on a disk.
[[noreturn]] void give_up_for_room() {
    if (!g_shares) end_without_room();
    g_shares->lack_room();
    give_up();
}

std::string failure_head(const Failure &failure) {
    std::ostringstream out;
    out << "status\tfailed\nfault\t" << fault_name(failure.fault) << "\nmessage\t" << escaped(failure.what())
        << "\n";
    if (failure.at.file) out << "at\t" << escaped(failure.at.file) << "\t" << failure.at.line << "\n";
    if (!strncmp(failure.what(), "no room", 7)) out << "limit\troom\n";
    return out.str();
}

// A kernel may have taken every descriptor; the report needs one at a time.
void make_room_for_descriptors() {
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == EMFILE)
        for (int i = 64; i < 1024; ++i) close(i);
    else if (file >= 0)
        close(file);
}

// A run that was cut off has no times yet. A core that is still busy stops at its next instruction.
void place_what_ran() {
    static std::atomic<bool> placed{false};
    if (!g_active || placed.exchange(true)) return;
    run_is_over = true;
    const timespec step{0, 5'000'000};
    nanosleep(&step, nullptr);
    try {
        g_active->place_what_ran();
    } catch (const std::exception &) {
        // what ended the run is told, with the times that there are
    }
}

void write_result(const std::string &head) {
    if (g_variants.is_one()) g_variants.end(head.rfind("status\tok", 0) == 0);
    if (g_timings.is_worker()) g_timings.report(head);
    if (g_shares && head.rfind("status\tok", 0) != 0) give_up();
    if (head.rfind("status\tok", 0) != 0) place_what_ran();
    if (g_reported.exchange(true)) {
        // Another thread reports, and ends the process when it is done. It has cut the file of records: a
        // core that goes on writing them crashes, and must not end the process before the report is there.
        while (!pthread_equal(g_reporter, pthread_self())) pause();
        return;
    }
    g_reporter = pthread_self();
    make_room_for_descriptors();
    std::ostringstream out;
    if (g_records) {
        try {
            g_records->close();
        } catch (const Failure &failure) {
            // some tables without the others are of no use; what ended the run before is told first
            g_records->discard();
            return write_result_file(g_job.result_path,
                                     head.rfind("status\tok", 0) == 0 ? failure_head(failure) : head);
        }
    }
    out << head;
    if (g_records) {
        out << "instructions\t" << g_records->written() << "\n";
        const auto &sites = g_records->sites();
        for (const SiteRow &site : sites)
            out << "site\t" << escaped(site.file ? site.file : "") << "\t" << site.line << "\t"
                << instr_name(site.instr) << "\t" << static_cast<int>(site.pipe) << "\n";
    }
    if (g_active) {
        for (size_t i = 0; i < g_active->core_count(); ++i) {
            Core &core = g_active->core(i);
            for (const Remark &remark : core.remarks)
                out << "remark\t" << escaped(remark.at.file ? remark.at.file : "") << "\t" << remark.at.line
                    << "\t" << escaped(remark.text) << "\n";
            for (const auto &flag : core.clock.unused_flags())
                out << "unused\t" << i << "\t" << static_cast<int>(flag.from) << "\t"
                    << static_cast<int>(flag.to) << "\t" << flag.event << "\t" << flag.count << "\t"
                    << flag.row << "\n";
        }
    }
    if (g_active && g_active->timeline()) {
        const Timeline &timeline = *g_active->timeline();
        const L2Traffic &traffic = timeline.traffic();
        out << "l2\t" << traffic.bytes << "\t" << traffic.hits << "\t" << traffic.fetched << "\t"
            << traffic.replaced << "\n";
        out << "waves\t" << timeline.waves() << "\t" << timeline.more_blocks_than_cores_wait() << "\n";
        for (const auto &core : timeline.times()) out << "time\t" << core.start << "\t" << core.end << "\n";
    }
    write_result_file(g_job.result_path, out.str());
}

// --- crashes
// ---------------------------------------------------------------------------------------------------

// What a signal handler found out, for the thread that tells it.
struct CrashFacts {
    Crash crash;
    int signal;
    Site at;
};
CrashFacts g_crash;
sem_t g_ready; // posted once by the watching thread
sem_t g_wake;  // posted by a crash: sem_post is allowed in a handler, allocating is not
std::atomic<bool> g_crashed{false}, g_watching{false};
std::atomic<pthread_t> g_watcher{};

// In the handler itself, where nothing may be allocated: the heap may be broken or locked. The instructions
// up to then are given up.
[[noreturn]] void report_plainly(const CrashFacts &facts) {
    static char text[4096];
    const Crash &crash = facts.crash;
    int size = snprintf(text, sizeof text, "status\tfailed\nfault\t%s\nsignal\t%d\nmessage\t%s\n",
                        fault_name(crash.fault), facts.signal, crash.message);
    if (crash.image)
        size += snprintf(text + size, sizeof text - static_cast<size_t>(size), "pc\t%s\t%llu\n",
                         crash.image->path.c_str(), static_cast<unsigned long long>(crash.offset));
    if (facts.at.file)
        size += snprintf(text + size, sizeof text - static_cast<size_t>(size), "at\t%s\t%u\n", facts.at.file,
                         facts.at.line);
    size += snprintf(text + size, sizeof text - static_cast<size_t>(size), "end\n");
    if (g_job.result_path.empty()) _exit(1);
    if (g_records) g_records->discard();
    int file = open(g_job.result_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    _exit(write(file, text, static_cast<size_t>(size)) == size ? 1 : 2);
}

void on_crash(int signal, siginfo_t *info, void *context);

constexpr uint64_t kLittleRoom = 1 << 20;

// The folder of the job's files, where nothing may be allocated.
const char *parent_of_result() {
    static char path[4096];
    snprintf(path, sizeof path, "%s", g_job.result_path.c_str());
    if (char *slash = strrchr(path, '/')) *slash = 0;
    return path;
}

// On the watching thread, which has a heap of its own: the whole report, with every instruction up to the
// crash.
[[noreturn]] void report_crash(const CrashFacts &facts) {
    std::ostringstream out;
    out << "status\tfailed\nfault\t" << fault_name(facts.crash.fault) << "\nsignal\t" << facts.signal
        << "\nmessage\t" << facts.crash.message << "\n";
    if (!strncmp(facts.crash.message, "no room", 7)) out << "limit\troom\n";
    if (facts.crash.image)
        out << "pc\t" << escaped(facts.crash.image->path) << "\t" << facts.crash.offset << "\n";
    if (facts.at.file) out << "at\t" << escaped(facts.at.file) << "\t" << facts.at.line << "\n";
    catch_crashes(on_crash); // placing what ran may meet what the kernel spoiled
    write_result(out.str());
    _exit(1);
}

void on_crash(int signal, siginfo_t *info, void *context) {
    if (g_shares) give_up();
    CrashFacts facts{crash_in_kernel(signal, info, context, g_job.kernels), signal, {}};
    if (Core *core = running_core()) facts.at = facts.crash.at.file ? facts.crash.at : core->at;
    const uint64_t touched = reinterpret_cast<uint64_t>(info->si_addr);
    if (signal == SIGBUS && touched - g_job.gm_base < g_job.gm_size) {
        // a page of the file that the file system has no room for
        facts.crash = Crash{};
        facts.crash.fault = Fault::Environment;
        facts.at = {};
        snprintf(facts.crash.message, sizeof facts.crash.message,
                 "no room for global memory where its file lies");
    } else if (struct statvfs place{}; signal == SIGBUS && facts.crash.fault == Fault::OurBug &&
                                       statvfs(parent_of_result(), &place) == 0 &&
                                       place.f_bavail * place.f_frsize < kLittleRoom) {
        facts.crash.fault = Fault::Environment;
        snprintf(facts.crash.message, sizeof facts.crash.message,
                 "no room for the instructions where their file lies");
    } else if (signal == SIGBUS && facts.crash.fault == Fault::OurBug) {
        facts.crash.fault = Fault::Kernel;
        snprintf(facts.crash.message, sizeof facts.crash.message,
                 "the kernel cut off the runner's file of instructions");
    } else if (signal == SIGSYS)
        facts.crash.fault = Fault::Kernel;
    // a call that is not allowed may come from within a library that holds its locks
    const bool alone = signal == SIGSYS || !g_watching || pthread_equal(g_watcher, pthread_self());
    if (alone && g_reported.exchange(true)) _exit(1);
    if (alone && g_crashed) report_plainly(g_crash); // what came first, not what its report met with
    if (alone) report_plainly(facts);
    if (g_reported && !pthread_equal(g_reporter, pthread_self())) {
        // Another thread reports, and ends the process when it is done: it has cut the file of records
        while (true) pause();
    }
    if (!g_crashed.exchange(true)) {
        g_crash = facts;
        sem_post(&g_wake);
    }
    // a large report takes its time; a thread that does not even begin is stuck
    const timespec step{0, 50'000'000};
    for (int i = 0; i < 60 || (g_reported && i < 600); ++i) nanosleep(&step, nullptr);
    g_reported = true;
    report_plainly(facts); // the watching thread did not get through
}

#ifdef __GLIBC__
// Only a kernel gets here: we ourselves leave by _exit.
void on_kernel_exit(int status, void *) {
    std::ostringstream out;
    out << "status\tfailed\nfault\tkernel\nmessage\tthe kernel called exit(" << status << ")\n";
    Core *core = running_core();
    if (core && core->at.file) out << "at\t" << escaped(core->at.file) << "\t" << core->at.line << "\n";
    write_result(out.str());
    _exit(1);
}
#endif

void end_run(const Failure &failure) {
    write_result(failure_head(failure));
    _exit(1);
}

// --- limits
// ----------------------------------------------------------------------------------------------------

uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0, resident = 0;
    statm >> pages >> resident;
    return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// When what runs now began.
std::atomic<std::chrono::steady_clock::time_point> g_began{};

void watch_limits() {
    g_began = std::chrono::steady_clock::now();
    g_watcher = pthread_self();
    delete[] new char[64]; // its heap is its own from here on
    g_watching = true;
    sem_post(&g_ready);
    while (true) {
        timespec next;
        clock_gettime(CLOCK_REALTIME, &next);
        next.tv_nsec += 50'000'000;
        next.tv_sec += next.tv_nsec / 1'000'000'000;
        next.tv_nsec %= 1'000'000'000;
        sem_timedwait(&g_wake, &next);
        if (g_crashed) report_crash(g_crash);
        double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - g_began.load()).count();
        uint64_t bytes = resident_bytes();
        bool slow = seconds > g_job.limit_seconds, big = bytes > g_job.limit_bytes;
        if (g_shares && g_shares->prints_without_end()) give_up();
        if (!slow && !big) continue;
        if (g_shares && (big || g_shares->number())) give_up();
        if (g_shares) g_shares->print_own();
        g_shares = nullptr; // a run that takes too long is told at once
        std::ostringstream out;
        out << "status\tfailed\nfault\tkernel\nlimit\t" << (slow ? "time" : "memory") << "\nmessage\t";
        if (slow)
            out << "still running after " << g_job.limit_seconds << " s";
        else
            out << "used " << (bytes >> 20) << " MiB, over its limit of " << (g_job.limit_bytes >> 20)
                << " MiB";
        out << "\n";
        for (size_t i = 0; g_active && i < g_active->core_count(); ++i) {
            Site at = g_active->core(i).at;
            if (!at.file) continue;
            out << "at\t" << escaped(at.file) << "\t" << at.line << "\n";
            break;
        }
        write_result(out.str());
        _exit(1);
    }
}

// --- the job
// ---------------------------------------------------------------------------------------------------

void map_gm() {
    if (g_job.gm_path.empty()) return;
    int file = open(g_job.gm_path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) fail(Fault::Environment, {}, "cannot open %s: %s", g_job.gm_path.c_str(), strerror(errno));
    void *wanted = reinterpret_cast<void *>(g_job.gm_base);
    // what a variant writes is its own
    const int how = g_variants.is_one() ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
    void *mapped = mmap(wanted, g_job.gm_size, PROT_READ | PROT_WRITE, how | MAP_FIXED_NOREPLACE, file, 0);
    if (mapped != wanted) fail(Fault::Environment, {}, "cannot map global memory: %s", strerror(errno));
    close(file);
}

// From here on this process is one of the variants.
void become_a_variant() {
    for (const Change &change : g_variants.changes[g_variants.start()]) g_job.changes.push_back(change);
    g_job.records_path.clear();
    g_job.result_path.clear();
}

// The blocks that come to this process; in the first one, all of them afterwards.
void run_shares(Shares &shares) {
    if (!shares.run(g_job, *g_active, *g_records)) give_up();
    if (!shares.leave(g_job, *g_active, *g_records)) give_up();
    if (shares.number()) _exit(0);
    if (!shares.wait()) give_up();
    g_job.records_path = shares.records_path();
    // those of this process alone stay: somebody may be looking at them
    g_records = new Records(g_job.records_path);
    g_active = new Machine(g_job, *g_records);
    if (!shares.take_over(g_job, *g_active, *g_records)) give_up();
}

// One launch after the other, until there are no more.
[[noreturn]] void run_timings() {
    g_job.timing_only = true;
    g_job.records_path.clear();
    g_job.result_path.clear();
    const Timings::Group *known = nullptr;
    std::map<int, uint64_t> hashes; // of the kernels that the group runs
    while (true) {
        const Timings::Launch launch = g_timings.next(g_job.gm_base);
        if (!launch.group) _exit(0);
        const Timings::Group &group = *launch.group;
        if (known != &group) {
            known = &group;
            g_job.regions = group.regions;
            g_job.cores = group.cores;
            g_job.gm_size = group.gm_size;
            hashes.clear();
            for (const CoreJob &core : g_job.cores) {
                if (hashes.count(core.kernel)) continue;
                load_kernel(g_job.kernels[core.kernel]);
                hashes[core.kernel] = g_job.kernels[core.kernel].data_hash();
            }
        }
        g_began = std::chrono::steady_clock::now();
        TimingRow row{};
        {
            Records records("");
            Machine machine(g_job, records);
            g_active = &machine;
            machine.run();
            machine.place();
            row.status = TimingRow::Well;
            for (const auto &core : machine.timeline()->times()) row.cycles = std::max(row.cycles, core.end);
            row.instructions = records.size();
            row.bound = static_cast<uint32_t>(busiest_pipe(records, machine.core_count()));
            row.first = records.size() ? records[0].start : 0;
            for (uint32_t i = 0; i < records.size(); ++i) {
                row.first = std::min<int64_t>(row.first, records[i].start);
                if (i + 1 < records.size()) row.last = std::max<int64_t>(row.last, records[i].end);
            }
            g_active = nullptr;
        }
        g_timings.done(launch, g_job.gm_base, row);
        // variables that cores share are not set back: the next launch must not find what this one left
        for (const auto &[kernel, hash] : hashes)
            if (g_job.kernels[kernel].data_hash() != hash) g_timings.leave();
    }
}

// A compiler reads what a source tells it to: under strict it runs within the rules that a kernel has.
int run_confined(const char *rules, char **command) {
    try {
        std::ifstream file(rules);
        for (std::string line; std::getline(file, line);) read_sandbox(fields_of(line), g_sandbox);
        enter_host_sandbox(g_sandbox);
        execvp(command[0], command);
        fprintf(stderr, "%s does not start: %s\n", command[0], strerror(errno));
    } catch (const std::exception &caught) {
        fprintf(stderr, "%s\n", caught.what());
    }
    return kNotConfined;
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 3 && !strcmp(argv[1], "--confined")) return run_confined(argv[2], argv + 3);
    if (argc != 2) {
        fprintf(stderr, "usage: runner JOB | runner --confined RULES COMMAND ...\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
        std::ifstream file(argv[1]);
        if (!file) fail(Fault::Environment, {}, "cannot read the job %s", argv[1]);
        read_job(file, g_job, g_sandbox, g_variants, g_timings);
        catch_crashes(on_crash);
        MappedBytes::without_room = give_up_for_room;
        g_job.parameters.settle();
        if (!g_variants.changes.empty()) become_a_variant();
        if (g_timings.wanted()) g_timings.start();
        map_gm();
        if (g_job.shares > 1) {
            try {
                g_shares = new Shares(g_job);
            } catch (const Failure &) {
                give_up(); // no processes to be had
            }
            g_job.blocks_meet = give_up;
            if (g_shares->number()) g_job.limit_seconds *= 2; // the first process tells what takes too long
        }
        // a core has a stack of its own and memories of at most 2 MiB
        uint64_t room = 2 * g_job.limit_bytes + (g_job.cores.size() << 25);
        if (g_variants.is_one()) room += g_job.gm_size; // what is mapped as its own counts
        if (g_timings.is_worker()) {
            g_job.gm_size = g_timings.largest_gm();
            room += g_job.gm_size + (uint64_t(1) << 30); // cores are not known yet
        }
        enter_sandbox(g_sandbox, room, g_timings.is_worker() ? g_timings.seconds : g_job.limit_seconds);
#ifdef __GLIBC__
        on_exit(on_kernel_exit, nullptr);
#endif
        watch_scalar_memory(g_job.gm_base, g_job.gm_size, end_run);
        if (g_sandbox.strict) keep_stores_inside();
        if (!g_timings.is_worker()) {
            load_kernels(g_job.kernels);
            if (g_shares) g_shares->keep_data(g_job);
            // they live until the process ends: a failure is reported from them
            g_records = new Records(g_job.records_path);
            g_active = new Machine(g_job, *g_records);
        }
        sem_init(&g_wake, 0, 0);
        sem_init(&g_ready, 0, 0);
        std::thread(watch_limits).detach();
        while (sem_wait(&g_ready) != 0) {
        } // no kernel runs, and crashes, before somebody can tell it
        if (g_timings.is_worker()) run_timings();
        std::unique_ptr<Journal> journal;
        if (g_job.journal.wanted()) journal = std::make_unique<Journal>(g_job.journal);
        g_records->journal = journal.get();
        if (g_shares)
            run_shares(*g_shares);
        else
            g_active->run();
        g_records->journal = nullptr;
        if (g_variants.is_one()) g_variants.end(true); // nobody asks for its times
        std::string told = "status\tok\n";
        if (journal) {
            journal->finish(g_records->size());
            told += "journal\t" + std::to_string(journal->complete()) + "\n";
        }
        g_active->place();
        if (g_job.check && g_records->detailed()) told += check::report_of(*g_records, *g_active);
        write_result(told + g_active->numbers.text());
    } catch (const Failure &failure) {
        write_result(failure_head(failure));
        _exit(1);
    } catch (const std::exception &caught) {
        write_result(failure_head(Failure(Fault::OurBug, {}, caught.what())));
        _exit(1);
    }
    fflush(nullptr); // what the kernel printed
    _exit(0);
}
