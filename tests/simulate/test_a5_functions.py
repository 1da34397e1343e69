"""The 950 family: tile ops as vector functions, on the lanes that the vendor's simulator prints."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.chips import chip_names, family_named, load_chip
from insight_trace.model import Pipe
from insight_trace.simulate.embedded.op_forms import OpRequest
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from insight_trace.simulate.embedded.single_op import time_op
from tests.conftest import or_half
from tests.simulate.op_harness import dtype, run_tile_op, tile

A5 = EmbeddedOptions(target="a5")


def timed(op: str, rows: int, cols: int, kind: str = "float32", **more) -> int:
    return time_op(OpRequest(op, dtype(kind), rows, cols, **more), A5).cycles


def lanes(result) -> dict[str, list[str]]:
    columns = result.simulation.instructions
    found: dict[str, list[str]] = {}
    for pipe, name in zip(columns.pipe, columns.name, strict=True):
        found.setdefault(Pipe(int(pipe)).name, []).append(columns.names[name])
    return found


def test_an_op_is_a_push_and_runs_on_the_lanes_for_loading_computing_and_storing():
    a, b = np.ones((4, 64), np.float32), np.full((4, 64), 2, np.float32)
    result = run_tile_op(
        "TADD", tile(np.zeros((4, 64), np.float32), 0x8000), tile(a), tile(b, 0x4000), target="a5"
    )
    np.testing.assert_array_equal(result.matrix(0), a + b)
    assert lanes(result) == {
        "PUSHQ": ["VF"],
        "RVECLD": ["RV_VLD", "RV_VLD"],
        "RVECEX": ["RV_VADD"],
        "RVECST": ["RV_VST"],
        "SCALAR": ["END"],
    }


def test_the_lanes_of_a_function_lie_within_its_push_and_start_one_after_the_other():
    columns = time_op(OpRequest("TEXP", dtype("float32"), 64, 128), A5).simulation.instructions
    push, load, compute, store = range(4)
    assert [columns.names[i] for i in columns.name[:4]] == ["VF", "RV_VLD", "RV_VEXP", "RV_VST"]
    assert columns.start[push] < columns.start[load] < columns.start[compute] < columns.start[store]
    assert columns.end[load] < columns.end[compute] < columns.end[store] == columns.end[push]


def test_masks_and_barriers_inside_an_op_are_no_instructions_there():
    # a ragged width takes mask registers on a2a3
    a = np.ones((8, 72), np.float32)
    on_a2a3 = run_tile_op("TEXP", tile(a, 0x8000, valid=(8, 70)), tile(a, valid=(8, 70)), target="a2a3")
    on_a5 = run_tile_op("TEXP", tile(a, 0x8000, valid=(8, 70)), tile(a, valid=(8, 70)), target="a5")
    assert "MOV_SPR_XN" in on_a2a3.instructions
    assert "MOV_SPR_XN" not in on_a5.instructions


@pytest.mark.parametrize(
    ("op", "kind", "slope", "head"),
    [
        ("TADD", "float32", 1.247, 55.07),
        ("TMUL", "float16", 1.194, 56.29),
        ("TEXP", "float32", 1.967, 62.66),
        ("TEXP", "float16", 3.762, 65.93),
        ("TMINS", "float32", 1.059, 53.14),
        ("TDIVS", "float32", 1.908, 64.52),
    ],
)
@settings(max_examples=or_half(8))
@given(loops=st.integers(1, 120))
def test_one_run_of_elements_costs_a_head_and_a_slope_for_each_loop(op, kind, slope, head, loops):
    cols = 256 // dtype(kind).size
    assert timed(op, loops, cols, kind, dynamic=False) == pytest.approx(slope * loops + head, abs=1.5)


@settings(max_examples=or_half(12))
@given(rows=st.integers(2, 64), inner=st.integers(1, 4))
def test_rows_with_gaps_cost_a_nested_loop(rows, inner):
    cols = inner * 64 + 8
    found = timed("TADD", rows, cols, valid_cols=inner * 64)
    assert found == pytest.approx((1.875 * inner + 2.876) * rows + 44.34, abs=1.5)


def test_a_function_of_two_steps_pays_for_starting_once():
    together = timed("TRSQRT", 64, 64, dynamic=False)
    apart = timed("TSQRT", 64, 64, dynamic=False) + timed("TRECIP", 64, 64, dynamic=False)
    assert together < apart - 40
    assert together == pytest.approx(4.029 * 64 + 75.57, rel=0.06)


@settings(max_examples=or_half(10))
@given(rows=st.integers(2, 40), cols=st.integers(1, 12))
def test_more_rows_or_columns_never_take_less_time(rows, cols):
    for op in ("TADD", "TEXP", "TROWMAX", "TCOLSUM"):
        smaller = timed(op, rows, cols * 8)
        assert timed(op, rows + 1, cols * 8) >= smaller
        assert timed(op, rows, cols * 8 + 8) >= smaller


# --- the cube core, its memories and paths


def test_a_left_tile_lies_in_nz_there_and_multiplies_the_same():
    rng = np.random.default_rng(1)
    a, b = rng.integers(-8, 8, (32, 64)).astype(np.float16), rng.integers(-8, 8, (64, 48)).astype(np.float16)
    acc = tile(np.zeros((32, 48), np.float32), layout="NZ", fractal=1024, space="l0c")
    left, right = tile(a, layout="NZ", space="l0a"), tile(b, layout="ZN", space="l0b")
    result = run_tile_op("TMATMUL", acc, left, right, target="a5")
    np.testing.assert_array_equal(result.matrix(0), a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("kind", ["float8_e4m3fn"])
def test_products_of_eight_bit_floats_exist_there_and_not_on_a2a3(kind):
    rng = np.random.default_rng(2)
    a, b = rng.integers(-6, 6, (16, 64)).astype(np.float32), rng.integers(-6, 6, (64, 32)).astype(np.float32)
    acc = tile(np.zeros((16, 32), np.float32), layout="NZ", fractal=1024, space="l0c")
    left = tile(a, dtype_name=kind, layout="NZ", space="l0a")
    right = tile(b, dtype_name=kind, layout="ZN", space="l0b")
    np.testing.assert_array_equal(run_tile_op("TMATMUL", acc, left, right, target="a5").matrix(0), a @ b)
    with pytest.raises(AssertionError, match="not_supported"):
        run_tile_op("TMATMUL", acc, left, right, target="a2a3")


@pytest.mark.parametrize(
    ("op", "space", "name"), [("l0a", "NZ", "LOAD_L1_TO_L0A_2D"), ("l0b", "ZN", "LOAD_L1_TO_L0B_2D")]
)
@pytest.mark.parametrize("source", ["NZ", "ZN"])
def test_loading_an_operand_of_the_cube_is_one_instruction(op, space, name, source):
    matrix = np.arange(32 * 32, dtype=np.float16).reshape(32, 32)
    into = tile(np.zeros((32, 32), np.float16), layout=space, space=op)
    result = run_tile_op("TMOV", into, tile(matrix, layout=source, space="l1"), target="a5")
    np.testing.assert_array_equal(result.matrix(0), matrix)
    assert result.instructions == [name]


def test_an_accumulator_goes_straight_to_the_vector_cores_memory():
    # whose memory, and what arrives there, is in the tests of clusters
    matrix = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
    acc = tile(matrix, layout="NZ", fractal=1024, space="l0c")
    result = run_tile_op("TMOV", tile(np.zeros((32, 16), np.float32)), acc, target="a5")
    assert result.instructions == ["FIX_L0C_TO_UB"]


def test_a_vector_tile_goes_straight_to_l1():
    matrix = np.arange(32 * 16, dtype=np.float16).reshape(32, 16)
    into = tile(np.zeros((32, 16), np.float16), layout="NZ", space="l1")
    result = run_tile_op("TMOV", into, tile(matrix, layout="NZ"), target="a5")
    assert result.instructions == ["MOV_UB_TO_L1"]


def test_its_memories_are_larger():
    far = 200 * 1024  # past the 192 KB of a2a3
    ones = np.ones((8, 64), np.float32)
    result = run_tile_op("TEXP", tile(np.zeros((8, 64), np.float32), far), tile(ones), target="a5")
    np.testing.assert_allclose(result.matrix(0), np.e * ones, rtol=1e-6)
    with pytest.raises(AssertionError, match="goes past its 196608 bytes"):
        run_tile_op("TEXP", tile(np.zeros((8, 64), np.float32), far), tile(ones), target="a2a3")


def test_halves_past_the_largest_stay_infinite_there_unless_ctrl_says_else():
    values = np.full((1, 64), 20, np.float16)
    values[0, 0] = 0
    into = tile(np.zeros((1, 64), np.float16))
    for op, first in (("TEXP", 1), ("TLOG", -np.inf)):
        there = run_tile_op(op, into, tile(values), target="a5").matrix(0)
        assert there[0, 0] == first
    assert np.isinf(run_tile_op("TEXP", into, tile(values), target="a5").matrix(0)[0, 1])
    assert run_tile_op("TEXP", into, tile(values), target="a2a3").matrix(0)[0, 1] == 65504
    assert run_tile_op("TLOG", into, tile(values), target="a2a3").matrix(0)[0, 0] == -65504


# --- chips


def test_the_clock_follows_the_name_of_the_chip():
    assert load_chip("Ascend950PR_9599").mhz == 1800
    assert load_chip("ascend950pr_9589").mhz == 1650
    assert load_chip("Ascend950DT_95A1").mhz == 1800
    assert load_chip("Ascend950DT_9571").name == "Ascend950DT_9571"
    assert load_chip(target="a5").name == family_named("a5").default_chip
    assert len([name for name in chip_names() if name.startswith("Ascend950")]) == 32


def test_presets_differ_where_the_vendors_simulator_differs_from_the_chip():
    device, camodel = load_chip(target="a5"), load_chip(target="a5", preset="camodel")
    changed = {line.split("\t")[1] for line in set(device.job_lines) ^ set(camodel.job_lines)}
    assert {"fixpipe.head", "LOAD_L1_TO_L0A_2D", "LOAD_L1_TO_L0B_2D"} <= changed
