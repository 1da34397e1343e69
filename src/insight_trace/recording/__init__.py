"""The recording: everything one simulated dispatch showed, as columns on disk (docs/recording.md)."""

from __future__ import annotations

from insight_trace.recording.operands import ByteRanges, Form, byte_ranges, operand_rows
from insight_trace.recording.store import Recording, open_recording, save
from insight_trace.recording.stream import empty, take

__all__ = [
    "ByteRanges",
    "Form",
    "Recording",
    "byte_ranges",
    "empty",
    "open_recording",
    "operand_rows",
    "save",
    "take",
]
