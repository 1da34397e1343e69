"""The whole way on the bundled paged attention; prints what to open.

The first run compiles the simulated core (less than a minute); later runs take seconds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.commands import call

if TYPE_CHECKING:
    from insight_trace.demo import Demo

RUNS_KERNELS = True


OPTIONS = """
-o --output DIR  path =outputs/demo  default: outputs/demo
"""


def _our_command() -> str:
    """How this command is typed here: its name alone only where the shell finds it."""
    if shutil.which("insight-trace"):
        return "insight-trace"
    script = Path(sys.executable).parent / "insight-trace"
    if not script.is_file():
        return f"{sys.executable} -m insight_trace"
    here = Path.cwd()
    return str(script.relative_to(here) if script.is_relative_to(here) else script)


def run(options: argparse.Namespace) -> int:
    from insight_trace.demo import CASE
    from insight_trace.replay.verification import Status, verdict

    begun = time.perf_counter()
    demo: Demo = call("demo", options)
    capture, replay = demo.capture, demo.replay
    golden = f"golden {capture.golden.verdict if capture.golden else 'not compared'}"
    print(f"captured   {capture.scene.name} · {CASE} · {capture.tasks} tasks · {golden}")
    for dispatch in demo.dispatches:
        mark = "→" if replay.dispatch and dispatch.dispatch_id == replay.dispatch.dispatch_id else " "
        print(f"         {mark} {dispatch.dispatch_id:>3}  task 0x{dispatch.task_id:016x}  {dispatch.kernel}")
    simulation = replay.simulation
    if simulation is None:
        return 1
    print(
        f"replayed   {simulation.cycles:,} cycles · {simulation.cycles / simulation.mhz:.3f} us at "
        f"{simulation.mhz:.0f} MHz · {len(simulation.instructions)} instructions"
    )
    for check in replay.checks:
        print(f"{check.status:<10} {check.text}")
    print(f"took       {time.perf_counter() - begun:.1f} s")
    print(f"view       {_our_command()} view {replay.directory}")
    print(f"insight    import {replay.to_import}: the folder by itself has no Source and no Details")
    print(f"open       {replay.directory}/")
    verified = verdict(replay.checks) is Status.VERIFIED
    return 0 if capture.passed and verified else 1
