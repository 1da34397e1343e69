"""Runs one case of a scene on the host and records every dispatch as a dump.

    insight-trace capture SCENE --case CASE [--dump-args 0|1|2|3] [-o DIR] [--seed N]

Levels: 0 nothing, 1 what the orchestration marks with dump(...), 2 everything, 3 all metadata and the payload
of what is marked. The dump is below DIR: args_dump/args_dump.json, kernel_args_dump.json and args.bin. Exit
code 0 says that the run ended well and gave what the scene's golden function expects.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.commands.check import examined_data, show_examined
from insight_trace.errors import RequestError

if TYPE_CHECKING:
    from insight_trace.capture.session import Capture
    from insight_trace.replay.examine import Examined

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", metavar="SCENE", help="a scene's Python file, or a PyPTO build directory")
    parser.add_argument("--case", metavar="NAME", help="which case; default: the first that is not manual")
    parser.add_argument(
        "--dump-args", type=int, default=2, metavar="LEVEL", help="what to record: 0, 1, 2 or 3; default 2"
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="default: outputs/<class>_<case>_<time>")
    parser.add_argument("--force", action="store_true", help="replace DIR if it exists")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="for random inputs; default 0")
    parser.add_argument(
        "--platform", metavar="P", help="a2a3, a2a3sim, a5 or a5sim; default: the case's first"
    )
    parser.add_argument("--skip-golden", action="store_true", help="do not compare with the golden function")
    parser.add_argument(
        "--time-limit", type=float, default=60.0, metavar="SECONDS", help="of one dispatch; default 60"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="worker processes; default: one per CPU")
    parser.add_argument(
        "--max-payload", type=float, metavar="GB", help="most payload to record; default 16, or what fits"
    )
    parser.add_argument(
        "--check", action="store_true", help="also check the first dispatch of every kernel that was recorded"
    )
    parser.add_argument(
        "--tensor-dump", action="store_true", help="also write tensor_dump/kernel_args_dump.json below DIR"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    from insight_trace.capture import capture

    # what a scene prints is not part of the answer
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        result = capture(
            options.scene,
            options.case,
            output=options.output,
            level=options.dump_args,
            seed=options.seed,
            platform=options.platform,
            seconds=options.time_limit,
            workers=options.jobs,
            golden=not options.skip_golden,
            force=options.force,
            max_payload=None if options.max_payload is None else int(options.max_payload * 1e9),
        )
    if options.tensor_dump and result.directory is not None and result.records:
        from insight_trace.dump.write_kernel_args import write_tensor_dump

        write_tensor_dump(result.directory, force=options.force)
    examined = _examined(options, result) if options.check else []
    if options.json:
        found = {"kernels": [examined_data(one) for one in examined]} if options.check else {}
        print(json.dumps(as_json(result) | found, indent=2))
    else:
        print("\n".join(_lines(result)))
        for one in examined:
            show_examined(one, notes=False)
    if result.failure is not None and not options.json:
        where = f"{result.failure.where}: " if result.failure.where else ""
        print(f"insight-trace capture: {where}{result.failure.message}", file=sys.stderr)
        print(f"  {_next_step(result)}", file=sys.stderr)
    return 0 if result.passed else 1


def _examined(options: argparse.Namespace, result: Capture) -> list[Examined]:
    """What is wrong in the kernels that were recorded."""
    from insight_trace.options import RunOptions
    from insight_trace.replay.examine import examine
    from insight_trace.replay.request import ReplayRequest

    if result.directory is None or result.failure is not None:
        return []
    if options.dump_args != 2:
        raise RequestError("--check needs every payload", hint="leave --dump-args at 2")
    request = ReplayRequest(
        Path(options.scene),
        result.case,
        options=RunOptions(platform=options.platform, seconds=options.time_limit),
    )
    return examine(request, dump=result.directory)


def as_json(result: Capture) -> dict[str, Any]:
    """What `--json` prints."""
    failure, golden = result.failure, result.golden
    return {
        "scene": str(result.scene.path),
        "case": result.case,
        "level": result.level,
        "passed": result.passed,
        "directory": str(result.directory) if result.directory else None,
        "tasks": result.tasks,
        "dispatches": result.dispatches,
        "records": result.records,
        "payload_bytes": result.payload_bytes,
        "seconds": round(result.seconds, 6),
        "golden": None
        if golden is None
        else {
            "passed": golden.passed if golden.verdict != "nothing compared" else None,
            "compared": golden.compared,
            "message": golden.message,
            "largest_difference": dict(golden.differences),
        },
        "failure": None
        if failure is None
        else {
            "fault": failure.fault.value,
            "message": failure.message,
            "where": failure.where,
            "limit": failure.limit,
            "task": result.task,
        },
        "note": result.note,
    }


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
            verdict += ": the golden function changes no output of this scene"
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
