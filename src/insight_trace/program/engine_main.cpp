// The engine of a user's own program: one process that runs its launches, one after the other, on the
// modelled chip. Global memory is shared with the program; requests and answers are texts over a socket
// (text.hpp).
//
//   program_engine SOCKET MEMORY BASE SIZE FOLDER
//
// File descriptors, where global memory is mapped, and the folder of the session, whose file `sandbox` says
// what this process gives up before it loads a kernel.
//
// A launch that fails ends this process: the program's runtime starts another one for the next.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <link.h>
#include <csignal>
#include <map>
#include <memory>
#include <sstream>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "division.hpp"
#include "kernel_output.hpp"
#include "machine.hpp"
#include "sandbox.hpp"
#include "scalar_memory.hpp"
#include "text.hpp"
#include "touched_lines.hpp"

using namespace insight_trace;
using namespace insight_trace::engine;

namespace {

int g_socket = -1;
uint64_t g_base = 0, g_size = 0;
std::map<std::string, Parameters> g_chips;
std::vector<Region> g_regions;
Job *g_job = nullptr;
Machine *g_machine = nullptr;
std::atomic<bool> g_answered{true};
std::atomic<int64_t> g_deadline{0}; // steady clock, milliseconds; 0: nothing runs

struct Image {
    void *handle = nullptr;
    KernelImage image;
};
std::map<std::string, Image> g_images;

int64_t milliseconds() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Allowed in a signal handler.
void send_all(const char *bytes, uint64_t count) {
    uint64_t sent = 0;
    while (sent < count) {
        ssize_t done = write(g_socket, bytes + sent, count - sent);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) _exit(1);
        sent += static_cast<uint64_t>(done);
    }
}
void answer(const char *text, uint64_t size) {
    if (g_answered.exchange(true))
        while (true) pause(); // another thread answers, and ends the process
    send_all(reinterpret_cast<const char *>(&size), sizeof size);
    send_all(text, size);
}
bool receive(char *bytes, uint64_t count) {
    uint64_t got = 0;
    while (got < count) {
        ssize_t done = read(g_socket, bytes + got, count - got);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        got += static_cast<uint64_t>(done);
    }
    return true;
}

[[noreturn]] void end_with(const std::string &text) {
    fflush(nullptr);
    answer(text.data(), text.size());
    _exit(1);
}

std::string failed(const char *fault, const std::string &message, Site at) {
    std::ostringstream out;
    out << "status\tfailed\nfault\t" << fault << "\nmessage\t" << escaped(message) << "\n";
    if (at.file) out << "at\t" << escaped(at.file) << "\t" << at.line << "\n";
    return out.str();
}

void end_failed(const Failure &failure) {
    end_with(failed(fault_name(failure.fault), failure.what(), failure.at));
}

void on_crash(int signal, siginfo_t *info, void *context) {
    static char text[2048];
    static const std::vector<KernelImage> none;
    Crash crash = crash_in_kernel(signal, info, context, g_job ? g_job->kernels : none);
    Core *core = running_core();
    // of other signals the field means something else
    const bool memory = signal == SIGSEGV || signal == SIGBUS;
    const uint64_t touched = memory ? reinterpret_cast<uint64_t>(info->si_addr) : 0;
    int size = snprintf(text, sizeof text, "status\tfailed\nfault\t%s\nmessage\t%s\naddress\t%llu\n",
                        fault_name(crash.fault), crash.message, static_cast<unsigned long long>(touched));
    if (crash.image)
        size += snprintf(text + size, sizeof text - static_cast<size_t>(size), "pc\t%s\t%llu\n",
                         crash.image->path.c_str(), static_cast<unsigned long long>(crash.offset));
    const Site at = crash.at.file || !core ? crash.at : core->at;
    if (at.file)
        size +=
            snprintf(text + size, sizeof text - static_cast<size_t>(size), "at\t%s\t%u\n", at.file, at.line);
    answer(text, static_cast<uint64_t>(size));
    _exit(1);
}

