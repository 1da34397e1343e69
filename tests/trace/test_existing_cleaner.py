"""Ours beside the existing cleaner, on the same file: the same instructions and the same arrows.

They differ in one thing, on purpose: the existing one adds start and duration in floating point, so that two
instructions back to back seem to overlap by a rounding error and get a second lane. Lanes are therefore
compared by pipe.
"""

import collections
import json
import subprocess
import sys
from pathlib import Path

import pytest

from insight_trace.insight import open_trace, write_insight_directory
from insight_trace.model import Pipe
from insight_trace.trace.clean import clean
from tests.synthetic_trace import matmul_trace, softmax_trace


@pytest.fixture(scope="module")
def existing(pypto_checkout: Path) -> Path:
    return pypto_checkout / "python" / "pypto" / "tools" / "clean_sim_trace.py"


def _theirs(tool: Path, path: Path, folder: Path, mhz: float, *words: str):
    subprocess.run(
        [sys.executable, str(tool), str(path), "-o", str(folder), "--no-copy-raw", *words],
        check=True,
        capture_output=True,
    )
    events = json.loads((folder / "trace.clean.json").read_text())["traceEvents"]
    slices = collections.Counter(
        (
            event["pid"],
            event["tid"].split("#")[0],
            event["name"],
            round(event["ts"] * mhz),
        )
        for event in events
        if event["ph"] == "X"
    )
    ends = {kind: {event["id"]: event for event in events if event["ph"] == kind} for kind in "sf"}
    arrows = collections.Counter(
        (
            start["pid"],
            start["tid"].split("#")[0],
            round(start["ts"] * mhz),
            ends["f"][number]["tid"].split("#")[0],
            round(ends["f"][number]["ts"] * mhz),
        )
        for number, start in ends["s"].items()
    )
    return slices, arrows


def _ours(path: Path, **options):
    trace = open_trace(path)
    cleaned = clean(trace, **options)
    columns = trace.instructions

    def place(row):
        return Pipe(columns.pipe[row]).name, int(columns.start[row])

    slices = collections.Counter(
        (
            columns.cores[columns.core[row]],
            place(row)[0],
            columns.names[columns.name[row]],
            place(row)[1],
        )
        for row in cleaned.rows.tolist()
    )
    arrows = collections.Counter(
        (columns.cores[columns.core[producer]], *place(producer), *place(consumer))
        for producer, consumer in zip(cleaned.arrows.producer, cleaned.arrows.consumer, strict=True)
    )
    return slices, arrows, trace.mhz


@pytest.mark.parametrize(
    "trace",
    [softmax_trace(20, sources={}), softmax_trace(20, sources={}, buffers=2), matmul_trace()],
    ids=["one buffer", "two buffers", "matmul"],
)
def test_same_instructions_per_pipe_and_same_arrows_on_traces_of_ours(existing, tmp_path, trace):
    path = write_insight_directory(trace, tmp_path) / "visualize_data.bin"
    ours = _ours(path)
    theirs = _theirs(existing, path, tmp_path / "theirs", ours[2])
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]
    assert sum(ours[1].values()) > 10


@pytest.mark.parametrize("name", ["910B", "sample", "91095"])
def test_same_instructions_per_pipe_and_same_arrows_on_the_vendors_files(
    existing, shared_data, tmp_path, name
):
    path = shared_data / "camodel" / name / "expected_simulator" / "visualize_data.bin"
    ours = _ours(path, keep_scalar=True)
    theirs = _theirs(existing, path, tmp_path / "theirs", ours[2], "--keep-scalar")
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]
