"""What capturing costs beside the work itself: per task, per byte of payload, and in memory for a long run.

    python benchmarks/capture.py

Every figure stands beside what it is compared with, taken in the same run of this program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import insight_trace

ATTENTION = Path(__file__).resolve().parent.parent / "examples" / "paged_attention" / "scene.py"
MEGABYTE = 1_000_000
TASKS = 4000
BIG_TASKS, BIG_ROWS = 40, 32768  # 8 MiB in each of two inputs

_KERNEL = 'extern "C" void kernel_entry(long *args) {}\n'

_ORCHESTRATION = """
#include "pto_orchestration_api.h"
extern "C" void aicpu_orchestration_entry(const ChipTaskArgs &args) {
    uint32_t shape[2] = {16, 16};
    TensorCreateInfo made(shape, 2);
    for (uint64_t i = 0; i < args.scalar(0); ++i) {
        PTO2_SCOPE() {
            CoreTaskArgs task;
            task.add_input(args.tensor(0).ref(), args.tensor(1).ref());
            task.add_output(made);
            rt_submit_aiv_task(0, task);
        }
    }
}
"""

_SCENE = f"""
import ctypes
import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class Idle(SceneTestCase):
    SKIP_GOLDEN = True
    CALLABLE = {{
        "orchestration": {{"source": "orchestration.cpp", "function_name": "aicpu_orchestration_entry",
                          "signature": [D.IN, D.IN]}},
        "incores": [{{"func_id": 0, "name": "IDLE", "source": "idle.cpp", "core_type": "aiv",
                     "signature": [D.IN, D.IN, D.OUT]}}],
    }}
    CASES = [
        {{"name": "Many", "platforms": ["a2a3sim"], "params": {{"rows": 16, "tasks": {TASKS}}}}},
        {{"name": "Big", "platforms": ["a2a3sim"], "params": {{"rows": {BIG_ROWS}, "tasks": {BIG_TASKS}}}}},
    ]

    def generate_args(self, params):
        shape = (params["rows"], 64)
        return TaskArgsBuilder(
            TensorArg("a", np.random.uniform(-1, 1, shape).astype(np.float32)),
            TensorArg("b", np.random.uniform(-1, 1, shape).astype(np.float32)),
            Scalar("tasks", ctypes.c_uint64(params["tasks"])),
        )
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scene = folder / "scene.py"
        scene.write_text(_SCENE, encoding="utf-8")
        (folder / "idle.cpp").write_text(_KERNEL, encoding="utf-8")
        (folder / "orchestration.cpp").write_text(_ORCHESTRATION, encoding="utf-8")
        for path, case in ((scene, "Many"), (ATTENTION, "CaseSmall1")):
            insight_trace.capture(path, case, level=0)  # compiles
        small(folder)
        overhead(scene, folder)
        payload(scene, folder)
        long_run(folder)


def small(folder: Path) -> None:
    whole, runs = [], []
    for turn in range(5):
        started = time.monotonic()
        run = insight_trace.capture(ATTENTION, "CaseSmall1", output=folder / f"small{turn}")
        whole.append(time.monotonic() - started)
        runs.append(run.seconds)
    print(f"paged attention CaseSmall1, level 2, compiled before, {run.tasks} tasks (middle of 5):")
    print(f"  {median(whole) * 1e3:.0f} ms from scene to dump, of which {median(runs) * 1e3:.0f} ms running")


def overhead(scene: Path, folder: Path) -> None:
    print(f"{TASKS} tasks of a kernel that returns at once:")
    first = 0.0
    for level in (0, 3, 2):
        run = insight_trace.capture(scene, "Many", level=level, output=folder / f"many{level}")
        first = first or run.seconds
        each = run.seconds / run.tasks * 1e3
        print(f"  level {level}: {each:.3f} ms a task, {run.seconds / first:.2f} times level 0")


def payload(scene: Path, folder: Path) -> None:
    recorded, plain, total = [], [], 0
    piece = os.urandom(8 * MEGABYTE)
    for _ in range(3):
        idle = insight_trace.capture(scene, "Big", level=0)
        os.sync()  # neither pays for what the other left to the disk
        run = insight_trace.capture(scene, "Big", output=folder / "big")
        total = run.payload_bytes
        recorded.append(total / max(run.seconds - idle.seconds, 1e-9))
        shutil.rmtree(folder / "big")
        os.sync()
        plain.append(total / _write(folder / "plain", piece, total))
        (folder / "plain").unlink()
    ratio = median(recorded) / median(plain)
    print(f"payload of {total / MEGABYTE:.0f} MB (middle of 3):")
    print(
        f"  recorded at {median(recorded) / MEGABYTE:,.0f} MB/s; the same bytes written to the same folder and "
        f"nothing else at {median(plain) / MEGABYTE:,.0f} MB/s: ratio {ratio:.2f}"
    )


def _write(path: Path, piece: bytes, total: int) -> float:
    started = time.monotonic()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    left = total
    while left:
        left -= os.write(file, piece[: min(left, len(piece))])
    os.close(file)
    return time.monotonic() - started


def long_run(folder: Path) -> None:
    command = [sys.executable, "-m", "insight_trace", "capture", str(ATTENTION), "--case", "Case100k"]
    command += ["--dump-args", "3", "-o", str(folder / "long")]
    started = time.monotonic()
    peak = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            peak = max(peak, sum(_memory(p) for p in _tree(process.pid)))
            time.sleep(0.1)
        assert process.stdout is not None
        said = process.stdout.read()
    seconds = time.monotonic() - started
    dump = insight_trace.load_dump(folder / "long" / "args_dump" / "args_dump.json")
    dispatches = {d.dispatch_id for d in dump.dispatches}
    arguments = sum(len(d.arguments) for d in dump.dispatches)
    print(f"paged attention Case100k, level 3, {seconds:.0f} s from start to end:")
    print("  " + "\n  ".join(line for line in said.splitlines() if line.startswith(("ran", "golden"))))
    print(f"  {len(dispatches):,} different dispatches with {arguments:,} arguments when it is loaded again")
    print(f"  at most {peak / MEGABYTE:.0f} MB in all its processes together")


def _tree(root: int) -> list[int]:
    found = [root]
    for parent in found:
        try:
            found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
        except OSError:
            continue  # it has ended meanwhile
    return found


def _memory(process: int) -> int:
    """What a process has for itself and its share of what it has with others, in bytes."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    main()
