"""Profile every kernel of a PyPTO build: one trace per kernel, without a model run and without CANN.

  insight-trace profile --build-dir build_output/case          an existing build
  insight-trace profile --case model.py -- --batch 4           run a script that makes one first
  insight-trace profile --build-dir build_output/case --list-funcs

Kernels are ptoas/*.cpp and next_levels/**/ptoas/*.cpp, each with its .pto beside it. Results go to
<build>/kernel_insight_all_funcs_<time>/: manifest_export.csv, summary.txt, funcs/<kernel>/…/simulator/.
Relative paths are relative to where you stand. Exit code 0: all exported; 1: some failed; 2: wrong request.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TextIO, cast

from msgspec.structs import replace

from insight_trace.commands import call
from insight_trace.errors import RequestError
from insight_trace.limits import cut, steer, visible
from insight_trace.options import VendorOptions, options_of

if TYPE_CHECKING:
    from rich.table import Table

    from insight_trace.profile.case_run import BuildCommand
    from insight_trace.profile.profile_run import ProfileResult, Progress
    from insight_trace.ptoas.planned_kernel import KernelArg, PlannedKernel

RUNS_KERNELS = True
SELDOM = """
python run_cmd run_env task_submit task_device build_output_root ptoas_dir source_glob name keep_outputs
include_source ptoas_root aicore_arch msopprof auto_msopprof launch_count timeout_minutes debug_lines
build_seconds sandbox compile_limit
"""


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds")
    return value


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


OPTIONS = """
# what to profile
--build-dir DIR          place       an existing PyPTO build
--case FILE.py           place       a script that makes a build; its arguments after --
--python P               text        interpreter of --case (default: python on PATH)
--run-cmd CMD            text        a shell command that makes a build
--run-env K=V            text many   environment of --case (repeatable)
--task-submit            on          hand the command to task-submit
--task-device D          text =auto  device for --task-submit (default: auto)
--build-output-root DIR  place       where a command leaves its builds (default: build_output)
--ptoas-dir DIR          place       only the kernels in DIR itself
--source-glob PATTERN    text        only kernels that match, whatever the layout
--func NAME -> funcs     text many   only this kernel: name, file stem or function (repeatable)
--list-funcs             on          print the kernels and stop; needs no toolchain
--json                   on          with --list-funcs: one JSON object
case_args -- ARGS        text *      arguments of --case
# values of arguments
--dispatch WHICH         text =median  of the build's own run: median (by cycles), first, slowest, all, or a number
--synthetic              on          made-up arguments, also where the build can be run
--dynamic-dim N          positive =256  size of open dimensions (256)
--scalar [KERNEL:]NAME=V  text many  value of a scalar
--input [KERNEL:]NAME=FILE  text many  content of a tensor: .npy, or raw bytes of its size
--seed N                 int =0      seed of random inputs (0)
# how to run
--target                 a2a3|a5     override the target that the build records
@ simulator preset soc_version
--l2                     cold|warm   what L2 holds at first: nothing, or what the same run left
@ launch check
@ jobs
--keep-going             either      go on after a kernel that failed (default)
--resume RUN             place alone  continue the latest run of the build, or RUN
--output-root DIR        place       parent of the run directory (the build)
--name PREFIX            text =kernel_insight_all_funcs  prefix of the run directory
@ keep_outputs include_source
--step-timeout --time-limit S -> seconds  seconds =300  per step of a kernel (%(default)g)
# toolchain
--ptoas-bin FILE         place       assembler for .pto files without a .cpp
@ ptoas_root cann_set_env aicore_arch msopprof auto_msopprof launch_count timeout_minutes debug_lines build_seconds
@ pto_isa_root ascendc_root
"""


KINDS = {"place": _path, "seconds": _seconds}


def _number(text: str, flag: str) -> int | float:
    for convert in (lambda t: int(t, 0), float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise RequestError(f"--scalar {flag}: {text!r} is not a number")


def _assignments(given: list[str], flag: str) -> dict[str, str]:
    found = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise RequestError(f"{flag} {item}: expected NAME=VALUE, or KERNEL:NAME=VALUE for one kernel")
        found[name.strip()] = value
    return found


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """What `profile` and `list_kernels` take in another form than it is typed."""
    scalars = {k: _number(v, k) for k, v in _assignments(options.scalar, "--scalar").items()}
    inputs = {k: _path(v) for k, v in _assignments(options.input, "--input").items()}
    return {"build": options.build_dir, "command": _command(options), "scalars": scalars, "inputs": inputs}


def _command(options: argparse.Namespace) -> BuildCommand | None:
    """What makes the build first."""
    from insight_trace.profile.case_run import case_command, shell_command, submitted

    given = [flag for flag in ("build_dir", "case", "run_cmd") if getattr(options, flag) is not None]
    if len(given) != 1:
        raise RequestError(
            "exactly one of --build-dir, --case and --run-cmd says what to profile",
            hint="insight-trace profile --build-dir build_output/CASE",
        )
    if options.case_args and options.case is None:
        raise RequestError(f"'{options.case_args[0]}' is no option; arguments after -- are for --case")
    if options.build_dir is not None:
        return None
    if options.case is not None:
        command = case_command(options.case, options.case_args, options.run_env, options.python)
    else:
        if options.run_env:
            raise RequestError("--run-env goes with --case; write variables into --run-cmd itself")
        command = shell_command(options.run_cmd)
    return submitted(command, options.task_device) if options.task_submit else command


def _print_list(planned: tuple[PlannedKernel, ...], build: Path) -> None:
    from insight_trace.ptoas.planned_kernel import ProfileKernel

    def shown(path: Path) -> str:
        return str(path.relative_to(build)) if path.is_relative_to(build) else str(path)

    width = max(len(kernel.name) for kernel in planned)
    for kernel in planned:
        kind = kernel.kind.value if isinstance(kernel, ProfileKernel) else kernel.kind
        print(f"{kernel.name:<{width}}  {kind:<3}  {kernel.arch:<4}  {shown(kernel.source)}")
        if not isinstance(kernel, ProfileKernel):
            print(f"{'':<{width}}  cannot run: {kernel.problem}")


def _argument_json(argument: KernelArg) -> dict[str, object]:
    from insight_trace.profile import argument_line
    from insight_trace.ptoas.planned_kernel import BufferArg

    about: dict[str, object] = {"position": argument.position, "name": argument.name}
    about |= {"label": argument.label, "why": argument.why, "text": argument_line(argument).strip()}
    if isinstance(argument, BufferArg):
        about |= {"dtype": argument.dtype.name, "elements": argument.elements}
        return about | {"content": argument.content.value, "role": argument.role}
    return about | {"type": argument.cpp_type, "value": argument.value, "per_lane": argument.per_lane}


def _print_json(planned: tuple[PlannedKernel, ...], build: Path) -> None:
    import json

    from insight_trace.ptoas.planned_kernel import ProfileKernel

    listed = []
    for kernel in planned:
        entry: dict[str, object] = {"name": kernel.name, "arch": kernel.arch, "source": str(kernel.source)}
        entry["arguments"] = [_argument_json(argument) for argument in kernel.arguments]
        if isinstance(kernel, ProfileKernel):
            entry |= {"kind": kernel.kind.value, "entry": kernel.entry, "pto": str(kernel.pto)}
            entry["warnings"] = list(kernel.warnings)
        else:
            entry |= {"kind": kernel.kind, "problem": kernel.problem}
        listed.append(entry)
    print(json.dumps({"build_dir": str(build), "kernels": listed}, indent=2))


def only_reads(options: argparse.Namespace) -> bool:
    return bool(options.list_funcs)


def run(options: argparse.Namespace) -> int:
    if options.json and not options.list_funcs:
        raise RequestError("--json goes with --list-funcs; a run writes manifest_export.csv")
    if options.list_funcs:
        build, planned = call("list_kernels", options, **_asked(options))
        _print_json(planned, build) if options.json else _print_list(planned, build)
        return 0
    vendor = replace(options_of(options, VendorOptions), step_seconds=options.seconds)
    with reporting() as report:
        result: ProfileResult = call(
            "profile", options, **_asked(options), resume=options.resume or False, vendor=vendor, report=report,
            warn=lambda text: print(text, file=sys.stderr),
        )  # fmt: skip
    print(f"RUN_ROOT {result.root}")
    failed = [f"{row.func}:{row.status}" for row in result.rows if not row.exported]
    if failed:
        print(f"FAILED_FUNCS {','.join(failed)}")
    print(f"EXPORTED {result.exported}/{len(result.rows)}")
    if options.check:
        _print_findings(result.root)
    return 1 if failed else 0


def _print_findings(root: Path) -> None:
    """Errors and warnings of all kernels, and how many notes there are."""
    from insight_trace.limits import RECORD_BYTES
    from insight_trace.profile.embedded_runner import FINDINGS
    from insight_trace.reading import load_json
    from insight_trace.report.recorded_facts import rows_of

    notes = 0
    for path in sorted(root.rglob(FINDINGS)):
        # of an earlier run, too, that this one goes on with
        for finding in rows_of(load_json(path, most=RECORD_BYTES)):
            severity, category, message = (str(finding.get(k)) for k in ("severity", "category", "message"))
            notes += severity == "note"
            if severity == "note":
                continue
            print(f"FOUND {path.parent.name} {severity} [{category}] {message}")
            if finding.get("fix"):
                print(f"  to fix it: {finding['fix']}")
    print(f"NOTES {notes}, in logs/KERNEL/{FINDINGS} of the run")


# --- what a person sees while kernels run: a live table on a terminal, lines elsewhere


class Report(Protocol):
    def __call__(self, progress: Progress, /) -> None: ...


def result_line(progress: Progress, warnings: list[str]) -> str:
    """One finished kernel: OK, WARN or FAIL, and why; `warnings` are those to print."""
    row = progress.row
    assert row is not None
    if not row.exported:
        what, *steps = row.columns.get("message", "").splitlines() or ["no message"]
        return "\n  ".join([f"FAIL {row.func}: {row.status}: {what}", *(step.strip() for step in steps[:2])])
    parts = [f"artifacts={row.cell('artifact_count')}"]
    parts += [f"cycles={row.cell('cycles')}"] if row.cell("cycles") else []
    parts += [f"bound by {row.cell('bound_by')}"] if row.cell("bound_by") else []
    parts += [f"workload: {row.cell('workload')}"] if row.cell("workload") else []
    parts += ["verified"] if row.cell("verified") and "mismatch" not in row.cell("warnings") else []
    parts += ["kept from the earlier run"] if progress.reused else []
    text = f"{'WARN' if row.cell('warnings') else 'OK'} {row.func}: {' '.join(parts)}"
    return "\n  ".join([text, *warnings])


# Steps that take long enough for a line of their own: those of the vendor's simulator.
_LONG_STEPS = frozenset({"generate", "build", "golden", "collect", "export"})


class _Told:
    """Warnings that were printed, and how often they came again."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()

    def line(self, progress: Progress) -> str:
        """The kernel's line, with those of its warnings that are new."""
        assert progress.row is not None
        given = [text for text in dict.fromkeys(progress.row.cell("warnings").split(" | ")) if text]
        new = [text for text in given if not self.times[text]]
        self.times.update(given)
        return result_line(progress, new)

    def repeated(self) -> list[str]:
        return [f"the same for {n - 1} more: {text}" for text, n in self.times.items() if n > 1]


