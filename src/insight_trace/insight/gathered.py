"""Events as growing columns: what is read of a timeline before it becomes instructions."""

from __future__ import annotations

from collections import defaultdict
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from insight_trace.insight.events import EVENTS, Args, Event, opening_of, read_events
from insight_trace.insight.lanes import (
    CACHE_MISS,
    CROSS_CORE_NAMES,
    CROSS_CORE_SETS,
    FLAG_NAMES,
    PROCESS_CODES,
    SET_NAMES,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SETTING = {name: name in SET_NAMES or name in CROSS_CORE_SETS for name in FLAG_NAMES | CROSS_CORE_NAMES}
_MARKS = "USERMARK"
_MARKS_PROCESS = PROCESS_CODES[_MARKS]
_NO_ARGS = Args()


class _Table(defaultdict[Any, int]):
    """Numbers values in the order in which they first occur."""

    def __init__(self) -> None:
        super().__init__()
        self.default_factory = self.__len__


class Gathered:
    """Events as growing columns; repeated texts are kept once."""

    def __init__(self, default_core: str = "core0") -> None:
        self.default_core = default_core
        self.cores, self.lanes, self.names = _Table(), _Table(), _Table()
        self.stacks, self.addresses = _Table(), _Table()
        self.detail: list[str] = []
        # begin events, and times of ends, by id: of WAITs and of SETs
        self.begun: tuple[dict[Any, Event], dict[Any, Event]] = ({}, {})
        self.ended: tuple[dict[Any, float], dict[Any, float]] = ({}, {})
        self.lone_flags: list[tuple[Event, float]] = []  # whose id was used again
        self.counters: dict[str, list[tuple[float, float]]] = {}
        self.process_names: dict[int, str] = {}
        self.warnings: list[str] = []
        self._columns: list[list[NDArray[Any]]] = []
        self.unread = 0

    def read(self, file: IO[bytes], start: int, size: int, where: str) -> None:
        """Adds the events of one document."""
        opening = opening_of(file, start, size, where)
        begin = start + opening.start
        length = size - opening.start
        for events in read_events(file, begin, length, where, EVENTS, self.warnings):
            slices = [event for event in events if event.ph == "X"]
            if len(slices) != len(events):
                self._others([event for event in events if event.ph != "X"])
            if slices:
                self._slices(slices)

    def _slices(self, events: list[Event]) -> None:
        cores, lanes, names = self.cores, self.lanes, self.names
        stacks, addresses = self.stacks, self.addresses
        args = [event.args or _NO_ARGS for event in events]
        moved: list[Any] = [each.process_bytes for each in args]
        lane = np.array([lanes[event.tid] for event in events], dtype=np.int64)
        stack = [each.code for each in args]
        name = [event.name for event in events]
        # what is special to a lane is looked at only where the lane occurs
        if CACHE_MISS in lanes:
            for row in np.flatnonzero(lane == lanes[CACHE_MISS]).tolist():
                name[row] = CACHE_MISS
        for row, each in enumerate(args) if _has_marks(lanes, cores) else ():
            if each.trace_stop is not None:
                stack[row] = _mark_stack(each)
        self._columns.append(
            [
                np.array([cores[event.pid] for event in events], dtype=np.int64),
                lane,
                np.array([names[each] for each in name], dtype=np.int64),
                np.array([stacks[each] for each in stack], dtype=np.int64),
                np.array([addresses[each.pc_addr] for each in args], dtype=np.int64),
                np.array([event.ts for event in events], dtype=np.float64),
                np.array([event.dur for event in events], dtype=np.float64),
                np.array([_number(count) for count in moved], dtype=np.int64)
                if moved.count(None) != len(moved)
                else np.full(len(events), -1, dtype=np.int64),
            ]
        )
        self.detail += [each.detail for each in args]

    def _others(self, events: list[Event]) -> None:
        begun, ended, unread = self.begun, self.ended, 0
        for event in events:
            phase = event.ph
            if phase == "s" or phase == "t":
                continue
            if phase == "B" or phase == "E":
                setting = _SETTING.get(event.name)
                if setting is None:
                    unread += 1
                    continue
                if phase == "B":
                    if event.id in begun[setting]:
                        self._set_aside(setting, event.id)
                    begun[setting][event.id] = event
                else:
                    if event.id in ended[setting]:
                        self._set_aside(setting, event.id)
                    ended[setting][event.id] = event.ts
            elif phase == "C":
                if event.args is not None and event.args.throughput is not None:
                    self.counters.setdefault(event.name, []).append((event.ts, event.args.throughput))
            elif phase == "M":
                if event.name == "process_name" and isinstance(event.pid, int) and event.args is not None:
                    self.process_names[event.pid] = event.args.name or ""
            elif phase != "f":
                unread += 1
        self.unread += unread

    def _set_aside(self, setting: bool, flag: Any) -> None:
        """An id is used a second time: what is complete is kept, what is not is counted."""
        begin, end = self.begun[setting].pop(flag, None), self.ended[setting].pop(flag, None)
        if begin is None or end is None:
            self.unread += 1
        else:
            self.lone_flags.append((begin, end))

    def columns(self) -> list[NDArray[Any]]:
        """Core, lane, name, stack, address (all as numbers of their tables), time, duration, bytes."""
        if not self._columns:
            return [np.zeros(0, dtype=kind) for kind in [np.int64] * 5 + [np.float64] * 2 + [np.int64]]
        return [np.concatenate(parts) for parts in zip(*self._columns, strict=True)]


def _has_marks(lanes: dict[Any, int], cores: dict[Any, int]) -> bool:
    """User marks have a lane of their own; in a core's own trace they have a process."""
    return _MARKS in lanes or _MARKS_PROCESS in cores or not cores


def _mark_stack(args: Args) -> str:
    return f"{args.trace_start}\n\n{args.trace_stop}" if args.trace_start or args.trace_stop else ""


def _number(count: str | int | None) -> int:
    try:
        return -1 if count is None else int(count)
    except ValueError:
        return -1
