"""The Insight directory: what MindStudio Insight opens, written, read and checked."""

from __future__ import annotations

from insight_trace.insight.columns import Extras
from insight_trace.insight.reader import open_trace
from insight_trace.insight.rules import RULES, Broken
from insight_trace.insight.throughput import throughput_counters
from insight_trace.insight.validator import validate, validate_directory
from insight_trace.insight.writer import LargeTraceWarning, write_insight_directory

__all__ = [
    "RULES",
    "Broken",
    "Extras",
    "LargeTraceWarning",
    "open_trace",
    "throughput_counters",
    "validate",
    "validate_directory",
    "write_insight_directory",
]
