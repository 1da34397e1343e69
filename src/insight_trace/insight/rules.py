"""The rules that a directory must keep for MindStudio Insight to show it, by name.

The first ten are those that break silently; the others are further ways to be refused or to show nothing.
"""

from __future__ import annotations

from msgspec import Struct

RULES: dict[str, str] = {
    "block-layout": "sizes are little-endian and a SOURCE size does not count its 4096-byte path field",
    "first-block": "the first block carries 5a 5a at offset 10, so it is not API_INSTR",
    "block-size": "no block is empty and none claims more bytes than the file has",
    "trace-object": "TRACE is an object with traceEvents; args stand before ph; no brace after the last ph",
    "profiling-type": "profilingType stands before the first bracket of a trace.json",
    "flow-end": "a flow ends with ph t, never f",
    "flag-pairs": "flags are B/E pairs of the four known names, and an id serves one SET and one WAIT",
    "cores-and-files": "every core of the timeline is in API_INSTR Cores, every API_FILE file has a SOURCE",
    "column-kinds": "INT columns hold int32 integers, FLOAT and PERCENTAGE columns numbers with a point",
    "address-text": "every Address is a string of hexadecimal digits",
    "path": "files are the user's own, no links, and not writable by others",
    "trailing-bytes": "nothing but up to 8 zero bytes follows the last block",
    "truncated-block": "the last block is complete",
    "repeated-block": "a table occurs once, since only the first is read",
    "empty-timeline": "the timeline has events",
    "event-phase": "every event has one of the phases X B E s t M C",
    "event-place": "every slice says its process and its thread",
    "flow-pairs": "a flow id has one start and one end, both on a flag with that id",
    "table-size": "a table has at most 100 MiB and is a JSON object",
    "same-timeline": "trace.json and the TRACE block are the same document",
    "details-kinds": "blocks of the Details and Cache pages are objects, and lists hold objects where they should",
    "details-required": "these blocks have the lists that they are made of",
    "details-base": "a roofline stands beside base information, which has block_detail unless it is a mix",
    "details-blocks": "every block of the memory pages is there once and is one of the compute pages, which list them",
    "details-graph": "a memory graph names a chip, a kind and arrows that are drawn: 910B, 910A5, 310P; mix, vector, cube",
    "details-advice": "advice is a list in the memory blocks, one text in occupancy and roofline",
    "details-numbers": "rooflines are above 0 with points of two, cores are 0 to 255 of known kinds, counts are counts",
    "details-tables": "rows have as many cells as their head, and no list is longer than what is shown of it",
    "details-titles": "a roofline chart has one of the titles that are drawn",
    "memory-page": "a memory_info.json has every key, counts that are not negative, and lives that end after they begin",
    "files-present": "trace.json and visualize_data.bin are there and can be read",
}


class Broken(Struct, frozen=True):
    """One rule that is broken at one place."""

    rule: str
    where: str  # file, and block or event
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.what}"
