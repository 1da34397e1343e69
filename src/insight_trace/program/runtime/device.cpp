#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime.hpp"
#include "text.hpp"

namespace insight_trace_program {

namespace {
constexpr uint64_t kMostBlocks = 65535;

constexpr uint64_t kMayHoldPointers = 4 << 20; // tables of addresses are smaller

double seconds_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// What `insight-trace exec` asks for, from the folder that it names.
struct Session {
    std::string folder, engine, trace = "first", kernel_name;
    uint64_t launch_count = ~0ull, skip = 0, snapshot = 1ull << 30;
    double seconds = 60;
    bool timing_only = false, known = false, unconfined = false;
    regex_t pattern{};

    Session() {
        const char *named = getenv("INSIGHT_TRACE_PROGRAM");
        if (!named) return;
        folder = named;
        std::ifstream file(folder + "/settings");
        std::string line;
        while (std::getline(file, line)) {
            const std::vector<std::string> f = fields_of(line);
            if (f.size() < 2) continue;
            if (f[0] == "engine")
                engine = f[1];
            else if (f[0] == "trace")
                trace = f[1];
            else if (f[0] == "kernel_name")
                kernel_name = f[1];
            else if (f[0] == "launch_count")
                launch_count = std::stoull(f[1]);
            else if (f[0] == "skip")
                skip = std::stoull(f[1]);
            else if (f[0] == "seconds")
                seconds = std::stod(f[1]);
            else if (f[0] == "timing_only")
                timing_only = f[1] == "1";
            else if (f[0] == "sandbox")
                unconfined = f[1] == "off";
        }
        known = !engine.empty();
        if (!kernel_name.empty()) regcomp(&pattern, kernel_name.c_str(), REG_EXTENDED | REG_NOSUB);
    }
    bool matches(const std::string &kernel) const {
        return kernel_name.empty() || regexec(&pattern, kernel.c_str(), 0, nullptr, 0) == 0;
    }
};
const Session &session() {
    static const Session *made = new Session;
    return *made;
}

// One file for all processes of a program: who makes it first has the first launch of a kernel.
bool is_first(const std::string &kernel) {
    const std::string folder = session().folder + "/first";
    mkdir(folder.c_str(), 0700);
    char name[32];
    snprintf(name, sizeof name, "/%016llx",
             static_cast<unsigned long long>(
                 hash_of(reinterpret_cast<const uint8_t *>(kernel.data()), kernel.size())));
    const int file = open((folder + name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return false;
    close(file);
    return true;
}

bool write_file(const std::string &path, const void *bytes, uint64_t count) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return false;
    uint64_t done = 0;
    while (done < count) {
        const ssize_t some = write(file, static_cast<const char *>(bytes) + done, count - done);
        if (some <= 0) break;
        done += static_cast<uint64_t>(some);
    }
    close(file);
    return done == count;
}

// An object that travelled in the program, as a file that the engine can load.
// The file that was loaded with this address in it. Sources that a program compiles more than once, with
// other values of their macros, have kernels of the same names in several libraries.
const void *library_of(const void *address) {
    Dl_info info{};
    return dladdr(address, &info) ? info.dli_fbase : nullptr;
}

std::string image_file(const uint8_t *bytes, uint64_t size) {
    const std::string folder = session().folder + "/images";
    mkdir(folder.c_str(), 0700);
    char name[40];
    snprintf(name, sizeof name, "/%016llx.so", static_cast<unsigned long long>(hash_of(bytes, size)));
    const std::string path = folder + name;
    struct stat facts{};
    if (stat(path.c_str(), &facts) == 0 && static_cast<uint64_t>(facts.st_size) == size) return path;
    const std::string part = path + "." + std::to_string(getpid());
    if (!write_file(part, bytes, size) || rename(part.c_str(), path.c_str()) != 0) return "";
    return path;
}

} // namespace

Device &Device::get() {
    static Device *one = [] {
        auto *made = new Device;
        made->owner_ = getpid();
        return made;
    }();
    return *one;
}

// --- chips -------------------------------------------------------------------------------------------------

const ChipFacts &Device::chip_of(const std::string &target) {
    auto found = chips_.find(target);
    if (found != chips_.end()) return found->second;
    ChipFacts facts;
    facts.file = session().folder + "/chip." + target;
    std::ifstream file(facts.file);
    std::string line;
    while (std::getline(file, line)) {
        const std::vector<std::string> f = fields_of(line);
        if (f.size() < 3 || f[0] != "fact") continue;
        if (f[1] == "soc")
            facts.soc = f[2];
        else if (f[1] == "mhz")
            facts.mhz = std::stod(f[2]);
        else if (f[1] == "head")
            facts.head = std::stod(f[2]);
        else if (f[1] == "tail")
            facts.tail = std::stod(f[2]);
        else if (f[1] == "cube_cores")
            facts.cube_cores = std::stoll(f[2]);
        else if (f[1] == "vector_cores")
            facts.vector_cores = std::stoll(f[2]);
        else if (f[1] == "l2")
            facts.l2 = std::stoll(f[2]);
        else if (f[1] == "ub")
            facts.ub = std::stoll(f[2]);
    }
    return chips_.emplace(target, facts).first->second;
}

const ChipFacts &Device::chip() {
    // the family that the program's kernels were compiled for, where they have one
    std::ifstream file(session().folder + "/target");
    std::string target;
    std::getline(file, target);
    if (target.empty()) target = sets_.empty() ? "a2a3" : sets_.back()->target;
    return chip_of(target);
}

// --- kernels -----------------------------------------------------------------------------------------------

void Device::add_kernels(const char *facts, uint64_t facts_size, const uint8_t *const images[2],
                         const uint64_t sizes[2]) {
    if (!session().known) return;
    auto *set = new KernelSet;
    std::istringstream in(std::string(facts, facts_size));
    std::string line;
    std::vector<std::vector<std::string>> entries;
    while (std::getline(in, line)) {
        const std::vector<std::string> f = fields_of(line);
        if (f.size() < 2) continue;
        if (f[0] == "target")
            set->target = f[1];
        else if (f[0] == "text")
            set->texts[f[1] == "vector"] = f[2];
        else if (f[0] == "entry" || f[0] == "kernel")
            entries.push_back(f);
    }
    for (int side = 0; side < 2; ++side)
        if (sizes[side]) set->images[side] = image_file(images[side], sizes[side]);
    std::lock_guard<std::recursive_mutex> lock(mutex);
    sets_.push_back(set);
    const void *library = library_of(facts);
    for (const auto &f : entries) {
        KernelEntry entry{set, f[2], f.size() > 3 ? std::stoi(f[3]) : 2, f.size() > 4 ? f[4] : "", nullptr};
        for (const void *of : {library, static_cast<const void *>(nullptr)})
            (f[0] == "kernel" ? kernels_ : entries_)[{of, f[1]}] = entry;
    }
}

const KernelEntry *Device::kernel_of(const KernelEntries &entries, const void *library,
                                     const std::string &name) {
    for (const void *of : {library, static_cast<const void *>(nullptr)})
        if (auto found = entries.find({of, name}); found != entries.end()) return &found->second;
    return nullptr;
}

// --- the engine --------------------------------------------------------------------------------------------

bool Device::start_engine() {
    if (socket_ >= 0) return true;
    if (!memory.ready()) return false;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return say("no socket for the engine: %s", strerror(errno)), false;
    const std::string memory_end = std::to_string(memory.file()), size = std::to_string(memory.size()),
                      base = std::to_string(kBase), other = std::to_string(ends[1]);
    const char *arguments[] = {
        session().engine.c_str(), other.c_str(), memory_end.c_str(), base.c_str(), size.c_str(),
        session().folder.c_str(), nullptr};
    // the program's environment may hold secrets, which are none of a kernel's business
    std::vector<char *> variables;
    for (char **one = environ; one && *one; ++one)
        for (const char *kept : {"PATH=", "LD_LIBRARY_PATH=", "LANG=", "LC_ALL=", "TZ=", "ASAN_", "UBSAN_"})
            if (session().unconfined || strncmp(*one, kept, strlen(kept)) == 0) {
                variables.push_back(*one);
                break;
            }
    variables.push_back(nullptr);
    const pid_t child = vfork();
    if (child == 0) {
        fcntl(ends[1], F_SETFD, 0);
        fcntl(memory.file(), F_SETFD, 0);
        execve(arguments[0], const_cast<char **>(arguments), variables.data());
        _exit(127);
    }
    fcntl(memory.file(), F_SETFD, FD_CLOEXEC);
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return say("the engine cannot be started: %s", strerror(errno)), false;
    }
    socket_ = ends[0];
    engine_ = child;
    told_generation_ = 0;
    return true;
}

void Device::end_engine() {
    if (socket_ >= 0) close(socket_);
    if (engine_ > 0) {
        kill(engine_, SIGKILL);
        waitpid(engine_, nullptr, 0);
    }
    socket_ = -1;
    engine_ = 0;
}

bool Device::exchange(const std::string &request, std::string &reply, double seconds) {
    auto transfer = [&](bool out, char *bytes, uint64_t count, double until) {
        uint64_t done = 0;
        while (done < count) {
            pollfd one{socket_, static_cast<short>(out ? POLLOUT : POLLIN), 0};
            const double left = until - seconds_now();
            if (left <= 0) return false;
            const int ready = poll(&one, 1, static_cast<int>(std::min(left, 1e6) * 1000) + 1);
            if (ready < 0 && errno == EINTR) continue;
            if (ready <= 0) return false;
            const ssize_t some = out ? send(socket_, bytes + done, count - done, MSG_NOSIGNAL)
                                     : recv(socket_, bytes + done, count - done, 0);
            if (some < 0 && errno == EINTR) continue;
            if (some <= 0) return false;
            done += static_cast<uint64_t>(some);
        }
        return true;
    };
    const double until = seconds_now() + seconds + 10;
    uint64_t size = request.size();
    if (!transfer(true, reinterpret_cast<char *>(&size), sizeof size, until) ||
        !transfer(true, const_cast<char *>(request.data()), size, until) ||
        !transfer(false, reinterpret_cast<char *>(&size), sizeof size, until))
        return false;
    reply.resize(size);
    return transfer(false, reply.data(), size, until);
}

std::string Device::request_text(const insight_trace_launch_request &request, const KernelEntry &entry,
                                 const std::string &symbol) {
    std::ostringstream out;
    if (told_generation_ != memory.generation()) {
        for (const auto &[address, buffer] : memory.buffers()) {
            // a store may fill the last 32 bytes, a load may go on into what the allocator rounds up
            const uint64_t writable = (buffer.size + 31) / 32 * 32;
            out << "region\t" << address << "\t" << buffer.size << "\t" << buffer.room << "\t" << writable
                << "\t" << escaped(buffer.name) << "\n";
        }
        if (memory.buffers().empty()) out << "region\t" << kBase << "\t0\t1\t0\tnothing\n";
    }
    out << "chip\t" << escaped(chip_of(entry.set->target).file) << "\nkind\t" << entry.kind << "\nlanes\t"
        << entry.lanes << "\nalso_cube\t" << escaped(entry.also ? entry.also->images[0] : "")
        << "\nalso_vector\t" << escaped(entry.also ? entry.also->images[1] : "") << "\ncube\t"
        << escaped(entry.set->images[0]) << "\nvector\t" << escaped(entry.set->images[1]) << "\nentry\t"
        << symbol << "\nblocks\t" << request.blocks << "\nseconds\t" << session().seconds << "\ntiming_only\t"
        << session().timing_only << "\nranges\t" << !streams.empty() << "\narguments\t"
        << hex_of(request.arguments, request.argument_bytes) << "\n";
    for (const Held &held : held_)
        if (!held.hole) out << "held\t" << held.address << "\t" << held.bytes << "\t" << held.dirty << "\n";
    return out.str();
}

void Device::hold(uint64_t address, uint64_t bytes, bool dirty, bool hole) {
    held_.erase(
        std::remove_if(held_.begin(), held_.end(), [&](const Held &one) { return one.address == address; }),
        held_.end());
    held_.push_back({address, bytes, dirty, hole});
    const uint64_t most = static_cast<uint64_t>(std::max<int64_t>(chip().l2, 1)) * 2;
    uint64_t total = 0;
    size_t from = held_.size();
    while (from > 0 && total < most) total += held_[--from].bytes;
    held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(from));
}

