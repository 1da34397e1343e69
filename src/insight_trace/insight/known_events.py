"""Puts events of the known form into the columns that are gathered."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from insight_trace.insight.gathered_flags import SETTING, Table
from insight_trace.insight.known_form import BEGIN, END, SLICE, Events, KnownForm, UnknownForm, numbers
from insight_trace.insight.lanes import CACHE_MISS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from insight_trace.insight.gathered import Gathered

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

    def __init__(self, gathered: Gathered) -> None:
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
        stacks: Table = owner.stacks
        addresses: Table = owner.addresses

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
