"""What a device measured of tasks: counters of the AI cores (pmu.csv) and times of the swimlane."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from insight_trace.errors import InputError
from insight_trace.limits import JSON_BYTES, TABLE_BYTES, cut
from insight_trace.reading import load_json, open_regular

# Columns of busy cycles, of both families, by the pipe that they count.
_BUSY = {
    "vec_busy_cycles": "VECTOR", "cube_busy_cycles": "CUBE", "scalar_busy_cycles": "SCALAR",
    "mte1_busy_cycles": "MTE1", "mte2_busy_cycles": "MTE2", "mte3_busy_cycles": "MTE3",
    "pmu_idc_aic_vec_busy_o": "VECTOR", "cube_instr_busy": "CUBE", "scalar_instr_busy": "SCALAR",
    "mte1_instr_busy": "MTE1", "mte2_instr_busy": "MTE2", "mte3_instr_busy": "MTE3", "pmu_fix_instr_busy": "FIXP",
}  # fmt: skip
TOTAL, DURATION = "total", "duration"
_NO_COUNTERS = frozenset(
    {"thread_id", "core_id", "task_id", "func_id", "core_type", "pmu_total_cycles", "event_type"}
)


@dataclass(frozen=True, slots=True)
class MeasuredTask:
    """One execution of one kernel on one core."""

    task_id: int
    func_id: int | None  # None: the record does not say
    cube: bool | None
    cycles: Mapping[str, float]  # total and busy cycles by pipe; `duration` is in microseconds
    # all others, under the names of their columns
    counters: Mapping[str, float] = field(default_factory=dict)


def read_pmu(path: Path) -> list[MeasuredTask]:
    """Rows of pmu.csv, of any group of events (--enable-pmu 1, 2, 4 to 8)."""
    tasks = []
    try:
        with io.TextIOWrapper(open_regular(path, most=TABLE_BYTES), "utf-8", newline="") as file:
            rows = csv.DictReader(file)
            for number, row in enumerate(rows, 2):
                try:
                    busy = {pipe: float(row[name]) for name, pipe in _BUSY.items() if row.get(name)}
                    busy = {pipe: cycles for pipe, cycles in busy.items() if cycles > 0}
                    cycles = {TOTAL: float(row["pmu_total_cycles"]), **busy}
                    cube = row["core_type"].strip() == "0"
                    others = {
                        name: float(value)
                        for name, value in row.items()
                        if name and value and name not in _BUSY and name not in _NO_COUNTERS
                    }
                    tasks.append(
                        MeasuredTask(int(row["task_id"], 16), int(row["func_id"]), cube, cycles, others)
                    )
                except (KeyError, ValueError, TypeError, AttributeError) as error:
                    raise InputError(
                        f"this is no row of PMU counters: {cut(str(error))}", where=f"{path}:{number}",
                        hint="a run with --enable-pmu N writes them",
                    ) from None  # fmt: skip
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"the counters cannot be read: {why}",
            where=str(path),
            hint="give the pmu.csv of a run with --enable-pmu N",
        ) from None
    return tasks


def read_swimlane(path: Path) -> list[MeasuredTask]:
    """Durations of tasks from chip_swimlane_records.json, in microseconds."""
    table: Any = load_json(path, most=JSON_BYTES)
    if isinstance(table, dict) and "tasks" in table and "aicore_tasks" not in table:
        return _earlier_swimlane(table, path)
    try:
        metadata = table["metadata"]
        hertz, kinds = float(metadata["clock_freq_hz"]), metadata.get("core_types", [])
        tasks = []
        for core, token, _, start, end, *_rest in table["aicore_tasks"]:
            cube = kinds[core] == "aic" if core < len(kinds) else None
            micros = (end - start) / hertz * 1e6
            if micros > 0:
                tasks.append(MeasuredTask(int(token), None, cube, {DURATION: micros}))
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise InputError(
            f"this is no swimlane of tasks: {cut(str(error))}", where=str(path),
            hint="chip_swimlane_records.json of a run with --enable-chip-swimlane",
        ) from None  # fmt: skip
    return tasks


def _earlier_swimlane(table: Any, path: Path) -> list[MeasuredTask]:
    """As it was written until June 2026 (l2_perf_records.json): an object for each task, times in microseconds."""
    try:
        return [
            MeasuredTask(
                int(task["task_id"]),
                int(task["func_id"]) if task.get("func_id", -1) >= 0 else None,
                task["core_type"] == "aic" if "core_type" in task else None,
                {DURATION: float(task["duration_us"])},
            )
            for task in table["tasks"]
            if float(task["duration_us"]) > 0
        ]
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(f"this is no swimlane of tasks: {cut(str(error))}", where=str(path)) from None
