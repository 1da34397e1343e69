"""What a profile run costs besides the simulator, and what running kernels side by side gains.

    python benchmarks/profile_build.py

Forty kernels, copies of those of the example build. The first figure has no simulator at all; the ratio
is of two runs on the embedded core, each of which compiles every kernel anew.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from insight_trace.cache import Cache
from insight_trace.options import RunOptions
from insight_trace.profile import ProfileRequest, run_profile
from insight_trace.profile.embedded_runner import EmbeddedRunner
from insight_trace.profile.kernel_runner import EXPORTED, KernelRunner, Places, RunOutcome
from insight_trace.ptoas.planned_kernel import ProfileKernel
from insight_trace.simulate.embedded.compiler import find_compiler
from insight_trace.simulate.embedded.toolchain import Toolchain

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "pypto_build"
COPIES = {"ptoas": 4, "next_levels/decode/ptoas": 2}  # 4 x 9 pure kernels and 2 x 2: 40


class NoSimulator:
    """Leaves what a simulator leaves, at once."""

    name = "none"
    in_threads = True

    def digest(self, _kernel: ProfileKernel) -> str:
        return ""

    def call(self, _kernel: ProfileKernel, places: Places) -> Callable[[], RunOutcome]:
        return functools.partial(self._leave, places)

    def _leave(self, places: Places) -> RunOutcome:
        simulator = places.out / "OPPROF_1" / "simulator"
        simulator.mkdir(parents=True)
        for name in ("trace.json", "visualize_data.bin"):
            (simulator / name).write_bytes(b"{}")
        return RunOutcome(EXPORTED)

    def stop(self) -> None:
        """Nothing runs."""


def _build(root: Path) -> Path:
    for place, copies in COPIES.items():
        for index in range(copies):
            part = root / "next_levels" / f"{place.replace('/', '_')}{index}" / "ptoas"
            shutil.copytree(EXAMPLE / place, part, ignore=shutil.ignore_patterns("up_group_0.*"))
    return root


def _timed(build: Path, out: Path, runner: KernelRunner, jobs: int) -> tuple[float, float, int]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = run_profile(ProfileRequest(build, output_root=out, jobs=jobs), runner)
    assert result.exported == len(result.rows), [row for row in result.rows if not row.exported]
    return time.perf_counter() - wall, time.process_time() - cpu, len(result.rows)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        build = _build(place / "build")
        _, cpu, count = _timed(build, place / "idle", NoSimulator(), 1)
        print(f"{count} kernels: reading and planning take {cpu / count * 1000:.1f} ms CPU per kernel")
        seconds = {}
        for jobs in (1, 2):
            runner = EmbeddedRunner(RunOptions(seconds=120))
            runner.toolchain = Toolchain(find_compiler(), Cache(place / "cache"))
            runner.toolchain.runner()
            shutil.rmtree(place / "cache" / "kernel", ignore_errors=True)
            seconds[jobs], _, _ = _timed(build, place / f"jobs{jobs}", runner, jobs)
        print(f"{count} kernels: {seconds[1]:.1f} s with --jobs 1, {seconds[2]:.1f} s with --jobs 2")
        print(f"ratio {seconds[1] / seconds[2]:.2f} (the machine's other load counts against it)")


if __name__ == "__main__":
    main()
