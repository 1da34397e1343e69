#include "sandbox.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "failure.hpp"

namespace insight_trace::engine {

bool read_sandbox(const std::vector<std::string> &f, Sandbox &into) {
    if (f[0] == "sandbox") {
        into.on = f.at(1) != "off";
        into.strict = f.at(1) == "strict";
    } else if (f[0] == "allow")
        (f.at(1) == "write" ? into.writable : into.readable).push_back(f.at(2));
    else if (f[0] == "bound")
        (f.at(1) == "files" ? into.files : into.file) = std::stoull(f.at(2));
    else
        return false;
    return true;
}

namespace {

// --- system calls
// --------------------------------------------------------------------------------------------

enum class May { Kernel, User, Change, Host, Nobody }; // system_calls.def

struct Call {
    int number;
    const char *name;
    May who;
};

constexpr Call kCalls[] = {
#define CALL(name, who) {SYS_##name, #name, May::who},
#include "system_calls.def"
#undef CALL
};

// What a host is kept from under every sandbox: reading what other processes hold.
constexpr int kTracing[] = {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev};

constexpr uint32_t kNewest = 451; // calls from here on: who finds one absent knows how to do without

constexpr uint32_t kNamespaces = 0x7e020080; // CLONE_NEW*, of mounts, processes, users, the network, time ...

// Commands of fcntl that touch the descriptor and nobody else: duplicates, flags, locks.
constexpr int kDescriptorCommands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,  F_SETFD, F_GETFL, F_SETFL,
                                       F_GETLK, F_SETLK,         F_SETLKW, 36,      37,      38};

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
constexpr int kNamesOfItsOwn[] = {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA};

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// A filter of calls, written from top to bottom: the first rule that fits is taken.
class Filter {
  public:
    Filter() {
        load(offsetof(seccomp_data, arch));
        jump(BPF_JEQ, kArchitecture, 1, 0);
        end(SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
        jump(BPF_JGE, 0x40000000u, 0, 1); // the other numbering, x32
        end(SECCOMP_RET_KILL_PROCESS);
#endif
    }

    void on(int call, uint32_t what) {
        jump(BPF_JEQ, static_cast<uint32_t>(call), 0, 1);
        end(what);
    }

    template <typename Wanted> void on_those(Wanted wanted, uint32_t what) {
        for (const Call &call : kCalls)
            if (wanted(call.who)) on(call.number, what);
    }

    void from(uint32_t call, uint32_t what) {
        jump(BPF_JGE, call, 0, 1);
        end(what);
    }

    // Allowed if an argument is one of these.
    template <size_t count>
    void only(int call, int argument, const int (&values)[count], uint32_t otherwise) {
        jump(BPF_JEQ, static_cast<uint32_t>(call), 0, static_cast<uint8_t>(2 * count + 2));
        load(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument));
        for (int value : values) on(value, SECCOMP_RET_ALLOW);
        end(otherwise);
    }

    // New threads of this process, and nothing else that clone does.
    void only_threads() {
        jump(BPF_JEQ, SYS_clone, 0, 6);
        load(offsetof(seccomp_data, args));
        jump(BPF_JSET, kNamespaces, 0, 1);
        end(SECCOMP_RET_TRAP);
        jump(BPF_JSET, CLONE_THREAD, 1, 0);
        end(SECCOMP_RET_TRAP);
        end(SECCOMP_RET_ALLOW);
    }

    void no_namespaces() {
        jump(BPF_JEQ, SYS_clone, 0, 4);
        load(offsetof(seccomp_data, args));
        jump(BPF_JSET, kNamespaces, 0, 1);
        end(SECCOMP_RET_ERRNO | EPERM);
        end(SECCOMP_RET_ALLOW);
    }

    // For all threads. A machine without filters goes on with limits alone, as doctor tells, but for strict.
    void install(uint32_t otherwise, bool needed) {
        end(otherwise);
        sock_fprog filter{static_cast<unsigned short>(program_.size()), program_.data()};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        const bool done = kArchitecture && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                                   SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
        if (!done && needed)
            fail(Fault::Environment, {},
                 "--sandbox strict needs seccomp filters, which this machine does not have");
    }

  private:
    std::vector<sock_filter> program_;

