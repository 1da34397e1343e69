"""A source with kernels and launches, compiled for cube cores, vector cores and the host; one object carries all three."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from insight_trace.cache import content_key
from insight_trace.chips import family_named
from insight_trace.errors import JobError
from insight_trace.model import CoreType
from insight_trace.program.command_line import CommandLine, Input
from insight_trace.program.core_kinds import (
    Reach,
    declared,
    held_by,
    infer,
    kernel_parameters,
    kernels_in,
    vector_cores,
)
from insight_trace.program.launches import LaunchSite, rewrite_launches
from insight_trace.program.on_chip_arrays import with_on_chip_arrays
from insight_trace.program.specialisations import as_overloads, as_partial
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded import ascendc, compiled_from
from insight_trace.simulate.embedded.compile_errors import first_error
from insight_trace.simulate.embedded.compiler import searched_variables
from insight_trace.simulate.embedded.engine_objects import INCLUDE
from insight_trace.simulate.embedded.entry_link import SECTIONS, entries_only, tool
from insight_trace.simulate.embedded.memory import escape
from insight_trace.simulate.embedded.scalar_code import HOOKS, count_blocks
from insight_trace.simulate.embedded.source_lines import is_ours
from insight_trace.simulate.embedded.toolchain import (
    KERNEL_FLAGS,
    LIBRARY_PRELUDE,
    LIBRARY_STANDARD,
    PRELUDE,
    WANTS_CPP20,
    Toolchain,
)

HEADERS = Path(__file__).resolve().parent / "include"
PROGRAM_HEADER = HEADERS / "insight_trace_program" / "program.hpp"
_HOST = "-D__INSIGHT_TRACE_HOST__"
_MACROS = {
    "cube": ("-D__DAV_CUBE__",),
    "vector": ("-D__DAV_VEC__",),
    "host": (_HOST,),
    # kernels that only compile for a core: their copies on the host are those of one
    "host as a core": (_HOST, "-D__DAV_VEC__"),
}
_ENTRY_PREFIX = "_ZN21insight_trace_program5EntryI"
_ENTRY = re.compile(r"^\S* \w (_ZN21insight_trace_program5EntryI\S*4callEPNS_6PackedE)$", re.M)
# generated sources make these up where the vendor's compiler lacks them; here they are there for every chip
_TYPES_OF_ITS_OWN = re.compile(
    r"\btypedef\s+struct\s*\{[^{}]*\}\s*(?:hifloat8_t|float8_e4m3_t|float8_e5m2_t|float8_e8m0_t|float4_e1m2x2_t|"
    r"float4_e2m1x2_t)\s*;"
)
# an instruction of the device in assembler code
_TRAP = re.compile(r"""\b(?:asm|__asm__)\s*(?:volatile|__volatile__)?\s*\(\s*"trap\s*;?"\s*\)""")
AUTO_SYNC = "// built with --cce-auto-sync"  # behind a translated source
_ENTRIES = "program"  # of the cache
_FUNCTION = re.compile(r"^\S+ [TW] (\S+)$", re.M)
_ANY_FUNCTION = re.compile(r"^(?:\S+ [TW]| +U) (\S+)$", re.M)
_ELSEWHERE = "elsewhere"  # the kind of a launch whose kernel another source defines
_KINDS = {CoreType.AIC: "aic", CoreType.AIV: "aiv", CoreType.MIX: "mix"}


class CompileError(JobError):
    """The host compiler refused the source; `said` is what it printed."""

    def __init__(self, said: str, on_host: bool = False) -> None:
        super().__init__("the source does not compile")
        self.said = said
        self.on_host = on_host  # in the pass for the host, not in one for a core


def device_defines(target: str) -> list[str]:
    return list(family_named(target).defines)


def preprocess(
    toolchain: Toolchain, line: CommandLine, source: Input, side: str, into: Path, *, whole: bool = True
) -> str:
    """The source for one kind of core, or for the host, with our headers before it.

    Not `whole`: what is precompiled stands in the text as its name, for a compilation with the flags of that side.
    """
    depends: list[str] = []
    if side.startswith("host") and line.depends:
        depends = [word for word in line.depends if word not in ("-MD", "-MMD")]
        depends.insert(0, "-MMD" if "-MMD" in line.depends else "-MD")
        if "-MF" not in depends and line.output:
            depends += ["-MF", str(Path(line.output).with_suffix(".d"))]
        if "-MT" not in depends and "-MQ" not in depends and line.output:
            depends += ["-MT", line.output]
    made, rule = into / f"{side}.ii", into / f"{side}.d"
    if not side.startswith("host"):
        depends = ["-MD", "-MF", str(rule)]
    command = [
        "-E", *_first(toolchain, line, source, side, whole), *line.preprocessor, *depends,
        *(["-fopenmp"] if "-fopenmp" in line.kept else []), "-x", "c++", _absolute(source.path), "-o", str(made),
    ]  # fmt: skip
    done = toolchain.compiler.run(command, _searched(toolchain))
    if done.code != 0 or done.over:
        raise CompileError(done.said.decode("utf-8", errors="replace"))
    text = made.read_text(encoding="utf-8", errors="surrogateescape")
    defines = line.preprocessor if is_ascendc(toolchain, line, source) else ()
    text = as_overloads(as_partial(with_workspaces(_SIDE_OF_A_FUNCTION.sub("", text), defines)))
    text = with_on_chip_arrays(text)
    text = beside_the_c_library(_TRAP.sub("::trap()", text))
    text = _TYPES_OF_ITS_OWN.sub(lambda found: "\n" * found[0].count("\n"), text)
    if not rule.is_file():
        return text
    read = [Path(os.fsdecode(name)).absolute() for name in compiled_from.rule_paths(rule.read_bytes())]
    named = [str(path) for path in read if not is_ours(str(path)) and not path.is_relative_to("/usr")]
    return f"{compiled_from.TRANSLATED.decode()}{json.dumps(named)}\n{text}"


# functions of the C library for which operators are named: a device has no such library
_OF_THE_C_LIBRARY = re.compile(
    r"(?:a?(?:sin|cos|tan)h?|atan2|exp(?:2|m1)?|log(?:10|1p|2|b)?|abs|fabs|sqrt|cbrt|ceil|floor|round|trunc|rint|nearbyint|"
    r"pow|hypot|erfc?|[lt]?gamma|div|fmod|remainder|modf|frexp|ldexp|copysign|fdim|fm(?:a|ax|in)|index|select|read|write)"
)
_MARKED = re.compile(r'^# \d+ "([^"]*)".*$', re.M)


def beside_the_c_library(text: str) -> str:
    """The text with other names for kernels that are named like functions of the C library, where it is the user's own."""
    taken = {name for name in kernels_in(text) if _OF_THE_C_LIBRARY.fullmatch(name)}
    if not taken:
        return text
    word = re.compile(rf"(?<!std::)(?<![\w\"'])({'|'.join(map(re.escape, sorted(taken)))})(?![\w\"'])")
    made, done, own = [], 0, True
    for marker in _MARKED.finditer(text):
        part = text[done : marker.start()]
        made += [word.sub(kernel_name, part) if own else part, marker[0]]
        done = marker.end()
        own = not (
            is_ours(marker[1]) or marker[1].startswith(("/usr/", "<")) or "/ascendc_headers/" in marker[1]
        )
    part = text[done:]
    return "".join([*made, word.sub(kernel_name, part) if own else part])