// A division by zero whose result nobody uses is no mistake on the device.
void on_division(int signal, siginfo_t *info, void *context) {
    static bool said = false;
    if (!running_core() || !go_on_after_division(context)) return on_crash(signal, info, context);
    if (!said)
        dprintf(STDERR_FILENO,
                "insight-trace: warning: a kernel divides a whole number by zero: 0 is taken, the "
                "device's result is not published\n");
    said = true;
}

void watch_time() {
    while (true) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const int64_t deadline = g_deadline;
        if (!deadline || milliseconds() < deadline) continue;
        Site at{};
        for (size_t i = 0; g_machine && i < g_machine->core_count() && !at.file; ++i)
            at = g_machine->core(i).at;
        std::string text = failed("kernel", "the kernel did not end within its limit of time", at);
        end_with(text + "limit\ttime\n");
    }
}

int find_bounds(dl_phdr_info *info, size_t, void *data) {
    auto *image = static_cast<KernelImage *>(data);
    if (image->path != info->dlpi_name) return 0;
    image->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &header = info->dlpi_phdr[i];
        if (header.p_type == PT_LOAD)
            image->end = std::max<uint64_t>(image->end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
    }
    return 1;
}

// Host functions that a source mentions beside its kernels stay unresolved: a kernel never calls them.
Image &image_at(const std::string &path, bool for_others = false) {
    Image &found = g_images[path];
    if (found.handle) return found;
    found.image.path = path;
#if defined(__SANITIZE_ADDRESS__)
    constexpr int kOwnFirst = 0;
#else
    constexpr int kOwnFirst = RTLD_DEEPBIND;
#endif
    found.handle = dlopen(path.c_str(), RTLD_LAZY | (for_others ? RTLD_GLOBAL : RTLD_LOCAL) | kOwnFirst);
    if (!found.handle) fail(Fault::Environment, {}, "cannot load the compiled kernel: %s", dlerror());
    dl_iterate_phdr(find_bounds, &found.image);
    auto *begin = static_cast<uint8_t **>(dlsym(found.handle, "insight_trace_state_begin"));
    auto *end = static_cast<uint8_t **>(dlsym(found.handle, "insight_trace_state_end"));
    if (begin && end && *begin) {
        found.image.state = *begin;
        found.image.state_size = static_cast<uint64_t>(*end - *begin);
        found.image.initial_state.assign(*begin, *end);
    }
    return found;
}

const Parameters &chip_of(const std::string &path) {
    auto found = g_chips.find(path);
    if (found != g_chips.end()) return found->second;
    Parameters parameters;
    std::ifstream file(path);
    if (!file) fail(Fault::Environment, {}, "cannot read the chip %s", path.c_str());
    std::string line;
    while (std::getline(file, line)) read_parameter(fields_of(line), parameters);
    parameters.settle();
    return g_chips.emplace(path, parameters).first->second;
}

struct Request {
    std::string chip, kind = "aiv", entry;
    std::string images[2]; // cube, vector
    std::string also[2];   // where the kernel itself is, if not there
    uint64_t blocks = 1;
    int lanes = 2;
    double seconds = 60;
    bool timing_only = false, ranges = false;
    std::vector<uint8_t> arguments;
    std::vector<HeldRange> held;
};

std::vector<uint8_t> from_hex(const std::string &text) {
    std::vector<uint8_t> bytes(text.size() / 2);
    auto digit = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
    for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<uint8_t>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return bytes;
}