    void load(size_t offset) {
        program_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
    }
    void jump(int test, uint32_t value, uint8_t if_so, uint8_t if_not) {
        program_.push_back(BPF_JUMP(static_cast<uint16_t>(BPF_JMP | test | BPF_K), value, if_so, if_not));
    }
    void end(uint32_t what) { program_.push_back(BPF_STMT(BPF_RET | BPF_K, what)); }
};

void allow_what_kernels_need(bool strict) {
    Filter filter;
#ifdef SYS_clone3
    filter.on(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS); // its arguments are out of reach here: clone serves
#endif
    filter.only_threads();
    const int ours[] = {static_cast<int>(getpid())}, none[] = {0};
    filter.only(SYS_kill, 0, ours, SECCOMP_RET_TRAP); // abort() and raise() need it
    filter.only(SYS_tgkill, 0, ours, SECCOMP_RET_TRAP);
    filter.only(SYS_prlimit64, 0, none, SECCOMP_RET_TRAP);
    filter.only(SYS_fcntl, 1, kDescriptorCommands, SECCOMP_RET_TRAP);
    filter.only(SYS_prctl, 0, kNamesOfItsOwn, SECCOMP_RET_TRAP);
    filter.on(SYS_ioctl, SECCOMP_RET_ERRNO | ENOTTY); // isatty asks; no kernel has a device to talk to
    const May last = strict ? May::Kernel : May::Change;
    filter.on_those([&](May who) { return who <= last; }, SECCOMP_RET_ALLOW);
    filter.from(kNewest, SECCOMP_RET_ERRNO | ENOSYS);
    filter.install(SECCOMP_RET_TRAP, strict);
}

// --- files
// ---------------------------------------------------------------------------------------------------

// As in linux/landlock.h, which older systems lack.
struct RulesetAttributes {
    uint64_t files = 0, network = 0, scoped = 0;
};
struct __attribute__((packed)) PathRule {
    uint64_t allowed = 0;
    int32_t folder = -1;
};
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint64_t kExecute = 1, kWriteFile = 2, kReadFile = 4, kReadFolder = 8, kMakeCharDevice = 1u << 6,
                   kMakeBlockDevice = 1u << 11, kTruncate = 1u << 14, kIoctl = 1u << 15;
constexpr uint64_t kSignals = 2, kAllScopes = 3, kAllNetwork = 3;
constexpr int kTruncateVersion = 3, kNetworkVersion = 4, kScopeVersion = 6;

int landlock_version() { return static_cast<int>(syscall(kCreateRuleset, nullptr, 0, 1)); }

// All rights that this version knows: what is not asked for is not kept away.
uint64_t all_file_rights(int version) {
    const int bits = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13;
    return (1ull << bits) - 1;
}

int ruleset_of(RulesetAttributes attributes, int version) {
    if (version < kNetworkVersion) attributes.network = 0;
    if (version < kScopeVersion) attributes.scoped = 0;
    const size_t known = version >= kScopeVersion ? 24 : version >= kNetworkVersion ? 16 : 8;
    return static_cast<int>(syscall(kCreateRuleset, &attributes, known, 0));
}

void allow_below(int ruleset, const std::string &path, uint64_t allowed) {
    int folder = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (folder < 0) return; // what is not there needs no rule
    struct stat facts{};
    const bool is_file = fstat(folder, &facts) == 0 && !S_ISDIR(facts.st_mode);
    PathRule rule;
    rule.allowed = is_file ? allowed & (kExecute | kWriteFile | kReadFile | kTruncate) : allowed;
    rule.folder = folder;
    const bool done = syscall(kAddRule, ruleset, 1, &rule, 0) == 0;
    close(folder);
    if (!done) fail(Fault::Environment, {}, "--sandbox strict cannot allow %s", path.c_str());
}

void confine_to_folders(const Sandbox &sandbox, int least_version, const char *least_system) {
    const int version = landlock_version();
    if (version < least_version)
        fail(Fault::Environment, {},
             "--sandbox strict needs Landlock version %d (Linux %s or newer); this machine has %s",
             least_version, least_system,
             version > 0 ? ("version " + std::to_string(version)).c_str() : "none");
    const uint64_t all = all_file_rights(version);
    const int ruleset = ruleset_of({all, kAllNetwork, kAllScopes}, version);
    if (ruleset < 0) fail(Fault::Environment, {}, "--sandbox strict cannot be entered: %s", strerror(errno));
    for (const std::string &path : sandbox.readable)
        allow_below(ruleset, path, kExecute | kReadFile | kReadFolder);
    for (const std::string &path : sandbox.writable)
        allow_below(ruleset, path, all & ~(kMakeCharDevice | kMakeBlockDevice | kIoctl));
    allow_below(ruleset, "/proc/self", kReadFile | kReadFolder);
    for (const char *path : {"/dev/null", "/dev/urandom"}) allow_below(ruleset, path, kReadFile | kWriteFile);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(kRestrictSelf, ruleset, 0) != 0)
        fail(Fault::Environment, {}, "--sandbox strict cannot be entered: %s", strerror(errno));
    close(ruleset);
}

