"""What a person sees first in MindStudio Insight: their kernel, the core that ran it, lanes that have numbers."""

import json
from collections import defaultdict

import numpy as np
import pytest
from insight_made_up import small_trace, trace_of
from insight_replays import REPLAYS
from msgspec.structs import replace

from insight_trace.insight import open_trace, validate, write_insight_directory
from insight_trace.insight.container import BlockType
from insight_trace.insight.prepared import Extras, Prepared
from insight_trace.insight.source_page import opening_on
from insight_trace.model import Pipe
from insight_trace.recording.store import open_recording
from insight_trace.replay import named_traces
from insight_trace.replay.named_traces import write_named_traces
from insight_trace.trace.stats import stats

everywhere = pytest.mark.parametrize("name", REPLAYS)


@everywhere
def test_source_opens_on_a_kernel_and_a_core_that_ran_it(replayed, name):
    run = replayed(name)
    kernels = {kernel["source"] for kernel in open_recording(run.directory.parent).kernels}
    opened = min(run.sources())
    assert any(opened.endswith(source) or source.endswith(opened) for source in kernels)
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


def test_what_the_checker_found_is_a_mark_over_each_instruction_it_names(replayed, tmp_path):
    recording = open_recording(replayed("mix").directory.parent)
    stream = recording.instructions
    row = int(np.flatnonzero(stream.pipe == Pipe.VECTOR)[1])
    place = {"file": "/src/add.cpp", "line": 7, "instruction": "VADD", "pipe": "V", "core": "", "row": row}
    finding = {
        "category": "race",
        "severity": "error",
        "message": 'a "race" {of} two',
        "mend": "a flag",
        "count": 3,
    }
    found = replace(recording, findings=({**finding, "places": [place, {**place, "row": -1}]},))
    directory = write_insight_directory(recording.trace, tmp_path, recording=found)
    assert validate(directory) == []
    events = json.loads((directory / "trace.json").read_text())["traceEvents"]
    (mark,) = (event for event in events if event["ph"] == "X" and event["tid"] == "USERMARK")
    assert mark["name"] == "race"
    assert mark["pid"] == stream.cores[stream.core[row]]
    assert mark["ts"] == float(np.float32(stream.start[row] / recording.trace.mhz))
    assert mark["args"]["what"] == finding["message"]
    assert mark["args"]["to mend it"] == "a flag"
    assert mark["args"]["code"].startswith("/src/add.cpp:7")
    # and the timeline without the recording still opens
    read = open_trace(directory / "visualize_data.bin")
    assert len(read.instructions) == len(stream) + 1


def test_a_run_that_is_too_large_for_a_perfetto_file_says_so(replayed, tmp_path, monkeypatch):
    simulator = replayed("mix").directory
    assert write_named_traces(simulator, tmp_path, "small") == ()
    monkeypatch.setattr(named_traces, "MOST_INSTRUCTIONS", 10)
    (told,) = write_named_traces(simulator, tmp_path, "large")
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
