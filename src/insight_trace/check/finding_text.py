"""Findings as people and as scripts read them."""

from __future__ import annotations

import dataclasses
from typing import Any

from insight_trace.model import Finding


def finding_data(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it."""
    return dataclasses.asdict(finding)


def finding_lines(finding: Finding, indent: str = "") -> list[str]:
    """A finding as a person reads it: what, and how to mend it."""
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    lines = [f"{indent}{finding.severity} [{finding.category}] {finding.message}{times}"]
    if finding.mend:
        lines.append(f"{indent}  to mend it: {finding.mend}")
    return lines
