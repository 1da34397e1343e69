"""From source to something that runs: the runner with its engine, and kernels as shared objects."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct, structs

from insight_trace import __version__, limits, supervisor
from insight_trace.cache import Cache, content_key
from insight_trace.chips import family_named
from insight_trace.errors import InputError, JobError, RequestError
from insight_trace.model import CoreType
from insight_trace.outcome import Failure, Fault
from insight_trace.reading import read_regular
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded import ascendc, compiled_from
from insight_trace.simulate.embedded.carried_core import FOLDER as CARRIED
from insight_trace.simulate.embedded.carried_core import copy_if_it_runs, fits
from insight_trace.simulate.embedded.compiler import Compiler, Confinement, find_compiler, searched_variables
from insight_trace.simulate.embedded.engine_objects import (
    ENGINE,
    HERE,
    HOT,
    INCLUDE,
    LEVELS,
    PRECOMPILED,
    RUNNER,
    Includes,
    Program,
    Unit,
    contents,
    engine_sources,
    units,
)
from insight_trace.simulate.embedded.entry_link import SECTIONS, entries_only
from insight_trace.simulate.embedded.kernel_sources import project_of
from insight_trace.simulate.embedded.sandbox import Sandbox
from insight_trace.simulate.embedded.scalar_code import HOOKS, count_blocks
from insight_trace.simulate.embedded.source_lines import keep_lines
from insight_trace.simulate.embedded.typed_entry import ENTRY

KERNEL_OBJECT = "kernel.so"
PREPROCESSED = ".ii"
PRELUDE = INCLUDE / "insight_trace" / "prelude.hpp"
LIBRARY_PRELUDE = INCLUDE / "insight_trace" / "library_prelude.hpp"
HOST_PRELUDE = INCLUDE / "insight_trace" / "host_prelude.hpp"
LIBRARY_VARIABLE = "INSIGHT_TRACE_PTO_ISA"
MARKS_WITH_COST = HERE / "marks_with_cost.hpp"

_STANDARD = "-std=c++17"
# The tile library names templates that are declared later: C++20 finds them by their arguments.
LIBRARY_STANDARD = "-std=c++20"
# What the device compiler takes in C++17 and g++ in C++20 alone: constant constructors that leave members open, and
# `ReduceSum<float>(tensor)` where the arguments say in which namespace to look.
WANTS_CPP20 = re.compile(
    "must be initialized by mem-initializer in|was not declared in this scope; did you mean .AscendC::"
)
# The same results on every machine: one rounding per operation (no fused multiply-add behind our back), and a
# plain char has a sign.
_SAME_EVERYWHERE = ("-ffp-contract=off", "-fno-strict-aliasing", "-fsigned-char")
_ENGINE_FLAGS = ("-fPIC", "-fno-semantic-interposition", *_SAME_EVERYWHERE)
# The device's compiler is a clang, which makes 0.0 / 0.0 a positive NaN when it compiles: g++ leaves that division to the
# run, where x86 gives a negative one, unless it need not trap. The library's TSORT32 fills up rows with -(0.0 / 0.0).
KERNEL_FLAGS = ("-O1", "-g1", "-fPIC", "-w", "-fno-trapping-math", *_SAME_EVERYWHERE)

# what g++ and clang++ say of an attribute between the words of a declaration
_ATTRIBUTE_WITHIN = (b"in middle of decl-specifiers", b"an attribute list cannot appear here")

_CORE_DEFINES = {CoreType.AIC: "-D__DAV_CUBE__", CoreType.AIV: "-D__DAV_VEC__"}


class KernelBuildError(JobError):
    """A kernel that did not compile."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(
            failure.message,
            where=failure.where,
            hint=f"the compiler's whole output is in {failure.log}" if failure.log else "",
        )
        self.failure = failure


class Compilation(Struct, frozen=True):
    """One source of somebody's, and how it is compiled."""

    what: str
    source: Path
    flags: tuple[str, ...]
    folders: tuple[Path, ...]  # where headers are looked for
    readable: tuple[Path, ...]  # what a strict sandbox lets the compiler read beside the source's project
    strict: bool = False

    @property
    def translated(self) -> bool:
        """A preprocessed source of a program, with its host code and our headers in it."""
        return self.source.suffix == PREPROCESSED


