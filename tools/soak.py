"""Works many times, many at once, and watches what the machine loses: memory, descriptors, processes, files.

    python tools/soak.py [--seconds 60] [--at-once 8]

One process works on `--at-once` threads until the time is over: three of four turns replay an example kernel, the others
read a scene, a dump and a trace, and make a page. After each round follows a command line, in turns: capture, replay,
run, gate, check, why, clean, view, dump export. Figures are taken after a tenth of the time and at the end; exit code 1
if memory grew by more than a tenth and 64 MiB, what lives in it by more than a fiftieth, or anything else at all: threads
leave holes in memory, and what is never given up does not hide among them.
"""

from __future__ import annotations

import argparse
import atexit
import concurrent.futures
import contextlib
import gc
import io
import itertools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def figures(jobs: Path) -> dict[str, int]:
    """What this process holds, and what it left on the machine."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = 0
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            children += len((thread / "children").read_text().split())
    gc.collect()
    return {
        "live blocks": sys.getallocatedblocks(),
        "memory": pages * os.sysconf("SC_PAGESIZE"),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "children": children,
        "job folders": len(list(jobs.iterdir())),
        "temporary files": len(list(Path(tempfile.gettempdir()).iterdir())),
    }


_SCENE = str(ROOT / "examples" / "vector_chain" / "scene.py")
_TRACE = str(ROOT / "tests" / "data" / "fuzz" / "trace.json")
_DUMP = str(ROOT / "tests" / "data" / "fuzz" / "kernel_args_dump.json")
# one after the other in a folder that is then removed
LINES = (
    ["capture", _SCENE, "-o", "dump"],
    ["replay", _SCENE, "--func-id", "0", "--dump-dir", "dump", "--dispatch-id", "0", "-o", "workspace"],
    ["why", "workspace", "2[0,0]"],
    ["run", _SCENE, "--jobs", "1", "-o", "run"],
    ["gate", "base.json", _SCENE, "--update", "--jobs", "1"],
    ["check", _SCENE, "--sarif", "found.sarif"],
    ["clean", _TRACE, "-o", "clean"],
    ["view", _TRACE, "--no-browser", "-o", "page.html"],
    ["dump", "export", _DUMP, "-o", "exported"],
)


def command_lines(folder: Path) -> Iterator[bool]:
    """Runs the next command line; whether it did what it should."""
    from insight_trace.__main__ import main

    for line in itertools.cycle(LINES):
        if line is LINES[0]:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        said = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(line)
        if code:
            print(f"{' '.join(line)}: {code}\n{said.getvalue()[-500:]}")
        yield code == 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    import numpy as np

    from insight_trace import load_dump, load_scene, open_trace, simulate
    from insight_trace.report.page import write_page
    from insight_trace.simulate.embedded import job_files

    # a place for the files of jobs that nobody else uses
    jobs = Path(tempfile.mkdtemp(prefix="insight-trace-soak-", dir="/dev/shm"))
    job_files._SHARED_MEMORY = jobs
    atexit.register(shutil.rmtree, jobs, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix="insight-trace-soak-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    tempfile.tempdir = str(temporary)
    lines = command_lines(temporary / "commands")
    kernel = ROOT / "examples" / "kernels" / "vector_add.cpp"
    values = {slot: np.ones(64 * 64, np.float32) for slot in range(3)}
    first = simulate(kernel, values)
    failures = 0 if first.failure is None else 1
    begin = time.monotonic()
    early: dict[str, int] = {}
    count = 0

    corpus = ROOT / "tests" / "data" / "fuzz"

    def work(turn: int) -> bool:
        if turn % 4:
            return (simulate(kernel, values).failure is None) == (first.failure is None)
        load_scene(ROOT / "examples" / "paged_attention" / "scene.py")
        dispatches = list(load_dump(corpus / "args_dump.json").dispatches)
        page = io.BytesIO()
        write_page(page, [open_trace(corpus / "trace.json")], ["one"])
        return bool(dispatches) and page.tell() > 0

    # every command line has been loaded when the first figures are taken, and comes again before the last
    for rounds in itertools.count(1):
        if rounds > 2 * len(LINES) and time.monotonic() - begin >= options.seconds:
            break
        with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
            results = list(pool.map(work, range(options.at_once)))
        results.append(next(lines))
        count += len(results)
        failures += results.count(False)
        if not early and rounds >= len(LINES) and time.monotonic() - begin > options.seconds / 10:
            early = figures(jobs)
    late = figures(jobs)
    grown = {name: late[name] - early.get(name, late[name]) for name in late}
    allowed = {
        "memory": early.get("memory", 0) // 10 + (64 << 20),
        "live blocks": early.get("live blocks", 0) // 50,
    }
    bad = [name for name, more in grown.items() if more > allowed.get(name, 0)]
    print(f"{count} turns, {options.at_once} at once, in {time.monotonic() - begin:.0f} s; {failures} differ")
    for name, value in late.items():
        print(f"{name:14}{early.get(name, value):>16,}{value:>16,}{'  grows' if name in bad else ''}")
    return 1 if bad or failures else 0


if __name__ == "__main__":
    sys.exit(main())
