"""The main figures in one table, each beside a peer of the same run where there is one; it writes the page of benchmarks.

    python -m benchmarks.table [--page docs/internals/benchmarks.md] [--quick]

Times are CPU seconds of the process and of all that it starts, so that a busy machine changes them little.
INSIGHT_TRACE_PYPTO names a checkout of pypto, whose cleaner is a peer.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from benchmarks import host_cores
from benchmarks.engine import gemm, stream
from benchmarks.insight_io import made_up_trace
from benchmarks.trace_cleaning import EVENTS_A_PAIR, measured, write_pairs
from tests.synthetic_recording import ROWS_A_ROUND, mix_recording

import insight_trace
from insight_trace.dump.load import load_dump
from insight_trace.insight.writer import write_insight_directory
from insight_trace.recording.store import save
from insight_trace.run.placing import place
from insight_trace.run.schedule import CUBE, VECTOR0, Work, machine_of
from insight_trace.simulate.embedded.toolchain import Toolchain
from insight_trace.trace.stats import stats

ROOT = Path(__file__).resolve().parent.parent
ATTENTION = ROOT / "examples" / "paged_attention" / "scene.py"
_TOOL = [sys.executable, "-m", "insight_trace"]


@dataclass(frozen=True)
class Row:
    what: str
    size: str
    figure: str
    peer: str = ""
    asked: str = ""  # of the figure, on two quiet cores


def processor() -> float:
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def timed(call: Callable[[], object]) -> float:
    began = processor()
    call()
    return processor() - began


def repeated(call: Callable[[], float], times: int = 3) -> tuple[float, str]:
    """The least of several, and how far the others are from it."""
    found = sorted(call() for _ in range(times))
    return found[0], f"{found[0]:.2f} to {found[-1]:.2f} s"


def command(*words: str) -> float:
    return timed(lambda: subprocess.run([*_TOOL, *words], check=True, capture_output=True))


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope of time over size in logarithms: 1 is linear."""
    x, y = np.log(sizes), np.log(np.maximum(seconds, 1e-6))
    return float(np.polyfit(x, y, 1)[0])


def replays(folder: Path) -> Iterator[Row]:
    words = ["replay", str(ATTENTION), "--case", "CaseSmall1", "--kernel", "SF", "--recipe", "--force", "-o"]
    command(*words, str(folder / "replay"))  # compiles
    ours, spread = repeated(lambda: command(*words, str(folder / "replay")))
    numpy, of_numpy = repeated(lambda: python("import numpy"))
    peer = f"`import numpy` {of_numpy}: {ours / numpy:.1f} x"
    yield Row("warm replay", "one dispatch", spread, peer, "2 x")
    command("--help")
    ours, spread = repeated(lambda: command("--help"))
    bare, of_bare = repeated(
        lambda: python("import argparse; argparse.ArgumentParser().parse_args(['--help'])")
    )
    yield Row("`--help`", "", spread, f"a bare argparse {of_bare}: {ours / bare:.1f} x", "1.5 x")


def python(code: str) -> float:
    words = [sys.executable, "-c", code]
    return timed(lambda: subprocess.run(words, check=True, capture_output=True))


def large(folder: Path, quick: bool) -> Iterator[Row]:
    """A mix on 24 blocks. Ten million instructions: `python -m benchmarks scale`."""
    rounds = round((100_000 if quick else 1_000_000) / (24 * ROWS_A_ROUND * 5 / 6))
    recording = mix_recording(24, rounds, seed=1)
    size = f"{len(recording.instructions):,} instructions"
    save(recording, folder / "large" / "recording")
    del recording
    words = [str(folder / "large")]
    _, spread = repeated(lambda: command("stats", *words))
    yield Row("`stats` of a recording", size, spread, "", "6 s for 10 M")
    page = folder / "large.html"
    _, spread = repeated(lambda: command("view", *words, "--no-browser", "--force", "-o", str(page)))
    spread += f" · {page.stat().st_size / 1e6:.1f} MB"
    yield Row("its page", size, spread, "", "15 s for 10 M, 60 MB for 20 M")


