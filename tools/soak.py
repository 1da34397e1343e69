"""Works many times, many at once, and watches what the machine loses: memory, descriptors, processes, files.

    python tools/soak.py [--seconds 60] [--at-once 8]

One process works on `--at-once` threads until the time is over: three of four turns replay an example kernel, the others
read a scene, a dump and a trace, and make a page. Figures are taken after a tenth of the time and at the end; exit code
1 if memory grew by more than a tenth and 64 MiB, or anything else grew at all.
"""

from __future__ import annotations

import argparse
import atexit
import concurrent.futures
import io
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def figures(jobs: Path) -> dict[str, int]:
    """What this process holds, and what it left on the machine."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = sum(len((t / "children").read_text().split()) for t in Path("/proc/self/task").iterdir())
    return {
        "memory": pages * os.sysconf("SC_PAGESIZE"),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "children": children,
        "job folders": len(list(jobs.iterdir())),
    }


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

    while time.monotonic() - begin < options.seconds:
        with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
            results = list(pool.map(work, range(options.at_once)))
        count += len(results)
        failures += results.count(False)
        if not early and time.monotonic() - begin > options.seconds / 10:
            early = figures(jobs)
    late = figures(jobs)
    grown = {name: late[name] - early.get(name, late[name]) for name in late}
    bad = [
        n for n, more in grown.items() if more > (early.get(n, 0) // 10 + (64 << 20) if n == "memory" else 0)
    ]
    print(f"{count} turns, {options.at_once} at once, in {time.monotonic() - begin:.0f} s; {failures} differ")
    for name, value in late.items():
        print(f"{name:14}{early.get(name, value):>16,}{value:>16,}{'  grows' if name in bad else ''}")
    return 1 if bad or failures else 0


if __name__ == "__main__":
    sys.exit(main())
