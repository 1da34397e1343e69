"""Chips from measurements: a made-up device is found again, what nothing tells is refused, the printed error holds."""

import contextlib
import csv
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.chips import load_chip
from insight_trace.dump.load import load_dump
from insight_trace.errors import InputError
from insight_trace.model import CoreType
from insight_trace.run.calibration import Simulated, Task, core_times, recorded_tasks, simulated
from insight_trace.run.fitting import Quantity, fit, scatter
from insight_trace.run.measured import read_pmu, read_swimlane
from insight_trace.run.overlay import candidates, overlay_text
from insight_trace.simulate.embedded.program import Step, move, multiply, run_program, transfer, vector
from insight_trace.simulate.embedded.simulator import EmbeddedOptions

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE, CALIBRATION = (EXAMPLES / name / "scene.py" for name in ("paged_attention", "calibration"))
NOISE, TIMES = 0.05, 25

# What the made-up device does differently.
DEVICE = {
    "vector.VADDS.f32.slope": 1.30,
    "vector.VEXP.any.slope": 0.80,
    "vector.VMUL.any.head": 1.40,
    "move.MOV_OUT_TO_UB.time": 1.25,
    "move.MOV_UB_TO_OUT.time": 0.78,
    "move.MOV_OUT_TO_L1_MULTI_ND2NZ.rate": 0.72,
    "move.LOAD_L1_TO_L0A_2D.rate": 0.80,
    "move.LOAD_L1_TO_L0B_2D.rate": 1.25,
    "mmad.head": 1.5,
}


def _tasks() -> list[tuple[CoreType, list[Step]]]:
    cube, vec = CoreType.AIC, CoreType.AIV
    tasks: list[tuple[CoreType, list[Step]]] = []
    for n in (3, 9):
        tasks += [
            (vec, [vector(40 * n, "VADDS")] * n),
            (vec, [vector(20 * n, "VEXP")] * n),
            (vec, [vector(n, "VMUL"), vector(n, "VADDS")] * 4),
            (vec, [transfer("MOV_OUT_TO_UB", 4096 * n)] * 2),
            (vec, [transfer("MOV_UB_TO_OUT", 4096 * n)] * 2),
            (vec, [vector(n, "VMUL")]),
            (cube, [transfer("MOV_OUT_TO_L1_MULTI_ND2NZ", 2048, 8 * n)] * 2),
            (cube, [move("LOAD_L1_TO_L0A_2D", 512, 16 * n)] * 3),
            (cube, [move("LOAD_L1_TO_L0B_2D", 512, 16 * n)] * 3),
            (cube, [multiply(16, 16, 16)]),
            (cube, [multiply(32, 16, 16 * n)]),
        ]
    return tasks


TASKS = _tasks()


class Device:
    """The tasks on a chip with parameters changed, each on a core of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chip = load_chip()
        self.runs = 0

    def __call__(self, factors: Mapping[str, float]) -> list[float]:
        path = self.folder / f"chip{self.runs}.toml"
        self.runs += 1
        path.write_text(
            overlay_text(self.chip, "ascend910b1", "MadeUp", factors, "made up"), encoding="utf-8"
        )
        kinds, programs = zip(*TASKS, strict=True)
        done = run_program(*programs, kinds=kinds, options=EmbeddedOptions(soc_version=str(path)))
        assert done.failure is None
        assert done.launch is not None
        return [float(end) for end in done.launch.ends]


def _measured(values: list[float], seed: int) -> list[Quantity]:
    noise = np.random.default_rng(seed).normal(1, NOISE, (len(values), TIMES))
    return [
        Quantity(f"task {i}", "total", tuple(enumerate((value * factors).tolist())))
        for i, (value, factors) in enumerate(zip(values, noise, strict=True))
    ]


def test_a_made_up_device_is_found_again_and_what_nothing_tells_is_refused(tmp_path: Path) -> None:
    device = Device(tmp_path)
    quantities = _measured(device(DEVICE), seed=1)
    names = [*DEVICE, "vector.VDIV.any.slope", "mmad.gap", "fixpipe.head"]
    found = fit(quantities, device, names)
    assert set(DEVICE) <= set(found.factors)
    for name, factor in DEVICE.items():
        assert found.factors[name] == pytest.approx(factor, rel=0.05), name
    refused = {r.name: r.why for r in found.refused}
    assert refused["vector.VDIV.any.slope"] == "no measured task depends on it"
    assert "fixpipe.head" in refused
    assert found.before > 2 * found.held_out
    # tasks of the same kind, measured anew: the error that was told is theirs
    again = np.array([[v for _, v in q.values] for q in _measured(device(DEVICE), seed=100)])
    calibrated = np.array(device(found.factors))[:, None]
    true = float(np.sqrt(np.mean(np.log(again / calibrated) ** 2)))
    assert found.held_out == pytest.approx(true, rel=0.2)
    assert found.scatter == pytest.approx(NOISE, rel=0.2)


def test_parameters_that_always_change_together_are_not_told_apart() -> None:
    quantities = [Quantity(f"t{i}", "total", tuple((k, 130.0 + i) for k in range(9))) for i in range(8)]

    def model(factors: Mapping[str, float]) -> list[float]:
        both = factors.get("a", 1.0) * factors.get("b", 1.0)
        return [100.0 * both + i * factors.get("c", 1.0) * 0.001 for i in range(8)]

    found = fit(quantities, model, ["a", "b", "c"])
    assert [p.name for p in found.fitted] == ["a"]
    assert {r.name: r.why for r in found.refused}["b"] == "cannot be told apart from a"
    assert found.fitted[0].factor == pytest.approx(1.33, rel=0.03)


def test_kinds_of_tasks_that_nothing_else_explains_are_told_as_such() -> None:
    """Of two parameters each is told by its own tasks: without them it is what the chip's file says."""

    def model(factors: Mapping[str, float]) -> list[float]:
        return [100 * factors.get("a", 1.0), 100 * factors.get("b", 1.0)]

    rng = np.random.default_rng(3)
    quantities = [
        Quantity(name, "total", tuple(enumerate((150 * rng.normal(1, NOISE, 40)).tolist()))) for name in "ab"
    ]
    found = fit(quantities, model, ["a", "b"])
    assert found.factors == pytest.approx({"a": 1.5, "b": 1.5}, rel=0.03)
    assert found.held_out == pytest.approx(NOISE, rel=0.2)
    assert found.unseen == pytest.approx(np.log(1.5), rel=0.1)
    assert found.before == pytest.approx(np.hypot(np.log(1.5), NOISE), rel=0.1)


