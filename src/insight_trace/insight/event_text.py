"""The parts of an event's text that repeat: per call stack, and per distinct instruction."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from insight_trace.insight.encoding import json_text, json_texts, pick, texts
from insight_trace.insight.lanes import SCALAR_MEMORY, pipe_colour, simt_colour
from insight_trace.insight.prepared import Prepared
from insight_trace.model import Pipe, Stall
from insight_trace.recording.kinds import FLAG_NAMES
from insight_trace.recording.stream import details_of

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
    code: NDArray[Any]  # by stack: everything up to the detail
    address: NDArray[Any]  # by distinct instruction: from the detail's end to the address
    colour: NDArray[Any]  # `,"cname":"…"`
    name: NDArray[Any]  # `,"name":"…"`
    place: NDArray[Any]  # `,"pid":"…","tid":"…","ts":`
    static: NDArray[np.int64]

    def details(self, rows: NDArray[np.int64]) -> list[bytes]:
        return json_texts(details_of(self.prepared.instructions.detail, rows))

    def closing(self, rows: NDArray[np.int64]) -> list[bytes] | bytes:
        """The end of `args`, with the bytes moved where they are known, and what a recording knows beyond."""
        if self.prepared.annotated:
            return self._annotated(rows)
        moved = self.prepared.instructions.process_bytes[rows]
        known = np.flatnonzero(moved > 0)
        if len(known) == 0:
            return _NO_BYTES
        found = [_NO_BYTES] * len(rows)
        for row, count in zip(known.tolist(), moved[known].tolist(), strict=True):
            found[row] = b'","process_bytes":"%d"}' % count
        return found

    def _annotated(self, rows: NDArray[np.int64]) -> list[bytes]:
        """Exact cycles, where Insight rounds to nanoseconds, what the row waited for, and the rate of a transfer."""
        columns = self.prepared.instructions
        lasting = columns.end[rows] - columns.start[rows]
        waited = np.where(columns.stall[rows] > 0, columns.start[rows] - columns.issue[rows], 0)
        reasons = self._reasons
        found = []
        for row, cycles, start, moved, wait in zip(
            rows.tolist(),
            lasting.tolist(),
            columns.start[rows].tolist(),
            columns.process_bytes[rows].tolist(),
            waited.tolist(),
            strict=True,
        ):
            text = (
                b'","process_bytes":"%d","bytes_per_cycle":%.4g' % (moved, moved / max(1, cycles))
                if moved > 0
                else b'"'
            )
            text += b',"cycles":%d,"start_cycle":%d' % (cycles, start)
            if wait > 0:
                text += b',"waited_cycles":%d,"waited_for":"%s"' % (wait, reasons[row])
            found.append(text + b"}")
        return found

    @cached_property
    def _reasons(self) -> list[bytes]:
        """By row, in words: what it waited for between its issue and its start."""
        columns = self.prepared.instructions
        named = [b"", *(pipe.name.encode() for pipe in Pipe)]
        texts_ = [_WAITED.get(Stall(stall), b"") for stall in range(max(Stall) + 1)]
        found = [texts_[stall] for stall in columns.stall.tolist()]
        flagged = np.flatnonzero(
            (columns.partner >= 0) & np.isin(columns.stall, (Stall.FLAG, Stall.CROSS_CORE))
        )
        for row, other in zip(flagged.tolist(), columns.partner[flagged].tolist(), strict=True):
            found[row] = b"a flag of " + named[columns.pipe[other]]
            if columns.core[other] != columns.core[row]:
                found[row] += b" of " + json_text(columns.cores[columns.core[other]])
        return found

    # The same parts put together as they follow each other: fewer pieces make faster text.

    @cached_property
    def _to_durations(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """From the detail's end to the duration of a slice, and which of these texts each row has."""
        plain = np.asarray(self.address + _NO_BYTES + self.colour + b',"dur":')
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
        return np.concatenate((plain, texts(moving))), which

    @cached_property
    def _colour_to_duration(self) -> NDArray[Any]:
        return np.asarray(self.colour + b',"dur":')

    @cached_property
    def slice_end(self) -> NDArray[Any]:
        """From the duration of a slice to its time."""
        return np.asarray(self.name + b',"ph":"X"' + self.place)

    @cached_property
    def flag_parts(self) -> tuple[NDArray[Any], ...]:
        """Of a flag: from the detail to the id, on to the begin, on to the second id, on to the end."""
        return (
            self.address + _NO_BYTES + self.colour + b',"id":"',
            b'"' + self.name + b',"ph":"B"' + self.place,
            b'},{"args":{}' + self.colour + b',"id":"',
            b'"' + self.name + b',"ph":"E"' + self.place,
        )

    @cached_property
    def flow_parts(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Of an arrow's start and end: from the id to the time."""
        return (
            b'","name":"flow","ph":"s"' + self.place,
            b'","name":"flow","ph":"t"' + self.place,
        )

    def slice_head(self, rows: NDArray[np.int64]) -> list[list[bytes]]:
        """A slice from its opening brace to its duration."""
        columns = self.prepared.instructions
        if self.prepared.annotated:
            return [*self.head(rows), pick(self._colour_to_duration, self.static[rows])]  # type: ignore[list-item]
        table, which = self._to_durations
        middle = pick(table, which[rows])
        return [pick(self.code, columns.stack[rows]), self.details(rows), middle]

    def head(self, rows: NDArray[np.int64]) -> list[list[bytes] | bytes]:
        """`args` of instruction events, opening brace included."""
        columns = self.prepared.instructions
        return [
            pick(self.code, columns.stack[rows]),
            self.details(rows),
            pick(self.address, self.static[rows]),
            self.closing(rows),
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
        code=texts([b'{"args":{"code":"%s","detail":"' % json_text(stack) for stack in columns.stacks]),
        address=texts(addresses),
        colour=texts(colours),
        name=texts(shown),
        place=texts(places),
        static=inverse,
    )


def warp_colour(name: str) -> bytes:
    return simt_colour(name).encode()
