"""The clean trace as Chrome trace JSON, written piece by piece: memory does not grow with the trace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

from msgspec import Struct

from insight_trace.insight.added_events import Spans
from insight_trace.insight.lanes import COUNTER_PROCESS
from insight_trace.recording.flag_pairs import Flag, flags_at
from insight_trace.recording.kinds import Kind, kinds
from insight_trace.recording.pipes import pipe_name
from insight_trace.recording.stream import details_of
from insight_trace.trace.clean import Clean
from insight_trace.trace.sublanes import sublanes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS_AT_ONCE = 32768

# Names of the viewers' fixed palette, so that a pipe has one colour in every trace.
_COLOURS = {
    "MTE2": "thread_state_iowait",
    "MTE1": "rail_load",
    "CUBE": "rail_response",
    "VECTOR": "good",
    "FIXPIPE": "yellow",
    "MTE3": "cq_build_passed",
}


# Perfetto puts processes in the order of how many slices they have, whatever a file asks for, and threads in the order of
# their numbers: the cores of a block are therefore one process, and its threads are numbered by core, lanes above the
# pipes first. A thread whose number is its process's would be called the main thread.
_PER_CORE, _PIPES_FROM, _PER_SPAN = 10_000, 6_000, 1_000


def write_chrome(
    cleaned: Clean, file: IO[bytes], *, counters: bool = False, spans: Sequence[Spans] = ()
) -> int:
    """Writes the trace, on request with throughput counters and lanes above the pipes; returns how many events it has."""
    head = '{"displayTimeUnit":"ns","profilingType":"op","schemaVersion":2,"traceEvents":[\n'
    file.write(head.encode())
    count = 0
    for events in _pieces(cleaned, counters, spans):
        if events:
            text = ",\n".join(events)
            file.write((text if count == 0 else ",\n" + text).encode())
            count += len(events)
    file.write(b"\n]}\n")
    return count


def _pieces(cleaned: Clean, counters: bool, spans: Sequence[Spans]) -> Iterator[list[str]]:
    yield _metadata(cleaned)
    for number, each in enumerate(spans):
        yield _span_lanes(cleaned, each, number)
    if counters:
        yield _counters(cleaned)
    for first in range(0, len(cleaned.rows), _ROWS_AT_ONCE):
        yield _slices(cleaned, first, first + _ROWS_AT_ONCE)
    lane_of = _lane_of_row(cleaned)
    for first in range(0, len(cleaned.arrows.producer), _ROWS_AT_ONCE):
        yield _flows(cleaned, lane_of, first, first + _ROWS_AT_ONCE)


class _Core(Struct, frozen=True):
    """Where the lanes of a core stand."""

    process: int
    process_name: str
    threads: int  # they are numbered from here on
    prefix: str  # of their names, where a block has several cores


def _cores_of(cleaned: Clean) -> dict[int, _Core]:
    """By core, in the order in which lanes stand: cube, vector 0, vector 1 of each block."""
    names = cleaned.trace.instructions.cores
    shown = list(dict.fromkeys(lane.core for lane in cleaned.lanes))
    blocks: dict[str, list[int]] = {}
    for core in shown:
        blocks.setdefault(names[core].partition(".")[0], []).append(core)
    found: dict[int, _Core] = {}
    for process, (block, cores) in enumerate(blocks.items(), 1):
        for core in cores:
            _, _, part = names[core].partition(".")
            prefix = part.replace("cubecore0", "cube").replace("veccore", "vector ") + " "
            together = len(cores) > 1
            found[core] = _Core(
                process,
                block if together else names[core],
                _PER_CORE * (len(found) + 1),
                prefix if together else "",
            )
    return found


def _pipe_threads(cleaned: Clean, cores: dict[int, _Core]) -> list[int]:
    """By lane, the number of its thread."""
    first: dict[int, int] = {}
    for place, lane in enumerate(cleaned.lanes):
        first.setdefault(lane.core, place)
    return [
        cores[lane.core].threads + _PIPES_FROM + place - first[lane.core]
        for place, lane in enumerate(cleaned.lanes)
    ]


def _metadata(cleaned: Clean) -> list[str]:
    cores = _cores_of(cleaned)
    events: list[dict[str, object]] = []
    for pid, name in {core.process: core.process_name for core in cores.values()}.items():
        events.append(_meta("process_name", pid, None, {"name": name}))
        events.append(_meta("process_sort_index", pid, None, {"sort_index": pid}))
    for tid, lane in zip(_pipe_threads(cleaned, cores), cleaned.lanes, strict=True):
        core = cores[lane.core]
        events.append(_meta("thread_name", core.process, tid, {"name": core.prefix + lane.label}))
        events.append(_meta("thread_sort_index", core.process, tid, {"sort_index": tid}))
    return [_text(event) for event in events]


def _text(event: dict[str, object]) -> str:
    """Viewers show names as they are written: an escape would be shown as one."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)


