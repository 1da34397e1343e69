"""Replay every dispatch of a dump, or a sample of them, each verified: no traces, one table.

insight-trace replay-all SCENE --dump-dir D
insight-trace replay-all SCENE --dump-dir D --func-id 1 --sample 20 --cluster tcp://HOST:8786

`replay --all` is the same. Results are kept: what has not changed since is not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from insight_trace.commands import numbers
from insight_trace.options import RunOptions, add_executor_options, add_options, options_of

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scene", type=Path, metavar="SCENE", help="the scene module, or a PyPTO build directory"
    )
    parser.add_argument("--case", metavar="C", help="case of the scene (default: the dump's)")
    parser.add_argument("--func-id", metavar="A[,B,C]", help="only this kernel, or this mix")
    parser.add_argument("--dump-dir", "--args-dump", type=Path, metavar="D", dest="dump_dir", help="the dump")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="N of them, spread over kernels and forms of arguments"
    )
    add_options(
        parser,
        RunOptions,
        "soc_version",
        "target",
        "platform",
        "preset",
        "check",
        "seconds",
        "pto_isa_root",
        "ascendc_root",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit 1 also for what could not be verified, and for findings"
    )
    add_executor_options(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="where (default: outputs/replay_all_<scene>_<case>)"
    )
    parser.add_argument("--force", action="store_true", help="write into a folder that holds other things")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    options.dispatch_id = options.task_id = None
    return run_all(options)


def prepare_all(parser: argparse.ArgumentParser) -> None:
    many = parser.add_argument_group("many dispatches of a dump: no traces, one table")
    many.add_argument("--all", action="store_true", help="every dispatch, or every one of --func-id")
    many.add_argument(
        "--sample", type=int, metavar="N", help="N of them, spread over kernels and forms of arguments"
    )
    add_executor_options(many)


def run_all(options: argparse.Namespace) -> int:
    from insight_trace import replay_all
    from insight_trace.commands import shown_progress
    from insight_trace.errors import RequestError
    from insight_trace.run.bulk_replay import text_lines

    if options.dump_dir is None:
        raise RequestError("--all and --sample replay dispatches of a dump", hint="give --dump-dir D")
    if options.dispatch_id is not None or options.task_id is not None:
        raise RequestError(
            "--all and --sample choose their dispatches", hint="leave --dispatch-id and --task-id out"
        )
    with shown_progress() as progress:
        done = replay_all(
            options.scene,
            options.dump_dir,
            case=options.case,
            func_id=numbers(options.func_id, "--func-id"),
            sample=options.sample,
            jobs=options.jobs,
            cluster=options.cluster,
            output=options.output,
            force=options.force,
            options=options_of(options, RunOptions),
            progress=progress,
        )
    if options.json:
        print(json.dumps(done.data(), indent=2))
    else:
        print(f"replayed   {done.summary()}")
        print("\n".join(text_lines(done.rows)))
        for note in done.notes:
            print(f"note       {note}")
        print(f"written    {done.directory}: summary.csv, summary.json")
        if done.unproven:
            print(f"insight-trace replay: {done.unproven}", file=sys.stderr)
    unproven = options.strict and (done.errors or done.verified < len(done.rows))
    return 1 if done.wrong or done.unproven or unproven else 0
