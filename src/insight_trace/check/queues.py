"""Findings about flags that an AscendC queue sets, in words of the queue: its `EnQue` sets one, its `DeQue` waits for it."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence

from msgspec.structs import replace

from insight_trace.finding import Finding, Place

_ENQUE = re.compile(r"\bEnQue\b")


def in_words_of_queues(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """A flag that the `EnQue` of a line sets and nothing waits for is a tensor that nobody took with `DeQue`."""
    return tuple(_in_words(finding) for finding in findings)


def _in_words(finding: Finding) -> Finding:
    place = finding.places[-1] if finding.places else None
    if place is None or place.flag is None or not _is_enque(place):
        return finding
    if finding.category == "set-without-wait":
        message = f"the EnQue of line {place.line} has no DeQue: {finding.message}"
        return replace(
            finding, message=message, fix="take the tensor out of the queue with DeQue before it is used"
        )
    if finding.message.startswith("nothing waits for the flag"):
        used = [at.line for at in finding.places if at.pipe == place.flag[1]]
        before = f" before line {min(used)}" if used else ""
        message = f"the EnQue of line {place.line} has no DeQue{before}: {finding.message}"
        return replace(finding, message=message, fix=f"take the tensor out of the queue with DeQue{before}")
    return finding


def _is_enque(place: Place) -> bool:
    return _ENQUE.search(linecache.getline(place.file, place.line)) is not None
