"""Arrays that a kernel declares in a memory of its core: `__ubuf__ float x[64];` within a function.

The device compiler finds a place for them. Here the words for memories come out of the preprocessor as attributes
(ascendc_prelude.hpp): an array with one becomes a reference to a place that ascendc_calls.hpp finds, all others go.

The tensor API asks the type of a pointer which memory it is of. Here types do not tell, and a pointer is one to global
memory: what was declared with another memory is named with it where it becomes a tensor.
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
# what a name stands for: something in a memory of the core, or else a pointer
_DECLARED = rf"(?:{_WORD}\s*(?:const\s+)?[A-Za-z_][\w:]*(?:<[^<>;()]*>)?[\s*]*|\w\s*\*[\s*]*)(?<=[\s*])NAME\s*[\[,);=]"
_TENSOR = re.compile(r"\bMakeMemPtr(?P<open>\s*\(\s*)(?P<name>[A-Za-z_]\w*)\b(?!\s*(?:::|<|\())")
_LOCATIONS = {"Bias": "BIAS", "Scaling": "FIXBUF"}  # whose names are others in the library


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

    if "MakeMemPtr" in text:
        text = _with_locations(text)
    return _ANY.sub("", _ARRAY.sub(place, text))


def _with_locations(text: str) -> str:
    def located(found: re.Match[str]) -> str:
        before = list(re.finditer(_DECLARED.replace("NAME", found["name"]), text[: found.start()]))
        declared = before[-1] if before else None
        if not declared or not declared["space"]:
            return found[0]
        location = _LOCATIONS.get(declared["space"], declared["space"])
        return f"MakeMemPtr<::AscendC::Te::Location::{location}>{found['open']}{found['name']}"

    return _TENSOR.sub(located, text)
