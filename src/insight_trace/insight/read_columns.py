"""Events of a timeline as growing columns: what is read before it becomes instructions."""

from __future__ import annotations

from collections import defaultdict
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from insight_trace.insight.events import EVENTS, Args, Event, opening_of, read_events
from insight_trace.insight.lanes import ADDED_LANES, CACHE_MISS, PROCESS_CODES
from insight_trace.recording.kinds import CROSS_CORE_NAMES, CROSS_CORE_SETS, FLAG_NAMES, SET_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

# whether a flag of this name sets, or waits
SETTING = {name: name in SET_NAMES or name in CROSS_CORE_SETS for name in FLAG_NAMES | CROSS_CORE_NAMES}


class Numbering(defaultdict[Any, int]):
    """Numbers values in the order in which they first occur."""

    def __init__(self) -> None:
        super().__init__()
        self.default_factory = self.__len__


class Flags:
    """Begins as rows; which of them began and ended under which id, for WAITs and for SETs."""

    def __init__(self) -> None:
        # tables of their own: a trace numbers the texts of slices first
        self.cores, self.lanes, self.names = Numbering(), Numbering(), Numbering()
        self.stacks, self.addresses = Numbering(), Numbering()
        self.detail: list[str] = []
        self.begun: tuple[dict[Any, int], dict[Any, int]] = ({}, {})
        self.ended: tuple[dict[Any, float], dict[Any, float]] = ({}, {})
        self.lone: list[tuple[int, float]] = []  # whose id was used again
        self.halves = 0
        self._columns: list[list[NDArray[Any]]] = []

    def __len__(self) -> int:
        return len(self.detail)

    def tables(self) -> tuple[Numbering, ...]:
        return self.cores, self.lanes, self.names, self.stacks, self.addresses

    def add(self, columns: list[NDArray[Any]], detail: list[str]) -> None:
        """Rows of core, lane, name, stack, address and time."""
        self._columns.append(columns)
        self.detail += detail

    def begin(self, setting: bool, flag: Any, row: int) -> None:
        if flag in self.begun[setting]:
            self._set_aside(setting, flag)
        self.begun[setting][flag] = row

    def end(self, setting: bool, flag: Any, time: float) -> None:
        if flag in self.ended[setting]:
            self._set_aside(setting, flag)
        self.ended[setting][flag] = time

    def _set_aside(self, setting: bool, flag: Any) -> None:
        """An id is used a second time: what is complete is kept, what is not is counted."""
        begin, end = self.begun[setting].pop(flag, None), self.ended[setting].pop(flag, None)
        if begin is None or end is None:
            self.halves += 1
        else:
            self.lone.append((begin, end))

    def whole(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Begins that have an end, their ends, and (wait, set) by place among them. Halves are counted."""
        rows: list[int] = []
        ends: list[float] = []
        places: list[dict[Any, int]] = []
        for begun, ended in zip(self.begun, self.ended, strict=True):
            both = begun if begun.keys() == ended.keys() else [flag for flag in begun if flag in ended]
            self.halves += len(begun) + len(ended) - 2 * len(both)
            places.append(dict(zip(both, range(len(rows), len(rows) + len(both)), strict=True)))
            rows += map(begun.__getitem__, both)
            ends += map(ended.__getitem__, both)
        rows += [row for row, _ in self.lone]
        ends += [end for _, end in self.lone]
        waits, sets = places
        paired = [flag for flag in waits if flag in sets]
        pairs = [list(map(waits.__getitem__, paired)), list(map(sets.__getitem__, paired))]
        return (
            np.array(rows, dtype=np.int64),
            np.array(ends, dtype=np.float64),
            np.array(pairs, dtype=np.int64),
        )

    def columns(self, rows: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Core, lane, name, stack, address and time of chosen begins, by the tables of the flags."""
        if not self._columns:
            return [np.zeros(0, dtype=kind) for kind in [np.int64] * 5 + [np.float64]]
        return [np.concatenate(parts)[rows] for parts in zip(*self._columns, strict=True)]


def number_of(count: str | int | None) -> int:
    """Bytes moved; -1 where they are not known."""
    try:
        return -1 if count is None else int(count)
    except ValueError:
        return -1


_MARKS = "USERMARK"
_MARKS_PROCESS = PROCESS_CODES[_MARKS]
_NO_ARGS = Args()


class EventColumns:
    """Events as growing columns; repeated texts are kept once."""

    def __init__(self, default_core: str = "core0") -> None:
        self.default_core = default_core
        self.cores, self.lanes, self.names = Numbering(), Numbering(), Numbering()
        self.stacks, self.addresses = Numbering(), Numbering()
        self.detail: list[str] = []
        self.flags = Flags()
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
            # what we add above the pipes says of instructions what they say themselves
            slices = [event for event in events if event.ph == "X" and not _is_added(event)]
            if len(slices) != len(events):
                self._others([event for event in events if event.ph != "X"])
            if slices:
                self._slices(slices)

    def add(self, columns: list[NDArray[Any]], detail: list[str]) -> None:
        """Adds slices that are columns already; see `columns`."""
        self._columns.append(columns)
        self.detail += detail

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
        columns = [
            np.array([cores[event.pid] for event in events], dtype=np.int64),
            lane,
            np.array([names[each] for each in name], dtype=np.int64),
            np.array([stacks[each] for each in stack], dtype=np.int64),
            np.array([addresses[each.pc_addr] for each in args], dtype=np.int64),
            np.array([event.ts for event in events], dtype=np.float64),
            np.array([event.dur for event in events], dtype=np.float64),
            np.array([number_of(count) for count in moved], dtype=np.int64)
            if moved.count(None) != len(moved)
            else np.full(len(events), -1, dtype=np.int64),
        ]
        self.add(columns, [each.detail for each in args])

    def _others(self, events: list[Event]) -> None:
        unread = 0
        flags = self.flags
        begins: list[Event] = []
        for event in events:
            phase = event.ph
            if phase == "s" or phase == "t":
                continue
            if phase == "B" or phase == "E":
                setting = SETTING.get(event.name)
                if setting is None:
                    unread += 1
                elif phase == "B":
                    flags.begin(setting, event.id, len(flags) + len(begins))
                    begins.append(event)
                else:
                    flags.end(setting, event.id, event.ts)
            elif phase == "C":
                if event.args is not None and event.args.throughput is not None:
                    self.counters.setdefault(event.name, []).append((event.ts, event.args.throughput))
            elif phase == "M":
                if event.name == "process_name" and isinstance(event.pid, int) and event.args is not None:
                    self.process_names[event.pid] = event.args.name or ""
            elif phase != "f":
                unread += 1
        if begins:
            args = [event.args or _NO_ARGS for event in begins]
            flags.add(
                [
                    np.array([flags.cores[event.pid] for event in begins], dtype=np.int64),
                    np.array([flags.lanes[event.tid] for event in begins], dtype=np.int64),
                    np.array([flags.names[event.name] for event in begins], dtype=np.int64),
                    np.array([flags.stacks[each.code] for each in args], dtype=np.int64),
                    np.array([flags.addresses[each.pc_addr] for each in args], dtype=np.int64),
                    np.array([event.ts for event in begins], dtype=np.float64),
                ],
                [each.detail for each in args],
            )
        self.unread += unread

    def columns(self) -> list[NDArray[Any]]:
        """Core, lane, name, stack, address (all as numbers of their tables), time, duration, bytes."""
        if not self._columns:
            return [np.zeros(0, dtype=kind) for kind in [np.int64] * 5 + [np.float64] * 2 + [np.int64]]
        return [np.concatenate(parts) for parts in zip(*self._columns, strict=True)]

    def flag_columns(self, rows: NDArray[np.int64]) -> list[NDArray[Any]]:
        """The first six of `columns` for the begins `rows`, by the tables of the slices."""
        *own, begin = self.flags.columns(rows)
        tables = (self.cores, self.lanes, self.names, self.stacks, self.addresses)
        named = zip(own, self.flags.tables(), tables, strict=True)
        return [*(_renumbered(column, values, table) for column, values, table in named), begin]


def _renumbered(column: NDArray[Any], values: dict[Any, int], table: Numbering) -> NDArray[Any]:
    """The same values by the numbers of another table; new ones are numbered as they first occur."""
    used, first = np.unique(column, return_index=True)
    found = np.zeros(len(values), dtype=np.int64)
    texts = list(values)
    for number in used[np.argsort(first)].tolist():
        found[number] = table[texts[number]]
    return np.asarray(found[column])


def _is_added(event: Event) -> bool:
    """Whether this is of a lane that no instruction is on; the vendor's cache misses have an address, ours are loads'."""
    if event.tid == CACHE_MISS:
        return event.args is not None and not event.args.pc_addr
    return event.tid in ADDED_LANES


def _has_marks(lanes: dict[Any, int], cores: dict[Any, int]) -> bool:
    """User marks have a lane of their own; in a core's own trace they have a process."""
    return _MARKS in lanes or _MARKS_PROCESS in cores or not cores


def _mark_stack(args: Args) -> str:
    return f"{args.trace_start}\n\n{args.trace_stop}" if args.trace_start or args.trace_stop else ""
