"""TCVT against an oracle of its own: neighbours in a table of every value that a format has."""

import math
from dataclasses import replace
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.dtypes import DType
from insight_trace.outcome import Fault
from insight_trace.simulate.embedded.op_script import TileSpec
from tests.conftest import or_half
from tests.simulate.elementwise_cases import Shape, check, held, place, shapes, values, vector_instructions
from tests.simulate.op_harness import Option, dtype, failure_of, run_tile_op, tile

MODES = {"NONE": 0, "RINT": 1, "ROUND": 2, "FLOOR": 3, "CEIL": 4, "TRUNC": 5, "ODD": 6}
SATURATE, WRAP = Option(0), Option(1)

# what the 910B converts, and what the A5 adds
PAIRS = [
    *[("float32", to) for to in ("float16", "float32", "bfloat16", "int16", "int32", "int64")],
    *[("float16", to) for to in ("float32", "int32", "int16", "int8", "uint8")],
    *[("bfloat16", to) for to in ("float32", "int32")],
    *[("int16", to) for to in ("float16", "float32")],
    *[("int32", to) for to in ("float32", "int16", "int64", "float16")],
    *[("int64", to) for to in ("float32", "int32")],
    ("uint8", "float16"),
    ("int8", "float16"),
]
A5_PAIRS = [
    ("bfloat16", "float16"),
    *[("int16", to) for to in ("int32", "uint8", "uint32")],
    *[("int32", to) for to in ("uint16", "uint8")],
    ("uint8", "uint16"),
    *[("int8", to) for to in ("int16", "int32")],
    *[("uint32", to) for to in ("uint8", "uint16", "int16")],
    ("float32", "float8_e4m3fn"),
    ("float8_e4m3fn", "float32"),
]
NARROWING = {
    ("float16", "uint8"), ("float16", "int8"), ("float16", "int16"),
    ("float32", "int16"), ("int64", "int32"), ("int32", "int16"),
}  # fmt: skip


def usual(source: str, to: str, mode: str) -> str:
    if mode == "NONE" or (mode == "ODD" and (source, to) != ("float32", "float16")):
        return "RINT" if "float" in to else "TRUNC"
    return mode


def chosen(value: Fraction, low: Fraction, high: Fraction, low_is_odd: bool, mode: str) -> bool:
    """Whether `value`, between its neighbours `low` and `high`, becomes `high`."""
    middle = (low + high) / 2
    if mode == "RINT":
        return value > middle or (value == middle and low_is_odd)
    if mode == "ROUND":  # ties away from zero
        return value > middle or (value == middle and value > 0)
    if mode == "FLOOR":
        return False
    if mode == "CEIL":
        return True
    if mode == "TRUNC":
        return value < 0
    return not low_is_odd


def rounded(value: float | int, mode: str) -> int:
    exact = Fraction(value)
    low = math.floor(exact)
    if exact == low:
        return low
    return low + 1 if chosen(exact, Fraction(low), Fraction(low + 1), low % 2 == 1, mode) else low


def to_integer(value: float | int, to: np.dtype, mode: str, saturate: bool) -> int:
    info = np.iinfo(to)
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        if math.isinf(value):
            far = 2**63 - 1 if value > 0 else -(2**63)
            return int(np.clip(far, info.min, info.max)) if saturate else wrapped(far, to)
        value = rounded(value, mode)
    if saturate:
        return min(max(value, int(info.min)), int(info.max))
    return wrapped(min(max(value, -(2**63)), 2**63 - 1), to)


def wrapped(value: int, to: np.dtype) -> int:
    bits = 8 * to.itemsize
    value %= 2**bits
    return value - 2**bits if to.kind == "i" and value >> (bits - 1) else value


def table(to: np.dtype) -> np.ndarray:
    """Finite values of a narrow format, from the least to the largest; codes go up with magnitude."""
    with np.errstate(invalid="ignore"):
        codes = np.arange(2 ** (8 * to.itemsize), dtype=f"u{to.itemsize}").view(to).astype(np.float64)
    return np.unique(codes[np.isfinite(codes)])