def sanitizers() -> tuple[str, ...]:
    """Extra checks in everything we compile, for our own tests: INSIGHT_TRACE_SANITIZE=address,undefined."""
    asked = os.environ.get("INSIGHT_TRACE_SANITIZE", "")
    return (f"-fsanitize={asked}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer") if asked else ()


def _engine_flags(level: str) -> list[str]:
    # checks in every expression of optimised code take minutes to compile and find no more
    levels = ("-O0", "-g1", *sanitizers()) if sanitizers() else (level,)
    return [_STANDARD, *levels, *_ENGINE_FLAGS]


def library_checkout(named: Path | None) -> Path | None:
    """The pto-isa checkout whose headers kernels compile against: what was named, else the environment's."""
    value = named or os.environ.get(LIBRARY_VARIABLE)
    if not value:
        return None
    root = Path(value).absolute()
    if not (root / "include" / "pto" / "pto-inst.hpp").is_file():
        raise RequestError(
            f"{root} is no checkout of pto-isa: it has no include/pto/pto-inst.hpp",
            hint=f"name a checkout of pto-isa with --pto-isa-root or {LIBRARY_VARIABLE}, or none: ours serve then",
        )
    return root


def name_library(root: Path | None) -> None:
    """What a command names holds for it and for every compiler that it starts."""
    if root is not None:
        os.environ[LIBRARY_VARIABLE] = str(library_checkout(root))


