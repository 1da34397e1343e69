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
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.commands import add_simulator
from insight_trace.errors import RequestError

if TYPE_CHECKING:
    from insight_trace.profile import ProfileRequest
    from insight_trace.profile.kernel_runner import RunnerOptions
    from insight_trace.ptoas.planned_kernel import KernelArg, PlannedKernel

RUNS_KERNELS = True


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of one or more")
    return value


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


def prepare(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to profile")
    what.add_argument("--build-dir", type=_path, metavar="DIR", help="an existing PyPTO build")
    what.add_argument(
        "--case", type=_path, metavar="FILE.py", help="a script that makes a build; its arguments after --"
    )
    what.add_argument("--python", metavar="P", help="interpreter of --case (default: python on PATH)")
    what.add_argument("--run-cmd", metavar="CMD", help="a shell command that makes a build")
    what.add_argument(
        "--run-env", action="append", default=[], metavar="K=V", help="environment of --case (repeatable)"
    )
    what.add_argument("--task-submit", action="store_true", help="hand the command to task-submit")
    what.add_argument(
        "--task-device", default="auto", metavar="D", help="device for --task-submit (default: auto)"
    )
    what.add_argument("--build-output-root", type=_path, default=None, metavar="DIR",
                      help="where a command leaves its builds (default: build_output)")  # fmt: skip
    what.add_argument("--ptoas-dir", type=_path, metavar="DIR", help="only the kernels in DIR itself")
    what.add_argument("--source-glob", metavar="PATTERN", help="only kernels that match, whatever the layout")
    what.add_argument("--func", action="append", default=[], metavar="NAME",
                      help="only this kernel: name, file stem or function (repeatable)")  # fmt: skip
    what.add_argument(
        "--list-funcs", action="store_true", help="print the kernels and stop; needs no toolchain"
    )
    what.add_argument("--json", action="store_true", help="with --list-funcs: one JSON object")
    what.add_argument("case_args", nargs="*", metavar="-- ARGS", help="arguments of --case")

    values = parser.add_argument_group("values of arguments")
    values.add_argument("--dispatch", default="median", metavar="WHICH",
                        help="of the build's own run: median (by cycles), first, slowest, all, or a number")  # fmt: skip
    values.add_argument("--synthetic", action="store_true",
                        help="made-up arguments, also where the build can be run")  # fmt: skip
    values.add_argument(
        "--dynamic-dim", type=_positive, default=256, metavar="N", help="size of open dimensions (256)"
    )
    values.add_argument(
        "--scalar", action="append", default=[], metavar="[KERNEL:]NAME=V", help="value of a scalar"
    )
    values.add_argument("--input", action="append", default=[], metavar="[KERNEL:]NAME=FILE",
                        help="content of a tensor: .npy, or raw bytes of its size")  # fmt: skip
    values.add_argument("--seed", type=int, default=0, metavar="N", help="seed of random inputs (0)")

    how = parser.add_argument_group("how to run")
    how.add_argument("--target", choices=("a2a3", "a5"), help="override the target that the build records")
    add_simulator(how)
    how.add_argument(
        "--preset", choices=("device", "camodel"), default="device", help="timing of the embedded simulator"
    )
    how.add_argument(
        "--l2",
        choices=("cold", "warm"),
        help="what L2 holds at first: nothing (default), or what the same run left",
    )
    how.add_argument(
        "--launch",
        choices=("task", "kernel"),
        help="a task of a scheduler (default), or a kernel launched by itself",
    )
    how.add_argument(
        "--check", action="store_true", help="look for races, wrong memory and wrong synchronisation"
    )
    how.add_argument("--jobs", type=_positive, default=None, metavar="N", help="kernels at a time (cores)")
    how.add_argument("--cluster", metavar="ADDRESS",
                     help="run on the workers of a Dask cluster (extra: cluster)")  # fmt: skip
    how.add_argument("--keep-going", action=argparse.BooleanOptionalAction, default=True,
                     help="go on after a kernel that failed (default)")  # fmt: skip
    how.add_argument("--resume", nargs="?", type=_path, const=True, default=None, metavar="RUN",
                     help="continue the latest run of the build, or RUN")  # fmt: skip
    how.add_argument(
        "--output-root", type=_path, metavar="DIR", help="parent of the run directory (the build)"
    )
    how.add_argument(
        "--name", default="kernel_insight_all_funcs", metavar="PREFIX", help="prefix of the run directory"
    )
    how.add_argument("--keep-outputs", action="store_true", help="keep what kernels wrote, as .npy")
    how.add_argument("--no-source", action="store_true",
                     help="no source text in visualize_data.bin (pypto's clean_sim_trace reads no other)")  # fmt: skip
    how.add_argument(
        "--step-timeout", type=_seconds, default=300.0, metavar="S", help="per step of a kernel (300)"
    )
    how.add_argument(
        "--build-timeout", type=_seconds, default=600.0, metavar="S", help="per build of a kernel (600)"
    )

    tools = parser.add_argument_group("toolchain")
    tools.add_argument(
        "--ptoas-bin", type=_path, metavar="FILE", help="assembler for .pto files without a .cpp"
    )
    tools.add_argument(
        "--ptoas-root", type=_path, metavar="DIR", help="PTOAS checkout whose test case generator is used"
    )
    tools.add_argument(
        "--pto-isa-root",
        type=_path,
        metavar="DIR",
        help="checkout of pto-isa whose headers kernels compile against",
    )
    tools.add_argument("--cann-set-env", type=_path, metavar="FILE", help="set_env.sh of CANN")
    tools.add_argument(
        "--soc-version",
        default="",
        metavar="V",
        help="the chip: a name, or a chip file of the embedded simulator",
    )
    tools.add_argument("--aicore-arch", default="", metavar="A", help="--cce-aicore-arch of CANN builds")
    tools.add_argument("--msopprof", type=_path, metavar="FILE", help="worker binary for msprof")
    tools.add_argument("--auto-msopprof", action=argparse.BooleanOptionalAction, default=False,
                       help="look for a worker in other local CANN installations")  # fmt: skip
    tools.add_argument(
        "--launch-count", type=_positive, default=1, metavar="N", help="launches that msprof records (1)"
    )
    tools.add_argument(
        "--msprof-timeout",
        type=_positive,
        default=120,
        metavar="MIN",
        help="in MINUTES, as msprof counts (120)",
    )
    tools.add_argument("--debug-lines", action=argparse.BooleanOptionalAction, default=True,
                       help="compile with -g, so that traces have source lines (default)")  # fmt: skip


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


def _build(options: argparse.Namespace) -> Path:
    """The build to profile, made first when a command was given."""
    from insight_trace.profile.case_run import case_command, run_for_build, shell_command, submitted

    given = [flag for flag in ("build_dir", "case", "run_cmd") if getattr(options, flag) is not None]
    if len(given) != 1:
        raise RequestError(
            "exactly one of --build-dir, --case and --run-cmd says what to profile",
            hint="insight-trace profile --build-dir build_output/CASE",
        )
    if options.case_args and options.case is None:
        raise RequestError(f"'{options.case_args[0]}' is no option; arguments after -- are for --case")
    if options.build_dir is not None:
        build: Path = options.build_dir
        return build
    if options.case is not None:
        command = case_command(options.case, options.case_args, options.run_env, options.python)
    else:
        if options.run_env:
            raise RequestError("--run-env goes with --case; write variables into --run-cmd itself")
        command = shell_command(options.run_cmd)
    if options.task_submit:
        command = submitted(command, options.task_device)
    root = options.build_output_root or Path.cwd() / "build_output"
    return run_for_build(command, root, root / "kernel_insight_case_run" / "case_run.log")


def _request(options: argparse.Namespace) -> ProfileRequest:
    from insight_trace.profile import ProfileRequest
    from insight_trace.ptoas.kernel_plan import Settings

    scalars = {k: _number(v, k) for k, v in _assignments(options.scalar, "--scalar").items()}
    inputs = {k: _path(v) for k, v in _assignments(options.input, "--input").items()}
    for name, path in inputs.items():
        if not path.is_file():
            raise RequestError(f"--input {name}: {path} is not a file")
    if options.seed < 0:
        raise RequestError("--seed: a seed is not negative")
    if Path(options.name).name != options.name or options.name.startswith("."):
        raise RequestError(f"--name {options.name!r}: a plain name was expected")
    return ProfileRequest(
        _build(options),
        options.ptoas_dir,
        options.source_glob,
        tuple(options.func),
        Settings(options.target or "", options.dynamic_dim, options.seed, scalars, inputs),
        options.output_root,
        options.name,
        options.jobs,
        options.keep_going,
        options.resume is not None,
        options.resume if isinstance(options.resume, Path) else None,
        options.ptoas_bin,
        options.step_timeout,
        options.dispatch,
        options.synthetic,
    )


def _runner_options(options: argparse.Namespace) -> RunnerOptions:
    from insight_trace.profile.kernel_runner import RunnerOptions

    return RunnerOptions(
        options.preset,
        options.cann_set_env,
        options.ptoas_root,
        options.pto_isa_root,
        options.soc_version,
        options.aicore_arch,
        options.msopprof,
        options.auto_msopprof,
        options.launch_count,
        options.msprof_timeout,
        options.step_timeout,
        options.build_timeout,
        options.debug_lines,
        not options.no_source,
        options.keep_outputs,
        options.l2,
        options.launch,
        options.check,
    )


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


def run(options: argparse.Namespace) -> int:
    from insight_trace.profile import list_kernels, profile
    from insight_trace.profile.profile_progress import reporting

    if options.json and not options.list_funcs:
        raise RequestError("--json goes with --list-funcs; a run writes manifest_export.csv")
    request = _request(options)
    if options.list_funcs:
        planned = list_kernels(request)
        _print_json(planned, request.build) if options.json else _print_list(planned, request.build)
        return 0
    with reporting() as report:
        result = profile(
            request,
            None,
            report,
            lambda text: print(text, file=sys.stderr),
            simulator=options.simulator,
            options=_runner_options(options),
            cluster=options.cluster,
        )
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
            if finding.get("mend"):
                print(f"  to mend it: {finding['mend']}")
    print(f"NOTES {notes}, in logs/KERNEL/{FINDINGS} of the run")
