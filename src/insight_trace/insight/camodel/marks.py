"""User marks: spans between TRACE_START and TRACE_STOP, which write to a special register."""

from __future__ import annotations

import re
from typing import NamedTuple

from insight_trace.insight.camodel.lines import Line, is_user_mark

_MARK = re.compile(r"0x([8c])000000([0-9])")
_OPENING = re.compile(r"0x8000000[0-9]")
_NOP = "NOP_PIPE"


class Mark(NamedTuple):
    """One span; `stop_pc` is -1 where it is not known."""

    name: str
    pc: int
    stop_pc: int
    start: int
    end: int
    detail: str


class _Span:
    def __init__(self, tick: int, pc: int) -> None:
        self.start, self.pc = tick, pc
        self.end = -1
        self.stop_pc = -1


class Marks:
    """Fed with every line of the log of ends, in order.

    A span begins at the first NOP_PIPE directly after its opening write and ends at the last one directly
    after its closing write.
    """

    def __init__(self) -> None:
        self._spans: dict[str, list[_Span]] = {}
        self._opened: list[tuple[str, Line]] = []
        self._invalid: set[str] = set()
        self._current = ""
        self._opening = False

    def feed(self, line: Line) -> None:
        if line.name == _NOP and self._current:
            span = self._spans[self._current][-1]
            if self._opening:
                span.start = line.tick
                self._current = ""
            else:
                span.end = line.tick
        else:
            self._current = ""
        if not is_user_mark(line.raw):
            return
        match = _MARK.search(line.raw)
        if match is None:
            return
        name = f"Mark 0x{match[2]}"
        if _OPENING.search(line.detail):
            self._opened.append((name, line))
        spans = self._spans.setdefault(name, [])
        if match[1] == "8":
            if spans and spans[-1].end < 0:
                self._invalid.add(name)
                return
            spans.append(_Span(line.tick, line.pc))
        else:
            if not spans:
                self._invalid.add(name)
                return
            spans[-1].end = line.tick
            spans[-1].stop_pc = line.pc
        self._current, self._opening = name, match[1] == "8"

    def finish(self) -> tuple[list[Mark], list[str]]:
        """The complete spans, and what was discarded and why."""
        warnings = [
            f"{name} is nested or stopped without a start and is left out" for name in sorted(self._invalid)
        ]
        usable: dict[str, list[_Span]] = {}
        for name, spans in self._spans.items():
            if name in self._invalid:
                continue
            usable[name] = [span for span in spans if span.end >= 0]
            if len(usable[name]) != len(spans):
                warnings.append(f"{name} is started more often than stopped; the open span is left out")
        marks = []
        used: dict[str, int] = {}
        for name, line in self._opened:
            number = used.get(name, 0)
            spans = usable.get(name, [])
            if number < len(spans):
                span = spans[number]
                start = min(span.start, span.end)
                marks.append(Mark(name, line.pc, span.stop_pc, start, span.end, line.detail))
                used[name] = number + 1
        return marks, warnings
