"""Element-wise arithmetic against NumPy: every type, shape, valid size and layout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault
from tests.conftest import or_half
from tests.simulate.elementwise_cases import (
    FLOATS,
    NUMBERS,
    Shape,
    check,
    check_in_pairs,
    in_float,
    place,
    shapes,
    values,
    vector_instructions,
)
from tests.simulate.op_harness import failure_of, run_tile_op, scalar, tile

SEEDS = st.integers(0, 2**32 - 1)


def divided(a, b):
    if not np.issubdtype(a.dtype, np.integer):
        return a / b
    exact = [int(x) for x in a.ravel()], [int(y) for y in b.ravel()]
    quotients = [
        0 if y == 0 else abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)
        for x, y in zip(*exact, strict=True)
    ]
    return (
        np.array(quotients, object).reshape(a.shape).astype(np.int64 if a.dtype != np.uint64 else np.uint64)
    )


BINARY = {
    "TADD": np.add,
    "TSUB": np.subtract,
    "TMUL": np.multiply,
    "TDIV": divided,
    "TMAX": np.maximum,
    "TMIN": np.minimum,
}
SCALAR = {
    "TADDS": np.add,
    "TSUBS": np.subtract,
    "TMULS": np.multiply,
    "TMAXS": np.maximum,
    "TMINS": np.minimum,
}


def precise(function):
    """The function in double, rounded to float32."""
    return lambda x: function(x.astype(np.float64)).astype(np.float32)


UNARY = {
    "TEXP": (precise(np.exp), FLOATS),
    "TLOG": (precise(np.log), FLOATS),
    "TSQRT": (np.sqrt, FLOATS),
    "TRSQRT": (precise(lambda x: 1.0 / np.sqrt(x)), FLOATS),
    "TABS": (np.abs, NUMBERS),
    "TNEG": (np.negative, NUMBERS),
    "TRECIP": (lambda x: np.float32(1) / x, FLOATS),
}


def one_over_the_rounded_root(a, target):
    """A reciprocal square root in two steps, each rounded to the type."""
    return in_float(lambda x: np.float32(1) / x, target)(in_float(np.sqrt, target)(a))


@pytest.mark.parametrize("op", BINARY)
@given(st.data())
def test_two_tiles_make_one(op, data):
    kind = data.draw(st.sampled_from(NUMBERS))
    shape = data.draw(shapes(kind))
    rng = np.random.default_rng(data.draw(SEEDS))
    before, a, b = (values(rng, kind, (shape.rows, shape.cols)) for _ in range(3))
    result = run_tile_op(
        op, place(before, 0, kind, shape), place(a, 1, kind, shape), place(b, 2, kind, shape)
    )
    check(result, shape, before, in_float(BINARY[op])(a[shape.part], b[shape.part]))


@pytest.mark.parametrize("op", SCALAR)
@given(st.data())
def test_a_tile_and_a_scalar_make_one(op, data):
    kind = data.draw(st.sampled_from(NUMBERS))
    shape = data.draw(shapes(kind))
    rng = np.random.default_rng(data.draw(SEEDS))
    before, a = (values(rng, kind, (shape.rows, shape.cols)) for _ in range(2))
    # a negated scalar passes through a float on its way to the instruction: keep it exact
    value = values(rng, kind, (1, 1), special=False)
    if op == "TSUBS" and value.dtype.kind == "i":
        value //= value.dtype.type(max(1, np.iinfo(value.dtype).max >> 20))
    result = run_tile_op(
        op, place(before, 0, kind, shape), place(a, 1, kind, shape), scalar(value[0, 0], kind)
    )
    check(result, shape, before, in_float(SCALAR[op])(a[shape.part], value))


@pytest.mark.parametrize("op", UNARY)
@given(st.data())
def test_one_tile_makes_one(op, data):
    function, kinds = UNARY[op]
    kind = data.draw(st.sampled_from(kinds))
    shape = data.draw(shapes(kind))
    rng = np.random.default_rng(data.draw(SEEDS))
    before, a = (values(rng, kind, (shape.rows, shape.cols)) for _ in range(2))
    operands = place(before, 0, kind, shape), place(a, 1, kind, shape)
    wanted = in_float(function)(a[shape.part])
    if op != "TRSQRT":
        return check(run_tile_op(op, *operands), shape, before, wanted)
    check(run_tile_op(op, *operands, target="a2a3"), shape, before, wanted)
    stepwise = one_over_the_rounded_root(a[shape.part], "a5")
    check(run_tile_op(op, *operands, target="a5"), shape, before, stepwise)


@given(st.data())
def test_a_scalar_fills_the_valid_part(data):
    kind = data.draw(st.sampled_from(NUMBERS))
    shape = data.draw(shapes(kind))
    rng = np.random.default_rng(data.draw(SEEDS))
    before = values(rng, kind, (shape.rows, shape.cols))
    value = values(rng, kind, (1, 1))
    operands = [place(before, 0, kind, shape), scalar(value[0, 0], kind)]
    expected = np.broadcast_to(value, shape.valid)
    if shape.fills_in_a_run:
        check(run_tile_op("TEXPANDS", *operands, target="a5"), shape, before, expected)
    else:
        check_in_pairs("TEXPANDS", operands, shape, before, expected)


def test_a_width_that_is_part_of_the_type_is_filled_in_one_run_as_the_library_of_a2a3_does():
    before = np.zeros((4, 16), np.float32)
    got = run_tile_op("TEXPANDS", tile(before, valid=(4, 3)), scalar(5.0, "float32"), target="a2a3").matrix(0)
    assert np.flatnonzero(got).tolist() == list(range(12))


@given(st.data())
def test_a_tile_in_l1_is_filled_whole(data):
    kind = data.draw(st.sampled_from(["float32", "bfloat16", "int8"]))
    before = np.ones((16, 32), np.float32)
    spec = tile(before, 0x100, dtype_name=kind, layout="NZ", space="l1", valid=(3, 5))
    result = run_tile_op("TEXPANDS", spec, scalar(7, kind))
    assert (result.matrix(0).astype(np.float32) == 7).all()
    assert result.instructions == ["SET_L1_2D"]


@settings(max_examples=or_half(20))
@given(st.data())
def test_an_op_in_place_is_the_same(data):
    kind = data.draw(st.sampled_from(["float32", "float16", "int32"]))
    shape = data.draw(shapes(kind))
    a = values(np.random.default_rng(data.draw(SEEDS)), kind, (shape.rows, shape.cols))
    spec = place(a, 1, kind, shape)
    check(
        run_tile_op("TMUL", spec, spec, spec), shape, a, in_float(np.multiply)(a[shape.part], a[shape.part])
    )


@settings(max_examples=or_half(20))
@given(st.data())
def test_tiles_of_different_pitch_meet_element_by_element(data):
    kind = data.draw(st.sampled_from(["float32", "float16"]))
    size = 4 if kind == "float32" else 2
    rng = np.random.default_rng(data.draw(SEEDS))
    widths = [data.draw(st.sampled_from([1, 8, 9, 20])) * 32 // size for _ in range(3)]
    rows, cols = data.draw(st.integers(1, 20)), data.draw(st.integers(1, min(widths)))
    tiles = [values(rng, kind, (20, width)) for width in widths]
    specs = [tile(t, i * 0xA000, dtype_name=kind, valid=(rows, cols)) for i, t in enumerate(tiles)]
    wanted = tiles[0].copy()
    wanted[:rows, :cols] = in_float(np.add)(tiles[1][:rows, :cols], tiles[2][:rows, :cols])
    np.testing.assert_array_equal(run_tile_op("TADD", *specs).matrix(0), wanted)


@pytest.mark.parametrize("first", ["tile", "scalar"])
@given(data=st.data())
def test_quotients_with_a_scalar(first, data):
    kind = data.draw(st.sampled_from(NUMBERS))
    shape = data.draw(shapes(kind))
    rng = np.random.default_rng(data.draw(SEEDS))
    before, a = (values(rng, kind, (shape.rows, shape.cols)) for _ in range(2))
    value = values(rng, kind, (1, 1), special=False)
    source, number = place(a, 1, kind, shape), scalar(value[0, 0], kind)
    part = a[shape.part]
    spread = np.broadcast_to(value, part.shape)
    if first == "tile":
        result = run_tile_op("TDIVS", place(before, 0, kind, shape), source, number)
        wanted = in_float(divided)(part, spread)
    else:
        result = run_tile_op("TDIVS", place(before, 0, kind, shape), number, source)
        wanted = in_float(divided)(spread, part)
    check(result, shape, before, wanted)


def test_a_quotient_in_place_is_a_product_with_the_inverse_on_a2a3_alone():
    a = np.linspace(-3, 3, 64, dtype=np.float32).reshape(1, 64)
    spec = tile(a)
    result = run_tile_op("TDIVS", spec, spec, scalar(3.0), target="a2a3")
    np.testing.assert_array_equal(result.matrix(0), a * (np.float32(1) / np.float32(3)))
    assert result.instructions == ["VMULS"]
    on_a5 = run_tile_op("TDIVS", spec, spec, scalar(3.0), target="a5")
    np.testing.assert_array_equal(on_a5.matrix(0), a / np.float32(3))
    assert (on_a5.matrix(0) != result.matrix(0)).any()


@given(st.data())
def test_a_reciprocal_square_root_with_scratch_is_a_root_and_a_quotient(data):
    kind = data.draw(st.sampled_from(["float32", "float16"]))
    shape = data.draw(shapes(kind, ("ND",)))
    rng = np.random.default_rng(data.draw(SEEDS))
    before, a = (values(rng, kind, (shape.rows, shape.cols)) for _ in range(2))
    scratch = tile(np.zeros((1, 32), np.float32), 0x2E000)
    operands = place(before, 0, kind, shape), place(a, 1, kind, shape), scratch
    for target in ("a5", "a2a3"):
        result = run_tile_op("TRSQRT", *operands, target=target)
        check(result, shape, before, one_over_the_rounded_root(a[shape.part], target))
    rows = shape.valid[0]
    named = [name for name, _ in vector_instructions(result)]
    assert named == ["MOVEV", *["VSQRT"] * rows, "BAR", *["VDIV"] * rows]


def test_what_an_op_cannot_do_is_said():
    a = np.zeros((16, 64), np.float32)
    mixed = failure_of("TADD", tile(a), tile(a, 0x4000), tile(a, 0x8000, dtype_name="float16"))
    assert (mixed.fault, "mixes tiles of F16 and F32" in mixed.message) == (Fault.KERNEL, True)
    sizes = failure_of("TADDS", tile(a), tile(a, 0x4000, valid=(15, 64)), scalar(1.0))
    assert (sizes.fault, "15 x 64" in sizes.message) == (Fault.KERNEL, True)
    boxed = failure_of("TEXP", tile(a, layout="NZ"), tile(a, 0x4000))
    assert boxed.fault is Fault.NOT_SUPPORTED
    whole = failure_of("TEXP", tile(a.astype(np.int32)), tile(a.astype(np.int32), 0x4000))
    assert (whole.fault, "TEXP of I32 tiles" in whole.message) == (Fault.NOT_SUPPORTED, True)
    place_of = failure_of("TRECIP", tile(a), tile(a), target="a2a3")
    assert (place_of.fault, "in place" in place_of.message) == (Fault.KERNEL, True)
    layouts = failure_of("TADD", tile(a), tile(a, 0x4000), tile(a, 0x8000, layout="DN"))
    assert (layouts.fault, "row-major and column-major" in layouts.message) == (Fault.KERNEL, True)
    for target, end in (("a2a3", 0x30000), ("a5", 0x40000)):
        beyond = failure_of("TABS", tile(a, end - 256), tile(a), target=target)
        assert (beyond.fault, f"goes past its {end} bytes" in beyond.message) == (Fault.KERNEL, True)


def grid(rows, cols, kind="float32", *, number=0, valid=None, dynamic=0):
    """A tile of zeros."""
    shape = Shape(rows, cols, valid or (rows, cols), "ND", dynamic)
    return place(np.zeros((rows, cols), kind), number, kind, shape)


def expansion(op, rows, cols, count, *extra, kind="float32", **how):
    """(mnemonic, repeats) of the op on `count` tiles of that shape."""
    tiles = [grid(rows, cols, kind, number=i, **how) for i in range(count)]
    return vector_instructions(run_tile_op(op, *tiles, *extra))


def test_consecutive_elements_are_one_run_of_repeats():
    assert expansion("TADD", 64, 64, 3) == [("VADD", 64)]
    assert expansion("TADD", 16, 128, 3, kind="float16") == [("VADD", 16)]
    assert expansion("TEXP", 3, 24, 2) == [("VEXP", 1), ("VEXP", 1)]
    assert expansion("TMULS", 64, 64, 2, scalar(2.0)) == [("VMULS", 64)]


def test_more_repeats_than_one_instruction_has_go_to_count_mode():
    assert expansion("TEXP", 5, 64 * 52, 1, grid(5, 64 * 52, number=2)) == [("VEXP", 260)]
    result = run_tile_op("TEXP", grid(5, 64 * 52), grid(5, 64 * 52, number=2))
    assert result.instructions == ["MOV_SPR_XN", "MOV_SPR_XN", "VEXP", "MOV_SPR_XN", "MOV_SPR_XN"]


def test_a_width_that_is_no_multiple_of_a_repeat_goes_to_count_mode():
    assert expansion("TADD", 4, 72, 3) == [("VADD", 5)]
    assert expansion("TADDS", 4, 72, 2, scalar(1.0)) == [("VADDS", 5)]


def test_a_narrow_tile_is_one_instruction_with_a_repeat_per_line():
    assert expansion("TADD", 16, 16, 3) == [("VADD", 16)]
    assert expansion("TADD", 16, 32, 3, valid=(9, 17)) == [("VADD", 9)]


def test_lines_apart_are_column_groups_with_a_repeat_per_line():
    assert expansion("TADD", 16, 128, 3, valid=(16, 100)) == [("VADD", 16), ("VADD", 16)]
    assert expansion("TEXP", 16, 128, 2, valid=(7, 100)) == [("VEXP", 7), ("VEXP", 7)]


def test_few_long_lines_go_one_by_one():
    assert expansion("TADD", 2, 256, 3, valid=(2, 128)) == [("VADD", 2), ("VADD", 2)]
    assert expansion("TADD", 2, 256, 3, valid=(2, 100)) == [("VADD", 2), ("VADD", 2)]


def test_a_valid_size_known_only_at_run_time_changes_the_instructions():
    # two tiles take the run-time size for what it is; with a scalar the lines stay apart
    assert expansion("TADD", 16, 128, 3, dynamic=3) == [("VADD", 32)]
    assert expansion("TMULS", 16, 128, 2, scalar(2.0), dynamic=3) == [("VMULS", 16), ("VMULS", 16)]
    assert expansion("TMULS", 16, 128, 2, scalar(2.0)) == [("VMULS", 32)]
    assert expansion("TEXPANDS", 4, 128, 1, scalar(2.0), dynamic=3) == [("MOVEV", 2)] * 4
    assert expansion("TEXPANDS", 4, 128, 1, scalar(2.0)) == [("MOVEV", 8)]


def test_a_reciprocal_fills_and_divides():
    assert expansion("TRECIP", 64, 64, 2) == [("MOVEV", 64), ("BAR", 0), ("VDIV", 64)]


def test_quotients_of_integers_are_the_scalar_units_work():
    names = [name for name, _ in expansion("TDIVS", 1, 8, 2, scalar(3, "int32"), kind="int32")]
    assert names == ["SET_FLAG", "WAIT_FLAG", *["LD_XD_XN_IMM", "ST_XD_XN_IMM"] * 8, "SET_FLAG", "WAIT_FLAG"]
