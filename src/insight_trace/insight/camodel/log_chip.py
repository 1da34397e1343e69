"""Which family of chips wrote core model logs, where nobody says it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from insight_trace.chips import find_chip
from insight_trace.errors import RequestError
from insight_trace.insight.camodel.files import CoreLogs, lines_of
from insight_trace.insight.camodel.lines import parse_line
from insight_trace.model import Pipe
from insight_trace.recording.pipes import VECTOR_LANES

_LOOKED_AT = 500  # lines of each core: the 950 numbers every instruction
_INFER_NAMES = ("scalar_", "set_event", "wait_event")


def require_default_chip(cores: Iterable[CoreLogs], folder: Path) -> None:
    """Refuses logs that the usual chip cannot have written: chips of their family differ in their clock."""
    for core in cores:
        for text in islice(lines_of(core.starts), _LOOKED_AT):
            line = parse_line(text, popped=True)
            if line is None:
                continue
            if line.id >= 0 or Pipe(line.pipe) in VECTOR_LANES:
                what = "the lane" if line.id < 0 else "numbered instructions"
                shown = f" {Pipe(line.pipe).name}" if line.id < 0 else ""
                _ask(f"a 950 ({what}{shown})", ("Ascend950PR_9599", "Ascend950DT_950X"), folder)
            if line.name.startswith(_INFER_NAMES):
                _ask(f"a 310P (the name {line.name})", ("Ascend310P3", "Ascend310P5"), folder)


def _ask(family: str, names: tuple[str, ...], folder: Path) -> None:
    chips = [chip for name in names if (chip := find_chip(name))]
    examples = " or ".join(f"{chip.name} ({chip.mhz:g} MHz)" for chip in chips)
    raise RequestError(
        f"these are logs of {family}, whose chips have different clocks",
        where=str(folder),
        hint=f"say which chip wrote them: --soc-version {examples}",
    )
