"""The parts of an event's text that repeat: per call stack, and per distinct instruction."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from insight_trace.insight.encoding import (
    Column,
    Integers,
    Picked,
    Pieces,
    Strings,
    Texts,
    joined,
    json_text,
    json_texts,
)
from insight_trace.insight.lanes import SCALAR_MEMORY, pipe_colour, simt_colour
from insight_trace.insight.prepared import Prepared
from insight_trace.model import Pipe, Stall
from insight_trace.recording.kinds import FLAG_NAMES
from insight_trace.recording.stream import PIECE, details_of, numbered, numbered_details

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_BYTES = b'"}'
_WAITED = {
    Stall.PIPE: b"its pipe, busy with earlier work",
    Stall.QUEUE: b"room in the queue of its pipe",
    Stall.FLAG: b"a flag",
    Stall.BARRIER: b"a barrier",
    Stall.BANK: b"banks of UB",
    Stall.BANDWIDTH: b"shared bandwidth",
    Stall.CROSS_CORE: b"a flag of another core",
}


class Fragments(Struct, frozen=True, eq=False, dict=True):
    """Text tables; `static` says for each row which distinct instruction it is."""

    prepared: Prepared
    code: Texts  # by stack: everything up to the detail
    address: Texts  # by distinct instruction: from the detail's end to the address
    colour: Texts  # `,"cname":"…"`
    name: Texts  # `,"name":"…"`
    place: Texts  # `,"pid":"…","tid":"…","ts":`
    static: NDArray[np.int64]

    def work_out(self) -> None:
        """Makes what every timeline uses, once, before two processes write them."""
        prepared = self.prepared
        _ = prepared.is_set, prepared.is_wait, prepared.is_cross_core, prepared.is_ordinary, self.slice_end
        if prepared.annotated:
            _ = self._spelled, self._lasting, self._waited, self._colour_to_duration
        else:
            _ = self._to_durations, self.flag_parts

    def details(self, rows: NDArray[np.int64]) -> Column:
        if not self.prepared.annotated:
            return Strings(details_of(self.prepared.instructions.detail, rows))
        table, which = self._spelled
        return Picked(table, which[rows])

    @cached_property
    def _spelled(self) -> tuple[Texts, NDArray[np.int32]]:
        """Operand texts of a recording, whose loops name the same operands again, and which of them each row has."""
        detail, count = self.prepared.instructions.detail, len(self.prepared.instructions)
        found: list[bytes] = []
        which = np.empty(count, np.int32)
        for begin in range(0, count, PIECE):
            rows = np.arange(begin, min(begin + PIECE, count))
            spelled, number = numbered_details(detail, rows, values=True)
            which[rows] = number + len(found)
            found += json_texts(spelled)
        return Texts(found), which

    def closing(self, rows: NDArray[np.int64]) -> list[Pieces]:
        """The end of `args`, with the bytes moved where they are known, and what a recording knows beyond."""
        if self.prepared.annotated:
            (lasting, length), (waited, wait) = self._lasting, self._waited
            start = Integers(self.prepared.instructions.start[rows])
            return [Picked(lasting, length[rows]), start, Picked(waited, wait[rows])]
        moved = self.prepared.instructions.process_bytes[rows]
        known = np.flatnonzero(moved > 0)
        if len(known) == 0:
            return [_NO_BYTES]
        found = [_NO_BYTES] * len(rows)
        for row, count in zip(known.tolist(), moved[known].tolist(), strict=True):
            found[row] = b'","process_bytes":"%d"}' % count
        return [found]

    @cached_property
    def _lasting(self) -> tuple[Texts, NDArray[np.int64]]:
        """Exact cycles, where Insight rounds to nanoseconds, and the rate of a transfer; up to the start."""
        columns = self.prepared.instructions
        cycles = columns.end - columns.start
        sizes, size = numbered(np.maximum(0, columns.process_bytes))
        longest = int(cycles.max()) + 1
        pairs, which = numbered(size * longest + cycles)
        found = []
        for place, lasting in zip(*(part.tolist() for part in divmod(pairs, longest)), strict=True):
            moved = int(sizes[place])
            rate = b'","process_bytes":"%d","bytes_per_cycle":%.4g' % (moved, moved / max(1, lasting))
            found.append(b'%s,"cycles":%d,"start_cycle":' % (rate if moved else b'"', lasting))
        return Texts(found), which

    @cached_property
    def _waited(self) -> tuple[Texts, NDArray[np.int64]]:
        """How long a row waited between its issue and its start, and in words for what."""
        columns = self.prepared.instructions
        waited = np.where(columns.stall > 0, np.maximum(0, columns.start - columns.issue), 0)
        reason = columns.stall.astype(np.int64)
        flagged = np.flatnonzero(
            (columns.partner >= 0) & np.isin(columns.stall, (Stall.FLAG, Stall.CROSS_CORE))
        )
        other = columns.partner[flagged]
        away = np.where(
            columns.core[other] != columns.core[flagged], columns.core[other].astype(np.int64) + 1, 0
        )
        cores = len(columns.cores) + 1
        reason[flagged] = 256 + columns.pipe[other].astype(np.int64) * cores + away
        reasons, which = numbered(reason)
        words = []
        for number in reasons.tolist():
            pipe, core = divmod(number - 256, cores)
            if number < 256:
                words.append(_WAITED.get(Stall(number), b""))
            else:
                name = b" of " + json_text(columns.cores[core - 1]) if core else b""
                words.append(b"a flag of " + Pipe(pipe).name.encode() + name)
        longest = int(waited.max()) + 1
        pairs, pair = numbered(which * longest + waited)
        found = [
            b',"waited_cycles":%d,"waited_for":"%s"}' % (cycles, words[place]) if cycles else b"}"
            for place, cycles in zip(*(part.tolist() for part in divmod(pairs, longest)), strict=True)
        ]
        return Texts(found), pair

    # The same parts put together as they follow each other: fewer pieces make faster text.

    @cached_property
    def _to_durations(self) -> tuple[Texts, NDArray[np.int64]]:
        """From the detail's end to the duration of a slice, and which of these texts each row has."""
        plain = joined(self.address, _NO_BYTES, self.colour, b',"dur":')
        moved = self.prepared.instructions.process_bytes
        known = np.flatnonzero(moved > 0)
        if len(known) == 0:
            return plain, self.static
        counts, count = np.unique(moved[known], return_inverse=True)
        cells, cell = np.unique(self.static[known] * len(counts) + count, return_inverse=True)
        moving = [
            b'%s","process_bytes":"%d"}%s,"dur":' % (self.address[static], counts[place], self.colour[static])
            for static, place in zip(*(part.tolist() for part in divmod(cells, len(counts))), strict=True)
        ]
        which = self.static.copy()
        which[known] = len(plain) + cell
        return Texts(plain.pieces + moving), which

    @cached_property
    def _colour_to_duration(self) -> Texts:
        return joined(self.colour, b',"dur":')

    @cached_property
    def slice_end(self) -> Texts:
        """From the duration of a slice to its time."""
        return joined(self.name, b',"ph":"X"', self.place)

    @cached_property
    def flag_parts(self) -> tuple[Texts, ...]:
        """Of a flag: from the detail to the id, on to the begin, on to the second id, on to the end."""
        return (
            joined(self.address, _NO_BYTES, self.colour, b',"id":"'),
            joined(b'"', self.name, b',"ph":"B"', self.place),
            joined(b'},{"args":{}', self.colour, b',"id":"'),
            joined(b'"', self.name, b',"ph":"E"', self.place),
        )

    @cached_property
    def flow_parts(self) -> tuple[Texts, Texts]:
        """Of an arrow's start and end: from the id to the time."""
        return (
            joined(b'","name":"flow","ph":"s"', self.place),
            joined(b'","name":"flow","ph":"t"', self.place),
        )

    def slice_head(self, rows: NDArray[np.int64]) -> list[Pieces]:
        """A slice from its opening brace to its duration."""
        columns = self.prepared.instructions
        if self.prepared.annotated:
            return [*self.head(rows), Picked(self._colour_to_duration, self.static[rows])]
        table, which = self._to_durations
        middle = Picked(table, which[rows])
        return [Picked(self.code, columns.stack[rows]), self.details(rows), middle]

    def head(self, rows: NDArray[np.int64]) -> list[Pieces]:
        """`args` of instruction events, opening brace included."""
        columns = self.prepared.instructions
        return [
            Picked(self.code, columns.stack[rows]),
            self.details(rows),
            Picked(self.address, self.static[rows]),
            *self.closing(rows),
        ]


