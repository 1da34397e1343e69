"""Entries with parameters of their own: `AICORE void f(__gm__ T *x, …, int32_t n)` beside `kernel_entry(args)`.

A wrapper in C++ includes the kernel, takes each parameter from a slot of the args array, from the context or as
it is given, and calls it; a mix has one call per kind of core.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from insight_trace.errors import InputError, RequestError

ENTRY = "insight_trace_entry"
SLOTS = 48  # the two behind them hold the contexts
BLOCK, BLOCK_COUNT, LANE = "block", "block count", "lane"

# What a parameter that no slot feeds is given.
_HIDDEN = {BLOCK: "get_block_idx(args)", BLOCK_COUNT: "get_block_num(args)", LANE: "get_sub_block_id(args)"}
_NAME = re.compile(r"[A-Za-z_]\w*")
_TYPE = re.compile(r"(?:const )?(?:unsigned |signed )?[A-Za-z_][\w:]*")


class EntryParameter(Struct, frozen=True):
    """One parameter: a pointer to global memory or a scalar, from the next slot unless it says otherwise."""

    type: str  # of what a pointer points to, or of the scalar: "float", "int32_t"
    pointer: bool = False
    hidden: str = ""  # BLOCK, BLOCK_COUNT or LANE: from the context
    literal: str = ""  # C++ that the caller vouches for, passed as it is


class EntryCall(Struct, frozen=True):
    """A function to call, on every core or on one kind of core."""

    function: str
    parameters: tuple[EntryParameter, ...]
    only: str = ""  # the macro of a kind of core: __DAV_CUBE__ or __DAV_VEC__


def wrapper_source(include: str, calls: Sequence[EntryCall]) -> str:
    """C++ with `extern "C" void insight_trace_entry(int64_t *args)`, to be compiled in place of the kernel.

    `include` is the kernel's source as an #include names it. Each call counts its slots from 0.
    """
    if set(include) & set('"\\\n\r'):
        raise InputError(f"{include!r} cannot stand in an #include")
    body = "".join(_call(call) for call in calls)
    return _WRAPPER % {"include": include, "entry": ENTRY, "body": body}


def _call(call: EntryCall) -> str:
    for name in (call.function, call.only or "_"):
        if not _NAME.fullmatch(name):
            raise RequestError(f"'{name}' is no name of a C++ function")
    passed, slot = [], 0
    for parameter in call.parameters:
        if parameter.literal:
            passed.append(parameter.literal)
            continue
        if not _TYPE.fullmatch(parameter.type):
            raise RequestError(f"'{parameter.type}' is no type of a kernel parameter")
        if parameter.hidden:
            passed.append(f"static_cast<{parameter.type}>({_HIDDEN[parameter.hidden]})")
            continue
        form = "insight_trace_pointer" if parameter.pointer else "insight_trace_scalar"
        passed.append(f"{form}<{parameter.type}>(args[{slot}])")
        slot += 1
    if slot > SLOTS:
        raise InputError(f"{call.function} takes {slot} arguments; {SLOTS} slots are there")
    arguments = "".join(f"\n        {text}," for text in passed).removesuffix(",")
    text = f"    {call.function}({arguments});\n"
    return f"#if defined({call.only})\n{text}#endif\n" if call.only else text


_WRAPPER = """\
#include "%(include)s"

#include "intrinsic.h"
#include "tensor.h"

namespace {
template <class T> [[maybe_unused]] __gm__ T *insight_trace_pointer(int64_t slot) {
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(slot);
    return tensor ? reinterpret_cast<__gm__ T *>(tensor->buffer.addr) + tensor->start_offset : nullptr;
}
template <class T> [[maybe_unused]] T insight_trace_scalar(int64_t slot) {
    return from_u64<T>(static_cast<uint64_t>(slot));
}
} // namespace

extern "C" void %(entry)s(int64_t *args) {
    (void)args;
%(body)s}
"""
