// Runs the cases of one test program on the modelled chip, each in a process of its own.
//
//   driver JOB    lines of the job (fields separated by tabs): the chip's parameters; `object KIND PATH` for
//   each
//                 compiled kernel, in the order in which they are loaded; `program PATH`; `directory PATH`;
//                 `result PATH`; `seconds S`; `streams PATH` for a folder in which each case leaves what its
//                 cores issued; `case SUITE.NAME` for each one to run (none: all); `without_kernels`:
//                 launches do nothing, which tells what a case proves
//
// A line of the result is `case NAME STATE MESSAGE FILE LINE GOLDENS MISSING`: how many files of goldens were
// read, and a file that could not be.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <link.h>
#include <map>
#include <poll.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device_tests.hpp"
#include "insight_trace/numbers.hpp"
#include "machine.hpp"
#include "scalar_memory.hpp"
#include "text.hpp"

using namespace insight_trace;
using namespace insight_trace::engine;

namespace {

constexpr uint64_t kBase = 0x2000'0000'0000, kSize = 1ull << 36, kPage = 4096, kGuard = 64 << 10;
constexpr uint64_t kAlign = 512;
constexpr int kBadRequest = 2;

struct Case {
    const char *suite, *name;
    void (*body)();
};
struct Entry {
    int object = -1;
    void (*call)(void *) = nullptr;
};
struct Object {
    int kind; // 0 cube, 1 vector
    std::string path;
};

Parameters g_parameters;
std::vector<Object> g_objects;
std::vector<KernelImage> g_images;
std::vector<Case> g_cases;
std::map<std::string, std::array<Entry, 2>> g_launches;
std::vector<Region> g_regions;
std::map<std::pair<const char *, uint32_t>, int> g_lines;
const Case *g_case = nullptr;
int g_loading = 0;
int g_report = -1; // where the running case says how it ended
uint64_t g_end = kBase;
bool g_failed = false, g_without_kernels = false;
std::string g_said, g_streams, g_missing;
int g_goldens = 0;
uint64_t g_order = 0; // not 0: cores and pipes in this made-up order

uint64_t reserve(uint64_t size, const std::string &name) {
    uint64_t address = g_end;
    // What may be touched: the device hands out whole pages, and some tests read or write a little past their
    // end.
    uint64_t padded = (size + kAlign - 1) / kAlign * kAlign + kAlign;
    g_regions.push_back({address, size, padded, name});
    g_end += (padded + kPage - 1) / kPage * kPage + kGuard;
    if (g_end > kBase + kSize) {
        fprintf(stderr, "no room in global memory\n");
        abort();
    }
    return address;
}

// What the cores issued to their pipes, a line for each: core, instruction, repeats or pieces. The scalar
// unit's own instructions are those of a compiler, and are left out.
void write_streams(const Records &records) {
    std::ofstream out(g_streams + "/" + g_case->suite + "." + g_case->name, std::ios::app);
    for (uint32_t row = 0; row < records.size(); ++row) {
        const Record &record = records[row];
        const SiteRow &site = records.sites()[record.site];
        if (site.pipe == PipeId::S) continue;
        out << record.core << '\t' << instr_name(site.instr);
        if (record.geometry != kNoGeometry) out << ':' << records.geometries.rows()[record.geometry].repeat;
        out << '\n';
    }
}

[[noreturn]] void end_case(const std::string &state, const std::string &message, const char *file = nullptr,
                           uint32_t line = 0) {
    std::string text = state + "\t" + escaped(message) + "\t" + escaped(file ? file : "") + "\t" +
                       std::to_string(line) + "\t" + std::to_string(g_goldens) + "\t" + escaped(g_missing) +
                       "\n";
    ssize_t ignored = write(g_report, text.data(), text.size());
    (void)ignored;
    fflush(nullptr);
    _exit(0);
}

void end_failed(const Failure &failure) {
    end_case(fault_name(failure.fault), failure.what(), failure.at.file, failure.at.line);
}

void on_crash(int signal, siginfo_t *info, void *context) {
    Crash crash = crash_in_kernel(signal, info, context, g_images);
    Core *core = running_core();
    // outside of a launch it is the test program that crashed
    const char *state = core || crash.image ? fault_name(crash.fault) : "program";
    end_case(state, crash.message, core ? core->at.file : nullptr, core ? core->at.line : 0);
}

struct Running {
    std::array<Entry, 2> entries;
    void *closure;
};
Running g_running;

void call_cube(int64_t *) { g_running.entries[0].call(g_running.closure); }
void call_vector(int64_t *) { g_running.entries[1].call(g_running.closure); }

// Where an object is mapped, so that a crash in it is told from one of ours.
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

void load(const Object &object) {
    KernelImage image;
    image.path = object.path;
    // each object finds its own functions first: the same names stand in all of them
#if defined(__SANITIZE_ADDRESS__)
    constexpr int kOwnFirst = 0; // a sanitizer refuses that; objects are linked so instead
#else
    constexpr int kOwnFirst = RTLD_DEEPBIND;
#endif
    void *handle = dlopen(object.path.c_str(), RTLD_LAZY | RTLD_GLOBAL | kOwnFirst);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(kBadRequest);
    }
    dl_iterate_phdr(find_bounds, &image);
    auto *begin = static_cast<uint8_t **>(dlsym(handle, "insight_trace_state_begin"));
    auto *end = static_cast<uint8_t **>(dlsym(handle, "insight_trace_state_end"));
    if (begin && end && *begin) {
        image.state = *begin;
        image.state_size = static_cast<uint64_t>(*end - *begin);
        image.initial_state.assign(*begin, *end);
    }
    image.call = object.kind ? call_vector : call_cube;
    g_images.push_back(image);
}

} // namespace

