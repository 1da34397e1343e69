"""Which findings a user allows: a comment on the kernel's line, or a file with a line for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import InputError
from insight_trace.finding import Finding
from insight_trace.limits import SCENE_BYTES, cut
from insight_trace.reading import read_regular

_COMMENT = re.compile(r"//\s*insight-trace:\s*allow\s+([a-z][a-z, -]*)")


@dataclass(frozen=True, slots=True)
class Allowance:
    """A category that may occur at a line; line 0 stands for the whole file."""

    file: str  # as the kernel's source is named, or its last part
    line: int
    category: str
    where: str  # where the allowance itself stands

    def covers(self, finding: Finding) -> bool:
        if self.category not in (finding.category, finding.category.split("-")[0]):
            return False
        return any(
            (place.file == self.file or Path(place.file).name == self.file) and self.line in (0, place.line)
            for place in finding.places
        )


def in_sources(sources: Mapping[str, Path]) -> list[Allowance]:
    """The comments `// insight-trace: allow CATEGORY[, CATEGORY]` of the kernel's own files."""
    found = []
    for name, path in sources.items():
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if match := _COMMENT.search(line):
                found += [
                    Allowance(name, number, category.strip(), f"{name}:{number}")
                    for category in match[1].split(",")
                    if category.strip()
                ]
    return found


def in_file(path: Path) -> list[Allowance]:
    """Lines `FILE[:LINE] CATEGORY`; a # begins a comment."""
    found = []
    content = read_regular(path, most=SCENE_BYTES).decode("utf-8", errors="replace")
    for number, text in enumerate(content.splitlines(), 1):
        words = text.split("#")[0].split()
        if not words:
            continue
        place, _, line = words[0].partition(":")
        if len(words) != 2 or (line and (not line.isdecimal() or len(line) > 9)):
            raise InputError(
                f"cannot read the suppression {cut(text.strip())}",
                where=f"{path}:{number}",
                hint="write FILE CATEGORY or FILE:LINE CATEGORY",
            )
        found.append(Allowance(place, int(line or 0), words[1], f"{path}:{number}"))
    return found


def apply(
    findings: Sequence[Finding], allowances: Sequence[Allowance]
) -> tuple[list[Finding], list[Finding], list[Allowance]]:
    """What remains, what was allowed, and which allowances covered nothing."""
    used: set[Allowance] = set()
    kept: list[Finding] = []
    allowed: list[Finding] = []
    for finding in findings:
        covering = [allowance for allowance in allowances if allowance.covers(finding)]
        used.update(covering)
        (allowed if covering else kept).append(finding)
    return kept, allowed, [allowance for allowance in allowances if allowance not in used]
