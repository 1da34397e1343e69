"""Replays many times, many at once, and watches what the machine loses: memory, descriptors, processes, files.

    python tools/soak.py [--seconds 60] [--at-once 8]

One process replays an example kernel on `--at-once` threads until the time is over. Figures are taken after a tenth of
the time and at the end; exit code 1 if memory grew by more than a tenth and 64 MiB, or anything else grew at all.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def figures() -> dict[str, int]:
    """What this process holds, and what it left on the machine."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = sum(len((t / "children").read_text().split()) for t in Path("/proc/self/task").iterdir())
    jobs = [
        p for where in ("/dev/shm", tempfile.gettempdir()) for p in Path(where).glob("insight-trace-job-*")
    ]
    own = [p for p in jobs if p.stat().st_uid == os.getuid()]
    return {
        "memory": pages * os.sysconf("SC_PAGESIZE"),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "children": children,
        "job folders": len(own),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    import numpy as np

    from insight_trace import simulate

    kernel = ROOT / "examples" / "kernels" / "vector_add.cpp"
    values = {slot: np.ones(64 * 64, np.float32) for slot in range(3)}
    first = simulate(kernel, values)
    failures = 0 if first.failure is None else 1
    begin = time.monotonic()
    early: dict[str, int] = {}
    count = 0

    def replay(_: int) -> bool:
        return (simulate(kernel, values).failure is None) == (first.failure is None)

    while time.monotonic() - begin < options.seconds:
        with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
            results = list(pool.map(replay, range(options.at_once)))
        count += len(results)
        failures += results.count(False)
        if not early and time.monotonic() - begin > options.seconds / 10:
            early = figures()
    late = figures()
    grown = {name: late[name] - early.get(name, late[name]) for name in late}
    bad = [
        n for n, more in grown.items() if more > (early.get(n, 0) // 10 + (64 << 20) if n == "memory" else 0)
    ]
    print(
        f"{count} replays, {options.at_once} at once, in {time.monotonic() - begin:.0f} s; {failures} differ"
    )
    for name, value in late.items():
        print(f"{name:14}{early.get(name, value):>16,}{value:>16,}{'  grows' if name in bad else ''}")
    return 1 if bad or failures else 0


if __name__ == "__main__":
    sys.exit(main())
