"""A slow second opinion on what orders what on one core: every pair of instructions, and reachability in a graph.

It shares nothing with the engine's checker: no vector clocks, no shadow memory. A set of predecessors is a Python
integer with a bit per instruction that has ended, and conflicts are found by comparing byte ranges of all pairs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np

from insight_trace.model import Instructions
from insight_trace.recording.operands import NONE, byte_ranges, operand_rows

# abi.hpp PipeId
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "FIX")
_READS, _WRITES = 1, 2
_WINDOW = 16
_LANES = {"SCALAR": "S", "VECTOR": "V", "CUBE": "M", "FIXP": "FIX", "ALL": "ALL"}


@dataclass(frozen=True)
class Sync:
    """A flag or barrier of one row."""

    kind: str  # set, wait or barrier
    source: str
    target: str
    event: int = 0


@dataclass(frozen=True)
class Stream:
    """One core's instructions, as far as order goes."""

    pipes: tuple[str, ...]
    syncs: tuple[Sync | None, ...]
    lines: tuple[str, ...]  # file:line
    conflicts: tuple[tuple[int, int], ...]  # pairs that depend on each other, the earlier first


def stream_of(instructions: Instructions, target: str) -> Stream:
    """The only core of a run; conflicts are decided here, once."""
    from insight_trace.model import Pipe

    operands = instructions.operands
    assert operands is not None
    names = [instructions.names[n] for n in instructions.name]
    pipes, syncs = [], []
    for row, name in enumerate(names):
        value = int(operands.value[row])
        lane = Pipe(instructions.pipe[row]).name
        pipe = _LANES.get(lane, lane if lane.startswith("MTE") else "V")
        sync = None
        if name in ("SET_FLAG", "WAIT_FLAG"):
            kind = "set" if name == "SET_FLAG" else "wait"
            sync = Sync(kind, PIPES[value & 0xFF], PIPES[value >> 8 & 0xFF], value >> 16 & 7)
            pipe = sync.source if kind == "set" else sync.target
        elif name == "BAR":
            sync = Sync("barrier", PIPES[value], PIPES[value])
            pipe = PIPES[value]
        pipes.append(pipe)
        syncs.append(sync)
    # what a tile op does inside has no line of the kernel's own
    lines = tuple(
        instructions.stacks[s].split("\n")[0] if call == NONE or sync is None else ""
        for s, call, sync in zip(instructions.stack, operands.call.tolist(), syncs, strict=True)
    )
    return Stream(tuple(pipes), tuple(syncs), lines, _conflicts(instructions, pipes, target))


def _conflicts(instructions: Instructions, pipes: list[str], target: str) -> tuple[tuple[int, int], ...]:
    operands = instructions.operands
    assert operands is not None
    touched: defaultdict[int, list[tuple[int, int, int, int]]] = defaultdict(
        list
    )  # memory -> row, role, begin, end
    for row in range(len(instructions)):
        for place in operand_rows(operands, row):
            footprint = operands.footprints[operands.rows["footprint"][place]]
            if not footprint["exact"]:
                continue
            ranges = byte_ranges(operands, place)
            for begin, end in zip(ranges.begin.tolist(), ranges.end.tolist(), strict=True):
                touched[int(footprint["memory"])].append((row, int(footprint["role"]), begin, end))
    number: dict[int, int] = {}
    seen: defaultdict[str, int] = defaultdict(int)
    for row, pipe in enumerate(pipes):
        if operands.count[row] or instructions.names[instructions.name[row]] == "WAIT_FLAG":
            seen[pipe] += 1
        number[row] = seen[pipe]
    pairs = set()
    for accesses in touched.values():
        row, role, begin, end = (np.array(column, np.int64) for column in zip(*accesses, strict=True))
        for i in range(len(row)):
            meets = (begin < end[i]) & (end > begin[i]) & (row > row[i]) & (((role | role[i]) & _WRITES) > 0)
            for later in row[meets].tolist():
                pairs.add((int(row[i]), later))
    calls = operands.call.tolist()
    same = {
        pair
        for pair in pairs
        if calls[pair[0]] == calls[pair[1]] != NONE and pipes[pair[0]] == pipes[pair[1]]
    }
    return tuple(sorted(pair for pair in pairs - same if _depends(*pair, pipes, number, target)))


