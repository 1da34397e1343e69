"""Remainders, powers, rectifiers, products and sums in one instruction."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import or_half
from tests.simulate.elementwise_cases import (
    FLOATS,
    SCRATCH,
    SEEDS,
    Shape,
    check,
    drawn,
    held,
    in_float,
    place,
    shapes,
    values,
)
from tests.simulate.op_harness import dtype, run_tile_op, scalar, tile


def wrapped(numbers, like):
    """Python integers in the type and shape of an array, their high bits cut off."""
    size = like.dtype.itemsize
    low = [number % 2 ** (8 * size) for number in numbers]
    return np.array(low, f"u{size}").view(like.dtype).reshape(like.shape)


def remainder(a, b):
    with np.errstate(all="ignore"):
        if a.dtype == np.int32:
            return remainder_of_integers(a, b)
        rest = a - np.floor(a / b) * b
        return np.where(rest * b < 0, rest + b, rest)


def remainder_of_integers(a, b):
    times = np.floor(a.astype(np.float32) / b.astype(np.float32)).astype(np.int32)
    rest = a - times * b
    return np.where((rest < 0) != (b < 0), np.where(rest == 0, rest, rest + b), rest)


@pytest.mark.parametrize("op", ["TREM", "TREMS", "TFMOD", "TFMODS"])
@settings(max_examples=or_half(25))
@given(data=st.data())
def test_remainders(op, data):
    kind = data.draw(st.sampled_from(["float32", "int32"] if "REM" in op else ["float32"]))
    shape, rng, (before, a, b) = drawn(data, kind, 3, ("ND",), special=False)
    if kind == "int32":  # where floats are exact
        a, b = a % 100000, b % 1000 + 1
        b = np.where(rng.random(b.shape) < 0.5, b, -b)
    if op.endswith("S"):
        b = np.full_like(b, b[0, 0])
    other = scalar(b[0, 0], kind) if op.endswith("S") else place(b, 2, kind, shape)
    operands = [place(before, 0, kind, shape), place(a, 1, kind, shape), other]
    if "REM" in op:
        operands.append(tile(np.zeros((2, 256), kind), SCRATCH))
    wanted = remainder(a, b) if "REM" in op else a - np.trunc(a / b) * b
    check(run_tile_op(op, *operands), shape, before, wanted[shape.part])


def power(base, exponent):
    if base.dtype.kind != "f":
        return [whole_power(int(x), int(e)) for x, e in zip(base.ravel(), exponent.ravel(), strict=True)]
    with np.errstate(all="ignore"):

        def steps(x):
            logarithm = np.log(x.astype(np.float64)).astype(np.float32)
            return np.exp((logarithm * exponent).astype(np.float64)).astype(np.float32)

        whole = exponent == np.trunc(exponent)
        found = np.where(whole, steps(np.abs(base)), steps(base))
        found = np.where(whole & (base < 0) & (np.fmod(exponent, 2) != 0), -found, found)
        found = np.where(base == 0, np.where(exponent > 0, np.float32(0), np.float32(np.inf)), found)
        return np.where(exponent == 0, np.float32(1), found)


def whole_power(base, exponent):
    if exponent < 0 and abs(base) != 1:
        return 0
    return base ** abs(exponent)


@pytest.mark.parametrize("op", ["TPOW", "TPOWS"])
@settings(max_examples=or_half(25))
@given(data=st.data())
def test_powers(op, data):
    kind = data.draw(st.sampled_from(["float32", "int32", "int16", "uint8"]))
    shape, rng, (before, base) = drawn(data, kind, 2, ("ND",), special=False)
    base = np.where(
        rng.random(base.shape) < 0.2, np.array([0, 1, 2], base.dtype)[rng.integers(0, 3, base.shape)], base
    )
    exponent = rng.integers(0, 5, base.shape).astype(base.dtype)
    if kind == "float32":
        exponent = np.where(rng.random(base.shape) < 0.5, exponent - 2, rng.normal(size=base.shape)).astype(
            np.float32
        )
    if op == "TPOWS":
        exponent = np.full_like(exponent, exponent[0, 0])
    other = scalar(exponent[0, 0], kind) if op == "TPOWS" else place(exponent, 2, kind, shape)
    result = run_tile_op(
        op, place(before, 0, kind, shape), place(base, 1, kind, shape), other, place(before, 3, kind, shape)
    )
    wanted = power(base[shape.part], exponent[shape.part])
    if kind != "float32":
        wanted = wrapped(wanted, base[shape.part])
    check(result, shape, before, wanted)


def product_of(kind):
    """Products in float32; those of halves are rounded to half before they are added."""
    if kind == "float16":
        return lambda a, b: (a * b).astype(np.float16).astype(np.float32)
    return np.multiply


FUSED = {
    "TMULADDDST": lambda times, d, a, b: times(a, b) + d,
    "TFUSEDMULADD": lambda times, d, a, b: times(a, d) + b,
    "TFUSEDMULADDRELU": lambda times, d, a, b: np.maximum(times(a, d) + b, np.float32(0)),
    "TSUBRELU": lambda _, __, a, b: np.maximum(a - b, np.float32(0)),
}


@pytest.mark.parametrize("op", FUSED)
@settings(max_examples=or_half(25))
@given(data=st.data())
def test_a_product_and_a_sum_in_one(op, data):
    kind = data.draw(st.sampled_from(FLOATS))
    shape, _, (before, a, b) = drawn(data, kind, 3)
    result = run_tile_op(op, *(place(m, i, kind, shape) for i, m in enumerate((before, a, b))))
    wanted = in_float(partial(FUSED[op], product_of(kind)))(before, a, b)
    check(result, shape, before, wanted[shape.part])


@settings(max_examples=or_half(25))
@given(st.data())
def test_rectifiers(data):
    kind = data.draw(st.sampled_from([*FLOATS, "int32"]))
    shape, _, (before, a) = drawn(data, kind, 2)
    result = run_tile_op("TRELU", place(before, 0, kind, shape), place(a, 1, kind, shape))
    check(result, shape, before, in_float(lambda x: np.maximum(x, x.dtype.type(0)))(a)[shape.part])
    if kind == "int32":
        return
    slope = np.array([[0.25]], a.dtype)
    leaky = run_tile_op("TLRELU", place(before, 0, kind, shape), place(a, 1, kind, shape), scalar(0.25, kind))
    check(leaky, shape, before, in_float(lambda x, s: np.where(x > 0, x, x * s))(a, slope)[shape.part])


@settings(max_examples=or_half(25))
@given(st.data())
def test_a_scaled_tile_is_added_to_another(data):
    into, kind = data.draw(
        st.sampled_from([("float32", "float32"), ("float16", "float16"), ("float32", "float16")])
    )
    shape = data.draw(shapes(into if dtype(into).size < dtype(kind).size else kind, ("ND",)))
    rng = np.random.default_rng(data.draw(SEEDS))
    before, a = (values(rng, k, (shape.rows, shape.cols)) for k in (into, kind))
    by = values(rng, kind, (1, 1), special=False)
    operands = place(before, 0, into, shape), place(a, 1, kind, shape), scalar(by[0, 0], kind)
    # what is added to float32 is not rounded before, nor is anything on the 950
    for target, times in (("a2a3", product_of(into)), ("a5", np.multiply)):
        result = run_tile_op("TAXPY", *operands, target=target)
        with np.errstate(all="ignore"):
            wanted = times(a.astype(np.float32), by.astype(np.float32)) + before.astype(np.float32)
            check(result, shape, before, held(wanted.astype(before.dtype), target)[shape.part])


@pytest.mark.parametrize(
    ("op", "sign", "number"),
    [("TADDC", 1, False), ("TSUBC", -1, False), ("TADDSC", 1, True), ("TSUBSC", -1, True)],
)
def test_sums_of_three_are_two_steps(op, sign, number):
    shape = Shape(4, 64, (4, 60), "ND", 3)
    before, a, b, c = (np.random.default_rng(7).normal(size=(4, 4, 64)) * 4).astype(np.float32)
    if number:
        b[:] = 3
    other = scalar(3.0) if number else place(b, 2, "float32", shape)
    result = run_tile_op(
        op,
        place(before, 0, "float32", shape),
        place(a, 1, "float32", shape),
        other,
        place(c, 3, "float32", shape),
    )
    check(result, shape, before, ((a + sign * b) + c)[shape.part])


@pytest.mark.parametrize(("op", "sign"), [("TADDRELUCONV", 1), ("TSUBRELUCONV", -1)])
@settings(max_examples=or_half(25))
@given(data=st.data())
def test_sums_are_rectified_and_narrowed(op, sign, data):
    source, to = data.draw(st.sampled_from([("float32", "float16"), ("float16", "int8"), ("int16", "int8")]))
    shape = data.draw(shapes(to, ("ND",)))
    rng = np.random.default_rng(data.draw(SEEDS))
    a, b = (values(rng, source, (shape.rows, shape.cols), special=False) for _ in range(2))
    before = np.zeros(a.shape, dtype(to).numpy)
    result = run_tile_op(
        op, place(before, 0, to, shape), place(a, 1, source, shape), place(b, 2, source, shape)
    )
    wide = np.float32 if "float" in source else np.int64
    wanted = np.maximum(a.astype(wide) + sign * b.astype(wide), 0)
    if to == "int8":
        wanted = np.clip(np.rint(wanted), -128, 127)
    with np.errstate(over="ignore"):
        check(result, shape, before, wanted.astype(before.dtype)[shape.part])


@settings(max_examples=or_half(25))
@given(st.data())
def test_sums_of_integers_are_scaled_and_rectified(data):
    shape = data.draw(shapes("float16", ("ND",)))
    rng = np.random.default_rng(data.draw(SEEDS))
    a, b = rng.integers(-50000, 50000, (2, shape.rows, shape.cols)).astype(np.int32)
    before = np.zeros(a.shape, np.float16)
    scale = np.float32(0.0123)
    operands = [place(before, 0, "float16", shape), place(a, 1, "int32", shape), place(b, 2, "int32", shape)]
    result = run_tile_op("TADDDEQRELU", *operands, scalar(scale), place(a * 0, 3, "int32", shape))
    wanted = (a + b).astype(np.float32) * np.float32(1 / 131072) * scale * np.float32(131072)
    check(result, shape, before, np.maximum(wanted, 0).astype(np.float16)[shape.part])
