"""A recording in the files of other simulators and of the device's counters, in the field names that their readers use.

`npusim`: `kernel_0_reports/summary.json` and `trace_core<N>.json` (cannbot's ops-simulator skill); `perf-sim`: pto-isa's
`<op>_pipeline_summary.csv`; `pmu`: simpler's `pmu.csv`. What a recording does not know is left out, never zero.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from insight_trace.errors import RequestError
from insight_trace.model import Pipe, Trace
from insight_trace.recording.busy import Cores, CoreStats, PipeStats
from insight_trace.recording.kinds import WAITS
from insight_trace.recording.pipes import core_order
from insight_trace.recording.stream import details_of
from insight_trace.storage import whole_files
from insight_trace.trace.stats import Stats, stats

FORMS = ("npusim", "perf-sim", "pmu")
# Busy cycles of the PMU's group PIPE_UTILIZATION, in its order; its two counters of instruction fetches are not simulated.
PIPE_COUNTERS = (
    ("vec_busy_cycles", "VECTOR"), ("cube_busy_cycles", "CUBE"), ("scalar_busy_cycles", "SCALAR"),
    ("mte1_busy_cycles", "MTE1"), ("mte2_busy_cycles", "MTE2"), ("mte3_busy_cycles", "MTE3"),
)  # fmt: skip
PIPE_UTILIZATION = 2
PMU_HEAD = ["thread_id", "core_id", "task_id", "func_id", "core_type", "pmu_total_cycles"]
_CORE = re.compile(r"core(\d+)\.(cube|vec)core(\d+)")
_PERF_SIM = (
    "op_name,core_id,unit,total_cycles,active_start_cycle,active_end_cycle,active_cycles,busy_cycles,scalar_cycles,"
    "mte2_aic_cycles,mte2_aiv_cycles,mte1_cycles,cube_cycles,fixp_cycles,vec_cycles,mte3_cycles"
)


def forms_of(text: str) -> tuple[str, ...]:
    """The forms that `--also` names, with commas between them."""
    named = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    unknown = [word for word in named if word not in FORMS]
    if unknown or not named:
        raise RequestError(
            f"--also {text}: there is no form {', '.join(unknown)}", hint=f"known: {', '.join(FORMS)}"
        )
    return named


def write_also(
    trace: Trace, folder: Path, kernel: str, forms: Iterable[str], *, force: bool = False
) -> list[Path]:
    """Puts the files into a folder that exists; returns where they are."""
    figures = stats(trace)
    with whole_files(folder, force=force) as place:
        for form in forms:
            if form == "npusim":
                _npusim(trace, figures, place / "kernel_0_reports")
            elif form == "perf-sim":
                (place / f"{kernel}_pipeline_summary.csv").write_text(
                    perf_sim(figures, kernel), encoding="utf-8"
                )
            else:
                (place / "pmu.csv").write_text(pmu(figures), encoding="utf-8")
        written = sorted(path.name for path in place.iterdir())
    return [folder / name for name in written]


def add_to_workspace(directory: Path | None, workspace: Path, kernel: str, forms: Iterable[str]) -> None:
    """Puts the files into the workspace of an Insight directory, which has a pmu.csv already."""
    wanted = [form for form in forms if form != "pmu"]
    if wanted and directory is not None:
        from insight_trace.insight import open_trace

        write_also(open_trace(directory), workspace, kernel, wanted)


def _sides(figures: Stats | Cores) -> list[tuple[int, str, CoreStats, dict[str, PipeStats]]]:
    """Of every core its block, AIC, AIV0 or AIV1, and its pipes by name."""
    pipes: dict[str, dict[str, PipeStats]] = defaultdict(dict)
    for pipe in figures.pipes:
        pipes[pipe.core][pipe.pipe] = pipe
    found = []
    for core in sorted(figures.cores, key=lambda each: core_order(each.core)):
        match = _CORE.fullmatch(core.core)
        if match is None:
            raise RequestError(
                f"{core.core} is no core of a simulated dispatch", hint="--also needs a replay of ours"
            )
        unit = "AIC" if match[2] == "cube" else f"AIV{match[3]}"
        found.append((int(match[1]), unit, core, pipes[core.core]))
    return found


def pmu(
    figures: Stats | Cores, *, task: int = 0, cube: Sequence[int] = (), vector: Sequence[int] = ()
) -> str:
    """pmu.csv: total and busy cycles of every core, as the counters of group 2 hold them.

    `task` is the dispatch's; `cube` and `vector` the func ids of its kernels on either side, one or one for each core.
    """
    lines = [",".join([*PMU_HEAD, *(name for name, _ in PIPE_COUNTERS), "event_type"])]
    for number, (_, unit, core, pipes) in enumerate(_sides(figures)):
        busy = [pipes[pipe].busy if pipe in pipes else 0 for _, pipe in PIPE_COUNTERS]
        ids = cube if unit == "AIC" else vector
        func = ids[min(int(unit[-1]) if unit != "AIC" else 0, len(ids) - 1)] if ids else 0
        cells = [0, number, f"0x{task:016x}", func, int(unit != "AIC"), core.cycles, *busy, PIPE_UTILIZATION]
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def perf_sim(figures: Stats, kernel: str) -> str:
    """pto-isa's <op>_pipeline_summary.csv."""
    lines = [_PERF_SIM]
    for block, unit, core, pipes in _sides(figures):
        busy = {name: pipe.busy for name, pipe in pipes.items()}
        moved = busy.get("MTE2", 0)
        cells: list[Any] = [kernel, block, unit, figures.cycles, core.begin, core.end, core.cycles]
        cells += [core.cycles - core.nothing, busy.get("SCALAR", 0)]
        cells += [moved if unit == "AIC" else 0, moved if unit != "AIC" else 0]
        cells += [busy.get(name, 0) for name in ("MTE1", "CUBE", "FIXPIPE", "VECTOR", "MTE3")]
        lines.append(",".join(map(str, cells)))
    return "\n".join(lines) + "\n"