extern "C" {

void device_tests_kernel(int kind, const char *key, void (*call)(void *)) {
    g_launches[key][kind] = {g_loading, call};
}

// Test programs look at a file in this way before they read it.
int stat(const char *path, struct stat *facts) noexcept {
    const int done = fstatat(AT_FDCWD, path, facts, 0);
    if (done != 0 || (S_ISREG(facts->st_mode) && facts->st_size == 0))
        g_missing = path;
    else if (const char *slash = strrchr(path, '/'); strstr(slash ? slash : path, "golden"))
        ++g_goldens;
    return done;
}

void device_tests_launch(const char *key, uint64_t blocks, void *closure) {
    if (g_without_kernels) return;
    g_running = {g_launches[key], closure};
    Job job;
    job.gm_base = kBase;
    job.gm_size = kSize;
    job.parameters = g_parameters;
    job.regions = g_regions;
    job.perturb = g_order;
    const bool cube = g_running.entries[0].call, vector = g_running.entries[1].call;
    int kernels[2] = {-1, -1};
    for (int kind = 0; kind < 2; ++kind)
        if (g_running.entries[kind].call) {
            kernels[kind] = static_cast<int>(job.kernels.size());
            job.kernels.push_back(g_images[g_running.entries[kind].object]);
        }
    auto add = [&](int kind, uint64_t block, int lane) {
        CoreJob core;
        core.kernel = kernels[kind];
        core.identity.index = static_cast<uint16_t>(job.cores.size());
        core.identity.cube = kind == 0;
        core.identity.block = static_cast<int32_t>(block);
        core.identity.block_count = static_cast<int32_t>(blocks);
        core.identity.sub_block = lane;
        core.identity.name =
            "core" + std::to_string(block) + (kind ? ".veccore" : ".cubecore") + std::to_string(lane);
        job.cores.push_back(core);
    };
    for (uint64_t block = 0; block < blocks; ++block) {
        if (cube) add(0, block, 0);
        if (vector)
            for (int lane = 0; lane < (cube ? 2 : 1); ++lane) add(1, block, lane);
    }
    job.parameters.settle();
    // outlives what is caught: other cores may still wait in it, and the process ends with them
    Records records(g_streams.empty() ? "" : g_streams + "/records");
    Machine machine(job, records);
    try {
        machine.run();
        if (!g_streams.empty()) write_streams(records);
    } catch (const Failure &failure) {
        end_failed(failure);
    } catch (const std::exception &caught) {
        end_case("our_bug", caught.what());
    }
}

void device_tests_case(const char *suite, const char *name, void (*body)()) {
    g_cases.push_back({suite, name, body});
}

void device_tests_failed(const char *file, int line, const char *what) {
    const char *slash = strrchr(file, '/');
    if (!g_failed) g_said = std::string(slash ? slash + 1 : file) + ":" + std::to_string(line) + ": " + what;
    g_failed = true;
}

const char *device_tests_suite_name() { return g_case ? g_case->suite : ""; }
const char *device_tests_case_name() { return g_case ? g_case->name : ""; }

int aclrtMalloc(void **made, size_t size, int) {
    *made = reinterpret_cast<void *>(reserve(size, "buffer " + std::to_string(g_regions.size())));
    return 0;
}
int aclrtFree(void *) { return 0; }
int aclrtMallocHost(void **made, size_t size) {
    *made = calloc(1, size + kAlign);
    return *made ? 0 : 1;
}
int aclrtFreeHost(void *memory) {
    free(memory);
    return 0;
}
int aclrtMemset(void *memory, size_t, int32_t value, size_t size) {
    memset(memory, value, size);
    return 0;
}
int aclrtMemcpy(void *to, size_t, const void *from, size_t size, int) {
    memcpy(to, from, size);
    return 0;
}
float aclFloat16ToFloat(uint16_t bits) { return half_to_float(bits); }
int rtGetC2cCtrlAddr(uint64_t *address, uint32_t *size) {
    *size = 1 << 16;
    *address = reserve(*size, "the cores' flags");
    return 0;
}
int rtGetAiCoreCount(uint32_t *count) {
    *count = 24;
    return 0;
}
}