Request read_request(const std::string &text) {
    Request request;
    bool fresh = true;
    std::istringstream in(text);
    std::string line;
    while (std::getline(in, line)) {
        std::vector<std::string> f = fields_of(line);
        if (f.empty()) continue;
        auto n = [&](size_t i) { return std::stoull(f.at(i), nullptr, 0); };
        if (f[0] == "region") {
            if (fresh) g_regions.clear();
            fresh = false;
            Region region{n(1), n(2), n(3), f.at(5)};
            region.writable = n(4);
            region.exact = true;
            g_regions.push_back(region);
        } else if (f[0] == "held")
            request.held.push_back({n(1), n(2), n(3) != 0});
        else if (f[0] == "chip")
            request.chip = f.at(1);
        else if (f[0] == "also_cube" && f.size() > 1)
            request.also[0] = f[1];
        else if (f[0] == "also_vector" && f.size() > 1)
            request.also[1] = f[1];
        else if (f[0] == "cube" && f.size() > 1)
            request.images[0] = f[1];
        else if (f[0] == "vector" && f.size() > 1)
            request.images[1] = f[1];
        else if (f[0] == "kind")
            request.kind = f.at(1);
        else if (f[0] == "entry")
            request.entry = f.at(1);
        else if (f[0] == "blocks")
            request.blocks = n(1);
        else if (f[0] == "lanes")
            request.lanes = static_cast<int>(n(1));
        else if (f[0] == "seconds")
            request.seconds = std::stod(f.at(1));
        else if (f[0] == "timing_only")
            request.timing_only = n(1) != 0;
        else if (f[0] == "ranges")
            request.ranges = n(1) != 0;
        else if (f[0] == "arguments")
            request.arguments = from_hex(f.size() > 1 ? f[1] : "");
    }
    return request;
}

constexpr const char *kPipeNames[] = {"SCALAR", "VECTOR", "CUBE", "MTE1", "MTE2", "MTE3", "ALL", "FIXP"};

std::string run(const Request &request) {
    Job job;
    g_job = &job;
    job.gm_base = g_base;
    job.gm_size = g_size;
    uint64_t end = g_base;
    for (const Region &region : g_regions) end = std::max(end, region.address + region.padded);
    job.gm_size = end - g_base + 4096; // tables of the L2 are as large as what may be touched
    job.parameters = chip_of(request.chip);
    job.regions = g_regions;
    job.held = request.held;
    job.timing_only = request.timing_only;
    std::unique_ptr<TouchedLines> touched;
    if (request.ranges) touched = std::make_unique<TouchedLines>(job.gm_base, job.gm_size);
    job.touched = touched.get();
    // every core gets arguments of its own: a kernel may change its parameters
    const bool wanted[2] = {request.kind != "aiv", request.kind != "aic"};
    int kernels[2] = {-1, -1};
    for (int side = 0; side < 2; ++side) {
        if (!wanted[side]) continue;
        if (!request.also[side].empty()) image_at(request.also[side], true);
        Image &image = image_at(request.images[side]);
        KernelImage one = image.image;
        one.call = reinterpret_cast<void (*)(int64_t *)>(dlsym(image.handle, request.entry.c_str()));
        if (!one.call) fail(Fault::OurBug, {}, "the compiled kernel has no entry %s", request.entry.c_str());
        kernels[side] = static_cast<int>(job.kernels.size());
        job.kernels.push_back(std::move(one));
    }
    std::vector<std::vector<uint64_t>> arguments;
    auto add = [&](int side, uint64_t block, int lane) {
        CoreJob core;
        core.kernel = kernels[side];
        core.identity.index = static_cast<uint16_t>(job.cores.size());
        core.identity.cube = side == 0;
        core.identity.block = static_cast<int32_t>(block);
        core.identity.block_count = static_cast<int32_t>(request.blocks);
        core.identity.sub_block = lane;
        core.identity.name =
            "core" + std::to_string(block) + (side ? ".veccore" : ".cubecore") + std::to_string(lane);
        arguments.emplace_back(request.arguments.size() / 8 + 1);
        memcpy(arguments.back().data(), request.arguments.data(), request.arguments.size());
        core.args = reinterpret_cast<uint64_t>(arguments.back().data());
        job.cores.push_back(core);
    };
    for (uint64_t block = 0; block < request.blocks; ++block) {
        if (wanted[0]) add(0, block, 0);
        if (wanted[1])
            for (int lane = 0; lane < (wanted[0] ? request.lanes : 1); ++lane) add(1, block, lane);
    }
    g_kernel_texts = 0;
    Records records("");
    Machine machine(job, records);
    g_machine = &machine;
    g_deadline = milliseconds() + static_cast<int64_t>(request.seconds * 1000);
    try {
        machine.run();
        machine.place();
    } catch (const Failure &failure) {
        end_failed(failure); // other cores may still wait in here: the process ends with them
    }
    g_deadline = 0;
    std::ostringstream out;
    int64_t cycles = 0;
    for (const auto &core : machine.timeline()->times()) cycles = std::max(cycles, core.end);
    const L2Traffic &traffic = machine.timeline()->traffic();
    out << "status\tok\ncycles\t" << cycles << "\ninstructions\t" << records.size() << "\nbound\t"
        << kPipeNames[busiest_pipe(records, machine.core_count())] << "\nwaves\t"
        << machine.timeline()->waves() << "\nl2\t" << traffic.bytes << "\t" << traffic.hits << "\n";
    for (const Region &region : machine.global_memory().regions)
        if (region.used) out << "used\t" << region.address << "\t" << static_cast<int>(region.used) << "\n";
    if (g_kernel_texts) out << "printed\t" << g_kernel_texts << "\n";
    if (touched)
        touched->each_range([&](uint64_t begin, uint64_t end, bool writes) {
            out << "range\t" << begin << "\t" << end << "\t" << writes << "\n";
        });
    for (size_t i = 0; i < machine.core_count(); ++i)
        for (const Remark &remark : machine.core(i).remarks)
            out << "remark\t" << escaped(remark.at.file ? remark.at.file : "") << "\t" << remark.at.line
                << "\t" << escaped(remark.text) << "\n";
    g_machine = nullptr;
    g_job = nullptr;
    return out.str();
}

