"""The table of instructions: what executes, what tile ops issue, and the page that shows it."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/instruction_coverage.py"


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("instruction_coverage", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_instruction_that_a_tile_op_issues_has_semantics(coverage: ModuleType) -> None:
    table = coverage.table()
    without = {name for name in coverage.issued() if name in table and not table[name].executes}
    assert not without


def test_every_intrinsic_names_an_instruction_that_executes(coverage: ModuleType) -> None:
    table = coverage.table()
    assert {name: row for name, row in coverage.intrinsics().items() if not table[row].executes} == {}
    assert {row.cost for row in coverage.registers()} <= set(table)


def test_no_tile_op_reaches_bytes_beside_its_instructions(coverage: ModuleType) -> None:
    assert coverage.computing_ops() == {}


def test_an_op_that_computes_values_itself_is_found(
    coverage: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = tmp_path / "ops"
    ops.mkdir()
    (ops / "sum.cpp").write_text("TILE_OP_BODY(TSUM) { *core.local_as<float>(Space::UB, 0, 1) += 1; }")
    (ops / "pure.cpp").write_text("TILE_OP_BODY(TADD) { binary(core, operands, Instr::VADD); }")
    monkeypatch.setattr(coverage, "ENGINE", tmp_path)
    assert coverage.computing_ops() == {"sum": 1}


def test_composites_are_named_in_the_page(coverage: ModuleType) -> None:
    text = (ROOT / "docs/instructions.md").read_text(encoding="utf-8")
    assert [name for name in coverage.composites() if f"`{name}`" not in text] == []


def test_the_page_shows_the_table(coverage: ModuleType) -> None:
    text = (ROOT / "docs/instructions.md").read_text(encoding="utf-8")
    assert text.endswith(coverage.page()), "run tools/instruction_coverage.py --write"


def test_the_script_counts_what_libraries_call(tmp_path: Path) -> None:
    calls = tmp_path / "calls.csv"
    calls.write_text(
        "name,family,chips,called_by,in_project\nvadd,v,a2a3,mine;yours,x\nno_such,v,a2a3,mine,x\n"
    )
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--calls", str(calls)], capture_output=True, text=True, check=True
    )
    assert re.search(r"^mine +2 +1$", done.stdout, re.M)
    assert re.search(r"^yours +1 +1$", done.stdout, re.M)
    lost = subprocess.run(
        [sys.executable, str(SCRIPT), "--calls", "nowhere.csv"], capture_output=True, text=True
    )
    assert lost.returncode == 2
    assert "--calls" in lost.stderr
