"""Runs planned kernels in the vendor's simulator: test case, build, inputs, collect, export."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from insight_trace import __version__
from insight_trace.digest import argument_hashes, file_hash, headers_hash, name_of
from insight_trace.dtypes import DTYPES
from insight_trace.errors import InputError, InsightTraceError, JobError, RequestError
from insight_trace.options import RunOptions, VendorOptions
from insight_trace.profile.kernel_runner import (
    COLLECT_FAILED,
    EXPORT_FAILED,
    EXPORTED,
    FAILED,
    Places,
    RunOutcome,
    bound_by,
    core_pipes,
    cycles_of,
    write_figures,
)
from insight_trace.profile.testcase import HOST_TYPES, LauncherCase, own_case, write_zero_inputs
from insight_trace.ptoas.buffer_content import write_content
from insight_trace.ptoas.planned_kernel import BufferArg, Content, ProfileKernel, ValueArg
from insight_trace.simulate.msprof.building import (
    Build,
    demangled,
    exported_symbols,
    require_built,
    run_build,
    run_environment,
)
from insight_trace.simulate.msprof.collecting import Application, ExportError, run_application
from insight_trace.simulate.msprof.msprof_simulator import MsprofSimulator
from insight_trace.simulate.msprof.preflight import Ready
from insight_trace.simulate.msprof.toolkit_processes import Workplace, run_logged
from insight_trace.storage import write_whole

# A message of the compiler about a place in a source: no other flag would make it go away.
_SOURCE_ERROR = re.compile(r"^\S+?:\d+:\d+: (?:fatal )?error:", re.MULTILINE)
_STAMP = "insight_trace_mark"


class MsprofRunner:
    """Builds and collects one kernel per call; calls may come from several threads."""

    in_threads = True

    def __init__(
        self,
        vendor: VendorOptions,
        environ: Mapping[str, str] = os.environ,
        simulator: MsprofSimulator | None = None,
    ) -> None:
        if vendor.ptoas_root is not None:
            find_generator(vendor.ptoas_root)  # a wrong checkout is reported before the first kernel
        self.options = vendor
        self.environ = environ
        self.aicore_arch = vendor.aicore_arch or environ.get("AICORE_ARCH", "")
        self.simulator = simulator or MsprofSimulator(RunOptions(), vendor, environ)
        self._stopped = threading.Event()

    @property
    def name(self) -> str:
        found = [
            f"CANN {ready.toolkit.version or ready.toolkit.home} {ready.soc_version}"
            for _, ready in sorted(self.simulator.found.items())
        ]
        options = self.options
        parts = [f"msprof {', '.join(found)}", f"pto-isa {self.simulator.pto_isa_root}"]
        parts += [f"generator of {options.ptoas_root}"] if options.ptoas_root else []
        parts += [self.aicore_arch] if self.aicore_arch else []
        parts += [f"{options.launch_count} launches"] if options.launch_count != 1 else []
        parts += [] if options.debug_lines else ["without lines"]
        return " · ".join(parts)

    def stop(self) -> None:
        self._stopped.set()

    def digest(self, kernel: ProfileKernel) -> str:
        """Every file that the vendor's compiler may include counts."""
        return fingerprint(kernel, self.name, (self.simulator.pto_isa_root / "include",))

    def call(self, kernel: ProfileKernel, places: Places) -> Callable[[], RunOutcome]:
        return functools.partial(self.run, kernel, places)

    def run(self, kernel: ProfileKernel, places: Places) -> RunOutcome:
        for parent in (places.case.parent, places.build.parent):
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        ready = self.simulator.ready(kernel.arch)
        arch = self.aicore_arch or ready.target.aicore_arch
        environment = run_environment(ready, places.build, device=0)
        workplace = Workplace(places.case, environment, places.logs, self._stopped)
        facts = {"case_dir": str(places.case), "build_dir": str(places.build)}
        try:
            places.step("generate")
            case = self._case(kernel, places, arch, ready)
            facts["case_dir"] = str(case.directory)
            places.step("build")
            warnings = self._build(case, ready, places, workplace)
            symbol, readable = kernel_symbol(case, environment)
            facts |= {"app": str(case.application), "kernel_lib": str(case.library)}
            facts |= {"symbol": symbol, "demangled": readable}
            places.step("golden")
            warnings += self._inputs(case, places)
            if self.options.ptoas_root is not None:
                warnings += given_to(case, kernel)
        except InsightTraceError as error:
            return RunOutcome(FAILED, str(error), facts=facts)
        at_case = dataclasses.replace(workplace, cwd=case.directory)
        return self._collect(kernel, case, symbol, ready, places, at_case, tuple(warnings), facts)

    def _case(self, kernel: ProfileKernel, places: Places, arch: str, ready: Ready) -> LauncherCase:
        """The launcher's sources: ours, or those of PTOAS's generator."""
        if self.options.ptoas_root is None:
            return own_case(
                kernel, places.case, places.build, aicore_arch=arch, debug_lines=self.options.debug_lines
            )
        log, how = places.logs / "generate.log", {"soc_version": ready.soc_version, "aicore_arch": arch}
        return foreign_case(
            self.options.ptoas_root, kernel, places.case, places.build, log,
            **how, timeout=self.options.step_seconds, stop=self._stopped,
        )  # fmt: skip

    def _build(self, case: LauncherCase, ready: Ready, places: Places, workplace: Workplace) -> list[str]:
        """Builds, unless an earlier run of the same kernel has done so; returns what to warn about."""
        stamp = places.build / _STAMP
        files = (case.library, case.application)
        if places.mark and _read(stamp) == places.mark and all(path.is_file() for path in files):
            return []
        stamp.unlink(missing_ok=True)
        defines = {"SOC_VERSION": ready.soc_version, "PTO_ISA_ROOT": str(self.simulator.pto_isa_root)}
        if self.options.ptoas_root is not None:
            # PTOAS's build file does not look for the simulator's libraries where x86_64 hosts keep them.
            defines["CMAKE_EXE_LINKER_FLAGS"] = f"-L{ready.simulator_lib}"
        wanted = Build(
            case.directory,
            places.build,
            case.target,
            defines,
            self.options.step_seconds,
            self.options.build_seconds,
        )
        warnings = []
        workplace = dataclasses.replace(workplace, cwd=case.directory)
        try:
            run_build(wanted, workplace)
        except JobError:
            if not (case.debug_lines and _refused_flag(places.logs / "build.log")):
                raise
            run_build(dataclasses.replace(wanted, defines={**defines, "DEBUG_LINES": "OFF"}), workplace)
            warnings.append("the compiler refused -g: the trace has no source lines")
        require_built(files, workplace)
        write_whole(stamp, places.mark, mode=0o600)
        return warnings

    def _inputs(self, case: LauncherCase, places: Places) -> list[str]:
        """Runs the case's golden.py; zero files serve where there is none or it fails, and that is said."""
        problem = "there is no golden.py"
        log = places.logs / "golden.log"
        if (case.directory / "golden.py").is_file():
            try:
                code = run_step(
                    [sys.executable, "golden.py"],
                    log,
                    directory=case.directory,
                    timeout=self.options.step_seconds,
                    stop=self._stopped,
                )
                problem = "" if code == 0 else f"golden.py failed: {cause_in(log)}"
            except JobError as error:
                if self._stopped.is_set():
                    raise
                problem = f"golden.py failed: {error.what}"
        zero = write_zero_inputs(case)
        if problem and zero:
            return [f"{problem}; zeros stand in for {', '.join(zero)}"]
        return []

    def _collect(
        self,
        kernel: ProfileKernel,
        case: LauncherCase,
        symbol: str,
        ready: Ready,
        places: Places,
        workplace: Workplace,
        warnings: tuple[str, ...],
        facts: dict[str, str],
    ) -> RunOutcome:
        places.step("collect")
        asked = Application(case.application, symbol, self.options.launch_count, self.options.timeout_minutes)
        try:
            collected = run_application(asked, ready, workplace, places.out, places.out)
        except ExportError as error:
            return RunOutcome(EXPORT_FAILED, str(error), warnings=warnings, facts=facts)
        except JobError as error:
            return RunOutcome(COLLECT_FAILED, str(error), warnings=warnings, facts=facts)
        places.step("export")
        outcome = RunOutcome(
            EXPORTED,
            "" if collected.exported else "collect produced traces directly",
            warnings=(*warnings, *collected.warnings),
            facts=facts,
        )
        from insight_trace.insight.reader import open_trace

        try:
            trace = replace(open_trace(collected.directory), path=None)
            about = {"source": str(kernel.source), "simulator": self.name}
            write_figures(trace, places.folder, kernel.name, about)
        except InputError as error:  # Insight may still open it
            said = (*outcome.warnings, f"no clean trace: {error.what}")
            return dataclasses.replace(outcome, warnings=said)
        pipes = core_pipes(trace.instructions)
        cycles = cycles_of(trace.instructions)
        return dataclasses.replace(outcome, cycles=cycles, bound_by=bound_by(pipes), pipes=pipes)