void give_up(const std::string &folder) {
    Sandbox sandbox;
    std::ifstream file(folder + "/sandbox");
    for (std::string line; std::getline(file, line);)
        if (const std::vector<std::string> fields = fields_of(line); !fields.empty())
            read_sandbox(fields, sandbox);
    // kernels find an empty folder, not the program's
    if (sandbox.on && chdir((folder + "/work").c_str()) != 0)
        fail(Fault::Environment, {}, "no folder for kernels: %s", strerror(errno));
    enter_sandbox(sandbox, 0, 0);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: program_engine SOCKET MEMORY BASE SIZE FOLDER\n");
        return 2;
    }
    g_socket = atoi(argv[1]);
    const int memory = atoi(argv[2]);
    g_base = strtoull(argv[3], nullptr, 0);
    g_size = strtoull(argv[4], nullptr, 0);
    void *wanted = reinterpret_cast<void *>(g_base);
    if (mmap(wanted, g_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, memory,
             0) != wanted) {
        fprintf(stderr, "insight-trace: cannot map global memory: %s\n", strerror(errno));
        return 1;
    }
    watch_scalar_memory(g_base, g_size, end_failed);
    catch_crashes(on_crash);
    struct sigaction division{};
    division.sa_sigaction = on_division;
    division.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGFPE, &division, nullptr);
    g_kernel_output = stdout; // as the vendor's runtime prints it, in the program's process
    signal(SIGPIPE, SIG_IGN); // a program that has ended is the end of this one
    std::thread(watch_time).detach();
    try {
        give_up(argv[5]);
    } catch (const Failure &failure) {
        fprintf(stderr, "insight-trace: %s\n", failure.what());
        return 1;
    }
    while (true) {
        uint64_t size = 0;
        if (!receive(reinterpret_cast<char *>(&size), sizeof size)) _exit(0);
        std::string text(size, 0);
        if (!receive(text.data(), size)) _exit(0);
        g_answered = false;
        std::string said;
        try {
            said = run(read_request(text));
        } catch (const Failure &failure) {
            end_failed(failure);
        } catch (const std::exception &caught) {
            end_with(failed("our_bug", caught.what(), {}));
        }
        fflush(nullptr); // what the kernel printed
        answer(said.data(), said.size());
    }
}
