"""Runs one case of a scene on the host and records every dispatch as a dump.

    insight-trace capture SCENE --case CASE [--dump-args 0|1|2|3] [-o DIR] [--seed N]

Levels: 0 nothing, 1 what the orchestration marks with dump(...), 2 everything, 3 all metadata and the payload
of what is marked. The dump is below DIR: args_dump/args_dump.json, kernel_args_dump.json and args.bin. Exit
code 0 says that the run ended well and gave what the scene's golden function expects.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import TYPE_CHECKING

from insight_trace.commands import call, show
from insight_trace.commands.check import show_examined

if TYPE_CHECKING:
    from insight_trace.capture.session import Capture

RUNS_KERNELS = True


OPTIONS = """
scene SCENE           text       a scene's Python file, or a PyPTO build directory
--case NAME           text       which case; default: the first that is not manual
--dump-args LEVEL     int =2     what to record: 0, 1, 2 or 3; default 2
-o --output DIR       text       default: outputs/<class>_<case>_<time>
--force               on         replace DIR if it exists
--seed N              int =0     for random inputs; default 0
--platform P          text       a2a3, a2a3sim, a5 or a5sim; default: the case's first
--skip-golden         on         do not compare with the golden function
--time-limit SECONDS -> seconds  float =60  of one dispatch; default 60
--jobs N              int        worker processes; default: one per CPU
--max-payload GB      float      most payload to record; default 16, or what fits
--check               on         also check the first dispatch of every kernel that was recorded
--tensor-dump         on         also write tensor_dump/kernel_args_dump.json below DIR
--json                on         print the result as JSON
"""


def run(options: argparse.Namespace) -> int:
    # what a scene prints is not part of the answer
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        result: Capture = call(
            "capture", options, level=options.dump_args, workers=options.jobs, golden=not options.skip_golden,
            max_payload=None if options.max_payload is None else int(options.max_payload * 1e9),
        )  # fmt: skip
    show(options, result.data, lambda: _lines(result))
    if not options.json:
        for one in result.checked or ():
            show_examined(one, notes=False)
    if result.failure is not None and not options.json:
        where = f"{result.failure.where}: " if result.failure.where else ""
        print(f"insight-trace capture: {where}{result.failure.message}", file=sys.stderr)
        print(f"  {_next_step(result)}", file=sys.stderr)
    return 0 if result.passed else 1


def _lines(result: Capture) -> list[str]:
    scene = result.scene
    lines = [
        f"scene      {scene.class_name} · {result.case} · {len(scene.kernels)} kernels · {scene.runtime}"
    ]
    lines.append(f"ran        {result.tasks:,} tasks in {result.seconds:.2f} s")
    if result.golden is not None:
        apart = [f"{name} within {value:.2g}" for name, value in result.golden.differences]
        verdict = {"failed": "FAILED"}.get(result.golden.verdict, result.golden.verdict)
        if verdict == "nothing compared":
            verdict += ": the golden function changes no output of this scene by more than the tolerance"
        lines.append(f"golden     {' · '.join([verdict, *apart])}")
        if result.golden.message:
            lines.append(f"           {result.golden.message}")
    elif result.failure is None:
        lines.append("golden     not compared")
    if result.records:
        lines.append(
            f"recorded   {result.records:,} arguments · {result.payload_bytes:,} bytes of payload · "
            f"level {result.level}" + (" · partial" if result.failure else "")
        )
    if result.note:
        lines += [f"note       {line}" for line in result.note.splitlines()[:10]]
    if result.directory:
        lines.append(f"dump       {result.directory}")
    return lines


def _next_step(result: Capture) -> str:
    assert result.failure is not None
    parts = [f"[{result.failure.fault.value}]"]
    if result.task:
        parts.append(result.task)
    if result.failure.log:
        parts.append(f"the compiler's whole output is in {result.failure.log}")
    if result.directory:
        parts.append("what happened up to then is in the dump")
    return "; ".join(parts)
