"""Chips as data: one TOML file for each, with every number's kind and source. Nothing else knows a chip's facts."""

from insight_trace.chips.chip import (
    DEFAULT_PRESET,
    Chip,
    Family,
    LogFamily,
    Roofs,
    arch_named,
    chip_file,
    chip_names,
    family_named,
    find_chip,
    known_clocks,
    load_chip,
    roofs_of,
    target_of_chip,
)
from insight_trace.chips.chip_files import FOLDER, KINDS, TARGETS, entries, instruction_pipes

__all__ = [
    "DEFAULT_PRESET",
    "FOLDER",
    "KINDS",
    "TARGETS",
    "Chip",
    "Family",
    "LogFamily",
    "Roofs",
    "arch_named",
    "chip_file",
    "chip_names",
    "entries",
    "family_named",
    "find_chip",
    "instruction_pipes",
    "known_clocks",
    "load_chip",
    "roofs_of",
    "target_of_chip",
]
