"""A core's own `trace.json`, made for Chrome: pipes are processes, and slices that overlap get threads."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from insight_trace.insight.encoding import (
    Floats,
    Integers,
    Micros,
    Picked,
    Pieces,
    Texts,
    compiled_for,
    floats,
    lay,
    micros,
    pointer,
    spelled,
)
from insight_trace.insight.event_text import Fragments, warp_colour
from insight_trace.insight.flags import drawn_wait_starts
from insight_trace.insight.lanes import PROCESS_CODES, SCALAR_MEMORY
from insight_trace.insight.prepared import CHUNK, Prepared, chunks
from insight_trace.insight.timeline import DOCUMENT_TAIL, document_head, mark_args
from insight_trace.model import Pipe
from insight_trace.recording.kinds import BARRIER
from insight_trace.recording.stream import details_of, distinct, grouped, numbered_details

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA_VERSION = 1
_REGISTER_TARGET = "XD:"  # a scalar instruction with it is drawn as a load or store
_NAMES_OF_CODES = {code: name for name, code in PROCESS_CODES.items()}


def core_timeline_pieces(prepared: Prepared, fragments: Fragments, core: int) -> Iterator[bytes | memoryview]:
    """The document in pieces of bounded size."""
    held: bytes | memoryview = document_head(SCHEMA_VERSION)
    empty = True
    for piece in _event_pieces(prepared, fragments, core):
        if piece:
            yield held
            held, empty = piece, False
    yield held if empty else held[:-1]
    yield DOCUMENT_TAIL


def _process(name: str, pid: int) -> bytes:
    return (
        b'{"args":{"name":"%s"},"name":"process_name","ph":"M","pid":%d,"tid":0},'
        b'{"args":{"sort_index":%d},"name":"process_sort_index","ph":"M","pid":%d,"tid":0},'
    ) % (name.encode(), pid, pid, pid)


def _thread(name: str, pid: int, tid: int) -> bytes:
    return (
        b'{"args":{"name":"%s_%d"},"name":"thread_name","ph":"M","pid":%d,"tid":%d},'
        b'{"args":{"sort_index":%d},"name":"thread_sort_index","ph":"M","pid":%d,"tid":%d},'
    ) % (name.encode(), tid, pid, tid, tid, pid, tid)


def _event_pieces(prepared: Prepared, fragments: Fragments, core: int) -> Iterator[bytes | memoryview]:
    columns = prepared.instructions
    rows = prepared.ordered[core]
    plain = rows[prepared.is_instruction[rows]]
    warp = prepared.extras.warp
    simt = np.zeros(len(plain), dtype=bool) if warp is None else warp[plain] >= 0
    flows = _Flows(prepared)
    yield from _pipes(prepared, fragments, plain[~simt], flows)
    if warp is not None:
        yield from _warps(prepared, fragments, plain[simt], warp)
    yield from flows.events()
    missed = rows[columns.pipe[rows] == Pipe.CACHEMISS]
    yield from _pipes(prepared, fragments, missed, _Flows(prepared))
    yield from _marks(prepared, fragments, np.sort(rows[columns.pipe[rows] == Pipe.USERMARK]))


def _lane_codes(prepared: Prepared, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pipe of each row, scalar loads and stores told apart from other scalar work."""
    columns = prepared.instructions
    lane = columns.pipe[rows].astype(np.int64)
    scalar = np.flatnonzero(lane == Pipe.SCALAR)
    if prepared.annotated:
        named = np.array([name.startswith(SCALAR_MEMORY) for name in columns.names], dtype=bool)
        lane[scalar[named[columns.name[rows[scalar]]]]] = Pipe.SCALARLDST
        return lane
    for begin in range(0, len(scalar), CHUNK):
        part = scalar[begin : begin + CHUNK]
        targets = [_REGISTER_TARGET in detail for detail in details_of(columns.detail, rows[part])]
        lane[part[np.array(targets, dtype=bool)]] = Pipe.SCALARLDST
    return lane


