"""How long a large manifest takes to load, beside json.load and one object per record, in one run.

python benchmarks/dump_loading.py [RECORDS]
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insight_trace import load_dump

RECORDS = 1_000_000
# slot, role, stage, dtype, shape of one softmax task and one matmul task, over and over
TASKS = (
    (("input", "before", "FLOAT32"), ("output", "after", "BFLOAT16"), ("output", "after", "FLOAT32")),
    (("input", "before", "BFLOAT16"), ("input", "before", "BFLOAT16"), ("output", "after", "FLOAT32")),
)
STAGES = {"before": "before_dispatch", "after": "after_completion"}


@dataclass
class PlainRecord:
    """What a reader without a typed decoder makes of a record."""

    task_id: str
    func_id: list[int]
    arg_index: int
    role: str
    stage: str
    kind: str
    dtype: str
    is_contiguous: bool
    shape: list[int]
    strides: list[int]
    start_offset: int
    numel: int
    bin_offset: int
    bin_size: int
    truncated: bool
    overwritten: bool


def write_manifest(path: Path, count: int) -> None:
    """A manifest of the newest form with that many records, one per line."""
    with path.open("w") as file:
        file.write(
            f'{{\n  "dump_args_level": 3,\n  "total_args": {count},\n  "bin_file": null,\n  "args": [\n'
        )
        for number in range(count):
            task, slot = divmod(number, 3)
            role, stage, dtype = TASKS[task % 2][slot]
            row = (
                f'    {{"task_id": "0x{task:016x}", "func_id": [{task % 2}], "arg_index": {slot}, '
                f'"role": "{role}", "stage": "{STAGES[stage]}", "kind": "tensor", "dtype": "{dtype}", '
                f'"is_contiguous": true, "shape": [16, 16], "strides": [16, 1], "start_offset": 0, '
                f'"numel": 256, "bin_offset": 0, "bin_size": 0, "truncated": false, "overwritten": false}}'
            )
            file.write(row + (",\n" if number < count - 1 else "\n"))
        file.write("  ]\n}\n")


def plain_load(path: Path) -> list[PlainRecord]:
    with path.open() as file:
        return [PlainRecord(**row) for row in json.load(file)["args"]]


def seconds(work: Callable[[], Any]) -> float:
    gc.collect()
    start = time.perf_counter()
    result = work()
    taken = time.perf_counter() - start
    del result
    return taken


def first_row_seconds(path: Path) -> tuple[float, float]:
    """From start to the first row of `dump list`, and to its end."""
    command = [sys.executable, "-m", "insight_trace", "dump", "list", str(path)]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        first = time.perf_counter() - start
        for _ in process.stdout:
            pass
    return first, time.perf_counter() - start


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "args_dump.json"
        write_manifest(path, count)
        megabytes = path.stat().st_size / 1e6
        print(f"manifest   {count:,} records, {megabytes:,.0f} MB")
        pairs = [(seconds(lambda: plain_load(path)), seconds(lambda: load_dump(path))) for _ in range(2)]
        plain, ours = min(p for p, _ in pairs), min(o for _, o in pairs)
        print(
            f"load       json and objects {plain:.2f} s · load_dump {ours:.2f} s · {plain / ours:.1f} times"
        )
        dump = load_dump(path)
        built = seconds(lambda: sum(len(d.arguments) for d in dump.dispatches))
        print(f"dispatches {len(dump.dispatches):,} put together in {built:.2f} s more")
        small = Path(folder) / "small" / "args_dump.json"
        small.parent.mkdir()
        write_manifest(small, min(count, 100_000))
        first, whole = first_row_seconds(small)
        print(f"list       first row after {first:.2f} s, {min(count, 100_000):,} rows after {whole:.2f} s")


if __name__ == "__main__":
    main()
