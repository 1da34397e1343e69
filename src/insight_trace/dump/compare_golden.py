"""One recorded tensor against a golden file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from insight_trace.dump.dump_diff import (
    ArgumentDifference,
    DiffTolerance,
    DumpDiff,
    compare_arrays,
    golden_array,
)
from insight_trace.dump.entries import EntryFilter, selected
from insight_trace.dump.recorded_bytes import payload_array
from insight_trace.errors import RequestError
from insight_trace.model import Dispatch, Stage, TensorArg


def compare_with_golden(
    dispatches: Sequence[Dispatch], selection: EntryFilter, golden: Path, tolerance: DiffTolerance
) -> DumpDiff:
    """Compares the one recorded tensor that is selected; where both stages were recorded, the later."""
    found = [
        entry
        for _, entries in selected(dispatches, selection)
        for entry in entries
        if isinstance(entry.argument, TensorArg) and entry.payload is not None
    ]
    after = [entry for entry in found if entry.stage is Stage.AFTER]
    same_place = {(entry.dispatch.dispatch_id, entry.argument.slot) for entry in found}
    if len(same_place) == 1 and after:
        found = after
    if len(found) != 1:
        raise RequestError(
            f"{len(found)} recorded tensors match; a golden file is compared with one",
            hint="select it with --dispatch-id, --slot and --stage",
        )
    entry = found[0]
    tensor, payload = entry.argument, entry.payload
    assert isinstance(tensor, TensorArg)
    assert payload is not None
    if payload.truncated:
        raise RequestError("the recorded tensor is cut off and cannot be compared", where=entry.label)
    recorded = payload_array(payload, tensor.dtype, tensor.shape)
    expected = golden_array(golden, tensor.dtype, tensor.shape)
    result = compare_arrays(recorded, expected, tolerance)
    d = entry.dispatch
    differences: tuple[ArgumentDifference, ...] = ()
    if result is not None:
        differences = (
            ArgumentDifference(
                d.dispatch_id, d.task_id, d.kernel, tensor.slot, entry.stage, "content", **result
            ),
        )
    return DumpDiff(differences, 1, 1, ())