def kernel_name(found: str | re.Match[str]) -> str:
    """What a kernel of this name is called in a translated text."""
    name = found if isinstance(found, str) else found[0]
    return f"{name}_" if _OF_THE_C_LIBRARY.fullmatch(name) else name


def _searched(toolchain: Toolchain) -> dict[str, str]:
    """Where the user has a compiler search. What toolkit.py adds for host code would come before it as a folder of ours:
    a compiler forgets the earlier place of a folder that it gets twice.
    """
    known, name = searched_variables(), "CPLUS_INCLUDE_PATH"
    ours = {str(HEADERS), *map(str, toolchain.ascendc_folders)}
    if name in known:
        known[name] = os.pathsep.join(part for part in known[name].split(os.pathsep) if part not in ours)
    return {name: value for name, value in known.items() if value}


def _absolute(path: str) -> str:
    """So that what a run names can be read wherever it is looked at."""
    return path if path == "-" else str(Path(path).absolute())


# `[aicore]` and `[host, aicore]`, as device.hpp has them
_SIDE_OF_A_FUNCTION = re.compile(r"\[\[maybe_unused\]\]|\[host, ?\[maybe_unused\]\]")
_WORKSPACE = re.compile(r"__attribute__\(\(insight_trace_kfc_workspace\)\)")
_PARAMETER = re.compile(r"\b([A-Za-z_]\w*)\s*[,)]")