def fragments_of(prepared: Prepared) -> Fragments:
    columns = prepared.instructions
    first, inverse = prepared.static
    cores = [json_text(core) for core in columns.cores]
    names = [json_text(name) for name in columns.names]
    pipes = {int(pipe): pipe.name.encode() for pipe in Pipe}
    colours, places, shown, addresses = [], [], [], []
    for core, pipe, name, pc in zip(
        columns.core[first].tolist(),
        columns.pipe[first].tolist(),
        columns.name[first].tolist(),
        columns.pc[first].tolist(),
        strict=True,
    ):
        text = columns.names[name]
        scalar_memory = prepared.annotated and pipe == Pipe.SCALAR and text.startswith(SCALAR_MEMORY)
        lane = pipes[int(Pipe.SCALARLDST) if scalar_memory else pipe]
        colour = pipe_colour(text if text in FLAG_NAMES else lane.decode()).encode()
        addresses.append(b'","pc_addr":"0x%x' % pc)
        colours.append(b',"cname":"%s"' % colour)
        shown.append(b',"name":"%s"' % (b"0x%x" % pc if pipe == Pipe.CACHEMISS else names[name]))
        places.append(b',"pid":"%s","tid":"%s","ts":' % (cores[core], lane))
    return Fragments(
        prepared=prepared,
        code=Texts([b'{"args":{"code":"%s","detail":"' % json_text(stack) for stack in columns.stacks]),
        address=Texts(addresses),
        colour=Texts(colours),
        name=Texts(shown),
        place=Texts(places),
        static=inverse,
    )


def warp_colour(name: str) -> bytes:
    return simt_colour(name).encode()
