"""docs/limits.md has every bound of limits.py, with the number that holds."""

import math
import re
from pathlib import Path

import pytest

from insight_trace import limits

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "limits.md").read_text().splitlines()
NAMES = [name for name in vars(limits) if name.isupper() and name not in ("KIB", "MIB", "GIB")]
# how the line begins on which a bound stands
LINES = {
    "RUN_SECONDS": "| time |", "RUN_SECONDS_MOST": "| time |", "RUN_BYTES": "| memory |",
    "RUN_FILE_BYTES": "| one file that a kernel writes |", "RUN_DESCRIPTORS": "| open files |",
    "JOURNAL_BYTES": "| journal of ", "RUN_GRACE_SECONDS": "A kernel that does not end itself",
    "PRINTED_BYTES": "| what it prints |", "PRINTED_KEPT": "| what it prints |",
    "RESULT_BYTES": "| what its process says of the run |", "BLOCKS": "| cores of one simulation |",
    "CORES": "| cores of one simulation |", "COMPILE_SECONDS": "| time of one compilation |",
    "COMPILE_BYTES": "| address space ", "COMPILE_FILE_BYTES": "| one file that the compiler writes |",
    "COMPILE_OUTPUT": "| what it says |", "SOURCE_BYTES": "| a source", "PROBE_SECONDS": "| `--version` ",
    "PROBE_OUTPUT": "| `--version` ", "LOG_BYTES": "| a log that a program of others writes |",
    "BUFFER_BYTES": "| content that is made up ", "PAYLOAD_BYTES": "| payload of a capture",
    "SCENE_MEMORY": "| memory of a scene's own functions ", "SCENE_BYTES": "| a scene's Python file",
    "SCENE_STEPS": "| expressions ", "SCENE_ELEMENTS": "| elements ", "SCENE_DIGITS": "| a whole number in a scene |",
    "MODULE_BYTES": "| a Python module ", "TABLE_BYTES": "| a table, a log or a page",
    "OBJECT_BYTES": "| a kernel's object file", "EVENT_BYTES": "| one event ", "OPERAND_PIECES": "| pieces of memory ",
    "DESCRIPTION_BYTES": "| the description of the tensor ", "JSON_BYTES": "| other JSON ",
    "RECORD_BYTES": "| `replay.json`", "STAMP_BYTES": "| a version", "MESSAGE_CHARACTERS": "| a foreign value ",
}  # fmt: skip


def _said(name: str, value: float) -> str:
    if name == "SCENE_DIGITS":  # it counts four bits for each
        return f"about {round(4 * value * math.log10(2), -2):,.0f} digits"
    if name == "SCENE_MEMORY":
        return f"{value:.0%} of".replace("%", " %")
    if name.endswith("MOST"):
        return f"{value / 86400:g} days"
    if "SECONDS" in name:
        return f"{value:g} s"
    if "BYTES" in name or name in ("PRINTED_KEPT", "COMPILE_OUTPUT", "PROBE_OUTPUT"):
        return f"{value / limits.GIB:g} GiB" if value >= limits.GIB else f"{value / limits.MIB:g} MiB"
    return f"{value:,}"


@pytest.mark.parametrize("name", NAMES)
def test_a_bound_stands_on_the_page_with_its_number(name):
    (line,) = [line for line in PAGE if line.startswith(LINES[name])]
    assert _said(name, getattr(limits, name)) in line


def test_every_test_that_the_security_page_names_is_there():
    root = Path(__file__).resolve().parents[2]
    named = re.findall(r"`(tests/[\w/]+\.py)`", (root / "SECURITY.md").read_text())
    assert len(named) >= 8
    assert [name for name in named if not (root / name).is_file()] == []
