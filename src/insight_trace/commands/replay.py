"""Replay one recorded dispatch and write what MindStudio Insight opens.

insight-trace replay SCENE --case C --func-id 1 --dump-dir D --dispatch-id 5
insight-trace replay SCENE --case C --kernel SF --recipe
insight-trace replay WORKSPACE                      repeats an earlier replay
insight-trace replay SCENE --case C --dump-dir D --all     every dispatch, verified, one table
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from insight_trace.commands import add_simulator
from insight_trace.commands.replay_all import prepare_all, run_all
from insight_trace.commands.replay_text import as_json, mismatch_text, show, task_lines

if TYPE_CHECKING:
    from insight_trace.model import Kernel, Trace
    from insight_trace.replay.request import ReplayRequest


RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scene", type=Path, metavar="SCENE", nargs="?",
        help="the scene module, a PyPTO build directory, or an earlier workspace",
    )  # fmt: skip
    what = parser.add_argument_group("what to replay")
    what.add_argument("--build-dir", type=Path, metavar="B", help="a PyPTO build, with its run's args dump")
    what.add_argument("--case", metavar="C", help="case of the scene (default: its first)")
    what.add_argument("--func-id", metavar="A[,B,C]", help="the kernel, or the members of a mix")
    what.add_argument(
        "--kernel",
        "--func",
        metavar="NAME",
        dest="kernel",
        help="the kernel by its name or its source's stem",
    )
    what.add_argument("--list-tasks", action="store_true", help="print the tasks of the dump and stop")
    what.add_argument("--kernel-source", type=Path, metavar="PATH", help="the kernel by its source file")
    source = parser.add_argument_group("where its arguments come from (none of these: a capture of the case)")
    source.add_argument(
        "--dump-dir", "--args-dump", type=Path, metavar="D", dest="dump_dir",
        help="a dump (default with --build-dir: that of the build's dfx_outputs)",
    )  # fmt: skip
    source.add_argument(
        "--dispatch-id", type=int, metavar="K", help="a dispatch of the dump (default: the kernel's first)"
    )
    source.add_argument("--task-id", metavar="T", help="a task of the dump, hex or decimal")
    source.add_argument("--arg-spec", type=Path, metavar="F", help="a JSON file of arguments")
    source.add_argument("--recipe", action="store_true", help="made from the case's parameters")
    source.add_argument(
        "--set-arg",
        action="append",
        default=[],
        metavar="SLOT=VALUE",
        help="change a slot: a number, true or false, bits 0x…, or typed, f32:0.5",
    )
    source.add_argument(
        "--restore-arg",
        action="append",
        default=[],
        metavar="SLOT",
        help="bring back what the dump recorded for the slot",
    )
    source.add_argument("--zero-arg", type=int, action="append", default=[], metavar="SLOT",
                        help="fill a tensor with zeros")  # fmt: skip
    source.add_argument("--fill", choices=("zero", "random"), help="content of tensors that have none")
    source.add_argument("--seed", type=int, help="of --fill random")
    how = parser.add_argument_group("how to run")
    add_simulator(how)
    how.add_argument("--backend", choices=("simpler", "ptoas"), default="simpler", help=argparse.SUPPRESS)
    how.add_argument("--target", choices=("a2a3", "a5"), help="chip family, where the scene does not say")
    how.add_argument("--platform", metavar="P", help="a2a3, a2a3sim, a5 or a5sim")
    how.add_argument(
        "--any-target", action="store_true", help="also on a target that the scene does not name"
    )
    how.add_argument(
        "--preset",
        default="device",
        choices=("device", "camodel"),
        help="times as on the chip, or as the vendor's simulator shows them (default: %(default)s)",
    )
    how.add_argument("--soc-version", metavar="V", help="the chip, e.g. Ascend910B1")
    how.add_argument(
        "--block-dim", "--replay-blocks", "--spmd-block-num", type=int, metavar="N", dest="block_dim",
        help="blocks (default: as recorded)",
    )  # fmt: skip
    how.add_argument(
        "--l2",
        choices=("cold", "warm", "trace"),
        help="what L2 holds at first: nothing, what the same run left, what earlier dispatches of the dump left",
    )
    how.add_argument(
        "--launch", choices=("task", "kernel"), help="a task of a scheduler, or a kernel launched by itself"
    )
    how.add_argument(
        "--mark-cost",
        action="store_true",
        help="TRACE_START and TRACE_STOP take the time that they take where ASCENDC_TRACE_ON is defined",
    )
    how.add_argument("--timing-only", action="store_true", help="instructions and times, no arithmetic")
    how.add_argument("--time-limit", type=float, default=60.0, metavar="S", help="seconds the kernel may run")
    how.add_argument(
        "--check", action="store_true", help="look for races, wrong memory and wrong synchronisation"
    )
    how.add_argument(
        "--shadow", action="store_true", help="beside it in double: which lines lose precision, and how much"
    )
    how.add_argument("--strict", action="store_true", help="with --check: exit 1 if there is an error")
    vendor = parser.add_argument_group("the vendor's simulator")
    vendor.add_argument("--cann-home", type=Path, metavar="P", help="the toolkit to use")
    vendor.add_argument("--cann-set-env", type=Path, metavar="P", help="its set_env.sh")
    vendor.add_argument(
        "--pto-isa-root",
        type=Path,
        metavar="P",
        help="checkout of pto-isa whose headers kernels compile against (bundled ones)",
    )
    vendor.add_argument(
        "--device", type=int, default=0, help="id of the simulated device (default: %(default)s)"
    )
    vendor.add_argument(
        "--launch-count", type=int, default=1, help="how often the kernel is launched (default: %(default)s)"
    )
    vendor.add_argument(
        "--timeout",
        "--msprof-timeout",
        type=int,
        default=120,
        metavar="MINUTES",
        dest="timeout",
        help="of a simulation (default: %(default)s)",
    )
    vendor.add_argument(
        "--hw-block-num",
        type=int,
        default=1,
        metavar="N",
        help="blocks that are launched (default: %(default)s)",
    )
    prepare_all(parser)
    out = parser.add_argument_group("what to write")
    out.add_argument(
        "-o",
        "--output",
        "--output-dir",
        type=Path,
        metavar="WORKSPACE",
        dest="output",
        help="the workspace (default: outputs/insight_trace_<scene>_<case>_<kernel>_<time>)",
    )
    out.add_argument("--output-root", type=Path, metavar="DIR", help="parent of a workspace <name>_<time>")
    out.add_argument("--name", metavar="NAME", help="of that workspace (default: the kernel)")
    out.add_argument(
        "--no-collect", "--dry-run", action="store_true", dest="no_collect", help="stop after the workspace"
    )
    out.add_argument(
        "--no-source", action="store_true", help="leave source text out of the Insight directory"
    )
    out.add_argument(
        "--dump-logs", action="store_true", help="also write logs that the vendor's exporter reads"
    )
    out.add_argument(
        "--force",
        action="store_true",
        help="replace an existing workspace",
    )
    out.add_argument(
        "--debug-line", "-g", action="store_true", help=argparse.SUPPRESS
    )  # lines are always there
    out.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace.errors import RequestError
    from insight_trace.finding import Severity
    from insight_trace.replay.replay_folder import RECORD, read_record
    from insight_trace.replay.replaying import replay_gathered, run_replay

    if options.backend == "ptoas":
        raise RequestError(
            "--backend ptoas profiles the kernels of a PyPTO build",
            hint="insight-trace profile --build-dir DIR",
        )
    progress = _progress(options)
    if (options.scene is None) == (options.build_dir is None):
        raise RequestError("give either SCENE or --build-dir B", hint="insight-trace replay --help")
    if options.build_dir is not None:
        from insight_trace.replay.build_dump import build_and_dump

        options.scene, options.dump_dir = build_and_dump(options.build_dir, options.dump_dir)
    if options.list_tasks:
        return _list_tasks(options)
    if options.all or options.sample is not None:
        return run_all(options)
    if options.dump_dir is not None and options.kernel is not None and options.func_id is None:
        from insight_trace.replay.build_dump import members_of

        options.func_id = members_of(options.dump_dir, options.scene, options.kernel)
        options.kernel = None
    request = _request(options)
    if options.shadow and (options.timing_only or options.no_collect):
        raise RequestError(
            "--shadow needs a run that computes", hint="leave --timing-only and --no-collect out"
        )
    if (options.scene / RECORD).is_file():
        selection, gathered, record = read_record(options.scene)
        replay = replay_gathered(_repeated(request, record), selection, gathered, progress)
    else:
        replay = run_replay(request, progress, _annotate)
    precision, table = _precision(replay.workspace) if options.shadow else ({}, [])
    if options.json:
        print(json.dumps(as_json(replay) | precision, indent=2))
    else:
        show(replay, check=options.check, table=table)
    if replay.mismatched and not options.json:
        print(f"insight-trace replay: {mismatch_text(replay)}", file=sys.stderr)
    wrong = options.strict and any(finding.severity is Severity.ERROR for finding in replay.findings)
    return 1 if replay.mismatched or wrong else 0


def _precision(workspace: Path) -> tuple[dict[str, Any], list[str]]:
    """Double arithmetic beside the run: for JSON, and as lines."""
    from insight_trace.debug.debug_session import open_session
    from insight_trace.debug.shadow import shadow, shadow_data, shadow_lines
    from insight_trace.storage import write_whole

    found = shadow(open_session(workspace))
    data = shadow_data(found)
    write_whole(workspace / "shadow.json", json.dumps(data, indent=1) + "\n", sync=False)
    return {"shadow": data}, shadow_lines(found)


def _annotate(trace: Trace, kernels: tuple[Kernel, ...]) -> Trace:
    """The user's Python behind the lines of a PyPTO build's kernels."""
    from insight_trace.scene.build_directory import CONFIG

    build = next((p for p in kernels[0].source.parents if (p / CONFIG).is_file()), None)
    if build is None:
        return trace
    from insight_trace.ptoas.python_trace import lines_of_build, with_python

    return with_python(trace, lines_of_build(kernels, build), [build, *build.parents[:2]])


def _below_root(options: argparse.Namespace) -> Path | None:
    import datetime

    if options.output_root is None and options.name is None:
        return None
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S")
    name = options.name or options.kernel or f"func{options.func_id}"
    root: Path = options.output_root or Path("outputs")
    return root / f"{name}_{stamp}"


def _list_tasks(options: argparse.Namespace) -> int:
    from insight_trace.dump.load import load_dump
    from insight_trace.errors import RequestError
    from insight_trace.scene.static import load_scene

    if options.dump_dir is None:
        raise RequestError("--list-tasks lists the tasks of a dump", hint="give --args-dump D")
    scene = load_scene(options.scene)
    print("\n".join(task_lines(load_dump(options.dump_dir, scene), scene)))
    return 0


def _request(options: argparse.Namespace) -> ReplayRequest:
    from insight_trace.arguments.overrides import parse_overrides
    from insight_trace.replay.request import ReplayRequest

    return ReplayRequest(
        scene=options.scene,
        case=options.case,
        func_ids=numbers(options.func_id, "--func-id"),
        kernel=options.kernel,
        kernel_source=options.kernel_source,
        dump_dir=options.dump_dir,
        dispatch_id=options.dispatch_id,
        task_id=task_number(options.task_id),
        arg_spec=options.arg_spec,
        recipe=options.recipe,
        overrides=parse_overrides(
            [*options.set_arg, *(f"{slot}=0" for slot in options.zero_arg)],
            options.restore_arg,
            options.fill,
            options.seed,
        ),
        simulator=options.simulator,
        target=options.target,
        platform=options.platform,
        preset=options.preset,
        soc_version=options.soc_version,
        any_target=options.any_target,
        block_dim=options.block_dim,
        timing_only=options.timing_only,
        check=options.check,
        l2=options.l2,
        launch=options.launch,
        mark_cost=options.mark_cost,
        seconds=options.time_limit,
        cann_home=options.cann_home,
        cann_set_env=options.cann_set_env,
        pto_isa_root=options.pto_isa_root,
        device=options.device,
        launch_count=options.launch_count,
        timeout_minutes=options.timeout,
        hardware_blocks=options.hw_block_num,
        output=options.output or _below_root(options),
        collect=not options.no_collect,
        include_source=not options.no_source,
        dump_logs=options.dump_logs,
        force=options.force,
    )


def _repeated(request: ReplayRequest, record: dict[str, Any]) -> ReplayRequest:
    """The new request with what it leaves open taken from the record."""

    return replace(
        request,
        target=request.target or record.get("target"),
        soc_version=request.soc_version or record.get("soc_version"),
        simulator=request.simulator if request.simulator != "auto" else record.get("simulator") or "embedded",
        timing_only=request.timing_only or bool(record.get("timing_only")),
        l2=request.l2 or record.get("l2"),
        launch=request.launch or record.get("launch"),
        mark_cost=request.mark_cost or bool(record.get("mark_cost")),
    )


def numbers(text: str | None, flag: str) -> tuple[int, ...]:
    """`0,1,2` as numbers."""
    from insight_trace.errors import RequestError

    if text is None:
        return ()
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise RequestError(f"{flag} '{text}' is not a number or a list like 0,1,2") from None


def task_number(text: str | None) -> int | None:
    """A task id in hex or decimal."""
    from insight_trace.errors import RequestError

    if text is None:
        return None
    try:
        return int(text, 0)
    except ValueError:
        raise RequestError(f"--task-id '{text}' is not a number", hint="e.g. 0x0000000200000005") from None


def _progress(options: argparse.Namespace) -> Callable[[str], None]:
    """One line that says what is being done, on a terminal only."""
    if options.json or not sys.stderr.isatty():
        return lambda _step: None

    def show(step: str) -> None:
        print(f"\r\033[K{step} …", end="", file=sys.stderr, flush=True)
        if step == "export":
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    return show