def engine() -> Iterator[Row]:
    stream(10)
    empty = min(stream(1).processor for _ in range(3))
    sizes, seconds = [2_000, 20_000, 200_000], []
    for steps in sizes:
        run = min((stream(steps) for _ in range(2)), key=lambda run: run.processor)
        seconds.append(max(run.processor - empty, 1e-4))
    rate = run.instructions / seconds[-1]
    slope = exponent(sizes[1:], seconds[1:])
    yield Row(
        "engine, timing only",
        f"{run.instructions:,} instructions",
        f"{rate / 1e6:.1f} M/s · growth {slope:.2f}",
        asked="8 M/s",
    )
    size = 768
    gemm(64, timing_only=False)
    full = gemm(size, timing_only=False).processor - empty
    one = np.ones((size, size), np.float32)
    product = min(timed(lambda: one @ one) for _ in range(3))
    yield Row(
        "engine, matmul with numbers", f"{size}^3", f"{size**3 / full / 1e9:.2f} G multiply-adds/s",
        f"NumPy float32 {size**3 / max(product, 1e-6) / 1e9:.1f} G/s", "15 G/s",
    )  # fmt: skip


def captures(folder: Path) -> Iterator[Row]:
    run = insight_trace.capture(ATTENTION, "CaseSmall2", output=folder / "dump")
    seconds = timed(lambda: insight_trace.capture(ATTENTION, "CaseSmall2", level=0))
    yield Row("capture, level 0", f"{run.tasks} tasks", f"{seconds:.2f} s")
    manifest = folder / "dump" / "args_dump" / "args_dump.json"
    loading = min(timed(lambda: load_dump(manifest)) for _ in range(3))
    plain = min(timed(lambda: json.loads(manifest.read_bytes())) for _ in range(3))
    yield Row(
        "load a dump", f"{run.records} records", f"{loading * 1e3:.1f} ms", f"json {plain * 1e3:.1f} ms"
    )


def traces(folder: Path) -> Iterator[Row]:
    sizes, writing, reading, counting = [10_000, 100_000], [], [], []
    encoding, events = 0.0, 0
    for rows in sizes:
        trace = made_up_trace(rows)
        place = folder / f"trace{rows}"
        writing.append(timed(lambda t=trace, p=place: write_insight_directory(t, p)))
        directory = next(place.rglob("visualize_data.bin")).parent
        reading.append(timed(lambda d=directory: insight_trace.open_trace(d)))
        opened = insight_trace.open_trace(directory)
        counting.append(timed(lambda o=opened: stats(o)))
    for document in [directory / "trace.json", *directory.glob("core*/trace.json")]:
        decoded = msgspec.json.decode(document.read_bytes())
        encoding += timed(lambda d=decoded: msgspec.json.encode(d))
        events += len(decoded["traceEvents"] if isinstance(decoded, dict) else decoded)
    size = f"{sizes[-1]:,} instructions"
    written = f" · {events / writing[-1] / 1e6:.2f} M events/s"
    peer = f"msgspec, the same events encoded only: {events / encoding / 1e6:.2f} M events/s"
    yield Row("write an Insight directory", size, _rate(sizes, writing) + written, peer, "2.5 M events/s")
    yield Row("read it", size, _rate(sizes, reading))
    yield Row("stats", size, _rate(sizes, counting))
    yield cleaning(folder)


