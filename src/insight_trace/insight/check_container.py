"""Checks the blocks of a `visualize_data.bin` as Insight scans them, and the two tables of the Source page in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from insight_trace.errors import InputError
from insight_trace.insight.container import (
    ALIGNMENT,
    HEADER,
    MAGIC,
    PATH_FIELD,
    TRAILING_ZEROS,
    Block,
    BlockType,
    scan,
)
from insight_trace.insight.rules import Broken
from insight_trace.insight.tables import FLOAT, INT, PERCENTAGE, TEXT
from insight_trace.reading import open_regular


def check_blocks(path: Path) -> tuple[list[Block], list[Broken]]:
    """The blocks that can be told apart, and what is wrong with them."""
    size = path.stat().st_size
    broken: list[Broken] = []
    with open_regular(path) as file:
        head = file.read(HEADER.size)
        if len(head) < HEADER.size:
            return [], [Broken("block-size", str(path), f"{size} bytes are too few for a block")]
        _, type_, _, version, reserved = HEADER.unpack(head)
        if (version, reserved) != (MAGIC, MAGIC):
            kind = " (an API_INSTR block)" if type_ == BlockType.API_INSTR else ""
            what = f"bytes 10 and 11 of the first block{kind} are {version:02x} {reserved:02x}"
            broken.append(Broken("first-block", f"{path} offset 10", what))
        blocks: list[Block] = []
        offset = 0
        while offset < size:
            block, problem = _next(path, file.fileno(), offset, size, len(blocks))
            broken += problem
            if block is None:
                break
            blocks.append(block)
            offset = block.start + block.size + block.padding
            if block.truncated:
                break
        # what reads wrong the vendor's way may read right the other way: then the path field was counted
        if any(b.type == BlockType.SOURCE for b in blocks):
            try:
                other = list(scan(file, size, str(path)))
            except InputError:
                other = []
            for block in other:
                if block.counts_path:
                    what = (
                        f"the size of SOURCE {block.path!r} counts the {PATH_FIELD} bytes of its path field"
                    )
                    return other, [
                        *(b for b in broken if b.rule == "first-block"),
                        Broken("block-layout", f"{path} offset {block.offset}", what),
                    ]
    seen: set[int] = set()
    for block in blocks:
        where = f"{path} offset {block.offset}"
        once = block.type not in (BlockType.SOURCE, BlockType.TRACE)
        if once and block.type in seen:
            broken.append(Broken("repeated-block", where, f"a second {_label(block.type)} is not read"))
        seen.add(block.type)
    return blocks, broken


def _next(
    path: Path, descriptor: int, offset: int, size: int, index: int
) -> tuple[Block | None, list[Broken]]:
    import os

    head = os.pread(descriptor, HEADER.size, offset)
    where = f"{path} offset {offset}"
    rest = size - offset
    if rest < HEADER.size:
        if rest <= TRAILING_ZEROS and not head.strip(b"\0"):
            return None, []
        return None, [Broken("trailing-bytes", where, f"{rest} bytes follow the last block")]
    content, type_, padding, version, reserved = HEADER.unpack(head)
    if not os.pread(descriptor, 64, offset).strip(b"\0") and index > 0:
        return None, [Broken("trailing-bytes", where, f"{rest} zero bytes follow the last block")]
    if content > size:
        swapped = int.from_bytes(head[:8], "big")
        if 0 < swapped <= size:
            what = f"the size {content} only fits the file when read big-endian ({swapped})"
            return None, [Broken("block-layout", where, what)]
        what = f"block {index} claims {content} bytes, the file has {size}"
        return None, [Broken("block-size", where, what)]
    if padding >= ALIGNMENT or (reserved != MAGIC and index > 0):
        what = f"padding {padding}, mark {reserved:02x}: no block begins here"
        return None, [Broken("block-layout", where, what)]
    start = offset + HEADER.size + (PATH_FIELD if type_ == BlockType.SOURCE else 0)
    if content - padding <= 0:
        return None, [Broken("block-size", where, f"block {index} of type {type_} is empty")]
    name = ""
    if type_ == BlockType.SOURCE:
        field = os.pread(descriptor, PATH_FIELD, offset + HEADER.size)
        name = field.split(b"\0", 1)[0].decode("utf-8", "replace")
    truncated = start + content > size
    available = max(0, size - start)
    block = Block(
        index=index,
        offset=offset,
        type=type_,
        start=start,
        size=min(content - padding, available),
        padding=padding,
        version=version,
        reserved=reserved,
        path=name,
        truncated=truncated,
    )
    problems = []
    if truncated:
        what = f"block {index} of type {type_} claims {content} bytes, {available} are left"
        problems.append(Broken("truncated-block", where, what))
    return block, problems


def _label(type_: int) -> str:
    return BlockType(type_).name if type_ in BlockType.__members__.values() else f"block of type {type_}"


LARGEST_TABLE = 100 << 20
_INT32 = range(-(2**31), 2**31)
_MOST = 20


def read_table(path: Path, block: Block) -> tuple[dict[str, Any] | None, list[Broken]]:
    """A table as an object, or why it is none."""
    where = f"{path} offset {block.offset} {BlockType(block.type).name}"
    if block.size > LARGEST_TABLE:
        return None, [
            Broken("table-size", where, f"{block.size} bytes are more than 100 MiB and are not read")
        ]
    with path.open("rb") as file:
        payload = block.read(file)
    try:
        table = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, [Broken("table-size", where, f"not JSON: {error}")]
    if not isinstance(table, dict):
        return None, [Broken("table-size", where, "not a JSON object")]
    return table, []


def _wrong(kind: int, value: Any) -> str:
    """Why a value does not fit its declared kind, or nothing."""
    if isinstance(value, list):
        return next((text for item in value if (text := _wrong(kind, item))), "")
    if kind == INT:
        if type(value) is not int:
            return f"{value!r} is not an integer and becomes 0"
        return "" if value in _INT32 else f"{value} is outside int32 and becomes 0"
    if kind in (FLOAT, PERCENTAGE) and type(value) is not float:
        return f"{value!r} has no decimal point and becomes 0"
    if kind == TEXT and not isinstance(value, str):
        return f"{value!r} is not text"
    return ""


def _kinds(rows: Iterable[tuple[str, Any]], dtype: Any, where: str) -> list[Broken]:
    if not isinstance(dtype, dict):
        return []  # tables of older releases declare nothing
    broken: list[Broken] = []
    for label, row in rows:
        if not isinstance(row, dict):
            return [Broken("column-kinds", f"{where} {label}", "is not an object")]
        for name, kind in dtype.items():
            if name in row and isinstance(kind, int):
                text = _wrong(kind, row[name])
                if text and not (name == "Address" and kind == TEXT):
                    broken.append(Broken("column-kinds", f"{where} {label}", f"{name}: {text}"))
        if len(broken) >= _MOST:
            break
    return broken


def _is_hex(text: str) -> bool:
    digits = text[2:] if text[:2] in ("0x", "0X") else text
    return digits != "" and all(digit in "0123456789abcdefABCDEF" for digit in digits)


def check_instructions(
    table: dict[str, Any], where: str, processes: set[str], limit: int | None = None
) -> list[Broken]:
    """API_INSTR; `processes` are the cores that the timeline draws."""
    broken: list[Broken] = []
    cores = table.get("Cores")
    if not isinstance(cores, list) or not cores or not all(isinstance(core, str) for core in cores):
        broken.append(Broken("cores-and-files", where, "Cores is missing or empty, so no core can be chosen"))
        cores = []
    missing = sorted(processes - set(cores))
    if missing and cores:
        names = ", ".join(missing[:5])
        broken.append(Broken("cores-and-files", where, f"Cores lacks {names}, which the timeline draws"))
    rows = table.get("Instructions")
    if not isinstance(rows, list):
        return [*broken, Broken("column-kinds", where, "Instructions is missing")]
    chosen = rows if limit is None else rows[:limit]
    for number, row in enumerate(chosen):
        address = row.get("Address") if isinstance(row, dict) else None
        if not isinstance(address, str) or not _is_hex(address):
            what = f"Address {address!r} is not hexadecimal text, which empties the whole table"
            broken.append(Broken("address-text", f"{where} instruction {number}", what))
            break
    dtype = table.get("Instructions Dtype")
    declared = dtype.get("Instructions") if isinstance(dtype, dict) else None
    labelled = ((f"instruction {number}", row) for number, row in enumerate(chosen))
    return broken + _kinds(labelled, declared, where)


def check_lines(table: dict[str, Any], where: str, sources: set[str]) -> list[Broken]:
    """API_FILE; `sources` are the paths of the SOURCE blocks."""
    files = table.get("Files")
    if not isinstance(files, list):
        return [Broken("cores-and-files", where, "Files is missing")]
    broken = []
    dtype = table.get("Files Dtype")
    declared = dtype.get("Lines") if isinstance(dtype, dict) else None
    for number, file in enumerate(files):
        path = file.get("Source") if isinstance(file, dict) else None
        if path not in sources:
            what = f"{path!r} has no SOURCE block, so its lines cannot be shown"
            broken.append(Broken("cores-and-files", f"{where} file {number}", what))
            continue
        lines = file.get("Lines", [])
        labelled = ((f"file {number} line {place}", row) for place, row in enumerate(lines))
        broken += _kinds(labelled, declared, where)
    return broken
