"""A chip's numbers from what a device measured: tasks simulated, compared, and the difference explained.

Only parameters that the measurements can tell apart are fitted, each with its interval; the others are refused and
stay as they are. The result is a chip file for `--soc-version`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.commands import call, show
from insight_trace.limits import steer

if TYPE_CHECKING:
    from insight_trace.run.calibration import Calibration

_REFUSED_SHOWN = 8

RUNS = "kernels and the compiler"  # what --no-run refuses


OPTIONS = """
scene SCENE            path           the scene, or a PyPTO build directory
--case C               text           case of the scene (default: its first)
--dump-dir D           path required  arguments of the tasks
--pmu F                path many      pmu.csv of the same run; once for each group of events
--swimlane F           path           chip_swimlane_records.json of the same run
--soc-version V        text           the chip it ran on
--target               a2a3|a5 =a2a3  chip family (default: %(default)s)
-o --output CHIP.toml  path           the chip file to write
--json                 on             print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    done: Calibration = call("calibrate", options, progress=_progress())
    show(options, done.data, lambda: _lines(done, options.output))
    return 0


def _progress() -> Callable[[int], None]:
    """How many runs were simulated, on a terminal only."""
    if not sys.stderr.isatty():
        return lambda _runs: None
    return lambda runs: steer(sys.stderr, f"\r\x1b[K{runs:,} runs simulated \r")


def _lines(done: Calibration, output: Path | None) -> Iterator[str]:
    result = done.result
    yield f"chip       {done.chip.name} · {len(done.quantities)} quantities"
    yield (
        f"           {'task':<28} {'what':<9} {'measured':>12} {'simulated':>12} {'ratio':>6} {'after':>6}"
    )
    for q, before, after in zip(done.quantities, result.simulated, result.after, strict=True):
        yield (
            f"           {q.task:<28} {q.what:<9} {q.measured:12,.1f} {before:12,.1f} "
            f"{before / q.measured:6.2f} {after / q.measured:6.2f}"
        )
    for counter in done.counters:
        ours = "-" if counter.simulated is None else f"{counter.simulated:,.1f}"
        yield f"counter    {counter.task:<28} {counter.what:<26} {counter.measured:12,.1f} {ours:>12}"
    for p in result.fitted:
        yield f"fitted     {p.name:<34} x {p.factor:.3f} ± {p.within:.1%}"
    for refused in result.refused[:_REFUSED_SHOWN]:
        yield f"refused    {refused.name:<34} {refused.why}"
    if len(result.refused) > _REFUSED_SHOWN:
        yield f"           and {len(result.refused) - _REFUSED_SHOWN} more; --json names all"
    yield f"scatter    {result.scatter:.1%} between measurements of the same kind of task"
    yield (
        f"error      {result.before:.1%} before · {result.held_out:.1%} of tasks that were left out of the fit, in turns · "
        f"{result.unseen:.1%} of kinds of tasks"
    )
    if not result.fitted:
        yield "nothing    can be fitted from these measurements: no chip file is written"
    elif output is not None:
        yield f"written    {output}: use it with --soc-version {output}"
