"""Starts and ends of the same execution found in two logs."""

from __future__ import annotations

from typing import NamedTuple

from insight_trace.insight.camodel.lines import Line, active_threads

_MICRO_OPERATION_GAP = 8  # ends this close belong to one instruction


class Executed(NamedTuple):
    """One execution."""

    start: int
    end: int
    line: Line  # as it was issued
    detail: str


def _merged(start: Line, end: Line) -> Executed:
    threads = active_threads(end.detail)
    detail = start.detail if threads is None else f"{start.detail}, [threadNum:{threads}]"
    return Executed(start.tick, end.tick, start, detail)


def _collapsed(lines: list[Line], near: range) -> list[Line]:
    """Lines where one that follows the kept one by a distance in `near` takes its place."""
    kept = [lines[0]]
    for line in lines[1:]:
        if line.tick - kept[-1].tick in near:
            kept[-1] = line
        else:
            kept.append(line)
    return kept


def _fitted(starts: list[Line], ends: list[Line]) -> tuple[list[Line], list[Line]]:
    """Uneven lists made even: micro operations count once, what is left over is incomplete data."""
    if len(ends) > len(starts):
        ends = _collapsed(ends, range(0, _MICRO_OPERATION_GAP + 1))
    if len(ends) < len(starts):
        starts = _collapsed(starts, range(1, 2))
    return starts, ends


def pair_by_address(starts: dict[int, list[Line]], ends: dict[int, list[Line]]) -> list[Executed]:
    """The n-th start of an address belongs to its n-th end. Ordered by address and start."""
    found = []
    for pc, begun in starts.items():
        ended = ends.get(pc)
        if not ended:
            continue
        if len(begun) != len(ended):
            begun, ended = _fitted(begun, ended)
        found += [
            _merged(start, end) for start, end in zip(begun, ended, strict=False) if start.tick <= end.tick
        ]
    return sorted(found, key=lambda each: (each.line.pc, each.start))


def pair_by_id(starts: dict[int, list[Line]], ends: dict[int, list[Line]]) -> list[Executed]:
    """Ascend 950 numbers its instructions. Ordered by that number."""
    found = []
    for number in sorted(starts):
        for start, end in zip(starts[number], ends.get(number, []), strict=False):
            if start.tick <= end.tick:
                found.append(_merged(start, end))
    return found
