"""What is written is what MindStudio Insight reads, and reading it back gives the same columns."""

import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from insight_made_up import as_drawn, random_traces, rows_of, small_trace, trace_of
from msgspec.structs import replace
from tests.synthetic_recording import mix_recording

import insight_trace
from insight_trace.errors import InputError, JobError, RequestError
from insight_trace.insight import (
    Extras,
    LargeTraceWarning,
    open_trace,
    validate,
    validate_directory,
    write_insight_directory,
    writer,
)
from insight_trace.insight.container import BlockType, blocks_of
from insight_trace.recording import stream

NAME = "ABCDEFGHIJKLMNOP"
TIME = "20260102030405"


@pytest.fixture
def directory(tmp_path):
    return write_insight_directory(small_trace(), tmp_path, name=NAME, timestamp=TIME)


def _block(directory, type_):
    path = directory / "visualize_data.bin"
    block = next(each for each in blocks_of(path) if each.type == type_)
    with path.open("rb") as file:
        return json.loads(block.read(file))


def test_the_directory_has_the_vendors_names_and_files(directory, tmp_path):
    assert directory == tmp_path / f"OPPROF_{TIME}_{NAME}" / "simulator"
    files = sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())
    stamp = f"{TIME}000"
    assert files == [
        "core0.cubecore0/core0.cubecore0_code_exe_" + stamp + ".csv",
        "core0.cubecore0/core0.cubecore0_instr_exe_" + stamp + ".csv",
        "core0.cubecore0/trace.json",
        "core0.veccore0/core0.veccore0_code_exe_" + stamp + ".csv",
        "core0.veccore0/core0.veccore0_instr_exe_" + stamp + ".csv",
        "core0.veccore0/trace.json",
        "core0.veccore1/core0.veccore1_code_exe_" + stamp + ".csv",
        "core0.veccore1/core0.veccore1_instr_exe_" + stamp + ".csv",
        "core0.veccore1/trace.json",
        "trace.json",
        "visualize_data.bin",
    ]
    assert all(path.stat().st_mode & 0o777 == 0o640 for path in directory.rglob("*") if path.is_file())


def test_every_rule_holds_for_what_is_written(directory):
    assert validate(directory) == []
    assert validate(directory.parent) == []
    assert validate(directory.parent.parent) == []


def test_the_same_trace_gives_the_same_bytes(directory, tmp_path):
    again = write_insight_directory(small_trace(), tmp_path / "again", name=NAME, timestamp=TIME)
    for path in directory.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(directory)).read_bytes()


def test_blocks_come_in_the_natural_order_and_trace_json_is_the_trace_block(directory):
    blocks = blocks_of(directory / "visualize_data.bin")
    assert [block.type for block in blocks] == [2, 1, 1, 3, 4]
    assert [block.path for block in blocks if block.type == 1] == ["/src/kernel.cpp", "/src/tile.hpp"]
    with (directory / "visualize_data.bin").open("rb") as file:
        assert blocks[0].read(file) == (directory / "trace.json").read_bytes()


def test_a_pair_of_flags_is_four_events_and_an_arrow(directory):
    events = json.loads((directory / "trace.json").read_text())["traceEvents"]
    pair = [each for each in events if each.get("id") == "core0.veccore0_0"]
    assert [(each["ph"], each["name"]) for each in pair] == [
        ("B", "SET_FLAG"),
        ("E", "SET_FLAG"),
        ("B", "WAIT_FLAG"),
        ("E", "WAIT_FLAG"),
        ("s", "flow"),
        ("t", "flow"),
    ]
    assert pair[4]["cat"] == "MTE2ToVECTOR"
    assert pair[0]["ts"] == float(np.float32(300 / 1850))


def test_a_barrier_is_drawn_as_its_last_cycle(directory):
    events = json.loads((directory / "trace.json").read_text())["traceEvents"]
    barrier = next(each for each in events if each["name"] == "BAR")
    assert (barrier["ts"], barrier["dur"]) == (float(np.float32(330 / 1850)), float(np.float32(1 / 1850)))