def _span_lanes(cleaned: Clean, spans: Spans, rank: int) -> list[str]:
    """Slices of a lane that is no pipe, on as many lanes as it takes for none to hide another, and its arrows."""
    cores = _cores_of(cleaned)
    part, _ = sublanes(spans.core, spans.begin, spans.end)
    begin = nanoseconds(cleaned, spans.begin)
    length = nanoseconds(cleaned, spans.end) - begin
    places = [
        (cores[core].process, cores[core].threads + _PER_SPAN * (rank + 1) + number)
        for core, number in zip(spans.core.tolist(), part.tolist(), strict=True)
    ]
    events: list[dict[str, object]] = []
    label = spans.lane.lower()
    for core, number in sorted(set(zip(spans.core.tolist(), part.tolist(), strict=True))):
        pid, tid = cores[core].process, cores[core].threads + _PER_SPAN * (rank + 1) + number
        name = f"{cores[core].prefix}{label}" if cores[core].prefix else label.capitalize()
        events.append(_meta("thread_name", pid, tid, {"name": f"{name} #{number}" if number else name}))
        events.append(_meta("thread_sort_index", pid, tid, {"sort_index": tid}))
    for (pid, tid), at, lasting, name, args in zip(
        places, begin.tolist(), length.tolist(), spans.names, spans.args, strict=True
    ):
        place = {"pid": pid, "tid": tid, "ts": at / 1e3, "dur": lasting / 1e3}
        events.append({"args": args, "cname": spans.colour, "name": name, "ph": "X", **place})
    for number, (source, target) in enumerate([] if spans.arrows is None else spans.arrows.tolist()):
        head = {"cat": spans.category, "id": 1_000_000 * (rank + 1) + number, "name": spans.category}
        ends = (("s", source, begin[source] + max(0, length[source] - 1)), ("f", target, begin[target]))
        for phase, at, time in ends:
            pid, tid = places[at]
            more = {"bp": "e"} if phase == "f" else {}
            events.append({**head, **more, "ph": phase, "pid": pid, "tid": tid, "ts": float(time) / 1e3})
    return [_text(event) for event in events]


def _meta(name: str, pid: int, tid: int | None, args: dict[str, object]) -> dict[str, object]:
    event: dict[str, object] = {"args": args, "name": name, "ph": "M", "pid": pid}
    if tid is not None:
        event["tid"] = tid
    return event


def _counters(cleaned: Clean) -> list[str]:
    """A track for each series, below a process of their own; rates in MB/s."""
    if not cleaned.trace.counters:
        return []
    pid = len(cleaned.trace.instructions.cores) + 1
    events = [_text(_meta("process_name", pid, None, {"name": COUNTER_PROCESS}))]
    for counter in cleaned.trace.counters:
        head = f'{{"name":{json.dumps(counter.name)},"ph":"C","pid":{pid},"ts":'
        events += [
            f'{head}{micros},"args":{{"MB/s":{rate}}}}}'
            for micros, rate in zip(
                counter.micros.tolist(), counter.megabytes_per_second.tolist(), strict=True
            )
        ]
    return events


