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
from pathlib import Path

from insight_trace.commands import numbers
from insight_trace.commands.replay_all import prepare_all, run_all
from insight_trace.commands.replay_text import AS_RECORDED, add_also, mismatch_text, show, task_lines
from insight_trace.options import RunOptions, VendorOptions, add_options, options_of

RUNS_KERNELS = True
# what `--help` leaves to `--help-all`: names of other tools, and what has a command of its own
SELDOM = frozenset(
    [
        "zero_arg",
        "seed",
        "platform",
        "any_target",
        "mark_cost",
        "strict",
        "cann_home",
        "cann_set_env",
        "device",
        "launch_count",
        "timeout_minutes",
        "hardware_blocks",
        "output_root",
        "name",
        "insight",
        "cores",
        "window",
        "include_source",
        "dump_logs",
        "list_tasks",
        "all",
        "sample",
        "jobs",
        "cluster",
        "sandbox",
        "compile_limit",
        "restore_arg",
    ]
)


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
    what.add_argument("--as-recorded", action="store_true", help=AS_RECORDED)
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
    add_options(
        how, RunOptions, "simulator", "soc_version", "target", "platform", "any_target", "preset", "blocks", "l2",
        "launch", "mark_cost", "timing_only", "seconds", "check",
        "pto_isa_root",
        "ascendc_root",
    )  # fmt: skip
    how.add_argument("--backend", choices=("simpler", "ptoas"), default="simpler", help=argparse.SUPPRESS)
    how.add_argument(
        "--shadow", action="store_true", help="beside it in double: which lines lose precision, and how much"
    )
    how.add_argument("--strict", action="store_true", help="with --check: exit 1 if there is an error")
    vendor = parser.add_argument_group("the vendor's simulator")
    add_options(
        vendor, VendorOptions, "cann_home", "cann_set_env", "device", "launch_count",
        "timeout_minutes", "hardware_blocks",
    )  # fmt: skip
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
    add_options(out, RunOptions, "insight", "cores", "window", "include_source", "dump_logs")
    add_also(out)
    out.add_argument(
        "--force",
        action="store_true",
        help="replace an existing workspace",
    )
    out.add_argument(
        "--debug-line", "-g", action="store_true", help=argparse.SUPPRESS
    )  # lines are always there
    out.add_argument("--json", action="store_true", help="print one JSON object")


def only_reads(options: argparse.Namespace) -> bool:
    return bool(options.list_tasks)


def run(options: argparse.Namespace) -> int:
    from insight_trace import replay as replay_one
    from insight_trace.arguments.overrides import parse_overrides
    from insight_trace.commands import shown_progress
    from insight_trace.errors import RequestError
    from insight_trace.finding import Severity
    from insight_trace.replay.workspace import RECORD, source_line

    if options.backend == "ptoas":
        raise RequestError(
            "--backend ptoas profiles the kernels of a PyPTO build",
            hint="insight-trace profile --build-dir DIR",
        )
    if (options.scene is None) == (options.build_dir is None):
        raise RequestError("give either SCENE or --build-dir B", hint="insight-trace replay --help")
    if options.list_tasks or options.all or options.sample is not None:
        if options.build_dir is not None:
            from insight_trace.replay.build_dump import build_and_dump

            options.scene, options.dump_dir = build_and_dump(options.build_dir, options.dump_dir)
        return _list_tasks(options) if options.list_tasks else run_all(options)
    scene: Path = options.scene or options.build_dir
    if (scene / RECORD).is_file() and not options.json:
        print(f"source     {source_line(scene, current=not options.as_recorded)}")
    with shown_progress(quiet=options.json) as progress:
        replay = replay_one(
            scene,
            case=options.case,
            func_id=numbers(options.func_id, "--func-id"),
            kernel=options.kernel,
            kernel_source=options.kernel_source,
            dump_dir=options.dump_dir,
            own_dump=options.build_dir is not None,
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
            output=options.output or _below_root(options),
            force=options.force,
            as_recorded=options.as_recorded,
            collect=not options.no_collect,
            also=options.also,
            shadow=options.shadow,
            options=options_of(options, RunOptions),
            vendor=options_of(options, VendorOptions),
            progress=progress,
        )
    if options.json:
        print(json.dumps(replay.data(), indent=2))
    else:
        show(replay, check=options.check)
        if replay.mismatched:
            print(f"insight-trace replay: {mismatch_text(replay)}", file=sys.stderr)
    wrong = options.strict and any(finding.severity is Severity.ERROR for finding in replay.findings)
    return 1 if replay.mismatched or wrong else 0


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


def task_number(text: str | None) -> int | None:
    """A task id in hex or decimal."""
    from insight_trace.errors import RequestError

    if text is None:
        return None
    try:
        return int(text, 0)
    except ValueError:
        raise RequestError(f"--task-id '{text}' is not a number", hint="e.g. 0x0000000200000005") from None
