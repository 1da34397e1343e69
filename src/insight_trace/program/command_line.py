"""The vendor compiler's command line: which inputs, which cores, and what of it the host compiler takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from insight_trace.chips import TARGETS, family_named
from insight_trace.errors import RequestError

_JOINED_OR_NEXT = ("-I", "-D", "-U", "-L", "-l", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
_NEXT = frozenset(
    {
        "-o",
        "-x",
        "-MF",
        "-MT",
        "-MQ",
        "-mllvm",
        "-Xclang",
        "-Xlinker",
        "-T",
        "-u",
        "-z",
        "-framework",
        "-arch",
    }
)
_DROPPED_WITH_NEXT = frozenset({"-mllvm", "-Xclang", "-arch", "-framework"})
_KERNEL_SUFFIXES = frozenset({".asc", ".cce"})
_SOURCE_SUFFIXES = frozenset({".cpp", ".cc", ".cxx", ".c", ".C", ".ii", ".i"}) | _KERNEL_SUFFIXES
_KERNEL_LANGUAGES = frozenset({"cce", "asc"})
# what the host compiler knows, too
_KEPT = re.compile(
    r"-(?:std=(?:gnu|c)(?:\+\+)?\w+|O[0-3sg]?|Ofast|g\d?|ggdb\d?|f(?:PIC|pic|PIE|pie|openmp|permissive|exceptions|no-exceptions|"
    r"visibility=\w+|visibility-inlines-hidden|no-strict-aliasing|strict-aliasing|no-common|common|lto|no-lto|no-plt|"
    r"stack-protector(?:-strong|-all)?|no-stack-protector|data-sections|function-sections|unroll-loops|sanitize=[\w,]+|"
    r"diagnostics-color(?:=\w+)?|no-omit-frame-pointer|omit-frame-pointer|no-builtin|signed-char|unsigned-char|short-enums|wrapv|"
    r"template-depth=\d+|constexpr-\w+-limit=\d+|no-gnu-unique)|"
    r"m(?:arch|tune|cpu)=[\w.+-]+|pthread|pipe|s|static-libstdc\+\+|static-libgcc|static|rdynamic|nostdlib|nostdinc|nodefaultlibs|no-pie|pie|"
    r"Wl,.*|P|C|dM|H)"
)
_LINK_ONLY = re.compile(r"-(?:Wl,.*|L.*|l.*|s|static.*|rdynamic|nostdlib|nodefaultlibs|no-pie|pie|shared)")
_MODES = {
    "-E": "preprocess",
    "-c": "compile",
    "-dc": "compile",
    "-S": "assemble",
    "-M": "depend",
    "-MM": "depend",
}
_ARCH = re.compile(r"--?(npu-arch|cce-aicore-arch|cce-soc-version|cce-aicore-soc|npu-soc)=(.+)")


@dataclass(slots=True)
class Input:
    path: str
    kernel: bool  # may hold kernels and launches
    source: bool = True
    language: str = ""  # as -x names it for the host compiler


@dataclass(slots=True)
class CommandLine:
    """One call of the compiler."""

    mode: str = "link"  # preprocess, compile, assemble, depend, link
    output: str | None = None
    inputs: list[Input] = field(default_factory=list)
    preprocessor: list[str] = field(default_factory=list)  # -I, -D, …
    kept: list[str] = field(default_factory=list)  # other flags that the host compiler knows
    link: list[str] = field(default_factory=list)
    depends: list[str] = field(default_factory=list)  # -MD, -MF, …
    shared: bool = False
    target: str = "a2a3"
    sides: tuple[str, ...] = ("cube", "vector")
    auto_sync: bool = False  # the vendor's compiler adds waits of the scalar unit
    device_only: bool = False  # a file of kernels, which a program loads and launches by their names
    both_kinds: bool = False  # a kernel starts on cube and vector cores, also where only one has work
    ignored: list[str] = field(default_factory=list)
    print_only: list[str] = field(default_factory=list)  # --version and the like

    @property
    def standard(self) -> str:
        return next((flag for flag in reversed(self.kept) if flag.startswith("-std=")), "-std=gnu++17")

    @property
    def optimisation(self) -> str:
        return next((flag for flag in reversed(self.kept) if re.match(r"-O", flag)), "-O2")


def parse(arguments: Sequence[str]) -> CommandLine:
    """What a call of the compiler asks for."""
    line = CommandLine()
    language = ""
    arch_said = False
    words = iter(_expanded(arguments))
    for word in words:
        if word in ("-Xhost-start", "-Xhost-end", "-Xaicore-start", "-Xaicore-end"):
            continue
        if word in _DROPPED_WITH_NEXT:
            line.ignored.append(f"{word} {next(words, '')}")
        elif word == "-o":
            line.output = next(words, "")
        elif word.startswith("-o") and len(word) > 2 and not word.startswith("-offload"):
            line.output = word[2:]
        elif word == "-x" or (word.startswith("-x") and len(word) > 2):
            language = next(words, "") if word == "-x" else word[2:]
        elif word.lstrip("-").startswith("cce-auto-sync"):
            line.auto_sync = not word.endswith("=off")
        elif word.lstrip("-") in ("cce-aicore-only", "aicore-only", "cce-device-only"):
            line.device_only = True
        elif word in ("--asc-aicore-lang", "--cce-aicore-lang"):
            language = "asc"
        elif word in _MODES:
            line.mode = _MODES[word]
        elif word in ("-shared", "--shared"):
            line.shared = True
        elif found := _ARCH.fullmatch(word):
            _take_arch(line, found[2])
            line.both_kinds = found[1] == "cce-aicore-arch" and len(line.sides) == 2
            arch_said = True
        elif word.startswith("--cce-soc-core-type="):
            kind = word.partition("=")[2].lower()
            line.sides = ("cube",) if "cube" in kind else ("vector",) if "vec" in kind else ("cube", "vector")
        elif word.startswith("--cce-pto-auto-enable") or word == "--cce-pto-auto":
            raise RequestError(
                f"{word}: the vendor's compiler places tiles and synchronisation itself, which is not simulated",
                hint="compile the kernel with addresses and flags of its own",
            )
        elif word in ("-MD", "-MMD", "-MP", "-MG"):
            line.depends.append(word)
        elif word in ("-MF", "-MT", "-MQ"):
            line.depends += [word, next(words, "")]
        elif option := next((o for o in _JOINED_OR_NEXT if word.startswith(o)), None):
            value = word[len(option) :] or next(words, "")
            if option in ("-L", "-l"):
                line.link.append(option + value)
            else:
                line.preprocessor += [option + value] if option in ("-I", "-D", "-U") else [option, value]
        elif word in ("-Xlinker", "-T", "-u", "-z"):
            line.link += [word, next(words, "")]
        elif word in ("-v", "--version", "-V", "-help", "--help", "-###", "--help-hidden") or word.startswith(
            ("-dump", "-print-")
        ):
            line.print_only.append(word)
        elif word == "-":
            line.inputs.append(Input("-", language in _KERNEL_LANGUAGES, language=language))
        elif not word.startswith("-"):
            _add_input(line, word, language)
        elif _KEPT.fullmatch(word):
            (line.link if _LINK_ONLY.fullmatch(word) else line.kept).append(word)
        elif word.startswith("-W") or word == "-w":
            continue
        else:
            line.ignored.append(word)
    if not arch_said and "-DREGISTER_BASE" in line.preprocessor:
        line.target = "a5"
    return line


def _expanded(arguments: Sequence[str]) -> Iterator[str]:
    for word in arguments:
        if word.startswith("@") and Path(word[1:]).is_file():
            yield from _expanded(shlex.split(Path(word[1:]).read_text()))
        else:
            yield word


def _take_arch(line: CommandLine, arch: str) -> None:
    name = arch.casefold()
    found = [target for target in TARGETS if any(word in name for word in _words_of(target))]
    if not found:
        known = ", ".join(family_named(target).aicore_arch for target in TARGETS)
        raise RequestError(f"{arch} is not simulated", hint=f"{known} are")
    line.target = found[0]
    if name.endswith(("-vec", "-aiv")):
        line.sides = ("vector",)
    elif name.endswith(("-cube", "-aic")):
        line.sides = ("cube",)


def _words_of(target: str) -> list[str]:
    """How compilers and build files call the chips of a family."""
    family = family_named(target)
    names = (
        family.aicore_arch.partition("-")[2],
        str(family.npu_arch),
        *family.vendor_names,
        *family.simulators,
    )
    return [name.casefold() for name in names if name]


def _add_input(line: CommandLine, path: str, language: str) -> None:
    suffix = Path(path).suffix
    if suffix not in _SOURCE_SUFFIXES and language in ("", "none"):
        line.inputs.append(Input(path, False, source=False))
        line.link.append(path)
        return
    if suffix in (".o", ".so", ".a") or re.search(r"\.so(\.\d+)*$", path):
        line.inputs.append(Input(path, False, source=False))
        line.link.append(path)
        return
    kernel = language in _KERNEL_LANGUAGES or (suffix in _KERNEL_SUFFIXES and language in ("", "none"))
    known = "" if kernel or language in ("", "none") else language
    line.inputs.append(Input(path, kernel, language="c" if suffix == ".c" and not known else known))
    line.link.append(f"\0{len(line.inputs) - 1}")  # where its object goes
