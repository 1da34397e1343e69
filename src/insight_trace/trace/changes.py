"""Changes of a kernel that a machine can try on its recording: what is different, and at which line.

Each is what a person would do to the source: one more buffer, flags where a barrier stands, one transfer for many, the first
load before the other descriptors are read. Retiming (retime.py) says what a run would take then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from insight_trace.chips import Chip, find_chip
from insight_trace.model import Pipe
from insight_trace.recording.flag_pairs import flag_at
from insight_trace.recording.frames import user_frames
from insight_trace.recording.kinds import Kind
from insight_trace.recording.operands import (
    MEMORIES,
    READS,
    WRITES,
    all_operands,
    instruction_of_operands,
    operand_rows,
    relative_ranges,
    touched_bytes,
)
from insight_trace.recording.pipes import VECTOR_ARITHMETIC, pipe_name
from insight_trace.trace.retime import Change, Retiming
from insight_trace.trace.work import path_of

if TYPE_CHECKING:
    from insight_trace.trace.stats import Stats

# Bytes from which a transfer reaches the bandwidth of its path (CANN 8.5 best practices).
GOOD_TRANSFER = 16384
# A wait of the first for the second ends when a buffer is free: one more of them makes it shorter.
FREES_A_BUFFER = frozenset(
    (int(first), int(second))
    for first, second in (
        (Pipe.MTE2, Pipe.VECTOR),
        (Pipe.MTE2, Pipe.MTE3),
        (Pipe.MTE2, Pipe.MTE1),
        (Pipe.MTE1, Pipe.CUBE),
        (Pipe.VECTOR, Pipe.MTE3),
        (Pipe.CUBE, Pipe.FIXP),
    )
)
_MEMORY_KEYS = {
    "UB": "memory.ub",
    "L1": "memory.l1",
    "L0A": "memory.l0a",
    "L0B": "memory.l0b",
    "L0C": "memory.l0c",
}
_SCALAR = (int(Pipe.SCALAR), int(Pipe.SCALARLDST))
_DESCRIPTOR_BITS = 7  # one takes 128 bytes
_TABLE_BITS = 13  # all of them lie together
_MOST_RANGES = 3000  # different ones whose overlaps are worked out
_COLD = 100_000  # thousandths of a cycle from which on a scalar load waits for memory


class Idea(Struct, frozen=True):
    """One change, and what there is to say about it."""

    topic: str  # buffer, barrier, scalar-wait, transfer, prologue, hoist, bank, lanes
    change: Change
    frame: str  # the line to change
    rows: tuple[int, ...]  # what it is about, in time
    pipe: str = ""
    source: str = ""  # the pipe that is waited for
    events: tuple[str, ...] = ()
    count: int = 0
    bytes: int = 0  # more of memory that it takes
    memory: str = ""
    frames: tuple[str, ...] = ()  # further lines
    fits: bool = True


def ideas(retiming: Retiming, figures: Stats) -> list[Idea]:
    """Everything that can be tried, in no order."""
    trace = retiming.trace
    frames = user_frames(trace.instructions.stacks) or [""]
    frame_of = [frames[stack] for stack in trace.instructions.stack.tolist()]
    chip = find_chip(figures.soc_version) if figures.soc_version else None
    return [
        *_buffers(retiming, frame_of, chip),
        *_barriers(retiming, frame_of, chip),
        *_prologue(retiming, frame_of),
        *_merged(retiming, frame_of),
        *_hoisted(retiming, frame_of),
        *_conflicts(retiming, frame_of),
        *_lanes(retiming, frame_of),
    ]


# --- waits ------------------------------------------------------------------------------------------


def _buffers(retiming: Retiming, frame_of: Sequence[str], chip: Chip | None) -> Iterable[Idea]:
    """Waits until a buffer is free: with one more, each waits for what the one before it waited for."""
    instructions = retiming.trace.instructions
    lines: dict[tuple[int, int], dict[str, dict[str, list[int]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for core, rows in retiming.order.items():
        for row in rows:
            if retiming.kind[row] != Kind.WAIT or retiming.partner[row] < 0:
                continue
            source = retiming.partner[row]
            pair = retiming.pipe[row], retiming.pipe[source]
            if retiming.core[source] == core and pair in FREES_A_BUFFER:
                lines[pair][frame_of[row]][flag_at(instructions, row).event].append(row)
    for (pipe, source), by_line in lines.items():
        for waits in _same_buffer(by_line):
            waits_for: dict[int, int] = {}
            before: dict[int, int] = {}
            for row in sorted(waits):
                waits_for[row] = before.get(retiming.core[row], -1)
                before[retiming.core[row]] = retiming.partner[row]
            again = max(
                by_line, key=lambda line: sum(row in waits_for for r in by_line[line].values() for row in r)
            )
            in_loop = tuple(row for row in sorted(waits) if frame_of[row] == again)
            if len(in_loop) < 2 * len(before):
                continue  # nothing comes round again: another buffer would never be used
            events = tuple(
                sorted(event for event, rows in by_line[again].items() if waits_for.keys() & set(rows))
            )
            memory, more, fits = _room(retiming, in_loop, chip)
            yield Idea(
                "buffer", Change(waits_for=waits_for), again, in_loop, pipe_name(pipe), pipe_name(source),
                events, len(events), more, memory, fits=fits,
            )  # fmt: skip


def _same_buffer(by_line: dict[str, dict[str, list[int]]]) -> list[list[int]]:
    """Waits that are about one buffer, or the rooms of one: at one line, or on the same event, as after a loop."""
    groups: list[tuple[set[str], list[int]]] = []
    for events in by_line.values():
        own = set(events), [row for rows in events.values() for row in rows]
        for other in [group for group in groups if group[0] & own[0]]:
            groups.remove(other)
            own = own[0] | other[0], own[1] + other[1]
        groups.append(own)
    return [rows for _, rows in groups]


def _room(retiming: Retiming, waits: Sequence[int], chip: Chip | None) -> tuple[str, int, bool]:
    """What one more buffer takes: what a wait's pipe writes until its next flag; and whether that is free."""
    import numpy as np

    operands = retiming.trace.instructions.operands
    if operands is None or chip is None:
        return "", 0, True
    row = waits[len(waits) // 2]
    core, pipe = retiming.core[row], retiming.pipe[row]
    rows = retiming.order[core]
    at_address: dict[tuple[str, int], int] = defaultdict(int)  # the tiles that are written, each once
    for other in rows[rows.index(row) + 1 :]:
        if retiming.pipe[other] != pipe:
            continue
        if retiming.kind[other] == Kind.WAIT and other in waits:
            break
        for operand in operand_rows(operands, other):
            footprint = operands.footprints[operands.rows["footprint"][operand]]
            if footprint["role"] & WRITES and MEMORIES[footprint["memory"]] in _MEMORY_KEYS:
                size = int(touched_bytes(np.atleast_1d(footprint))[0])
                tile = MEMORIES[footprint["memory"]], int(operands.rows["address"][operand])
                at_address[tile] = max(at_address[tile], size)
    written: dict[str, int] = defaultdict(int)
    for (name, _), size in at_address.items():
        written[name] += size
    if not written:
        return "", 0, True
    memory = max(written, key=lambda name: written[name])
    if _MEMORY_KEYS[memory] not in chip.table["value"]:
        return memory, written[memory], True
    used = _used(retiming, core, memory)
    return memory, written[memory], used + written[memory] <= chip.value(_MEMORY_KEYS[memory])


def _used(retiming: Retiming, core: int, memory: str) -> int:
    """Bytes of a memory that a core touched."""
    import numpy as np

    from insight_trace.recording.intervals import union

    operands = retiming.trace.instructions.operands
    assert operands is not None
    chosen = all_operands(operands)
    chosen = chosen[np.array(retiming.core)[instruction_of_operands(operands)] == core]
    footprint = operands.rows["footprint"][chosen]
    chosen = chosen[operands.footprints["memory"][footprint] == MEMORIES.index(memory)]
    pairs = {
        (int(address), int(number))
        for address, number in zip(
            operands.rows["address"][chosen].tolist(),
            operands.rows["footprint"][chosen].tolist(),
            strict=True,
        )
    }
    begin, end = [], []
    for address, number in pairs:
        begins, ends = relative_ranges(operands.footprints[number])
        if len(begins):
            begin.append(address + int(begins[0]))
            end.append(address + int(ends[-1]))
    return union(np.array(begin, np.int64), np.array(end, np.int64)).length


def _barriers(retiming: Retiming, frame_of: Sequence[str], chip: Chip | None) -> Iterable[Idea]:
    """Barriers, and waits of the scalar unit, with flags between the rows that share data in their place."""
    if retiming.trace.instructions.operands is None:
        return
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for rows in retiming.order.values():
        last = max((place for place, row in enumerate(rows) if retiming.kind[row] == Kind.WORK), default=-1)
        for row in rows[:last]:
            if retiming.pipe[row] not in _SCALAR:
                continue
            if retiming.kind[row] == Kind.BARRIER:
                groups["barrier", "", frame_of[row]].append(row)
            elif retiming.kind[row] == Kind.WAIT and retiming.partner[row] >= 0:
                source = retiming.partner[row]
                if retiming.core[source] == retiming.core[row] and retiming.pipe[source] not in _SCALAR:
                    groups["scalar-wait", pipe_name(retiming.pipe[source]), frame_of[row]].append(row)
    if not groups:
        return
    after: dict[int, tuple[int, ...]] = {}
    for rows in retiming.order.values():
        found = shared_data(retiming, rows)
        if found is None:
            return
        after.update(found)
    for (topic, source, frame), held in groups.items():
        events = tuple(sorted({flag_at(retiming.trace.instructions, row).event for row in held if source}))
        yield Idea(
            topic, Change(without=frozenset(held), after=after), frame, tuple(held), "SCALAR", source, events
        )
    # barriers that stand at several lines of a loop hold it up together
    barriers = [row for (topic, _, _), held in groups.items() if topic == "barrier" for row in held]
    lines = tuple(dict.fromkeys(frame_of[row] for row in barriers))
    if len(lines) > 1:
        change = Change(without=frozenset(barriers), after=after)
        yield Idea("barrier", change, lines[0], tuple(barriers), "SCALAR", frames=lines)
    if len(barriers) < 2:
        return
    twice = _second_buffers(retiming, chip)
    if twice:
        change = Change(without=frozenset(barriers), after=twice)
        yield Idea("barrier", change, lines[0], tuple(barriers), "SCALAR", frames=lines, count=2)


def _second_buffers(retiming: Retiming, chip: Chip | None) -> dict[int, tuple[int, ...]]:
    """What rows wait for when every tile has a second place; nothing where that does not fit."""
    after: dict[int, tuple[int, ...]] = {}
    for core, rows in retiming.order.items():
        for memory, key in _MEMORY_KEYS.items():
            known = chip is not None and key in chip.table["value"]
            if chip is None or not known or 2 * _used(retiming, core, memory) > chip.value(key):
                return {}
        after.update(shared_data(retiming, rows, spare=True) or {})
    return after


def shared_data(
    retiming: Retiming, rows: Sequence[int], spare: bool = False
) -> dict[int, tuple[int, ...]] | None:
    """For rows of one core, the latest of every other pipe that wrote what they touch, or read what they write.

    With a `spare` place for everything, what is written waits for those who read what was there before the last. None where
    all this takes too long to find out.
    """
    import numpy as np

    operands = retiming.trace.instructions.operands
    assert operands is not None
    numbers: dict[tuple[int, int, int], int] = {}
    extents: dict[int, tuple[int, int]] = {}
    touched: list[list[tuple[int, int]]] = []  # by row: range, role
    for row in rows:
        mine = []
        for operand in operand_rows(operands, row):
            number = int(operands.rows["footprint"][operand])
            footprint = operands.footprints[number]
            if number not in extents:
                begins, ends = relative_ranges(footprint)
                extents[number] = (int(begins[0]), int(ends[-1])) if len(begins) else (0, 0)
            low, high = extents[number]
            if high <= low:
                continue
            address = int(operands.rows["address"][operand])
            key = int(footprint["memory"]), address + low, address + high
            mine.append((numbers.setdefault(key, len(numbers)), int(footprint["role"])))
        touched.append(mine)
    if len(numbers) > _MOST_RANGES:
        return None
    memory, low_of, high_of = np.array(list(numbers), np.int64).reshape(-1, 3).T
    overlaps = [
        np.flatnonzero((memory == memory[i]) & (low_of < high_of[i]) & (high_of > low_of[i])).tolist()
        for i in range(len(numbers))
    ]
    writers: list[dict[int, int]] = [{} for _ in overlaps]
    readers: list[dict[int, int]] = [{} for _ in overlaps]
    older: list[dict[int, int]] = [{} for _ in overlaps]  # who read what was there before
    oldest: list[dict[int, int]] = [{} for _ in overlaps]  # and before that: where the spare place is, now
    found: dict[int, tuple[int, ...]] = {}
    for row, mine in zip(rows, touched, strict=True):
        pipe = retiming.pipe[row]
        before: dict[int, int] = {}
        for number, role in mine:
            if role & WRITES and spare and readers[number]:
                oldest[number], older[number] = older[number], readers[number]
                readers[number], writers[number] = {}, {}
            for other in overlaps[number]:
                read = (oldest if spare else readers)[other] if role & WRITES else {}
                for held in (writers[other] if role & READS or not spare else {}, read):
                    for unit, earlier in held.items():
                        if unit != pipe and earlier > before.get(unit, -1):
                            before[unit] = earlier
        if before:
            found[row] = tuple(before.values())
        for number, role in mine:
            if role & WRITES:
                writers[number][pipe] = row
            if role & READS:
                readers[number][pipe] = row
    return found


# --- order ------------------------------------------------------------------------------------------


def prologue_rows(retiming: Retiming, core: int) -> list[int]:
    """What a core does before the first instruction of another pipe works."""
    rows: list[int] = retiming.order[core]
    first = next((place for place, row in enumerate(rows) if retiming.kind[row] == Kind.WORK), 0)
    return rows[:first]


def _prologue(retiming: Retiming, frame_of: Sequence[str]) -> Iterable[Idea]:
    """Descriptors of tensors are read where they are needed, and not all before the first load."""
    operands = retiming.trace.instructions.operands
    if operands is None:
        return
    orders: dict[int, list[int]] = {}
    moved_rows: list[int] = []
    first_load = -1
    for core, rows in retiming.order.items():
        before = prologue_rows(retiming, core)
        groups: dict[int, list[int]] = {}
        table = 0
        argument = -1
        for row in before:
            if retiming.kind[row] != Kind.SCALAR or not operands.count[row]:
                continue
            address = int(operands.rows["address"][operands.first[row]])
            if argument < 0:
                argument = address >> _TABLE_BITS
            if address >> _TABLE_BITS == argument or (table and address >> _TABLE_BITS != table):
                continue  # the list of arguments, or what a kernel decides by
            table = address >> _TABLE_BITS
            groups.setdefault(address >> _DESCRIPTOR_BITS, []).append(row)
        later = [
            group for group in list(groups.values())[1:] if any(retiming.takes[row] >= _COLD for row in group)
        ]
        if not later:
            continue
        moved = {row for group in later for row in group}
        order = [row for row in before if row not in moved]
        seen: set[str] = set()
        waiting = list(later)
        for row in rows[len(before) :]:
            if retiming.bytes[row] > 0 and frame_of[row] not in seen:
                if seen and waiting:
                    order += waiting.pop(0)
                elif not seen and first_load < 0:
                    first_load = row
                seen.add(frame_of[row])
            order.append(row)
        if not seen:
            continue
        if waiting:  # more descriptors than lines that move something: right behind the first load
            place = next(i for i, row in enumerate(order) if retiming.bytes[row] > 0) + 1
            order[place:place] = [row for group in waiting for row in group]
        orders[core] = order
        moved_rows += sorted(moved)
    if not orders or first_load < 0:
        return
    lines = tuple(dict.fromkeys(frame_of[row] for row in moved_rows))
    yield Idea(
        "prologue", Change(order=orders), frame_of[first_load], tuple(moved_rows),
        pipe_name(retiming.pipe[first_load]), "SCALAR", count=len(moved_rows) // len(orders), frames=lines,
    )  # fmt: skip


def _hoisted(retiming: Retiming, frame_of: Sequence[str]) -> Iterable[Idea]:
    """Scalar loads that a loop makes again and again, made once."""
    instructions = retiming.trace.instructions
    operands = instructions.operands
    by_line: dict[str, list[int]] = defaultdict(list)
    for core, rows in retiming.order.items():
        prologue = len(prologue_rows(retiming, core))
        for row in rows[prologue:]:
            if retiming.kind[row] == Kind.SCALAR and instructions.names[instructions.name[row]].startswith(
                "LD"
            ):
                by_line[frame_of[row]].append(row)
    for frame, rows in by_line.items():
        seen: set[tuple[int, int]] = set()
        again = []
        for row in rows:
            address = int(operands.value[row]) if operands is not None else 0
            key = retiming.core[row], address
            if key in seen:
                again.append(row)
            seen.add(key)
        if again:
            change = Change(without=frozenset(again))
            yield Idea("hoist", change, frame, tuple(again), "SCALAR", count=len(again))


def _merged(retiming: Retiming, frame_of: Sequence[str]) -> Iterable[Idea]:
    """Small transfers that follow each other at one line, as one."""
    instructions = retiming.trace.instructions
    runs: dict[tuple[int, str], list[list[int]]] = defaultdict(list)
    for rows in retiming.order.values():
        open_: dict[int, list[int]] = {}
        for row in rows:
            pipe = retiming.pipe[row]
            if 0 < retiming.bytes[row] < GOOD_TRANSFER:
                run = open_.get(pipe)
                if run and frame_of[run[0]] == frame_of[row]:
                    run.append(row)
                else:
                    open_[pipe] = [row]
                    runs[pipe, frame_of[row]].append(open_[pipe])
            elif pipe in open_:
                del open_[pipe]
    for (pipe, frame), found in runs.items():
        several = [run for run in found if len(run) > 1]
        if not several:
            continue
        first = several[0][0]
        core, name = (
            instructions.cores[instructions.core[first]],
            instructions.names[instructions.name[first]],
        )
        path, per_milli = path_of(core, pipe, name), retiming.roof(first)
        if not per_milli:
            continue
        takes: dict[int, int] = {}
        without: list[int] = []
        for run in several:
            total, head = 0, run[0]
            for row in run:
                total += retiming.bytes[row]
                if total > GOOD_TRANSFER:
                    total, head = retiming.bytes[row], row
                if row != head:
                    without.append(row)
                    added = round(retiming.bytes[row] / per_milli)
                    takes[head] = takes.get(head, retiming.free[head]) + added
        yield Idea(
            "transfer", Change(without=frozenset(without), takes=takes), frame, tuple(row for run in several for row in run),
            pipe_name(pipe), path.replace("_TO_", "→"), count=round(sum(map(len, several)) / len(several)),
            bytes=retiming.bytes[several[0][0]],
        )  # fmt: skip


# --- the vector unit --------------------------------------------------------------------------------


def _conflicts(retiming: Retiming, frame_of: Sequence[str]) -> Iterable[Idea]:
    """Operands in other banks."""
    import numpy as np

    instructions = retiming.trace.instructions
    read = np.maximum(0, instructions.read_conflict).astype(np.int64)
    write = np.maximum(0, instructions.write_conflict).astype(np.int64)
    rows = np.flatnonzero(read + write).tolist()
    if not rows:
        return
    takes = {row: max(0, retiming.takes[row] - 1000 * int(read[row] + write[row])) for row in rows}
    cost: dict[str, int] = defaultdict(int)
    for row in rows:
        cost[frame_of[row]] += int(read[row] + write[row])
    worst = max(cost, key=lambda frame: (cost[frame], frame))
    side = "read" if read.sum() >= write.sum() else "write"
    yield Idea(
        "bank", Change(takes=takes), worst, tuple(row for row in rows if frame_of[row] == worst), "VECTOR", side,
        count=int((read + write).sum()), bytes=cost[worst],
    )  # fmt: skip


def _lanes(retiming: Retiming, frame_of: Sequence[str]) -> Iterable[Idea]:
    """The same elements in fewer repeats, with all lanes at work."""
    import numpy as np

    instructions = retiming.trace.instructions
    kind = np.array(retiming.kind)
    computes = np.isin(instructions.pipe, VECTOR_ARITHMETIC) & (kind == Kind.WORK)
    rows = np.flatnonzero(computes & (instructions.utilisation >= 0) & (instructions.utilisation < 100))
    if not len(rows):
        return
    cost: dict[str, int] = defaultdict(int)
    takes: dict[int, int] = {}
    for row, used in zip(rows.tolist(), instructions.utilisation[rows].tolist(), strict=True):
        conflict = max(0, int(instructions.read_conflict[row])) + max(
            0, int(instructions.write_conflict[row])
        )
        unused = round(max(0, retiming.takes[row] - 1000 * conflict) * (100 - used) / 100)
        takes[row] = retiming.takes[row] - unused
        cost[frame_of[row]] += unused
    worst = max(cost, key=lambda frame: (cost[frame], frame))
    inside = bool((instructions.pipe[rows] == Pipe.RVECEX).any())
    if inside:
        takes = _whole_functions(retiming, takes)
    yield Idea(
        "lanes", Change(takes=takes), worst, tuple(row for row in rows.tolist() if frame_of[row] == worst), "VECTOR",
        "loops" if inside else "repeats", count=round(sum(cost.values()) / 1000), bytes=round(cost[worst] / 1000),
    )  # fmt: skip


def _whole_functions(retiming: Retiming, takes: dict[int, int]) -> dict[int, int]:
    """Loops of a vector function that are shorter make the function, its loads and its stores shorter."""
    pipes = retiming.trace.instructions.pipe
    functions: list[list[int]] = []
    for rows in retiming.order.values():
        for row in rows:
            if pipes[row] == Pipe.PUSHQ:
                functions.append([row])
            elif row in retiming.inner and functions:
                functions[-1].append(row)
    found = dict(takes)
    for function in functions:
        unused = sum(retiming.takes[row] - takes[row] for row in function if row in takes)
        for row in function:
            if row not in takes:
                found[row] = max(0, retiming.takes[row] - unused)
    return found
