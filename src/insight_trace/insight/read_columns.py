"""Events of a timeline as growing columns: what is read before it becomes instructions.

Events of the form that the vendor's exporter and ours write are taken many at a time (fast_events.py), any other one by one.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import compress
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from insight_trace.insight.events import EVENTS, Args, Event, opening_of, read_events
from insight_trace.insight.fast_events import BEGIN, END, SLICE, Events, KnownForm, UnknownForm, numbers
from insight_trace.insight.lanes import CACHE_MISS, PROCESS_CODES
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


_TRIES = 4  # pieces of another form in a row, after which no more are tried


def number_of(count: str | int | None) -> int:
    """Bytes moved; -1 where they are not known."""
    try:
        return -1 if count is None else int(count)
    except ValueError:
        return -1


class _Numbered:
    """Numbers, in the tables of a trace, of what repeated pieces say; -1 until a piece is used."""

    def __init__(self, width: int) -> None:
        self._found = np.zeros((0, width), dtype=np.int64)
        self._used = np.zeros(0, dtype=bool)

    def of(self, index: NDArray[np.int64], values: list[Any], number: Any) -> NDArray[np.int64]:
        """The numbers for every row; `number` gives those of a new piece, in the order of first use."""
        more = len(values) - len(self._used)
        if more:
            self._found = np.concatenate((self._found, np.zeros((more, self._found.shape[1]), np.int64)))
            self._used = np.concatenate((self._used, np.zeros(more, dtype=bool)))
        new = index[~self._used[index]]
        if len(new):
            pieces, first = np.unique(new, return_index=True)
            for piece in pieces[np.argsort(first)].tolist():
                self._found[piece] = number(values[piece])
            self._used[pieces] = True
        return self._found[index].T


class KnownEvents:
    """Takes text of the known form; leaves every other to the general way."""

    def __init__(self, gathered: EventColumns) -> None:
        self._gathered = gathered
        self._form = KnownForm()
        self._refused = 0
        self._slices = _Numbered(1), _Numbered(2), _Numbered(3)
        self._flags = _Numbered(1), _Numbered(2), _Numbered(3)

    def take(self, data: bytes) -> int:
        """How many events were taken: all of the text's, or none."""
        if self._refused >= _TRIES:
            return 0
        try:
            events = self._form.read(data)
            rows = np.flatnonzero(events.kind == SLICE)
            chosen = (events.kind == SLICE).tolist()
            lasting = numbers(list(compress(events.own, chosen)))
            self._take_flags(events)
        except UnknownForm:
            self._refused += 1
            return 0
        self._refused = 0
        if len(rows):
            core, lane, name, stack, address, moved = self._places(events, rows, self._slices, self._gathered)
            columns = [core, lane, name, stack, address, events.time[rows], lasting, moved]
            self._gathered.add(columns, list(compress(events.detail, chosen)))
        return len(events)

    def _places(
        self, events: Events, rows: NDArray[np.int64], numbered: tuple[_Numbered, ...], owner: Any
    ) -> tuple[NDArray[np.int64], ...]:
        """Core, lane, name, stack, address, bytes moved; `owner` has the tables."""
        cores, lanes, names = owner.cores, owner.lanes, owner.names
        stacks: Numbering = owner.stacks
        addresses: Numbering = owner.addresses

        def place(said: tuple[str, str, str, str]) -> tuple[int, int, int]:
            name, process, thread, _ = said
            # a miss is shown by its address
            name = CACHE_MISS if thread == CACHE_MISS and owner is self._gathered else name
            return cores[process], lanes[thread], names[name]

        def moving(said: tuple[str, str | None]) -> tuple[int, int]:
            return addresses[said[0]], number_of(said[1])

        form, (opening, middle, closing) = self._form, numbered
        core, lane, name = closing.of(events.closing[rows], form.closings.said, place)
        (stack,) = opening.of(events.opening[rows], form.openings.said, lambda said: stacks[said])
        address, moved = middle.of(events.middle[rows], form.middles.said, moving)
        return core, lane, name, stack, address, moved

    def _take_flags(self, events: Events) -> None:
        """All or none: an id that is used again, or a name that is no flag's, is for the general way."""
        flags, values = self._gathered.flags, self._form.closings.said
        setting = np.array([{True: 1, False: 0, None: -1}[SETTING.get(value[0])] for value in values])[
            events.closing
        ]
        if (setting[(events.kind == BEGIN) | (events.kind == END)] < 0).any():
            raise UnknownForm
        begins = np.flatnonzero(events.kind == BEGIN)
        row = np.full(len(events), -1, dtype=np.int64)
        row[begins] = np.arange(len(flags), len(flags) + len(begins))
        added: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
        records: list[tuple[int, int, dict[Any, Any], NDArray[Any]]] = [
            *((BEGIN, sets, flags.begun[sets], row) for sets in (0, 1)),
            *((END, sets, flags.ended[sets], events.time) for sets in (0, 1)),
        ]
        for kind, sets, record, content in records:
            rows = np.flatnonzero((events.kind == kind) & (setting == sets))
            ids = [events.own[place] for place in rows.tolist()]
            new = dict(zip(ids, content[rows].tolist(), strict=True))
            if len(new) != len(ids) or not record.keys().isdisjoint(new):
                raise UnknownForm
            added.append((record, new))
        for record, new in added:
            record.update(new)
        if len(begins):
            *places, _ = self._places(events, begins, self._flags, flags)
            flags.add([*places, events.time[begins]], [events.detail[each] for each in begins.tolist()])


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
        known = KnownEvents(self)
        for events in read_events(file, begin, length, where, EVENTS, self.warnings, known.take):
            slices = [event for event in events if event.ph == "X"]
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


def _has_marks(lanes: dict[Any, int], cores: dict[Any, int]) -> bool:
    """User marks have a lane of their own; in a core's own trace they have a process."""
    return _MARKS in lanes or _MARKS_PROCESS in cores or not cores


def _mark_stack(args: Args) -> str:
    return f"{args.trace_start}\n\n{args.trace_stop}" if args.trace_start or args.trace_stop else ""
