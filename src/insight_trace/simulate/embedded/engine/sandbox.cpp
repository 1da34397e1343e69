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

struct Call {
    long number;
    const char *name;
};

constexpr Call kTracing[] = {
    {SYS_ptrace, "ptrace"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
};

constexpr Call kForbidden[] = {
#ifdef SYS_fork
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
#endif
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_setns, "setns"},
    {SYS_unshare, "unshare"},
    {SYS_mount, "mount"},
    {SYS_umount2, "umount"},
    {SYS_pivot_root, "pivot_root"},
    {SYS_chroot, "chroot"},
    {SYS_reboot, "reboot"},
    {SYS_bpf, "bpf"},
    {SYS_perf_event_open, "perf_event_open"},
    {SYS_init_module, "init_module"},
    {SYS_finit_module, "finit_module"},
    {SYS_swapon, "swapon"},
    {SYS_setsid, "setsid"},
    {SYS_setpgid, "setpgid"},
    {SYS_keyctl, "keyctl"},
#ifdef SYS_io_uring_setup
    {SYS_io_uring_setup, "io_uring_setup"},
#endif
#ifdef SYS_pidfd_send_signal
    {SYS_pidfd_send_signal, "pidfd_send_signal"},
#endif
};

// Allowed for this process itself, as abort() and raise() need it; the first argument says for whom.
constexpr Call kForOurselves[] = {{SYS_kill, "kill"}, {SYS_tgkill, "tgkill"}, {SYS_tkill, "tkill"}};

constexpr Call kNetwork[] = {{SYS_socket, "socket"}, {SYS_connect, "connect"}, {SYS_bind, "bind"}};

constexpr Call kClone[] = {{SYS_clone, "fork"}};

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

using Program = std::vector<sock_filter>;

void load(Program &program, size_t offset) {
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
}

void unless_equal_skip(Program &program, uint32_t value, uint8_t count) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
}

void end_with(Program &program, uint32_t what) { program.push_back(BPF_STMT(BPF_RET | BPF_K, what)); }

template <size_t count> void trap(Program &program, const Call (&calls)[count]) {
    for (const Call &call : calls) {
        unless_equal_skip(program, static_cast<uint32_t>(call.number), 1);
        end_with(program, SECCOMP_RET_TRAP);
    }
}

Program beginning() {
    Program program;
    load(program, offsetof(seccomp_data, arch));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    end_with(program, SECCOMP_RET_KILL_PROCESS);
    load(program, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1)); // the other numbering, x32
    end_with(program, SECCOMP_RET_KILL_PROCESS);
#endif
    return program;
}

void install(Program &program) {
    if (!kArchitecture) return;
    end_with(program, SECCOMP_RET_ALLOW);
    sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    // for all threads; a machine without filters goes on with limits alone, as doctor tells
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
}

void forbid_calls(bool network) {
    Program program = beginning();
#ifdef SYS_clone3
    // its arguments cannot be looked at from here; who finds it absent takes clone
    unless_equal_skip(program, SYS_clone3, 1);
    end_with(program, SECCOMP_RET_ERRNO | ENOSYS);
#endif
    trap(program, kTracing);
    trap(program, kForbidden);
    if (network) trap(program, kNetwork);
    const uint32_t first_argument = offsetof(seccomp_data, args[0]);
    unless_equal_skip(program, SYS_clone, 4);
    load(program, first_argument);
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
    end_with(program, SECCOMP_RET_TRAP);
    end_with(program, SECCOMP_RET_ALLOW);
    for (const Call &call : kForOurselves) {
        if (call.number == SYS_tkill)
            continue; // names a thread, which need not be ours: seldom used, left out
        unless_equal_skip(program, static_cast<uint32_t>(call.number), 4);
        load(program, first_argument);
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(getpid()), 1, 0));
        end_with(program, SECCOMP_RET_TRAP);
        end_with(program, SECCOMP_RET_ALLOW);
    }
    unless_equal_skip(program, SYS_tkill, 1);
    end_with(program, SECCOMP_RET_TRAP);
    install(program);
}

// --- files
// ---------------------------------------------------------------------------------------------------

// As in linux/landlock.h, which older systems lack.
struct RulesetAttributes {
    uint64_t files = 0;
};
struct __attribute__((packed)) PathRule {
    uint64_t allowed = 0;
    int32_t folder = -1;
};
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint64_t kExecute = 1, kWriteFile = 2, kReadFile = 4, kReadFolder = 8, kMakeBlockDevice = 1u << 11;
constexpr uint64_t kAllOfFirst = (1u << 13) - 1;

void allow_below(int ruleset, const std::string &path, uint64_t allowed) {
    int folder = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (folder < 0) return; // what is not there needs no rule
    struct stat facts{};
    const bool is_file = fstat(folder, &facts) == 0 && !S_ISDIR(facts.st_mode);
    PathRule rule;
    rule.allowed = is_file ? allowed & (kExecute | kWriteFile | kReadFile) : allowed;
    rule.folder = folder;
    syscall(kAddRule, ruleset, 1, &rule, 0);
    close(folder);
}

void confine_to_folders(const Sandbox &sandbox) {
    RulesetAttributes attributes;
    attributes.files = kAllOfFirst;
    int ruleset = static_cast<int>(syscall(kCreateRuleset, &attributes, sizeof attributes, 0));
    if (ruleset < 0)
        fail(Fault::Environment, {},
             "--sandbox strict needs Landlock (Linux 5.13 or newer), which this machine does not have: %s",
             strerror(errno));
    for (const std::string &path : sandbox.readable)
        allow_below(ruleset, path, kExecute | kReadFile | kReadFolder);
    for (const std::string &path : sandbox.writable) allow_below(ruleset, path, kAllOfFirst);
    for (const char *path : {"/proc/self", "/dev/null", "/dev/urandom"})
        allow_below(ruleset, path, kReadFile | kReadFolder | kWriteFile);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(kRestrictSelf, ruleset, 0) != 0)
        fail(Fault::Environment, {}, "--sandbox strict cannot be entered: %s", strerror(errno));
    close(ruleset);
}

// A process with rules of its own, whichever they are, cannot open the memory of one without them
// (/proc/N/mem). What is kept from it here, block devices, no kernel makes. Where the system has no Landlock
// nothing happens.
void keep_from_other_memory() {
    RulesetAttributes attributes;
    attributes.files = kMakeBlockDevice;
    const int ruleset = static_cast<int>(syscall(kCreateRuleset, &attributes, sizeof attributes, 0));
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
    const char *name = nullptr;
    auto look = [&](const auto &calls) {
        for (const Call &call : calls)
            if (call.number == number) name = call.name;
    };
    look(kTracing);
    look(kForbidden);
    look(kForOurselves);
    look(kNetwork);
    look(kClone);
    return name;
}

void enter_host_sandbox(const Sandbox &sandbox) {
    if (sandbox.strict) confine_to_folders(sandbox);
    Program program = beginning();
    trap(program, kTracing);
    if (sandbox.strict) trap(program, kNetwork);
    install(program);
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
    sandbox.strict ? confine_to_folders(sandbox) : keep_from_other_memory();
    forbid_calls(sandbox.strict);
}

} // namespace insight_trace::engine
