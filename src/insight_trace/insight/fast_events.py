"""Reads the form of event that the vendor's exporter and ours write, many events at a time.

Both write the same keys in the same order without spaces, so an event is six pieces of text: what stands
before the detail, the detail, what stands up to the duration or the id, that, what stands up to the time, and
the time. The pieces that are neither detail nor number repeat; each is read once and recognised afterwards.
Whatever does not fit to the letter is refused, and the caller reads it in the general way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLICE, BEGIN, END, FLOW = range(4)
_PHASES = {"X": SLICE, "B": BEGIN, "E": END, "s": FLOW, "t": FLOW}
_OPENINGS = {',{"args': END, ',{"cat': FLOW}  # of events without a detail
_TEXT = r'((?:[^"\\]|\\.)*)'
_OPENING = re.compile(rf',\{{"args":\{{"code":"{_TEXT}","detail":')
_MIDDLES = (
    re.compile(rf',"pc_addr":"{_TEXT}"(?:,"process_bytes":"{_TEXT}")?\}},"cname":"{_TEXT}","dur"'),
    re.compile(rf',"pc_addr":"{_TEXT}"(?:,"process_bytes":"{_TEXT}")?\}},"cname":"{_TEXT}","id":'),
    re.compile(rf'\{{\}},"cname":"{_TEXT}","id":'),
    re.compile(rf'"{_TEXT}","id":'),
)
_CLOSING = re.compile(rf',?"name":"{_TEXT}","ph":"([XBEst])","pid":"{_TEXT}","tid":"{_TEXT}","ts"')
_QUOTE, _COLON, _COMMA, _OPEN, _CLOSE = b'":,{}'
_CUT = "\x01"  # no text may hold it, so it can stand for the places where an event is cut
_PIECES = 6
_KEYS = (7, 8, 11, 12)  # of flows, ends, slices and begins, those that move bytes
_NUMBERS: msgspec.json.Decoder[list[float]] = msgspec.json.Decoder(list[float])
_STRING: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)


class UnknownForm(Exception):  # noqa: N818 - not a fault: the text may be right all the same
    """The text is not of the form that is read here."""


class Repeated(dict[str, int]):
    """Numbers pieces of text as they first occur, and reads each of them once."""

    def __init__(self, read: Any) -> None:
        super().__init__()
        self._read = read
        self.said: list[Any] = []
        self._facts: list[tuple[int, int, int]] = []
        self._table = np.zeros((0, 3), dtype=np.int64)

    def __missing__(self, text: str) -> int:
        kind, value = self._read(text)
        number = self[text] = len(self.said)
        self.said.append(value)
        self._facts.append((kind, text.count('"'), text.count("\\")))
        return number

    def facts(self) -> NDArray[np.int64]:
        """By number: the kind of event, and how many quotes and backslashes the piece has."""
        if len(self._table) != len(self._facts):
            self._table = np.array(self._facts, dtype=np.int64)
        return self._table


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return _STRING.decode(f'"{text}"')
    except msgspec.DecodeError as error:
        raise UnknownForm from error


def _opening(text: str) -> tuple[int, str]:
    """The call stack of a slice or of a begin; of other events nothing."""
    kind = _OPENINGS.get(text)
    if kind is not None:
        return kind, ""
    match = _OPENING.fullmatch(text)
    if match is None:
        raise UnknownForm
    return SLICE, _unescaped(match[1])


def _middle(text: str) -> tuple[int, tuple[str, str | None]]:
    """The address and the bytes moved."""
    for kind, pattern in enumerate(_MIDDLES):
        match = pattern.fullmatch(text)
        if match is not None:
            for part in match.groups():
                _unescaped(part or "")
            if kind > BEGIN:
                return kind, ("", None)
            return kind, (_unescaped(match[1]), None if match[2] is None else _unescaped(match[2]))
    raise UnknownForm


def _closing(text: str) -> tuple[int, tuple[str, str, str, str]]:
    """Name, process, thread and phase."""
    match = _CLOSING.fullmatch(text)
    if match is None or (match[2] == "X") == text.startswith(","):
        raise UnknownForm
    return _PHASES[match[2]], (*map(_unescaped, (match[1], match[3], match[4])), match[2])  # type: ignore[return-value]


class Events(msgspec.Struct, frozen=True, eq=False):
    """Events by column: numbers of their repeated pieces, and what is their own."""

    kind: NDArray[np.int64]
    opening: NDArray[np.int64]
    middle: NDArray[np.int64]
    closing: NDArray[np.int64]
    detail: list[str]
    own: list[str]  # text of a slice's duration, or an event's id
    time: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time)


def numbers(texts: list[str]) -> NDArray[np.float64]:
    """Numbers as JSON writes them."""
    try:
        found = _NUMBERS.decode(f"[{','.join(texts)}]")
    except msgspec.DecodeError as error:
        raise UnknownForm from error
    if len(found) != len(texts):
        raise UnknownForm
    return np.array(found, dtype=np.float64)


class KnownForm:
    """What repeats in a document, over all its pieces."""

    def __init__(self) -> None:
        self.openings = Repeated(_opening)
        self.middles = Repeated(_middle)
        self.closings = Repeated(_closing)

    def read(self, data: bytes) -> Events:
        """Whole events with a comma between them, or `UnknownForm`."""
        if not data.isascii():
            raise UnknownForm
        # with a comma before it, the first event is like the others
        text = bytearray(b",") + data
        buffer = np.frombuffer(text, dtype=np.uint8)
        if len(buffer) < 8 or int(buffer.min()) < 32:
            raise UnknownForm
        quoted = buffer == _QUOTE
        escapes = data.count(b"\\")
        places = _cuts(buffer, quoted)
        buffer[places] = ord(_CUT)
        # the brace that ends the last event ends the text as well
        pieces = text.decode("ascii").split(_CUT)
        if len(pieces) != len(places) + 1 or pieces.pop():
            raise UnknownForm
        opening = self._numbered(self.openings, pieces[0::_PIECES])
        middle = self._numbered(self.middles, pieces[2::_PIECES])
        closing = self._numbered(self.closings, pieces[4::_PIECES])
        opened, passed, closed = self.openings.facts(), self.middles.facts(), self.closings.facts()
        kind = closed[closing, 0]
        begun = np.array([SLICE, SLICE, END, FLOW])[kind]
        if not ((passed[middle, 0] == kind).all() and (opened[opening, 0] == begun).all()):
            raise UnknownForm
        # what is not in a repeated piece is in a detail, an id or a number, and there it is refused
        known = ((opened, opening), (passed, middle), (closed, closing))
        used = np.sum([np.bincount(index, minlength=len(table)) @ table for table, index in known], axis=0)
        cut = int(np.array([2, 4, 3, 3])[kind].sum())  # quotes at which an event was cut
        if int(np.count_nonzero(quoted)) != cut + int(used[1]) or escapes != int(used[2]):
            raise UnknownForm
        return Events(
            kind=kind,
            opening=opening,
            middle=middle,
            closing=closing,
            detail=pieces[1::_PIECES],
            own=pieces[3::_PIECES],
            time=numbers(pieces[5::_PIECES]),
        )

    @staticmethod
    def _numbered(table: Repeated, pieces: list[str]) -> NDArray[np.int64]:
        return np.fromiter(map(table.__getitem__, pieces), dtype=np.int64, count=len(pieces))


def _cuts(buffer: NDArray[np.uint8], quoted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where to cut: six places for each event, in their order."""
    keys = np.flatnonzero(quoted[:-1] & (buffer[1:] == _COLON))
    # the comma between them is asked for by the opening of an event
    ends = np.flatnonzero((buffer[:-2] == _CLOSE) & (buffer[2:] == _OPEN))
    ends = np.append(ends, len(buffer) - 1)
    after = np.searchsorted(keys, ends)  # the first key of the next event
    first = np.concatenate(([0], after[:-1]))
    count = after - first
    if int(buffer[-1]) != _CLOSE or not np.isin(count, _KEYS).all():
        raise UnknownForm
    detailed = count > 8
    own, name = keys[after - 6], keys[after - 5]
    text = buffer[own + 2] == _QUOTE  # an id, where a duration is a number
    detail = np.where(detailed, keys[first + 2] + 2, keys[first])
    address = np.where(detailed, keys[np.minimum(first + 3, len(keys) - 1)] - 10, keys[first] + 1)
    places = np.stack(
        (
            detail,
            address,
            own + np.where(text, 2, 1),
            name - np.where(text, 7, 6),
            keys[after - 1] + 1,
            ends,
        ),
        axis=1,
    ).reshape(-1)
    if not (np.diff(places) > 0).all():
        raise UnknownForm
    wanted = np.where(text, _QUOTE, _COMMA)
    if not ((buffer[detail] == _QUOTE).all() and (buffer[places[3::_PIECES]] == wanted).all()):
        raise UnknownForm
    if not (buffer[address] == np.where(detailed, _QUOTE, _COLON)).all():
        raise UnknownForm
    return places
