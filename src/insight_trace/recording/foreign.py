"""Operand text of traces that are not ours, or older than recordings: the one place that reads it."""

from __future__ import annotations

import re

_FLAG = (
    r"PIPE:([A-Za-z0-9]+),TRIGGERPIPE:([A-Za-z0-9]+),FLAGID:([A-Za-z0-9]*)"
    r"|pipe_type:([A-Za-z0-9]+),tigger_pipe:([A-Za-z0-9]+),event_id:([A-Za-z0-9]+)"
)
_CROSS_CORE = r"PIPE:([A-Za-z0-9]{1,10}),.*sync_id:([0-9]{1,10})"
_SHAPE = r"(?:^|,)([MKN]):(\d+)"
_DTYPE = r"dtype:([A-Za-z]+\d+)"
_ELEMENTS = r"(?:^|,)elements:(\d+)"
_REPEAT = r"XT:(?:X\d+=)?0x([0-9a-fA-F]+)"


def flag_of_text(detail: str) -> tuple[str, str, str] | None:
    """Source pipe, target pipe and number of a flag, in whatever order they stand."""
    match = re.search(_FLAG, detail)
    if match:
        found = match.groups()[:3] if match[1] else match.groups()[3:]
        return str(found[0]), str(found[1]), str(found[2])
    fields = dict(part.split(":", 1) for part in detail.split(",") if ":" in part)
    if "PIPE" not in fields or "TRIGGERPIPE" not in fields:
        return None
    return fields["PIPE"], fields["TRIGGERPIPE"], fields.get("FLAGID", "")


def cross_core_of_text(detail: str) -> tuple[str, int] | None:
    """The lane and the sync id of a flag between cores."""
    match = re.search(_CROSS_CORE, detail)
    return (match[1], int(match[2])) if match else None


def element_of_text(detail: str) -> str:
    """The element type as the text names it (F16, S32); "" where it does not."""
    match = re.search(_DTYPE, detail)
    return match[1] if match else ""


def products_of_text(detail: str) -> int:
    """m x k x n of a matrix product, 0 where the text does not say."""
    shape = {key: int(value) for key, value in re.findall(_SHAPE, detail)}
    return shape["M"] * shape["K"] * shape["N"] if len(shape) == 3 else 0


def elements_of_text(detail: str) -> tuple[int, bool]:
    """Elements of a vector instruction, and whether these are the active ones alone.

    Where the text does not name them: repeats (the top byte of XT) times those of 256 bytes.
    """
    named = re.search(_ELEMENTS, detail)
    if named:
        return int(named[1]), True
    bits, repeat = re.sub(r"\D", "", element_of_text(detail)), re.search(_REPEAT, detail)
    if not bits or not int(bits) or not repeat:
        return 0, False
    return (int(repeat[1], 16) >> 56) * (2048 // int(bits)), False
