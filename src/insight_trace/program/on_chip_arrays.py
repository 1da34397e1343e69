"""Arrays that a kernel declares in a memory of its core: `__ubuf__ float x[64];` within a function.

The device compiler finds a place for them. Here the words for memories come out of the preprocessor as attributes
(ascendc_prelude.hpp): an array with one becomes a reference to a place that ascendc_calls.hpp finds, all others go.
"""

from __future__ import annotations

import re
import zlib

_WORD = r"__attribute__\(\(insight_trace_in_(?P<space>\w+)\)\)"
_ARRAY = re.compile(
    rf"(?<=[;{{}}\n])(?P<blank>[ \t]*){_WORD}\s*(?P<type>[A-Za-z_][\w:]*(?:<[^<>;()]*>)?)\s+(?P<name>[A-Za-z_]\w*)\s*"
    r"(?P<extents>(?:\[[^\[\];]+\]\s*)+);"
)
_ANY = re.compile(_WORD)


def with_on_chip_arrays(text: str) -> str:
    """A preprocessed source, line by line where it was."""
    if not _ANY.search(text):
        return text

    def place(found: re.Match[str]) -> str:
        if text.count("{", 0, found.start()) == text.count("}", 0, found.start()):
            return found[0]  # in no function
        kind, name, extents = found["type"], found["name"], found["extents"].strip()
        key = zlib.crc32(f"{found.start()} {name}".encode())
        return (
            f"{found['blank']}{kind} (&{name}){extents} = ::insight_trace::on_chip_array<{kind}{extents}>("
            f"::insight_trace::Space::{found['space']}, {key}u);" + "\n" * found[0].count("\n")
        )

    return _ANY.sub("", _ARRAY.sub(place, text))
