"""How fast traces are cleaned, counted and shown, against the existing cleaner where it is at hand.

    python benchmarks/trace_cleaning.py [--existing .../clean_sim_trace.py] [--large]

Both cleaners run as commands on the same file, one after the other, so that the ratios hold on any machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests import synthetic_trace  # noqa: E402

from insight_trace.insight import write_insight_directory  # noqa: E402
from insight_trace.insight.container import BlockType, write_block  # noqa: E402
from insight_trace.model import Trace  # noqa: E402

ROWS_A_TILE = 28  # of the synthetic kernel on its two cores


# A process counts the memory of the one it was forked from, so a small one starts what is measured.
_LAUNCHER = """
import json, os, sys, time
began = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[
    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
_, status, usage = os.wait4(child, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), time.perf_counter() - began,
                  usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]))
"""


def measured(words: list[str]) -> tuple[float, float, int]:
    """Seconds on the wall, seconds of CPU and peak memory of one command."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    answer = subprocess.run(
        [sys.executable, "-S", "-E", "-c", _LAUNCHER, *words],
        env=environment,
        capture_output=True,
        check=True,
    )
    status, wall, cpu, peak = json.loads(answer.stdout)
    if status:
        raise SystemExit(f"{' '.join(words)} ended with {status}")
    return wall, cpu, peak


EVENTS_A_PAIR = 6


def write_input(trace: Trace, folder: Path) -> tuple[Path, int]:
    """A result without sources, which the existing cleaner can read, and the number of its events."""
    simulator = write_insight_directory(trace, folder)
    path = simulator / "visualize_data.bin"
    return path, (simulator / "trace.json").read_bytes().count(b'"ph":')


