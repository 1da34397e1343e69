"""The words of `.pto` text.

A type with its angle brackets is one token: tile types make up most of a file, and nothing but a look
at one of them ever needs its inside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from insight_trace.errors import InputError

# Angle brackets nest at most this deep in anything that PyPTO or PTOAS print:
# !pto.tile_buf<32x32xf32, strided<[?, 1], offset: ?>, #pto.address_space<vec>>
_ANGLE_DEPTH = 4


def _angles() -> str:
    # Possessive and bounded, so that an unclosed bracket in a hostile file costs a glance, not a day.
    pattern = r"<[^<>]{0,4000}+>"
    for _ in range(_ANGLE_DEPTH - 1):
        pattern = rf"<(?:[^<>]|{pattern}){{0,4000}}+>"
    return pattern


_TOKEN = re.compile(
    rf"""(?P<space>[ \t\r\f]+)
    |(?P<newline>\n)
    |(?P<comment>//[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<arrow>->)
    |(?P<value>%[A-Za-z0-9_$.\-]+(?:\#[0-9]+)?)
    |(?P<symbol>@(?:[A-Za-z0-9_$.\-]+|"[^"\n]*"))
    |(?P<block>\^[A-Za-z0-9_$.\-]+)
    |(?P<type>![A-Za-z_][A-Za-z0-9_.$]*(?:{_angles()})?)
    |(?P<attribute>\#[A-Za-z_][A-Za-z0-9_.$]*(?:{_angles()})?)
    |(?P<angle>{_angles()})
    |(?P<number>-?(?:0x[0-9A-Fa-f]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?))
    |(?P<word>[A-Za-z_][A-Za-z0-9_.$]*)
    |(?P<mark>[()\[\]{{}},=:;<>?*+\-/|&!\#])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    line: int
    opens_line: bool  # nothing but blanks before it on its line


def tokenize(text: str, where: str) -> list[Token]:
    """All tokens, comments and blanks removed; a character that has no place in the text is an error."""
    tokens: list[Token] = []
    line, position, fresh, size = 1, 0, True, len(text)
    match = _TOKEN.match
    while position < size:
        found = match(text, position)
        if found is None:
            raise InputError(
                f"character {text[position]!r} is not part of .pto text",
                where=f"{where}:{line}",
                hint="the file may be cut off or not a .pto file; generate it again",
            )
        kind = found.lastgroup or ""
        position = found.end()
        if kind == "newline":
            line += 1
            fresh = True
        elif kind not in ("space", "comment"):
            word = found.group()
            tokens.append(Token(kind, word, line, fresh))
            line += word.count("\n")
            fresh = False
    return tokens
