"""What a person sees first in MindStudio Insight: their kernel, the core that ran it, lanes that have numbers."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from insight_made_up import small_trace, trace_of
from insight_replays import EXAMPLES, REPLAYS, Replayed
from msgspec.structs import replace

from insight_trace.__main__ import main
from insight_trace.insight import added_events, open_trace, validate, write_insight_directory
from insight_trace.insight.container import BlockType
from insight_trace.insight.lanes import ADDED_LANES
from insight_trace.insight.prepared import Extras, Prepared
from insight_trace.insight.source_page import opening_on
from insight_trace.model import Pipe
from insight_trace.recording.store import open_recording
from insight_trace.replay import workspace
from insight_trace.replay.workspace import write_named_traces
from insight_trace.trace.cache_lines import cache_lines
from insight_trace.trace.stats import stats

everywhere = pytest.mark.parametrize("name", REPLAYS)


@everywhere
def test_source_opens_on_a_kernel_and_a_core_that_ran_it(replayed, name):
    run = replayed(name)
    recording = open_recording(run.directory.parent)
    kernels = {Path(kernel["source"]).name for kernel in recording.kernels}
    opened = min(run.sources())
    assert Path(opened).name in kernels
    # of a mix it is the member whose core ends last
    columns = recording.trace.instructions
    last = columns.core == columns.core[int(np.argmax(columns.end))]
    ran = {
        frame.rsplit(":", 1)[0]
        for row in np.unique(columns.stack[last])
        for frame in columns.stacks[row].split("\n")
    }
    assert Path(opened).name in {Path(file).name for file in ran}
    assert not any("insight_trace/simulate" in path or "insight_entry" in path for path in run.sources())
    files = {file["Source"]: file["Lines"] for file in run.block(BlockType.API_FILE)["Files"]}
    assert sum(line["Instructions Executed"][0] for line in files[opened]) > 0
    assert run.block(BlockType.API_FILE)["Cores"] == run.block(BlockType.API_INSTR)["Cores"]


@everywhere
def test_no_instruction_is_attributed_to_a_header_of_ours(replayed, name):
    for row in replayed(name).block(BlockType.API_INSTR)["Instructions"]:
        assert "insight_trace/simulate" not in row["AscendC Inner Code"]


def test_cores_are_listed_by_number_behind_the_one_that_opens(replayed):
    cores = replayed("blocks").block(BlockType.API_INSTR)["Cores"]
    assert cores == [f"core{block}.veccore0" for block in range(48)]


def test_a_header_that_comes_first_by_name_leaves_its_place_to_the_kernel():
    trace = small_trace()
    same, core = opening_on(trace, ["/src/kernel.cpp"])
    assert same is trace
    assert core == "core0.veccore0"
    renamed, _ = opening_on(trace, ["/src/tile.hpp"])
    assert sorted(renamed.sources) == ["./tile.hpp", "/src/kernel.cpp"]
    assert renamed.instructions.stacks[1] == "/src/kernel.cpp:12\n./tile.hpp:9"


@everywhere
def test_counters_begin_after_zero_and_end_with_the_run(replayed, name):
    directory = replayed(name).directory
    events = json.loads((directory / "trace.json").read_bytes())["traceEvents"]
    trace = open_trace(directory)
    total = float(trace.instructions.end.max()) / trace.mhz
    series = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            series[event["name"]].append((event["ts"], event["args"]["throughput(MB/s)"]))
    assert series
    for points in series.values():
        times = np.array([ts for ts, _ in points])
        rates = np.array([rate for _, rate in points])
        assert times[0] == 0.001
        assert times[-1] == pytest.approx(total, abs=1e-5)
        assert (np.diff(times) > 0).all()
        assert rates[-1] == 0
    read = np.array([rate for _, rate in series["GM_TO_TOTAL"]])
    lasting = np.diff(np.r_[0.0, times[1:]])
    moved = trace.instructions.process_bytes[trace.instructions.pipe == Pipe.MTE2]
    assert (read[:-1] * lasting).sum() * 1.048576 == pytest.approx(moved[moved > 0].sum(), rel=1e-4)


@everywhere
def test_stalls_are_time_in_which_a_pipe_stood_still(replayed, name):
    run = replayed(name)
    table = run.block(BlockType.API_INSTR)
    figures = stats(open_trace(run.directory))
    stood = defaultdict(int)
    for row in table["Instructions"]:
        for core, cycles in zip(table["Cores"], row["RealStallCycles"], strict=True):
            pipe = "VECTOR" if row["Pipe"].startswith(("RVEC", "PUSHQ")) else row["Pipe"]
            stood[core, pipe.replace("FIXP", "FIXPIPE")] += cycles
    assert any(stood.values())
    ends = {core.core: core.end for core in figures.cores}
    for pipe in figures.pipes:
        assert stood[pipe.core, pipe.pipe] <= ends[pipe.core] - pipe.busy, pipe
        if pipe.pipe not in ("PUSHQ", "RVECEX", "RVECLD", "RVECST"):
            assert stood[pipe.core, pipe.pipe] >= pipe.waiting


def test_a_pipe_stands_still_for_what_was_issued_and_could_not_start():
    rows = [
        {
            "name": "VADD",
            "pipe": int(Pipe.VECTOR),
            "issue": 0,
            "start": 10,
            "end": 30,
        },  # 10: nothing before it
        {
            "name": "VADD",
            "pipe": int(Pipe.VECTOR),
            "issue": 2,
            "start": 30,
            "end": 40,
        },  # 0: the pipe was busy
        {
            "name": "WAIT_FLAG",
            "pipe": int(Pipe.VECTOR),
            "issue": 3,
            "start": 40,
            "end": 90,
        },  # 50: it holds it
        {"name": "VADD", "pipe": int(Pipe.VECTOR), "issue": 95, "start": 96, "end": 99},  # 1: late to come
    ]
    prepared = Prepared(trace_of(rows).instructions, Extras(), 1850.0)
    assert prepared.stood_still.tolist() == [10, 0, 50, 1]


@everywhere
def test_registers_are_no_column_where_nobody_counted_them(replayed, name):
    run = replayed(name)
    for type_, kinds, lines in (
        (BlockType.API_INSTR, "Instructions Dtype", "Instructions"),
        (BlockType.API_FILE, "Files Dtype", "Lines"),
    ):
        assert "GPR Count" not in run.block(type_)[kinds][lines]
    assert "GPR Count" not in run.block(BlockType.API_INSTR)["Instructions"][0]


PALETTE = [
    "deepBlue",
    "coralRed",
    "tealGreen",
    "aquaBlue",
    "raspberryPink",
    "vividBlue",
    "vividRed",
    "royalPurple",
    "skyBlue",
    "sunsetOrange",
    "amethystPurple",
    "limeGreen",
]


def insight_colour(name):
    """The colour of a slice in Insight (its timeline's colorUtils: a sum over characters, modulo the palette)."""
    return PALETTE[sum(31 * ord(letter) for letter in name) % len(PALETTE)]


def test_severities_have_colours_that_mean_what_they_say():
    colours = {severity: insight_colour(name) for severity, name in added_events._SEVERITIES.items()}
    assert colours == {"error": "coralRed", "warning": "sunsetOrange", "note": "skyBlue"}
    assert insight_colour("terrible") == "limeGreen"  # why that name is not used


def events_of(run):
    return json.loads((run.directory / "trace.json").read_bytes())["traceEvents"]


def test_a_block_has_one_number_in_the_timeline_and_in_core_occupancy(replayed):
    run = replayed("blocks")
    table = run.block(BlockType.OCCUPANCY)
    assert table["op_type"] != "vector"  # Insight would draw two blocks as one core
    loads = [(load["core_id"], core) for load in table["op_detail"] for core in load["core_detail"]]
    drawn = {f"core{number}.veccore{core['subcore_id']}" for number, core in loads}
    assert drawn == {event["pid"] for event in events_of(run) if event["ph"] == "X"}


@everywhere
def test_no_counter_is_zero_throughout(replayed, name):
    series = defaultdict(list)
    for event in events_of(replayed(name)):
        if event["ph"] == "C":
            series[event["name"]].append(event["args"]["throughput(MB/s)"])
    assert series
    assert all(any(values) for values in series.values())


@everywhere
def test_every_slice_of_an_instruction_has_its_exact_cycles(replayed, name):
    run = replayed(name)
    columns = open_recording(run.directory.parent).instructions
    slices = [
        event for event in events_of(run)
        if event["ph"] in "XB" and event["tid"] not in (*ADDED_LANES, "USERMARK", "CACHEMISS")
    ]  # fmt: skip
    said = sorted((event["pid"], event["args"]["start_cycle"], event["args"]["cycles"]) for event in slices)
    cores = [columns.cores[core] for core in columns.core.tolist()]
    marks = columns.pipe == Pipe.USERMARK
    kept = zip(
        cores, columns.start.tolist(), (columns.end - columns.start).tolist(), marks.tolist(), strict=True
    )
    assert said == sorted((core, start, cycles) for core, start, cycles, mark in kept if not mark)
    waited = [event["args"] for event in slices if "waited_for" in event["args"]]
    assert waited
    assert all(args["waited_cycles"] > 0 and args["waited_for"] for args in waited)
    moving = [event["args"] for event in slices if "process_bytes" in event["args"]]
    assert all(
        args["bytes_per_cycle"]
        == pytest.approx(int(args["process_bytes"]) / max(1, args["cycles"]), rel=1e-3)
        for args in moving
    )


@everywhere
def test_tile_ops_and_the_critical_path_have_lanes_above_the_pipes(replayed, name):
    run = replayed(name)
    events = events_of(run)
    trace = open_trace(run.directory)
    order = {
        event["tid"]: event["args"]["sort_index"] for event in events if event["name"] == "thread_sort_index"
    }
    assert sorted(order, key=order.get)[:3] == ["CRITICAL PATH", "TILE OPS", "SCALAR"]
    path = sorted(
        (e["ts"], e["args"]["cycles"]) for e in events if e["ph"] == "X" and e["tid"] == "CRITICAL PATH"
    )
    assert sum(cycles for _, cycles in path) == int(
        trace.instructions.end.max() - trace.instructions.start.min()
    )
    ops = [event for event in events if event["ph"] == "X" and event["tid"] == "TILE OPS"]
    assert {event["name"] for event in ops} >= {"TLOAD", "TSTORE"}
    flows = [event for event in events if event["ph"] in "st" and event["cat"] == "tile"]
    assert flows
    assert all(event["tid"] == "TILE OPS" for event in flows)
    # what reads the directory without its recording finds instructions only
    assert len(open_trace(run.bin).instructions) == len(trace.instructions)


@everywhere
def test_scalar_loads_and_the_lines_that_they_fetch_have_lanes_of_their_own(replayed, name):
    run = replayed(name)
    columns = open_recording(run.directory.parent).instructions
    loads = np.array([each.startswith(("LD_", "ST_")) for each in columns.names])[columns.name]
    slices = [event for event in events_of(run) if event["ph"] == "X"]
    drawn = [event["args"]["start_cycle"] for event in slices if event["tid"] == "SCALARLDST"]
    assert sorted(drawn) == sorted(columns.start[loads].tolist())
    assert not any(event["name"].startswith(("LD_", "ST_")) for event in slices if event["tid"] == "SCALAR")
    misses = [event for event in slices if event["tid"] == "CACHEMISS"]
    assert misses  # every kernel fetches its arguments
    assert {event["args"]["start_cycle"] for event in misses} <= set(drawn)
    assert all(event["name"].startswith("0x") and event["args"]["cycles"] == 1 for event in misses)


def test_what_to_import_ends_in_the_kernel_and_its_dispatch(replayed):
    """Insight's Data Manager shows the first letters of a path and about sixteen of its last."""
    run = replayed("mix")
    workspace = run.directory.parents[2]
    (file,) = workspace.glob("*.bin")
    assert file.name == "MATMUL_d0.bin"
    assert file.samefile(run.bin)
    assert not file.is_symlink()  # which Insight refuses
    assert validate(file) == []


def test_flags_between_cores_are_arrows_of_their_own(replayed, tmp_path):
    recording = open_recording(replayed("mix").directory.parent)
    columns = recording.trace.instructions
    cube, vector = (int(np.flatnonzero(columns.core == core)[-1]) for core in (0, 1))
    partner = columns.partner.copy()
    partner[vector] = cube
    names = [
        name if name != columns.names[columns.name[vector]] else "WAIT_FLAG_DEV" for name in columns.names
    ]
    trace = replace(recording.trace, instructions=replace(columns, partner=partner, names=tuple(names)))
    directory = write_insight_directory(trace, tmp_path, recording=recording)
    assert validate(directory) == []
    events = json.loads((directory / "trace.json").read_bytes())["traceEvents"]
    start, end = (event for event in events if event.get("cat") == "cross-core")
    assert (start["ph"], end["ph"]) == ("s", "t")
    assert (start["pid"], end["pid"]) == (columns.cores[0], columns.cores[1])


def _timelines_that_insight_takes(folder):
    """Of a folder that is imported (its server's ProjectParserJson.cpp: FindTraceFiles)."""
    if (folder / "mindstudio_profiler_output").is_dir():
        folder /= "mindstudio_profiler_output"
    found = [path for path in folder.iterdir() if path.name == "trace.json"]
    below = (_timelines_that_insight_takes(path) for path in sorted(folder.iterdir()) if path.is_dir())
    return sum(below, found)


@pytest.mark.parametrize("levels", range(4), ids=["simulator", "OPPROF", "insight_export", "workspace"])
def test_of_a_folder_insight_draws_every_instruction_once(replayed, levels):
    directory = replayed("mix").directory
    imported = [directory, *directory.parents][levels]
    (taken,) = _timelines_that_insight_takes(imported)
    assert taken.samefile(directory / "trace.json")
    # it refuses a folder with a link anywhere in it, and what is not the user's or is writable by others
    for path in imported.rglob("*"):
        assert not path.is_symlink()
        assert not path.stat().st_mode & 0o002
    cores = sorted(directory.glob("core*/trace.json"))
    assert len(cores) == 3
    assert all(json.loads(path.read_bytes())["schemaVersion"] == 1 for path in cores)


def test_paths_inside_a_core_have_a_share_of_their_ceiling(replayed):
    found = {}
    for name in ("mix", "single"):
        for graph in replayed(name).block(BlockType.MEMORY_GRAPH)["core_memory_map"]:
            found |= {unit["memory_path"]: unit["peak_ratio"] for unit in graph["memory_unit"]}
    for arrow in (4, 5, 14, 15):  # L1 to L0A and L0B, UB to the vector unit and back
        assert 0 < found[arrow] <= 100


def test_the_roofline_has_a_line_for_every_mover(replayed):
    charts = {
        chart["title"]: chart for chart in replayed("mix").block(BlockType.ROOFLINE)["multiple_rooflines"]
    }
    cube = {roof["bw_name"] for roof in charts["Pipeline(Cube)"]["rooflines"]}
    assert cube == {"MTE1", "MTE2", "FIXP"}
    assert {roof["bw_name"] for roof in charts["Pipeline(Vector)"]["rooflines"]} == {"MTE2", "MTE3"}


@everywhere
def test_a_pipe_has_the_vendors_name_everywhere(replayed, name):
    assert b"FIXPIPE" not in replayed(name).bin.read_bytes()


# of A2 and A3 (msopprof compute_load_calculator.cpp), by which its compare mode lines a board's file up with ours
_VENDORS_ROWS = {
    "cube0": {"Cube All Active", "Cube FP", "Cube Wait"},
    "vector0": {"Vector All Active", "Vector FP32", "Vector Wait"},
    "vector1": {"Vector All Active", "Vector FP32", "Vector Wait"},
}


def test_compute_rows_have_the_vendors_names_and_a_pipe_has_one_row(replayed):
    table = replayed("mix").block(BlockType.COMPUTE_ROWS)["subblock_detail"]
    rows = defaultdict(list)
    for row in table:
        rows[row["block_type"]].append(row["name"])
    assert set(rows) == set(_VENDORS_ROWS)
    for core, names in rows.items():
        assert set(names) >= _VENDORS_ROWS[core]
        assert len(set(names)) == len(names)


@everywhere
def test_reasons_of_stalls_say_that_they_are_cycles(replayed, name):
    """Insight's column is called Stall Count."""
    reasons = replayed(name).block(BlockType.STALL_REASONS)["top_stall_reason_table"]
    assert reasons
    assert all(reason.endswith("(cycles)") for reason in reasons)


def test_a_pypto_kernel_opens_on_the_users_python(replayed):
    run = replayed("pypto_run Default 1")
    opened = min(run.sources())
    assert opened == "./model.py"
    files = {file["Source"]: file["Lines"] for file in run.block(BlockType.API_FILE)["Files"]}
    assert sum(line["Instructions Executed"][0] for line in files[opened]) > 0
    assert any("kernels/aiv" in path for path in run.sources())  # and the generated text can be chosen


def test_a_cache_page_that_is_left_out_is_named_above_the_memory_tables(tmp_path):
    scene = EXAMPLES / "vector_chain" / "scene.py"
    assert main(["replay", str(scene), "--func-id", "0", "--l2", "warm", "-o", str(tmp_path / "warm")]) == 0
    (directory,) = tmp_path.glob("warm/insight_export/OPPROF_*/simulator")
    run = Replayed(directory)
    assert run.blocks(BlockType.CACHE_LINES) == []
    for table in run.block(BlockType.MEMORY_TABLE)["table_per_block"]:
        assert any(text.startswith("There is no Cache page: L2 was warm") for text in table["advice"])


def test_a_replay_names_one_file_to_import_and_ends_with_its_directory(tmp_path, capsys):
    scene = EXAMPLES / "vector_chain" / "scene.py"
    assert main(["replay", str(scene), "--func-id", "0", "-o", str(tmp_path / "replay")]) == 0
    said = capsys.readouterr().out.splitlines()
    (imported,) = (line for line in said if "import " in line)
    (file,) = (tmp_path / "replay").glob("*.bin")
    assert str(file) in imported
    assert said[-1].split()[-1].endswith("/simulator/")


def test_a_run_that_touches_more_lines_than_the_cache_page_has_cells_is_folded_by_set():
    from insight_trace import simulate
    from insight_trace.model import CoreType, Kernel

    values = {slot: np.ones(1 << 20, np.float32) for slot in range(3)}
    kernel = Kernel("vector_add", EXAMPLES / "kernels" / "vector_add.cpp", CoreType.AIV)
    done = simulate(kernel, values, timing_only=True)
    page, why_not = cache_lines(done.instructions)
    assert why_not == ""
    assert len(page.records) == 16384
    asked = sum(cell.hit.value[0] + cell.miss.value[0] for cell in page.records)
    assert asked * 128 == 3 * 4 << 20


def test_what_the_checker_found_is_a_mark_over_each_instruction_it_names(replayed, tmp_path):
    recording = open_recording(replayed("mix").directory.parent)
    stream = recording.instructions
    row = int(np.flatnonzero(stream.pipe == Pipe.VECTOR)[1])
    place = {"file": "/src/add.cpp", "line": 7, "instruction": "VADD", "pipe": "V", "core": "", "row": row}
    finding = {
        "category": "race",
        "severity": "error",
        "message": 'a "race" {of} two',
        "fix": "a flag",
        "count": 3,
    }
    found = replace(recording, findings=({**finding, "places": [place, {**place, "row": -1}]},))
    directory = write_insight_directory(recording.trace, tmp_path, recording=found)
    assert validate(directory) == []
    events = json.loads((directory / "trace.json").read_text())["traceEvents"]
    (mark,) = (event for event in events if event["ph"] == "X" and event["tid"] == "USERMARK")
    assert mark["name"] == "error: race"
    assert insight_colour(mark["cname"]) == "coralRed"
    assert mark["pid"] == stream.cores[stream.core[row]]
    assert mark["ts"] == float(np.float32(stream.start[row] / recording.trace.mhz))
    first, second, *_ = sorted(mark["args"])  # Insight sorts them
    assert mark["args"][first] == finding["message"]
    assert mark["args"][second] == "a flag"
    assert mark["args"]["code"].startswith("/src/add.cpp:7")
    # and the timeline without the recording still opens
    read = open_trace(directory / "visualize_data.bin")
    assert len(read.instructions) == len(stream) + 1


def test_in_perfetto_each_severity_has_a_lane_between_tile_ops_and_the_pipes(replayed, tmp_path):
    """It takes the colours of slices from their names."""
    simulator = replayed("mix").directory
    recording = open_recording(simulator.parent)
    row = int(np.flatnonzero(recording.instructions.pipe == Pipe.VECTOR)[1])
    finding = {"category": "race", "message": "two transfers", "fix": "a flag", "places": [{"row": row}]}
    found = tuple({**finding, "severity": severity} for severity in ("note", "error"))
    assert write_named_traces(replace(recording, findings=found), simulator, tmp_path, "mix") == ()
    events = json.loads((tmp_path / "mix_trace_perfetto.json").read_text())["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    named = [lanes[number] for number in sorted(lanes) if lanes[number].startswith("vector 0")]
    at = named.index("vector 0 errors")
    assert named[at + 1] == "vector 0 notes"
    assert named[at - 1].startswith("vector 0 tile ops")
    assert named[at + 2].startswith("vector 0 MTE2")
    (mark,) = (event for event in events if event["ph"] == "X" and event["name"] == "error: race")
    assert lanes[mark["tid"]] == "vector 0 errors"
    assert mark["args"]["1 what"] == "two transfers"


def test_a_run_that_is_too_large_for_a_perfetto_file_says_so(replayed, tmp_path, monkeypatch):
    simulator = replayed("mix").directory
    recording = open_recording(simulator.parent)
    assert write_named_traces(recording, simulator, tmp_path, "small") == ()
    monkeypatch.setattr(workspace, "MOST_INSTRUCTIONS", 10)
    (told,) = write_named_traces(recording, simulator, tmp_path, "large")
    assert "clean --format perfetto" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "large_trace.json",
        "small_memory_info.json",
        "small_trace.json",
        "small_trace_perfetto.json",
    ]


def test_the_same_run_gives_the_same_bytes(replayed, tmp_path):
    recording = open_recording(replayed("mix").directory.parent)
    made = [
        write_insight_directory(
            recording.trace, tmp_path / part, name="A" * 16, timestamp="20260101000000", recording=recording
        )
        for part in ("one", "two")
    ]
    one, two = ((each / "visualize_data.bin").read_bytes() for each in made)
    assert one == two