def test_tables_hold_cycles_bytes_conflicts_utilisation_and_stalls(directory):
    table = _block(directory, BlockType.API_INSTR)
    assert table["Cores"] == ["core0.cubecore0", "core0.veccore0", "core0.veccore1"]
    rows = {row["Address"]: row for row in table["Instructions"]}
    move = rows["0x1004"]
    assert move["Cycles"] == [0, 288, 288]
    assert move["Process Bytes"] == [-1, 4096, 4096]
    assert move["RealStallCycles"] == [0, 1, 1]
    assert move["AscendC Inner Code"] == "/src/kernel.cpp:12"
    add = rows["0x1010"]
    assert add["Vector Utilization Percentage"] == [-1.0, 50.0, 50.0]
    assert (add["UB Read Conflict"], add["UB Write Conflict"]) == ([-1, 1, 1], [-1, 0, 0])
    assert rows["0x1008"]["Source"] == "SET_FLAG VEC ID:0"
    assert rows["0x100c"]["Source"] == "WAIT_FLAG MTE2 ID:0"
    assert rows["0x1000"]["Source"] == "MOV_XD_IMM XD:X29,IMM"


def test_an_instruction_counts_for_every_frame_of_its_stack(directory):
    table = _block(directory, BlockType.API_FILE)
    kernel, tile = table["Files"]
    assert (kernel["Source"], tile["Source"]) == ("/src/kernel.cpp", "/src/tile.hpp")
    assert [line["Line"] for line in kernel["Lines"]] == [12, 13, 9]  # by text, as the vendor writes them
    assert tile["Lines"][0]["Cycles"] == [0, 288, 288]
    assert kernel["Lines"][1]["Address Range"] == [["0x00001008", "0x0000100c"]]


def test_without_sources_there_is_neither_text_nor_line_table(tmp_path):
    directory = write_insight_directory(small_trace(), tmp_path, include_source=False)
    assert [block.type for block in blocks_of(directory / "visualize_data.bin")] == [2, 4]
    assert validate(directory) == []
    assert "/src/kernel.cpp:12" in next(directory.glob("core0.veccore0/*_code_exe_*.csv")).read_text()


def test_reading_back_gives_what_was_written(directory):
    trace = small_trace()
    read = open_trace(directory)
    assert rows_of(read) == rows_of(trace)
    assert read.mhz == 1850.0
    assert read.sources == trace.sources
    assert read.counters[0].name == "GM_TO_UB"
    assert read.counters[0].megabytes_per_second.tolist() == [0.0, 12.5, 0.0]
    vadd = read.instructions.names.index("VADD")
    row = int(np.flatnonzero(read.instructions.name == vadd)[0])
    assert read.instructions.utilisation[row] == 50.0
    assert read.instructions.read_conflict[row] == 1


@given(random_traces())
def test_any_stream_of_instructions_comes_back_as_it_was_written(tmp_path_factory, trace):
    directory = write_insight_directory(trace, tmp_path_factory.mktemp("made"))
    assert validate_directory(directory) == []
    read = open_trace(directory, mhz=trace.mhz)
    assert rows_of(read) == rows_of(as_drawn(trace))
    assert rows_of(open_trace(directory / "trace.json", mhz=trace.mhz)) == rows_of(as_drawn(trace))
    for path, text in read.sources.items():
        assert trace.sources[path] == text


@pytest.mark.parametrize("mhz", [1850.0, 1800.0, 1650.0, 1224.0, 1000.0])
def test_the_clock_is_worked_out_when_it_is_not_given(tmp_path, mhz):
    directory = write_insight_directory(replace(small_trace(), mhz=mhz), tmp_path)
    assert open_trace(directory).mhz == mhz


@pytest.mark.parametrize("below", ["", "simulator", "simulator/trace.json", "simulator/visualize_data.bin"])
def test_a_trace_opens_from_every_path_that_a_user_may_name(directory, below):
    read = insight_trace.open_trace(directory.parent / below)
    assert rows_of(read) == rows_of(small_trace())


def test_a_cores_own_trace_opens_too(directory):
    read = open_trace(directory / "core0.veccore0" / "trace.json")
    assert read.instructions.cores == ("core0.veccore0",)
    names = {read.instructions.names[name] for name in read.instructions.name}
    assert names == {"MOV_XD_IMM", "MOV_OUT_TO_UB", "SET_FLAG", "WAIT_FLAG", "VADD", "BAR"}


def test_several_results_below_a_folder_are_named_instead_of_guessed(tmp_path):
    write_insight_directory(small_trace(), tmp_path, name="A" * 16)
    write_insight_directory(small_trace(), tmp_path, name="B" * 16)
    with pytest.raises(RequestError, match="2 results lie below"):
        open_trace(tmp_path)


