"""What a device measured stands beside what is simulated, and the slowest measured task is the one to look at."""

import json
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.errors import InputError
from insight_trace.executor import Local
from insight_trace.run.device_comparison import beside
from insight_trace.run.device_records import find_records, read_deps, read_names
from insight_trace.run.measured import read_swimlane
from insight_trace.run.schedule import ActivityKind
from insight_trace.run.whole_run import RunRequest, run_case

SCENE = Path(__file__).parents[2] / "examples" / "paged_attention" / "scene.py"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return run_case(RunRequest(SCENE, "CaseSmall1"), tmp_path_factory.mktemp("run"), Local(1))


@pytest.fixture
def device(simulated, tmp_path):
    """The records of a device that is half as fast as the simulation, but for one task."""
    ids = simulated.graph.tasks["id"].tolist()
    schedule = simulated.schedule
    kernels = schedule.kind == ActivityKind.KERNEL
    took = dict(
        zip(schedule.task[kernels].tolist(), (schedule.end - schedule.start)[kernels].tolist(), strict=True)
    )
    rows = []
    for task in range(1, len(ids)):
        ticks = round(simulated.micros(took[task]) * 2 * 50)
        rows.append([0, ids[task], task, 1000, 1000 + ticks + (500 if task == 7 else 0), 10])
    swimlane = {
        "chip_swimlane_level": 1,
        "metadata": {"clock_freq_hz": 50_000_000, "num_cores": 1, "core_types": ["aiv"]},
        "aicore_tasks": rows,
    }
    (tmp_path / "chip_swimlane_records.json").write_text(json.dumps(swimlane))
    pairs = zip(
        simulated.graph.edges["before"].tolist(), simulated.graph.edges["after"].tolist(), strict=True
    )
    edges = [{"pred": str(ids[a]), "succ": str(ids[b]), "arg": 0, "source": "tensormap"} for a, b in pairs]
    tasks = [{"task_id": str(i), "kernel_ids": [-1, 0, -1], "block_num": 1, "args": []} for i in ids]
    deps = {"tasks": tasks, "tensors": [], "edges": [*edges, edges[0]]}
    (tmp_path / "deps.json").write_text(json.dumps(deps))
    names = {"level": 2, "orchestrator_name": None, "callable_id_to_name": {"0": "QK", "1": "SF"}}
    (tmp_path / "name_map_PagedAttention_CaseSmall1.json").write_text(json.dumps(names))
    return tmp_path


def test_tasks_and_kernels_stand_beside_each_other_the_slowest_first(simulated, device):
    found = beside(simulated, device)
    assert len(found.tasks) == 12
    assert found.only_here == 0
    assert found.tasks[0].task_id == simulated.graph.tasks["id"][7]
    assert [task.measured for task in found.tasks] == sorted((t.measured for t in found.tasks), reverse=True)
    assert {kernel.name for kernel in found.kernels} == {"QK", "SF", "PV", "UP"}
    for task in found.tasks[1:]:
        assert task.ratio == pytest.approx(0.5, rel=0.02)


def test_the_command_starts_at_the_slowest_measured_task(simulated, device, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["run", str(SCENE), "--case", "CaseSmall1", "-o", str(tmp_path / "out"), "--jobs", "1"]
    assert main([*words, "--measured", str(device)]) == 0
    said = capsys.readouterr().out
    assert "measured   kernel" in said
    assert f"--task-id 0x{int(simulated.graph.tasks['id'][7]):x}" in said
    data = json.loads((tmp_path / "out" / "run.json").read_text())
    assert len(data["measured"]["tasks"]) == 12
    assert data["cycles"] == simulated.total  # the recorded dependences are those that we find


def test_dependences_of_another_case_are_refused(device, tmp_path, capsys):
    content = json.loads((device / "deps.json").read_text())
    content["tasks"].append({"task_id": "77"})
    (device / "deps.json").write_text(json.dumps(content))
    words = ["run", str(SCENE), "--case", "CaseSmall1", "-o", str(tmp_path / "out"), "--jobs", "1"]
    assert main([*words, "--deps", str(device / "deps.json")]) == 1
    assert "task 0x4d of it is not in this case" in capsys.readouterr().err


def test_records_of_every_time_are_read(tmp_path):
    old = tmp_path / "l2_perf_records.json"
    task = {"task_id": 5, "func_id": 1, "core_type": "aiv", "duration_us": 2.5}
    old.write_text(json.dumps({"version": 1, "tasks": [task]}))
    assert find_records(tmp_path).swimlane == old
    (measured,) = read_swimlane(old)
    assert (measured.task_id, measured.func_id, measured.cube) == (5, 1, False)
    assert measured.cycles == {"duration": 2.5}
    pairs = tmp_path / "deps.json"
    pairs.write_text(json.dumps({"edges": [[1, 2], [1, 2], ["2", "3"]]}))
    assert read_deps(pairs).edges == ((1, 2), (2, 3))
    flat = tmp_path / "name_map.json"
    flat.write_text(json.dumps({"0": "QK", "orchestrator_name": None}))
    assert read_names(flat) == {0: "QK"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("deps.json", "[]", "not an object"),
        ("deps.json", '{"edges": [{"pred": "x"}]}', "no list of dependences"),
        ("deps.json", '{"edges": 3}', "no list of dependences"),
        ("deps.json", "{", "not JSON"),
    ],
)
def test_what_is_no_record_is_named(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        read_deps(path)


def test_a_folder_without_times_is_named(tmp_path):
    with pytest.raises(InputError, match="no times of a device"):
        find_records(tmp_path)