class Toolchain(Struct, frozen=True, dict=True):
    """One compiler, one cache, and our headers at one state."""

    compiler: Compiler
    cache: Cache
    library: Path | None = None  # a pto-isa checkout: its headers take the place of our tile ops
    ascendc_root: Path | None = None  # an asc-devkit checkout, for kernels that include its headers

    @classmethod
    def find(cls, library: Path | None = None, ascendc_root: Path | None = None) -> Toolchain:
        return cls(find_compiler(), Cache(), library_checkout(library), ascendc.checkout(ascendc_root))

    @cached_property
    def ascendc_folders(self) -> list[Path]:
        """Where the headers of the asc-devkit checkout are; none without one."""
        return ascendc.include_folders(self.ascendc_root, self.cache) if self.ascendc_root else []

    @cached_property
    def _compiler_identity(self) -> str:
        """Names the compiler and every flag of ours."""
        engine = [flag for level in LEVELS for flag in _engine_flags(level)]
        script = (self.compiler.script,) if self.compiler.script else ()
        flags = (*engine, *KERNEL_FLAGS, *sanitizers(), *self.compiler.emulator, *script)
        return content_key([__version__, *self.compiler.command, self.compiler.version, *flags])

    @cached_property
    def identity(self) -> str:
        """Names all that goes into a kernel beside its own source: the compiler, flags, our headers."""
        return content_key([self._compiler_identity, *contents(INCLUDE)])

    # --- the runner -----------------------------------------------------------------------------

    def runner(self) -> Path:
        """The executable that runs jobs, built on first use."""
        return self.executable(RUNNER)

    def executable(self, program: Program) -> Path:
        """The program: what a wheel carries if that fits, else compiled here."""
        name, content = program.name, program.content()

        def build(into: Path) -> None:
            plain = not sanitizers() and not self.compiler.emulator
            if plain and fits(CARRIED, name, content) and copy_if_it_runs(CARRIED / name, into / name):
                return
            objects = self._objects([*engine_sources(), *program.sources], program.include_dirs)
            made = [*map(str, objects), "-o", str(into / name)]
            self._run([*sanitizers(), "-rdynamic", *made, "-ldl", "-lpthread"], f"linking {name}")
            if self.compiler.emulator:
                put_emulator_before(into / name, self.compiler.emulator)

        return self.cache.put(name, content_key([self._compiler_identity, content]), build) / name

    def _objects(self, sources: Sequence[Path], include_dirs: Sequence[Path]) -> list[Path]:
        """The sources compiled, on all cores of this machine."""
        from concurrent.futures import ThreadPoolExecutor  # wanted only where something is built

        folders = [*include_dirs, ENGINE, INCLUDE]
        includes = Includes(folders)
        first = Includes([ENGINE, INCLUDE]).key(PRECOMPILED)
        # what takes longest first: none is alone at the end
        all_units = sorted(units(sources), key=lambda unit: -unit.cost)
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            headers = {
                level: pool.submit(self._precompiled, "precompiled", PRECOMPILED, _engine_flags(level), first)
                for level in LEVELS
            }

            def compiled(unit: Unit) -> Path:
                flags = [*_engine_flags(unit.level), *headers[unit.level].result()]
                flags += [f"-I{folder}" for folder in folders]
                key = content_key([unit.level, first, *map(includes.key, unit.sources)])
                return self._object(unit, flags, key)

            return sorted(pool.map(compiled, all_units))

    def _object(self, unit: Unit, flags: list[str], content: str) -> Path:
        """Sources of the engine compiled together; again only when one or a file that it includes has changed."""

        def build(into: Path) -> None:
            together = into / "unit.cpp"
            together.write_text(unit.text, encoding="utf-8")
            made = ["-c", str(together), "-o", str(into / "made.o")]
            self._run([*flags, *made], f"compiling {', '.join(source.name for source in unit.sources)}")

        return self.cache.put("object", content_key([self._compiler_identity, content]), build) / "made.o"

    def _run(self, arguments: list[str], what: str) -> None:
        done = self.compiler.run(arguments)
        said = done.said.decode("utf-8", errors="replace")
        _require_room(said)
        if done.over:
            raise JobError(
                f"{what} went over its limit of {done.over}",
                hint="INSIGHT_TRACE_COMPILE_SECONDS=SECONDS gives the compiler more time",
            )
        if done.code == 0 and not Path(arguments[arguments.index("-o") + 1]).is_file():
            raise JobError(
                f"{what} gave nothing: {self.compiler.command[0]} is no C++ compiler",
                hint=f"it says '{self.compiler.version}'; unset CXX, or set it to g++ or clang++",
            )
        if done.code != 0:
            from insight_trace.simulate.embedded.compile_errors import first_error

            error = first_error(said, Path(arguments[-1]))
            raise JobError(
                f"{what} failed: {error.message}",
                where=f"{error.file}:{error.line}",
                hint=f"compiler: {self.compiler.version}; this is a fault of ours, please report it",
            )

    def library_of(self, source: Path) -> Path:
        """One source of ours as a shared object, for the tool's own process."""
        name, content = f"{source.stem}.so", content_key([source.read_bytes()])

        def build(into: Path) -> None:
            if fits(CARRIED, name, content):
                shutil.copyfile(CARRIED / name, into / name)
                return
            made = ["-shared", str(source), "-o", str(into / name)]
            self._run([_STANDARD, HOT, *_ENGINE_FLAGS, *made], f"compiling {source.name}")

        return self.cache.put("library", content_key([self._compiler_identity, content]), build) / name

    # --- kernels --------------------------------------------------------------------------------

    def kernel(
        self,
        source: Path,
        core_type: CoreType,
        *,
        target: str = "a2a3",
        include_dirs: tuple[str, ...] = (),
        defines: tuple[str, ...] = (),
        mark_cost: bool = False,
        sandbox: Sandbox | None = None,
    ) -> Path:
        """The kernel as a shared object; compiled only if it, a header of its or a flag has changed."""
        try:
            text = read_regular(source, most=limits.SOURCE_BYTES)
        except OSError as error:
            raise InputError(
                f"the kernel source cannot be read: {error.strerror}", where=str(source)
            ) from None
        flags = [
            LIBRARY_STANDARD if self.library else _STANDARD, *KERNEL_FLAGS, *sanitizers(), *self._hooks(),
            _CORE_DEFINES[core_type], *family_named(target).defines, *defines,
        ]  # fmt: skip
        folders = self._ascendc_folders_of(source, include_dirs, target)
        includes = [
            *(f"-I{folder}" for folder in folders),
            *self._library_includes,
            f"-I{INCLUDE}",
            f"-I{source.parent.absolute()}",
            *(f"-I{Path(d).absolute()}" for d in include_dirs if Path(d).is_dir()),
        ]
        if mark_cost:
            # behind our precompiled headers, and part of what names the object
            includes += ["-include", str(MARKS_WITH_COST)]
            text += MARKS_WITH_COST.read_bytes()

        def first() -> list[str]:
            # a translated source of a program holds our headers already
            return [] if source.suffix == PREPROCESSED else self._first_header(flags, folders)

        where = sandbox or Sandbox.chosen()
        return self._shared_object("kernel", source, text, flags, includes, first, where, folders)

    def _ascendc_folders_of(self, source: Path, include_dirs: Sequence[str], target: str) -> list[Path]:
        """Where a kernel's AscendC headers are: a checkout's; none for one of another kind, and without a checkout."""
        if not self.ascendc_root or target not in ascendc.FAMILIES or source.suffix == PREPROCESSED:
            return []
        return self.ascendc_folders if ascendc.is_ascendc(source, [Path(d) for d in include_dirs]) else []

    def host_object(
        self, source: Path, what: str, include_dirs: Sequence[Path], defines: Sequence[str] = (),
        first_header: Sequence[str] = (),
    ) -> Path:  # fmt: skip
        """Host code of a scene (its orchestration) as a shared object, against headers in `include_dirs`. It reads the C++
        library precompiled, or what `first_header` names in its place."""
        try:
            text = read_regular(source, most=limits.SOURCE_BYTES)
        except OSError as error:
            raise InputError(f"the {what} cannot be read: {error.strerror}", where=str(source)) from None
        flags = ["-std=c++20", "-O1", "-g1", "-fPIC", "-w", *_SAME_EVERYWHERE, *sanitizers(), *defines]
        includes = [f"-I{folder.absolute()}" for folder in (*include_dirs, source.parent)]

        def first() -> list[str]:
            return list(first_header) or self._precompiled("host", HOST_PRELUDE, flags, self.identity)

        return self._shared_object(what, source, text, flags, includes, first, Sandbox.chosen())

    def _shared_object(
        self, what: str, source: Path, text: bytes, flags: list[str], includes: list[str],
        first: Callable[[], list[str]], sandbox: Sandbox, library: Sequence[Path] = (),
    ) -> Path:  # fmt: skip
        source = source.absolute()  # one that begins with a dash is no option
        variables = searched_variables()
        strict = sandbox is Sandbox.STRICT
        names = [source.name, str(source.parent), *flags, *includes, str(variables), str(strict)]
        key = content_key([self.identity, text, *(name.encode(errors="surrogateescape") for name in names)])

        def compilation() -> Compilation:
            early = first()
            folders = compiled_from.search_folders(includes, variables)
            readable = (HERE, *folders, *(Path(flag).parent for flag in early if Path(flag).is_absolute()))
            readable += (self.ascendc_root,) if library and self.ascendc_root else ()
            return Compilation(what, source, (*flags, *early, *includes), tuple(folders), readable, strict)

        def usable(entry: Path) -> bool:
            """Whole, and made from what the compiler would still read."""
            try:
                found = compiled_from.read(entry)
                whole = (entry / KERNEL_OBJECT).stat().st_size > 0
                return whole and found.holds(lambda: content_key([self._preprocessed(compilation())]))
            except (OSError, ValueError, KernelBuildError):
                return False

        build = lambda into: self._build_object(compilation(), into)  # noqa: E731
        return self.cache.put(what, key, build, usable) / KERNEL_OBJECT

    @property
    def _library_includes(self) -> list[str]:
        """Before our own: a header that the library has is the library's."""
        return [f"-I{self.library / 'include'}"] if self.library else []

    def _first_header(self, flags: list[str], library: Sequence[Path]) -> list[str]:
        """What every kernel reads first."""
        if library:
            return self.ascendc_header([*flags, *(f"-I{folder}" for folder in library)])
        if not self.library:
            return self._precompiled("prelude", PRELUDE, flags, self.identity)
        state = content_key([self.identity, str(self.library), *contents(self.library / "include" / "pto")])
        return self._precompiled("library", LIBRARY_PRELUDE, [*flags, *self._library_includes], state)

    def ascendc_header(self, flags: list[str], *more: Path) -> list[str]:
        """What makes the compiler read the AscendC headers of the checkout, and then `more`, first."""
        assert self.ascendc_root is not None
        text = "".join(f'#include "{path}"\n' for path in (ascendc.PRELUDE, *more))
        read = (path.read_text(encoding="utf-8") for path in more)
        state = content_key([self.identity, text, *read, ascendc.state(self.ascendc_root)])
        place = self.cache.put("ascendc_first", state, lambda into: _write(into / "ascendc_first.hpp", text))
        return self._precompiled("ascendc", place / "ascendc_first.hpp", flags, state)

    def _hooks(self) -> tuple[str, ...]:
        """Calls at every plain load and store of a kernel (engine/scalar_memory.hpp) and at every block (scalar_code.py)."""
        # zig has none, and a compiler takes sanitizers or hooks, not both
        return () if self.compiler.is_zig or sanitizers() else ("-fsanitize=thread", *HOOKS)

    @property
    def sees_plain_accesses(self) -> bool:
        """Whether the runner is told of what kernels read and write by plain dereference."""
        return bool(self._hooks())

    def _build_object(self, job: Compilation, into: Path) -> None:
        counts = HOOKS[0] in job.flags
        made, source = into / KERNEL_OBJECT, str(job.source)
        made_object = into / ("kernel.s" if counts else "kernel.o")
        rules = into / "rule", into / "assembler_rule"
        rule = ["-MD", "-MF", str(rules[0])]
        # what assembler code includes, only its own assembler tells
        told = ("-Xassembler", "--MD", "-Xassembler", str(rules[1]))
        assembler = () if self.compiler.is_clang else told
        made_by = ["-S"] if counts else [*assembler, "-c"]
        if job.translated:
            made_by = [*SECTIONS, *made_by]
        done = self._run_on_source(job, [*job.flags, *rule, *made_by, source, "-o", str(made_object)], into)
        if done.code != 0 and WANTS_CPP20.search(done.said.decode(errors="replace")):
            newer = structs.replace(job, flags=(*job.flags, LIBRARY_STANDARD))
            again = self._run_on_source(
                newer, [*newer.flags, *rule, *made_by, source, "-o", str(made_object)], into
            )
            if again.code == 0:
                job, done = newer, again
        text = b""
        if done.code == 0 or any(said in done.said for said in _ATTRIBUTE_WITHIN):
            text = self._preprocessed(job)
        if done.code != 0 and text:
            # the device compiler takes `[aicore]` where C++ has no attribute
            plain = into / "kernel.ii"
            plain.write_bytes(text.replace(b"[[maybe_unused]]", b""))
            words = [*job.flags, *made_by, "-x", "c++-cpp-output", str(plain), "-o", str(made_object)]
            done = self._run_on_source(job, words, into)
            plain.unlink()
        self._require_done(job, done)
        if counts:
            code = made_object.read_text(encoding="utf-8", errors="surrogateescape")
            made_object.write_text(count_blocks(code), encoding="utf-8", errors="surrogateescape")
        # in two steps: hooks are compiled in, but the runtime that usually goes with them is not linked
        checked = [*sanitizers(), "-Wl,-Bsymbolic"] if sanitizers() else []  # tools/pto_isa/driver.cpp, load
        linked = [*checked, *(assembler if counts else ())]
        if job.translated:  # its host code stays behind
            whole = into / "whole.o"
            self._require_done(
                job, self._run_on_source(job, ["-c", str(made_object), "-o", str(whole)], into)
            )
            made_object.unlink()
            made_object = whole
            linked += entries_only(whole, [ENTRY])
        done = self._run_on_source(job, [*linked, "-shared", str(made_object), "-o", str(made)], into)
        self._require_done(job, done)
        made_object.unlink()
        keep_lines(made)
        if job.translated:
            found = compiled_from.of_translated(text)
        else:
            named = not self.compiler.is_clang
            found = compiled_from.compiled_from(
                text, rules, job.source.parent, job.folders, HERE, is_named=named
            )
        compiled_from.write(into, found)
        for path in (*rules, *into.glob("whole.*")):
            path.unlink(missing_ok=True)

    def _preprocessed(self, job: Compilation) -> bytes:
        """The text that the compiler sees."""
        if job.translated:
            return job.source.read_bytes()
        with scratch_folder("text") as own:
            text = own / "text.ii"
            words = [*job.flags, "-E", str(job.source), "-o", str(text)]
            self._require_done(job, self._run_on_source(job, words, own))
            return text.read_bytes()

    def _run_on_source(self, job: Compilation, arguments: Sequence[str], writable: Path) -> supervisor.Ended:
        """The compiler on somebody's source: under strict it reads what belongs to the source and nothing else."""
        rules = None
        if job.strict:
            place = project_of(job.source) or job.source.parent
            rules = Confinement(self.runner(), (writable,), (place, *job.readable))
        return self.compiler.run(arguments, searched_variables(), rules, job.source.parent)

    def _require_done(self, job: Compilation, done: supervisor.Ended) -> None:
        if done.over:
            raise KernelBuildError(self._over_limit(done, job.source, job.what))
        if done.code != 0:
            said = done.said.decode("utf-8", errors="replace")
            _require_room(said)
            raise KernelBuildError(self._build_failure(said, job.source, job.what))

    def _precompiled(self, kind: str, header: Path, flags: list[str], content: str) -> list[str]:
        """What makes the compiler read `header` first: precompiled where it can be."""
        if self.compiler.is_zig:
            return ["-include", str(header)]

        def build(into: Path) -> None:
            if self.compiler.is_clang:
                # times do not matter, its content is in the key
                read, extra = header, ["-Xclang", "-fno-pch-timestamp"]
            else:
                # g++ takes X.gch for a header X beside it
                read, extra = into / header.name, []
                shutil.copyfile(header, read)
            made = [
                f"-I{ENGINE}",
                f"-I{INCLUDE}",
                "-x",
                "c++-header",
                str(read),
                "-o",
                str(into / f"{header.name}.gch"),
            ]
            self._run([*flags, *extra, *made], "precompiling our headers")

        # clang looks again for every header where it was, and another checkout of ours may be gone
        place = [str(HERE)] if self.compiler.is_clang else []
        entry = self.cache.put(kind, content_key([self._compiler_identity, content, *flags, *place]), build)
        if self.compiler.is_clang:
            return ["-include-pch", str(entry / f"{header.name}.gch")]
        return ["-include", str(entry / header.name)]

    def _over_limit(self, done: supervisor.Ended, source: Path, what: str) -> Failure:
        most = limits.compile_seconds()
        text = {
            "time": f"compiling the {what} took more than {most:g} s; --compile-limit gives it more",
            "output": f"compiling the {what} gave more than {limits.COMPILE_OUTPUT >> 20} MiB of messages",
        }[done.over]
        log = self._keep_log(done.said.decode("utf-8", errors="replace"), source)
        fault = Fault.KERNEL if what == "kernel" else Fault.INPUT
        return Failure(fault, text, str(source), 1, limit=done.over, log=log)

    def _build_failure(self, log: str, source: Path, what: str) -> Failure:
        from insight_trace.simulate.embedded.compile_errors import (
            first_error,
        )  # wanted only where something failed

        error = first_error(log, source)
        path = self._keep_log(log, source)
        if error.refused:
            return Failure(Fault.NOT_SUPPORTED, error.refused, error.file, error.line, log=path)
        if error.missing_op:
            return Failure(
                Fault.NOT_SUPPORTED, f"{error.missing_op} is not supported", error.file, error.line, log=path
            )
        fault = Fault.KERNEL if what == "kernel" else Fault.INPUT
        return Failure(
            fault, f"the {what} does not compile: {error.message}", error.file, error.line, log=path
        )

    def _keep_log(self, log: str, source: Path) -> str:
        path = self.cache.root / "logs" / f"{source.stem}-{content_key([log, str(source)])[:12]}.log"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(log, encoding="utf-8")
        except OSError:
            return ""
        return str(path)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


# what a compiler says that finds no assembler or linker
_NO_TOOLS = re.compile(
    r"cannot find '(?:ld|as|collect2)'|cannot execute '(?:as|ld|cc1plus|collect2)'|unable to execute command"
)


def _require_room(said: str) -> None:
    if _NO_TOOLS.search(said):
        raise JobError(
            "the compiler finds no assembler or linker (as, ld)",
            hint="they are found by PATH: is it set, and is binutils installed?",
        )
    if "No space left on device" in said:
        raise JobError(
            "the compiler found no room on a disk",
            hint="make room where temporary files (TMPDIR) and the cache (INSIGHT_TRACE_CACHE) are",
        )


def put_emulator_before(program: Path, emulator: Sequence[str]) -> None:
    """In the place of a program for another machine stands a script that runs it in the emulator."""
    import shlex

    foreign = program.rename(program.with_name(f"{program.name}.bin"))
    # looks beside itself, as the entry is renamed when it is whole, and needs nothing of the environment
    words = shlex.join([shutil.which(emulator[0]) or emulator[0], *emulator[1:]])
    text = f'#!/bin/sh\nexec {words} "${{0%/*}}/{foreign.name}" "$@"\n'
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
