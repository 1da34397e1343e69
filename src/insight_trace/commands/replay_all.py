"""Replay every dispatch of a dump, or a sample of them, each verified: no traces, one table.

insight-trace replay-all SCENE --dump-dir D
insight-trace replay-all SCENE --dump-dir D --func-id 1 --sample 20 --cluster tcp://HOST:8786

`replay --all` is the same. Results are kept: what has not changed since is not run again.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from insight_trace.commands import call, numbers, show

if TYPE_CHECKING:
    from insight_trace.run.bulk_replay import ReplayAllResult

RUNS_KERNELS = True


OPTIONS = """
scene SCENE               path  the scene module, or a PyPTO build directory
--case C                  text  case of the scene (default: the dump's)
--func-id A[,B,C]         text  only this kernel, or this mix
--dump-dir --args-dump D  path  the dump
--sample N                int   N of them, spread over kernels and forms of arguments
@ soc_version target platform preset check seconds pto_isa_root ascendc_root
--strict                  on    exit 1 also for what could not be verified, and for findings
@ jobs
-o --output DIR           path  where (default: outputs/replay_all_<scene>_<case>)
--force                   on    write into a folder that holds other things
--json                    on    print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    options.dispatch_id = options.task_id = None
    return run_all(options)


def run_all(options: argparse.Namespace) -> int:
    from insight_trace.errors import RequestError
    from insight_trace.run.bulk_replay import text_lines

    if options.dump_dir is None:
        raise RequestError("--all and --sample replay dispatches of a dump", hint="give --dump-dir D")
    if options.dispatch_id is not None or options.task_id is not None:
        raise RequestError(
            "--all and --sample choose their dispatches", hint="leave --dispatch-id and --task-id out"
        )
    done: ReplayAllResult = call("replay_all", options, func_id=numbers(options.func_id, "--func-id"))
    notes = [f"note       {note}" for note in done.notes]
    written = f"written    {done.directory}: summary.csv, summary.json"
    show(
        options, done.data, lambda: [f"replayed   {done.summary()}", *text_lines(done.rows), *notes, written]
    )
    if done.unproven and not options.json:
        print(f"insight-trace replay: {done.unproven}", file=sys.stderr)
    unproven = options.strict and (done.errors or done.verified < len(done.rows))
    return 1 if done.wrong or done.unproven or unproven else 0