def nanoseconds(cleaned: Clean, cycles: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cycles as whole nanoseconds, rounded down.

    Viewers count in nanoseconds and round start and duration apart: two instructions back to back would
    overlap there, and the second would be dropped. Of whole numbers nothing is left to round. The exact
    cycles stand in the arguments of every slice.
    """
    import numpy as np

    result: NDArray[np.int64] = np.floor(cycles * (1000.0 / cleaned.trace.mhz)).astype(np.int64)
    return result


def _texts(details: list[str]) -> list[str]:
    """JSON strings of operand texts; the usual piece needs no escapes, which one look at all of it tells."""
    joined = "".join(details)
    if joined.isascii() and joined.isprintable() and '"' not in joined and "\\" not in joined:
        return [f'"{text}"' for text in details]
    return [json.dumps(text) for text in details]


def _slices(cleaned: Clean, first: int, past: int) -> list[str]:
    instructions = cleaned.trace.instructions
    rows = cleaned.rows[first:past]
    ends = _ends(cleaned, rows)
    begin = nanoseconds(cleaned, _drawn_from(cleaned, rows, ends))
    length = nanoseconds(cleaned, ends) - begin
    cores = _cores_of(cleaned)
    lanes = [
        f'"cname":"{_COLOURS.get(pipe_name(lane.pipe), "grey")}","pid":{cores[lane.core].process},"tid":{tid}'
        for tid, lane in zip(_pipe_threads(cleaned, cores), cleaned.lanes, strict=True)
    ]
    names = [json.dumps(name) for name in instructions.names]
    stacks = [json.dumps(stack) for stack in instructions.stacks] or ['""']
    columns = zip(
        instructions.name[rows].tolist(),
        instructions.stack[rows].tolist(),
        _texts(details_of(instructions.detail, rows)),
        instructions.pc[rows].tolist(),
        [
            f',"process_bytes":"{moved}"' if moved > 0 else ""
            for moved in instructions.process_bytes[rows].tolist()
        ],
        cleaned.lane[first:past].tolist(),
        (begin / 1e3).tolist(),
        (length / 1e3).tolist(),
        instructions.start[rows].tolist(),
        (ends - instructions.start[rows]).tolist(),
        strict=True,
    )
    return [
        f'{{"args":{{"code":{stacks[stack]},"cycles":{cycles},"detail":{detail},"pc_addr":"0x{pc:x}"{moved},"start_cycle":{first_cycle}}},'
        f'{lanes[lane]},"name":{names[name]},"ph":"X","ts":{start},"dur":{duration}}}'
        for name, stack, detail, pc, moved, lane, start, duration, first_cycle, cycles in columns
    ]


def _ends(cleaned: Clean, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    instructions = cleaned.trace.instructions
    return np.maximum(instructions.start[rows], instructions.end[rows])


def _drawn_from(cleaned: Clean, rows: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where slices begin. A flag is raised when all before it on its pipe has ended: that moment is drawn, not the wait."""
    import numpy as np

    instructions = cleaned.trace.instructions
    raises = kinds(instructions)[rows] == Kind.SET
    begin: NDArray[np.int64] = np.where(
        raises, np.maximum(instructions.start[rows], ends - 1), instructions.start[rows]
    )
    return begin


def _lane_of_row(cleaned: Clean) -> NDArray[np.int32]:
    import numpy as np

    lane_of = np.full(len(cleaned.trace.instructions), -1, np.int32)
    lane_of[cleaned.rows] = cleaned.lane
    return lane_of


def _flows(cleaned: Clean, lane_of: NDArray[np.int32], first: int, past: int) -> list[str]:
    """Two events an arrow. It leaves at the end of the producer, where the flag is raised."""
    import numpy as np

    instructions = cleaned.trace.instructions
    arrows = cleaned.arrows
    producer, consumer = arrows.producer[first:past], arrows.consumer[first:past]
    begin = nanoseconds(cleaned, instructions.start[producer])
    # The last nanosecond inside, so that a viewer finds the slice there.
    leave = np.maximum(begin, nanoseconds(cleaned, _ends(cleaned, producer)) - 1)
    arrive = nanoseconds(cleaned, instructions.start[consumer])
    labels: dict[Flag, str] = {}
    cores = _cores_of(cleaned)
    lanes = [
        f'"pid":{cores[lane.core].process},"tid":{tid},"ts":'
        for tid, lane in zip(_pipe_threads(cleaned, cores), cleaned.lanes, strict=True)
    ]
    events: list[str] = []
    for number, (source, target, flag, out, into) in enumerate(
        zip(
            lane_of[producer].tolist(),
            lane_of[consumer].tolist(),
            flags_at(instructions, arrows.set_row[first:past]),
            (leave / 1e3).tolist(),
            (arrive / 1e3).tolist(),
            strict=True,
        ),
        first + 1,
    ):
        label = labels.get(flag)
        if label is None:
            label = labels[flag] = json.dumps(flag.label, ensure_ascii=False)
        head = f'{{"cat":"sync","id":{number},"name":{label},'
        events.append(f'{head}"ph":"s",{lanes[source]}{out}}}')
        events.append(f'{head}"bp":"e","ph":"f",{lanes[target]}{into}}}')
    return events