def kernel_symbol(case: LauncherCase, environment: Mapping[str, str]) -> tuple[str, str]:
    """The kernel's exported name and how people read it: one run of nm, one of c++filt."""
    names = sorted(exported_symbols(case.library, environment))
    readable = demangled(names, environment)
    for wanted in case.symbols:
        for name, text in readable.items():
            if text == wanted or text.startswith(f"{wanted}("):
                return name, text
    raise JobError(
        f"{case.library.name} exports no {' or '.join(case.symbols)}",
        where=str(case.library),
        hint=f"it exports {', '.join(list(readable.values())[:20]) or 'nothing'}",
    )


def _refused_flag(log: Path) -> bool:
    """Whether a build failed otherwise than over the text of a source."""
    try:
        return not _SOURCE_ERROR.search(log.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def fingerprint(kernel: ProfileKernel, runner: str, include: Sequence[Path] = ()) -> str:
    """The digest of a kernel for simulators that compile it themselves: every file that they may include counts."""
    work = kernel.workload
    given = [a.file for a in kernel.arguments if isinstance(a, BufferArg) and a.file is not None]
    files = [kernel.source, kernel.pto, *given, *(member.source for member in (work.kernels if work else ()))]
    folders = dict.fromkeys((kernel.source.parent, *include))
    arguments = (
        kernel.arguments if work is None else (argument_hashes(work.arguments), work.number, work.count)
    )
    return name_of(
        __version__, runner, kernel.entry, kernel.kind.value, kernel.arch, kernel.seed,
        [file_hash(path) for path in files], [headers_hash(folder) for folder in folders], arguments,
    )  # fmt: skip


# --- test cases made by PTOAS's own generator, for `--ptoas-root`


_GENERATOR = "test/npu_validation/scripts/generate_testcase.py"
_SIZEOF = {HOST_TYPES.get(kind.cpp, kind.cpp): kind.size for kind in DTYPES}
_SIZE = re.compile(r"\bsize_t\s+(\w+)\s*=\s*([\w\s*()]+);")
_READ = re.compile(r'\bReadFile\(\s*"\./([\w.\-]+)"\s*,\s*(\w+)')


def find_generator(root: Path) -> Path:
    path = root / _GENERATOR
    if not path.is_file():
        raise RequestError(f"--ptoas-root: {root} has no {_GENERATOR}", hint="name a checkout of PTOAS")
    return path


def foreign_case(
    root: Path, kernel: ProfileKernel, out: Path, build: Path, log: Path,
    *, soc_version: str, aicore_arch: str, timeout: float, stop: threading.Event | None = None,
) -> LauncherCase:  # fmt: skip
    """PTOAS's own test case of a kernel, and what comes of it in `build`.

    Where below `out` the generator puts it is its own affair.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, mode=0o700)
    name = _case_name(kernel)
    command = [sys.executable, str(find_generator(root)), "--input", str(kernel.source), "--testcase", name]
    command += ["--output-root", str(out), "--run-mode", "sim", "--soc-version", soc_version]
    command += ["--aicore-arch", aicore_arch]
    if run_step(command, log, timeout=timeout, stop=stop) != 0:
        raise JobError("PTOAS's generator failed", where=str(log), hint=cause_in(log))
    found = sorted(path.parent for path in out.rglob("main.cpp"))
    if len(found) != 1:
        raise JobError(f"PTOAS's generator left {len(found)} test cases below {out}", where=str(log))
    functions = (function.name for function in kernel.functions)
    return LauncherCase(
        found[0],
        f"{name}_sim",
        build / f"lib{name}_kernel.so",
        build / f"{name}_sim",
        tuple(dict.fromkeys((kernel.entry, kernel.source.stem, *functions))),
        input_sizes((found[0] / "main.cpp").read_text(encoding="utf-8", errors="replace")),
        debug_lines=False,  # its build file has no such switch
    )


def given_to(case: LauncherCase, kernel: ProfileKernel) -> list[str]:
    """Puts the user's files into a case of PTOAS's; returns what it has no place for."""
    warnings = []
    for argument in kernel.arguments:
        if isinstance(argument, ValueArg) and argument.why == "given":
            warnings.append(f"PTOAS's generator takes no values: --scalar {argument.label} has no effect")
        elif isinstance(argument, BufferArg) and argument.content is Content.FILE:
            file = f"{argument.name}.bin"
            if case.inputs.get(file) == argument.nbytes:
                write_content(argument, kernel.seed, case.directory / file)
            else:
                size = case.inputs.get(file, "an unknown number of")
                warnings.append(
                    f"PTOAS's generator reads {size} bytes for {argument.label}, not {argument.nbytes}: "
                    "--input has no effect"
                )
    return warnings


def _case_name(kernel: ProfileKernel) -> str:
    return re.sub(r"\W", "_", kernel.name)


def input_sizes(main_cpp: str) -> dict[str, int]:
    """Bytes of each input file that a generated main.cpp reads; sizes it cannot tell are left out."""
    sizes: dict[str, int] = {}
    for name, expression in _SIZE.findall(main_cpp):
        value = _product(expression, sizes)
        if value is not None:
            sizes[name] = value
    return {file: sizes[size] for file, size in _READ.findall(main_cpp) if size in sizes}


def _product(expression: str, known: dict[str, int]) -> int | None:
    """A product of numbers, sizes that are known, and `sizeof(T)`."""
    result = 1
    for factor in expression.split("*"):
        word = factor.strip().strip("()").strip()
        sizeof = re.fullmatch(r"sizeof\s*\(\s*(\w+)", word) or re.fullmatch(
            r"sizeof\s*\(\s*(\w+)\s*\)", factor.strip()
        )
        if sizeof and sizeof.group(1) in _SIZEOF:
            result *= _SIZEOF[sizeof.group(1)]
        elif word.isdecimal() and len(word) < 20:
            result *= int(word)
        elif word in known:
            result *= known[word]
        else:
            return None
    return result


# --- runs one step of a job, and finds in its log what went wrong


_TAIL_BYTES = 64 << 10
_TAIL_LINES = 15


def run_step(
    words: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    timeout: float | None = None,
    stop: threading.Event | None = None,
) -> int:
    """The exit code. Past `timeout` all that it started ends, and the log keeps what was said until then."""
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    done = run_logged(
        words,
        log,
        cwd=directory or Path.cwd(),
        environment={**os.environ, **(environment or {})},
        seconds=timeout,
        stop=stop,
    )
    if done.code is None:
        name = Path(words[0]).name
        raise JobError(f"{name} took more than {timeout:g} s", where=str(log), hint=cause_in(log))
    return done.code


def cause_in(log: Path) -> str:
    """What a log says went wrong: its first line with an error, else its last lines."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return "no output"
    said = [
        line.strip() for line in lines if line.strip() and not line.startswith(("$ ", "[exit ", "[ended"))
    ]
    for line in said:
        if "error:" in line.casefold() or "traceback" in line.casefold():
            if "traceback" in line.casefold():
                return said[-1]
            return line
    return "\n  ".join(said[-_TAIL_LINES:]) or "no output"