TABLES = {
    name: table(np.dtype(kind))
    for name, kind in [
        ("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16), ("float8_e4m3fn", ml_dtypes.float8_e4m3fn),
    ]
}  # fmt: skip


def to_float(value: float | int, name: str, mode: str) -> float:
    if isinstance(value, float) and not math.isfinite(value):
        return value
    exact = Fraction(value)
    if name == "float32":
        near = np.float32(float(value)) if isinstance(value, float) else np.float32(value)
        if Fraction(float(near)) == exact:
            return float(near)
        low = near if Fraction(float(near)) < exact else np.nextafter(near, np.float32(-np.inf))
        high = np.nextafter(low, np.float32(np.inf))
        odd = bool(int(low.view(np.uint32)) & 1)
        return float(high if chosen(exact, Fraction(float(low)), Fraction(float(high)), odd, mode) else low)
    known = TABLES[name]
    at = int(np.searchsorted(known, float(value), "right")) - 1
    if at < 0 or at == len(known) - 1:  # beyond the largest, or at it
        return beyond(exact, known, at < 0, mode)
    low, high = known[at], known[at + 1]
    if Fraction(low) == exact:
        return float(low)
    # zero is in the middle of the table and even; parity alternates from there
    odd = (at - int(np.searchsorted(known, 0.0))) % 2 == 1
    return float(high if chosen(exact, Fraction(low), Fraction(high), odd, mode) else low)


def beyond(exact: Fraction, known: np.ndarray, negative: bool, mode: str) -> float:
    largest = known[0] if negative else known[-1]
    if Fraction(largest) == exact:
        return float(largest)
    step = abs(Fraction(known[-1]) - Fraction(known[-2]))
    outside = Fraction(largest) + (-step if negative else step)
    if abs(exact) < abs(outside):  # between the largest and what would come next
        low, high = sorted((Fraction(largest), outside))
        up = chosen(exact, low, high, not negative, mode)
        outward = up != negative
    else:
        outward = mode in ("RINT", "ROUND", "FLOOR" if negative else "CEIL")
    return (-math.inf if negative else math.inf) if outward else float(largest)


def expected(
    source: np.ndarray, from_name: str, to_name: str, mode: str, saturate: bool, target: str = "a2a3"
) -> np.ndarray:
    to = dtype(to_name).numpy
    mode = usual(from_name, to_name, mode)
    plain = [
        v.item() if from_name in ("float32", "float16") else (float(v) if "float" in from_name else int(v))
        for v in source.ravel()
    ]
    if (from_name, to_name) == ("float32", "float32"):
        found = [v if not math.isfinite(v) else float(rounded(v, mode)) for v in plain]
    elif "float" in to_name:
        found = [to_float(v, to_name, mode) for v in plain]
        if to_name.startswith("float8"):  # no infinity: the largest
            found = [math.copysign(448.0, v) if math.isinf(v) else v for v in found]
    else:
        return np.array([to_integer(v, to, mode, saturate) for v in plain], to).reshape(source.shape)
    with np.errstate(over="ignore"):
        return held(np.array(found, np.float64).astype(to).reshape(source.shape), target)


def interesting(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Values around halves, and around the limits of integers."""
    found = values(rng, kind, shape)
    if "float" not in kind:
        return found
    halves = rng.integers(-40, 40, shape) / 2
    edges = np.array(
        [127.5, 128.0, 255.5, -128.5, 32767.5, 40000.0, -40000.0, 3e9, -3e9, 65519.0, 65520.0, 1e30]
    )
    pick = rng.random(shape)
    with np.errstate(over="ignore"):
        found = np.where(
            pick < 0.4, halves, np.where(pick < 0.6, rng.choice(edges, shape), found.astype(np.float64))
        )
        return found.astype(dtype(kind).numpy)


@pytest.mark.parametrize(("source", "to"), PAIRS + A5_PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS + A5_PAIRS])
@settings(max_examples=or_half(12))
@given(data=st.data())
def test_every_pair_converts_in_every_mode(source, to, data):
    scaled = (source, to) == ("int32", "float16")  # dequantised on a2a3, which has one rounding
    mode = "RINT" if scaled else data.draw(st.sampled_from(list(MODES)))
    asked = data.draw(st.sampled_from([SATURATE, WRAP, None]))
    wide = source if dtype(source).size <= dtype(to).size else to  # whole blocks of both
    shape = data.draw(shapes(wide, ("ND",)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    before = np.zeros((shape.rows, shape.cols), dtype(to).numpy)
    a = interesting(rng, source, before.shape)
    saturate = asked is SATURATE or (source, to) not in NARROWING
    options = [Option(MODES[mode]), *([asked] if asked else [])]
    target = None if (source, to) in PAIRS else "a5"
    result = run_tile_op(
        "TCVT", place(before, 0, to, shape), place(a, 1, source, shape), *options, target=target
    )
    check(result, shape, before, expected(a[shape.part], source, to, mode, saturate, target or "a2a3"))


@pytest.mark.parametrize(("source", "to"), [("float32", "int8"), ("uint8", "int32"), ("bfloat16", "float16")])
def test_a_pair_that_the_vector_unit_of_a2a3_lacks_is_refused_by_name(source, to):
    shape = Shape(1, 64, (1, 64), "ND", 0)
    tiles = [
        place(np.zeros((1, 64), dtype(kind).numpy), i, kind, shape) for i, kind in enumerate((to, source))
    ]
    failure = failure_of("TCVT", *tiles, Option(1), target="a2a3")
    assert failure.fault is Fault.NOT_SUPPORTED
    assert "the vector unit has none" in failure.message


@pytest.mark.parametrize(("source", "to"), sorted(NARROWING))
@settings(max_examples=or_half(15))
@given(data=st.data())
def test_with_a_scratch_tile_floats_wrap_from_32_bits(source, to, data):
    shape = data.draw(shapes(to, ("ND",)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    before = np.zeros((shape.rows, shape.cols), dtype(to).numpy)
    a = interesting(rng, source, before.shape)
    scratch = tile(np.zeros((1, 64), np.int32), 0x20000)
    result = run_tile_op(
        "TCVT", place(before, 0, to, shape), place(a, 1, source, shape), scratch, Option(MODES["TRUNC"]), WRAP
    )
    part = a[shape.part]
    if "float" in source:
        clipped = np.nan_to_num(np.trunc(part.astype(np.float64)), nan=0.0, posinf=2**31 - 1, neginf=-(2**31))
        part = np.clip(clipped, -(2**31), 2**31 - 1).astype(np.int64)
    check(result, shape, before, part.astype(dtype(to).numpy))


@given(st.integers(0, 2**32 - 1))
def test_every_bfloat16_and_half_survives_the_way_to_float_and_back(seed):
    codes = np.random.default_rng(seed).integers(0, 2**16, (4, 64), np.uint16)
    for kind in (np.float16, ml_dtypes.bfloat16):
        narrow = codes.view(kind)
        name = np.dtype(kind).name
        there = run_tile_op("TCVT", tile(np.zeros((4, 64), np.float32)), tile(narrow, 0x4000), Option(1))
        back = run_tile_op(
            "TCVT", tile(np.zeros_like(narrow), 0x4000), tile(there.matrix(0)), Option(1)
        ).matrix(0)
        # infinities and NaN are held on the way back on a2a3, and the 950 keeps them
        assert (back.view(np.uint16) == held(narrow).view(np.uint16)).all(), name


INT4 = DType("INT4", 18, 1, "uint8", "i4", "int4b_t", False)


@settings(max_examples=or_half(20))
@given(st.integers(1, 20), st.integers(1, 256), st.integers(0, 2**32 - 1))
def test_four_bit_integers_lie_two_in_a_byte(rows, cols, seed):
    rng = np.random.default_rng(seed)
    a = interesting(rng, "float16", (20, 256))
    packed = TileSpec(
        INT4, 20, 256, 0x8000, valid_rows=rows, valid_cols=cols, data=np.zeros(20 * 256, np.uint8)
    )
    there = run_tile_op("TCVT", packed, tile(a, valid=(rows, cols)), Option(MODES["RINT"]))
    bytes_ = there.matrix(0)
    nibbles = np.stack([bytes_ & 15, bytes_ >> 4], axis=2).reshape(20, 512)[:rows, :cols].astype(np.int8)
    wanted = np.clip(np.nan_to_num(np.rint(a[:rows, :cols].astype(np.float32)), nan=0.0), -8, 7)
    np.testing.assert_array_equal(np.where(nibbles < 8, nibbles, nibbles - 16), wanted)
    back = run_tile_op(
        "TCVT", tile(np.zeros_like(a), valid=(rows, cols)), replace(packed, data=bytes_.ravel()), Option(0)
    )
    np.testing.assert_array_equal(back.matrix(0)[:rows, :cols].astype(np.float32), wanted)


def test_the_trace_names_the_byte_that_a_tail_of_four_bit_integers_changes():
    packed = TileSpec(INT4, 1, 192, 0x8000, data=np.zeros(192, np.uint8))
    result = run_tile_op("TCVT", packed, tile(np.ones((1, 192), np.float16)), Option(1), target="a2a3")
    changed = np.flatnonzero(result.matrix(0).ravel())
    assert (changed.min(), changed.max()) == (0, 95)
    columns = result.simulation.instructions
    details = [
        detail
        for name, detail in zip(columns.name, columns.detail, strict=True)
        if columns.names[name] == "VCONV"
    ]
    assert any("0x8040" in detail for detail in details), details  # 128 elements lie before it


def expansion(source, to, rows, cols, *options, valid=None):
    shape = Shape(rows, cols, valid or (rows, cols), "ND", 0)
    tiles = [place(np.zeros((rows, cols)), i, kind, shape) for i, kind in enumerate((to, source))]
    result = run_tile_op("TCVT", *tiles, *options)
    return [step for step in vector_instructions(result) if step[0] != "MOV_XD_SPR"]


def test_full_repeats_go_row_by_row_and_the_tail_in_one():
    assert expansion("float32", "bfloat16", 4, 160, Option(1), SATURATE) == [("VCONV", 2)] * 4 + [
        ("VCONV", 4)
    ]
    assert expansion("float32", "bfloat16", 4, 32, Option(1), SATURATE) == [("VCONV", 4)]
    assert expansion("float16", "int8", 2, 128, Option(1), SATURATE) == [("VCONV", 1)] * 2
    assert expansion("int32", "float16", 1, 64, Option(1)) == [("BAR", 0), ("VCONV", 1)]


def test_the_control_register_is_written_around_a_conversion_and_left_as_it_was():
    result = run_tile_op(
        "TCVT",
        tile(np.zeros((1, 64), np.int16)),
        tile(np.zeros((1, 64), np.float32), 0x4000),
        Option(1),
        WRAP,
    )
    assert result.instructions == [
        "MOV_XD_SPR",
        "MOV_XD_SPR",
        "MOV_SPR_XN",
        "VCONV",
        "MOV_XD_SPR",
        "MOV_SPR_XN",
    ]
    written = [
        d
        for n, d in zip(result.instructions, result.simulation.instructions.detail, strict=False)
        if n == "MOV_SPR_XN"
    ]
    assert written == ["value:0x800000000000000,", ""]  # a zero is not spelled out


def test_wrapping_half_to_bytes_over_scratch_takes_six_steps_for_64_elements():
    scratch = tile(np.zeros((1, 64), np.int32), 0x20000)
    found = expansion("float16", "int8", 1, 128, scratch, Option(5), WRAP)
    step = ["VCONV", "BAR", "VCONV", "BAR", "MOVEV", "BAR", "VAND", "BAR", "VCONV", "BAR", "VCONV", "BAR"]
    assert [name for name, _ in found] == step * 2


def test_packed_types_and_unknown_modes_are_refused():
    packed = failure_of(
        "TCVT",
        tile(np.zeros((1, 64)), dtype_name="float4_e2m1fn"),
        tile(np.zeros((1, 64), np.float32), 0x4000),
        Option(1),
    )
    assert packed.fault is Fault.NOT_SUPPORTED
    wrong = failure_of(
        "TCVT", tile(np.zeros((1, 64), np.int32)), tile(np.zeros((1, 64), np.float32), 0x4000), Option(9)
    )
    assert wrong.fault is Fault.KERNEL
