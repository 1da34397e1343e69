// The device of a user's own program, as its host part sees it: memory in a window that the host cannot read,
// streams with a simulated clock, and launches that an engine in a process of its own runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "insight_trace_program/program.hpp"

namespace insight_trace_program {

constexpr uint64_t kBase = 0x2000'0000'0000;
constexpr int kSuccess = 0;
constexpr int kInvalidParameter = 100000, kNotInitialised = 100001, kRepeatInitialise = 100002;
constexpr int kBadAlloc = 200000, kNotSupported = 200001;
constexpr int kOutOfMemory = 207001;
constexpr int kInternal = 500000;
constexpr int kAicoreException = 507015, kAicoreTimeout = 507014, kVectorException = 507035,
              kVectorTimeout = 507034, kWaitTimeout = 507046;

// The message that aclGetRecentErrMsg returns, and a line on stderr.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fail_with(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct Buffer {
    uint64_t address, size;
    uint64_t room;  // bytes that may be read
    uint64_t taken; // of the window
    std::string name;
    bool live = true;
    // What a copy may reach: an allocation is rounded up to 32 bytes, and 32 more.
    uint64_t copied() const { return room == taken ? room : (size + 31) / 32 * 32 + 32; }
};

// Global memory: a file that the engine maps at the device's addresses; the program has it elsewhere.
class DeviceMemory {
  public:
    bool ready();
    int file() const { return file_; }
    uint64_t size() const { return size_; }
    // `pooled`: from a framework's allocator, whose blocks are larger than what is asked for, so that loads
    // past an end find memory.
    void *allocate(uint64_t bytes, const char *what, bool pooled = false);
    bool release(void *address);
    // The device was reset: memory that is free goes back, and comes with zeros again.
    void give_back() { reached_ = kBase; }
    bool is_device(const void *address) const {
        return reinterpret_cast<uint64_t>(address) - kBase < size_ && size_;
    }
    // Where the program itself may touch a device address.
    uint8_t *host(const void *address) const {
        return alias_ + (reinterpret_cast<uint64_t>(address) - kBase);
    }
    const Buffer *find(uint64_t address, bool live = true) const;
    const std::map<uint64_t, Buffer> &buffers() const { return buffers_; }
    uint64_t used() const { return used_; }
    uint64_t capacity() const { return capacity_; }
    uint64_t generation() const { return generation_; } // of the list of buffers

  private:
    bool map();
    std::map<uint64_t, Buffer> buffers_;     // live
    std::map<uint64_t, Buffer> freed_;       // by address, for messages
    std::multimap<uint64_t, uint64_t> free_; // room, address
    uint64_t size_ = 0, end_ = kBase, used_ = 0, capacity_ = 0, generation_ = 1, count_ = 0;
    uint64_t reached_ = kBase; // where buffers ever ended
    uint8_t *alias_ = nullptr;
    int file_ = -1;
    bool tried_ = false;
};

// By stream: how many of its launches certainly came before.
struct Known {
    std::map<int, uint64_t> launches;
    void learn(const Known &other) {
        for (const auto &[stream, count] : other.launches)
            launches[stream] = std::max(launches[stream], count);
    }
};
struct Touched { // bytes of device memory
    uint64_t begin, end;
    bool writes;
};
struct Stream {
    double clock = 0; // microseconds
    int error = 0;
    int number = 0;
    Known known;
    // Who waits for a time gives up before the device does, whose error the next wait gets.
    bool hangs() const { return error == kAicoreTimeout || error == kVectorTimeout; }
};
struct Event {
    double clock = 0;
    bool recorded = false;
    Known known;
};

struct ChipFacts {
    std::string file, soc;
    double mhz = 1850, head = 0, tail = 0;
    int64_t cube_cores = 24, vector_cores = 48, l2 = 0, memory = 0, ub = 0;
};

// Compiled kernels of one source, as they travel in the program's objects.
struct KernelSet {
    std::string target;    // a2a3, a5
    std::string images[2]; // paths of the objects for cube and vector cores
    std::string texts[2];  // the translated sources that they were compiled from
    std::vector<std::string> flags;
};
struct KernelEntry {
    const KernelSet *set;
    std::string kind; // aic, aiv, mix; elsewhere: another source defines the kernel
    int lanes = 2;
    std::string kernel;              // its name, where it is defined elsewhere
    const KernelSet *also = nullptr; // and where
};

