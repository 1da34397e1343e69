"""What went wrong when a compiler refuses a kernel, in one line for people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from insight_trace.simulate.embedded.engine_objects import INCLUDE
from insight_trace.simulate.embedded.source_lines import OURS


@dataclass(frozen=True, slots=True)
class CompileError:
    """The first thing that the compiler objected to."""

    file: str
    line: int
    message: str
    missing_op: str = ""  # what of the tile API our headers lack, if that is the reason
    refused: str = ""  # what the source wants that is not there, and what to do


_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d{1,9}):(?:\d+:)? (?:fatal )?error: (?P<message>.*)$", re.M
)
_REQUIRED = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d{1,9}):(?:\d+:)?\s+required from here", re.M)
_UNDECLARED = re.compile(
    r"[‘'](?P<name>(?:pto::)?\w+)[’'] (?:was not declared|is not a member|has not been declared)"
    r"|[‘'](?P<type>\w+)[’'] (?:in namespace [‘']pto\b|does not name a type)"
    r"|(?:use of undeclared identifier|unknown type name) [‘'](?P<clang>\w+)[’']"
    r"|no (?:member|template|type) named [‘'](?P<member>\w+)[’']"
)
_MISSING_HEADER = re.compile(
    r"[‘']?(?P<header>pto/[\w/.-]+)[’']?: No such file|[‘'](?P<clang>pto/[\w/.-]+)[’'] file not found"
)
# Tile ops (TADD, MGATHER) and what they work with (TPipe), or anything of the tile API's own namespace.
_TILE_API = re.compile(
    r"^(?:pto::\w+|[TM][A-Z]\w+|hifloat4\w*)$"
)  # HiFloat4 is of a chip that is not modelled
# Headers and functions of the vendor's class library (AscendC) that our own subset of it lacks.
_VENDOR_HEADER = re.compile(
    r"(?P<name>(?:basic_api/|adv_api/|kernel_)[\w/]+\.h|kernel_operator\.h|lib/[\w/]+\.h)"
    r"(?:: No such file or directory|[’'] file not found)"
)

_VENDOR_MEMBER = re.compile(
    r"[‘'](?P<name>\w+)[’'] is not a (?:class template )?member of [‘'](?:AscendC|matmul)[’']"
    r"|no (?:member|template|type) named [‘'](?P<clang>\w+)[’'] in namespace [‘'](?:AscendC|matmul)[’']"
)
# What our own headers say of a form that they do not have.
_NOT_THERE = re.compile(r"static assertion failed.*?: (?P<what>\S.* (?:is|are) not supported)$")
_FROM_A_CHECKOUT = (
    "{} is not in our own subset of AscendC; --ascendc-root PATH (or INSIGHT_TRACE_ASCENDC) names a checkout of asc-devkit, "
    "whose headers have it (docs/ascendc.md)"
)


def first_error(log: str, source: Path) -> CompileError:
    """The first error of a compiler's output, placed in the kernel rather than in a header where possible."""
    match = _ERROR.search(log)
    if match is None:
        lines = [line for line in log.splitlines() if line.strip()]
        return CompileError(str(source), 0, lines[0] if lines else "the compiler failed without a word")
    said_in, line, message = _in_this_tree(match["file"]), int(match["line"]), match["message"]
    file = said_in
    if Path(file).name != source.name:
        # an instantiation inside a header: the kernel's own line stands in the notes before or after it
        for note in _REQUIRED.finditer(log):
            if Path(note["file"]).name == source.name:
                file, line = note["file"], int(note["line"])
                break
    not_there = _NOT_THERE.match(message)
    if not_there and INCLUDE in Path(said_in).parents:
        return CompileError(file, line, message, refused=not_there["what"])
    vendor = _VENDOR_HEADER.search(message)
    if vendor:
        return CompileError(file, line, message, refused=_FROM_A_CHECKOUT.format(vendor["name"]))
    member = _VENDOR_MEMBER.search(message)
    if member:
        name = f"AscendC::{member['name'] or member['clang']}"
        return CompileError(file, line, message, refused=_FROM_A_CHECKOUT.format(name))
    if Path(file).suffix == ".cce" or Path(said_in).suffix == ".cce":
        return CompileError(
            file, line, message,
            refused="a vendor body in raw CCE intrinsics is not supported: PTO tile kernels and AscendC run here",
        )  # fmt: skip
    undeclared = _UNDECLARED.search(message)
    name = next(filter(None, undeclared.groups()), "") if undeclared else ""
    header = _MISSING_HEADER.search(message)
    if header:
        return CompileError(file, line, message, header["header"] or header["clang"])
    return CompileError(file, line, message, name if _TILE_API.match(name) else "")


def _in_this_tree(file: str) -> str:
    """Where a header of ours lies here: one that is precompiled is named where the tree lay that precompiled it."""
    _, ours, header = file.partition(OURS)
    return str(INCLUDE / header) if ours else file
