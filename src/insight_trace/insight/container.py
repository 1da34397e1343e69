"""The `visualize_data.bin` container: blocks one after the other, without header, index or trailer.

A block is 12 bytes of header, for SOURCE a path field of 4096 bytes, then the payload and its padding.
The size in the header counts payload and padding but never the path field.
"""

from __future__ import annotations

import enum
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from msgspec import Struct

from insight_trace.errors import InputError
from insight_trace.reading import open_regular

HEADER = struct.Struct("<QBBBB")
PATH_FIELD = 4096
ALIGNMENT = 4
MAGIC = 0x5A
INSTRUCTION_VERSION = 0x00  # byte 10 of API_INSTR: lines are found through `AscendC Inner Code`
LARGEST_FILE = 20 << 30  # MindStudio Insight refuses more
_COPIED = 1 << 20
TRAILING_ZEROS = 8  # Insight tolerates up to so many zero bytes after the last block


class BlockType(enum.IntEnum):
    """Blocks of a result: the timeline, sources and their tables, and from 5 on the Details and Cache pages."""

    SOURCE = 1
    TRACE = 2
    API_FILE = 3
    API_INSTR = 4
    BASE_INFO = 5
    COMPUTE_BARS = 6
    COMPUTE_ROWS = 7
    MEMORY_GRAPH = 8
    MEMORY_TABLE = 9
    OCCUPANCY = 12
    ROOFLINE = 13
    CACHE_LINES = 14
    STALL_REASONS = 15


class Block(Struct, frozen=True):
    """Where a block lies in its file. `size` is the payload without its padding."""

    index: int
    offset: int  # of the header
    type: int
    start: int  # of the payload
    size: int
    padding: int
    version: int
    reserved: int
    path: str = ""  # SOURCE only
    counts_path: bool = False  # written by a tool that counts the path field in the size
    truncated: bool = False

    def read(self, file: IO[bytes], limit: int | None = None) -> bytes:
        """The payload, or its first `limit` bytes."""
        file.seek(self.start)
        return file.read(self.size if limit is None else min(limit, self.size))


def header(type_: BlockType, size: int) -> bytes:
    """The header of a block whose payload has `size` bytes before padding."""
    padding = -size % ALIGNMENT
    version = INSTRUCTION_VERSION if type_ is BlockType.API_INSTR else MAGIC
    return HEADER.pack(size + padding, type_, padding, version, MAGIC)


def path_field(path: str) -> bytes:
    """The fixed field before a source text; a path that does not fit is stored empty, as the vendor does."""
    encoded = path.encode("utf-8", "replace")
    if len(encoded) >= PATH_FIELD or b"\0" in encoded:
        encoded = b""
    return encoded.ljust(PATH_FIELD, b"\0")


def write_block(file: IO[bytes], type_: BlockType, payload: bytes, path: str = "") -> None:
    """Appends one block."""
    file.write(header(type_, len(payload)))
    if type_ is BlockType.SOURCE:
        file.write(path_field(path))
    file.write(payload)
    file.write(bytes(-len(payload) % ALIGNMENT))


def write_block_from(file: IO[bytes], type_: BlockType, source: Path) -> None:
    """Appends one block whose payload is the content of a file, copied piece by piece."""
    size = source.stat().st_size
    file.write(header(type_, size))
    file.flush()
    with source.open("rb") as origin:
        copied = _copy_in_kernel(origin, file, size)
        file.seek(0, os.SEEK_END)
        if copied < size:
            origin.seek(copied)
            shutil.copyfileobj(origin, file, _COPIED)
    file.write(bytes(-size % ALIGNMENT))


def _copy_in_kernel(origin: IO[bytes], target: IO[bytes], size: int) -> int:
    """Bytes copied without passing through this process; 0 where the system cannot."""
    copied = 0
    try:
        while copied < size:
            moved = os.sendfile(target.fileno(), origin.fileno(), copied, size - copied)
            if moved == 0:
                break
            copied += moved
    except OSError:
        if copied:
            raise
    return copied


def _path_text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")


def scan(file: IO[bytes], size: int, name: str) -> Iterator[Block]:
    """Every block of an open file, by its headers alone; payloads are not read.

    A SOURCE block whose size counts the path field is recognised: read the vendor's way it would not end
    where a block begins.
    """
    offset = index = 0
    while offset < size:
        file.seek(offset)
        head = file.read(HEADER.size)
        if len(head) < HEADER.size:
            if not head.strip(b"\0"):
                return
            raise InputError(
                f"{len(head)} bytes at offset {offset} are no block header",
                where=name,
                hint="the file is cut off or has something appended; export it again",
            )
        content, type_, padding, version, reserved = HEADER.unpack(head)
        if content == 0 and not head.strip(b"\0") and size - offset <= TRAILING_ZEROS:
            return
        start, path, counts = offset + HEADER.size, "", False
        if type_ == BlockType.SOURCE:
            path = _path_text(file.read(PATH_FIELD))
            start += PATH_FIELD
            if content >= PATH_FIELD and not _header_at(file, start + content, size):
                counts = _header_at(file, start + content - PATH_FIELD, size)
                if counts:
                    content -= PATH_FIELD
        if content > size and (content > LARGEST_FILE or reserved != MAGIC):
            raise InputError(
                f"block {index} at offset {offset} claims {content} bytes, the file has {size}",
                where=name,
                hint="this is no visualize_data.bin, or it is damaged; export it again",
            )
        end = start + content
        available = max(0, min(content, size - start))
        yield Block(
            index=index,
            offset=offset,
            type=type_,
            start=start,
            size=max(0, min(content - padding, available)),
            padding=padding,
            version=version,
            reserved=reserved,
            path=path,
            counts_path=counts,
            truncated=end > size,
        )
        offset, index = end, index + 1


def _header_at(file: IO[bytes], offset: int, size: int) -> bool:
    """Whether a block, or the end of the file, may be at that offset."""
    if offset == size:
        return True
    if offset + HEADER.size > size:
        return False
    file.seek(offset)
    content, type_, padding, version, reserved = HEADER.unpack(file.read(HEADER.size))
    plausible = 0 < content <= size and 1 <= type_ <= 15 and padding < ALIGNMENT
    return plausible and reserved == MAGIC and version in (MAGIC, INSTRUCTION_VERSION)


def blocks_of(path: Path) -> list[Block]:
    """The blocks of a bin file; an error says what is wrong with it and where."""
    size = path.stat().st_size
    if size < HEADER.size:
        raise InputError(
            f"{size} bytes are too few for a block", where=str(path), hint="the file is empty or cut off"
        )
    with open_regular(path) as file:
        content, _, _, version, reserved = HEADER.unpack(file.read(HEADER.size))
        if (version, reserved) != (MAGIC, MAGIC) or content == 0:
            raise InputError(
                f"the first block is marked {version:02x} {reserved:02x} at offset 10, not 5a 5a",
                where=str(path),
                hint="this is not an Insight container; give a visualize_data.bin",
            )
        return list(scan(file, size, str(path)))
