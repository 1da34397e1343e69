// Every call of libc that changes files, in one place: counted, and the N-th fails or ends the process. For tests.
//
// FAULT_AT=N FAULT_ERROR=E: the N-th call fails with that error, or ends the process (-1); FAULT_COUNT=FILE: how many there
// were. It holds for the process that is started so and not for those that it starts; with FAULT_IN=WORD for the first of
// them whose command line has this word.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pid_t g_for;
static long g_count, g_at;
static int g_errno;

static int g_said = -1; // open from the start: a process may be confined later, or killed

__attribute__((constructor)) static void arm(void) {
    const char *file = getenv("FAULT_COUNT"), *at = getenv("FAULT_AT"), *error = getenv("FAULT_ERROR");
    const char *in = getenv("FAULT_IN");
    if (!file) return;
    if (in) {
        char words[4096];
        int self = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY);
        ssize_t size = read(self, words, sizeof words);
        close(self);
        if (size <= 0 || !memmem(words, (size_t)size, in, strlen(in))) return;
    }
    g_said = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (g_said < 0) return;
    g_at = at ? atol(at) : 0;
    g_errno = error ? atoi(error) : 0;
    unsetenv("FAULT_COUNT");
    g_for = getpid();
}

static void say(void) {
    char text[32];
    int size = snprintf(text, sizeof text, "%ld\n", g_count);
    syscall(SYS_pwrite64, g_said, text, size, 0);
}

// Whether this call is the one that fails.
static int fails(void) {
    if (!g_for || getpid() != g_for) return 0;
    ++g_count;
    say();
    if (g_count != g_at) return 0;
    if (g_errno < 0) kill(getpid(), SIGKILL);
    errno = g_errno;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define CALL(kind, name, parameters, arguments) \
    kind name parameters { return fails() ? -1 : REAL(name) arguments; }

static int changes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT); }

#define OPEN(name, parameters, arguments)                          \
    int name parameters {                                          \
        mode_t mode = 0;                                           \
        if (flags & (O_CREAT | O_TMPFILE)) {                       \
            va_list list;                                          \
            va_start(list, flags);                                 \
            mode = va_arg(list, mode_t);                           \
            va_end(list);                                          \
        }                                                          \
        return changes(flags) && fails() ? -1 : REAL(name) arguments; \
    }
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode))
OPEN(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode))

ssize_t write(int file, const void *data, size_t size) {
    return file > 2 && fails() ? -1 : REAL(write)(file, data, size);
}
CALL(ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count))
CALL(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
CALL(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
CALL(ssize_t, copy_file_range, (int a, off64_t *b, int c, off64_t *d, size_t e, unsigned f), (a, b, c, d, e, f))
CALL(ssize_t, sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size))
CALL(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
CALL(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags))
CALL(int, link, (const char *from, const char *to), (from, to))
CALL(int, linkat, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
CALL(int, symlink, (const char *to, const char *path), (to, path))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode))
CALL(int, unlink, (const char *path), (path))
CALL(int, unlinkat, (int at, const char *path, int flags), (at, path, flags))
CALL(int, rmdir, (const char *path), (path))
CALL(int, truncate64, (const char *path, off64_t size), (path, size))
CALL(int, ftruncate64, (int file, off64_t size), (file, size))
CALL(int, fallocate64, (int file, int mode, off64_t at, off64_t size), (file, mode, at, size))
CALL(int, fsync, (int file), (file))
CALL(int, fdatasync, (int file), (file))
CALL(int, chmod, (const char *path, mode_t mode), (path, mode))
CALL(int, fchmod, (int file, mode_t mode), (file, mode))
CALL(int, utimensat, (int at, const char *path, const struct timespec times[2], int flags), (at, path, times, flags))

// It gives the error instead of setting errno.
int posix_fallocate64(int file, off64_t at, off64_t size) {
    return fails() ? g_errno : REAL(posix_fallocate64)(file, at, size);
}

// What C programs write through a buffer (NumPy's tofile); the buffer's own calls stay inside libc.
size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
    return fileno(file) > 2 && fails() ? 0 : REAL(fwrite)(data, size, count, file);
}
int fclose(FILE *file) {
    int number = fileno(file);
    int mode = number > 2 ? fcntl(number, F_GETFL) & O_ACCMODE : O_RDONLY;
    if (mode != O_RDONLY && fails()) {
        int error = errno;
        REAL(fclose)(file);
        errno = error;
        return EOF;
    }
    return REAL(fclose)(file);
}
