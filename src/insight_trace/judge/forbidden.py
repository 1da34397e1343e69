"""What a kernel has no use for: files, processes, other code in its process, headers that are not the device's.

The sandbox keeps candidates from files, processes and the network. What keeps them from the engine, which shares their
process: under strict the engine checks every plain store (engine/scalar_memory.hpp); here, code is refused whose
stores the compiler does not show it, that calls anything but the tile library, or runs when it is loaded.
"""

from __future__ import annotations

import re
from pathlib import Path

from insight_trace.guard.matching import code_tokens

_WORDS = frozenset({
    "asm", "__asm__", "__asm", "incbin", "syscall", "dlopen", "dlsym", "dlvsym", "fopen", "freopen", "openat", "ifstream",
    "ofstream", "fstream", "filesystem", "mmap", "mprotect", "popen", "vfork", "execve", "execl", "execv", "posix_spawn",
    "ptrace", "getenv", "setenv", "sigaction", "pthread_create", "constructor", "destructor", "insight_trace",
    "__builtin_return_address", "__builtin_frame_address", "clock_gettime", "gettimeofday", "longjmp", "setjmp", "atexit",
    "__cxa_atexit", "__libc_start_main",
})  # fmt: skip
# in what the preprocessor makes of a candidate: stores that the compiler would not show to the engine
_UNSEEN = frozenset({
    "asm", "__asm__", "__asm", "no_sanitize", "__no_sanitize__", "no_sanitize_thread", "naked", "__naked__", "optimize",
    "__optimize__", "constructor", "__constructor__", "init_priority", "section", "__section__", "ifunc", "__ifunc__",
    "alias", "__alias__", "weakref", "thread_local", "__thread",
    "disable_sanitizer_instrumentation",
})  # fmt: skip
_UNSEEN_BEGINNINGS = ("__builtin_ia32", "__builtin_aarch64", "__builtin_neon", "_mm_", "_mm256_", "_mm512_")
_BUILTINS = re.compile(
    r"__builtin_(expect|clz|ctz|popcount|ffs|parity|bswap|abs|f?abs|f?min|f?max|inf|nan|huge_val|is_constant|constant_p|"
    r"unreachable|assume|bit_cast|types_compatible_p|choose_expr|object_size|isnan|isinf|isfinite|sqrt|exp|log|pow|"
    r"floor|ceil|round|trunc|rint|sin|cos|tan|fma|signbit|copysign|addressof|offsetof)\w*"
)
# what the tile library and the compiler call
_CALLS = re.compile(
    r"insight_trace_\w+|__tsan_\w+|__gmon_start__|_ITM_\w+|__cxa_finalize|__gxx_personality_v0|_Unwind_Resume|"
    r"_ZSt9terminatev|__stack_chk_fail|__assert_fail|printf|puts|putchar|"
    r"(f?(abs|min|max|mod|ma)|sqrt|exp2?|expm1|log(2|10|1p)?|pow|sin|cos|tan|a?(sin|cos|tan)h?|atan2|floor|ceil|round|"
    r"l?l?rint|l?l?round|trunc|copysign|hypot|cbrt|ldexp|frexp|remainder|erfc?|nearbyint)[fl]?"
)
_LOADED_CODE = 2  # pointers: the compiler's own
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


def unseen_code(preprocessed: str, candidate: Path) -> tuple[str, int]:
    """The first word of a candidate, as the preprocessor made it, that hides stores from the engine, and its line."""
    own: dict[int, str] = {}
    number, mine = 0, False
    for words in preprocessed.splitlines():
        if found := re.match(r'#(?:line)?\s+(\d+)\s+"([^"]*)"', words):
            number, mine = int(found[1]), found[2] == str(candidate)
            continue
        if mine:
            own[number] = f"{own.get(number, '')} {words}"
        number += 1
    for at, words in own.items():
        if re.search(r"#\s*pragma\s+(GCC|clang)\b", words):
            return "#pragma", at
    text = "\n".join(own.get(at, "") for at in range(1, max(own, default=0) + 1))
    for token, at in code_tokens(text):
        builtin = token.startswith("__builtin_") and _BUILTINS.fullmatch(token) is None
        if token in _UNSEEN or token.startswith(_UNSEEN_BEGINNINGS) or builtin:
            return token, at
    return "", 0


def forbidden_calls(compiled: Path) -> str:
    """What a compiled candidate calls beside the tile library, or that it runs code when it is loaded; "" for neither."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    with compiled.open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".dynsym")
        for symbol in symbols.iter_symbols() if isinstance(symbols, SymbolTableSection) else ():
            if symbol.name and symbol["st_shndx"] == "SHN_UNDEF" and _CALLS.fullmatch(symbol.name) is None:
                return f"it calls {symbol.name[:80]}"
        for name in (".init_array", ".preinit_array", ".ctors"):
            section = elf.get_section_by_name(name)
            if section is not None and section["sh_size"] > _LOADED_CODE * elf.elfclass // 8:
                return "it runs code when it is loaded"
    return ""
