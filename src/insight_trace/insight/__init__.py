"""The Insight directory: what MindStudio Insight opens, written, read and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insight_trace.insight.prepared import Extras
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

_MODULES = {
    "RULES": "rules",
    "Broken": "rules",
    "Extras": "prepared",
    "LargeTraceWarning": "writer",
    "open_trace": "reader",
    "throughput_counters": "throughput",
    "validate": "validator",
    "validate_directory": "validator",
    "write_insight_directory": "writer",
}


def __getattr__(name: str) -> Any:
    """Loads a name on first use: who writes a directory does not wait for the reader."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
