"""What capturing costs beside the work itself: per task, and per byte of payload.

    python benchmarks/capture.py

Each line compares two runs of the same scene that were made one after the other.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import insight_trace

CHAIN = Path(__file__).resolve().parent.parent / "examples" / "vector_chain" / "scene.py"
ATTENTION = CHAIN.parent.parent / "paged_attention" / "scene.py"


def main() -> None:
    insight_trace.capture(CHAIN, "Default", level=0)  # compiles
    insight_trace.capture(ATTENTION, "CaseSmall1", level=0)
    with tempfile.TemporaryDirectory() as folder:
        runs = {
            level: insight_trace.capture(CHAIN, "Large", level=level, output=Path(folder) / str(level))
            for level in (0, 3, 2)
        }
        small = insight_trace.capture(ATTENTION, "CaseSmall1", output=Path(folder) / "small")
    plain = runs[0]
    tasks = plain.tasks
    print(f"vector chain, {tasks} tasks of one 64 x 64 tile")
    for level, run in runs.items():
        each = run.seconds / tasks * 1e3
        ratio = run.seconds / plain.seconds
        print(f"  level {level}: {each:6.3f} ms a task, {ratio:5.2f} times level 0", end="")
        print(f", {run.payload_bytes / 1e6:.1f} MB of payload" if run.payload_bytes else "")
    extra = runs[2].seconds - plain.seconds
    if extra > 0:
        print(f"  payload was written at {runs[2].payload_bytes / 1e6 / extra:,.0f} MB/s")
    print(f"paged attention CaseSmall1, level 2: {small.seconds * 1e3:.0f} ms for {small.tasks} tasks")


if __name__ == "__main__":
    main()
