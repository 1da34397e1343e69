"""A replay in the files of other simulators and of the device's counters: their fields, and the numbers of `stats`."""

import csv
import json
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.run.measured import read_pmu

EXAMPLES = Path(__file__).parents[2] / "examples"
FIELDS = [
    "op_name",
    "core_id",
    "unit",
    "total_cycles",
    "active_start_cycle",
    "active_end_cycle",
    "active_cycles",
    "busy_cycles",
    "scalar_cycles",
    "mte2_aic_cycles",
    "mte2_aiv_cycles",
    "mte1_cycles",
    "cube_cycles",
    "fixp_cycles",
    "vec_cycles",
    "mte3_cycles",
]


@pytest.fixture(scope="module")
def mix(tmp_path_factory):
    place = tmp_path_factory.mktemp("mix") / "workspace"
    scene = str(EXAMPLES / "mixed_example" / "scene.py")
    assert (
        main(["replay", scene, "--func-id", "0,1,2", "-o", str(place), "--also", "npusim,perf-sim,pmu"]) == 0
    )
    return place


@pytest.fixture(scope="module")
def figures(mix):
    from insight_trace.insight import open_trace
    from insight_trace.trace.stats import stats

    return stats(open_trace(mix))


def test_perf_sims_table_has_a_row_for_every_unit(mix, figures):
    (path,) = mix.glob("*_pipeline_summary.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert list(rows[0]) == FIELDS
    assert [row["unit"] for row in rows] == ["AIC", "AIV0", "AIV1"]
    assert {int(row["total_cycles"]) for row in rows} == {figures.cycles}
    assert int(rows[0]["cube_cycles"]) == figures.pipe("core0.cubecore0", "CUBE").busy
    assert int(rows[1]["vec_cycles"]) == figures.pipe("core0.veccore0", "VECTOR").busy
    assert int(rows[0]["mte2_aiv_cycles"]) == int(rows[1]["mte2_aic_cycles"]) == 0


def test_the_counters_are_read_as_a_devices(mix, figures):
    tasks = read_pmu(mix / "pmu.csv")
    assert [task.cube for task in tasks] == [True, False, False]
    assert tasks[0].cycles["CUBE"] == figures.pipe("core0.cubecore0", "CUBE").busy
    assert tasks[0].cycles["total"] == figures.cores[0].cycles
    with (mix / "pmu.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["func_id"] for row in rows] == ["0", "1", "2"]
    assert {row["task_id"] for row in rows} == {"0x0000000100000000"}


def test_npusims_summary_and_trace_hold_every_instruction(mix, figures):
    folder = mix / "kernel_0_reports"
    found = json.loads((folder / "summary.json").read_text())
    assert found["kernel_info"]["kernel_total_clocks"] == figures.cycles
    shares = found["pipe_utilization"]["pipeline_util_summary"]
    assert {"AIC_CUBE", "AIC_FIXP", "AIV0_SIMD", "AIV1_MTE3"} <= shares.keys()
    assert all(0 < each["mean"] <= 1 for each in shares.values())
    assert found["top_level_diagnosis"]["dominant_pipeline"] in shares
    events = json.loads((folder / "trace_core0.json").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"MTE2", "CUBE", "FIXP", "0_VECTOR", "1_MTE3"} <= names
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == figures.instructions
    assert all(event["args"]["pc"].startswith("0x") for event in slices)


def test_a_form_that_nobody_has_is_refused_before_anything_runs(tmp_path, capsys):
    scene = str(EXAMPLES / "mixed_example" / "scene.py")
    assert main(["replay", scene, "--func-id", "0,1,2", "-o", str(tmp_path / "a"), "--also", "camodel"]) == 2
    assert "npusim, perf-sim, pmu" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
