"""One dispatch replayed, from the start of the process to the printed directory.

    python benchmarks/replay.py [--runs N] [--cold]

Against the start of a Python that loads NumPy, measured in turn with it, and against the 7 s of wall time
that the fastest published run of the vendor's camodel takes for one kernel. CPU time counts every process
that a run starts. `--cold` also measures a run with an empty cache, which compiles the simulator and the kernel.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CAMODEL_SECONDS = 7.0
SCENE = Path(__file__).resolve().parent.parent / "examples" / "paged_attention" / "scene.py"
CASE = "CaseSmall1"


def _run(command: list[str], surroundings: dict[str, str]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        # an installed package is compiled already; what this writes of it does not stay
        surroundings = {**os.environ, "PYTHONPYCACHEPREFIX": str(place / "compiled")}
        surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
        tool = [sys.executable, "-m", "insight_trace"]
        dump = str(place / "dump")
        _run([*tool, "capture", str(SCENE), "--case", CASE, "-o", dump], surroundings)
        replay = [*tool, "replay", str(SCENE), "--case", CASE, "--func-id", "1", "--dump-dir", dump, "-o"]
        numpy = [sys.executable, "-c", "import numpy"]
        _run([*replay, str(place / "first")], surroundings)
        _run(numpy, surroundings)
        pairs = [
            (_run([*replay, str(place / f"run{number}")], surroundings), _run(numpy, surroundings))
            for number in range(options.runs)
        ]
        (wall, cpu), (numpy_wall, numpy_cpu) = (
            [statistics.median(pair[which][kind] for pair in pairs) for kind in (0, 1)] for which in (0, 1)
        )
        print(f"warm replay    {wall:6.2f} s by the clock  {cpu:6.3f} s CPU  (median of {options.runs})")
        print(f"import numpy   {numpy_wall:6.2f} s by the clock  {numpy_cpu:6.3f} s CPU")
        print(f"replay/numpy   {wall / numpy_wall:6.2f} by the clock  {cpu / numpy_cpu:6.2f} by CPU time")
        print(f"camodel/replay {CAMODEL_SECONDS / wall:6.1f} by the clock (7 s, its fastest published run)")
        if options.cold:
            cold = {**surroundings, "INSIGHT_TRACE_CACHE": str(place / "empty")}
            wall, cpu = _run([*replay, str(place / "cold")], cold)
            print(f"cold replay    {wall:6.2f} s by the clock  {cpu:6.2f} s CPU, compilers included")


if __name__ == "__main__":
    main()
