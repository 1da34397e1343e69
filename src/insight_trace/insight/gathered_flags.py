"""Flags as they are read: begins by column, ends by id."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from insight_trace.recording.kinds import CROSS_CORE_NAMES, CROSS_CORE_SETS, FLAG_NAMES, SET_NAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

# whether a flag of this name sets, or waits
SETTING = {name: name in SET_NAMES or name in CROSS_CORE_SETS for name in FLAG_NAMES | CROSS_CORE_NAMES}


class Table(defaultdict[Any, int]):
    """Numbers values in the order in which they first occur."""

    def __init__(self) -> None:
        super().__init__()
        self.default_factory = self.__len__


class Flags:
    """Begins as rows; which of them began and ended under which id, for WAITs and for SETs."""

    def __init__(self) -> None:
        # tables of their own: a trace numbers the texts of slices first
        self.cores, self.lanes, self.names = Table(), Table(), Table()
        self.stacks, self.addresses = Table(), Table()
        self.detail: list[str] = []
        self.begun: tuple[dict[Any, int], dict[Any, int]] = ({}, {})
        self.ended: tuple[dict[Any, float], dict[Any, float]] = ({}, {})
        self.lone: list[tuple[int, float]] = []  # whose id was used again
        self.halves = 0
        self._columns: list[list[NDArray[Any]]] = []

    def __len__(self) -> int:
        return len(self.detail)

    def tables(self) -> tuple[Table, ...]:
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
