"""docs/tile-ops.md says what the code does."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from insight_trace.simulate.embedded.op_script import op_numbers
from insight_trace.simulate.embedded.toolchain import Toolchain

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "tile-ops.md"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tile_op_table", ROOT / "tools" / "tile_op_table.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _rows() -> dict[str, str]:
    text = PAGE.read_text(encoding="utf-8")
    return {match[1]: match[0] for match in re.finditer(r"^\| ([TM][A-Z0-9_]+) \|.*$", text, re.M)}


def test_every_op_of_the_engine_has_a_row_and_no_other() -> None:
    assert set(_rows()) == set(op_numbers())


def test_every_op_runs_with_some_type() -> None:
    for op, row in _rows().items():
        assert not row.startswith(f"| {op} | none | none |"), row


def test_rows_of_ops_across_the_families_are_what_running_them_gives(tool: ModuleType) -> None:
    ops = [op for op in op_numbers() if op not in ("TPOW", "TPOWS")][::12]
    rows = _rows()
    assert tool.rows_of(ops, Toolchain.find()) == [rows[op] for op in ops]


def test_the_head_of_the_page_is_the_tools(tool: ModuleType) -> None:
    assert PAGE.read_text(encoding="utf-8").startswith(tool._HEAD)
