"""Bits, comparisons into packed masks, and choices by them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault
from tests.conftest import or_half
from tests.simulate.elementwise_cases import (
    INTEGERS,
    NUMBERS,
    SCRATCH,
    check,
    check_in_pairs,
    drawn,
    in_float,
    names,
    place,
    values,
    vector_instructions,
)
from tests.simulate.op_harness import Option, dtype, failure_of, run_tile_op, scalar, tile

COMPARE = {"EQ": 0, "NE": 1, "LT": 2, "LE": 3, "GT": 4, "GE": 5}
NUMPY_COMPARE = dict(
    zip(COMPARE, (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal), strict=True)
)


@pytest.mark.parametrize(("op", "function"), [("TAND", np.bitwise_and), ("TOR", np.bitwise_or)])
@settings(max_examples=or_half(25))
@given(data=st.data())
def test_bits_of_two_tiles(op, function, data):
    kind = data.draw(st.sampled_from(INTEGERS))
    shape, _, (before, a, b) = drawn(data, kind, 3)
    operands = [place(m, i, kind, shape) for i, m in enumerate((before, a, b))]
    check_in_pairs(op, operands, shape, before, function(a, b)[shape.part])


@settings(max_examples=or_half(25))
@given(st.data())
def test_bits_are_turned(data):
    kind = data.draw(st.sampled_from(INTEGERS))
    shape, _, (before, a) = drawn(data, kind, 2)
    check_in_pairs(
        "TNOT", [place(before, 0, kind, shape), place(a, 1, kind, shape)], shape, before, ~a[shape.part]
    )


@settings(max_examples=or_half(25))
@given(st.data())
def test_exclusive_or_needs_scratch_and_four_steps(data):
    kind = data.draw(st.sampled_from(INTEGERS))
    shape, _, (before, a, b) = drawn(data, kind, 3)
    scratch = place(before, 3, kind, shape)
    operands = [*(place(m, i, kind, shape) for i, m in enumerate((before, a, b))), scratch]
    check_in_pairs("TXOR", operands, shape, before, (a ^ b)[shape.part])
    result = run_tile_op("TXOR", *operands, target="a2a3")
    assert list(dict.fromkeys(names(result))) == ["VOR", "BAR", "VAND", "VNOT"]


@pytest.mark.parametrize(
    ("op", "function"), [("TANDS", np.bitwise_and), ("TORS", np.bitwise_or), ("TXORS", np.bitwise_xor)]
)
@settings(max_examples=or_half(25))
@given(data=st.data())
def test_bits_of_a_tile_and_a_number(op, function, data):
    kind = data.draw(st.sampled_from(INTEGERS))
    shape, rng, (before, a) = drawn(data, kind, 2)
    number = values(rng, kind, (1, 1))
    operands = [place(before, 0, kind, shape), place(a, 1, kind, shape), scalar(number[0, 0], kind)]
    operands += [place(before, 2, kind, shape)] if op == "TXORS" else []
    expected = function(a, number)[shape.part]
    if shape.fills_in_a_run:  # the number is a tile that TEXPANDS fills
        check(run_tile_op(op, *operands, target="a5"), shape, before, expected)
    else:
        check_in_pairs(op, operands, shape, before, expected)


def shifted(op, a, count):
    """Counts past the width leave nothing, or the sign; of 64-bit elements the low six bits count."""
    if a.dtype.itemsize == 8:
        count = count % 64
    pairs = [(int(x), int(c)) for x, c in zip(a.ravel(), count.ravel(), strict=True)]
    wide = [x << c if op.startswith("TSHL") else x >> c for x, c in pairs]
    return wrapped(wide, a)


def wrapped(numbers, like):
    """Python integers in the type and shape of an array, their high bits cut off."""
    size = like.dtype.itemsize
    low = [number % 2 ** (8 * size) for number in numbers]
    return np.array(low, f"u{size}").view(like.dtype).reshape(like.shape)


@pytest.mark.parametrize("op", ["TSHL", "TSHR", "TSHLS", "TSHRS"])
@settings(max_examples=or_half(25))
@given(data=st.data())
def test_shifts(op, data):
    kind = data.draw(st.sampled_from(INTEGERS))
    shape, rng, (before, a) = drawn(data, kind, 2)
    counts = rng.integers(0, 8 * a.dtype.itemsize + 3, a.shape).astype(a.dtype)
    if op.endswith("S"):
        counts[:] = counts[0, 0]
        by = scalar(counts[0, 0], kind)
    else:
        by = place(counts, 2, kind, shape)
    result = run_tile_op(op, place(before, 0, kind, shape), place(a, 1, kind, shape), by)
    check(result, shape, before, shifted(op, a, counts.astype(np.int64))[shape.part])


def compared(data, against, kind, modes, target):
    """(shape, bits that the comparison leaves of a mask of ones, what NumPy finds in the valid part)."""
    shape, rng, (a, b) = drawn(data, kind, 2, ("ND",))
    b = np.where(rng.random(a.shape) < 0.3, a, b)
    mode = data.draw(st.sampled_from(modes))
    bytes_per_row = -(-shape.cols // (2048 // (8 * a.dtype.itemsize))) * 32  # whole repeats, whole blocks
    mask = tile(np.full((shape.rows, bytes_per_row), 0xFF, np.uint8), 0)
    source = place(a, 1, kind, shape)
    if against == "tile":
        operands = "TCMP", mask, source, place(b, 2, kind, shape)
    else:
        b = np.full_like(a, b[0, 0])
        other = scalar(b[0, 0], kind) if against == "number" else place(b, 2, kind, shape)
        operands = "TCMPS", mask, source, other
    result = run_tile_op(*operands, Option(COMPARE[mode]), target=target)
    bits = np.unpackbits(result.matrix(0), axis=1, bitorder="little").astype(bool)
    with np.errstate(invalid="ignore"):
        return shape, bits, NUMPY_COMPARE[mode](a, b)[shape.part]


@pytest.mark.parametrize("against", ["tile", "number", "first of a tile"])
@settings(max_examples=or_half(30))
@given(data=st.data())
def test_comparisons_pack_a_bit_per_element(against, data):
    kind = data.draw(st.sampled_from(["float32", "float16", "int32"]))
    modes = ["EQ", "NE"] if kind == "int32" else list(COMPARE)
    shape, bits, wanted = compared(data, against, kind, modes, "a2a3")
    np.testing.assert_array_equal(bits[shape.part], wanted)


@pytest.mark.parametrize("against", ["tile", "number", "first of a tile"])
@settings(max_examples=or_half(30))
@given(data=st.data())
def test_the_950_compares_every_type_and_clears_the_bits_of_what_is_not_valid(against, data):
    kind = data.draw(st.sampled_from(NUMBERS))
    shape, bits, wanted = compared(data, against, kind, list(COMPARE), "a5")
    whole = np.ones(bits.shape, bool)
    size = dtype(kind).size
    unit = 256 if size in (1, 8) else 128  # bits that are written together
    rows, cols = shape.valid[0], min(shape.valid[1], 64) if size == 8 else shape.valid[1]
    whole[:rows, : -(-cols // unit) * unit] = False
    whole[:rows, :cols] = wanted[:, :cols]  # of a row of 64-bit numbers the first 64
    np.testing.assert_array_equal(bits, whole)


def test_comparisons_go_row_by_row_in_whole_repeats():
    a, mask = np.zeros((3, 72), np.float32), np.zeros((3, 32), np.uint8)
    less, other = Option(COMPARE["LT"]), Option(COMPARE["NE"])
    result = run_tile_op("TCMP", tile(mask), tile(a, 0x1000), tile(a, 0x2000), less, target="a2a3")
    assert vector_instructions(result) == [("VCMPV", 2)] * 3
    turned = run_tile_op("TCMPS", tile(mask), tile(a, 0x1000), scalar(0.0), other, target="a2a3")
    assert vector_instructions(turned) == [("VCMPVS", 2)] * 3 + [("BAR", 0), ("VNOT", 1)]


def test_integers_compare_only_for_equality_on_a2a3():
    a, mask = tile(np.zeros((1, 64), np.int32), 0x1000), tile(np.zeros((1, 32), np.uint8))
    failure = failure_of("TCMP", mask, a, a, Option(COMPARE["LT"]), target="a2a3")
    assert failure.fault is Fault.NOT_SUPPORTED


@pytest.mark.parametrize("op", ["TSEL", "TSELS"])
@settings(max_examples=or_half(30))
@given(data=st.data())
def test_a_mask_chooses(op, data):
    kind = data.draw(st.sampled_from(["float32", "float16", "bfloat16", "int32", "int16"]))
    shape, rng, (before, a, b) = drawn(data, kind, 3, ("ND",))
    bits = rng.random((shape.rows, -(-shape.cols // 256) * 256)) < 0.5
    mask = tile(np.packbits(bits, axis=1, bitorder="little"), SCRATCH)
    tmp = tile(np.zeros((1, 8), np.int32), SCRATCH + 0x1000)
    into, first = place(before, 0, kind, shape), place(a, 1, kind, shape)
    if op == "TSEL":
        result = run_tile_op(op, into, mask, first, place(b, 2, kind, shape), tmp)
    else:
        b = np.full_like(b, b[0, 0])
        result = run_tile_op(op, into, mask, first, tmp, scalar(b[0, 0], kind))
    wanted = np.where(bits[:, : shape.cols], a, b)
    check(result, shape, before, wanted[shape.part])


@settings(max_examples=or_half(20))
@given(st.data())
def test_slopes_of_their_own_below_zero(data):
    kind = data.draw(st.sampled_from(["float32", "float16"]))
    shape, _, (before, a, slope) = drawn(data, kind, 3, ("ND",), special=False)
    bytes_per_row = -(-shape.cols // (2048 // (8 * a.dtype.itemsize))) * 32
    mask = tile(np.zeros((shape.rows + 1, bytes_per_row), np.uint8), SCRATCH)
    result = run_tile_op(
        "TPRELU", *(place(m, i, kind, shape) for i, m in enumerate((before, a, slope))), mask
    )
    product = in_float(np.multiply)(a, slope)
    check(result, shape, before, np.where(a > 0, a, product)[shape.part])
