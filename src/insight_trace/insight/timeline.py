"""The timeline of all cores: `simulator/trace.json`, which is also the TRACE block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from insight_trace.insight.added_events import Spans, cross_core_flows, finding_events, span_events
from insight_trace.insight.crosscore import cross_core_events
from insight_trace.insight.encoding import (
    Integers,
    Micros,
    Picked,
    Pieces,
    Texts,
    floats,
    json_text,
    lay,
    micros,
    spelled,
)
from insight_trace.insight.event_text import Fragments, warp_colour
from insight_trace.insight.flags import FlagPairs, drawn_wait_starts, pair_flags
from insight_trace.insight.lanes import (
    ADDED_LANES,
    COUNTER_PROCESS,
    LANES,
    THROUGHPUT,
    WARP_LANE_BASE,
    core_order,
)
from insight_trace.insight.prepared import CHUNK, Extras, Prepared, chunks
from insight_trace.model import Counter, Pipe
from insight_trace.recording.kinds import BARRIER
from insight_trace.recording.stream import distinct, numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA_VERSION = 2
_OVERHEAD = (b"cache_time", b"ccu_time")


def document_head(schema_version: int) -> bytes:
    return b'{"displayTimeUnit":"ns","profilingType":"op","schemaVersion":%d,"traceEvents":[' % schema_version


DOCUMENT_TAIL = b"]}"


def timeline_pieces(
    prepared: Prepared,
    fragments: Fragments,
    counters: tuple[Counter, ...],
    findings: Sequence[Mapping[str, Any]] = (),
    spans: Sequence[Spans] = (),
) -> Iterator[bytes | memoryview]:
    """The whole document in pieces of bounded size. Every event ends in a comma but the last."""
    held: bytes | memoryview = b""
    for piece in _event_pieces(prepared, fragments, counters, findings, spans):
        if piece:
            yield held
            held = piece
    yield held[:-1]
    yield DOCUMENT_TAIL


def _event_pieces(
    prepared: Prepared,
    fragments: Fragments,
    counters: tuple[Counter, ...],
    findings: Sequence[Mapping[str, Any]],
    spans: Sequence[Spans],
) -> Iterator[bytes | memoryview]:
    yield document_head(SCHEMA_VERSION)
    columns = prepared.instructions
    for core in prepared.cores:
        yield _sort_event(b"process_sort_index", columns.cores[core], "NA", core_order(columns.cores[core]))
    pairs = pair_flags(prepared) if prepared.has_flags else {}
    drawn = columns.start.copy() if pairs else columns.start  # where each row is drawn, core by core
    for core in prepared.cores:
        yield from _lanes(prepared, core)
        yield from _core_events(prepared, fragments, core, pairs.get(core), drawn)
    yield from span_events(prepared, spans)
    yield from finding_events(prepared, findings)
    yield from cross_core_events(prepared)
    yield from cross_core_flows(prepared)
    yield from _counters(counters)


def _sort_event(kind: bytes, pid: str, tid: str, index: int) -> bytes:
    return b'{"args":{"sort_index":%d},"name":"%s","ph":"M","pid":"%s","tid":"%s"},' % (
        index,
        kind,
        json_text(pid),
        json_text(tid),
    )


def _lanes(prepared: Prepared, core: int) -> Iterator[bytes]:
    lanes = {**LANES, "WARP_-1": WARP_LANE_BASE - 1}
    if prepared.annotated:  # ours come first, the vendor's follow in its order
        first = {lane: place for place, lane in enumerate(ADDED_LANES, 1)}
        lanes = first | {lane: len(first) + place for lane, place in lanes.items()}
    warp = prepared.extras.warp
    if warp is not None:
        for number in distinct(warp[prepared.ordered[core]]).tolist():
            lanes[f"WARP_{number}"] = WARP_LANE_BASE + number
    name = prepared.instructions.cores[core]
    for lane in sorted(lanes):
        yield _sort_event(b"thread_sort_index", name, lane, lanes[lane])


def _core_events(
    prepared: Prepared,
    fragments: Fragments,
    core: int,
    pairs: FlagPairs | None,
    drawn: NDArray[np.int64],
) -> Iterator[bytes | memoryview]:
    columns = prepared.instructions
    rows = prepared.ordered[core]
    ordinary = prepared.is_ordinary
    slices = rows[ordinary[rows]]
    begun = 0
    for part in chunks(slices):
        yield _slices(prepared, fragments, part, begun)
        begun += len(part)
    if pairs is not None and len(pairs.waits):
        plain = rows[prepared.is_instruction[rows]]
        lane = columns.pipe[plain].astype(np.int64)
        drawn[plain] = drawn_wait_starts(prepared, plain, lane, ordinary[plain])
        yield from _flag_events(prepared, fragments, pairs, drawn, core)
    for part in chunks(rows[columns.pipe[rows] == Pipe.CACHEMISS]):
        yield _slices(prepared, fragments, part, None)
    for part in chunks(np.sort(rows[columns.pipe[rows] == Pipe.USERMARK])):
        yield _marks(prepared, fragments, part)


def _slices(
    prepared: Prepared, fragments: Fragments, rows: NDArray[np.int64], begun: int | None
) -> bytes | memoryview:
    """X events. `begun` numbers them for the overhead groups; None draws none."""
    columns = prepared.instructions
    static = fragments.static[rows]
    start, end = columns.start[rows], columns.end[rows]
    barrier = np.array([name == BARRIER for name in columns.names], dtype=bool)[columns.name[rows]]
    if barrier.any():
        start = np.where(barrier, np.maximum(end - 1, 0), start)
    length = Micros(np.where(barrier, 1, end - start), prepared.mhz)
    begin = Micros(start, prepared.mhz)
    groups = _groups(prepared, rows, barrier, begun)
    if groups is None and prepared.extras.warp is None:
        ending = Picked(fragments.slice_end, static)
        return lay([*fragments.slice_head(rows), length, ending, begin, b"},"], len(rows))
    head = fragments.head(rows)
    colour, place = _simt(prepared, fragments, rows, static)
    name = Picked(fragments.name, static)
    if groups is None:
        columns_ = [*head, colour, b',"dur":', length, name, b',"ph":"X"', place, begin, b"},"]
        return lay(columns_, len(rows))
    return _with_overhead(
        prepared, rows, groups, head, colour, length.spelled(), name.spelled(), place, begin.spelled()
    )


def _simt(
    prepared: Prepared, fragments: Fragments, rows: NDArray[np.int64], static: NDArray[np.int64]
) -> tuple[list[bytes], list[bytes]]:
    """Colour and place; a SIMT instruction lies on the lane of its warp."""
    columns, warp = prepared.instructions, prepared.extras.warp
    colour, place = (Picked(table, static).spelled() for table in (fragments.colour, fragments.place))
    if warp is not None:
        for row in np.flatnonzero(warp[rows] >= 0).tolist():
            origin = rows[row]
            core = json_text(columns.cores[columns.core[origin]])
            colour[row] = b',"cname":"%s"' % warp_colour(columns.names[columns.name[origin]])
            place[row] = b',"pid":"%s","tid":"WARP_%d","ts":' % (core, warp[origin])
    return colour, place


def _groups(
    prepared: Prepared, rows: NDArray[np.int64], barrier: NDArray[np.bool_], begun: int | None
) -> dict[int, bytes] | None:
    """Group id by place in `rows` of the instructions whose fetch is known."""
    extras, columns = prepared.extras, prepared.instructions
    if begun is None or extras.fetched is None or extras.decoded is None:
        return None
    known = np.flatnonzero((extras.fetched[rows] >= 0) & ~barrier)
    return {
        row: json_text(f"{columns.names[columns.name[rows[row]]]}{begun + row}") for row in known.tolist()
    }


def _overhead_cycles(extras: Extras, row: int, start: int) -> list[tuple[bytes, int, int]]:
    assert extras.fetched is not None
    assert extras.decoded is not None
    fetched, decoded = int(extras.fetched[row]), int(extras.decoded[row])
    return [(_OVERHEAD[0], fetched, decoded - fetched), (_OVERHEAD[1], decoded, start - decoded)]


def _with_overhead(
    prepared: Prepared,
    rows: NDArray[np.int64],
    groups: dict[int, bytes],
    head: list[Pieces],
    colours: list[bytes],
    durations: list[bytes],
    name: list[bytes],
    place: list[bytes],
    begin: list[bytes],
) -> bytes:
    events = []
    for row, parts in enumerate(zip(*(spelled(column, len(rows)) for column in head), strict=True)):
        args, colour, duration = b"".join(parts), colours[row], durations[row]
        group = groups.get(row)
        grouped = b"" if group is None else b',"group_id":"%s"' % group
        if group is not None:
            start = int(prepared.instructions.start[rows[row]])
            for kind, at, lasting in _overhead_cycles(prepared.extras, int(rows[row]), start):
                ts, dur = floats(micros(np.array([at, lasting]), prepared.mhz))
                events.append(
                    b'%s%s,"dur":%s%s,"name":"%s","ph":"X"%s%s},'
                    % (args, colour, dur, grouped, kind, place[row], ts)
                )
        events.append(
            b'%s%s,"dur":%s%s%s,"ph":"X"%s%s},'
            % (args, colour, duration, grouped, name[row], place[row], begin[row])
        )
    return b"".join(events)


def _marks(prepared: Prepared, fragments: Fragments, rows: NDArray[np.int64]) -> bytes | memoryview:
    """User marks carry the stacks of both ends, which a mark's stack holds with an empty line between."""
    columns = prepared.instructions
    static = fragments.static[rows]
    args = Texts(map(mark_args, columns.stacks))
    return lay(
        [
            Picked(args, columns.stack[rows]),
            Picked(fragments.colour, static),
            b',"dur":',
            Micros(columns.end[rows] - columns.start[rows], prepared.mhz),
            Picked(fragments.name, static),
            b',"ph":"X"',
            Picked(fragments.place, static),
            Micros(columns.start[rows], prepared.mhz),
            b"},",
        ],
        len(rows),
    )