def test_a_few_measurements_are_taken_to_scatter_as_usual() -> None:
    assert scatter([Quantity("t", "total", ((1, 100.0), (2, 100.1)))]) == NOISE


def test_an_overlay_is_a_chip_file_that_names_its_measurement(tmp_path: Path) -> None:
    chip = load_chip()
    path = tmp_path / "mine.toml"
    path.write_text(overlay_text(chip, "ascend910b1", "Mine", DEVICE, 'from "here"'), encoding="utf-8")
    mine = load_chip(str(path))
    assert mine.name == "Mine"
    slope = mine.table["vector"]["VADDS"]["f32"]
    assert (slope["kind"], slope["source"]) == ("measured", 'from "here"')
    assert slope["slope"] == pytest.approx(chip.table["vector"]["VADDS"]["f32"]["slope"] * 1.3)
    assert mine.table["vector"]["VADDS"]["any"] == chip.table["vector"]["VADDS"]["any"]
    curve = mine.table["move"]["MOV_OUT_TO_UB"]["curve"]
    assert curve[0][1] == pytest.approx(chip.table["move"]["MOV_OUT_TO_UB"]["curve"][0][1] * 1.25)
    assert "vector.VADDS.f32.slope" in candidates(chip, ["vector.VADDS.f32"])


# --- the command: a made-up device writes the records of a run


NAMES = {
    "VECTOR": "vec_busy_cycles", "CUBE": "cube_busy_cycles", "SCALAR": "scalar_busy_cycles",
    "MTE1": "mte1_busy_cycles", "MTE2": "mte2_busy_cycles", "MTE3": "mte3_busy_cycles",
}  # fmt: skip
VECTOR = {
    "vector.VADDS.f32.slope": 1.30, "vector.VADDS.f32.head": 0.85, "vector.VEXP.any.slope": 0.80,
    "vector.VMUL.any.head": 1.40, "vector.VDIV.any.slope": 1.20, "vector.VDIV.any.head": 1.25,
    "move.MOV_OUT_TO_UB_ALIGN.latency": 1.25, "move.MOV_UB_TO_OUT_ALIGN.time": 0.78,
    "l2.miss_latency": 1.35,
}  # fmt: skip
CUBE = {
    "move.MOV_OUT_TO_L1_MULTI_ND2NZ.latency": 1.35, "move.LOAD_L1_TO_L0A_3Dv2.rate": 0.80,
    "move.LOAD_L1_TO_L0B_3Dv2.rate": 1.25, "mmad.head": 1.50, "fixpipe.head": 0.75,
}  # fmt: skip
UNTOLD = {"register.write": 1.4, "flag.latency": 0.7}  # the device has them, and no task shows them