def _npusim(trace: Trace, figures: Stats, folder: Path) -> None:
    folder.mkdir()
    sides = _sides(figures)
    text = json.dumps(summary(figures), indent=1)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")
    for block in sorted({block for block, *_ in sides}):
        mine = {core.core: unit for number, unit, core, _ in sides if number == block}
        (folder / f"trace_core{block}.json").write_text(json.dumps(_trace(trace, mine)), encoding="utf-8")


def summary(figures: Stats) -> dict[str, Any]:
    """npusim's summary.json: shares are 0 to 1, times are cycles; a pipe that did nothing is left out."""
    shares: dict[str, list[float]] = defaultdict(list)
    for _, unit, core, pipes in _sides(figures):
        for name, pipe in pipes.items():
            label = {"FIXPIPE": "FIXP", "VECTOR": "SIMD"}.get(name, name)
            shares[f"{unit}_{label}"].append(pipe.busy / core.cycles if core.cycles else 0.0)
    used = {
        name: {"mean": sum(each) / len(each), "min": min(each), "max": max(each), "per_core": each}
        for name, each in shares.items()
        if any(each)
    }
    top = max(used, key=lambda name: float(str(used[name]["mean"])), default="")
    lasted = [core.cycles for core in figures.cores if core.cycles]
    return {
        "kernel_info": {
            "ai_core_active": len({block for block, *_ in _sides(figures)}),
            "kernel_total_clocks": figures.cycles,
            "kernel_instructions_executed": figures.instructions,
        },
        "pipe_utilization": {"pipeline_util_summary": used},
        "top_level_diagnosis": {
            "dominant_pipeline": top,
            "dominant_pipeline_util": used[top]["mean"] if top else 0.0,
            "imbalance_ratio": max(lasted) / min(lasted) if lasted else 1.0,
        },
        "simd_vf_metrics": {},
        "simulated_by": "insight-trace",
    }


def _trace(trace: Trace, units: dict[str, str]) -> dict[str, Any]:
    """One block: a process for every pipe, a slice for every instruction; times are microseconds."""
    import numpy as np

    columns = trace.instructions
    chosen = np.array([core in units for core in columns.cores], bool)[columns.core]
    rows = np.flatnonzero(chosen & (columns.pipe != Pipe.CACHEMISS))
    processes: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    for row, detail in zip(rows.tolist(), details_of(columns.detail, rows), strict=True):
        unit = units[columns.cores[columns.core[row]]]
        pipe = Pipe(int(columns.pipe[row])).name
        label = pipe if unit == "AIC" else f"{unit[-1]}_{pipe}"
        name, start, end = columns.names[columns.name[row]], int(columns.start[row]), int(columns.end[row])
        args: dict[str, Any] = {"pc": f"0x{int(columns.pc[row]):x}", "detail": detail, "cycles": end - start}
        if name in WAITS and columns.partner[row] >= 0:
            args["detail"] = f"PIPE:{Pipe(int(columns.pipe[int(columns.partner[row])])).name}"
        place = {"pid": processes.setdefault(label, len(processes) + 1), "tid": 0}
        times = {"ts": start / trace.mhz, "dur": (end - start) / trace.mhz}
        events.append({"ph": "X", "name": name, **place, **times, "args": args})
    heads = [
        {"ph": "M", "name": "process_name", "pid": number, "args": {"name": label}}
        for label, number in processes.items()
    ]
    return {"displayTimeUnit": "ns", "traceEvents": [*heads, *events]}