class Device {
  public:
    static Device &get();
    DeviceMemory memory;
    std::recursive_mutex mutex;
    std::string error_text;
    int last_error = 0;
    bool initialised = false;
    bool chosen = false; // a device was set
    int current = 0;
    Stream default_stream;
    std::vector<Stream *> streams;
    uint64_t sync_address = 0;
    Known host; // what the host has waited for

    const ChipFacts &chip();
    void add_kernels(const char *facts, uint64_t facts_size, const uint8_t *const images[2],
                     const uint64_t sizes[2]);
    int launch(const insight_trace_launch_request &request); // an error of the launch, not of the kernel
    Stream &stream(void *handle);
    bool is_stream(void *handle) const;
    int synchronize(Stream &stream);
    int synchronize_all();
    // The program wrote to a buffer: what L2 held of it is stale, and as much of the rest went out.
    void wrote(uint64_t address, uint64_t bytes);
    // Bytes that a copy or a fill of the program touches: on a stream, or at once. What other streams may
    // still do to them is said.
    void copies(Stream *on, const char *call, void *caller, const void *pointer, uint64_t bytes, bool writes);
    void forget_accesses(uint64_t address, uint64_t bytes); // of a buffer that is freed
    // The host has waited for these: what was copied to it by then is there.
    void host_knows(const Known &waited);
    // A copy to pinned memory of the host, on a stream: it is there when the stream was waited for.
    void copies_later(Stream &on, void *to, const uint8_t *from, uint64_t bytes, void *caller);
    void complete_copies(const void *host_memory, uint64_t bytes); // before somebody of ours reads there
    void complete_copies(const Stream &of);
    void say_unfinished_copies(); // at the program's end

  private:
    struct Held {
        uint64_t address, bytes;
        bool dirty, hole;
    };
    struct Kept { // what a launch with these arguments did before
        std::vector<Touched> touched;
        struct Part {
            uint64_t address, bytes, before;
            bool written;
            std::vector<uint8_t> after;
        };
        std::vector<Part> parts;
        double cycles = 0;
        std::string bound;
    };
    struct Access { // of device memory, by a launch or a copy on a stream
        int stream;
        uint64_t count; // of what was put on that stream
        std::vector<Touched> touched;
        std::string what, place;
        void *caller; // of a copy; its place is found where it matters
    };
    void say_race(const Access &one, const Access &other, const Touched &common, const char *why);
    void compare(const Known &known, Access fresh, bool by_host);
    void note(const std::string &kernel, const std::string &place, const std::string &what);
    std::vector<Access> accesses_;
    struct Arriving {
        int stream;
        uint64_t count;
        uint8_t *to;
        std::vector<uint8_t> bytes;
        void *caller;
    };
    template <class Condition> void complete_where(Condition condition);
    std::vector<Arriving> arriving_;
    std::set<std::string> races_said_, notes_said_;

    const ChipFacts &chip_of(const std::string &target);
    bool start_engine();
    void end_engine();
    bool exchange(const std::string &request, std::string &reply, double seconds);
    std::string request_text(const insight_trace_launch_request &request, const KernelEntry &entry,
                             const std::string &symbol);
    void keep(const std::string &key, const std::string &reply_used, Kept kept);
    void hold(uint64_t address, uint64_t bytes, bool dirty, bool hole);
    bool recall(const std::string &key, Kept *&found);

    // By the library that has them, and by null what was loaded last of all.
    using KernelEntries = std::map<std::pair<const void *, std::string>, KernelEntry>;
    static const KernelEntry *kernel_of(const KernelEntries &entries, const void *library,
                                        const std::string &name);
    KernelEntries entries_;
    KernelEntries kernels_; // by the name of the function
    std::vector<KernelSet *> sets_;
    std::map<std::string, ChipFacts> chips_;
    std::multimap<std::string, Kept> kept_;
    uint64_t kept_bytes_ = 0;
    std::vector<Held> held_;
    int socket_ = -1;
    int engine_ = 0; // process
    uint64_t told_generation_ = 0;
    uint64_t launches_ = 0;
    int owner_ = 0; // the process that this state belongs to
};

uint64_t hash_of(const uint8_t *bytes, uint64_t count);
std::string caller_of(void *address); // " at FILE:LINE" of host code
// Where an object of a kernel says that it is, as a line of its source: FILE:LINE, or what was given.
std::string source_line(const std::string &image, const std::string &offset, const std::string &unknown);
std::string source_line(const std::string &place); // PATH.so:OFFSET; others are left as they are

} // namespace insight_trace_program
