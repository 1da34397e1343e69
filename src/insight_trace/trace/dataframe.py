"""Instructions as a table of pandas or Arrow, where these are installed."""

from __future__ import annotations

from typing import Any

from insight_trace.model import Instructions, Stall, Trace
from insight_trace.recording.frames import user_frames
from insight_trace.recording.kinds import Kind, finish, kinds
from insight_trace.recording.pipes import pipe_name
from insight_trace.results import installed


def table(trace: Trace) -> dict[str, Any]:
    """One column per fact and one row per execution."""
    return columns_of(trace.instructions)


def columns_of(instructions: Instructions) -> dict[str, Any]:
    """The same of the instructions alone."""
    import numpy as np

    def texts(values: list[str], index: Any) -> Any:
        return np.array(values or [""], object)[index] if len(index) else np.zeros(0, object)

    pipes = [pipe_name(code) for code in range(256)]
    return {
        "core": texts(list(instructions.cores), instructions.core),
        "pipe": texts(pipes, instructions.pipe),
        "name": texts(list(instructions.names), instructions.name),
        "kind": texts([kind.name.lower() for kind in Kind], kinds(instructions)),
        "line": texts(user_frames(instructions.stacks), instructions.stack),
        "pc": instructions.pc,
        "issue": instructions.issue,
        "start": instructions.start,
        "end": finish(instructions),
        "cycles": finish(instructions) - instructions.start,
        "bytes": instructions.process_bytes,
        "partner": instructions.partner,
        "stall": texts([stall.name.lower() for stall in Stall], instructions.stall),
        "read_conflict": instructions.read_conflict,
        "write_conflict": instructions.write_conflict,
        "utilisation": instructions.utilisation,
        "detail": list(instructions.detail),
    }


def to_pandas(trace: Trace) -> Any:
    """A `pandas.DataFrame`; its index is the row that `partner` counts in."""
    return installed("pandas").DataFrame(table(trace))


def to_arrow(trace: Trace) -> Any:
    """A `pyarrow.Table` of the same columns."""
    return installed("pyarrow").table(table(trace))
