"""What a profile run costs besides the simulator, and what running kernels side by side gains.

    python benchmarks/profile_build.py

The simulator is stood in for by a process that counts for a while: the figures are about the tool.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from insight_trace.profile import ProfileRequest, profile
from insight_trace.ptoas.runner import EXPORTED, RunOutcome
from insight_trace.ptoas.spec import ProfileKernel

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "pypto_build"
COPIES = 4  # 10 kernels at the top level each: 40
COUNT = "sum(range(6_000_000))"


class CountingRunner:
    """Leaves what a simulator leaves; `work` is run in a process of its own."""

    name = "counting"

    def __init__(self, work: str = "") -> None:
        self.work = work

    def run(self, _kernel: ProfileKernel, out: Path, _logs: Path) -> RunOutcome:
        if self.work:
            subprocess.run([sys.executable, "-c", self.work], check=True)
        simulator = out / "OPPROF_1" / "simulator"
        simulator.mkdir(parents=True)
        for name in ("trace.json", "visualize_data.bin"):
            (simulator / name).write_bytes(b"{}")
        return RunOutcome(EXPORTED)

    def stop(self) -> None:
        """Nothing outlives a count."""


def _build(root: Path) -> Path:
    for index in range(COPIES):
        shutil.copytree(EXAMPLE / "ptoas", root / "next_levels" / f"part{index}" / "ptoas")
    return root


def _seconds(build: Path, out: Path, work: str, jobs: int) -> tuple[float, float, int]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = profile(ProfileRequest(build, output_root=out, jobs=jobs), CountingRunner(work))
    assert result.exported == len(result.rows)
    return time.perf_counter() - wall, time.process_time() - cpu, len(result.rows)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        build = _build(Path(place) / "build")
        _, cpu, count = _seconds(build, Path(place) / "idle", "", 1)
        print(f"{count} kernels: the tool itself takes {cpu / count * 1000:.1f} ms CPU per kernel")
        single, _, _ = _seconds(build, Path(place) / "one", COUNT, 1)
        double, _, _ = _seconds(build, Path(place) / "two", COUNT, 2)
        print(f"{count} kernels: {single:.2f} s with --jobs 1, {double:.2f} s with --jobs 2")
        print(f"ratio {single / double:.2f} (the machine's other load counts against it)")


if __name__ == "__main__":
    main()
