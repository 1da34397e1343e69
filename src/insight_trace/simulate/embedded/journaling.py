"""What a run is asked to write down of its memory, and what single tile ops are made to do otherwise."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from insight_trace.storage import write_whole

JOURNAL = "journal"
TABLES = ("entries", "contents", "bases", "calls", "operands", "observed")


class OperandChange(Struct, frozen=True):
    """One operand of one tile op, changed before the op runs (engine/changes.hpp)."""

    call: int  # in the order of execution, all cores together
    operand: int
    field: str  # address, valid_rows, valid_cols, type, option, scalar; op: another op, whatever the operand
    value: int

    @property
    def job_line(self) -> str:
        signed = self.value - (1 << 64) if self.value >= 1 << 63 else self.value  # bits of a number, too
        return f"change\t{self.call}\t{self.operand}\t{self.field}\t{signed}"


class JournalRequest(Struct, frozen=True):
    """Where the journal of a run goes: a folder that exists."""

    folder: Path
    first: int = 0  # rows before this one are summed up in it
    most: int = 0  # bytes of content; 0: no limit
    observed: Sequence[int] = ()  # for tests: rows after which all memories are hashed
    of: str = ""  # a name for what was run

    def job_lines(self, directory: Path) -> list[str]:
        return [
            f"journal\t{directory / JOURNAL}",
            f"journal_first\t{self.first}",
            f"journal_bytes\t{self.most}",
            *(f"observe\t{row}" for row in self.observed),
        ]

    def keep(self, directory: Path, complete: int, instructions: int) -> None:
        """Moves the runner's files to their place; the header comes last."""
        for table in TABLES:
            shutil.move(directory / f"{JOURNAL}.{table}", self.folder / table)
        facts = {"first": self.first, "complete": complete, "instructions": instructions, "of": self.of}
        write_whole(self.folder / "journal.json", json.dumps(facts) + "\n", sync=False)
