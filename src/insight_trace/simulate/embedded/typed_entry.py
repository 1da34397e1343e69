"""Entries with parameters of their own: `AICORE void f(__gm__ T *x, …, int32_t n)` beside `kernel_entry(args)`.

A wrapper in C++ includes the kernel, takes each parameter from a slot of the args array, and calls it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import InputError, RequestError

ENTRY = "insight_trace_entry"
SLOTS = 48  # the two behind them hold the contexts
BLOCK, BLOCK_COUNT, LANE = "block", "block count", "lane"

# What a trailing parameter that no slot feeds is given.
_HIDDEN = {BLOCK: "get_block_idx(args)", BLOCK_COUNT: "get_block_num(args)", LANE: "get_sub_block_id(args)"}
_NAME = re.compile(r"^[A-Za-z_]\w*$")
_TYPE = re.compile(r"^(?:const )?(?:unsigned |signed )?[A-Za-z_][\w:]*$")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: a pointer to global memory or a scalar, from the next slot or, if hidden, from the context."""

    type: str  # of what a pointer points to, or of the scalar: "float", "int32_t"
    pointer: bool = False
    hidden: str = ""  # BLOCK, BLOCK_COUNT or LANE


def wrapper_source(kernel: Path, function: str, parameters: Sequence[Parameter]) -> str:
    """C++ with `extern "C" void insight_trace_entry(int64_t *args)`, to be compiled in place of the kernel."""
    if not _NAME.match(function):
        raise RequestError(f"'{function}' is no name of a C++ function")
    given = [p for p in parameters if not p.hidden]
    if len(given) > SLOTS:
        raise InputError(
            f"{function} takes {len(given)} arguments; {SLOTS} slots are there", where=str(kernel)
        )
    passed, slot = [], 0
    for parameter in parameters:
        if not _TYPE.match(parameter.type):
            raise RequestError(f"'{parameter.type}' is no type of a kernel parameter")
        if parameter.hidden:
            passed.append(f"static_cast<{parameter.type}>({_HIDDEN[parameter.hidden]})")
            continue
        form = "insight_trace_pointer" if parameter.pointer else "insight_trace_scalar"
        passed.append(f"{form}<{parameter.type}>(args[{slot}])")
        slot += 1
    arguments = ",\n        ".join(passed)
    path = str(kernel.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    return _WRAPPER % {"path": path, "entry": ENTRY, "function": function, "arguments": arguments}


def parse_parameters(text: str) -> list[Parameter]:
    """The parameters between the brackets of a kernel's definition."""
    plain = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    found = []
    for part in (piece.strip() for piece in plain.split(",")):
        if not part:
            continue
        words = re.sub(r"\b(?:__gm__|__restrict__|__restrict|volatile|register)\b", " ", part)
        pointer = "*" in words
        words = " ".join(words.replace("*", " ").split())
        pieces = [w for w in words.split() if w != "const"]
        if len(pieces) > 1 and pieces[0] not in ("unsigned", "signed"):
            pieces = pieces[:-1]  # the parameter's name
        elif len(pieces) > 2:
            pieces = pieces[:-1]
        if not pieces:
            raise InputError(f"the parameter '{part}' has no type")
        found.append(Parameter(" ".join(pieces), pointer))
    return found


_WRAPPER = """\
#include "%(path)s"

#include "intrinsic.h"
#include "tensor.h"

namespace {
template <class T> T *insight_trace_pointer(int64_t slot) {
    auto *tensor = reinterpret_cast<ChipTensor *>(slot);
    return tensor ? reinterpret_cast<T *>(tensor->buffer.addr) + tensor->start_offset : nullptr;
}
template <class T> T insight_trace_scalar(int64_t slot) { return from_u64<T>(static_cast<uint64_t>(slot)); }
} // namespace

extern "C" void %(entry)s(int64_t *args) {
    %(function)s(
        %(arguments)s);
}
"""
