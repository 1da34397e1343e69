"""insight-trace op: what one tile op costs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.dtypes import DTYPES
from insight_trace.errors import RequestError
from insight_trace.simulate.embedded import op_forms
from insight_trace.simulate.embedded.op_script import ScalarSpec


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["op", *words]) == 0
    return capsys.readouterr().out


def test_an_op_is_told_with_its_instructions_and_cycles(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "TADD", "--rows", "64", "--cols", "64")
    assert "154 cycles" in text
    assert "VADD" in text
    assert "cycles of bank conflicts" in text


def test_addresses_decide_about_bank_conflicts(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("TADD", "--rows", "64", "--cols", "64", "--addresses", "0x0,0x4100,0x8000", "--json")
    told = json.loads(said(capsys, *words))
    assert told["cycles"] == 89
    assert told["soc_version"] == "Ascend910B1"
    (instruction,) = told["instructions"]
    assert instruction["instruction"] == "VADD"
    assert instruction["read_conflict"] == 0


@pytest.mark.parametrize("op", ["TXOR", "TREM", "TPARTMUL", "TSHLS", "TCOLSUM", "TTRANS"])
def test_ops_with_scratch_tiles_can_be_asked_for(capsys: pytest.CaptureFixture[str], op: str) -> None:
    dtype = "float" if op == "TREM" else "int16"
    told = json.loads(said(capsys, op, "--dtype", dtype, "--rows", "16", "--cols", "128", "--json"))
    assert told["cycles"] > 0


@pytest.mark.parametrize("chip", ["Ascend910B1", "Ascend950PR_9579"])
def test_ops_of_several_operands_can_be_asked_for_on_both_chips(
    capsys: pytest.CaptureFixture[str], chip: str
) -> None:
    for op in ("TSUBRELU", "TMULADDDST", "TFUSEDMULADD", "TAXPY", "TADDC", "TSUBSC"):
        words = (op, "--dtype", "float", "--rows", "16", "--cols", "128", "--soc-version", chip, "--json")
        assert json.loads(said(capsys, *words))["cycles"] > 0


@pytest.fixture
def row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts one row into the tables, and nothing else."""
    table = tmp_path / "insight_trace" / "ops" / "elementwise.def"
    table.parent.mkdir(parents=True)
    monkeypatch.setattr(op_forms, "INCLUDE", tmp_path)
    monkeypatch.setattr(op_forms, "op_numbers", lambda: {"TNEW": 0})
    monkeypatch.setattr(op_forms, "_named_operands", op_forms._named_operands.__wrapped__)
    return lambda text: table.write_text(text + "\n") and None


def test_an_op_can_be_asked_for_by_its_row_in_the_table_alone(row: Callable[[str], None]) -> None:
    asked = op_forms.OpRequest("TNEW", DTYPES[0], 64, 64)
    row("TILE_OP(TNEW, 2, 0, dst, src)")
    result, source = op_forms.operands_of(asked)
    assert (source.address, result.address) == (0, 0x4000)
    assert (result.rows, result.cols) == (source.rows, source.cols) == (64, 64)
    row("TILE_OP(TNEW, 5, 0, dst, src, number, src, scratch)")
    result, first, number, second, scratch = op_forms.operands_of(asked)
    tiles = (first, second, result, scratch)
    assert [tile.address for tile in tiles] == [0, 0x4000, 0x8000, 0xC000]
    assert isinstance(number, ScalarSpec)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("TILE_OP(TNEW, 3, 0)", "cannot be asked for by size alone"),
        ("TILE_OP(TNEW, 2, 0, dst, sorce)", "has an operand 'sorce'"),
    ],
)
def test_a_row_that_does_not_say_what_its_operands_are_is_refused(
    row: Callable[[str], None], text: str, said: str
) -> None:
    row(text)
    with pytest.raises(RequestError, match=said):
        op_forms.operands_of(op_forms.OpRequest("TNEW", DTYPES[0], 64, 64))


def test_a_chip_may_be_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    chip = Path(__file__).parents[1] / "data" / "chips" / "round_numbers.toml"
    words = ("TADDS", "--rows", "64", "--cols", "64", "--soc-version", str(chip), "--json")
    told = json.loads(said(capsys, *words))
    assert (told["soc_version"], told["cycles"]) == ("RoundNumbers", 64 + 10)