def test_older_files_open_with_hex_addresses_stripped_names_and_counted_path_fields(directory):
    data = (directory / "visualize_data.bin").read_bytes()
    offset = data.index(b"/src/kernel.cpp\0") - 12
    size = int.from_bytes(data[offset : offset + 8], "little")
    data = data[:offset] + (size + 4096).to_bytes(8, "little") + data[offset + 8 :]
    offset = data.index(b"/src/tile.hpp\0") - 12
    size = int.from_bytes(data[offset : offset + 8], "little")
    data = data[:offset] + (size + 4096).to_bytes(8, "little") + data[offset + 8 :]
    old = directory.parent / "old.bin"
    old.write_bytes(data)
    assert open_trace(old).sources == small_trace().sources

    core = directory / "core0.veccore0"
    csv = next(core.glob("*_instr_exe_*.csv"))
    lines = csv.read_text().splitlines()
    lines[1:] = [re.sub(r"^([^,]*),(\d+),", lambda m: f"{m[1]},0x{int(m[2]):x},", line) for line in lines[1:]]
    (core / "core0.veccore0_instr_exe.csv").write_text("\n".join(lines) + "\n")
    csv.unlink()
    (directory / "visualize_data.bin").unlink()
    trace = (directory / "trace.json").read_text().replace('"schemaVersion":2', '"schemaVersion":1')
    (directory / "trace.json").write_text(trace)
    read = open_trace(directory)
    assert read.mhz == 1850.0
    assert len(read.instructions) == len(small_trace().instructions)


def test_a_lazy_detail_column_is_asked_for_many_rows_at_once(tmp_path):
    class Lazy:
        def __init__(self, details):
            self.details, self.asked = details, []

        def __len__(self):
            return len(self.details)

        def __getitem__(self, key):
            raise AssertionError("one at a time is slow")

        def texts(self, rows):
            self.asked.append(rows)
            return [self.details[row] for row in rows]

    trace = small_trace()
    lazy = Lazy(trace.instructions.detail)
    made = replace(trace, instructions=replace(trace.instructions, detail=lazy))
    directory = write_insight_directory(made, tmp_path / "lazy", name=NAME, timestamp=TIME)
    plain = write_insight_directory(trace, tmp_path / "plain", name=NAME, timestamp=TIME)
    assert (directory / "visualize_data.bin").read_bytes() == (plain / "visualize_data.bin").read_bytes()
    assert lazy.asked


