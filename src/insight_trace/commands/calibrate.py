"""A chip's numbers from what a device measured: tasks simulated, compared, and the difference explained.

Only parameters that the measurements can tell apart are fitted, each with its interval; the others are refused and
stay as they are. The result is a chip file for `--soc-version`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from insight_trace.run.calibration import Calibration

_REFUSED_SHOWN = 8

RUNS = "kernels and the compiler"  # what --no-run refuses


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", type=Path, metavar="SCENE", help="the scene, or a PyPTO build directory")
    parser.add_argument("--case", metavar="C", help="case of the scene (default: its first)")
    parser.add_argument("--dump-dir", type=Path, required=True, metavar="D", help="arguments of the tasks")
    parser.add_argument(
        "--pmu", type=Path, action="append", default=[], metavar="F",
        help="pmu.csv of the same run; once for each group of events",
    )  # fmt: skip
    parser.add_argument(
        "--swimlane", type=Path, metavar="F", help="chip_swimlane_records.json of the same run"
    )
    parser.add_argument("--soc-version", metavar="V", help="the chip it ran on")
    parser.add_argument(
        "--target", choices=("a2a3", "a5"), default="a2a3", help="chip family (default: %(default)s)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="CHIP.toml", help="the chip file to write")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace import calibrate

    done = calibrate(
        options.scene,
        options.dump_dir,
        case=options.case,
        pmu=options.pmu,
        swimlane=options.swimlane,
        soc_version=options.soc_version,
        target=options.target,
        output=options.output,
        progress=_progress(),
    )
    if options.json:
        print(json.dumps(done.data(), indent=2))
    else:
        _show(done, options.output)
    return 0


def _progress() -> Callable[[int], None]:
    """How many runs were simulated, on a terminal only."""
    if not sys.stderr.isatty():
        return lambda _runs: None
    return lambda runs: print(f"\r\033[K{runs:,} runs simulated \r", end="", file=sys.stderr, flush=True)


def _show(done: Calibration, output: Path | None) -> None:
    result = done.result
    print(f"chip       {done.chip.name} · {len(done.quantities)} quantities")
    print(f"           {'task':<28} {'what':<9} {'measured':>12} {'simulated':>12} {'ratio':>6} {'after':>6}")
    for q, before, after in zip(done.quantities, result.simulated, result.after, strict=True):
        print(
            f"           {q.task:<28} {q.what:<9} {q.measured:12,.1f} {before:12,.1f} "
            f"{before / q.measured:6.2f} {after / q.measured:6.2f}"
        )
    for counter in done.counters:
        ours = "-" if counter.simulated is None else f"{counter.simulated:,.1f}"
        print(f"counter    {counter.task:<28} {counter.what:<26} {counter.measured:12,.1f} {ours:>12}")
    for p in result.fitted:
        print(f"fitted     {p.name:<34} x {p.factor:.3f} ± {p.within:.1%}")
    for refused in result.refused[:_REFUSED_SHOWN]:
        print(f"refused    {refused.name:<34} {refused.why}")
    if len(result.refused) > _REFUSED_SHOWN:
        print(f"           and {len(result.refused) - _REFUSED_SHOWN} more; --json names all")
    print(f"scatter    {result.scatter:.1%} between measurements of the same kind of task")
    print(
        f"error      {result.before:.1%} before · {result.held_out:.1%} of tasks that were left out of the fit, in turns · "
        f"{result.unseen:.1%} of kinds of tasks"
    )
    if not result.fitted:
        print("nothing    is told by these measurements: no chip file is written")
    elif output is not None:
        print(f"written    {output}: use it with --soc-version {output}")