namespace {

[[noreturn]] void run_case(const Case &one, int report) {
    g_case = &one;
    g_report = report;
    if (mmap(reinterpret_cast<void *>(kBase), kSize, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
        end_case("environment", "cannot map global memory");
    watch_scalar_memory(kBase, kSize, end_failed);
    catch_crashes(on_crash);
    try {
        one.body();
    } catch (const std::exception &caught) {
        end_case("program", caught.what());
    }
    end_case(g_failed ? "wrong" : "right", g_said);
}

std::string run_apart(const Case &one, double seconds) {
    int ends[2];
    if (pipe(ends) != 0) return "environment\tno pipe\t\t0\n";
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_case(one, ends[1]);
    }
    close(ends[1]);
    std::string text;
    pollfd watched{ends[0], POLLIN, 0};
    char buffer[4096];
    while (true) {
        int ready = poll(&watched, 1, static_cast<int>(seconds * 1000));
        if (ready <= 0) {
            kill(child, SIGKILL);
            text = "time\tstill running after " + std::to_string(static_cast<int>(seconds)) + " s\t\t0\n";
            break;
        }
        ssize_t got = read(ends[0], buffer, sizeof buffer);
        if (got <= 0) break;
        text.append(buffer, static_cast<size_t>(got));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    constexpr int kNoSuchFunction = 127; // what the loader ends with
    if (text.empty() && WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchFunction)
        return "not_supported\tthe test program calls a host function that no object has\t\t0\n";
    return text.empty() ? "our_bug\tthe case ended without a word\t\t0\n" : text;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) return kBadRequest;
    std::ifstream job(argv[1]);
    std::string line, program, directory, result;
    std::vector<std::string> wanted;
    double seconds = 60;
    while (std::getline(job, line)) {
        std::vector<std::string> f = fields_of(line);
        if (f.empty() || read_parameter(f, g_parameters)) continue;
        if (f[0] == "object")
            g_objects.push_back({f.at(1) == "aiv", f.at(2)});
        else if (f[0] == "program")
            program = f.at(1);
        else if (f[0] == "directory")
            directory = f.at(1);
        else if (f[0] == "result")
            result = f.at(1);
        else if (f[0] == "streams")
            g_streams = f.at(1);
        else if (f[0] == "seconds")
            seconds = std::stod(f.at(1));
        else if (f[0] == "without_kernels")
            g_without_kernels = true;
        else if (f[0] == "order")
            g_order = std::stoull(f.at(1));
        else if (f[0] == "case")
            wanted.push_back(f.at(1));
    }
    for (const Object &object : g_objects) {
        g_loading = static_cast<int>(g_images.size());
        load(object);
    }
    if (!dlopen(program.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
        fprintf(stderr, "%s\n", dlerror());
        return kBadRequest;
    }
    if (chdir(directory.c_str()) != 0) return kBadRequest;
    std::ostringstream out;
    for (const Case &one : g_cases) {
        std::string name = std::string(one.suite) + "." + one.name;
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
        fflush(nullptr);
        std::string ended = g_objects.empty() ? "uncompiled\t\t\t0\n" : run_apart(one, seconds);
        out << "case\t" << name << "\t" << ended;
    }
    write_result_file(result, out.str());
    return 0;
}
