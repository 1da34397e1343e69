"""A slow second opinion on what orders what: every pair of instructions of all cores, and reachability in a graph.

It shares nothing with the engine's checker: no vector clocks, no shadow memory. A set of predecessors is a Python
integer with a bit per instruction that has ended, and conflicts are found by comparing byte ranges of all pairs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from insight_trace.chips import load_chip
from insight_trace.model import Instructions, Operands
from insight_trace.recording.operands import MEMORIES, NONE, byte_ranges, operand_rows

# abi.hpp PipeId
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "FIX")
_WRITES = 2
_LANES = {"SCALAR": "S", "VECTOR": "V", "CUBE": "M", "FIXP": "FIX", "ALL": "ALL"}


Lane = tuple[int, str]  # a core and its pipe
Key = tuple[int, str, str, int]  # a flag: core, pipes, event


@dataclass(frozen=True)
class Sync:
    """A flag or barrier of one row."""

    kind: str  # set, wait, barrier; cross, intra and take between cores; publish and observe in global memory
    source: str = "S"
    target: str = "S"
    event: int = 0
    mode: int = 0


@dataclass(frozen=True)
class Who:
    """A core, as its name says."""

    block: int
    cube: bool
    lane: int


@dataclass(frozen=True)
class Stream:
    """The instructions of a run, as far as order goes."""

    pipes: tuple[Lane, ...]
    syncs: tuple[Sync | None, ...]
    lines: tuple[str, ...]  # file:line
    conflicts: tuple[tuple[int, int], ...]  # pairs that depend on each other, the earlier first
    cores: tuple[Who, ...]
    units: tuple[tuple[int, frozenset[int]], ...]  # of each row: its unit flag, blocks of the accumulator


def _who(name: str) -> Who:
    block, _, kind = name.partition(".")
    return Who(int(block.removeprefix("core")), kind.startswith("cube"), int(kind[-1]))


def stream_of(instructions: Instructions, target: str) -> Stream:
    """All cores of a run; conflicts are decided here, once."""
    from insight_trace.model import Pipe

    operands = instructions.operands
    assert operands is not None
    names = [instructions.names[n] for n in instructions.name]
    pipes: list[Lane] = []
    syncs = []
    for row, name in enumerate(names):
        value = int(operands.value[row])
        lane = Pipe(instructions.pipe[row]).name
        pipe = _LANES.get(lane, lane if lane.startswith("MTE") else "V")
        sync = _sync(name, value)
        if sync is not None and sync.kind == "set":
            pipe = sync.source
        elif sync is not None and sync.kind in ("wait", "barrier"):
            pipe = sync.target
        elif name == "WAIT_FLAG_DEV" and target != "a5":
            pipe = "S"  # there the whole core waits
        pipes.append((int(instructions.core[row]), pipe))
        syncs.append(sync)
    # what a tile op does inside has no line of the kernel's own
    lines = tuple(
        instructions.stacks[s].split("\n")[0] if call == NONE or sync is None else ""
        for s, call, sync in zip(instructions.stack, operands.call.tolist(), syncs, strict=True)
    )
    cores = tuple(map(_who, instructions.cores))
    conflicts = _conflicts(instructions, pipes, cores, target)
    units = tuple(_unit(operands, row) for row in range(len(names)))
    return Stream(tuple(pipes), tuple(syncs), lines, conflicts, cores, units)


def _unit(operands: Operands, row: int) -> tuple[int, frozenset[int]]:
    geometry = operands.geometry[row]
    flag = 0 if geometry == NONE else int(operands.geometries["reserved2"][geometry])
    blocks: set[int] = set()
    if flag:
        for place in operand_rows(operands, row):
            if operands.footprints[operands.rows["footprint"][place]]["memory"] == MEMORIES.index("L0C"):
                ranges = byte_ranges(operands, place)
                for begin, end in zip(ranges.begin.tolist(), ranges.end.tolist(), strict=True):
                    blocks.update(range(begin // 512, (end + 511) // 512))
    return flag, frozenset(blocks)


def _sync(name: str, value: int) -> Sync | None:
    if name in ("SET_FLAG", "WAIT_FLAG"):
        kind = "set" if name == "SET_FLAG" else "wait"
        return Sync(kind, PIPES[value & 0xFF], PIPES[value >> 8 & 0xFF], value >> 16 & 7)
    if name == "BAR":
        return Sync("barrier", PIPES[value], PIPES[value])
    if name == "SET_CROSS_CORE":
        return Sync("cross", event=value >> 8 & 15, mode=value >> 4 & 3)
    if name == "SET_INTRA_BLOCK":
        return Sync("intra", event=value)
    if name in ("WAIT_FLAG_DEV", "WAIT_INTRA_BLOCK"):
        return Sync("take", event=value)
    if name in ("ST_DEV", "ST_ATOMIC", "LD_DEV"):
        return Sync("observe" if name == "LD_DEV" else "publish", event=value)
    return None


def _owner(cores: tuple[Who, ...], core: int, owner: int) -> int:
    """The core whose memory an operand lies in."""
    if owner == 0:
        return core
    for number, who in enumerate(cores):
        mine = who.block == cores[core].block
        if mine and (who.cube if owner == 1 else not who.cube and who.lane == owner - 2):
            return number
    return core


def _conflicts(
    instructions: Instructions, pipes: list[Lane], cores: tuple[Who, ...], target: str
) -> tuple[tuple[int, int], ...]:
    operands = instructions.operands
    assert operands is not None
    gm = MEMORIES.index("GM")
    # memory and its core -> row, role, begin, end
    touched: defaultdict[tuple[int, int], list[tuple[int, int, int, int]]] = defaultdict(list)
    for row in range(len(instructions)):
        for place in operand_rows(operands, row):
            footprint = operands.footprints[operands.rows["footprint"][place]]
            if not footprint["exact"]:
                continue
            memory = int(footprint["memory"])
            owner = 0 if memory == gm else _owner(cores, pipes[row][0], int(footprint["owner"]))
            ranges = byte_ranges(operands, place)
            for begin, end in zip(ranges.begin.tolist(), ranges.end.tolist(), strict=True):
                touched[memory, owner].append((row, int(footprint["role"]), begin, end))
    number: dict[int, int] = {}
    seen: defaultdict[Lane, int] = defaultdict(int)
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
    adds = [g != NONE and bool(operands.geometries["reserved"][g]) for g in operands.geometry.tolist()]
    exempt = {
        (a, b)
        for a, b in pairs
        if (calls[a] == calls[b] != NONE and pipes[a] == pipes[b])  # inside a tile op
        or (adds[a] and adds[b])  # two stores that add
    }
    depths = _depths(target)
    return tuple(
        sorted(pair for pair in pairs - exempt if _depends(*pair, pipes, number, cores, target, depths))
    )


def _depths(target: str) -> dict[bool, dict[str, int]]:
    """How many instructions the queue of a pipe holds, on cube cores and on vector cores."""
    chip = load_chip(target=target)
    pipes = ("V", "M", "MTE1", "MTE2", "MTE3", "FIX")
    vector = {pipe: int(chip.value(f"queue.{pipe.lower()}")) for pipe in pipes}
    cube = {pipe: int(chip.value(f"queue.{pipe.lower()}_cube")) for pipe in ("MTE2", "MTE3")}
    return {False: vector, True: {**vector, **cube}}


def _depends(
    first: int, second: int, pipes: list[Lane], number: dict[int, int], cores: Sequence[Who], target: str,
    depths: dict[bool, dict[str, int]],
) -> bool:  # fmt: skip
    """Whether two instructions on the same bytes need something between them."""
    (core, pipe), (other_core, other_pipe) = pipes[first], pipes[second]
    cube = cores[core].cube
    if core != other_core:
        return not pipe == other_pipe == "S"  # words that cores poll
    if pipe != other_pipe:
        return True
    if pipe in ("S", "M") or (pipe == "V" and target == "a5"):
        return False
    return number[second] - number[first] <= depths[cube][pipe]


def unordered(stream: Stream, left_out: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """Dependent pairs that nothing orders, when the syncs of these rows do not happen."""
    before = _Walk(stream, left_out).run()
    return [(i, j) for i, j in stream.conflicts if not before[j] >> i & 1]


class _Walk:
    """For each row a set of rows, as bits: those that have ended when it starts."""

    def __init__(self, stream: Stream, left_out: frozenset[int]) -> None:
        self.stream, self.left_out = stream, left_out
        self.before = [0] * len(stream.pipes)
        self.given: defaultdict[Lane, int] = defaultdict(int)  # taken up by a pipe so far
        self.gate: defaultdict[Lane, int] = defaultdict(int)  # ended before a pipe's next instruction starts
        self.issued: defaultdict[int, int] = defaultdict(
            int
        )  # ended before a core's scalar unit issues the next
        self.flags: defaultdict[Key, deque[int]] = defaultdict(deque)
        self.waiting: defaultdict[Lane, deque[tuple[int, int]]] = defaultdict(deque)  # row, issued
        self.crossed: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)  # core, flag
        self.arrived: defaultdict[tuple[str, int], defaultdict[int, deque[int]]] = defaultdict(
            lambda: defaultdict(deque)
        )
        self.published: defaultdict[int, int] = defaultdict(int)
        self.units: dict[
            tuple[int, int], tuple[str, int]
        ] = {}  # core, block: who flipped it last, what had ended

    def run(self) -> list[int]:
        for row, (core, pipe) in enumerate(self.stream.pipes):
            if pipe == "ALL":
                if row not in self.left_out:
                    for each in PIPES:
                        self.issued[core] |= self.gate[core, each] | self.given[core, each]
                    self.gate[core, "S"] |= self.issued[core]
            elif pipe == "S":
                self.step(row, (core, "S"), self.issued[core])
            else:
                self.waiting[core, pipe].append((row, self.issued[core]))
                self.go_on((core, pipe))
        return self.before

    def go_on(self, lane: Lane) -> None:
        while self.waiting[lane]:
            row, known = self.waiting[lane].popleft()
            if not self.step(row, lane, known):
                self.waiting[lane].appendleft((row, known))
                return

    def learn(self, lane: Lane, learned: int) -> None:
        self.gate[lane] |= learned
        if lane[1] == "S":
            self.issued[lane[0]] |= learned

    def step(self, row: int, lane: Lane, known: int) -> bool:
        core = lane[0]
        self.gate[lane] |= known
        sync = self.stream.syncs[row] if row not in self.left_out else None
        kind = sync.kind if sync else ""
        if sync and kind in ("wait", "take"):
            raised = (
                self.flags[core, sync.source, sync.target, sync.event]
                if kind == "wait"
                else self.crossed[core, sync.event]
            )
            if not raised:
                return False
            self.learn(lane, raised.popleft())
        if sync and kind == "observe":
            self.learn(lane, self.published[sync.event])
        flag, blocks = self.stream.units[row]
        for block in blocks if lane[1] in ("M", "FIX") else ():
            who, knew = self.units.get((core, block), (lane[1], 0))
            if who != lane[1]:
                self.gate[lane] |= knew
        self.before[row] = self.gate[lane]
        if kind in ("barrier", "cross", "intra"):
            self.gate[lane] |= self.given[lane]
        self.given[lane] |= 1 << row
        ended = self.gate[lane] | self.given[lane]
        if flag == 3 and lane[1] in ("M", "FIX"):
            self.units.update({(core, block): (lane[1], ended) for block in blocks})
        if sync and kind == "set":
            self.flags[core, sync.source, sync.target, sync.event].append(ended)
            if sync.target not in ("S", lane[1]):
                self.go_on((core, sync.target))
        elif sync and kind == "publish":
            self.published[sync.event] |= ended
        elif sync and kind in ("cross", "intra"):
            self.raise_for_others(core, sync, ended)
            for other in [lane for lane in self.waiting if self.waiting[lane]]:
                self.go_on(other)
        return True

    def raise_for_others(self, core: int, sync: Sync, ended: int) -> None:
        cores = self.stream.cores
        me = cores[core]
        block = [n for n, who in enumerate(cores) if who.block == me.block]
        if sync.kind == "intra":
            for n in block:
                if me.cube and not cores[n].cube and cores[n].lane == sync.event // 16:
                    self.crossed[n, sync.event % 16].append(ended)
                elif not me.cube and cores[n].cube:
                    self.crossed[n, sync.event % 16 + 16 * me.lane].append(ended)
            return
        if sync.mode == 2 and me.cube:
            for n in block:
                if not cores[n].cube:
                    self.crossed[n, sync.event].append(ended)
            return
        alike = [n for n, who in enumerate(cores) if who.cube == me.cube]
        senders = alike if sync.mode == 0 else [n for n in alike if n in block]
        receivers = [n for n in block if cores[n].cube] if sync.mode == 2 else senders
        met = self.arrived[f"{sync.mode} {me.cube} {-1 if sync.mode == 0 else me.block}", sync.event]
        met[core].append(ended)
        if all(met[n] for n in senders):
            together = 0
            for n in senders:
                together |= met[n].popleft()
            for n in receivers:
                self.crossed[n, sync.event].append(together)


def sync_groups(stream: Stream) -> list[tuple[tuple[str, ...], frozenset[int]]]:
    """Lines of flags that belong together, or of one barrier, and all rows of these lines."""
    parent: dict[str, str] = {}

    def root(line: str) -> str:
        while parent.setdefault(line, line) != line:
            line = parent[line]
        return line

    sets: defaultdict[Key, deque[str]] = defaultdict(deque)
    waits: defaultdict[Key, deque[str]] = defaultdict(deque)
    between: dict[int, str] = {}  # a flag between cores: one of its lines
    rows_of: defaultdict[str, set[int]] = defaultdict(set)
    for row, sync in enumerate(stream.syncs):
        if sync is None or not stream.lines[row] or sync.kind in ("publish", "observe"):
            continue
        line = stream.lines[row]
        rows_of[line].add(row)
        root(line)
        if sync.kind in ("cross", "intra", "take"):
            flag = sync.event % 16
            parent[root(line)] = root(between.setdefault(flag, line))
        if sync.kind not in ("set", "wait"):
            continue
        key = (stream.pipes[row][0], sync.source, sync.target, sync.event)
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
