"""What earlier dispatches of a dump left in L2 of the arguments of a later one."""

from __future__ import annotations

from pathlib import Path

from insight_trace.dump.load import load_dump
from insight_trace.errors import RequestError
from insight_trace.model import Dispatch, Role, TensorArg


def held_slots(dump_dir: Path | None, dispatch: Dispatch | None) -> tuple[tuple[int, bool], ...]:
    """Slots of the dispatch that an earlier one used, the longest ago first, and whether it wrote them."""
    if dump_dir is None or dispatch is None:
        raise RequestError(
            "--l2 trace needs a dump: it is what earlier dispatches left",
            hint="give --dump-dir, or --l2 cold or warm",
        )
    last: dict[int, tuple[int, bool]] = {}  # by address: when it was used last, and whether it was written
    for when, earlier in enumerate(load_dump(dump_dir).dispatches):
        if earlier.dispatch_id >= dispatch.dispatch_id:
            continue
        for argument in earlier.arguments:
            if isinstance(argument, TensorArg) and argument.pointer is not None:
                written = argument.role in (Role.OUTPUT, Role.INOUT)
                before = last.get(argument.pointer, (0, False))
                last[argument.pointer] = (when, written or before[1])
    used = (
        (*last[argument.pointer], argument.slot)
        for argument in dispatch.arguments
        if isinstance(argument, TensorArg) and argument.pointer in last
    )
    return tuple((slot, written) for _, written, slot in sorted(used))
