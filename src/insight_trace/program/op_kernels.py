"""Kernel sources of custom operators (`op_kernel/*.cpp`): what the vendor's build generates around them.

Their tiling data is a struct that host code defines with macros; `GET_TILING_DATA` copies it from global memory into a
variable, and a tiling key, which the host chooses, stands for the code that runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from insight_trace.errors import RequestError
from insight_trace.simulate.embedded import ascendc

KEY = "TILING_KEY_VAR"
_USES = re.compile(r"\bGET_TILING_DATA\w*\s*\(|\bTILING_KEY_IS\s*\(")
_KEYED = re.compile(r"\bTILING_KEY_IS\s*\(")
_TYPE = re.compile(r"\b(?:ORIG_)?DTYPE_[A-Z]\w*\b")
_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*|//[^\n]*|/\*.*?\*/", re.M | re.S)
_INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
_DEFAULT = re.compile(r"^\s*REGISTER_TILING_DEFAULT\s*\(([^)]+)\)", re.M)
_NAMED = re.compile(r"\bGET_TILING_DATA_WITH_STRUCT\s*\(\s*([\w:]+)\s*,")
_CLASS = re.compile(r"\bREGISTER_TILING_DATA_CLASS\s*\(\s*(\w+)\s*,\s*([\w:]+)\s*\)")


class OpKernel(Struct, frozen=True):
    """A source of this kind."""

    header: str  # what its build generates: to be read before it
    tiling: str | None  # the struct of its tiling data
    defines: tuple[str, ...]  # for the compiler, without those that the header has


def op_kernel(path: Path, folders: Sequence[Path], defines: Sequence[str]) -> OpKernel | None:
    """What belongs around a source; None for one that asks for no tiling data and no tiling key."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in _own_sources(path, folders)]
    text = "\n".join(texts)
    if not _USES.search(text):
        return None
    given = dict(_split(define) for define in defines)
    key = given.pop(KEY, None)
    if key is None and _KEYED.search(text):
        raise RequestError(
            "the kernel asks for its tiling key, and none is given",
            where=str(path),
            hint=f"{KEY}=1 among its defines: `-D {KEY}=1`, or defines=('{KEY}=1',) in Python",
        )
    if missing := _types_not_given(text) - set(given):
        first = min(missing)
        raise RequestError(
            f"the kernel names types of its inputs that its build defines: {', '.join(sorted(missing))}",
            where=str(path),
            hint=f"`-D {first}=half`, or defines=('{first}=half',) in Python",
        )
    definitions = [one for one in _definitions(path, folders) if one not in texts]
    struct = _struct_of(path.stem, key, text, "\n".join(definitions))
    header = _HEADER.format(
        structs=ascendc.tiling_structs(definitions), key=key or 0, default=struct or "insight_trace::NoTiling"
    )
    plain = tuple(f"{name}={value}" if value else name for name, value in given.items())
    return OpKernel(header, struct, (*plain, "HAVE_WORKSPACE", "HAVE_TILING"))


def _types_not_given(text: str) -> set[str]:
    """What it names of the kind and does not ask for first."""
    asked = set(_TYPE.findall("\n".join(_DIRECTIVE.findall(text))))
    return set(_TYPE.findall(_DIRECTIVE.sub("", text))) - asked


def _split(define: str) -> tuple[str, str]:
    name, _, value = define.partition("=")
    return name, value


def _own_sources(path: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """The source and the headers beside it that it includes."""
    seen: set[Path] = set()
    wanted = [path]
    while wanted:
        one = wanted.pop()
        if one in seen:
            continue
        seen.add(one)
        yield one
        for name in _INCLUDED.findall(one.read_text(encoding="utf-8", errors="replace")):
            found = next((f / name for f in (one.parent, *folders) if (f / name).is_file()), None)
            if found:
                wanted.append(found.resolve())


def _definitions(path: Path, folders: Sequence[Path]) -> list[str]:
    """Headers with definitions of tiling data, where a project of this kind has them."""
    places = (path.parent, path.parent.parent / "op_host", path.parent.parent / "op_tiling", *folders)
    found = []
    for place in dict.fromkeys(one.resolve() for one in places):
        for header in sorted(place.glob("*.h")):
            text = header.read_text(encoding="utf-8", errors="replace")
            if "BEGIN_TILING_DATA_DEF" in text:
                found.append(text)
    return found


def _struct_of(stem: str, key: str | None, text: str, definitions: str) -> str | None:
    """The struct of the tiling data: the one that the kernel names, or that is registered for its operator."""
    for pattern in (_DEFAULT, _NAMED):
        if named := pattern.search(text):
            return named[1].strip()
    registered = [(name, struct.split("::")[-1]) for name, struct in _CLASS.findall(definitions)]
    wanted = stem.replace("_", "").casefold()
    ranked = sorted(
        registered,
        key=lambda one: (
            one[0].casefold() != f"{wanted}_{key}",
            one[0].replace("_", "").casefold() != wanted,
            bool(re.search(r"_\d+$", one[0])),
        ),
    )
    return ranked[0][1] if ranked else None


_HEADER = """\
#pragma once
#include "kernel_tiling/kernel_tiling.h"
{structs}
namespace optiling {{ using namespace AscendC::tiling; }}
#undef TILING_KEY_VAR
#define TILING_KEY_VAR {key}
#define INSIGHT_TRACE_TILING {default}
#include "insight_trace_program/op_kernel.hpp"
"""