def _depends(first: int, second: int, pipes: list[str], number: dict[int, int], target: str) -> bool:
    """Whether two instructions on the same bytes need something between them."""
    if pipes[first] != pipes[second]:
        return True
    if pipes[first] in ("S", "M") or (pipes[first] == "V" and target == "a5"):
        return False
    return number[second] - number[first] <= _WINDOW


def unordered(stream: Stream, left_out: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """Dependent pairs that nothing orders, when the syncs of these rows do not happen."""
    before = _ended_before(stream, left_out)
    return [(i, j) for i, j in stream.conflicts if not before[j] >> i & 1]


def _ended_before(stream: Stream, left_out: frozenset[int]) -> list[int]:
    """For each row a set of rows, as bits: those that have ended when it starts."""
    before = [0] * len(stream.pipes)
    given: defaultdict[str, int] = defaultdict(int)  # taken up by a pipe so far
    gate: defaultdict[str, int] = defaultdict(int)  # ended before the next instruction of a pipe starts
    issued = 0  # ended before the scalar unit issues the next instruction
    flags: defaultdict[tuple[str, str, int], deque[int]] = defaultdict(deque)
    waiting: defaultdict[str, deque[tuple[int, int]]] = defaultdict(deque)  # row, issued

    def run(pipe: str) -> None:
        while waiting[pipe]:
            row, known = waiting[pipe][0]
            if not step(row, pipe, known):
                return
            waiting[pipe].popleft()

    def step(row: int, pipe: str, known: int) -> bool:
        nonlocal issued
        gate[pipe] |= known
        sync = stream.syncs[row] if row not in left_out else None
        if sync is not None and sync.kind == "wait":
            key = (sync.source, sync.target, sync.event)
            if not flags[key]:
                return False
            learned = flags[key].popleft()
            gate[pipe] |= learned
            if pipe == "S":
                issued |= learned
        before[row] = gate[pipe]
        if sync is not None and sync.kind == "set":
            flags[sync.source, sync.target, sync.event].append(gate[pipe] | given[pipe])
            if sync.target != "S" and sync.target != pipe:
                run(sync.target)
        elif sync is not None and sync.kind == "barrier":
            gate[pipe] |= given[pipe]
        given[pipe] |= 1 << row
        return True

    for row, pipe in enumerate(stream.pipes):
        if pipe == "ALL":
            if row not in left_out:
                for each in PIPES:
                    issued |= gate[each] | given[each]
                gate["S"] |= issued
            continue
        if pipe == "S":
            step(row, "S", issued)
            continue
        waiting[pipe].append((row, issued))
        run(pipe)
    return before


def sync_groups(stream: Stream) -> list[tuple[tuple[str, ...], frozenset[int]]]:
    """Lines of flags that belong together, or of one barrier, and all rows of these lines."""
    parent: dict[str, str] = {}

    def root(line: str) -> str:
        while parent.setdefault(line, line) != line:
            line = parent[line]
        return line

    sets: defaultdict[tuple[str, str, int], deque[str]] = defaultdict(deque)
    waits: defaultdict[tuple[str, str, int], deque[str]] = defaultdict(deque)
    rows_of: defaultdict[str, set[int]] = defaultdict(set)
    for row, sync in enumerate(stream.syncs):
        if sync is None or not stream.lines[row]:
            continue
        line = stream.lines[row]
        rows_of[line].add(row)
        root(line)
        if sync.kind == "barrier":
            continue
        key = (sync.source, sync.target, sync.event)
        mine, others = (sets, waits) if sync.kind == "set" else (waits, sets)
        if others[key]:
            parent[root(line)] = root(others[key].popleft())
        else:
            mine[key].append(line)
    together: defaultdict[str, list[str]] = defaultdict(list)
    for line in rows_of:
        together[root(line)].append(line)
    return [
        (tuple(lines), frozenset(row for line in lines for row in rows_of[line]))
        for lines in together.values()
    ]
