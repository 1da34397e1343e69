"""What a kernel has no use for: files, processes, other code in its process, headers that are not the device's.

The sandbox keeps candidates from files, processes and the network. Against writing over the engine, which shares their
process, there is only this list (docs/judge.md).
"""

from __future__ import annotations

import re

from insight_trace.guard.matching import code_tokens

_WORDS = frozenset({
    "asm", "__asm__", "__asm", "incbin", "syscall", "dlopen", "dlsym", "dlvsym", "fopen", "freopen", "openat", "ifstream",
    "ofstream", "fstream", "filesystem", "mmap", "mprotect", "popen", "vfork", "execve", "execl", "execv", "posix_spawn",
    "ptrace", "getenv", "setenv", "sigaction", "pthread_create", "constructor", "destructor", "insight_trace",
    "__builtin_return_address", "__builtin_frame_address", "clock_gettime", "gettimeofday", "longjmp", "setjmp", "atexit",
    "__cxa_atexit", "__libc_start_main",
})  # fmt: skip
_INCLUDE = re.compile(r"^\s*#\s*(include|import|include_next|embed|line|pragma)\b\s*(.*)$")
_HEADER = re.compile(r'[<"](\w[\w./-]*)[>"]')
_HOST_HEADERS = frozenset({
    "fstream", "filesystem", "thread", "mutex", "future", "cstdlib", "stdlib.h", "csignal", "signal.h", "csetjmp",
    "setjmp.h",
    "unistd.h", "fcntl.h", "dlfcn.h", "spawn.h", "pthread.h", "link.h", "elf.h", "ucontext.h", "chrono", "ctime", "time.h",
})  # fmt: skip
_HOST_FOLDERS = ("sys/", "linux/", "asm/", "bits/", "net/", "arpa/", "insight_trace/")


def forbidden(text: str) -> tuple[str, int]:
    """The first thing that a kernel may not have, and its line; "", 0 for a candidate without any."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := _INCLUDE.match(line):
            kind, what = found[1], found[2].strip()
            if kind == "include" and not _is_for_devices(what):
                return f"#include {what[:60]}", number
            if kind in ("import", "include_next", "embed"):
                return f"#{kind}", number
            if kind == "line":
                return "#line", number
    for token, number in code_tokens(text):
        if token in _WORDS:
            return token, number
    return "", 0


def _is_for_devices(header: str) -> bool:
    """By its name: of the tile library, or of the language."""
    found = _HEADER.match(header)
    if found is None or ".." in found[1]:
        return False
    return found[1] not in _HOST_HEADERS and not found[1].startswith(_HOST_FOLDERS)