@dataclass(frozen=True)
class Run:
    """What a made-up device did with the tasks of a dump."""

    scene: Path
    dump: Path
    case: str
    tasks: tuple[Task, ...]
    times: Mapping[tuple[str, str], float]  # by task and core, and what is measured

    def command(self, *more: str) -> list[str]:
        return ["calibrate", str(self.scene), "--case", self.case, "--dump-dir", str(self.dump), *more]

    def measure(self, seed: int) -> dict[int, dict[str, float]]:
        """Of every task, noisy: cycles by pipe, total and duration."""
        rng = np.random.default_rng(seed)
        kinds = {
            task.name: "aic" if task.kernels[0].core_type is CoreType.AIC else "aiv" for task in self.tasks
        }
        return {
            task_id: {
                what: value * rng.normal(1, NOISE)
                for (name, what), value in self.times.items()
                if name == f"{task.name} {kinds[task.name]}"
            }
            for task in self.tasks
            for task_id in task.task_ids
        }

    def write(self, folder: Path, measured: Mapping[int, Mapping[str, float]]) -> list[str]:
        """pmu.csv and chip_swimlane_records.json; the options that name them."""
        rows, lane = [], []
        cubes = {i: t.kernels[0].core_type is CoreType.AIC for t in self.tasks for i in t.task_ids}
        for task_id, noisy in measured.items():
            core, busy = (0 if cubes[task_id] else 3), {c: round(noisy.get(p, 0)) for p, c in NAMES.items()}
            rows.append(
                {"thread_id": 0, "core_id": core, "task_id": f"0x{task_id:016x}", "func_id": int(core == 0),
                 "core_type": int(core > 0), "pmu_total_cycles": round(noisy["total"]), **busy, "event_type": 2}
            )  # fmt: skip
            lane.append([core, task_id, 1, 1000, 1000 + round(noisy["duration"] * 50), 5])
        pmu, swimlane = folder / "pmu.csv", folder / "chip_swimlane_records.json"
        with pmu.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        metadata = {"clock_freq_hz": 50000000, "core_types": ["aic", "aic", "aic", "aiv"]}
        swimlane.write_text(
            json.dumps({"chip_swimlane_level": 1, "metadata": metadata, "aicore_tasks": lane})
        )
        return ["--pmu", str(pmu), "--swimlane", str(swimlane)]


def ran(folder: Path, scene: Path, case: str, factors: Mapping[str, float], only: str = "") -> Run:
    """The tasks of a case, those of one kernel alone if asked, on a device with these parameters changed."""
    assert main(["capture", str(scene), "--case", case, "-o", str(folder / "dump")]) == 0
    ids = {d.task_id for d in load_dump(folder / "dump").dispatches}
    tasks = tuple(t for t in recorded_tasks(scene, folder / "dump", case, ids) if t.name.startswith(only))
    with Simulated(tasks, load_chip(), "ascend910b1", None, "a2a3", folder) as device:
        return Run(scene, folder / "dump", case, tasks, device(factors))


def found_again(run: Run, folder: Path, device: Mapping[str, float], seed: int) -> tuple[int, float]:
    """Calibrates with four fifths of the tasks. How many parameters are right to 5 %, and the printed error by the true."""
    folder.mkdir()
    measured = run.measure(seed)
    out = set(sorted(measured)[seed % 5 :: 5])
    files = run.write(folder, {task: noisy for task, noisy in measured.items() if task not in out})
    chip = folder / "mine.toml"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(run.command(*files, "-o", str(chip), "--json")) == 0
    told = json.loads(said.getvalue())
    assert told["held_out_error"] < told["error_before"]
    assert told["unseen_kind_error"] >= told["held_out_error"]
    factors = {row["parameter"]: row["factor"] for row in told["fitted"]}
    right = [name for name in device if name in factors and abs(factors[name] / device[name] - 1) < 0.05]
    refused = {row["parameter"]: row["why"] for row in told["refused"]}
    assert set(UNTOLD) <= set(refused)
    assert "at best" in refused["flag.latency"]
    assert refused["gm.chip_rate"] == refused["mmad.gap"] == "no measured task depends on it"
    # what the new chip says of the tasks that were left out
    wrong = []
    for task in run.tasks:
        times = core_times(simulated(task, EmbeddedOptions(soc_version=str(chip))))
        (cycles,) = (of["total"] for of in times.values())
        for task_id in out.intersection(task.task_ids):
            wrong.append(np.log(measured[task_id]["total"] / cycles))
            wrong.append(np.log(measured[task_id]["duration"] * load_chip().mhz / cycles))
    true = float(np.sqrt(np.mean(np.square(wrong))))
    print(seed, len(right), told["held_out_error"], true)  # shown where it fails
    return len(right), told["held_out_error"] / true


