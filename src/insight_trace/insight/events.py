"""Reads the events of a timeline in pieces of bounded size, whoever wrote it and however it is spaced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any, TypeVar

import msgspec

from insight_trace.errors import InputError
from insight_trace.limits import EVENT_BYTES

WINDOW = 1 << 20
HEAD = 1 << 20  # Insight looks for "traceEvents" no further
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_TRIES = 64

T = TypeVar("T")


class Args(msgspec.Struct, gc=False):
    """What an event says beyond its place and time."""

    code: str = ""
    detail: str = ""
    pc_addr: str = ""
    process_bytes: str | int | None = None
    trace_start: str = ""
    trace_stop: str | None = None
    name: str | None = None
    throughput: float | None = msgspec.field(default=None, name="throughput(MB/s)")


class Event(msgspec.Struct, gc=False):
    """One event of a timeline."""

    ph: str = ""
    name: str = ""
    pid: str | int = ""
    tid: str | int = ""
    ts: float = 0.0
    dur: float = 0.0
    id: str | int | None = None
    args: Args | None = None
    group_id: str | None = None


class Opening(msgspec.Struct, frozen=True):
    """What stands before the events."""

    schema_version: int
    profiling_type: str
    start: int  # offset of the first event
    array: bool = False


def opening_of(file: IO[bytes], start: int, size: int, name: str) -> Opening:
    """Finds the events; a bare array of events is accepted too."""
    file.seek(start)
    head = file.read(min(size, HEAD))
    stripped = head.lstrip()
    if stripped[:1] == b"[":
        return Opening(1, "", len(head) - len(stripped) + 1, array=True)
    match = _EVENTS.search(head)
    if stripped[:1] != b"{" or match is None:
        raise InputError(
            'no "traceEvents" array within the first MiB',
            where=name,
            hint="this is not a timeline that MindStudio Insight or Chrome opens",
        )
    before = head[: match.start()]
    version = re.search(rb'"schemaVersion"\s*:\s*([0-9]{1,9})\b', before)
    kind = re.search(rb'"profilingType"\s*:\s*"([^"]*)"', before)
    return Opening(
        schema_version=int(version[1]) if version else 1,
        profiling_type=kind[1].decode("utf-8", "replace") if kind else "",
        start=match.end(),
    )


def read_events(
    file: IO[bytes],
    start: int,
    size: int,
    name: str,
    decoder: msgspec.json.Decoder[list[T]],
    lost: list[str] | None = None,
) -> Iterator[list[T]]:
    """Lists of events from `start` (the first byte after the array's bracket) for `size` bytes.

    With `lost`, a document that is cut off gives the events before the cut; the list says what is missing.

    A list is cut where one event ends and the next begins. That place is guessed from the text and proven
    by decoding, so text that only looks like such a place costs a second try and nothing else.
    """
    position, end = start, start + size
    window = WINDOW
    seen = 0
    held = b""
    while position < end or held:
        file.seek(position)
        fresh = file.read(min(window, end - position))
        position += len(fresh)
        data = held + fresh
        if position >= end or not fresh:
            try:
                yield _last(data, name, seen, decoder)
            except InputError:
                events, rest = _cut(data, decoder)
                if lost is None or events is None or data.rstrip().endswith((b"]}", b"]")):
                    raise  # the document has its end, so it is wrong rather than short
                lost.append(f"{name}: cut off after event {seen + len(events)}, {len(rest)} bytes not read")
                yield events
            return
        events, held = _cut(data, decoder)
        if events is None:
            if len(data) > EVENT_BYTES:
                _explain(data, name, seen, decoder)
            window *= 2
            continue
        window = WINDOW
        seen += len(events)
        yield events


def _cut(data: bytes, decoder: msgspec.json.Decoder[list[T]]) -> tuple[list[T] | None, bytes]:
    """As many whole events as the data holds, and what is left of it."""
    low = max(0, len(data) - (1 << 16))
    while True:
        places = [match.start() + 1 for match in _BETWEEN.finditer(data, low)]
        for place in reversed(places[-_TRIES:]):
            try:
                events = decoder.decode(b"[" + data[:place] + b"]")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            rest = data[place:].lstrip()
            return events, rest[1:]
        if low == 0:
            return None, data
        low = max(0, low - (1 << 20))
        if len(data) - low > (4 << 20):
            return None, data


def _last(data: bytes, name: str, seen: int, decoder: msgspec.json.Decoder[list[T]]) -> list[T]:
    """The end of the array; other keys may follow it."""
    close = data.rfind(b"]")
    for _ in range(_TRIES):
        if close < 0:
            break
        try:
            return decoder.decode(b"[" + data[: close + 1])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            close = data.rfind(b"]", 0, close)
    return _explain(data, name, seen, decoder)


def _explain(data: bytes, name: str, seen: int, decoder: msgspec.json.Decoder[list[T]]) -> list[T]:
    """Says which event is wrong."""
    close = data.rfind(b"]")
    text = b"[" + (data[: close + 1] if close >= 0 else data)
    try:
        decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        match = re.search(r"\$\[(\d+)\]", str(error))
        place = f"event {seen + int(match[1])}" if match else f"after event {seen}"
        raise InputError(
            f"{place}: {error}", where=name, hint="the timeline is cut off or damaged; export it again"
        ) from error
    raise InputError("the timeline has no end", where=name, hint="it is cut off; export it again")


EVENTS: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[Event])
ANY_EVENTS: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[Any])
