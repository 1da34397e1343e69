"""Events as growing columns: what is read of a timeline before it becomes instructions."""

from __future__ import annotations

from collections import defaultdict
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from insight_trace.insight.events import EVENTS, Args, Event, opening_of, read_events
from insight_trace.insight.lanes import CACHE_MISS, CROSS_CORE_NAMES, FLAG_NAMES, SET_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OVERHEAD_NAMES = frozenset({"cache_time", "ccu_time"})
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
        self.flags: dict[tuple[bool, str], list[Event | None]] = {}
        self.lone_flags: list[tuple[Event, Event]] = []
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
                self._others(events)
            if slices:
                self._slices(slices)

    def _slices(self, events: list[Event]) -> None:
        events = [event for event in events if event.group_id is None or event.name not in _OVERHEAD_NAMES]
        cores, lanes, names = self.cores, self.lanes, self.names
        stacks, addresses = self.stacks, self.addresses
        args = [event.args or _NO_ARGS for event in events]
        moved: list[Any] = [each.process_bytes for each in args]
        self._columns.append(
            [
                np.array([cores[event.pid] for event in events], dtype=np.int64),
                np.array([lanes[event.tid] for event in events], dtype=np.int64),
                np.array([names[self._name(event)] for event in events], dtype=np.int64),
                np.array([stacks[_stack(each)] for each in args], dtype=np.int64),
                np.array([addresses[each.pc_addr] for each in args], dtype=np.int64),
                np.array([event.ts for event in events], dtype=np.float64),
                np.array([event.dur for event in events], dtype=np.float64),
                np.array([_number(count) for count in moved], dtype=np.int64)
                if any(count is not None for count in moved)
                else np.full(len(events), -1, dtype=np.int64),
            ]
        )
        self.detail += [each.detail for each in args]

    @staticmethod
    def _name(event: Event) -> str:
        return CACHE_MISS if event.tid == CACHE_MISS else event.name

    def _others(self, events: list[Event]) -> None:
        for event in events:
            phase = event.ph
            if phase in ("B", "E"):
                if event.name in FLAG_NAMES or event.name in CROSS_CORE_NAMES:
                    setting = event.name in SET_NAMES or event.name.startswith("SET_")
                    pair = self.flags.setdefault((setting, str(event.id)), [None, None])
                    side = 0 if phase == "B" else 1
                    if pair[side] is not None:
                        # an id that is used twice: keep what is complete, start afresh
                        if pair[0] is not None and pair[1] is not None:
                            self.lone_flags.append((pair[0], pair[1]))
                        else:
                            self.unread += 1
                        pair[:] = [None, None]
                    pair[side] = event
                else:
                    self.unread += 1
            elif phase == "C" and event.args is not None and event.args.throughput is not None:
                self.counters.setdefault(event.name, []).append((event.ts, event.args.throughput))
            elif phase == "M" and event.name == "process_name" and event.args is not None:
                if isinstance(event.pid, int) and event.args.name is not None:
                    self.process_names[event.pid] = event.args.name
            elif phase not in ("X", "M", "C", "s", "t", "f"):
                self.unread += 1

    def columns(self) -> list[NDArray[Any]]:
        """Core, lane, name, stack, address (all as numbers of their tables), time, duration, bytes."""
        if not self._columns:
            return [np.zeros(0, dtype=kind) for kind in [np.int64] * 5 + [np.float64] * 2 + [np.int64]]
        return [np.concatenate(parts) for parts in zip(*self._columns, strict=True)]


def _stack(args: Args) -> str:
    if args.trace_stop is None:
        return args.code
    return f"{args.trace_start}\n\n{args.trace_stop}" if args.trace_start or args.trace_stop else ""


def _number(count: str | int | None) -> int:
    try:
        return -1 if count is None else int(count)
    except ValueError:
        return -1
