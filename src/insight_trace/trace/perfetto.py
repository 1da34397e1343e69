"""The clean trace in Perfetto's own format, for traces that JSON viewers cannot open.

A `.pftrace` is a sequence of length-delimited protobuf packets, so it is written as it goes. Field numbers
are those of Perfetto's public `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto` and
`interned_data.proto`.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from insight_trace.recording.flag_pairs import Flag, flag_at
from insight_trace.recording.frames import user_frames
from insight_trace.recording.stream import details_of
from insight_trace.trace.chrome import nanoseconds
from insight_trace.trace.clean import Clean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS_AT_ONCE = 16384
_VARINT, _FIXED64, _BYTES = 0, 1, 2

# TracePacket
_TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _TRACK = 8, 10, 11, 12, 13, 60
_STATE_CLEARED, _NEEDS_STATE = 1, 2
# TrackEvent
_ANNOTATION, _TYPE, _NAME_IID, _TRACK_UUID, _FLOW, _FLOW_END = 4, 9, 10, 11, 47, 48
_BEGIN, _END = 1, 2
# interned tables
_EVENT_NAMES, _ANNOTATION_NAMES = 2, 3
_ANNOTATIONS = ("cycles", "start cycle", "line", "operands", "bytes", "released by")
_EXPLICIT_ORDER = 3


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    if value < 128:
        return bytes((value,))
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


_SMALL = [varint(value) for value in range(16384)]  # the lengths of nearly everything


def varints(values: NDArray[np.int64]) -> list[bytes]:
    """The same for many numbers at once; negative ones as two's complement, ten bytes."""
    import numpy as np

    rest = values.astype(np.uint64)
    digits = np.empty((len(rest), 10), np.uint8)
    lengths = np.ones(len(rest), np.int64)
    for place in range(10):
        digits[:, place] = (rest & np.uint64(127)).astype(np.uint8)
        rest = rest >> np.uint64(7)
        more = rest > 0
        digits[:, place] |= more.astype(np.uint8) << 7
        lengths += more
    flat = digits.tobytes()
    return [
        flat[at : at + length] for at, length in zip(range(0, len(flat), 10), lengths.tolist(), strict=True)
    ]


def _number(field: int, value: int) -> bytes:
    return varint(field << 3 | _VARINT) + varint(value)


def _text(field: int, value: str | bytes) -> bytes:
    content = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(field << 3 | _BYTES) + varint(len(content)) + content


def _packet(content: bytes) -> bytes:
    return b"\x0a" + varint(len(content)) + content


def write_perfetto(cleaned: Clean, file: IO[bytes]) -> int:
    """Writes the trace and returns how many slices it holds."""
    file.write(b"".join(_packet(content) for content in _tracks(cleaned)))
    file.write(_packet(_names(cleaned)))
    frames = user_frames(cleaned.trace.instructions.stacks) or [""]
    flows_out, flows_in = _flows(cleaned)
    released = cleaned.arrows.set_row.tolist()
    for first in range(0, len(cleaned.rows), _ROWS_AT_ONCE):
        file.write(_slices(cleaned, frames, flows_out, flows_in, released, first, first + _ROWS_AT_ONCE))
    return len(cleaned.rows)


def _core_track(core: int) -> int:
    return 1_000_000 + core


def _tracks(cleaned: Clean) -> list[bytes]:
    """A process per core with its lanes below it, in the order of the dataflow."""
    cores = cleaned.trace.instructions.cores
    packets = []
    seen: set[int] = set()
    for uuid, lane in enumerate(cleaned.lanes, 1):
        if lane.core not in seen:
            seen.add(lane.core)
            process = _number(1, lane.core + 1) + _text(6, cores[lane.core])
            descriptor = _number(1, _core_track(lane.core)) + _text(3, process) + _number(11, _EXPLICIT_ORDER)
            packets.append(_number(_SEQUENCE, 1) + _text(_TRACK, descriptor))
        descriptor = _number(1, uuid) + _text(2, lane.label) + _number(5, _core_track(lane.core))
        descriptor += _number(12, uuid)
        packets.append(_number(_SEQUENCE, 1) + _text(_TRACK, descriptor))
    return packets