def test_a_trace_is_split_by_block_or_by_time(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_ROWS_PER_PART", 5)
    parts = write_insight_directory(small_trace(), tmp_path / "time", split="time")
    found = sorted(parts.glob("part*/simulator"))
    assert len(found) == 3
    assert sum(len(open_trace(part).instructions) for part in found) == len(small_trace().instructions)
    blocks = write_insight_directory(small_trace(), tmp_path / "core", split="core")
    assert [path.parent.name for path in blocks.glob("*/simulator")] == ["core0"]
    assert all(validate(part) == [] for part in [*found, *blocks.glob("*/simulator")])


def test_a_second_process_writes_the_same_bytes(directory, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_ROWS_FOR_TWO", 1)
    again = write_insight_directory(small_trace(), tmp_path / "again", name=NAME, timestamp=TIME)
    for path in directory.rglob("*.json"):
        assert path.read_bytes() == (again / path.relative_to(directory)).read_bytes()


def test_a_second_process_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(writer, "_ROWS_FOR_TWO", 1)
    monkeypatch.setattr(writer, "core_timeline_pieces", fail)
    with pytest.raises((JobError, OSError)):
        write_insight_directory(small_trace(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_very_large_timeline_is_written_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "LARGE_TRACE", 1000)
    with pytest.warns(LargeTraceWarning, match="split"):
        write_insight_directory(small_trace(), tmp_path)


@pytest.mark.usefixtures("directory")
def test_an_existing_directory_is_replaced_only_when_asked(tmp_path):
    with pytest.raises(RequestError, match="exists already"):
        write_insight_directory(small_trace(), tmp_path, name=NAME, timestamp=TIME)
    write_insight_directory(small_trace(), tmp_path, name=NAME, timestamp=TIME, force=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cores": ("../x", "b", "c")}, "cannot be a core's name"),
        ({"start": np.full(13, 10**6)}, "row 0 lasts"),
        ({"names": ("A",)}, "names name"),
        ({"pipe": np.zeros(13, dtype=np.uint8)}, "a pipe that does not exist"),
        ({"detail": ["x"]}, "column detail has 1 rows"),
    ],
)
def test_columns_that_cannot_be_drawn_are_refused_before_anything_is_written(tmp_path, change, words):
    trace = small_trace()
    with pytest.raises(InputError, match=words):
        write_insight_directory(replace(trace, instructions=replace(trace.instructions, **change)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(writer, "instruction_table", fail)
    with pytest.raises(OSError, match="disk full"):
        write_insight_directory(small_trace(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_flag_serves_one_pair_even_if_two_waits_name_it(tmp_path):
    detail = "PIPE:MTE2,TRIGGERPIPE:VEC,FLAGID:0,"
    trace = trace_of(
        [
            {"name": "SET_FLAG", "start": 1, "end": 2, "detail": detail},
            {"name": "WAIT_FLAG", "start": 1, "end": 3, "detail": detail, "partner": 0},
            {"name": "WAIT_FLAG", "start": 3, "end": 4, "detail": detail, "partner": 0},
        ]
    )
    directory = write_insight_directory(trace, tmp_path)
    assert validate(directory) == []
    assert sorted(open_trace(directory).instructions.partner.tolist()).count(-1) == 2


def test_registers_of_the_logs_are_written_where_they_are_known(tmp_path):
    trace = small_trace()
    extras = Extras(gpr=np.arange(len(trace.instructions), dtype=np.int32))
    directory = write_insight_directory(trace, tmp_path, extras=extras)
    rows = {row["Address"]: row for row in _block(directory, BlockType.API_INSTR)["Instructions"]}
    assert rows["0x1004"]["GPR Count"] == [0, 1, 7]


def test_a_small_trace_is_written_and_checked_at_once(tmp_path):
    rows = [
        {"name": "VADD", "start": 3 * row, "end": 3 * row + 2, "pc": 0x1000 + 4 * (row % 40)}
        for row in range(200)
    ]
    trace = trace_of(rows)
    write_insight_directory(trace, tmp_path)
    fastest = 9.0
    for _ in range(10):
        begin = time.perf_counter()
        write_insight_directory(trace, tmp_path)
        fastest = min(fastest, time.perf_counter() - begin)
    assert fastest < 0.2, "an order of magnitude above what was measured"


def test_writing_needs_no_other_package_than_numpy_and_msgspec():
    heavy = "{'rich', 'jinja2', 'elftools', 'pandas', 'ml_dtypes'}"
    loaded = "{name.split('.')[0] for name in sys.modules}"
    code = f"import sys; import insight_trace.insight; print(sorted({loaded} & {heavy}))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@settings(max_examples=10)
@given(random_traces())
def test_split_parts_hold_every_instruction(tmp_path_factory, trace):
    folder = tmp_path_factory.mktemp("split")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = write_insight_directory(trace, folder, split="core")
    found = [open_trace(Path(part), mhz=trace.mhz) for part in parts.glob("*/simulator")]
    assert sum(len(each.instructions) for each in found) == len(trace.instructions)


def test_what_a_disk_cannot_hold_is_refused_with_the_numbers_before_anything_is_written(
    tmp_path, monkeypatch
):
    recording = mix_recording(2, 10, seed=1)
    free = os.statvfs(tmp_path)
    little = os.statvfs_result((*free[:4], 1, *free[5:]))
    monkeypatch.setattr(writer, "_ROWS_FOR_TWO", 1)
    monkeypatch.setattr(stream, "_ROWS_ON_DISK", 1)
    monkeypatch.setattr(os, "statvfs", lambda _: little)
    rows = len(recording.instructions)
    with pytest.raises(
        JobError, match=rf"the Insight directory of {rows:,} instructions takes about .* 0 MiB are free"
    ):
        write_insight_directory(recording.trace, tmp_path, recording=recording)
    monkeypatch.setattr(writer, "RECORDING_BYTES", 1 << 20)
    with pytest.raises(JobError, match=f"the recording of {rows:,} instructions takes about {rows:,} MiB"):
        writer.write_recording(recording, tmp_path)
    with pytest.raises(JobError, match="TMPDIR"):
        stream.require_column_room(1 << 30)
    assert list(tmp_path.iterdir()) == []