def with_workspaces(text: str, defines: Sequence[str] = ()) -> str:
    """Kernels with a workspace for messages say so to the library first, and see what is behind its part.

    It is the parameter with `__kfc_workspace__`, or, where a build defines `HAVE_WORKSPACE`, the last one; with
    `HAVE_TILING` the one before it. With the Matmul of the high-level API the cube core clears the messages and says so
    to the vector cores.
    """
    clear = "if constexpr (::g_coreType == ::AscendC::AIC) ::AscendC::clearWorkspace({0});"
    if "clearWorkspace" not in text:  # lib/matmul_intf.h has it
        clear = ""
    enter = (
        "if ({0}) {{ ::__set_kfc_workspace_addr({0}); " + clear + "{0} = ::AscendC::GetUserWorkspace({0}); }}"
    )
    made, done = [], 0
    for match in _WORKSPACE.finditer(text):
        made.append(text[done : match.start()])
        done = match.end()
        name = _PARAMETER.search(text, done)
        if name and (body := _body_behind(text, match.end())):
            made.append(text[done:body])
            done = body
            made.append(enter.format(name[1]))
    text = "".join([*made, text[done:]])
    names = {define.removeprefix("-D").partition("=")[0] for define in defines}
    if "HAVE_WORKSPACE" not in names:
        return text
    made, done = [], 0
    for opened in kernel_parameters(text):
        body = _body_behind(text, opened + 1)
        if body is None or "::__set_kfc" in text[body : body + 80]:
            continue
        parameters = _PARAMETER.findall(text[opened : body - 1])
        if parameters:
            name = parameters[-2 if "HAVE_TILING" in names and len(parameters) > 1 else -1]
            made += [text[done:body], enter.format(name)]
            done = body
    return "".join([*made, text[done:]])


def _body_behind(text: str, at: int) -> int | None:
    """Behind the brace that opens the body of the function in whose parameters `at` stands; None of a declaration."""
    depth = 1
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    body = re.compile(r"\s*(?:#[^\n]*\s*)*\{").match(text, at)
    return body.end() if body else None


def is_ascendc(toolchain: Toolchain, line: CommandLine, source: Input) -> bool:
    """Whether the source compiles against the headers of an asc-devkit checkout."""
    if not toolchain.ascendc_root or line.target not in ascendc.FAMILIES:
        return False
    folders = [Path(word[2:]) for word in line.preprocessor if word.startswith("-I")]
    return ascendc.is_ascendc(Path(source.path), folders)


def _first(toolchain: Toolchain, line: CommandLine, source: Input, side: str, whole: bool) -> list[str]:
    """Flags, folders of headers, and what is read before the source."""
    words = [_standard(toolchain, line), "-w", *_MACROS[side], *device_defines(line.target), f"-I{HEADERS}"]
    words += [
        word for word in line.preprocessor if word == "-DNDEBUG"
    ]  # of every release; headers ask for it
    if not is_ascendc(toolchain, line, source):
        if toolchain.library:  # before ours: a header that the checkout has is the checkout's
            words += [f"-I{toolchain.library / 'include'}"]
        prelude = LIBRARY_PRELUDE if toolchain.library else PRELUDE
        return [*words, f"-I{INCLUDE}", "-include", str(prelude), "-include", str(PROGRAM_HEADER)]
    folders = [f"-I{folder}" for folder in toolchain.ascendc_folders]
    words = [*words, *folders, f"-I{INCLUDE}", "-DINSIGHT_TRACE_PROGRAM", *_vector_cores_of_a_mix(source)]
    if whole or toolchain.compiler.is_clang:  # which has no way to name it
        return [*words, "-include", str(ascendc.PRELUDE), "-include", str(PROGRAM_HEADER)]
    words = [*_code_flags(toolchain, line, side), *words]
    return [*words, "-fpch-preprocess", *toolchain.ascendc_header(words, PROGRAM_HEADER)]