def _pipes(
    prepared: Prepared,
    fragments: Fragments,
    rows: NDArray[np.int64],
    flows: _Flows,
) -> Iterator[bytes | memoryview]:
    if len(rows) == 0:
        return
    columns = prepared.instructions
    lane = _lane_codes(prepared, rows)
    start = drawn_wait_starts(prepared, rows, lane, np.ones(len(rows), dtype=bool))
    end = columns.end[rows]
    process = np.array([0, *(PROCESS_CODES.get(pipe.name, 0) for pipe in Pipe)])[lane]
    seen, first = np.unique(lane, return_index=True)
    for pipe in seen[np.argsort(first)].tolist():
        name = Pipe(pipe).name
        yield _process(name, PROCESS_CODES.get(name, 0))
    for pid in distinct(process).tolist():
        here = np.flatnonzero(process == pid)
        here = here[_drawing_order(start[here], end[here])]
        yield from _process_slices(prepared, fragments, rows[here], start[here], lane[here], pid, flows)


def _drawing_order(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of two neighbours that end together, the one that begins later goes before the earlier one."""
    order = np.arange(len(end))
    same = np.flatnonzero((end[1:] == end[:-1]) & (start[1:] > start[:-1])) + 1
    if len(same):
        # one after the other they go before the row at the head of their run, which ends up behind them
        first = np.concatenate(([True], np.diff(same) > 1))
        order[same - 1] = same
        order[same[np.concatenate((first[1:], [True]))]] = same[first] - 1
    return order


def _threads(start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int32], dict[int, int]]:
    """First thread that is free from `start` on, and where each thread is first used.

    Ends never decrease, so a thread is free exactly if its last slice ended before `start`. The last cycle
    of all is not kept, as in the vendor's table of occupied cycles.
    """
    compiled = compiled_for(len(start))
    if compiled is not None:
        start, end = np.ascontiguousarray(start), np.ascontiguousarray(end)
        thread, first = np.empty(len(start), np.int32), np.empty(len(start), np.int64)
        places = pointer(start), pointer(end), ctypes.c_int64(len(start)), pointer(thread), pointer(first)
        count = compiled.insight_trace_threads(*places, ctypes.c_int64(len(first)))
        return thread, {row: tid for tid, row in enumerate(first[:count].tolist(), 1)}
    horizon = int(end[-1])
    free: list[int] = []
    tids: list[int] = []
    created: dict[int, int] = {}
    for row, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        last = finish if finish < horizon else horizon - 1
        for tid, busy in enumerate(free):
            if busy < begin:
                if begin < horizon:
                    free[tid] = last
                tids.append(tid + 1)
                break
        else:
            free.append(last if begin < horizon else -1)
            created[row] = len(free)
            tids.append(len(free))
    return np.array(tids, np.int32), created


def _process_slices(
    prepared: Prepared,
    fragments: Fragments,
    rows: NDArray[np.int64],
    start: NDArray[np.int64],
    lane: NDArray[np.int64],
    pid: int,
    flows: _Flows,
) -> Iterator[bytes | memoryview]:
    columns = prepared.instructions
    end = columns.end[rows]
    barrier = np.array([name == BARRIER for name in columns.names], dtype=bool)[columns.name[rows]]
    start = np.where(barrier, np.maximum(end - 1, 0), start)
    thread, created = _threads(start, end)
    setting = prepared.is_set[rows]
    shown = np.where(setting, np.maximum(end - 1, 0), start)
    length = np.where(setting, 1, end - start)
    flows.note(rows, shown, length, pid, thread)
    opening = {row: _thread(Pipe(int(lane[row])).name, pid, tid) for row, tid in created.items()}
    numbers = Texts(b',"ph":"X","pid":%d,"tid":%d,"ts":' % (pid, tid) for tid in range(len(created) + 1))
    for part in chunks(np.arange(len(rows))):
        chosen = rows[part]
        static = fragments.static[chosen]
        before: Pieces = b""
        new = [row for row in opening if part[0] <= row <= part[-1]]
        if new:
            opened = np.zeros(len(part), np.int64)
            opened[np.array(new) - part[0]] = np.arange(1, len(new) + 1)
            before = Picked(Texts([b"", *(opening[row] for row in new)]), opened)
        overhead = _overhead(prepared, fragments, rows, start, lane, thread, pid, part)
        group_ids: Pieces = b""
        if overhead:
            before, group_ids = list(spelled(before, len(part))), [b""] * len(part)
            for row, (text, group) in overhead.items():
                before[row] += text
                group_ids[row] = group
        yield lay(
            [
                before,
                *fragments.slice_head(chosen),
                Micros(length[part], prepared.mhz),
                group_ids,
                Picked(fragments.name, static),
                Picked(numbers, thread[part]),
                Micros(shown[part], prepared.mhz),
                b"},",
            ],
            len(part),
        )


def _overhead(
    prepared: Prepared,
    fragments: Fragments,
    rows: NDArray[np.int64],
    start: NDArray[np.int64],
    lane: NDArray[np.int64],
    thread: NDArray[np.int32],
    pid: int,
    part: NDArray[np.int64],
) -> dict[int, tuple[bytes, bytes]]:
    """By place in `part`: the two slices before an instruction whose fetch is known, and its group."""
    extras, columns = prepared.extras, prepared.instructions
    if extras.fetched is None or extras.decoded is None:
        return {}
    found = {}
    for place, row in enumerate(part.tolist()):
        origin = int(rows[row])
        name = columns.names[columns.name[origin]]
        if extras.fetched[origin] < 0 or name == BARRIER or prepared.is_set[origin]:
            continue
        group = b',"group_id":"%s%d"' % (Pipe(int(lane[row])).name.encode(), row)
        args = b"".join(spelled(column, 1)[0] for column in fragments.head(rows[row : row + 1]))
        fetched, decoded = int(extras.fetched[origin]), int(extras.decoded[origin])
        text = b""
        for kind, at, lasting in (
            (b"cache_time", fetched, decoded - fetched),
            (b"ccu_time", decoded, int(start[row]) - decoded),
        ):
            ts, dur = floats(micros(np.array([at, lasting]), prepared.mhz))
            text += b'%s%s,"dur":%s%s,"name":"%s","ph":"X","pid":%d,"tid":%d,"ts":%s},' % (
                args,
                fragments.colour[fragments.static[origin]],
                dur,
                group,
                kind,
                pid,
                int(thread[row]),
                ts,
            )
        found[place] = text, group
    return found


def _warps(
    prepared: Prepared,
    fragments: Fragments,
    rows: NDArray[np.int64],
    warp: NDArray[np.int16],
) -> Iterator[bytes | memoryview]:
    """SIMT instructions: one process per warp."""
    columns = prepared.instructions
    numbers = warp[rows]
    present, first = np.unique(numbers, return_index=True)
    for number in present[np.argsort(first)].tolist():
        yield _process(f"WARP_{number}", number)
    colours = Texts(b',"cname":"%s"' % warp_colour(name) for name in columns.names)
    for number in present.tolist():
        chosen = rows[numbers == number]
        thread, created = _threads(columns.start[chosen], columns.end[chosen])
        length = columns.end[chosen] - columns.start[chosen]
        before = [b""] * len(chosen)
        for row, tid in created.items():
            before[row] = _thread(f"WARP_{number}", number, tid)
        code, detail, address, *_ = fragments.head(chosen)
        yield lay(
            [
                before,
                code,
                detail,
                address,
                b'"}',
                Picked(colours, columns.name[chosen]),
                b',"dur":',
                Micros(length, prepared.mhz),
                Picked(fragments.name, fragments.static[chosen]),
                b',"ph":"X","pid":%d,"tid":' % number,
                Integers(thread),
                b',"ts":',
                Micros(columns.start[chosen], prepared.mhz),
                b"},",
            ],
            len(chosen),
        )


def _marks(prepared: Prepared, fragments: Fragments, rows: NDArray[np.int64]) -> Iterator[bytes]:
    if len(rows) == 0:
        return
    columns = prepared.instructions
    pid = PROCESS_CODES["USERMARK"]
    yield _process("USERMARK", pid)
    seen: set[int] = set()
    lengths = Micros(columns.end[rows] - columns.start[rows], prepared.mhz).spelled()
    starts = Micros(columns.start[rows], prepared.mhz).spelled()
    for row, length, start in zip(rows.tolist(), lengths, starts, strict=True):
        digit = columns.names[columns.name[row]][-1:]
        tid = int(digit) if digit.isascii() and digit.isdigit() else 0
        if tid not in seen:
            seen.add(tid)
            yield _thread("USERMARK", pid, tid)
        static = fragments.static[row]
        yield b'%s%s,"dur":%s%s,"ph":"X","pid":%d,"tid":%d,"ts":%s},' % (
            mark_args(columns.stacks[columns.stack[row]]),
            fragments.colour[static],
            length,
            fragments.name[static],
            pid,
            tid,
            start,
        )


class _Flows:
    """The arrows of a core's own trace: n-th SET to n-th WAIT of the same detail."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._noted: list[tuple[NDArray[Any], ...]] = []  # start, length, process and thread of flags
        self._count = 0
        self._sets: dict[str, list[NDArray[np.int64]]] = {}
        self._waits: dict[str, list[NDArray[np.int64]]] = {}

    def note(
        self,
        rows: NDArray[np.int64],
        start: NDArray[np.int64],
        length: NDArray[np.int64],
        pid: int,
        thread: NDArray[np.int32],
    ) -> None:
        prepared = self._prepared
        for mask, record in ((prepared.is_set, self._sets), (prepared.is_wait, self._waits)):
            places = np.flatnonzero(mask[rows])
            if len(places) == 0:
                continue
            self._noted.append((start[places], length[places], np.full(len(places), pid), thread[places]))
            details, which = numbered_details(prepared.instructions.detail, rows[places], values=True)
            for number, here in grouped(which):
                record.setdefault(details[number], []).append(here + self._count)
            self._count += len(places)

    def events(self) -> Iterator[bytes | memoryview]:
        """The vendor stops at the first WAIT without a SET, and so do we."""
        sets: list[NDArray[np.int64]] = []
        waits: list[NDArray[np.int64]] = []
        for detail in sorted(self._waits):
            waiting = np.concatenate(self._waits[detail])
            setting = np.concatenate(self._sets.get(detail, [waiting[:0]]))
            both = min(len(setting), len(waiting))
            sets.append(setting[:both])
            waits.append(waiting[:both])
            if both < len(waiting):
                break
        if not any(map(len, sets)):
            return
        mhz = self._prepared.mhz
        start, length, pid, tid = (np.concatenate(parts) for parts in zip(*self._noted, strict=True))
        begin, lasting = micros(start, mhz), micros(length, mhz)
        middle = (begin.astype(np.float64) + lasting.astype(np.float64) / 2).astype(np.float32)
        finish = begin + lasting
        names = Texts(_NAMES_OF_CODES.get(code, "").encode() for code in range(max(_NAMES_OF_CODES) + 1))
        origins, targets = np.concatenate(sets), np.concatenate(waits)
        for part in chunks(np.arange(len(origins))):
            origin, target = origins[part], targets[part]
            cat: list[Pieces] = [b'{"cat":"', Picked(names, pid[origin]), b"To", Picked(names, pid[target])]
            ids = Integers(part)
            laid: list[Pieces] = []
            for phase, rows, times in ((b"s", origin, middle), (b"t", target, finish)):
                laid += [*cat, b'","id":"', ids, b'","name":"flow","ph":"' + phase + b'","pid":"']
                laid += [Integers(pid[rows]), b'","tid":"', Integers(tid[rows]), b'","ts":']
                laid += [Floats(times[rows]), b"},"]
            yield lay(laid, len(part))