def mark_args(stack: str) -> bytes:
    begin, _, finish = stack.partition("\n\n")
    return b'{"args":{"trace_start":"%s","trace_stop":"%s"}' % (json_text(begin), json_text(finish))


def _flag_events(
    prepared: Prepared, fragments: Fragments, pairs: FlagPairs, drawn: NDArray[np.int64], core: int
) -> Iterator[bytes | memoryview]:
    """B and E of each flag and the arrow of each pair, in the order of ids."""
    prefix = json_text(prepared.instructions.cores[core])
    shape = (pairs.sets >= 0) * 2 + (pairs.waits >= 0)
    bounds = np.flatnonzero(np.diff(shape)) + 1
    for run in np.split(np.arange(len(shape)), bounds):
        for begin in range(0, len(run), CHUNK):
            part = run[begin : begin + CHUNK]
            ids: list[Pieces] = [prefix + b"_", Integers(part)]
            sets, waits = pairs.sets[part], pairs.waits[part]
            laid: list[Pieces] = []
            if sets[0] >= 0:
                end = prepared.instructions.end[sets]
                laid += _flag(prepared, fragments, sets, np.maximum(end - 1, 0), ids)
            if waits[0] >= 0:
                laid += _flag(prepared, fragments, waits, drawn[waits], ids)
            if sets[0] >= 0 and waits[0] >= 0:
                laid += _flow(prepared, fragments, sets, waits, ids)
            yield lay(laid, len(part))


