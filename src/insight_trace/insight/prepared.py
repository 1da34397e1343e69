"""Instruction columns made ready for writing: checked, ordered, and with their repeated parts told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from insight_trace.errors import InputError
from insight_trace.model import Instructions, Pipe
from insight_trace.recording.foreign import cross_core_of_text
from insight_trace.recording.kinds import CROSS_CORE_NAMES, FLAG_NAMES, SET_NAMES, WAIT_NAMES, Kind, kinds
from insight_trace.recording.pipes import core_order, units
from insight_trace.recording.stream import details_of, first_places, grouped, numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 1 << 13  # rows that are text at the same time
LARGEST_CYCLE = 1 << 40  # ten minutes of the fastest clock; sums over many instructions stay exact
_CORE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Extras(Struct, frozen=True, eq=False):
    """Facts of the vendor's logs that have no column of their own; -1 means "does not apply"."""

    gpr: NDArray[np.int32] | None = None  # live registers
    warp: NDArray[np.int16] | None = None  # SIMT warp
    fetched: NDArray[np.int64] | None = None  # cycle of the instruction fetch, with the overhead metric
    decoded: NDArray[np.int64] | None = None  # cycle at which the control unit handed it on


def chunks(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for begin in range(0, len(rows), CHUNK):
        yield rows[begin : begin + CHUNK]


def check_columns(instructions: Instructions) -> None:
    """Refuses columns that cannot be drawn, and says which row is wrong."""
    rows = len(instructions)
    for column in instructions.__struct_fields__:
        if column in ("cores", "names", "stacks", "operands"):
            continue
        if len(getattr(instructions, column)) != rows:
            raise InputError(
                f"column {column} has {len(getattr(instructions, column))} rows, start has {rows}",
                where="instructions",
            )
    if rows == 0 or not (instructions.pipe != Pipe.CACHEMISS).any():
        raise InputError(
            "there is no instruction to write",
            where="instructions",
            hint="a kernel that ran nothing has no trace; check its arguments",
        )
    start, end = instructions.start, instructions.end
    bad = np.flatnonzero((start < 0) | (end < start) | (end > LARGEST_CYCLE))
    if len(bad):
        row = int(bad[0])
        span = f"{int(instructions.start[row])}..{int(instructions.end[row])}"
        raise InputError(f"row {row} lasts {span} cycles", where="instructions")
    for index, table, label in (
        (instructions.core, instructions.cores, "core"),
        (instructions.name, instructions.names, "name"),
        (instructions.stack, instructions.stacks, "stack"),
    ):
        if int(index.max()) >= len(table):
            raise InputError(
                f"row {int(index.argmax())} names {label} {int(index.max())} of {len(table)}",
                where="instructions",
            )
    if int(instructions.pipe.max()) > max(Pipe) or int(instructions.pipe.min()) < 1:
        raise InputError("a row has a pipe that does not exist", where="instructions")
    for core in instructions.cores:
        if not _CORE_NAME.fullmatch(core):
            raise InputError(
                f"{core!r} cannot be a core's name, it becomes a directory's",
                where="instructions",
                hint="cores are called core<N>.cubecore<M> or core<N>.veccore<M>",
            )


class Prepared(Struct, frozen=True, eq=False, dict=True):
    """The columns and what every writer needs of them."""

    instructions: Instructions
    extras: Extras
    mhz: float
    opens_on: str = ""  # the core that Insight's Source page is to show first; "": as the vendor lists them

    @property
    def annotated(self) -> bool:
        """Whether this is a recording, whose slices say more than the vendor's exporter writes."""
        return self.instructions.operands is not None

    @cached_property
    def listed(self) -> list[int]:
        """Places in `cores` in the order in which tables list them: the Source page opens on the first."""
        places = list(range(len(self.cores)))
        if not self.opens_on:
            return places
        names = [self.instructions.cores[core] for core in self.cores]
        return sorted(places, key=lambda place: (names[place] != self.opens_on, core_order(names[place])))

    @cached_property
    def cores(self) -> list[int]:
        """Cores that ran something, in the order of their names."""
        present = np.flatnonzero(np.bincount(self.instructions.core)).tolist()
        return sorted(present, key=lambda core: self.instructions.cores[core])

    @cached_property
    def ordered(self) -> dict[int, NDArray[np.int64]]:
        """Rows of each core by end, then address, then start: the order in which the vendor draws."""
        columns = self.instructions
        found = {}
        for core in self.cores:
            rows = np.flatnonzero(columns.core == core)
            order = np.lexsort((columns.start[rows], columns.pc[rows], columns.end[rows]))
            found[core] = rows[order]
        return found

    @cached_property
    def drawn(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All rows in the order in which they are drawn, and the place of each row in it."""
        rows = np.concatenate([self.ordered[core] for core in self.cores])
        place = np.empty(len(rows), dtype=np.int64)
        place[rows] = np.arange(len(rows))
        return rows, place

    @cached_property
    def stood_still(self) -> NDArray[np.int64]:
        """Cycles in which the pipe of each row did nothing and waited for it.

        They count from when the row is at its pipe and all before it there has ended. A flag or a barrier that
        waits holds the pipe until its end. Nothing is counted twice: the sum of a pipe is at most its time.
        """
        columns = self.instructions
        still = np.zeros(len(columns), dtype=np.int64)
        if not (columns.issue < columns.start).any():
            return still  # a trace that does not know when instructions were issued
        kind = kinds(columns)
        holds = (kind == Kind.WAIT) | (kind == Kind.BARRIER)
        group = columns.core.astype(np.int64) * 256 + units(columns.pipe)
        counted = np.flatnonzero(kind != Kind.MISS)
        for _, places in grouped(group[counted]):
            rows = counted[places]
            rows = rows[np.argsort(columns.start[rows], kind="stable")]
            start, end = columns.start[rows], columns.end[rows]
            busy_until = np.concatenate(([0], np.maximum.accumulate(end)[:-1]))
            gap = start - np.maximum(busy_until, columns.issue[rows])
            held = np.where(holds[rows], end - np.maximum(start, busy_until), 0)
            still[rows] = np.maximum(gap, 0) + np.maximum(held, 0)
        return still

    @cached_property
    def is_wait(self) -> NDArray[np.bool_]:
        return self._named(WAIT_NAMES)

    @cached_property
    def is_set(self) -> NDArray[np.bool_]:
        return self._named(SET_NAMES)

    @cached_property
    def cross_core(self) -> dict[int, tuple[str, int]]:
        """Flags between cores by row: the lane and the sync id that their detail names."""
        rows = np.flatnonzero(self._named(CROSS_CORE_NAMES))
        found = {}
        for row, detail in zip(rows.tolist(), details_of(self.instructions.detail, rows), strict=True):
            named = cross_core_of_text(detail)
            if named:
                found[row] = named
        return found

    @cached_property
    def is_cross_core(self) -> NDArray[np.bool_]:
        mask = np.zeros(len(self.instructions), dtype=bool)
        mask[list(self.cross_core)] = True
        return mask

    @cached_property
    def is_instruction(self) -> NDArray[np.bool_]:
        """Rows that are neither a cache miss nor a user mark."""
        pipe = self.instructions.pipe
        return np.asarray((pipe != Pipe.CACHEMISS) & (pipe != Pipe.USERMARK))

    @cached_property
    def is_ordinary(self) -> NDArray[np.bool_]:
        """Instructions that are no flag."""
        return self.is_instruction & ~(self.is_set | self.is_wait | self.is_cross_core)

    @cached_property
    def has_flags(self) -> bool:
        return any(name in FLAG_NAMES for name in self.instructions.names)

    def _named(self, names: frozenset[str]) -> NDArray[np.bool_]:
        wanted = np.array([name in names for name in self.instructions.names], dtype=bool)
        named: NDArray[np.bool_] = wanted[self.instructions.name] & self.is_instruction
        return named

    @cached_property
    def static(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(first row of each distinct instruction, which one each row is): core, pipe, name and address."""
        columns = self.instructions
        addresses, place = self.addresses
        group = (columns.core.astype(np.int64) * len(columns.names) + columns.name) * 32 + columns.pipe
        _, inner = numbered(group)
        present, inverse = numbered(inner * len(addresses) + place)
        return first_places(inverse, len(present)), inverse

    @cached_property
    def addresses(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Each address once, in ascending order, and which of them each row has."""
        pc = self.instructions.pc
        lowest = pc.min()
        if int(pc.max()) - int(lowest) >= 1 << 62:
            found = np.unique(pc, return_inverse=True)
            return found[0], found[1]
        present, place = numbered((pc - lowest).astype(np.int64))
        return present.astype(np.uint64) + lowest, place
