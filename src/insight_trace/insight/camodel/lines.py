"""The grammar of the core model's log lines, and the names that they give to pipes."""

from __future__ import annotations

import re
from typing import NamedTuple

from insight_trace.insight.prepared import LARGEST_CYCLE
from insight_trace.model import Pipe
from insight_trace.recording.kinds import FLAG_NAMES

# [info] [tick] (PC: 0x…)@CORE00 PIPE ISSUE : (Binary: 0x…) (ID: n) MNEMONIC  operands
_LINE = re.compile(
    r"(?:\[info\] )?\[(?P<tick>[0-9]{1,24})\]\s?\(PC: 0x(?P<pc>[0-9a-f]{1,16})\)(?:@CORE[0-9]{1,2})?\s?"
    r"(?P<pipe>[A-Za-z0-3_]+)(?: ISSUE| IB ISSUE)?\s*"
    r": \(Binary: 0x[0-9a-f ]{8,34}\) (?:\(ID: (?P<id>[0-9]{6,15})\)\s)?"
    r"(?P<name>[0-9a-zA-Z_-]*)(?:(?:\(|\s{2})(?P<detail>[\[\]|a-zA-Z0-9_, :=/#-]*)[) ]?)?"
    r"(?:, instr ID is: [0-9]+.)?(?P<popped>\.? (?:poped from IQ))?"
)
_SIMT = re.compile(r"\[warpId:([0-9]{1,2})\].*\[schId:([0-3])\]")
_MASKS = re.compile(r"\[prdctMask:([0-9a-zA-Z]{0,8})\],\[execMask:([0-9a-zA-Z]{0,8})\]")
_CACHE_MISS = re.compile(
    r"(?:\[info\] )?(?:\[(?P<a>[0-9]+)\]|@?(?P<b>[0-9]+)): icache read address is 0x(?P<pc>[0-9a-f]{1,16}), "
    r"(?P<detail>size is 0x[0-9a-f]{8}(?:, type:[0-9]{0,3}, last:[0-9]{0,3})?, status is MISS)\s*"
)
_FETCH = re.compile(r"\[info\] ([0-9]+): lookup_tag is fetch req addr:0x([0-9a-f]{1,16})")
_DECODE = re.compile(
    r"\[info\] ([0-9]+): (?:is_single_issue instr, pc|ccu do issue success.issue isa pc ):0x([0-9a-f]{1,16})"
)

_UNCHANGED = frozenset(pipe.name for pipe in Pipe) - FLAG_NAMES - {"SCALARLDST"}
_OTHER_NAMES = {"VECTOR0": "VECTOR", "VEC0": "VECTOR", "VEC": "VECTOR", "FC": "FLOWCTRL"}
_OTHER_NAMES |= {"FIX_PIPE": "FIXP", "ISSUE": "EVENT"}
LARGEST_TICK = LARGEST_CYCLE


class Line(NamedTuple):
    """One instruction line."""

    tick: int
    pc: int
    pipe: Pipe
    name: str
    detail: str
    id: int  # -1: the line has none
    raw: str  # the detail with its blanks


def is_user_mark(detail: str) -> bool:
    """Writes to the registers that user marks go through."""
    return "LPCNT" in detail or "SPR:COND," in detail


def pipe_named(pipe: str, name: str, detail: str) -> Pipe:
    """The lane of an instruction from the name that the log gives to its pipe."""
    if is_user_mark(detail):
        return Pipe.USERMARK
    if pipe in _UNCHANGED:
        return Pipe[pipe]
    if pipe in _OTHER_NAMES:
        return Pipe[_OTHER_NAMES[pipe]]
    if "scalar_ld" in name or "scalar_st" in name:
        return Pipe.SCALAR
    return Pipe.ALL


def parse_line(text: str, *, popped: bool) -> Line | None:
    """One line of an instruction log; None if it is another kind of line."""
    match = _LINE.match(text)
    if match is None or (popped and match["popped"]):
        return None
    raw = match["detail"] or ""
    detail = raw.replace(" ", "")
    name = match["name"]
    tick = int(match["tick"])
    if tick > LARGEST_TICK:
        return None
    number = match["id"]
    pipe = pipe_named(match["pipe"], name, detail)
    return Line(tick, int(match["pc"], 16), pipe, name, detail, -1 if number is None else int(number), raw)


def is_repeated(text: str) -> bool:
    """A popped line that only says an instruction left its queue; it is not a second start."""
    match = _LINE.match(text)
    return match is not None and match["popped"] is not None


def warp_of(detail: str) -> int:
    match = _SIMT.search(detail)
    return -1 if match is None else int(match[1])


def active_threads(detail: str) -> int | None:
    """Threads that an ended SIMT instruction ran for."""
    match = _MASKS.search(detail)
    if match is None:
        return None
    try:
        return (int(match[1], 16) & int(match[2], 16)).bit_count()
    except ValueError:
        return None


def parse_cache_miss(text: str) -> tuple[int, int, str] | None:
    """Tick, address and detail of an instruction cache miss."""
    match = _CACHE_MISS.fullmatch(text)
    if match is None:
        return None
    tick = int(match["a"] or match["b"])
    if tick > LARGEST_TICK:
        return None
    return tick, int(match["pc"], 16), match["detail"].replace(" ", "")


def parse_fetch(text: str) -> tuple[int, int] | None:
    match = _FETCH.search(text)
    return None if match is None else (int(match[1]), int(match[2], 16))


def parse_decode(text: str) -> tuple[int, int] | None:
    match = _DECODE.search(text)
    return None if match is None else (int(match[1]), int(match[2], 16))