def _standard(toolchain: Toolchain, line: CommandLine) -> str:
    """The library of a checkout names templates that are declared later, which C++20 finds by their arguments."""
    older = re.search(r"\+\+(98|03|0x|11|1y|14|1z|17)$", line.standard)
    return LIBRARY_STANDARD if toolchain.library and older else line.standard


_ONE_AND_ONE = re.compile(r"__mix__\s*\(\s*1\s*,\s*1\s*\)|KERNEL_TYPE_MIX_AI[CV]_1_1\b")
_ONE_AND_TWO = re.compile(r"__mix__\s*\(\s*1\s*,\s*2\s*\)|KERNEL_TYPE_MIX_AI[CV]_1_2\b")


def _vector_cores_of_a_mix(source: Input) -> list[str]:
    """What the library counts on where the mixes of a source have one vector core for a cube core, not two."""
    try:
        text = Path(source.path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # standard input
        return []
    return (
        ["-D__MIX_CORE_AIC_RATION__=1"] if _ONE_AND_ONE.search(text) and not _ONE_AND_TWO.search(text) else []
    )


def _code_flags(toolchain: Toolchain, line: CommandLine, side: str) -> list[str]:
    """How one side is compiled."""
    if side.startswith("host"):
        kept = [flag for flag in line.kept if not flag.startswith("-std=") and flag not in ("-fno-rtti",)]
        return [_standard(toolchain, line), *kept, "-g1", "-fPIC", "-w"]
    unshared = [] if toolchain.compiler.is_clang else ["-fno-gnu-unique"]
    return [_standard(toolchain, line), *KERNEL_FLAGS, *toolchain._hooks(), *unshared, *SECTIONS]


# Kernels that host code of another source calls as functions: `kernel(blocks, nullptr, stream, …)`. The vendor's compiler
# leaves such a function of each kernel with C linkage for the host. Here a source has them that launches nothing itself: its
# kernels are there for others.
_STUB_PREFIX = "insight_trace_host_stub_"
_STUB_NAMES = re.compile(rf"^\S+ [WT] (_ZN\d+{_STUB_PREFIX}(\w+?)I\S*E4callE\S*)$", re.M)
_STUB_TEXT = """
template <class Kernel> struct {prefix}{name};
template <class... Values> struct {prefix}{name}<void(Values...)> {{
    [[gnu::used]] static void call(uint32_t blocks, void *, void *stream, Values... values) {{
        {name}<<<blocks, nullptr, stream>>>(values...);
    }}
}};
template struct {prefix}{name}<decltype({name})>;
"""


def _called_as_functions(text: str) -> list[str]:
    """The kernels of a preprocessed source that launches none: those with C linkage and a body."""
    if "<<<" in text:
        return []
    found = []
    for name in sorted(kernels_in(text)):
        for match in re.finditer(rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*\{{", text):
            head = text[max(0, match.start() - 600) : match.start()]
            if re.search(r'extern\s+"C"(?!\s*\{)', head[max(head.rfind(";"), head.rfind("}")) + 1 :]):
                found.append(name)
                break
    return found


def _stubs_text(kernels: Iterable[str]) -> str:
    """A launch of each kernel, to stand behind its source."""
    return "".join(_STUB_TEXT.format(prefix=_STUB_PREFIX, name=name) for name in kernels)


def _rename_stubs(host: Path) -> None:
    """The functions get the names of their kernels, whose own copies on the host never run."""
    words: list[str] = []
    for symbol, name in _STUB_NAMES.findall(tool(["nm", str(host)])):
        words += [
            f"--redefine-sym={name}=insight_trace_copy_of_{name}",
            f"--redefine-sym={symbol}={name}",
        ]
    if words:
        tool(["objcopy", *words, str(host)])


def compile_program(toolchain: Toolchain, line: CommandLine, source: Input) -> Path:
    """The object of one source: host code, with the compiled kernels in it."""
    try:
        return _compile_program(toolchain, line, source)
    except CompileError as error:
        if not WANTS_CPP20.search(error.said):
            raise
        try:
            return _compile_program(toolchain, replace(line, kept=[*line.kept, "-std=gnu++20"]), source)
        except CompileError:
            raise error from None


def _compile_program(toolchain: Toolchain, line: CommandLine, source: Input) -> Path:
    with scratch_folder("program") as place, ThreadPoolExecutor(4) as pool:
        sides = (*line.sides, "host")
        texts = dict(
            zip(
                sides,
                pool.map(lambda side: preprocess(toolchain, line, source, side, place, whole=False), sides),
                strict=True,
            )
        )
        stubs = _stubs_text(_called_as_functions(texts["host"]))
        stubs += f"\n{AUTO_SYNC}\n" if line.auto_sync else ""
        rewritten = {
            side: rewrite_launches(text + stubs, host=side == "host") for side, text in texts.items()
        }
        key = content_key([
            toolchain.identity, *(f"{side}\n{text}" for side, (text, _) in sorted(rewritten.items())),
            line.standard, line.optimisation, *line.kept, line.target, str(line.both_kinds), Path(__file__).read_bytes(),
            # what assembler code includes is in no text here: such a source is compiled every time
            os.urandom(16) if any(".incbin" in text for text in texts.values()) else b"",
        ])  # fmt: skip

        def build(into: Path) -> None:
            try:
                _build(toolchain, line, into, final, texts, rewritten, pool)
            except CompileError as error:
                if not error.on_host:
                    raise
                text = preprocess(toolchain, line, source, "host as a core", place, whole=False)
                again = {**rewritten, "host": rewrite_launches(text + stubs, host=True)}
                try:
                    _build(toolchain, line, into, final, texts, again, pool)
                except CompileError:
                    raise error from None

        final = toolchain.cache.root / _ENTRIES / key
        return toolchain.cache.put(_ENTRIES, key, build) / "made.o"


def _build(
    toolchain: Toolchain,
    line: CommandLine,
    into: Path,
    final: Path,
    texts: dict[str, str],
    rewritten: dict[str, tuple[str, list[LaunchSite]]],
    pool: ThreadPoolExecutor,
) -> None:
    for side, (text, _) in rewritten.items():
        (into / f"{side}.cc").write_text(text, encoding="utf-8", errors="surrogateescape")
    host = pool.submit(_compile_host, toolchain, line, into)
    kernels = {name for side in line.sides for name in kernels_in(texts[side])}
    has_launches = bool(rewritten["host"][1]) or bool(kernels)
    entries: dict[str, set[str]] = {}
    if has_launches:
        images = {
            side: pool.submit(_compile_side, toolchain, line, into, side, kernels) for side in line.sides
        }
        for side, image in images.items():
            for entry in image.result():
                entries.setdefault(entry, set()).add(side)
    host_object = host.result()
    _rename_stubs(host_object)
    objects = [host_object, *_stubs(toolchain, host_object, into)]
    if has_launches:
        facts = _facts(line, final, entries, texts, rewritten, kernels)
        objects.append(_registration(toolchain, into, facts))
    _run(toolchain, ["-r", "-nostdlib", *map(str, objects), "-o", str(into / "made.o")])
    for name in ("host.o", "host.cc", "registration.o", "stubs.o", "cube.o", "vector.o"):
        (into / name).unlink(missing_ok=True)


def _run(toolchain: Toolchain, arguments: Sequence[str], *, on_host: bool = False) -> None:
    done = toolchain.compiler.run(list(arguments))
    if done.over:
        raise JobError(
            f"the compiler went over its limit of {done.over}",
            hint="INSIGHT_TRACE_COMPILE_SECONDS=SECONDS gives it more time",
        )
    if done.code != 0:
        raise CompileError(done.said.decode("utf-8", errors="replace"), on_host)


def _compile_host(toolchain: Toolchain, line: CommandLine, into: Path) -> Path:
    made = into / "host.o"
    words = [*_code_flags(toolchain, line, "host"), "-x", "c++-cpp-output", "-c", str(into / "host.cc")]
    _run(toolchain, [*words, "-o", str(made)], on_host=True)
    return made


def _compile_side(
    toolchain: Toolchain, line: CommandLine, into: Path, side: str, kernels: set[str]
) -> list[str]:
    """The shared object of one kind of core; its entry points. Other sources may launch its kernels."""
    compiled = into / f"{side}.o"
    counts = bool(set(HOOKS) & set(toolchain._hooks()))
    code = into / f"{side}.s" if counts else compiled
    words = [*_code_flags(toolchain, line, side), "-x", "c++-cpp-output"]
    _run(toolchain, [*words, "-S" if counts else "-c", str(into / f"{side}.cc"), "-o", str(code)])
    if counts:
        text = count_blocks(code.read_text(encoding="utf-8", errors="surrogateescape"))
        code.write_text(text, encoding="utf-8", errors="surrogateescape")
        _run(toolchain, ["-c", str(code), "-o", str(compiled)])
        code.unlink()
    listed = tool(["nm", str(compiled)])
    # cube and vector cores have a function each of the same name: the engine loads both
    named = {
        name
        for name in _ANY_FUNCTION.findall(listed)
        if _is_one_of(name, kernels) and not name.startswith(_ENTRY_PREFIX)
    }
    if named:
        renamed = [word for name in sorted(named) for word in ("--redefine-sym", f"{name}={name}.{side}")]
        tool(["objcopy", *renamed, str(compiled)])
        listed = tool(["nm", str(compiled)])
    entries = sorted(set(_ENTRY.findall(listed)))
    exported = [name for name in _FUNCTION.findall(listed) if _is_one_of(name, kernels)]
    if entries or exported:
        made = str(into / f"{side}.so")
        _run(
            toolchain, ["-shared", str(compiled), "-o", made, *entries_only(compiled, [*entries, *exported])]
        )
    return entries


def _is_one_of(symbol: str, names: set[str]) -> bool:
    """Whether a symbol is one of these functions, mangled or not, also as one kind of core has it."""
    return symbol.partition(".")[0] in names or (
        symbol.startswith("_Z") and any(f"{len(name)}{name}" in symbol for name in names)
    )


def _stubs(toolchain: Toolchain, host: Path, into: Path) -> list[Path]:
    """What kernels call, for their copies in the host's object, which never run."""
    wanted = re.findall(r"^\s+U (insight_trace_\w+|__tsan_\w+)$", tool(["nm", "-u", str(host)]), re.M)
    names = sorted(set(wanted) - {"insight_trace_launch", "insight_trace_add_kernels"})
    if not names:
        return []
    text = "".join(
        f'extern "C" __attribute__((weak, visibility("hidden"))) void {name}() {{ __builtin_trap(); }}\n'
        for name in names
    )
    (into / "stubs.cpp").write_text(text)
    _run(toolchain, ["-O1", "-fPIC", "-w", "-c", str(into / "stubs.cpp"), "-o", str(into / "stubs.o")])
    return [into / "stubs.o"]


def reach_of(text: str) -> Reach:
    """What the kernels of a preprocessed source mention; what the headers before it mention says nothing of them."""
    return Reach(text[text.rfind(f'"{PROGRAM_HEADER}"') + 1 :])


def _facts(
    line: CommandLine,
    final: Path,
    entries: dict[str, set[str]],
    texts: dict[str, str],
    rewritten: dict[str, tuple[str, list[LaunchSite]]],
    kernels: set[str],
) -> str:
    reaches = {side: reach_of(texts[side]) for side in line.sides}
    kinds: dict[int, CoreType] = {}
    names: dict[int, str] = {}

    def kind_of(kernel: str) -> CoreType:
        said = declared(texts[line.sides[0]], kernel)
        return said or infer(kernel, reaches.get("cube"), reaches.get("vector"), both_kinds=line.both_kinds)

    for site in rewritten["host"][1]:
        launched = {site.name} if site.name in kernels else held_by(texts["host"], site.name, kernels)
        possible = {kind_of(name) for name in launched}
        if len(possible) > 1:
            raise CompileError(
                f"{site.file}:{site.line}: error: {site.name} may hold kernels of different cores "
                f"({', '.join(sorted(launched))}): launch each by its name\n"
            )
        kinds[site.identity] = possible.pop() if possible else kind_of(site.name)
        names[site.identity] = site.name
    lines = [
        f"target\t{line.target}",
        *(f"text\t{side}\t{escape(str(final / f'{side}.cc'))}" for side in line.sides),
    ]
    defined = {name for name in kernels if any(reach.defines(name) for reach in reaches.values())}

    def cores(kernel: str, kind: CoreType) -> str:
        count = vector_cores(kernel, texts[line.sides[0]], reaches.get("vector"))
        return f"{_KINDS[kind]}\t{count}"

    lines += [f"kernel\t{name}\t{cores(name, kind_of(name))}" for name in sorted(defined)]
    for entry, sides in sorted(entries.items()):
        found = re.search(r"EntryILm(\d+)E", entry)
        identity = int(found[1]) if found else -1
        kind = kinds.get(identity, CoreType.AIV)
        name = names.get(identity, "")
        if name in kernels - defined:
            lines.append(f"entry\t{entry}\t{_ELSEWHERE}\t2\t{name}")
            continue
        if len(sides) == 1 and kind is CoreType.MIX:
            kind = CoreType.AIC if "cube" in sides else CoreType.AIV
        lines.append(f"entry\t{entry}\t{cores(name, kind)}")
    return "\n".join(lines) + "\n"


_REGISTRATION = """\
#include <stdint.h>
extern "C" void insight_trace_add_kernels(const char *, uint64_t, const uint8_t *, uint64_t, const uint8_t *, uint64_t);
#define CARRY(name, file) \\
    asm(".pushsection .rodata\\n.balign 16\\ncarried_" #name ":\\n" \\
        ".incbin \\"" file "\\"\\ncarried_" #name "_end:\\n.popsection"); \\
    extern "C" __attribute__((visibility("hidden"))) const uint8_t name[] asm("carried_" #name); \\
    extern "C" __attribute__((visibility("hidden"))) const uint8_t name##_end[] asm("carried_" #name "_end");
"""


def _registration(toolchain: Toolchain, into: Path, facts: str) -> Path:
    (into / "facts").write_text(facts)
    text = [_REGISTRATION, f'CARRY(facts, "{into / "facts"}")\n']
    passed = []
    for side in ("cube", "vector"):
        if (into / f"{side}.so").is_file():
            text.append(f'CARRY({side}, "{into / f"{side}.so"}")\n')
            passed.append(f"{side}, (uint64_t)({side}_end - {side})")
        else:
            passed.append("nullptr, 0")
    text.append(
        "__attribute__((constructor)) static void add() {\n"
        f"    insight_trace_add_kernels((const char *)facts, (uint64_t)(facts_end - facts), {', '.join(passed)});\n}}\n"
    )
    (into / "registration.cpp").write_text("".join(text))
    made = into / "registration.o"
    _run(toolchain, ["-O1", "-fPIC", "-w", "-c", str(into / "registration.cpp"), "-o", str(made)])
    return made


def report(error: CompileError) -> None:
    """What the compiler said, and what we can add to it."""
    sys.stderr.write(error.said)
    for name in sorted(
        set(re.findall(r"\b(aclnn\w+|aclop\w+|aclmdl\w+|aclrtc\w+|Hccl\w+|aclshmem\w+)\b", error.said))
    )[:5]:
        sys.stderr.write(
            f"insight-trace: {name} belongs to the vendor's operators or communication, which are not simulated; "
            "kernels that the program launches itself are\n"
        )
    wanted = first_error(error.said, Path())
    if wanted.refused and not os.environ.get(ascendc.VARIABLE):
        sys.stderr.write(f"insight-trace: {wanted.file}:{wanted.line}: {wanted.refused}\n")
    missing = re.search(r"fatal error: (\S+): No such file", error.said)
    if missing and re.match(r"aclnn|aclnnop|register/|graph/|hccl|exe_graph|op_", missing[1]):
        sys.stderr.write(
            f"insight-trace: {missing[1]}: custom-op packages and aclnn operators are not simulated\n"
        )
