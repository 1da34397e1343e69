"""How near modelled time comes to what has been published, with the limits that the project holds itself to."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from insight_trace.__main__ import main
from insight_trace.chips import entries, load_chip

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

TABLE = Path(__file__).parents[1] / "data" / "measured_cycles_a2a3.csv"


@pytest.fixture(scope="module")
def accuracy() -> ModuleType:
    """benchmarks/accuracy.py, which is a program and not part of the package."""
    before = list(sys.path)
    try:
        spec = importlib.util.spec_from_file_location("accuracy", BENCHMARKS / "accuracy.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules["accuracy"] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path[:] = before


def test_published_single_ops_are_met_to_nine_tenths_on_average(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["op", "--table", str(TABLE), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sound_rows"] == 49
    assert told["mean_precision"] >= 0.90
    assert len(told["rows"]) == 66


@pytest.mark.parametrize(
    "group", ["transfer_points", "rate_points", "product_points", "ladder_points", "loaded_points"]
)
def test_published_points_are_met_within_a_tenth(accuracy: ModuleType, group: str) -> None:
    points = getattr(accuracy, group)()
    assert points
    far = [p for p in points if abs(p.error) > 0.10]
    assert not far


def test_a_step_of_a_large_product_takes_its_published_time(accuracy: ModuleType) -> None:
    cube, mte1 = accuracy.step_points()
    assert abs(cube.error) <= 0.03
    assert abs(mte1.error) <= 0.15


def test_the_page_names_a_reason_for_every_large_miss(accuracy: ModuleType, tmp_path: Path) -> None:
    rows = accuracy.time_table(TABLE)
    text = accuracy.page(rows, tmp_path)
    assert "not explained" not in text
    assert all(row.case in text for row in rows)
    for name in ("accuracy-ops.svg", "accuracy-transfers.svg", "accuracy-banks.svg"):
        assert name in text
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("name", ["Ascend910B1", "Ascend910B2", "Ascend910B3", "Ascend910B4"])
@pytest.mark.parametrize("preset", ["device", "camodel"])
def test_every_number_of_a_chip_says_where_it_comes_from(name: str, preset: str) -> None:
    chip = load_chip(name, preset=preset)
    listed = list(entries(chip.table))
    assert len(listed) > 80
    assert all(entry["kind"] in ("measured", "published", "derived", "estimate") for _, entry in listed)
    assert all(entry["source"] for _, entry in listed)
    assert chip.value("l2.chip_rate") > chip.value("gm.chip_rate")
