"""Where in the kernel's source an instruction of its shared object comes from.

The debug lines of a shared object are read once, when it is built, and kept beside it as text: reading them
from the object takes longer than running a small kernel. What was inlined from our own headers belongs to the line
of the kernel that called it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from insight_trace.errors import InputError
from insight_trace.limits import OBJECT_BYTES
from insight_trace.reading import open_regular, regular_text
from insight_trace.simulate.embedded.engine_objects import INCLUDE

KEPT = "kernel_lines"  # beside the shared object: offset, line and file of each entry, by tabs

_AFTER = chr(0x10FFFF)  # sorts after every file name
# Wherever it is installed: an object in the cache may have been compiled by another installation.
OURS = f"/{INCLUDE.relative_to(INCLUDE.parents[3]).as_posix()}/"
_LIBRARIES = (
    "/include/pto/",
    "/ascendc_headers/",
)  # of a pto-isa checkout, and of one of asc-devkit (ascendc.py)


@lru_cache(maxsize=1024)
def is_ours(file: str) -> bool:
    """Whether a file is one of the headers that stand for the vendor's, or is one of the vendor's."""
    return OURS in file or any(library in file for library in _LIBRARIES)


def line_of_crash(shared_object: str, offset: int) -> tuple[str, int] | None:
    """File and line of the instruction at `offset`, from the debug lines; None without them."""
    found = _lines(shared_object)
    at = bisect_right(found, (offset, _AFTER, 0)) - 1
    if at < 0 or not found[at][1]:
        return None
    return found[at][1], found[at][2]


def keep_lines(shared_object: Path) -> None:
    """Writes the debug lines of a shared object beside it."""
    lines = _read_debug_lines(str(shared_object))
    text = "".join(f"{offset}\t{line}\t{file}\n" for offset, file, line in lines)
    (shared_object.parent / KEPT).write_text(text, encoding="utf-8", errors="surrogateescape")


@lru_cache(maxsize=32)
def _lines(shared_object: str) -> list[tuple[int, str, int]]:
    """From which offset on a file and line holds, by offset; "" where the code of a unit has ended."""
    try:
        text = regular_text(Path(shared_object).parent / KEPT, most=OBJECT_BYTES, errors="surrogateescape")
        rows = (row.split("\t", 2) for row in text.split("\n") if row)
        return [(int(offset), file, int(line)) for offset, line, file in rows]
    except (OSError, ValueError, InputError):
        return _read_debug_lines(shared_object)


def _read_debug_lines(shared_object: str) -> list[tuple[int, str, int]]:
    from elftools.elf.elffile import ELFFile

    found: list[tuple[int, str, int]] = []
    try:
        with open_regular(Path(shared_object)) as file:
            elf = ELFFile(file)
            if not elf.has_dwarf_info():
                return []
            # it is linked: nothing is still to be relocated, and to look for that takes a third of the time
            dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
            for unit in dwarf.iter_CUs():
                program = dwarf.line_program_for_CU(unit)
                if program is not None:
                    rows = list(_of_program(program, _compiled_in(unit)))
                    if any(is_ours(file) for _, file, _ in rows):
                        rows = _as_called(rows, _calls(dwarf, unit, program))
                    found += rows
    except Exception:  # a damaged object goes wrong in pyelftools in any way
        return []
    # the last entry of an offset holds, an end gives way to a beginning
    return sorted({(e[0], bool(e[1])): e for e in found}.values(), key=lambda e: (e[0], bool(e[1])))


def _compiled_in(unit: Any) -> str:
    """The folder that relative names of a unit start from."""
    attribute = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    return attribute.value.decode(errors="replace") if attribute else ""


def _of_program(program: Any, folder: str) -> Iterator[tuple[int, str, int]]:
    names: dict[int, str] = {}
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if state.end_sequence:
            yield state.address, "", 0
            continue
        if state.file not in names:
            names[state.file] = str(Path(folder, _file_name(program.header, state.file)))
        yield state.address, names[state.file], state.line


def _calls(dwarf: Any, unit: Any, program: Any) -> list[tuple[int, int, str, int]]:
    """Code that was inlined: from and to which offset, and file and line of the call."""
    folder = _compiled_in(unit)
    top = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = top.value if top else 0
    found = []
    for die in unit.iter_DIEs():
        call = die.attributes.get("DW_AT_call_line")
        if die.tag != "DW_TAG_inlined_subroutine" or call is None or "DW_AT_call_file" not in die.attributes:
            continue
        name = _file_name(program.header, die.attributes["DW_AT_call_file"].value)
        for low, high in _ranges(dwarf, unit, die, base):
            found.append((low, high, str(Path(folder, name)), call.value))
    return found


def _ranges(dwarf: Any, unit: Any, die: Any, base: int) -> Iterator[tuple[int, int]]:
    low, high = die.attributes.get("DW_AT_low_pc"), die.attributes.get("DW_AT_high_pc")
    if low is not None and high is not None:
        yield low.value, high.value if high.form == "DW_FORM_addr" else low.value + high.value
    elif "DW_AT_ranges" in die.attributes:
        lists = dwarf.range_lists()
        for entry in lists.get_range_list_at_offset(die.attributes["DW_AT_ranges"].value, cu=unit):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                start = 0 if getattr(entry, "is_absolute", False) else base
                yield start + entry.begin_offset, start + entry.end_offset


def _as_called(
    rows: list[tuple[int, str, int]], calls: list[tuple[int, int, str, int]]
) -> list[tuple[int, str, int]]:
    """Lines of our headers as the innermost call from outside of them; where nothing called, as they are."""
    offsets = sorted({offset for offset, _, _ in rows})
    called: list[tuple[str, int] | None] = [None] * len(offsets)
    # inner calls over outer ones; of calls of one size the first holds
    for low, high, caller, at in sorted(calls, key=lambda call: call[1] - call[0])[::-1]:
        if not is_ours(caller):
            begin, end = bisect_left(offsets, low), bisect_left(offsets, high)
            called[begin:end] = [(caller, at)] * (end - begin)
    found = dict(zip(offsets, called, strict=True))
    return [(offset, *((is_ours(file) and found[offset]) or (file, line))) for offset, file, line in rows]


def _file_name(header: object, index: int) -> str:
    version = header["version"]  # type: ignore[index]
    files, folders = header["file_entry"], header["include_directory"]  # type: ignore[index]
    entry = files[index if version >= 5 else index - 1]
    name = entry.name.decode(errors="replace")
    if name.startswith("/"):
        return str(name)
    if version >= 5:
        folder = folders[entry.dir_index]
    elif entry.dir_index:
        folder = folders[entry.dir_index - 1]
    else:
        return str(name)
    return f"{folder.decode(errors='replace')}/{name}"
