"""Source lines of instruction addresses, from the debug information of the kernel that was simulated."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from insight_trace.errors import InputError
from insight_trace.insight.tables import LARGEST_SOURCE
from insight_trace.limits import OBJECT_BYTES, STAMP_BYTES, cut
from insight_trace.reading import open_regular, regular_text

_KERNEL = "aicore_binary.o"
_START = "pc_start_addr.txt"


@dataclass(slots=True)
class Symbols:
    """Call stacks by address: `file:line`, innermost first, each frame once."""

    stacks: dict[int, str] = field(default_factory=dict)

    def stack(self, pc: int) -> str:
        return self.stacks.get(pc, "")

    @classmethod
    def of(cls, folder: Path, addresses: set[int], warnings: list[str]) -> Symbols:
        """From the kernel that lies in the dump folder; without one, or without lines, nothing is known."""
        kernel = folder / _KERNEL
        if not kernel.is_file() or not addresses:
            return cls()
        if kernel.stat().st_size > OBJECT_BYTES:
            warnings.append(f"{_KERNEL} is larger than {OBJECT_BYTES >> 20} MiB and was not read")
            return cls()
        start = _start_address(folder)
        base = min(addresses) if start is None else start
        try:
            with open_regular(kernel) as file:
                lines = _Lines(file)
                stacks = {pc: lines.stack(pc - base) for pc in addresses if pc >= base}
        except Exception as error:  # a damaged object goes wrong in pyelftools in any way
            why = cut(str(error) or type(error).__name__)
            warnings.append(f"{_KERNEL} could not be read, so source lines are missing: {why}")
            return cls()
        known = {pc: stack for pc, stack in stacks.items() if stack}
        if not known:
            warnings.append(f"{_KERNEL} has no line information; compile the kernel with -g to see its lines")
        return cls(known)


def _start_address(folder: Path) -> int | None:
    try:
        text = regular_text(folder / _START, most=STAMP_BYTES).split("\n", 1)[0].strip()
        value = int(text, 16)
    except (OSError, ValueError, InputError):
        return None
    return value or None


class _Lines:
    """Line table and inlined calls of one object file."""

    def __init__(self, file: Any) -> None:
        from elftools.elf.elffile import ELFFile

        elf = ELFFile(file)
        self._starts: list[int] = []
        self._entries: list[tuple[int, str]] = []  # (end, frame)
        self._inlined: list[tuple[int, int, int, str]] = []  # (low, high, depth, frame of the call)
        if not elf.has_dwarf_info():
            return
        dwarf = elf.get_dwarf_info()
        rows: list[tuple[int, int, str]] = []
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            if program is None:
                continue
            files = _file_names(unit, program)
            rows += _line_rows(program, files)
            self._collect(unit.get_top_DIE(), unit, files, 0)
        rows.sort(key=lambda row: (row[0], row[1]))
        self._starts = [row[0] for row in rows]
        self._entries = [(row[1], row[2]) for row in rows]

    def _collect(self, die: Any, unit: Any, files: dict[int, str], depth: int) -> None:
        """Calls that were inlined, deepest last."""
        pending = [(child, depth) for child in die.iter_children()]
        while pending:
            node, level = pending.pop()
            if node.tag == "DW_TAG_inlined_subroutine":
                level += 1
                call = _call_site(node, files)
                for low, high in _ranges(node, unit):
                    self._inlined.append((low, high, level, call))
            if node.has_children:
                pending += [(child, level) for child in node.iter_children()]

    def stack(self, offset: int) -> str:
        place = bisect.bisect_right(self._starts, offset) - 1
        if place < 0 or offset >= self._entries[place][0]:
            return ""
        frames = [self._entries[place][1]]
        calls = [(depth, frame) for low, high, depth, frame in self._inlined if low <= offset < high]
        frames += [frame for _, frame in sorted(calls, reverse=True)]
        return "\n".join(dict.fromkeys(frame for frame in frames if frame))


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _file_names(unit: Any, program: Any) -> dict[int, str]:
    """File names by their number in the line program."""
    top = unit.get_top_DIE().attributes
    base = _text(top["DW_AT_comp_dir"].value) if "DW_AT_comp_dir" in top else ""
    header = program.header
    modern = header["version"] >= 5
    folders = [_text(each) for each in header["include_directory"]]
    if not modern:
        folders = [base, *folders]
    names = {}
    for number, entry in enumerate(header["file_entry"]):
        folder = folders[entry.dir_index] if entry.dir_index < len(folders) else ""
        path = PurePosixPath(base) / folder / _text(entry.name)
        names[number if modern else number + 1] = os.path.normpath(str(path))
    return names


def _line_rows(program: Any, files: dict[int, str]) -> list[tuple[int, int, str]]:
    rows = []
    before = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None and before.line and state.address > before.address:
            frame = f"{files.get(before.file, '??')}:{before.line}"
            rows.append((before.address, state.address, frame))
        before = None if state.end_sequence else state
    return rows


def _call_site(die: Any, files: dict[int, str]) -> str:
    attributes = die.attributes
    if "DW_AT_call_file" not in attributes or "DW_AT_call_line" not in attributes:
        return ""
    file = files.get(attributes["DW_AT_call_file"].value, "")
    return f"{file}:{attributes['DW_AT_call_line'].value}" if file else ""


def _ranges(die: Any, unit: Any) -> Iterable[tuple[int, int]]:
    attributes = die.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        return [(low, high.value if high.form == "DW_FORM_addr" else low + high.value)]
    if "DW_AT_ranges" not in attributes:
        return []
    lists = unit.dwarfinfo.range_lists()
    if lists is None:
        return []
    top = unit.get_top_DIE().attributes
    base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
    found = []
    for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, cu=unit):
        if hasattr(entry, "base_address"):
            base = entry.base_address
        elif getattr(entry, "is_absolute", False):
            found.append((entry.begin_offset, entry.end_offset))
        else:
            found.append((base + entry.begin_offset, base + entry.end_offset))
    return found


def read_sources(stacks: Iterable[str], root: Path | None) -> dict[str, bytes]:
    """Texts of the files that stacks name: where they were, or by their name below `root`."""
    files = {frame.rsplit(":", 1)[0] for stack in stacks for frame in stack.split("\n") if ":" in frame}
    found = {}
    for file in sorted(files):
        for path in [Path(file)] + ([root / PurePosixPath(file).name] if root is not None else []):
            try:
                if path.is_file() and path.stat().st_size <= LARGEST_SOURCE:
                    found[file] = path.read_bytes()
                    break
            except OSError:
                continue
    return found
