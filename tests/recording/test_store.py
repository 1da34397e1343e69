"""A recording comes back as it was, and a damaged one is an error that says where."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import insight_trace
from insight_trace.errors import InputError, InsightTraceError, RequestError
from insight_trace.insight.throughput import throughput_counters
from insight_trace.insight.writer import write_insight_directory
from insight_trace.model import CoreType, Trace
from insight_trace.recording import empty, open_recording, save, take
from insight_trace.recording.store import HEADER
from insight_trace.recording.stream import COLUMNS, OPERAND_COLUMNS
from insight_trace.replay.pipeline import recording_of

_KERNEL = Path(__file__).parents[2] / "examples" / "vector_chain" / "kernels"


class Run(tuple):
    """A trace and its recording; short where a failing example is printed."""

    def __repr__(self):
        return "run"


@pytest.fixture(scope="module")
def run():
    """A small kernel of ours, its trace and its recording."""
    source = next(iter(sorted(_KERNEL.glob("*.cpp"))))
    arrays = {0: np.ones((128, 128), np.float32), 1: np.ones((128, 128), np.float32)}
    arrays |= {2: np.zeros((128, 128), np.float32)}
    simulation = insight_trace.simulate(source, arrays, core_type=CoreType.AIV)
    assert simulation.failure is None, simulation.failure
    trace = Trace(
        simulation.instructions,
        simulation.mhz,
        simulation.soc_version,
        {name: path.read_bytes() for name, path in simulation.sources.items()},
        throughput_counters(simulation.instructions, simulation.mhz),
    )
    return Run((trace, recording_of(simulation, trace, about={"case": "one"})))


def saved(run, folder):
    save(run[1], folder)
    return folder


def same_columns(left, right):
    for name in COLUMNS:
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    for name in (*OPERAND_COLUMNS, "rows", "geometries", "footprints", "tiles", "calls", "lists"):
        assert np.array_equal(getattr(left.operands, name), getattr(right.operands, name)), name
    assert (left.cores, left.names, left.stacks) == (right.cores, right.names, right.stacks)
    assert list(left.detail) == list(right.detail)


def test_a_recording_comes_back_as_it_was_saved(run, tmp_path):
    trace, recording = run
    opened = open_recording(saved(run, tmp_path / "recording"))
    same_columns(trace.instructions, opened.instructions)
    assert opened.trace.sources == trace.sources
    assert opened.trace.mhz == trace.mhz
    assert opened.about["case"] == "one"
    assert [tuple(region) for region in opened.about["regions"]] == list(recording.about["regions"])
    assert opened.versions["insight_trace"] == insight_trace.__version__
    assert opened.chip["parameters"]


def test_the_same_run_saves_the_same_bytes(run, tmp_path):
    one, two = saved(run, tmp_path / "one"), saved(run, tmp_path / "two")
    assert {p.name: p.read_bytes() for p in one.iterdir()} == {p.name: p.read_bytes() for p in two.iterdir()}


def test_a_folder_with_a_recording_is_read_from_it_and_moves_with_it(run, tmp_path):
    trace, recording = run
    directory = write_insight_directory(trace, tmp_path / "first", recording=recording)
    (tmp_path / "first").rename(tmp_path / "second")
    moved = tmp_path / "second" / directory.parent.name
    for path in (tmp_path / "second", moved, moved / "simulator", moved / "recording"):
        opened = insight_trace.open_trace(path)
        assert opened.origin == "recording"
        same_columns(trace.instructions, opened.instructions)
    files = insight_trace.open_trace(moved, recorded=False)
    assert files.origin == "visualize_data.bin"
    assert files.instructions.operands is None
    assert insight_trace.open_trace(moved / "simulator" / "trace.json").origin == "trace.json"


def test_rows_that_are_taken_keep_their_operands(run):
    trace, _ = run
    some = np.arange(0, len(trace.instructions), 3)
    part = take(trace.instructions, some)
    assert list(part.detail) == [trace.instructions.detail[row] for row in some.tolist()]
    assert np.array_equal(part.operands.times, trace.instructions.operands.times[some])
    again = take(part, np.arange(len(part)) % 2 == 0)
    assert list(again.detail) == [trace.instructions.detail[row] for row in some[::2].tolist()]
    assert len(empty()) == 0
    assert len(take(trace.instructions, np.zeros(0, np.int64))) == 0


@pytest.mark.parametrize(
    "argument", [1.5, None, [], {}, {"slot": 0}, {"slot": "0", "tier": "recorded"}, {"slot": 0, "tier": []}]
)
def test_an_argument_without_slot_or_tier_is_refused(run, tmp_path, argument):
    folder = saved(run, tmp_path / "recording")
    header = json.loads((folder / HEADER).read_text())
    (folder / HEADER).write_text(json.dumps({**header, "arguments": [argument]}))
    with pytest.raises(InputError, match=HEADER):
        open_recording(folder)


def test_what_is_no_recording_says_so(run, tmp_path):
    with pytest.raises(RequestError, match="no recording lies"):
        open_recording(tmp_path)
    folder = saved(run, tmp_path / "recording")
    header = json.loads((folder / HEADER).read_text())
    (folder / HEADER).write_text(json.dumps({**header, "version": 99}))
    with pytest.raises(InputError, match="version 99"):
        open_recording(folder)
    (folder / HEADER).write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        open_recording(folder)


@given(
    st.integers(0, 40), st.floats(0, 1, exclude_max=True), st.sampled_from(["cut", "gone", "head", "longer"])
)
def test_a_damaged_recording_is_an_error_that_names_the_file(run, tmp_path_factory, number, part, kind):
    folder = saved(run, tmp_path_factory.mktemp("damaged") / "recording")
    names = sorted(path.name for path in folder.iterdir() if path.suffix == ".npy")
    victim = folder / names[number % len(names)]
    content = victim.read_bytes()
    if kind == "gone":
        victim.unlink()
    elif kind == "cut":
        victim.write_bytes(content[: int(part * len(content))])
    elif kind == "longer":
        victim.write_bytes(np.lib.format.magic(1, 0) + content)
    else:
        place = int(part * 100)
        victim.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
    said, opened = "", None
    try:
        opened = open_recording(folder)
    except InputError as error:
        said = str(error)
    if opened is None:
        assert victim.name in said
    else:  # a blank of the header may be anything
        same_columns(run[0].instructions, opened.instructions)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=4), lambda each: st.lists(each, max_size=3)))
def test_a_header_of_anything_else_is_an_error(run, tmp_path_factory, junk):
    folder = saved(run, tmp_path_factory.mktemp("header") / "recording")
    header = json.loads((folder / HEADER).read_text())
    for key in ("cores", "names", "instructions", "mhz", "sources", "counters"):
        (folder / HEADER).write_text(json.dumps({**header, key: junk}))
        try:
            open_recording(folder)
        except InsightTraceError:
            continue
