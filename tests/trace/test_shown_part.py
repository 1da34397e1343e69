"""What of a large run its Insight directory shows."""

import numpy as np
import pytest

from insight_trace.errors import RequestError
from insight_trace.insight import open_trace
from insight_trace.insight.writer import write_insight_directory, write_recording
from insight_trace.options import RunOptions
from insight_trace.recording import open_recording
from insight_trace.trace import shown_part as part
from insight_trace.trace.critical import critical_path
from tests.synthetic_recording import mix_recording

RECORDING = mix_recording(3, 6)
PATH = critical_path(RECORDING.trace)


def shown(**options):
    return part.shown_part(RECORDING.trace, PATH, RunOptions(**options))


def cores(found):
    columns = found.trace.instructions
    return {columns.cores[core] for core in np.unique(columns.core).tolist()}


def test_a_run_that_insight_can_open_is_shown_whole():
    assert shown().whole
    assert shown(cores="all").whole
    assert shown().trace is RECORDING.trace


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"cores": "core1"}, {"core1.cubecore0", "core1.veccore0", "core1.veccore1"}),
        ({"cores": "core0.veccore1,core2.cubecore0"}, {"core0.veccore1", "core2.cubecore0"}),
    ],
)
def test_cores_are_chosen_by_name_or_by_block(options, wanted):
    assert cores(shown(**options)) == wanted


def test_a_window_has_what_runs_in_it():
    mhz = RECORDING.trace.mhz
    cycles, micros = shown(window="100:400"), shown(window=f"{100 / mhz}us:{400 / mhz}us")
    columns = cycles.trace.instructions
    assert 0 < len(columns) < len(RECORDING.instructions)
    assert (columns.end > 100).all()
    assert (columns.start < 400).all()
    assert len(micros.trace.instructions) == len(columns)


def test_of_a_run_that_is_too_large_the_block_on_the_critical_path_is_shown(monkeypatch, tmp_path):
    monkeypatch.setattr(part, "MOST_ROWS", 200)
    found = shown()
    assert len({core.partition(".")[0] for core in cores(found)}) == 1
    assert f"{len(found.trace.instructions):,} of {len(RECORDING.instructions):,}" in found.said
    monkeypatch.setattr(part, "MOST_ROWS", 20)
    assert 0 < len(shown().trace.instructions) <= 20
    # a finding of a row that is shown moves with it, one of a row that is left out has no mark
    rows = np.flatnonzero(found.place >= 0)
    finding = {
        "severity": "error",
        "category": "race",
        "message": "m",
        "places": [{"row": int(rows[3])}, {"row": int(np.flatnonzero(found.place < 0)[0])}],
    }
    recording = RECORDING.__class__(RECORDING.trace, findings=(finding,))
    directory = write_insight_directory(found.trace, tmp_path, recording=recording, row_shown=found.place)
    marks = (directory / "trace.json").read_bytes().count(b'"name":"error: race"')
    assert marks == 1
    assert len(open_recording(directory.parent).instructions) == len(RECORDING.instructions)


@pytest.mark.parametrize("options", [{"cores": "core9"}, {"window": "9000000:9000001"}])
def test_what_did_not_run_is_refused_with_what_did(options):
    with pytest.raises(RequestError, match="core") as refused:
        shown(**options)
    assert "core0 to core2" in refused.value.hint


@pytest.mark.parametrize("window", ["5", "5:3", "1:2:3", "a:b", "-1:2"])
def test_a_window_is_two_times(window):
    with pytest.raises(RequestError, match="--window"):
        RunOptions(window=window)


def test_a_recording_alone_opens(tmp_path):
    folder = write_recording(RECORDING, tmp_path)
    assert [path.name for path in folder.iterdir()] == ["recording"]
    assert len(open_trace(folder).instructions) == len(RECORDING.instructions)
