"""Chips from measurements: a made-up device is found again, what nothing tells is refused, the printed error holds."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.chips import load_chip
from insight_trace.errors import InputError
from insight_trace.model import CoreType
from insight_trace.run.calibration import core_times
from insight_trace.run.fitting import Quantity, fit
from insight_trace.run.measured import read_pmu, read_swimlane
from insight_trace.run.overlay import candidates, overlay_text
from insight_trace.simulate.embedded.program import Step, move, multiply, run_program, transfer, vector
from insight_trace.simulate.embedded.simulator import EmbeddedOptions

EXAMPLE = Path(__file__).parents[2] / "examples" / "paged_attention" / "scene.py"
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
    noise = np.random.default_rng(seed).normal(1, NOISE / TIMES**0.5, len(values))
    return [
        Quantity(f"task {i}", "total", float(value * factor), NOISE / TIMES**0.5)
        for i, (value, factor) in enumerate(zip(values, noise, strict=True))
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
    assert found.before > 3 * found.held_out
    # tasks of the same kind, measured anew: the error that was told is theirs
    again = np.array([q.measured for s in range(20) for q in _measured(device(DEVICE), seed=100 + s)])
    calibrated = np.tile(np.array(device(found.factors)), 20)
    true = float(np.sqrt(np.mean(np.log(again / calibrated) ** 2)))
    assert found.held_out < 3 * true


def test_parameters_that_always_change_together_are_not_told_apart() -> None:
    quantities = [Quantity(f"t{i}", "total", 130.0 + i, 0.01) for i in range(8)]

    def model(factors: Mapping[str, float]) -> list[float]:
        both = factors.get("a", 1.0) * factors.get("b", 1.0)
        return [100.0 * both + i * factors.get("c", 1.0) * 0.001 for i in range(8)]

    found = fit(quantities, model, ["a", "b", "c"])
    assert [p.name for p in found.fitted] == ["a"]
    assert {r.name: r.why for r in found.refused}["b"] == "cannot be told apart from a"
    assert found.fitted[0].factor == pytest.approx(1.33, rel=0.03)


def test_the_error_of_left_out_tasks_is_that_of_new_ones() -> None:
    rng = np.random.default_rng(3)
    slopes = rng.uniform(0, 1, (60, 4))

    def model(factors: Mapping[str, float]) -> list[float]:
        logs = np.log([factors.get(n, 1.0) for n in "abcd"])
        return list(1000 * np.exp(slopes @ logs))

    truth = model({"a": 1.3, "b": 0.8, "c": 1.2, "d": 0.7})

    def measure() -> list[Quantity]:
        return [
            Quantity(f"t{i:02}", "total", float(v * f), 0.05)
            for i, (v, f) in enumerate(zip(truth, rng.normal(1, 0.05, 60), strict=True))
        ]

    told, true = [], []
    for _ in range(6):
        found = fit(measure(), model, list("abcd"))
        told.append(found.held_out)
        fresh = np.array([q.measured for _ in range(5) for q in measure()])
        true.append(float(np.sqrt(np.mean(np.log(fresh / np.tile(model(found.factors), 5)) ** 2))))
    assert np.mean(told) == pytest.approx(np.mean(true), rel=0.2)


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


# --- the command, on the example


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    assert main(["capture", str(EXAMPLE), "--case", "CaseSmall1", "-o", str(folder / "dump")]) == 0
    return folder


def _records(folder: Path, factors: Mapping[str, float]) -> tuple[Path, Path]:
    """What a device with these parameters would have written of the recorded tasks."""
    from insight_trace.dump.load import load_dump
    from insight_trace.run.calibration import simulated
    from insight_trace.run.recorded_tasks import recorded_tasks

    chip = load_chip()
    device = folder / "device.toml"
    device.write_text(overlay_text(chip, "ascend910b1", "Device", factors, "made up"), encoding="utf-8")
    ids = {d.task_id for d in load_dump(folder / "dump").dispatches}
    rng = np.random.default_rng(5)
    rows, lane = [], []
    names = {
        "VECTOR": "vec",
        "CUBE": "cube",
        "SCALAR": "scalar",
        "MTE1": "mte1",
        "MTE2": "mte2",
        "MTE3": "mte3",
    }
    for task in recorded_tasks(EXAMPLE, folder / "dump", "CaseSmall1", ids):
        times = core_times(simulated(task, EmbeddedOptions(soc_version=str(device))))
        for kind, cycles in times.items():
            for task_id in task.task_ids:
                noisy = {what: value * rng.normal(1, NOISE) for what, value in cycles.items()}
                row = {f"{short}_busy_cycles": round(noisy.get(pipe, 0)) for pipe, short in names.items()}
                core_type = 0 if kind == "aic" else 1
                rows.append(
                    {"thread_id": 0, "core_id": 3 * core_type, "task_id": f"0x{task_id:016x}",
                     "func_id": task.kernels[0].func_id, "core_type": core_type,
                     "pmu_total_cycles": round(noisy["total"]), **row, "event_type": 2}
                )  # fmt: skip
                ticks = cycles["total"] / chip.mhz * 50 * rng.normal(1, NOISE)
                lane.append([3 * core_type, task_id, 1, 1000, 1000 + max(1, round(ticks)), 5])
    pmu, swimlane = folder / "pmu.csv", folder / "chip_swimlane_records.json"
    with pmu.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    metadata = {"clock_freq_hz": 50000000, "core_types": ["aic", "aic", "aic", "aiv"]}
    swimlane.write_text(json.dumps({"chip_swimlane_level": 1, "metadata": metadata, "aicore_tasks": lane}))
    return pmu, swimlane


def test_the_command_fits_a_chip_to_a_run_and_writes_it(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pmu, swimlane = _records(recorded, {"move.MOV_OUT_TO_L1_MULTI_ND2NZ.latency": 1.6, "scalar.load_gm": 1.5})
    out = recorded / "mine.toml"
    command = ["calibrate", str(EXAMPLE), "--case", "CaseSmall1", "--dump-dir", str(recorded / "dump")]
    capsys.readouterr()
    assert main([*command, "--pmu", str(pmu), "--swimlane", str(swimlane), "-o", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["held_out_error"] < told["error_before"]
    assert {"total", "MTE2", "duration"} <= {q["what"] for q in told["quantities"]}
    assert load_chip(str(out)).name == "mine"
    assert main([*command, "--pmu", str(pmu)]) == 0
    assert "fitted " in capsys.readouterr().out


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
