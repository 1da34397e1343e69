"""What a recording of a million instructions costs: saving, opening, statistics, byte ranges.

    python benchmarks/recording.py [--instructions 1000000]

Processor time of this process, with wall time beside it. Nothing fails by time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import numpy as np  # noqa: E402

from insight_trace.model import Trace  # noqa: E402
from insight_trace.recording import byte_ranges, open_recording, save  # noqa: E402
from insight_trace.recording.operands import all_operands  # noqa: E402
from insight_trace.recording.store import Recording  # noqa: E402
from insight_trace.simulate import simulate  # noqa: E402
from insight_trace.trace.stats import stats  # noqa: E402

KERNEL = ROOT / "tests" / "data" / "kernels" / "stream.cpp"


def _timed(what: str, call: Callable[[], Any]) -> Any:
    began, own = time.perf_counter(), time.process_time()
    result = call()
    print(
        f"  {what:<22} {time.process_time() - own:7.2f} s of processor, {time.perf_counter() - began:7.2f} s by the clock"
    )
    return result


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", type=int, default=1_000_000)
    wanted = parser.parse_args(argv).instructions
    tile = np.ones((64, 64), np.float32)

    def run(steps: int) -> Any:
        arguments = {0: tile, 1: tile, 2: np.zeros_like(tile), 3: steps}
        return simulate(KERNEL, arguments, core_type="aiv", timing_only=True, seconds=600.0)

    each = (len(run(200).instructions) - len(run(100).instructions)) / 100
    done = run(round(wanted / each))
    assert done.failure is None, done.failure
    trace = Trace(done.instructions, done.mhz, done.soc_version)
    operands = done.instructions.operands
    assert operands is not None
    print(f"{len(done.instructions):,} instructions, {len(operands.rows):,} operands, ", end="")
    print(f"{len(operands.geometries)} geometries, {len(operands.footprints)} footprints")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "recording"
        _timed("save", lambda: save(Recording(trace), place))
        size = sum(path.stat().st_size for path in place.iterdir())
        print(f"  {size / 1e6:,.0f} MB, {size / len(done.instructions):.0f} bytes an instruction")
        opened = _timed("open", lambda: open_recording(place))
        _timed("stats", lambda: stats(opened.trace))
        _timed("open and stats", lambda: stats(open_recording(place).trace))
        mapped = opened.instructions.operands
        ranges = _timed("byte ranges", lambda: byte_ranges(mapped, all_operands(mapped)))
        print(f"  {len(ranges):,} ranges")
        _timed("operand text", lambda: opened.instructions.detail[:])


if __name__ == "__main__":
    main()
