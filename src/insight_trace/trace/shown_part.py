"""What of a run its Insight directory shows: MindStudio Insight opens about 500 MB of timeline, a large kernel has more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.errors import RequestError
from insight_trace.insight.writer import LARGE_TRACE, TIMELINE_BYTES
from insight_trace.model import Instructions, Trace
from insight_trace.options import RunOptions, window_of
from insight_trace.recording.pipes import core_order
from insight_trace.recording.stream import take
from insight_trace.trace.critical import CriticalPath

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_ROWS = LARGE_TRACE // TIMELINE_BYTES
ALL = "all"


class Shown(Struct, frozen=True, eq=False):
    """The part of a trace that is shown, the critical path in it, and what to say of it."""

    trace: Trace
    path: CriticalPath
    place: NDArray[np.int64] | None = None  # by row of the whole: its row in the part, -1: left out
    said: str = ""

    @property
    def whole(self) -> bool:
        return self.place is None


def shown_part(trace: Trace, path: CriticalPath, options: RunOptions) -> Shown:
    """The cores and the window that were asked for; of a run that is too large, the block that holds it up."""
    import numpy as np

    columns = trace.instructions
    chosen = np.ones(len(columns), bool)
    what = []
    if options.cores is not None and options.cores != ALL:
        chosen &= _on_cores(columns, options.cores)
        what.append(options.cores)
    if options.window is not None:
        begin, end = window_of(options.window, trace.mhz)
        chosen &= (columns.end > begin) & (columns.start < end)
        what.append(f"cycles {begin:,.0f} to {end:,.0f}")
    if options.cores is None and options.window is None and len(columns) > MOST_ROWS:
        block = _slowest_block(columns, path)
        chosen &= _on_cores(columns, block)
        what.append(f"{block}, where the critical path spends most of its time")
        count = int(chosen.sum())
        if count > MOST_ROWS:
            last = int(np.partition(columns.end[chosen], MOST_ROWS)[MOST_ROWS])
            chosen &= columns.end < last
            what.append(f"the first {last:,} cycles")
    rows = np.flatnonzero(chosen)
    if len(rows) == len(columns):
        return Shown(trace, path)
    if not len(rows):
        raise RequestError(
            f"no instruction ran on {', '.join(what)}",
            hint=f"the run has {_names(columns)}, and lasts {int(columns.end.max()):,} cycles",
        )
    place = np.full(len(columns) + 1, -1, np.int64)
    place[rows] = np.arange(len(rows))
    kept = place[path.row] >= 0
    part = CriticalPath(place[path.row[kept]], path.begin[kept], path.end[kept], path.idle[kept])
    said = (
        f"the Insight directory shows {len(rows):,} of {len(columns):,} instructions: {', '.join(what)}; the recording has "
        "all. --cores core3, --cores all and --window 0:20000 choose"
    )
    return Shown(replace(trace, instructions=take(columns, rows)), part, place[:-1], said)


def _names(columns: Instructions) -> str:
    blocks = list(dict.fromkeys(core.partition(".")[0] for core in columns.cores))
    return f"{blocks[0]} to {blocks[-1]}" if len(blocks) > 1 else blocks[0]


def _on_cores(columns: Instructions, wanted: str) -> NDArray[np.bool_]:
    """Rows of the cores that are named: by their names, or all cores of a block by `core3`."""
    import numpy as np

    asked = [each.strip() for each in wanted.split(",") if each.strip()]
    mine = np.array([core in asked or core.partition(".")[0] in asked for core in columns.cores], bool)
    known = {*columns.cores, *(core.partition(".")[0] for core in columns.cores)}
    if unknown := sorted(set(asked) - known):
        raise RequestError(f"no core {', '.join(unknown)} ran", hint=f"the run has {_names(columns)}")
    chosen: NDArray[np.bool_] = mine[columns.core]
    return chosen


def _slowest_block(columns: Instructions, path: CriticalPath) -> str:
    import numpy as np

    spent = np.bincount(columns.core[path.row], weights=path.end - path.begin, minlength=len(columns.cores))
    blocks: dict[str, float] = {}
    for core, cycles in zip(columns.cores, spent.tolist(), strict=True):
        block = core.partition(".")[0]
        blocks[block] = blocks.get(block, 0.0) + cycles
    return min(blocks, key=lambda block: (-blocks[block], core_order(block)))
