"""How the time of every step grows with its size: the exponent in steps of ten, where 1 is linear.

    python -m benchmarks growth [--large]

CPU seconds of this process and of all that it starts, the better of two. The exponent is that of the largest step: below
it the fixed part of a step counts. `--large` goes on to a million.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.engine import stream
from benchmarks.insight_io import made_up_trace
from benchmarks.table import chains, processor
from tests.synthetic_recording import ROWS_A_ROUND, mix_recording

import insight_trace
from insight_trace.chips import load_chip
from insight_trace.insight.validator import validate_directory
from insight_trace.insight.writer import write_insight_directory
from insight_trace.recording.store import open_recording, save
from insight_trace.run.bulk_replay import ReplayRow, write_summary
from insight_trace.run.placing import place
from insight_trace.run.schedule import machine_of
from insight_trace.trace.clean import clean
from insight_trace.trace.stats import stats

MOST = 1.1
Step = Callable[[], object]


def _steps(size: int, folder: Path) -> Iterator[tuple[str, Step]]:
    """Steps over `size` instructions, tasks or rows; each may use what the one before it left."""
    folder.mkdir()
    yield "run a kernel, times only", lambda: stream(size // 12)
    trace = made_up_trace(size)
    yield "write an Insight directory", lambda: write_insight_directory(trace, folder)
    directory = next(folder.rglob("visualize_data.bin")).parent
    yield "validate it", lambda: validate_directory(directory)
    yield "read it", lambda: insight_trace.open_trace(directory)
    opened = insight_trace.open_trace(directory)
    yield "stats", lambda: stats(opened)
    yield "clean", lambda: clean(opened)
    recording = mix_recording(2, math.ceil(size / (2 * ROWS_A_ROUND)), seed=1)
    numbers = iter(range(10))
    yield "write a recording", lambda: save(recording, folder / f"recording{next(numbers)}")
    yield "open a recording", lambda: open_recording(folder / "recording0")
    machine = machine_of(load_chip())
    yield "place tasks on a chip", lambda: place(chains(size), machine)
    rows = [
        ReplayRow(i, f"0x{i:x}", f"K{i % 7}", "0", 1, "verified", 1000 + i, 1.0, 0.0, "", 0, 0)
        for i in range(size)
    ]
    yield "write a summary: CSV, JSON, Parquet", lambda: write_summary(rows, folder / "summary", {})


def _seconds(step: Step) -> float:
    best = math.inf
    for _ in range(2):
        began = processor()
        step()
        best = min(best, processor() - began)
    return max(best, 1e-4)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true", help="a million, too")
    options = parser.parse_args()
    sizes = [10_000, 100_000, *([1_000_000] if options.large else [])]
    seconds: dict[str, list[float]] = {}
    stream(10)  # compiles
    with tempfile.TemporaryDirectory(prefix="insight-trace-growth-") as name:
        for size in sizes:
            for what, step in _steps(size, Path(name) / str(size)):
                seconds.setdefault(what, []).append(_seconds(step))
    print(f"{'step':<38}" + "".join(f"{size:>12,}" for size in sizes) + "   growth")
    for what, lasted in seconds.items():
        growth = math.log10(lasted[-1] / lasted[-2])
        told = f"{growth:.2f}" + ("" if growth <= MOST else f"  above {MOST}")
        print(f"{what:<38}" + "".join(f"{each:>10.3f} s" for each in lasted) + f"   {told}")


if __name__ == "__main__":
    main()
