"""The recording: everything one simulated dispatch showed, as columns on disk (docs/recording.md)."""

from __future__ import annotations

from insight_trace.recording.cache_use import CacheUse, cache_use
from insight_trace.recording.operands import ByteRanges, Form, byte_ranges, operand_rows
from insight_trace.recording.store import Recording, open_recording, save
from insight_trace.recording.stream import empty, take

__all__ = [
    "ByteRanges",
    "CacheUse",
    "Form",
    "Recording",
    "byte_ranges",
    "cache_use",
    "empty",
    "open_recording",
    "operand_rows",
    "save",
    "take",
]