def _names(cleaned: Clean) -> bytes:
    names = b"".join(
        _text(_EVENT_NAMES, _number(1, index) + _text(2, name))
        for index, name in enumerate(cleaned.trace.instructions.names, 1)
    )
    names += b"".join(
        _text(_ANNOTATION_NAMES, _number(1, index) + _text(2, name))
        for index, name in enumerate(_ANNOTATIONS, 1)
    )
    return _number(_SEQUENCE, 1) + _number(_FLAGS, _STATE_CLEARED | _NEEDS_STATE) + _text(_INTERNED, names)


def _flows(cleaned: Clean) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Arrows that leave and reach a row, by number."""
    out: dict[int, list[int]] = {}
    into: dict[int, list[int]] = {}
    for number, (producer, consumer) in enumerate(
        zip(cleaned.arrows.producer.tolist(), cleaned.arrows.consumer.tolist(), strict=True)
    ):
        out.setdefault(producer, []).append(number)
        into.setdefault(consumer, []).append(number)
    return out, into


def _slices(
    cleaned: Clean,
    frames: list[str],
    flows_out: dict[int, list[int]],
    flows_in: dict[int, list[int]],
    released: list[int],
    first: int,
    past: int,
) -> bytes:
    import numpy as np

    instructions = cleaned.trace.instructions
    rows = cleaned.rows[first:past]
    end = np.maximum(instructions.start[rows], instructions.end[rows])
    origin = min(
        0, int(instructions.start.min())
    )  # timestamps cannot be negative, cycles of foreign files can
    begins = varints(nanoseconds(cleaned, instructions.start[rows] - origin))
    ends = varints(nanoseconds(cleaned, end - origin))
    head = _number(_SEQUENCE, 1) + _number(_FLAGS, _NEEDS_STATE)
    stamp = varint(_TIMESTAMP << 3)
    event = varint(_EVENT << 3 | _BYTES)
    lanes = [_number(_TRACK_UUID, uuid) for uuid in range(1, len(cleaned.lanes) + 1)]
    lane_ends = [head + _text(_EVENT, _number(_TYPE, _END) + lane) for lane in lanes]
    names = [_number(_TYPE, _BEGIN) + _number(_NAME_IID, i) for i in range(1, len(instructions.names) + 1)]
    lines = [_text(_ANNOTATION, _number(1, 3) + _text(6, frame)) if frame else b"" for frame in frames]
    small = _SMALL
    arrow = varint(_FLOW << 3 | _FIXED64)
    arrow_end = varint(_FLOW_END << 3 | _FIXED64)
    flags: dict[Flag, bytes] = {}
    parts: list[bytes] = []
    for row, detail, lane, name, stack, start, length, moved, begins_at, ends_at in zip(
        rows.tolist(),
        details_of(instructions.detail, rows),
        cleaned.lane[first:past].tolist(),
        instructions.name[rows].tolist(),
        instructions.stack[rows].tolist(),
        varints(instructions.start[rows]),
        varints(end - instructions.start[rows]),
        instructions.process_bytes[rows].tolist(),
        begins,
        ends,
        strict=True,
    ):
        # annotations by interned name: 1 cycles, 2 start cycle, 4 operands, 5 bytes, 6 released by
        body = (
            names[name] + lanes[lane] + lines[stack]
            + b"\x22" + small[3 + len(length)] + b"\x08\x01\x18" + length
            + b"\x22" + small[3 + len(start)] + b"\x08\x02\x20" + start
        )  # fmt: skip
        if detail:
            text = detail.encode("utf-8", "replace")
            text = b"\x08\x04\x32" + (small[len(text)] if len(text) < 16000 else varint(len(text))) + text
            body += b"\x22" + (small[len(text)] if len(text) < 16384 else varint(len(text))) + text
        if moved > 0:
            body += _text(_ANNOTATION, b"\x08\x05\x18" + varint(moved))
        if row in flows_out:
            body += b"".join(arrow + (number + 1).to_bytes(8, "little") for number in flows_out[row])
        for number in flows_in.get(row, ()):
            flag = flag_at(instructions, released[number])
            if flag not in flags:
                flags[flag] = _text(_ANNOTATION, b"\x08\x06" + _text(6, flag.label))
            body += flags[flag] + arrow_end + (number + 1).to_bytes(8, "little")
        size = len(body)
        content = stamp + begins_at + head + event + (small[size] if size < 16384 else varint(size)) + body
        size = len(content)
        parts += (b"\x0a", small[size] if size < 16384 else varint(size), content)
        content = stamp + ends_at + lane_ends[lane]
        parts += (b"\x0a", small[len(content)], content)
    return b"".join(parts)
