"""Throughput between global memory and the cores, from the data movers' logs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from insight_trace.insight.camodel.files import lines_of
from insight_trace.insight.throughput import (
    LONGEST,
    MEGABYTES_PER_SECOND,
    READS,
    SERIES,
    WRITES,
    counters_of,
)
from insight_trace.model import Counter

_INTERFACE = re.compile(r"\[info\] ([0-9]+): (?:\S*?\.)?([A-Za-z0-9_]*?)([RW])IF(?:\.\S*)? (.*)")
_PAIR = re.compile(r"(\w+): ([0-9]+)(?=[,.]|$)")


@dataclass(slots=True)
class _Move:
    series: int = -1
    requests: dict[int, tuple[np.float32, float]] = field(default_factory=dict)  # id -> time, bytes


def _series(unit: str, writes: bool) -> int:
    if unit == "L1":
        return 1 if writes else 4
    if unit.startswith("UB"):
        return 0 if writes else 3
    return READS if writes else WRITES


def _moves(path: Path, mhz: float) -> dict[int, _Move]:
    moves: dict[int, _Move] = {}
    for line in lines_of([path]):
        match = _INTERFACE.match(line)
        if match is None:
            continue
        values = {key: int(value) for key, value in _PAIR.findall(match[4])}
        if "instr_id" not in values:
            continue
        unit, writes = match[2], match[3] == "W"
        if unit != "B":
            move = moves.setdefault(values["instr_id"], _Move())
            if move.series < 0:
                move.series = _series(unit, writes)
            continue
        request = values.get("req_id", values.get("gid"))
        if request is None:
            continue
        move = moves.setdefault(values["instr_id"], _Move())
        time, size = np.float32(int(match[1]) / mhz), float(values.get("size", 0))
        before = move.requests.get(request)
        if before is not None:
            time, size = max(before[0], time), before[1] or size
        move.requests[request] = time, size
    return moves


def read_throughput(logs: list[Path], mhz: float) -> tuple[Counter, ...]:
    """One point of every series for each microsecond from 0, and a closing zero."""
    points: dict[tuple[int, int], float] = {}
    last = -1
    for path in logs:
        for move in _moves(path, mhz).values():
            for time, size in move.requests.values():
                micro = int(time)
                if micro > LONGEST:
                    continue
                last = max(last, micro)
                if move.series < 0:
                    continue
                moved = size * MEGABYTES_PER_SECOND
                points[micro, move.series] = points.get((micro, move.series), 0.0) + moved
                total = READS if move.series < READS else WRITES
                if move.series not in (READS, WRITES):
                    points[micro, total] = points.get((micro, total), 0.0) + moved
    if last < 0:
        return ()
    values = np.zeros((len(SERIES), last + 2))
    for (micro, series), value in points.items():
        values[series, micro] = value
    return counters_of(values)
