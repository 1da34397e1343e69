"""The published numbers of the 950 family, as the benchmark compares them."""

import csv
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def accuracy():
    spec = importlib.util.spec_from_file_location("accuracy_a5", ROOT / "benchmarks" / "accuracy_a5.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["accuracy_a5"] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["accuracy_a5"]


@pytest.fixture(scope="module")
def profiled(accuracy):
    """The points that the vendor profiled, as they come out here."""
    return list(accuracy.profiled(accuracy.written_down()))


@pytest.fixture(scope="module")
def transfers(accuracy):
    return list(accuracy.transfers())


@pytest.fixture(scope="module")
def cube(accuracy):
    return list(accuracy.cube())


def test_single_ops_are_near_what_the_vendor_profiled(accuracy, profiled):
    written, points = accuracy.written_down(), profiled
    assert len({point.group for point in points}) == 12
    assert len(points) > 400
    assert accuracy.mean(points) >= 0.95
    assert min(point.precision for point in points) >= 0.5
    # no worse than the formulas that were fitted to these very points
    assert accuracy.mean(points) >= sum(point.peer for point in written) / len(written)


def test_every_op_is_near_its_profiled_points_on_average(accuracy, profiled):
    for op in {point.group for point in profiled}:
        mean = accuracy.mean([point for point in profiled if point.group == op])
        assert mean >= (0.8 if op == "TSEL" else 0.93), op


def test_single_ops_are_near_their_published_formulas(accuracy):
    points = list(accuracy.ops())
    assert len({point.group for point in points}) == 12
    assert accuracy.mean(points) >= 0.98
    assert min(point.precision for point in points) >= 0.9


def test_transfers_are_near_the_published_tables(accuracy, transfers):
    assert {point.group for point in transfers} == set(accuracy.TABLES)
    assert accuracy.mean(transfers) >= 0.95


def test_products_and_drains_are_near_their_published_fits(accuracy, cube):
    assert accuracy.mean(cube) >= 0.98


def test_all_public_numbers_together_are_met(accuracy, profiled, transfers, cube):
    assert accuracy.mean([*profiled, *transfers, *cube]) >= 0.88


# --- the numbers written down are those that were published


def test_the_profiled_points_are_those_of_a_checkout(accuracy, pto_isa_checkout):
    published = {
        (p.op, p.source, p.to, p.rows, p.cols, p.valid_rows, p.valid_cols): p.cycles
        for p in accuracy.in_checkout(pto_isa_checkout)
    }
    for p in accuracy.written_down():
        assert published[p.op, p.source, p.to, p.rows, p.cols, p.valid_rows, p.valid_cols] == p.cycles


def test_all_profiled_points_of_a_checkout_are_met(accuracy, pto_isa_checkout):
    points = list(accuracy.profiled(accuracy.in_checkout(pto_isa_checkout)))
    assert len(points) > 600
    assert accuracy.mean(points) >= 0.95


def test_the_formulas_are_those_of_a_checkout(accuracy, pto_isa_checkout):
    names = {
        "half": "fp16", "float": "fp32", "bfloat16": "bf16", "float8_e4m3fn": "fp8_e4m3", "hif8": "hif8",
        "float4_e2m1fn": "fp4_e2m1", None: "none",
    }  # fmt: skip
    table = pto_isa_checkout / "include/pto/costmodel/a5/formula_costmodel/formula_params.csv"
    published: dict[tuple[str, str, str, str], set[tuple[float, ...]]] = {}
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = row["op"], row["src_dtype"], row["dst_dtype"], row["shape_path"]
            numbers = tuple(float(row[f"param{i}"]) for i in range(3))
            published.setdefault(key, set()).add(numbers)
    for op, source, to, run, nested in accuracy.FORMULAS:
        if run:
            assert (*run, 0.0) in published[op, names[source], names[to], "1D"], (op, source)
        assert nested in published[op, names[source], names[to], "2D"], (op, source)