def _flag(
    prepared: Prepared,
    fragments: Fragments,
    rows: NDArray[np.int64],
    start: NDArray[np.int64],
    ids: list[Pieces],
) -> list[Pieces]:
    columns, extras = prepared.instructions, prepared.extras
    static = fragments.static[rows]
    end, begin = Micros(columns.end[rows], prepared.mhz), Micros(start, prepared.mhz)
    if extras.fetched is None and not prepared.annotated:
        to_id, to_begin, to_second_id, to_end = (Picked(part, static) for part in fragments.flag_parts)
        code = Picked(fragments.code, columns.stack[rows])
        opening = [code, fragments.details(rows), to_id, *ids, to_begin, begin]
        return [*opening, to_second_id, *ids, to_end, end, b"},"]
    colour, name = Picked(fragments.colour, static), Picked(fragments.name, static)
    place = Picked(fragments.place, static)
    head = fragments.head(rows)
    group: Pieces = b""
    before: list[Pieces] = []
    waiting = prepared.is_wait[rows]
    if extras.fetched is not None and bool((waiting & (extras.fetched[rows] >= 0)).any()):
        grouped, overhead = [], []
        parts = zip(*(spelled(column, len(rows)) for column in (*ids, colour, place, *head)), strict=True)
        for number, (prefix, counted, tint, where, *args) in enumerate(parts):
            row = int(rows[number])
            if not waiting[number] or extras.fetched[row] < 0:
                grouped.append(b"")
                overhead.append(b"")
                continue
            grouped.append(b',"group_id":"%s%s"' % (prefix, counted))
            text = b""
            for kind, at, lasting in _overhead_cycles(extras, row, int(start[number])):
                ts, dur = floats(micros(np.array([at, lasting]), prepared.mhz))
                text += b'%s%s,"dur":%s%s,"name":"%s","ph":"X"%s%s},' % (
                    b"".join(args),
                    tint,
                    dur,
                    grouped[-1],
                    kind,
                    where,
                    ts,
                )
            overhead.append(text)
        group, before = grouped, [overhead]
    drawn = [*before, *head, colour, group, b',"id":"', *ids, b'"', name, b',"ph":"B"', place, begin, b"},"]
    closing = [b'{"args":{}', colour, group, b',"id":"', *ids, b'"', name, b',"ph":"E"', place, end, b"},"]
    return [*drawn, *closing]


