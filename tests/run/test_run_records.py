"""The files of a run as simpler's runtime writes them on a device: its own tools and ours read them."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.run.device_records import find_records, read_deps, read_names
from insight_trace.run.measured import read_pmu, read_swimlane

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENES = {
    "paged_attention": "CaseSmall1",
    "mixed_example": "Many",
    "spmd_multiblock": "Blocks4",
    "vector_chain": "Default",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for scene, case in SCENES.items():
        command = ["run", str(EXAMPLES / scene / "scene.py"), "--case", case, "-o", str(root / scene)]
        assert main(command) == 0
    return root


def files(runs, scene):
    folder = runs / scene / "dfx_outputs"
    (names,) = folder.glob("name_map_*.json")
    paths = (folder / "chip_swimlane_records.json", folder / "deps.json", names)
    return folder, *(json.loads(path.read_text()) for path in paths)


@pytest.mark.parametrize("scene", SCENES)
def test_the_swimlane_obeys_every_rule_of_its_readers(runs, scene):
    _, lane, deps, _ = files(runs, scene)
    meta = lane["metadata"]
    assert lane["chip_swimlane_level"] == 4
    assert len(meta["core_types"]) == len(meta["core_to_thread"]) == meta["num_cores"]
    rows, stamps = lane["aicore_tasks"], lane["aicpu_tasks"]
    assert all(len(row) == 6 for row in rows)
    assert len({(row[0], row[2]) for row in rows}) == len(rows)
    assert {(row[0], row[2]) for row in rows} == {(row[0], row[1]) for row in stamps}
    for (*_, start, end, _), (_, _, dispatch, finish) in zip(rows, stamps, strict=True):
        assert 0 < dispatch <= start <= end <= finish
    # as many rows as blocks of members that run
    wanted = {int(t["task_id"]): t["block_num"] * sum(k >= 0 for k in t["kernel_ids"]) for t in deps["tasks"]}
    assert Counter(row[1] for row in rows) == {task: count for task, count in wanted.items() if count}
    noted = 0
    for thread in lane["aicpu_scheduler_phases"]:
        assert [phase["loop_iter"] for phase in thread] == list(range(1, len(thread) + 1))
        starts = [phase["start_cycles"] for phase in thread]
        assert starts == sorted(starts)
        noted += sum(phase["tasks_processed"] for phase in thread if phase["kind"] == "complete")
        assert all({"pop_hit", "pop_miss"} <= phase.keys() for phase in thread if phase["kind"] == "dispatch")
    assert noted == len(rows)
    (submits,) = lane["aicpu_orchestrator_phases"]
    assert [each["submit_idx"] for each in submits] == list(range(len(deps["tasks"])))


@pytest.mark.parametrize("scene", SCENES)
def test_our_own_readers_take_what_the_run_left(runs, scene):
    folder, lane, deps, names = files(runs, scene)
    found = find_records(folder)
    assert None not in (found.swimlane, found.pmu, found.deps, found.names)
    read = read_deps(found.deps)
    assert [task.task_id for task in read.tasks] == [int(task["task_id"]) for task in deps["tasks"]]
    assert len(read.edges) == len(deps["edges"])
    assert read_names(found.names) == {int(k): v for k, v in names["callable_id_to_name"].items()}
    micros = sorted(task.cycles["duration"] for task in read_swimlane(found.swimlane))
    cycles = sorted(task.cycles["total"] for task in read_pmu(found.pmu))
    assert len(cycles) == len(lane["aicore_tasks"])
    assert micros == pytest.approx([count / lane["metadata"]["clock_freq_hz"] * 1e6 for count in cycles])
    for task in read_pmu(found.pmu):
        assert ("CUBE" in task.cycles) <= bool(task.cube)
        assert ("VECTOR" in task.cycles) <= (not task.cube)


def test_counters_of_a_run_are_those_of_a_replay(runs, tmp_path):
    scene = str(EXAMPLES / "mixed_example" / "scene.py")
    chosen = ["--case", "Many", "--func-id", "0,1,2"]
    assert main(["replay", scene, *chosen, "--no-insight", "-o", str(tmp_path / "mix")]) == 0

    def shares(path):
        """Of cube and of vector cores, the mean share of the time that each pipe is busy."""
        found = {
            kind: [task.cycles for task in read_pmu(path) if bool(task.cube) == kind]
            for kind in (True, False)
        }
        return {
            (kind, name): sum(each[name] for each in rows) / sum(each["total"] for each in rows)
            for kind, rows in found.items()
            for name in rows[0]
        }

    simulated, alone = (
        shares(folder / "pmu.csv") for folder in (runs / "mixed_example" / "dfx_outputs", tmp_path / "mix")
    )
    assert alone[True, "SCALAR"] > 0.3  # the prologue is counted, as a device does
    assert simulated == pytest.approx(alone, abs=0.005)


def test_an_edge_that_only_keeps_memory_alive_orders_no_tasks(tmp_path):
    edges = [
        {"pred": "1", "succ": "2", "flags": ["wait", "retain"]},
        {"pred": "1", "succ": "3", "flags": ["retain"]},
        {"pred": "2", "succ": "3"},
    ]
    path = tmp_path / "deps.json"
    path.write_text(json.dumps({"tasks": [], "edges": edges}))
    assert read_deps(path).edges == ((1, 2), (2, 3))


@pytest.fixture(scope="module")
def tools(simpler_checkout, tmp_path_factory):
    """Simpler's tools without its compiled runtime: a package of that name whose `tools` are the checkout's."""
    root = tmp_path_factory.mktemp("tools")
    (root / "simpler_setup").mkdir()
    (root / "simpler_setup" / "__init__.py").touch()
    (root / "simpler_setup" / "tools").symlink_to(simpler_checkout / "simpler_setup" / "tools")

    def start(*words, code=""):
        command = [sys.executable, "-c", code] if code else [sys.executable, "-m", *words]
        environment = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warn" not in (done.stdout + done.stderr).lower()
        return done.stdout

    return start


@pytest.mark.upstream
@pytest.mark.parametrize("scene", SCENES)
def test_simplers_own_tools_take_a_simulated_run(runs, tools, scene):
    folder, lane, deps, _ = files(runs, scene)
    records, graph = str(folder / "chip_swimlane_records.json"), str(folder / "deps.json")
    said = tools("simpler_setup.tools.swimlane_converter", records)
    assert "Total Test Time:" in said
    merged = json.loads((folder / "merged_swimlane.json").read_text())["traceEvents"]
    bars = [event for event in merged if event["ph"] == "X" and event["pid"] == 4]
    assert len(bars) >= len(lane["aicore_tasks"])
    assert f"{len(deps['tasks'])} tasks" in tools("simpler_setup.tools.deps_viewer", graph)
    said = tools(
        "simpler_setup.tools.sched_overhead_analysis", "--chip-swimlane-records-json", records, "--deps-json", graph
    )  # fmt: skip
    assert f"FINs observed (Complete phase): {len(lane['aicore_tasks'])}" in said
    tools("simpler_setup.tools.critical_path", str(folder))
    for name in ("CPM_static.json", "CPM_observed.json"):
        assert json.loads((folder / name).read_text())["traceEvents"]


@pytest.mark.upstream
@pytest.mark.parametrize("scene", SCENES)
def test_their_critical_path_is_ours(runs, tools, scene):
    folder, lane, _, _ = files(runs, scene)
    code = (
        "import json; from pathlib import Path; from simpler_setup.tools import critical_path as c\n"
        f"root = Path({str(folder)!r}); g = c.build_graph(root, root, 2); r = c.analyze_rank(g, 2)\n"
        "print(json.dumps([r.cpm_len, r.cpm_path, [s.task for s in r.segments], r.makespan]))"
    )
    length, path, walked, makespan = json.loads(tools(code=code))
    summary = json.loads((runs / scene / "run.json").read_text())
    stamps = [row[3:5] for row in lane["aicore_tasks"]]
    assert makespan == max(end for _, end in stamps) - min(start for start, _ in stamps)
    # task by task, and cycle by cycle
    assert [int(task) for task in path] == [int(task, 16) for task in summary["longest_chain_tasks"]]
    assert length == summary["longest_chain"]
    # what was observed ends with the same task; ours goes through the schedulers, theirs by data and cores alone
    rows = [line.split(",") for line in (runs / scene / "tasks.csv").read_text().splitlines()[1:]]
    ours = {str(int(row[1], 16)): int(row[7]) for row in rows if row[-1] == "1"}
    assert max(ours, key=ours.get) == walked[-1]


def test_every_task_of_the_timeline_says_how_to_look_inside(runs):
    """One trace for the whole run: a task names the command that opens its kernel."""
    events = json.loads((runs / "paged_attention" / "timeline.json").read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    tasks = [
        event for event in events if event["ph"] == "X" and lanes[event["tid"]].startswith(("AIC", "AIV"))
    ]
    assert tasks
    for event in tasks:
        words = event["args"]["replay"].split()
        assert words[:2] == ["insight-trace", "replay"]
        assert words[words.index("--task-id") + 1] == event["args"]["id"]