def cleaning(folder: Path) -> Row:
    """A flag for every instruction, one core."""
    sizes, seconds = [], []
    for wanted in (11_000, 110_000):
        path, count = write_pairs(wanted // EVENTS_A_PAIR, folder / f"pairs{wanted}")
        sizes.append(count)
        seconds.append(min(measured([*_TOOL, "clean", str(path), "--force"])[1] for _ in range(2)))
    peer = ""
    checkout = os.environ.get("INSIGHT_TRACE_PYPTO")
    existing = Path(checkout or "") / "python" / "pypto" / "tools" / "clean_sim_trace.py"
    if checkout and existing.is_file():
        theirs = measured([sys.executable, str(existing), str(path)])[1]
        peer = f"pypto's cleaner {theirs:.1f} s: {theirs / seconds[-1]:.0f} x"
    return Row(
        "clean", f"{count:,} events", f"{seconds[-1]:.2f} s · growth {exponent(sizes, seconds):.2f}", peer
    )


def _rate(sizes: list[int], seconds: list[float]) -> str:
    return f"{sizes[-1] / seconds[-1] / 1e6:.2f} M/s · growth {exponent(sizes, seconds):.2f}"


def chains(count: int) -> Work:
    """Chains of four tasks, as paged attention has them."""
    number = np.arange(count)
    members = np.where(number % 2 == 0, CUBE, VECTOR0).astype(np.uint8)
    times = np.where(number[:, None] % 2 == np.array([0, 1, 2]), 4000 + number[:, None] % 7 * 100, 0)
    linked = number[number % 4 > 0]
    nothing = np.zeros(count, bool)
    return Work(
        members, np.ones(count, np.int64), number, times, nothing, nothing, linked - 1, linked,
        np.zeros(len(linked), bool),
    )  # fmt: skip


def whole_run(folder: Path, quick: bool) -> Iterator[Row]:
    machine = machine_of(insight_trace.chips.load_chip())
    sizes = [1_000, 10_000, 100_000]
    seconds = [timed(lambda n=count: place(chains(n), machine)) for count in sizes]
    slope = exponent(sizes, seconds)
    yield Row("place tasks on a chip", f"{sizes[-1]:,} tasks", f"{seconds[-1]:.1f} s · growth {slope:.2f}")
    case = "Case1" if quick else "Case100k"
    out = folder / "run"
    lasted = command("run", str(ATTENTION), "--case", case, "-o", str(out))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    data = json.loads((out / "run.json").read_text())
    what = f"{data['dispatches']:,} dispatches, {data['distinct']} distinct"
    yield Row(
        "`insight-trace run`, paged attention", what, f"{lasted:.0f} s · at most {peak:,.0f} MB in a process"
    )


def second_core(quick: bool) -> Iterator[Row]:
    """Wall time, which a busy machine changes."""
    rounds = 1 if quick else 5
    for gain in (host_cores.blocks(rounds, 512 if quick else 4096), host_cores.kernels(rounds)):
        yield Row(f"{gain.what}, on two host cores", gain.size, gain.text)


def table(folder: Path, quick: bool) -> list[Row]:
    rows: list[Row] = []
    for part in (
        replays(folder),
        large(folder, quick),
        engine(),
        captures(folder),
        traces(folder),
        whole_run(folder, quick),
        second_core(quick),
    ):
        for row in part:
            rows.append(row)
            print(f"{row.what:<38} {row.size:<34} {row.figure:<42} {row.peer:<48} {row.asked}", flush=True)
    return rows


def page(rows: list[Row]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench` (`python -m benchmarks.table`). CPU seconds of a process and all that it starts; growth",
        "is the exponent of time over size in steps of ten, 1 is linear. Others: `python -m benchmarks NAME`.",
        "",
        f"{platform.machine()}, Python {platform.python_version()}, {Toolchain.find().compiler.version}, "
        f"{time.strftime('%Y-%m-%d')}",
        "",
        "| what | size | figure | beside it | asked |",
        "|---|---|---|---|---|",
        *(f"| {row.what} | {row.size} | {row.figure} | {row.peer} | {row.asked} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path, metavar="F", help="write the table there as a page")
    parser.add_argument("--quick", action="store_true", help="a smaller run of paged attention")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="insight-trace-bench-") as name:
        # an installed package is compiled already; what this writes of it does not stay
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(name) / "compiled")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        rows = table(Path(name), options.quick)
    print(f"{len(rows)} figures in {math.ceil(time.monotonic() - began)} s")
    if options.page is not None:
        before = options.page.read_text(encoding="utf-8") if options.page.is_file() else ""
        _, heading, rest = before.partition("\n## ")  # what was measured by other commands stays
        options.page.write_text(page(rows) + heading + rest, encoding="utf-8")
        print(f"written {options.page}")


if __name__ == "__main__":
    main()