def _flow(
    prepared: Prepared,
    fragments: Fragments,
    sets: NDArray[np.int64],
    waits: NDArray[np.int64],
    ids: list[Pieces],
) -> list[Pieces]:
    columns = prepared.instructions
    lanes = ["", *(pipe.name for pipe in Pipe)]
    width = len(lanes)
    directions = columns.pipe[sets].astype(np.int64) * width + columns.pipe[waits]
    used, which = numbered(directions)
    cats = [f'{{"cat":"{lanes[each // width]}To{lanes[each % width]}","id":"' for each in used.tolist()]
    cat = Picked(Texts(each.encode() for each in cats), which)
    laid: list[Pieces] = []
    for part, rows in zip(fragments.flow_parts, (sets, waits), strict=True):
        to_time = Picked(part, fragments.static[rows])
        laid += [cat, *ids, to_time, Micros(columns.end[rows], prepared.mhz), b"},"]
    return laid


def _time(micros: float) -> bytes:
    return msgspec.json.encode(int(micros) if micros == int(micros) else round(micros, 6))


def _counters(counters: tuple[Counter, ...]) -> Iterator[bytes]:
    """Points by time, then series, as the vendor orders them; whole microseconds are integers there."""
    if not counters:
        return
    points: list[tuple[float, int, float]] = []
    for place, counter in enumerate(counters):
        values = counter.megabytes_per_second.tolist()
        points += [(ts, place, value) for ts, value in zip(counter.micros.tolist(), values, strict=True)]
    points.sort(key=lambda point: point[:2])
    names = [json_text(counter.name) for counter in counters]
    pid, key = COUNTER_PROCESS.encode(), THROUGHPUT.encode()
    for begin in range(0, len(points), CHUNK):
        yield b"".join(
            b'{"args":{"%s":%s},"name":"%s","ph":"C","pid":"%s","tid":0,"ts":%s},'
            % (key, msgspec.json.encode(float(value)), names[place], pid, _time(ts))
            for ts, place, value in points[begin : begin + CHUNK]
        )
