"""How long SQL over a recording of five million instructions takes.

    python benchmarks/query_scale.py [--instructions N]

Each question is asked of a recording in memory; tables are made anew for every one.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.synthetic_recording import ROWS_A_ROUND, mix_recording  # noqa: E402

from insight_trace.trace.sql import ask  # noqa: E402

QUESTIONS = {
    "by pipe": "select pipe, count(*), sum(cycles) from instructions group by pipe",
    "by line": "select * from lines order by cycles desc",
    "by tile op": "select op, count(*), sum(cycles) from calls group by op",
    "waits": "select pipe, set_by, sum(cycles) from flags group by all",
    "bytes": "select memory, sum(bytes) from operands group by memory",
    "lives of tiles": "select name, count(*) from lives group by name",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instructions", type=int, default=5_000_000)
    options = parser.parse_args()
    recording = mix_recording(24, round(options.instructions / (24 * ROWS_A_ROUND * 5 / 6)), seed=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{len(recording.instructions):,} instructions")
    for name, sql in QUESTIONS.items():
        wall, cpu = time.perf_counter(), time.process_time()
        count = sum(1 for _ in ask(recording, sql).rows)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{name:<15} {count:>4} rows  {wall:5.2f} s ({cpu:.2f} s of CPU)", flush=True)
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{more / 1024:.0f} MB beyond the recording at most")


if __name__ == "__main__":
    main()