void Device::wrote(uint64_t address, uint64_t bytes) {
    const Buffer *buffer = memory.find(address);
    if (buffer && session().known) hold(buffer->address, std::max(bytes, buffer->size), true, true);
}

// --- launches ----------------------------------------------------------------------------------------------

Stream &Device::stream(void *handle) {
    for (Stream *one : streams)
        if (one == handle) return *one;
    return default_stream;
}
bool Device::is_stream(void *handle) const {
    return !handle || handle == &default_stream ||
           std::find(streams.begin(), streams.end(), handle) != streams.end();
}

int Device::synchronize(Stream &one) {
    host_knows(one.known);
    return std::exchange(one.error, 0);
}

int Device::synchronize_all() {
    int error = synchronize(default_stream);
    double latest = default_stream.clock;
    for (Stream *one : streams) {
        if (int its = synchronize(*one)) error = its;
        latest = std::max(latest, one->clock);
    }
    default_stream.clock = latest; // the host has waited for all of them
    for (Stream *one : streams) one->clock = latest;
    return error;
}

bool Device::recall(const std::string &key, Kept *&found) {
    auto [from, to] = kept_.equal_range(key);
    for (auto at = from; at != to; ++at) {
        bool same = true;
        for (const Kept::Part &part : at->second.parts) {
            const Buffer *buffer = memory.find(part.address);
            same = buffer && buffer->address == part.address && buffer->size == part.bytes &&
                   hash_of(memory.host(reinterpret_cast<void *>(part.address)), part.bytes) == part.before;
            if (!same) break;
        }
        if (same) return found = &at->second, true;
    }
    return false;
}