// A process with rules of its own, whichever they are, cannot open the memory of one without them
// (/proc/N/mem), and where the system knows that, sends it no signals. What else is kept from it here, block
// devices, no kernel makes. Where the system has no Landlock nothing happens.
void keep_from_other_processes() {
    const int ruleset = ruleset_of({kMakeBlockDevice, 0, kSignals}, landlock_version());
    if (ruleset < 0) return;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    syscall(kRestrictSelf, ruleset, 0);
    close(ruleset);
}

void lower(int kind, uint64_t most) {
    rlimit bound{};
    if (getrlimit(static_cast<__rlimit_resource_t>(kind), &bound) != 0) return;
    bound.rlim_max = bound.rlim_max == RLIM_INFINITY ? most : std::min<uint64_t>(most, bound.rlim_max);
    bound.rlim_cur = bound.rlim_max;
    setrlimit(static_cast<__rlimit_resource_t>(kind), &bound);
}

} // namespace

const char *forbidden_call(int number) {
    if (number == SYS_clone) return "fork"; // of threads it is allowed
    for (const Call &call : kCalls)
        if (call.number == number) return call.name;
    return nullptr;
}

void enter_host_sandbox(const Sandbox &sandbox) {
    if (sandbox.strict) // signals to programs of its own only are not for a filter to tell apart
        confine_to_folders(sandbox, kScopeVersion, "6.12");
    Filter filter;
    for (int call : kTracing) filter.on(call, SECCOMP_RET_TRAP);
    if (sandbox.strict) {
        const int none[] = {0};
#ifdef SYS_clone3
        filter.on(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
#endif
        filter.no_namespaces();
        filter.only(SYS_prlimit64, 0, none, SECCOMP_RET_ERRNO | EPERM);
        filter.only(SYS_fcntl, 1, kDescriptorCommands, SECCOMP_RET_ERRNO | EPERM);
        filter.on(SYS_ioctl, SECCOMP_RET_ERRNO | ENOTTY);
        // as if it had no permission, which programs know how to take
        filter.from(kNewest, SECCOMP_RET_ERRNO | ENOSYS);
        filter.on_those([](May who) { return who == May::Change || who == May::Nobody; },
                        SECCOMP_RET_ERRNO | EPERM);
    }
    filter.install(SECCOMP_RET_ALLOW, sandbox.strict);
}

void enter_sandbox(const Sandbox &sandbox, uint64_t data_bytes, double seconds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)data_bytes;
    (void)seconds;
    if (!sandbox.strict) return; // a sanitizer reserves memory and looks at itself from a process of its own
#else
    if (!sandbox.on) return;
    lower(RLIMIT_CORE, 0);
    if (sandbox.files) lower(RLIMIT_NOFILE, sandbox.files);
    if (sandbox.file) lower(RLIMIT_FSIZE, sandbox.file);
    if (data_bytes) lower(RLIMIT_DATA, data_bytes);
    const double cores = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
    if (seconds > 0) lower(RLIMIT_CPU, static_cast<uint64_t>(std::ceil(seconds * (cores + 1))) + 10);
#endif
    if (sandbox.strict)
        confine_to_folders(sandbox, kTruncateVersion, "6.2");
    else
        keep_from_other_processes();
    allow_what_kernels_need(sandbox.strict);
}

} // namespace insight_trace::engine
