"""Events are the same bytes whether compiled code lays them or Python."""

import filecmp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from insight_made_up import FLAGS, trace_of
from tests.synthetic_recording import mix_recording

from insight_trace.errors import JobError
from insight_trace.insight import encoding, write_insight_directory
from insight_trace.insight.encoding import Floats, Integers, Micros, Picked, Strings, Texts, lay
from insight_trace.insight.prepared import Extras
from insight_trace.model import Pipe
from insight_trace.simulate.embedded.toolchain import Toolchain

NAME, TIME = "A" * 16, "20260101000000"
KINDS = (
    ("MOV_XD_IMM", Pipe.SCALAR, 'XD:"\\', 1),
    ("VADD", Pipe.VECTOR, "XD:0x10,", 12),
    ("MOV_OUT_TO_UB", Pipe.MTE2, "é", 4100),
    ("BAR", Pipe.VECTOR, "", 3),
    ("SET_FLAG", Pipe.MTE2, FLAGS[0], 1),
    ("WAIT_FLAG", Pipe.VECTOR, FLAGS[0], 4),
)


def busy_trace():
    rows = []
    for number in range(encoding.WORTH_LOADING + 500):
        name, pipe, detail, length = KINDS[number * 7 % 11 % len(KINDS)]
        moved = 64 * (number % 5) if pipe is Pipe.MTE2 else -1
        start = 3 * number
        rows.append(
            {"core": number % 2 + 1, "name": name, "pipe": int(pipe), "detail": detail, "start": start,
             "end": start + length, "pc": 0x1000 + 4 * (number % 97), "bytes": moved, "stack": number % 2}
        )  # fmt: skip
    return trace_of(rows, stacks=("/src/kernel.cpp:4\n/src/tile.hpp:7", "/src/kernel.cpp:5"))


def same_files(one, other):
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file())
    assert names
    assert filecmp.cmpfiles(one, other, names, shallow=False)[1:] == ([], [])


@pytest.fixture
def python_alone(monkeypatch):
    """Nothing compiled is there until the test asks for it."""
    monkeypatch.setattr(encoding, "_loaded", [])


@pytest.mark.usefixtures("python_alone")
@pytest.mark.parametrize("overhead", [False, True])
def test_compiled_code_and_python_write_the_same_directory(tmp_path, monkeypatch, overhead):
    trace, extras = busy_trace(), None
    if overhead:
        start = trace.instructions.start
        fetched = np.where(np.arange(len(start)) % 3 > 0, np.maximum(start - 5, 0), -1)
        warp = np.where(np.arange(len(start)) % 5 == 0, 2, -1).astype(np.int16)
        extras = Extras(warp=warp, fetched=fetched, decoded=np.where(fetched >= 0, fetched + 2, -1))
    same = {"name": NAME, "timestamp": TIME, "extras": extras}
    compiled = write_insight_directory(trace, tmp_path / "compiled", **same)
    assert encoding._loaded, "the trace is long enough, and there is a compiler"
    encoding._loaded.clear()
    monkeypatch.setattr("insight_trace.insight.writer.WORTH_LOADING", 1 << 60)
    same_files(compiled, write_insight_directory(trace, tmp_path / "python", **same))


@pytest.mark.usefixtures("python_alone")
def test_compiled_code_and_python_write_the_same_directory_of_a_recording(tmp_path, monkeypatch):
    recording = mix_recording(2, 60, seed=3)
    same = {"name": NAME, "timestamp": TIME, "recording": recording}
    compiled = write_insight_directory(recording.trace, tmp_path / "compiled", **same)
    assert encoding._loaded
    encoding._loaded.clear()
    monkeypatch.setattr("insight_trace.insight.writer.WORTH_LOADING", 1 << 60)
    same_files(compiled, write_insight_directory(recording.trace, tmp_path / "python", **same))


@pytest.mark.usefixtures("python_alone")
def test_without_a_compiler_the_directory_is_written_in_python(tmp_path, monkeypatch):
    def none():
        raise JobError("no C++ compiler")

    monkeypatch.setattr(Toolchain, "find", none)
    written = write_insight_directory(busy_trace(), tmp_path, name=NAME, timestamp=TIME)
    assert not encoding._loaded
    assert (written / "visualize_data.bin").is_file()


WHOLE = st.integers(-(1 << 62), 1 << 62)
CYCLES = st.integers(0, 1 << 40)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    mhz=st.floats(1.0, 5000.0),
    rows=st.lists(st.tuples(CYCLES, WHOLE, NUMBERS, st.text(), st.integers(0, 2)), min_size=1, max_size=20),
    pieces=st.lists(st.binary(max_size=200), min_size=3, max_size=3),
)
def test_any_column_is_the_same_text(mhz, rows, pieces):
    encoding.load_compiled()
    assert encoding._loaded
    rows = rows * (encoding._WORTH_CALLING // len(rows) + 1)
    cycles, whole, numbers, texts, index = zip(*rows, strict=True)
    columns = [
        pieces[0], Micros(np.array(cycles), mhz), b" ", Integers(np.array(whole)), b" ", Floats(np.array(numbers)),
        Strings(list(texts)), Picked(Texts(pieces), np.array(index)), [b"%d" % each for each in index], b"\n",
    ]  # fmt: skip
    python = b"".join(
        b"".join(row)
        for row in zip(*(encoding.spelled(column, len(rows)) for column in columns), strict=True)
    )
    assert bytes(lay(columns, len(rows))) == python


def test_an_index_outside_of_its_table_is_an_error_and_no_read_past_it():
    encoding.load_compiled()
    rows = encoding._WORTH_CALLING
    for index in (np.full(rows, 2), np.full(rows, -1)):
        with pytest.raises(IndexError):
            lay([Picked(Texts([b"a", b"b"]), index)], rows)
    with pytest.raises(ValueError, match="rows"):
        lay([Integers(np.arange(rows - 1))], rows)