int Device::launch(const insight_trace_launch_request &request) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    Stream &on = stream(request.stream);
    const std::string kernel = request.kernel;
    const std::string place = std::string(request.file) + ":" + std::to_string(request.line);
    auto refuse = [&](int code, const std::string &why) {
        on.error = code;
        error_text = kernel + ": " + why + "\n  launched at " + place;
        last_error = code;
        say("%s", error_text.c_str());
        return code;
    };
    if (!session().known)
        return refuse(kInternal,
                      "this program runs on a simulated chip only under `insight-trace exec -- COMMAND`");
    if (getpid() != owner_)
        return refuse(kInternal, "a process that was forked after the device was used cannot launch kernels");
    // the type's name is N…E, the entry point's the same with `call` in it
    std::string symbol = request.entry;
    if (!symbol.empty() && symbol.front() == '*') symbol.erase(0, 1);
    symbol = "_Z" + symbol.substr(0, symbol.size() - 1) + "4callEPNS_6PackedE";
    const void *library = library_of(request.file);
    const KernelEntry *found = kernel_of(entries_, library, symbol);
    if (!found) return refuse(kInternal, "no compiled kernel belongs to this launch");
    KernelEntry entry = *found;
    if (entry.kind == "elsewhere") {
        const KernelEntry *other = kernel_of(kernels_, library, entry.kernel);
        if (!other) return refuse(kInternal, "no source of this program defines the kernel");
        entry.kind = other->kind;
        entry.lanes = other->lanes;
        entry.also = other->set;
    }
    if (request.blocks == 0 || request.blocks > kMostBlocks)
        return refuse(107000, "a launch has 1 to " + std::to_string(kMostBlocks) + " blocks, not " +
                                  std::to_string(request.blocks));
    if (!is_stream(request.stream)) return refuse(107003, "the launch names a stream that does not exist");
    const double began = seconds_now();
    const uint64_t number = launches_++;
    on.known.learn(host);
    const uint64_t count = ++on.known.launches[on.number];
    const bool chosen = session().matches(kernel);
    static uint64_t matched = 0, taken = 0;
    bool wanted = false;
    if (chosen && session().trace != "none" && ++matched > session().skip && taken < session().launch_count)
        wanted = session().trace != "first" || is_first(symbol);
    // pointers among the arguments
    std::vector<std::pair<uint64_t, uint64_t>> pointers; // offset, address
    for (uint64_t at = 0; at + 8 <= request.argument_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, static_cast<const char *>(request.arguments) + at, 8);
        if (memory.is_device(reinterpret_cast<void *>(word))) pointers.emplace_back(at, word);
    }
    std::ostringstream held_text;
    for (const Held &held : held_)
        held_text << held.address << "," << held.bytes << "," << held.dirty << held.hole << ";";
    std::string key = symbol + "\n" + entry.set->images[0] + entry.set->images[1] + "\n" +
                      std::to_string(request.blocks) + "\n" +
                      std::string(static_cast<const char *>(request.arguments), request.argument_bytes) +
                      "\n" + held_text.str();
    Kept *kept = nullptr;
    double cycles = 0;
    std::string bound, job_folder, error;
    int code = 0;
    std::vector<std::pair<uint64_t, int>> used;
    std::vector<Touched> touched;
    if (!wanted && recall(key, kept)) {
        for (const Kept::Part &part : kept->parts) {
            if (part.written)
                memcpy(memory.host(reinterpret_cast<void *>(part.address)), part.after.data(), part.bytes);
            used.emplace_back(part.address, part.written ? 3 : 1);
        }
        cycles = kept->cycles;
        bound = kept->bound;
        touched = kept->touched;
    } else {
        if (!start_engine()) return refuse(kInternal, "the engine cannot be started");
        // what the buffers hold before: those of the arguments, and those that they point to
        std::vector<std::pair<const Buffer *, uint64_t>> before;
        uint64_t total = 0;
        auto add = [&](uint64_t address) {
            const Buffer *buffer = memory.find(address);
            if (!buffer || std::any_of(before.begin(), before.end(),
                                       [&](const auto &one) { return one.first == buffer; }))
                return;
            before.emplace_back(buffer, 0);
            total += buffer->size;
        };
        // in the order of the kernel's parameters: a tuple's last member lies first
        for (auto at = pointers.rbegin(); at != pointers.rend(); ++at) add(at->second);
        for (size_t i = 0; i < before.size(); ++i) {
            const Buffer *buffer = before[i].first;
            if (buffer->size > kMayHoldPointers) continue;
            const uint8_t *bytes = memory.host(reinterpret_cast<void *>(buffer->address));
            for (uint64_t at = 0; at + 8 <= buffer->size; at += 8) {
                uint64_t word;
                memcpy(&word, bytes + at, 8);
                if (memory.is_device(reinterpret_cast<void *>(word))) add(word);
            }
        }
        bool may_keep = total <= 256ull << 20;
        if (may_keep)
            for (auto &[buffer, hash] : before)
                hash = hash_of(memory.host(reinterpret_cast<void *>(buffer->address)), buffer->size);
        std::ostringstream rows;
        if (wanted && total <= session().snapshot) {
            ++taken;
            const std::string jobs = session().folder + "/jobs";
            mkdir(jobs.c_str(), 0700);
            job_folder = jobs + "/" + std::to_string(getpid()) + "-" + std::to_string(number);
            mkdir(job_folder.c_str(), 0700);
            size_t index = 0;
            for (const auto &[buffer, hash] : before) {
                const std::string name = std::to_string(index++) + ".bin";
                write_file(job_folder + "/" + name, memory.host(reinterpret_cast<void *>(buffer->address)),
                           buffer->size);
                rows << (index > 1 ? "," : "") << "{\"address\":" << buffer->address
                     << ",\"size\":" << buffer->size << ",\"room\":" << buffer->room
                     << ",\"name\":" << json(buffer->name) << ",\"before\":" << json(name) << "}";
            }
        }
        const std::string text = request_text(request, entry, symbol);
        told_generation_ = memory.generation();
        std::string reply;
        fflush(stdout); // what a kernel prints comes behind it
        if (!exchange(text, reply, session().seconds)) {
            const bool ended = seconds_now() - began < session().seconds;
            end_engine();
            reply =
                ended ? "status\tfailed\nfault\tenvironment\nmessage\tthe engine ended without an answer\n"
                      : "status\tfailed\nfault\tkernel\nmessage\tthe kernel did not end within its limit of "
                        "time\nlimit\ttime\n";
        }
        std::istringstream in(reply);
        std::string line, message, at, fault, pc;
        bool ok = false, timed_out = false;
        while (std::getline(in, line)) {
            const std::vector<std::string> f = fields_of(line);
            if (f.size() < 2) continue;
            if (f[0] == "status")
                ok = f[1] == "ok";
            else if (f[0] == "message")
                message = f[1];
            else if (f[0] == "fault")
                fault = f[1];
            else if (f[0] == "limit")
                timed_out = true;
            else if (f[0] == "at" && f.size() > 2)
                at = f[1] + ":" + f[2];
            else if (f[0] == "pc" && f.size() > 2)
                pc = f[1] + "\t" + f[2];
            else if (f[0] == "cycles")
                cycles = std::stod(f[1]);
            else if (f[0] == "bound")
                bound = f[1];
            else if (f[0] == "printed")
                may_keep = false; // an equal launch prints again
            else if (f[0] == "used" && f.size() > 2)
                used.emplace_back(std::stoull(f[1]), std::stoi(f[2]));
            else if (f[0] == "remark" && f.size() > 3)
                note(kernel, f[1] + ":" + f[2], f[3]);
            else if (f[0] == "range" && f.size() > 3)
                touched.push_back({std::stoull(f[1]), std::stoull(f[2]), f[3] == "1"});
            else if (f[0] == "address") {
                const uint64_t touched = std::stoull(f[1]);
                if (const Buffer *gone = memory.find(touched, false))
                    message += " (" + gone->name + " of " + std::to_string(gone->size) +
                               " bytes was there, and was freed)";
                else if (touched && !memory.is_device(reinterpret_cast<void *>(touched)))
                    message += ": it is no address of the device, as a pointer of the host is none";
            }
        }
        if (!ok) {
            end_engine();
            if (!pc.empty())
                at = source_line(pc.substr(0, pc.find('\t')), pc.substr(pc.find('\t') + 1), at);
            else
                at = source_line(at);
            const size_t named = message.find("GM access of ") == 0 || message.find("GM access at ") == 0
                                     ? message.find(" at 0x")
                                     : std::string::npos;
            if (named != std::string::npos) {
                const uint64_t touched = std::stoull(message.substr(named + 4), nullptr, 16);
                if (touched < 4096)
                    message = "a null pointer is used as an address of the device (GM access at 0x" +
                              message.substr(named + 6, message.find_first_of(":,", named) - named - 6) + ")";
                else if (!memory.is_device(reinterpret_cast<void *>(touched)))
                    message = message.substr(0, message.find_first_of(":,", named)) +
                              ": it is no address of the device, as a pointer of the host is none";
                else if (const Buffer *gone = memory.find(touched) ? nullptr : memory.find(touched, false))
                    message = message.substr(0, message.find_first_of(":,", named)) + ": " + gone->name +
                              " (" + std::to_string(gone->size) + " bytes) was there, and was freed";
            }
            error = (fault == "not_supported" ? "not supported: " : "") + message;
            std::string words = error;
            if (fault == "not_supported")
                words += "\n  write it with other instructions to run it here; docs/ascendc.md lists what is "
                         "not simulated";
            for (const auto &[offset, address] : pointers)
                if (!memory.find(address))
                    if (const Buffer *gone = memory.find(address, false))
                        words += "\n  argument at byte " + std::to_string(offset) + " points to " +
                                 gone->name + " (" + std::to_string(gone->size) +
                                 " bytes), which was freed before the launch";
            const bool vector = entry.kind == "aiv";
            code = timed_out || message.compare(0, 8, "deadlock") == 0
                       ? (vector ? kVectorTimeout : kAicoreTimeout)
                       : (vector ? kVectorException : kAicoreException);
            refuse(code, words + (at.empty() ? "" : "\n  in the kernel at " + at));
            on.error = code;
        } else if (may_keep) {
            Kept fresh;
            fresh.cycles = cycles;
            fresh.bound = bound;
            fresh.touched = touched;
            bool all_known = true;
            uint64_t bytes = 0;
            for (const auto &[address, role] : used) {
                auto one = std::find_if(before.begin(), before.end(),
                                        [&, a = address](const auto &b) { return b.first->address == a; });
                if (one == before.end()) {
                    all_known = all_known && address == sync_address;
                    continue;
                }
                Kept::Part part{address, one->first->size, one->second, (role & 2) != 0, {}};
                if (part.written) {
                    const uint8_t *now = memory.host(reinterpret_cast<void *>(address));
                    part.after.assign(now, now + part.bytes);
                    bytes += part.bytes;
                }
                fresh.parts.push_back(std::move(part));
            }
            if (all_known) {
                kept_bytes_ += bytes;
                if (kept_bytes_ > 512ull << 20 || kept_.size() > 2000) {
                    kept_.clear();
                    kept_bytes_ = bytes;
                }
                kept_.emplace(key, std::move(fresh));
            }
        }
        if (!job_folder.empty()) {
            std::ostringstream out;
            const KernelSet &defined = entry.also ? *entry.also : *entry.set;
            out << "{\"kernel\":" << json(kernel) << ",\"entry\":" << json(symbol)
                << ",\"kind\":" << json(entry.kind) << ",\"lanes\":" << entry.lanes
                << ",\"blocks\":" << request.blocks << ",\"target\":" << json(entry.set->target)
                << ",\"file\":" << json(request.file) << ",\"line\":" << request.line << ",\"texts\":["
                << json(defined.texts[0]) << "," << json(defined.texts[1])
                << "],\"elsewhere\":" << json(entry.also ? entry.kernel : "") << ",\"arguments\":\""
                << hex_of(request.arguments, request.argument_bytes) << "\",\"buffers\":[" << rows.str()
                << "],\"used\":[";
            bool first = true;
            for (const auto &[address, role] : used) {
                out << (first ? "" : ",") << "[" << address << "," << role << "]";
                first = false;
                size_t index = 0;
                for (const auto &[buffer, hash] : before) {
                    if (buffer->address == address && (role & 2))
                        write_file(job_folder + "/" + std::to_string(index) + ".after",
                                   memory.host(reinterpret_cast<void *>(address)), buffer->size);
                    ++index;
                }
            }
            out << "]}";
            const std::string data = out.str();
            write_file(job_folder + "/job.json", data.data(), data.size());
        }
    }
    for (const auto &[address, role] : used)
        if (const Buffer *buffer = memory.find(address)) hold(address, buffer->size, (role & 2) != 0, false);
    compare(on.known, {on.number, count, std::move(touched), kernel, "launched at " + place, nullptr}, false);
    const ChipFacts &facts = chip_of(entry.set->target);
    const double micros = code ? 0 : (cycles + facts.head + facts.tail) / facts.mhz;
    const double start = on.clock;
    on.clock += micros;
    if (code) on.error = code;
    char row[4096];
    const int size =
        snprintf(row, sizeof row,
                 "{\"process\":%d,\"number\":%llu,\"kernel\":%s,\"file\":%s,\"line\":%u,\"blocks\":%llu,"
                 "\"kind\":\"%s\",\"target\":\"%s\","
                 "\"soc\":\"%s\",\"cycles\":%.0f,\"us\":%.4f,\"start_us\":%.4f,\"stream\":%d,\"bound\":\"%"
                 "s\",\"repeated\":%s,"
                 "\"chosen\":%s,\"seconds\":%.4f,\"error\":%d,\"message\":%s,\"job\":%s}\n",
                 getpid(), static_cast<unsigned long long>(number), json(kernel).c_str(),
                 json(request.file).c_str(), request.line, static_cast<unsigned long long>(request.blocks),
                 entry.kind.c_str(), entry.set->target.c_str(), facts.soc.c_str(), cycles, micros, start,
                 on.number, bound.c_str(), kept ? "true" : "false", chosen ? "true" : "false",
                 seconds_now() - began, code, json(error.substr(0, 1000)).c_str(), json(job_folder).c_str());
    static const int log =
        open((session().folder + "/launches." + std::to_string(getpid()) + ".jsonl").c_str(),
             O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (size > 0 && static_cast<size_t>(size) < sizeof row) {
        const ssize_t done = write(log, row, static_cast<size_t>(size));
        (void)done;
    }
    return 0;
}

} // namespace insight_trace_program

extern "C" {
int insight_trace_launch(const insight_trace_launch_request *request) {
    return insight_trace_program::Device::get().launch(*request);
}
void insight_trace_add_kernels(const char *facts, uint64_t facts_size, const uint8_t *cube,
                               uint64_t cube_size, const uint8_t *vector, uint64_t vector_size) {
    const uint8_t *const images[2] = {cube, vector};
    const uint64_t sizes[2] = {cube_size, vector_size};
    insight_trace_program::Device::get().add_kernels(facts, facts_size, images, sizes);
}
}