def test_eight_parameters_of_a_made_up_device_come_back_from_its_records(tmp_path: Path) -> None:
    run = ran(tmp_path, CALIBRATION, "Calibrate", {**VECTOR, **UNTOLD}, only="VECTOR")
    right, honest = found_again(run, tmp_path / "a", VECTOR, seed=1)
    assert right >= 8
    assert honest == pytest.approx(1, abs=0.2)


@pytest.mark.skipif(not os.environ.get("INSIGHT_TRACE_LONG_TESTS"), reason="a minute for each set of records")
def test_parameters_of_both_kinds_of_cores_come_back_whatever_the_noise(tmp_path: Path) -> None:
    device = {**VECTOR, **CUBE}
    run = ran(tmp_path, CALIBRATION, "Calibrate", {**device, **UNTOLD})
    results = [found_again(run, tmp_path / f"{seed}", device, seed) for seed in range(5)]
    assert all(right >= 12 for right, _ in results), results
    assert all(abs(honest - 1) < 0.2 for _, honest in results), results


def test_the_command_fits_a_chip_to_any_run_writes_it_and_shows_counters_of_every_group_of_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factors = {"move.MOV_OUT_TO_L1_MULTI_ND2NZ.latency": 1.6, "scalar.load_gm": 1.5}
    run = ran(tmp_path, EXAMPLE, "CaseSmall1", factors)
    measured, out = run.measure(5), tmp_path / "mine.toml"
    files = run.write(tmp_path, measured)
    cubes = {i: t.kernels[0].core_type is CoreType.AIC for t in run.tasks for i in t.task_ids}
    groups = {  # of a2a3, by their numbers; icache_miss is what nothing here counts
        "l2": {"write_cache_hit": 10, "r0_read_cache_hit": 20, "r1_read_cache_hit": 30, "r0_read_cache_miss_allocate": 4},
        "conflict": {"bankgroup_stall_cycles": 7, "bank_stall_cycles": 5},
        "arithmetic": {"cube_fp16_exec": 99},
        "pipes": {"mte2_busy_cycles": 0, "icache_miss": 3},
        "memory": {"ub_read_req": 1, "l1_write_req": 2, "main_read_req": 5},
        "l0": {"l0a_write_req": 6, "l0c_write_req": 8},
        "ub": {"ub_write_bw_mte": 9, "ub_read_bw_vector": 11},
    }  # fmt: skip
    for number, (name, counters) in enumerate(groups.items()):
        path = tmp_path / f"{name}.csv"
        fixed = "thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles"
        lines = [f"{fixed},{','.join(counters)},event_type"]
        for task_id, noisy in measured.items():
            words = [0, 0, f"0x{task_id:016x}", 1, int(not cubes[task_id]), round(noisy["total"])]
            lines.append(",".join(map(str, [*words, *counters.values(), number])))
        path.write_text("\n".join(lines) + "\n")
        files += ["--pmu", str(path)]
    capsys.readouterr()
    assert main(run.command(*files, "-o", str(out))) == 0
    said = capsys.readouterr().out
    for line in ("fitted ", "refused ", "scatter ", "error ", f"written    {out}"):
        assert line in said
    assert {"total", "MTE2", "duration"} <= set(said.split())
    assert load_chip(str(out)).name == "mine"
    rows = [line[11:] for line in said.splitlines() if line.startswith("counter ")]
    assert {row[:28].strip() for row in rows} == {task.name for task in run.tasks}
    shown = {row[29:55].strip(): row[55:].split() for row in rows}
    told = {
        "L2 hits": 60, "L2 misses": 4, "bank conflict cycles": 12, "cube_fp16_exec": 99, "icache_miss": 3,
        "ub_read_req": 1, "l1_write_req": 2, "requests to memory, reads": 5, "l0a_write_req": 6, "l0c_write_req": 8,
        "ub_write_bw_mte": 9, "ub_read_bw_vector": 11,
    }  # fmt: skip
    assert {what: float(measured) for what, (measured, _) in shown.items()} == told
    assert {what for what, (_, ours) in shown.items() if ours == "-"} == {"icache_miss"}


def test_wrong_records_are_told_with_their_place(tmp_path: Path) -> None:
    bad = tmp_path / "pmu.csv"
    bad.write_text("task_id,func_id,core_type,pmu_total_cycles\n0x1,2,0,many\n")
    with pytest.raises(InputError, match="no row of PMU"):
        read_pmu(bad)
    lane = tmp_path / "lane.json"
    lane.write_text("{}")
    with pytest.raises(InputError, match="no swimlane"):
        read_swimlane(lane)
    assert main(["calibrate", str(EXAMPLE), "--dump-dir", str(tmp_path)]) == 2
