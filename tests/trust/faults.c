// Every call of libc that changes files, in one place: counted, and the N-th fails or ends the process. For tests.
//
// A program that has this preloaded arms it with fault_arm(n, error) (error -1: the process is killed there; n 0:
// only counts) and reads fault_count(). It holds for the process that armed it and not for those it starts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pid_t g_for;
static long g_count, g_at;
static int g_errno;

void fault_arm(long at, int error) {
    g_for = getpid();
    g_count = 0;
    g_at = at;
    g_errno = error;
}

long fault_count(void) { return g_count; }

// Whether this call is the one that fails.
static int fails(void) {
    if (!g_for || getpid() != g_for || ++g_count != g_at) return 0;
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
CALL(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
CALL(ssize_t, copy_file_range, (int a, off64_t *b, int c, off64_t *d, size_t e, unsigned f), (a, b, c, d, e, f))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags))
CALL(int, link, (const char *from, const char *to), (from, to))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(int, unlink, (const char *path), (path))
CALL(int, unlinkat, (int at, const char *path, int flags), (at, path, flags))
CALL(int, rmdir, (const char *path), (path))
CALL(int, ftruncate64, (int file, off64_t size), (file, size))
CALL(int, fsync, (int file), (file))
CALL(int, chmod, (const char *path, mode_t mode), (path, mode))