def write_pairs(pairs: int, folder: Path) -> tuple[Path, int]:
    """A flag for every two instructions and no flow events: what the existing cleaner was timed on."""
    events: list[dict[str, object]] = []
    for number in range(pairs):
        begin = 100 + number * 40
        detail = f"PIPE:MTE2,TRIGGERPIPE:VEC,FLAGID:{number % 2},"
        for tid, name, first, last, flag in (
            ("MTE2", "MOV_OUT_TO_UB", begin, begin + 30, ""),
            ("MTE2", "SET_FLAG", begin + 30, begin + 31, "set"),
            ("VECTOR", "WAIT_FLAG", begin + 20, begin + 32, "wait"),
            ("VECTOR", "VADD", begin + 33, begin + 60, ""),
        ):
            args = {"code": "", "detail": detail if flag else "Src:OUT,Dst:UB,", "pc_addr": "0x1000"}
            place = {"name": name, "pid": "core0.veccore0", "tid": tid}
            if flag:
                place["id"] = f"{flag}{number}"
                events.append({"args": args, **place, "ph": "B", "ts": first / 1850})
                events.append({"args": {}, **place, "ph": "E", "ts": last / 1850})
            else:
                times = {"dur": (last - first) / 1850, "ts": first / 1850}
                events.append({"args": args, **place, "ph": "X", **times})
    document = {"displayTimeUnit": "ns", "profilingType": "op", "schemaVersion": 2, "traceEvents": events}
    folder.mkdir()
    path = folder / "visualize_data.bin"
    with path.open("wb") as file:
        write_block(file, BlockType.TRACE, json.dumps(document, separators=(",", ":")).encode())
    return path, len(events)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--existing", type=Path, help="clean_sim_trace.py of a PyPTO checkout")
    parser.add_argument(
        "--large", action="store_true", help="also 1.1 million events, the page and its opening"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        times: dict[int, float] = {}
        print("a flag for every instruction, one core")
        for events in (11_000, 37_000, 110_000):
            against(options.existing, *write_pairs(events // EVENTS_A_PAIR, folder / f"pairs{events}"))
        print("a tiled kernel, two cores")
        for events in (11_000, 110_000, *([1_100_000] if options.large else [])):
            tiles = max(1, int(events * 0.62) // ROWS_A_TILE)
            trace = synthetic_trace.softmax_trace(tiles, buffers=2, sources={})
            path, count = write_input(trace, folder / str(events))
            times[count] = against(options.existing if events < 1e6 else None, path, count)
            if events >= 110_000:
                rest(path, folder / f"rest{events}", count)
        counts = sorted(times)
        for small, large in itertools.pairwise(counts):
            print(f"{large / small:.1f} x the events take {times[large] / times[small]:.1f} x the time")
        if options.large:
            page(folder)


def against(existing: Path | None, path: Path, count: int) -> float:
    """Cleans one input with both, each beside the input; returns our seconds."""
    size = path.stat().st_size
    wall, cpu, peak = measured([sys.executable, "-m", "insight_trace", "clean", str(path), "--force"])
    line = f"clean {count:>9,} events  {wall:6.2f} s ({cpu:.2f} s of CPU)  peak {peak / size:.1f} x the file"
    if existing:
        other, other_cpu, other_peak = measured([sys.executable, str(existing), str(path)])
        line += (
            f"\n   existing cleaner       {other:6.2f} s ({other_cpu:.2f} s of CPU)  "
            f"peak {other_peak / size:.1f} x  ->  {other / wall:.1f} x the time, "
            f"{other_cpu / cpu:.1f} x the CPU"
        )
    print(line, flush=True)
    return wall


def rest(path: Path, place: Path, count: int) -> None:
    """What else is made of a trace."""
    ours = [sys.executable, "-m", "insight_trace"]
    wall, cpu, _ = measured([*ours, "stats", str(path)])
    print(f"stats {count:>9,} events  {wall:6.2f} s ({cpu:.2f} s of CPU)")
    for words in (["--format", "perfetto"], ["--gzip"]):
        target = place / words[-1].strip("-")
        wall, cpu, _ = measured([*ours, "clean", str(path), "-o", str(target), "--no-copy-raw", *words])
        print(f"clean {count:>9,} events  {wall:6.2f} s ({cpu:.2f} s of CPU) with {' '.join(words)}")


def page(folder: Path) -> None:
    """Writing and opening the page of a million instructions."""
    from tests.chromium import Browser, find_chromium

    from insight_trace.report.page import write_page
    from insight_trace.trace.stats import stats

    trace = synthetic_trace.softmax_trace(1_000_000 // ROWS_A_TILE, buffers=2)
    began = time.process_time()
    stats(trace)
    million = len(trace.instructions) / 1e6
    print(f"stats of {million:.2f} M instructions in memory: {time.process_time() - began:.2f} s of CPU")
    path = folder / "page.html"
    began = time.process_time()
    with path.open("wb") as file:
        write_page(file, [trace], ["a million instructions"])
    seconds, size = time.process_time() - began, path.stat().st_size
    print(f"page of {million:.2f} M instructions: {seconds:.2f} s of CPU, {size / 1e6:.1f} MB")
    executable = find_chromium()
    if executable is None:
        print("no Chromium here: the page was not opened")
        return
    browser = Browser(executable, folder / "profile")
    try:
        browser.open(path.as_uri(), 60)
        ready = browser.wait("document.documentElement?.dataset.ready", 60)
        print(f"opens in {int(ready) / 1000:.2f} s in headless Chromium")
        frames = browser.evaluate(
            "(() => { const t = insightTrace.timeline; const out = []; t.fit();"
            "for (let i = 0; i < 60; i++) { t.zoom(0.8, t.total / 3); t.draw(); out.push(t.lastFrame); }"
            "return out.sort((a, b) => a - b); })()"
        )
        print(
            f"a frame takes {frames[30]:.1f} ms (median), {frames[-1]:.1f} ms (worst of 60 while zooming in)"
        )
        began_search = browser.evaluate(
            "(async () => { const began = performance.now(); await insightTrace.search('vadd');"
            "return performance.now() - began; })()"
        )
        print(f"first search {began_search:.0f} ms")
    finally:
        browser.close()


if __name__ == "__main__":
    main()
