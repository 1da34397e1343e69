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

from insight_trace.commands import given, numbers, shown_progress
from insight_trace.commands.replay_all import run_all
from insight_trace.commands.replay_text import mismatch_text, show, show_source, task_lines

RUNS_KERNELS = True
# what `--help` leaves to `--help-all`: names of other tools, and what has a command of its own
SELDOM = """
zero_arg seed platform any_target mark_cost strict cann_home cann_set_env device launch_count timeout_minutes
hardware_blocks output_root name insight cores window include_source dump_logs list_tasks all sample jobs
cluster sandbox compile_limit restore_arg as_recorded shadow no_collect
"""


OPTIONS = """
scene SCENE                           path ?  the scene module, a PyPTO build directory, or an earlier workspace
# what to replay
--build-dir B                         path    a PyPTO build, with its run's args dump
--case C                              text    case of the scene (default: its first)
--func-id A[,B,C]                     text    the kernel, or the members of a mix
--kernel --func NAME                  text    the kernel by its name or its source's stem
--list-tasks                          on      print the tasks of the dump and stop
--kernel-source PATH                  path    the kernel by its source file
--as-recorded                         on      of a workspace: the text that it holds, where its kernel has changed since
# where its arguments come from (none of these: a capture of the case)
--dump-dir --args-dump D              path    a dump (default with --build-dir: that of the build's dfx_outputs)
--dispatch-id K                       int     a dispatch of the dump (default: the kernel's first)
--task-id T                           text    a task of the dump, hex or decimal
--arg-spec F                          path    a JSON file of arguments
--recipe                              on      made from the case's parameters
--set-arg SLOT=VALUE                  text many  change a slot: a number, true or false, bits 0x…, or typed, f32:0.5
--restore-arg SLOT                    text many  bring back what the dump recorded for the slot
--zero-arg SLOT                       int many   fill a tensor with zeros
--fill                                zero|random  content of tensors that have none
--seed                                int     of --fill random
# how to run
@ simulator soc_version target platform any_target preset blocks l2 launch mark_cost timing_only seconds check
@ pto_isa_root ascendc_root
--backend                             simpler|ptoas =simpler  -
--shadow                              on      beside it in double: which lines lose precision, and how much
--strict                              on      with --check: exit 1 if there is an error
# the vendor's simulator
@ cann_home cann_set_env device launch_count timeout_minutes hardware_blocks
# many dispatches of a dump: no traces, one table
--all                                 on      every dispatch, or every one of --func-id
--sample N                            int     N of them, spread over kernels and forms of arguments
@ jobs
# what to write
-o --output --output-dir WORKSPACE    path    the workspace (default: outputs/insight_trace_<scene>_<case>_<kernel>_<time>)
--output-root DIR                     path    parent of a workspace <name>_<time>
--name NAME                           text    of that workspace (default: the kernel)
--no-collect --dry-run                on      stop after the workspace
@ insight cores window include_source dump_logs
--also LIST                           text    also write the files of other simulators: npusim, perf-sim, pmu
--force                               on      replace an existing workspace
--debug-line -g                       on      -
--json                                on      print one JSON object
"""


def only_reads(options: argparse.Namespace) -> bool:
    return bool(options.list_tasks)


def run(options: argparse.Namespace) -> int:
    from insight_trace import replay as replay_one
    from insight_trace.arguments.overrides import parse_overrides
    from insight_trace.errors import RequestError
    from insight_trace.finding import Severity

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
    show_source(options, scene)
    asked = given(
        replay_one, options,
        scene=scene,
        func_id=numbers(options.func_id, "--func-id"),
        own_dump=options.build_dir is not None,
        task_id=task_number(options.task_id),
        overrides=parse_overrides(
            [*options.set_arg, *(f"{slot}=0" for slot in options.zero_arg)], options.restore_arg, options.fill, options.seed
        ),
        output=options.output or _below_root(options),
        collect=not options.no_collect,
    )  # fmt: skip
    with shown_progress(quiet=options.json) as progress:
        replay = replay_one(**asked, progress=progress)
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
