"""Checks the blocks of a `visualize_data.bin` as Insight scans them."""

from __future__ import annotations

from pathlib import Path

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
