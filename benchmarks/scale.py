"""A large kernel from its arguments to everything that is written of it: a mix on 24 blocks, ten million instructions.

    python -m benchmarks scale [--instructions N] [--timing-only] [--no-insight] [--keep DIR]

Each command runs in a process of its own: seconds by the clock, CPU seconds and the largest resident memory of it and of
the processes that it started. Nothing fails by time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

BLOCKS, TILE = 24, 64
HELD = 32  # tiles of a block in memory
KERNEL = ROOT / "tests" / "data" / "kernels" / "mix_chain.cpp"
A_TILE = 152  # instructions of a block for one tile


def measured(what: str, call: Callable[[], object]) -> None:
    """Runs the call in a child and prints what it took."""
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            call()
            code = 0
        except BaseException as error:
            print(f"{what}: {error!r}", file=sys.stderr)
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{what} failed")
    wall, cpu = time.perf_counter() - began, usage.ru_utime + usage.ru_stime
    print(
        f"{what:<12} {wall:7.1f} s by the clock {cpu:7.1f} s of CPU {usage.ru_maxrss / 1e6:6.2f} GB",
        flush=True,
    )


def replay(tiles: int, place: Path, how: dict[str, object]) -> None:
    import numpy as np
    from tests.simulate.dispatching import arguments, mix

    from insight_trace.job import Job
    from insight_trace.model import Scene
    from insight_trace.options import RunOptions
    from insight_trace.replay.jobs import ReplayRequest
    from insight_trace.replay.replaying import replay_job

    random = np.random.default_rng(7)

    def halves(rows: int) -> object:
        return (random.integers(-64, 64, (rows, TILE), np.int8) / np.float16(64)).astype(np.float16)

    slots = [
        halves(BLOCKS * HELD * TILE), halves(TILE), halves(TILE), np.zeros((BLOCKS * HELD * TILE, TILE), np.float32),
        np.zeros((BLOCKS * 8 * TILE, TILE), np.float32), np.zeros((BLOCKS * 4 * TILE, TILE), np.float32), tiles, 0, HELD,
    ]  # fmt: skip
    kernels = tuple(mix(KERNEL, 2))
    scene = Scene(KERNEL, "scale", "", 2, "", (), kernels, None)
    job = Job(kernels, arguments(slots, [3], BLOCKS), "a2a3", scene)
    options = RunOptions(simulator="embedded", seconds=3000.0, **how)  # type: ignore[arg-type]
    replay_job(job, ReplayRequest(KERNEL, options=options, output=place))


def quiet(command: Callable[[list[str]], int], argv: list[str]) -> None:
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        if command(argv):
            raise SystemExit(1)


def size_of(folder: Path) -> int:
    """Bytes of all files; one with several names counts once."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            facts = path.stat()
            found[facts.st_ino] = facts.st_size
    return sum(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instructions", type=int, default=10_000_000)
    parser.add_argument("--timing-only", action="store_true")
    parser.add_argument("--no-insight", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="the workspace is written here and stays")
    chosen = parser.parse_args()
    from insight_trace.__main__ import main as insight_trace

    how: dict[str, object] = {"timing_only": chosen.timing_only}
    if chosen.no_insight:
        how["insight"] = False
    tiles = max(1, round(chosen.instructions / (BLOCKS * A_TILE)))
    folder = Path(tempfile.mkdtemp(prefix="insight-trace-scale-"))
    place = chosen.keep or folder / "replayed"
    try:
        measured("warm", lambda: replay(1, folder / "warm", how))
        measured("replay", lambda: replay(tiles, place, how))
        recording = next(place.rglob("recording.json")).parent
        from insight_trace.recording import open_recording

        count = len(open_recording(recording).instructions)
        print(
            f"{count:,} instructions; recording {size_of(recording) / 1e6:,.0f} MB, "
            f"{size_of(recording) / count:.0f} bytes an instruction; all files {size_of(place) / 1e6:,.0f} MB"
        )
        out = str(folder / "page.html")
        measured("stats", lambda: quiet(insight_trace, ["stats", str(recording.parent)]))
        measured(
            "page", lambda: quiet(insight_trace, ["view", str(recording.parent), "-o", out, "--no-browser"])
        )
        print(f"page {Path(out).stat().st_size / 1e6:.1f} MB")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
