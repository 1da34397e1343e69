"""The published numbers of the 950 family, as the benchmark compares them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def accuracy():
    spec = importlib.util.spec_from_file_location("accuracy_a5", ROOT / "benchmarks" / "accuracy_a5.py")
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["accuracy_a5"] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["accuracy_a5"]


def test_single_ops_are_near_their_published_formulas(accuracy):
    points = list(accuracy.ops())
    assert len({point.group for point in points}) == 12
    assert accuracy.mean(points) >= 0.95
    assert min(point.precision for point in points) >= 0.7


def test_transfers_are_near_the_published_tables(accuracy):
    points = list(accuracy.transfers())
    assert {point.group for point in points} == set(accuracy.TABLES)
    assert accuracy.mean(points) >= 0.95


def test_products_and_drains_are_near_their_published_fits(accuracy):
    assert accuracy.mean(list(accuracy.cube())) >= 0.98
