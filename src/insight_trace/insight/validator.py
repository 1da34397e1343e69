"""Checks a directory, a container or a timeline against every rule that MindStudio Insight lives by."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from insight_trace.errors import RequestError
from insight_trace.insight.check_container import check_blocks, check_instructions, check_lines, read_table
from insight_trace.insight.check_details import check_details
from insight_trace.insight.check_events import EventCheck, check_timeline
from insight_trace.insight.container import BlockType
from insight_trace.insight.locate import find_simulator
from insight_trace.insight.memory_page import MEMORY_INFO, check_memory_page
from insight_trace.insight.rules import Broken
from insight_trace.reading import open_regular

_COMPARED = 1 << 20
_SAMPLED_ROWS = 500


def validate(path: Path) -> list[Broken]:
    """Every rule that is broken in a bin, a trace.json, a memory_info.json, a `simulator/` or below a folder above one."""
    if path.is_file():
        if path.suffix == ".bin":
            return _path_rules(path) + _check_bin(path, own_output=False)
        if path.name.endswith(MEMORY_INFO):
            return _path_rules(path) + check_memory_page(path)
        return _path_rules(path) + _check_json(path, whole=True, sample=False).broken
    if not path.exists():
        raise RequestError(f"{path} does not exist", hint="give a simulator/ directory or a file from one")
    return validate_directory(find_simulator(path))


def validate_directory(directory: Path, *, own_output: bool = False) -> list[Broken]:
    """Every rule that is broken in one `simulator/`.

    `own_output` is for what was written a moment ago: long documents are then looked at where they begin and
    end, since every event between comes from the same templates.
    """
    broken: list[Broken] = []
    timeline, bin_ = directory / "trace.json", directory / "visualize_data.bin"
    for file in (timeline, bin_):
        if not file.is_file():
            broken.append(Broken("files-present", str(file), "is missing"))
    both = timeline.is_file() and bin_.is_file()
    different = _same_timeline(timeline, bin_, thorough=not own_output) if both else []
    if timeline.is_file():
        broken += _path_rules(timeline)
        if different or not both:  # else it is looked at in the bin
            broken += _check_json(timeline, whole=True, sample=own_output).broken
    if bin_.is_file():
        broken += _path_rules(bin_)
        broken += _check_bin(bin_, own_output=own_output)
    broken += different
    for core in sorted(directory.glob("core*/trace.json")):
        if not own_output:
            broken += _check_json(core, whole=False, sample=False).broken
    return broken


def _path_rules(path: Path) -> list[Broken]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return [Broken("path", str(path), "is a symbolic link, which Insight refuses")]
    broken = []
    if status.st_mode & stat.S_IWOTH:
        broken.append(Broken("path", str(path), "is writable by others, which Insight refuses"))
    if os.geteuid() not in (0, status.st_uid):
        broken.append(Broken("path", str(path), "belongs to another user, which Insight refuses"))
    return broken


def _check_json(path: Path, *, whole: bool, sample: bool) -> EventCheck:
    size = path.stat().st_size
    return check_timeline(path, 0, size, str(path), whole=whole, sample=sample)


def _check_bin(path: Path, *, own_output: bool) -> list[Broken]:
    blocks, broken = check_blocks(path)
    processes: set[str] = set()
    for block in blocks:
        if block.type == BlockType.TRACE and block.size:
            where = f"{path} TRACE"
            check = check_timeline(path, block.start, block.size, where, whole=True, sample=own_output)
            broken += check.broken
            processes |= check.processes
    sources = {block.path for block in blocks if block.type == BlockType.SOURCE}
    by_type = {block.type: block for block in reversed(blocks)}
    if BlockType.API_INSTR not in by_type and not any(b.rule == "block-size" for b in broken):
        what = "there is no API_INSTR block, so the Source page has no cores"
        broken.append(Broken("cores-and-files", str(path), what))
    broken += check_details(path, by_type)
    for type_ in (BlockType.API_INSTR, BlockType.API_FILE):
        found = by_type.get(type_)
        if found is None or found.truncated:
            continue
        table, problems = read_table(path, found)
        broken += problems
        if table is None:
            continue
        where = f"{path} {type_.name}"
        if type_ is BlockType.API_INSTR:
            limit = _SAMPLED_ROWS if own_output else None
            broken += check_instructions(table, where, processes, limit)
        else:
            broken += check_lines(table, where, sources)
    return broken


def _same_timeline(timeline: Path, bin_: Path, *, thorough: bool) -> list[Broken]:
    blocks = [block for block in check_blocks(bin_)[0] if block.type == BlockType.TRACE]
    if not blocks:
        return []
    block = blocks[0]
    different = [Broken("same-timeline", str(timeline), "differs from the TRACE block of the bin")]
    if block.size != timeline.stat().st_size:
        return different
    with open_regular(timeline) as one, open_regular(bin_) as other:
        other.seek(block.start)
        left = block.size
        while left:
            size = min(left, _COMPARED)
            if one.read(size) != other.read(size):
                return different
            left -= size
            if not thorough:
                return []
    return []
