"""Every kernel of every example scene: captured, replayed, verified, and its Insight directory read back."""

from pathlib import Path

import numpy as np
import pytest

import insight_trace
from insight_trace.insight import validate
from insight_trace.model import Pipe
from insight_trace.replay.verification import Status, verdict

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# a chip's part of a run over several chips waits for its peers: it cannot be replayed alone
SCENES = sorted({path.parent.name for path in EXAMPLES.glob("*/scene.py")} - {"several_chips"})


@pytest.mark.parametrize("name", SCENES)
def test_every_kernel_of_the_example_is_verified_and_its_directory_reads_back_as_written(name, tmp_path):
    scene = EXAMPLES / name / "scene.py"
    capture = insight_trace.capture(scene, output=tmp_path / "dump")
    assert capture.passed
    kinds = {}
    for dispatch in insight_trace.load_dump(capture.directory).dispatches:
        kinds.setdefault(dispatch.func_ids, dispatch)
    assert kinds
    for number, (func_ids, dispatch) in enumerate(kinds.items()):
        replay = insight_trace.replay(
            scene,
            func_id=func_ids,
            dump_dir=capture.directory,
            dispatch_id=dispatch.dispatch_id,
            simulator="embedded",
            output=tmp_path / f"replay{number}",
        )
        assert verdict(replay.checks) is Status.VERIFIED, [c.text for c in replay.checks]
        assert validate(replay.directory) == []
        _same_columns(replay.instructions, insight_trace.open_trace(replay.directory).instructions)


def _rows(columns):
    """Instructions as comparable rows; flags and barriers are drawn shorter than they last, so only their ends count."""
    drawn = np.isin(
        columns.name, [i for i, n in enumerate(columns.names) if n in ("SET_FLAG", "WAIT_FLAG", "BAR")]
    )
    return sorted(
        (
            columns.cores[columns.core[i]],
            Pipe(int(columns.pipe[i])).name,
            columns.names[columns.name[i]],
            -1 if drawn[i] else int(columns.start[i]),
            int(columns.end[i]),
            columns.stacks[columns.stack[i]],
            columns.detail[i],
        )
        for i in range(len(columns))
    )


def _same_columns(written, read):
    assert _rows(read) == _rows(written)
