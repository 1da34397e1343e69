"""Kernels that mean harm, or do it by mistake: one source with a body for each, chosen by a scalar.

Each entry is what the body does, its C++, and what the message has to say. They share one compilation. More system calls
that no kernel may make are tried in test_escapes.py.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hostile:
    """One body. `seconds` is its time limit; `line` says that the failure has to name a line of the source."""

    name: str
    body: str
    says: str  # a pattern
    seconds: float = 5.0
    line: bool = False


BEFORE = r"""
#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static int recurse(volatile int depth) {
    volatile char room[4096];
    room[0] = static_cast<char>(depth);
    return recurse(depth + 1) + room[0];
}
static void close_all() {
    for (int i = 0; i < 256; ++i) close(i);
}
static std::string beside(const char *name) { // a file of the job: the working folder lies in its folder
    return std::string("../") + name;
}
static void replace_by(const char *name, const char *text) {
    unlink(beside(name).c_str());
    int file = open(beside(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t done = write(file, text, strlen(text));
    (void)done;
    close(file);
}
static void forever() {
    volatile int64_t n = 0;
    while (true) n = n + 1;
}
struct AtLoad { // runs when the object is loaded, before the kernel
    AtLoad() {}
} at_load;
"""

KERNELS = (
    # --- ending the process
    Hostile("exit", "exit(3);", r"the kernel called exit\(3\)"),
    Hostile("exit with 0", "exit(0);", r"the kernel called exit\(0\)"),
    Hostile("quick exit", "quick_exit(4);", r"ended its process with exit code 4"),
    Hostile("_exit", "_exit(0);", r"ended its process with exit code 0"),
    Hostile("_Exit", "_Exit(7);", r"ended its process with exit code 7"),
    Hostile("raw exit", "syscall(SYS_exit_group, 9);", r"ended its process with exit code 9"),
    Hostile("abort", "abort();", r"the kernel aborted"),
    Hostile("raise", "raise(SIGTERM);", r"ended with SIGTERM"),
    Hostile("kill itself", "kill(getpid(), SIGKILL);", r"killed"),
    Hostile("pthread_exit", "pthread_exit(nullptr);", r"aborted|threw an exception|ended"),
    Hostile("terminate", "std::terminate();", r"the kernel aborted"),
    Hostile("throw", "throw 5;", r"the kernel threw an exception"),
    Hostile("throw an error", 'throw std::runtime_error("mine");', r"mine|exception"),
    # --- starting others
    Hostile("fork", "if (fork() == 0) forever();", r"the kernel called fork", line=True),
    Hostile("vfork", "vfork();", r"the kernel called v?fork", line=True),
    Hostile("raw clone", "syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);", r"the kernel called fork", line=True),
    Hostile("fork bomb", "while (true) fork();", r"the kernel called fork", line=True),
    Hostile("daemon", "daemon(0, 0); forever();", r"the kernel called fork", line=True),
    Hostile("exec", 'execl("/bin/sh", "sh", "-c", "echo mine", nullptr);', r"called execve", line=True),
    Hostile("system", 'int r = system("echo mine"); (void)r;', r"no kernel may"),
    Hostile("new session", "setsid();", r"the kernel called setsid", line=True),
    # --- other processes
    Hostile("ptrace the tool", "ptrace(PTRACE_ATTACH, getppid(), 0, 0);", r"called ptrace", line=True),
    Hostile(  # where there is Landlock; to abort is how it tells that it could not
        "open the tool's memory",
        'char n[64]; snprintf(n, sizeof n, "/proc/%d/mem", getppid()); if (open(n, O_RDWR) < 0) abort();',
        r"the kernel aborted",
        line=True,
    ),
    # --- memory
    Hostile("null", "*(volatile int *)args[2] = 1;", r"touched address 0x0", line=True),
    Hostile("wild pointer", "*(volatile int *)0x123456789abc = 1;", r"touched address 0x123456789abc", line=True),
    Hostile("wild jump", "((void (*)())0x1234)();", r"touched address 0x1234"),
    Hostile("call into data", "static char d[8]; ((void (*)())d)();", r"touched address"),
    Hostile("wild memcpy", "memcpy((void *)0x10, (void *)args, 64);", r"touched address", line=True),
    Hostile("read-only memory", 'const_cast<char *>("text")[0] = 1;', r"touched address", line=True),
    Hostile("stack overflow", "recurse(0);", r"overflowed its stack"),
    Hostile("array larger than the stack", "volatile char a[64 << 20]; a[0] = 1; a[sizeof a - 1] = a[0];", r"stack"),
    Hostile("longjmp to nowhere", "static jmp_buf b; longjmp(b, 1);", r"the kernel"),
    Hostile("allocate without end", "while (true) memset(malloc(1 << 20), 1, 1 << 20);", r"used|touched|memory"),
    Hostile("new without end", "while (true) memset(new char[1 << 26], 1, 1 << 26);", r"used|bad_alloc|memory"),
    Hostile("unmap everything", "munmap((void *)0x200000000000, 1 << 20);", r"touched|the kernel|ok"),
    Hostile("free a wild pointer", "free((void *)0x1234567);", r"touched|aborted"),
    Hostile("double free", "void *volatile p = malloc(64); free(p); free(p);", r"aborted"),
    Hostile("division by zero", "volatile int64_t n = 7 / args[2]; (void)n;", r"signal 8", line=True),
    Hostile("illegal instruction", "__builtin_trap();", r"signal"),
    # --- time
    Hostile("endless loop", "forever();", r"still running after 1 s", 1.0),
    Hostile("sleep", "sleep(1000);", r"still running after 1 s", 1.0),
    Hostile("threads without end", "while (true) std::thread(forever).detach();", r".", 1.0),
    Hostile("deadlock with itself", "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m);"
            " pthread_mutex_lock(&m);", r"still running after 1 s", 1.0),
    Hostile("block signals", "sigset_t s; sigfillset(&s); pthread_sigmask(SIG_SETMASK, &s, nullptr); forever();",
            r"still running after 1 s", 1.0),
    # --- what it prints
    Hostile("print without end", 'while (true) printf("%01000d", 1);', r"printed more than 64 MiB", 30.0),
    Hostile("print to stderr without end", 'while (true) fprintf(stderr, "%01000d", 1);', r"printed more", 30.0),
    # --- the runner's files
    Hostile("result is a pipe", 'unlink(beside("result").c_str()); mkfifo(beside("result").c_str(), 0600);'
            " _exit(0);", r"wrote over"),
    Hostile("result is a link to a device", 'symlink("/dev/zero", beside("result").c_str()); _exit(0);', r"wrote over"),
    Hostile("result is a folder", 'mkdir(beside("result").c_str(), 0700); _exit(0);', r"wrote over"),
    Hostile("result is huge", 'int f = open(beside("result").c_str(), O_WRONLY | O_CREAT, 0600);'
            " int r = ftruncate(f, 1ll << 33); (void)r; _exit(0);", r"wrote over"),
    Hostile("result is noise", r'replace_by("result", "\x01\x02\tend\nend\n"); _exit(0);', r"wrote over"),
    Hostile("result without a status", r'replace_by("result", "end\n"); _exit(0);', r"wrote over"),
    Hostile("result with an unknown fault", r'replace_by("result", "status\tbad\nfault\tnobody\nend\n"); _exit(0);',
            r"wrote over"),
    Hostile("result with an endless number",
            r'replace_by("result", ("status\tok\ninstructions\t" + std::string(5000, 57) + "\nend\n").c_str());'
            " _exit(0);", r"wrote over"),
    Hostile("result with a short site", r'replace_by("result", "status\tok\nsite\ta\nend\n"); _exit(0);', r"wrote over"),
    Hostile("result with a pipe that is none",
            r'replace_by("result", "status\tok\nsite\ta\t1\tVADD\t99\nend\n"); _exit(0);', r"wrote over"),
    Hostile("result that says ok and nothing else", r'replace_by("result", "status\tok\nend\n"); _exit(0);',
            r"wrote over"),
    Hostile("result cut in the middle", r'replace_by("result", "status\tok\n"); _exit(0);', r"exit code 0"),
    Hostile("descriptors closed", "close_all();", r"wrote over|cannot"),
    Hostile("records cut off", 'int r = truncate(beside("records").c_str(), 0); (void)r;', r"cut off"),
    Hostile("records are a link", 'unlink(beside("records").c_str());'
            ' int r = symlink("/etc/passwd", beside("records").c_str()); (void)r;', r"wrote over"),
    Hostile("operands spoiled, then a crash", 'int f = open(beside("records.operands").c_str(), O_RDWR); char b[64];'
            " memset(b, 255, sizeof b); ssize_t n = pwrite(f, b, sizeof b, 0); (void)n; __builtin_trap();", r"signal"),
    Hostile("operands spoiled", 'int f = open(beside("records.operands").c_str(), O_RDWR); char b[64];'
            " memset(b, 255, sizeof b); ssize_t n = pwrite(f, b, sizeof b, 0); (void)n;", r"wrote over"),
    Hostile("operands are a pipe", 'unlink(beside("records.operands").c_str());'
            ' mkfifo(beside("records.operands").c_str(), 0600);', r"wrote over"),
    Hostile("tiles are a link to a device", 'unlink(beside("records.tiles").c_str());'
            ' int r = symlink("/dev/zero", beside("records.tiles").c_str()); (void)r;', r"wrote over"),
    Hostile("records are gone", 'unlink(beside("records").c_str());', r"wrote over"),
    Hostile("records are a pipe", 'unlink(beside("records").c_str()); mkfifo(beside("records").c_str(), 0600);',
            r"wrote over"),
    # --- room
    Hostile("fill the disk", 'int f = open("big", O_WRONLY | O_CREAT, 0600); static char b[1 << 20];'
            " while (write(f, b, sizeof b) > 0 && lseek(f, 1ll << 30, SEEK_CUR) > 0) {} abort();", r"signal|aborted"),
    Hostile("descriptors without end", 'while (open("/dev/null", O_RDONLY) >= 0) {} abort();', r"aborted"),
)  # fmt: skip


def source() -> tuple[str, str]:
    """A function for each body, and the kernel that calls the one which the scalar in slot 1 names."""
    functions = "".join(
        f"__attribute__((noinline)) static void body_{n}(int64_t *args) {{ (void)args; {k.body} }}\n"
        for n, k in enumerate(KERNELS)
    )
    calls = "".join(f"    if (args[1] == {n}) body_{n}(args);\n" for n in range(len(KERNELS)))
    return BEFORE + functions, f"    pipe_barrier(PIPE_ALL);\n{calls}    pipe_barrier(PIPE_ALL);"