class _Lines:
    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.numbers: dict[str, int] = {}
        self.told = _Told()

    def __call__(self, progress: Progress, /) -> None:
        if progress.row is not None:
            print(self.told.line(progress), file=self.stream, flush=True)
            return
        step = "run" if progress.step == "running" else progress.step
        if step == "run" or step in _LONG_STEPS:
            number = self.numbers.setdefault(progress.kernel, min(progress.total, progress.done + 1))
            width = len(str(progress.total))
            line = f"[{number:0{width}d}/{progress.total}] {step} {progress.kernel}"
            print(line, file=self.stream, flush=True)


class _Steered:
    """A terminal for what draws on it; texts of strangers are made visible before."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        steer(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _LiveTable:
    """The last kernels and those that run; what scrolled out stands in summary.txt."""

    SHOWN = 20

    def __init__(self) -> None:
        self.latest: dict[str, Progress] = {}

    def table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False)
        for title in ("kernel", "step", "cycles", "bound by", "workload"):
            table.add_column(title)
        for progress in list(self.latest.values())[-self.SHOWN :]:
            row = progress.row
            cells = ("", "", "")
            if row is not None:
                cells = (row.cell("cycles"), row.cell("bound_by"), row.cell("workload"))
            table.add_row(*map(Text, map(cut, (progress.kernel, progress.step, *cells))))
        return table


@contextmanager
def reporting() -> Iterator[Report]:
    """A report to hand to a run; on a terminal it is a table that follows along."""
    stream = sys.stdout
    if not stream.isatty():
        lines = _Lines(stream)
        yield lines
        for line in lines.told.repeated():
            print(line, file=stream, flush=True)
        return
    from rich.console import Console
    from rich.live import Live

    state, told = _LiveTable(), _Told()
    console = Console(file=cast("IO[str]", _Steered(stream)))
    with Live(state.table(), console=console, refresh_per_second=8) as live:

        def follow(progress: Progress, /) -> None:
            state.latest.pop(progress.kernel, None)
            state.latest[progress.kernel] = progress
            live.update(state.table())
            if progress.row is not None and (not progress.row.exported or progress.row.cell("warnings")):
                console.print(visible(told.line(progress), "\n\t"), markup=False, highlight=False)

        yield follow
    for line in told.repeated():
        console.print(visible(line, "\n\t"), markup=False, highlight=False)
