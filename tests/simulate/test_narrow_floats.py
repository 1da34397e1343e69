"""HiFloat8, 8-bit and 4-bit floats of the 950: conversions, products, and products with scales."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.model import CoreType
from insight_trace.outcome import Fault
from tests.conftest import or_half
from tests.simulate.dispatching import kernel, outputs, run
from tests.simulate.narrow_formats import (
    E1M2,
    E2M1,
    E4M3,
    E5M2,
    E8M0,
    HIF8,
    VALUES,
    codes_of,
    narrow_tile,
    nearest,
    unpacked,
)
from tests.simulate.op_harness import Option, failure_of, glob, run_tile_op, tile

SEEDS = st.integers(0, 2**32 - 1)
ROUND = {"even": 1, "away": 2, "floor": 3, "ceil": 4, "trunc": 5}
ALL_CODES = np.arange(256, dtype=np.uint8).reshape(4, 64)
EIGHTS = [(a, b) for a in (E4M3, E5M2) for b in (E4M3, E5M2)] + [(HIF8, HIF8)]
PAIRS = [(a, b) for kinds in ((E4M3, E5M2), (E2M1, E1M2)) for a in kinds for b in kinds]


def short(pair):
    return " by ".join(kind.short for kind in pair)


def test_the_table_of_hifloat8_is_the_published_one():
    """Spot values of the paper: largest, smallest, one, and how many exponents have how many mantissa bits."""
    values = VALUES[HIF8]
    assert values[0b00001000] == 1.0
    assert values[0x6E] == 2.0**15
    assert np.isposinf(values[0x6F])
    assert np.isneginf(values[0xEF])
    assert values[0x00] == 0
    assert np.isnan(values[0x80])
    positive = values[1:128][np.isfinite(values[1:128])]
    assert positive.min() == 2.0**-22
    assert len(np.unique(positive)) == 7 + 7 * 8 + 8 * 4 + 16 * 2 - 1  # all different; one code is infinity
    exponents = np.floor(np.log2(positive))
    counts = {int(e): int((exponents == e).sum()) for e in np.unique(exponents)}
    assert [counts[e] for e in (0, 3, -3, 4, -7, 8, -15, 15, -16, -22)] == [8, 8, 8, 4, 4, 2, 2, 1, 1, 1]


def test_every_code_of_hifloat8_becomes_its_float():
    source, into = narrow_tile(ALL_CODES, HIF8, 0x4000), tile(np.zeros((4, 64), np.float32))
    found = run_tile_op("TCVT", into, source, Option(1), target="a5")
    np.testing.assert_array_equal(found.matrix(0), VALUES[HIF8][ALL_CODES].astype(np.float32))


@pytest.mark.parametrize("source", ["float32", "float16"])
@settings(max_examples=or_half(25))
@given(seed=SEEDS)
def test_floats_become_the_nearest_hifloat8_and_halves_go_outward(source, seed):
    rng = np.random.default_rng(seed)
    # numbers of every size, and halfway points between neighbours
    values = rng.normal(size=(4, 64)) * 2.0 ** rng.integers(-24, 14, (4, 64))
    finite = np.unique(VALUES[HIF8][np.isfinite(VALUES[HIF8])])
    values[0] = rng.choice((finite[1:] + finite[:-1]) / 2, 64)
    matrix = values.astype(source)
    found = run_tile_op(
        "TCVT", narrow_tile(np.zeros((4, 64), np.uint8), HIF8, 0x4000), tile(matrix), Option(1), target="a5"
    ).matrix(0)
    for value, code in zip(matrix.astype(np.float64).ravel(), found.ravel(), strict=True):
        assert int(code) in nearest(float(value), HIF8, "away"), (value, code)


def test_what_is_too_large_for_hifloat8_becomes_infinity():
    row = np.array([[2.0**15, 1.24 * 2**15, 1.25 * 2**15, 1e30, -1e30, np.inf, np.nan, -0.0] * 8], np.float32)
    found = run_tile_op(
        "TCVT", narrow_tile(np.zeros((1, 64), np.uint8), HIF8, 0x4000), tile(row), Option(1), target="a5"
    ).matrix(0)
    assert found[0, :8].tolist() == [0x6E, 0x6E, 0x6F, 0x6F, 0xEF, 0x6F, 0x80, 0x00]


@pytest.mark.parametrize("kind", [E2M1, E1M2], ids=lambda kind: kind.short)
def test_every_code_of_four_bits_becomes_its_bfloat16(kind):
    codes = np.tile(np.arange(16, dtype=np.uint8), (3, 4))
    into = tile(np.zeros((3, 64)), dtype_name="bfloat16")
    found = run_tile_op("TCVT", into, narrow_tile(codes, kind, 0x4000), Option(1), target="a5").matrix(0)
    np.testing.assert_array_equal(found.astype(np.float64), VALUES[kind][codes])


@pytest.mark.parametrize("mode", ROUND)
@pytest.mark.parametrize("kind", [E2M1, E1M2], ids=lambda kind: kind.short)
@settings(max_examples=or_half(15))
@given(seed=SEEDS)
def test_bfloat16_is_rounded_to_four_bits_as_asked(kind, mode, seed):
    rng = np.random.default_rng(seed)
    matrix = (rng.integers(-64, 64, (3, 64)) / 8 + rng.choice([0, 0.01], (3, 64))).astype(ml_dtypes.bfloat16)
    into = narrow_tile(np.zeros((3, 64), np.uint8), kind, 0x4000)
    run_ = run_tile_op("TCVT", into, tile(matrix), Option(ROUND[mode]), target="a5").run
    codes = unpacked(run_.contents[0], matrix.size)
    for value, code in zip(matrix.astype(np.float64).ravel(), codes, strict=True):
        assert int(code) in nearest(float(value), kind, mode), (value, code)
    if kind is E2M1 and mode == "even":
        want = matrix.astype(ml_dtypes.float4_e2m1fn).astype(np.float32).ravel()
        np.testing.assert_array_equal(VALUES[kind][codes], want)


@pytest.mark.parametrize("kind", [E2M1, E1M2], ids=lambda kind: kind.short)
@pytest.mark.parametrize("cols", [1, 31, 64, 65, 127])
def test_of_an_odd_number_of_four_bit_floats_whole_bytes_are_made_and_the_row_is_cleared(kind, cols):
    rng = np.random.default_rng(cols)
    values, codes = exact(rng, kind, (3, 128))
    into = narrow_tile(np.full((3, 128), 15, np.uint8), kind, 0x4000, valid=(2, cols))
    given = tile(values.astype(ml_dtypes.bfloat16), valid=(2, cols))
    run_ = run_tile_op("TCVT", into, given, Option(ROUND["even"]), target="a5").run
    found = unpacked(run_.contents[0], 3 * 128).reshape(3, 128)
    whole = cols // 2 * 2
    np.testing.assert_array_equal(VALUES[kind][found[:2, :whole]], values[:2, :whole])
    assert not found[:2, whole:].any()
    assert (found[2] == 15).all()  # no row behind the valid ones

    back = tile(np.full((3, 128), -7), 0x4000, dtype_name="bfloat16", valid=(2, cols))
    found = run_tile_op(
        "TCVT", back, narrow_tile(codes, kind, valid=(2, cols)), Option(1), target="a5"
    ).matrix(0)
    np.testing.assert_array_equal(found[:2, :cols].astype(np.float64), values[:2, :cols])
    assert (found[:2, cols:] == -7).all()


@pytest.mark.parametrize("kind", [E2M1, E1M2], ids=lambda kind: kind.short)
def test_rows_of_an_odd_number_of_four_bit_floats_come_and_go_in_whole_bytes(kind):
    rng = np.random.default_rng(4)
    bytes_ = rng.integers(0, 256, (3, 32)).astype(np.uint8)
    view = glob(bytes_, (3, 47), (64, 1), dtype_name="uint8")
    there = replace(view, dtype=kind)
    empty = narrow_tile(np.zeros((3, 128), np.uint8), kind, valid=(3, 47))
    content = run_tile_op("TLOAD", empty, there, target="a5").run.contents[0]
    loaded = content.view(np.uint8)[:192].reshape(3, 64)
    np.testing.assert_array_equal(loaded[:, :24], bytes_[:, :24])
    assert not loaded[:, 24:].any()
    full = narrow_tile(rng.integers(0, 16, (3, 128)).astype(np.uint8), kind, valid=(3, 47))
    stored = (
        run_tile_op("TSTORE", there, full, Option(0), target="a5").buffer(0).view(np.uint8).reshape(3, 32)
    )
    np.testing.assert_array_equal(stored[:, :24], full.data.reshape(3, 64)[:, :24])
    np.testing.assert_array_equal(stored[:, 24:], bytes_[:, 24:])


def exact(rng: np.random.Generator, kind, shape) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the format whose products are exact in floats, and their codes."""
    table = VALUES[kind]
    small = np.unique(table[np.isfinite(table) & (np.abs(table) <= 4) & (table * 4 == np.rint(table * 4))])
    values = rng.choice(small, shape)
    return values, codes_of(values, kind)


def cube_tiles(pair, a, b, valid):
    m, k, n = valid
    left = narrow_tile(a, pair[0], layout="NZ", space="l0a", valid=(m, k))
    right = narrow_tile(b, pair[1], layout="ZN", space="l0b", valid=(k, n))
    return left, right


def accumulator(matrix, valid):
    return tile(matrix, layout="NZ", fractal=1024, space="l0c", valid=valid)


@pytest.mark.parametrize("pair", EIGHTS, ids=short)
@settings(max_examples=or_half(12))
@given(data=st.data(), seed=SEEDS)
def test_products_of_eight_bits_match_numpy(pair, data, seed):
    rng = np.random.default_rng(seed)
    m, k, n = (data.draw(st.integers(1, size)) for size in (32, 64, 32))
    a, a_codes = exact(rng, pair[0], (32, 64))
    b, b_codes = exact(rng, pair[1], (64, 32))
    before = rng.integers(-9, 9, (32, 32)).astype(np.float32)
    left, right = cube_tiles(pair, a_codes, b_codes, (m, k, n))
    want = before.copy()
    want[:m, :n] += (a[:m, :k] @ b[:k, :n]).astype(np.float32)
    acc = accumulator(before, (m, n))
    found = run_tile_op("TMATMUL_ACC", acc, left, right, target="a5")
    np.testing.assert_array_equal(found.matrix(0), want)
    failure = failure_of("TMATMUL", acc, left, right, target="a2a3")
    assert failure.fault is Fault.NOT_SUPPORTED
    assert failure.message.startswith("TMATMUL of ")


def scales(rng: np.random.Generator, shape, transposed: bool):
    """Powers of two, and the tile that holds them in boxes of 16 by 2, or 2 by 16."""
    codes = rng.integers(124, 131, shape).astype(np.uint8)
    where = ("NN", "scale_right") if transposed else ("ZZ", "scale_left")
    spec = narrow_tile(codes, E8M0, layout=where[0], space=where[1], fractal=32)
    return 2.0 ** (codes.astype(np.float64) - 127), spec


@pytest.mark.parametrize("added", ["nothing", "accumulator", "bias"])
@pytest.mark.parametrize("pair", PAIRS, ids=short)
@settings(max_examples=or_half(6))
@given(data=st.data(), seed=SEEDS)
def test_products_with_scales_match_numpy(pair, added, data, seed):
    rng = np.random.default_rng(seed)
    m, n = data.draw(st.integers(1, 32)), data.draw(st.integers(1, 64))
    k = data.draw(st.sampled_from([64, 128]))
    a, a_codes = exact(rng, pair[0], (32, 128))
    b, b_codes = exact(rng, pair[1], (128, 64))
    a_factors, a_scales = scales(rng, (32, 4), False)
    b_factors, b_scales = scales(rng, (4, 64), True)
    left, right = cube_tiles(pair, a_codes, b_codes, (m, k, n))
    before = rng.integers(-9, 9, (32, 64)).astype(np.float32)
    acc = accumulator(before, (m, n))
    bias = rng.integers(-9, 9, (1, 64)).astype(np.float32)
    operands = {
        "nothing": (acc, left, a_scales, right, b_scales),
        "accumulator": (acc, acc, left, a_scales, right, b_scales),
        "bias": (acc, left, a_scales, right, b_scales, tile(bias, space="bias")),
    }[added]
    start = {"nothing": np.zeros((m, n)), "accumulator": before[:m, :n], "bias": bias[:, :n]}[added]
    wide_a, wide_b = a * np.repeat(a_factors, 32, axis=1), b * np.repeat(b_factors, 32, axis=0)
    want = before.copy()
    want[:m, :n] = (wide_a[:m, :k] @ wide_b[:k, :n] + start).astype(np.float32)
    found = run_tile_op("TMATMUL_MX", *operands, target="a5")
    np.testing.assert_array_equal(found.matrix(0), want)
    assert found.instructions == ["MMAD"]


def one_product(a_scale: int, b_scale: int, kind=E4M3):
    codes = np.full((16, 64), 0x38, np.uint8)  # 1.0 in e4m3
    a_codes, b_codes = np.full((16, 2), a_scale, np.uint8), np.full((2, 16), b_scale, np.uint8)
    return (
        accumulator(np.zeros((16, 16), np.float32), (16, 16)),
        narrow_tile(codes, kind, layout="NZ", space="l0a"),
        narrow_tile(a_codes, E8M0, layout="ZZ", space="scale_left", fractal=32),
        narrow_tile(codes.T, kind, layout="ZN", space="l0b"),
        narrow_tile(b_codes, E8M0, layout="NN", space="scale_right", fractal=32),
    )


def test_scales_that_are_far_apart_meet_in_the_product():
    found = run_tile_op("TMATMUL_MX", *one_product(254, 1), target="a5").matrix(0)
    assert (found == 64 * 2.0).all()  # 2^127 x 2^-126
    assert np.isinf(run_tile_op("TMATMUL_MX", *one_product(254, 254), target="a5").matrix(0)).all()
    assert np.isnan(run_tile_op("TMATMUL_MX", *one_product(255, 127), target="a5").matrix(0)).all()


def test_what_the_chips_do_not_have_is_refused_by_name():
    operands = one_product(127, 127)
    failure = failure_of("TMATMUL_MX", *operands, target="a2a3")
    assert (failure.fault, "only a5" in failure.message) == (Fault.NOT_SUPPORTED, True)
    acc, left, left_scales, right, right_scales = operands
    nibbles = narrow_tile(np.zeros((64, 16), np.uint8), E2M1, layout="ZN", space="l0b")
    mixed = failure_of("TMATMUL_MX", acc, left, left_scales, nibbles, right_scales, target="a5")
    assert (mixed.fault, mixed.message) == (
        Fault.NOT_SUPPORTED,
        "TMATMUL_MX of F8E4M3 by F4E2M1 tiles into F32",
    )
    high = narrow_tile(np.zeros((16, 64), np.uint8), HIF8, layout="NZ", space="l0a")
    scaled = failure_of("TMATMUL_MX", acc, high, left_scales, right, right_scales, target="a5")
    assert scaled.message == "TMATMUL_MX of HIF8 by F8E4M3 tiles into F32"
    four = narrow_tile(np.zeros((16, 64), np.uint8), E2M1, layout="NZ", space="l0a")
    plain = failure_of("TMATMUL", acc, four, nibbles)  # on neither
    assert plain.message == "TMATMUL of F4E2M1 by F4E2M1 tiles into F32"
    source = narrow_tile(ALL_CODES, HIF8, 0x4000)
    to_half = failure_of("TCVT", tile(np.zeros((4, 64), np.float16)), source, Option(1), target="a5")
    assert to_half.message == "TCVT from HIF8 to F16 on this chip"
    there = failure_of("TCVT", tile(np.zeros((4, 64), np.float32)), source, Option(1), target="a2a3")
    assert (there.fault, there.message) == (Fault.NOT_SUPPORTED, "TCVT from HIF8 to F32 on this chip")


def test_twice_as_many_quarters_go_through_the_cube_in_a_cycle_and_other_numbers_of_four_bits_twice():
    def cycles(kind):
        codes = np.zeros((64, 256), np.uint8)
        a_codes, b_codes = np.full((64, 8), 127, np.uint8), np.full((8, 64), 127, np.uint8)
        run_ = run_tile_op(
            "TMATMUL_MX",
            accumulator(np.zeros((64, 64), np.float32), (64, 64)),
            narrow_tile(codes, kind, layout="NZ", space="l0a"),
            narrow_tile(a_codes, E8M0, layout="ZZ", space="scale_left", fractal=32),
            narrow_tile(codes.T, kind, layout="ZN", space="l0b"),
            narrow_tile(b_codes, E8M0, layout="NN", space="scale_right", fractal=32),
            target="a5",
        )
        columns = run_.simulation.instructions
        return int(columns.end[0] - columns.start[0])

    assert cycles(E4M3) - cycles(E1M2) == 4 * 4 * (256 // 32 - 256 // 64)
    assert cycles(E2M1) == cycles(E4M3)


def test_a_kernel_multiplies_hifloat8():
    rng = np.random.default_rng(5)
    a, a_codes = exact(rng, HIF8, (32, 64))
    b, b_codes = exact(rng, HIF8, (64, 32))
    cube = kernel("hifloat_product.cpp", CoreType.AIC)
    slots = [a_codes, b_codes, np.zeros((32, 32), np.float32)]
    found = outputs(run([cube], slots, [2], target="a5"))[2]
    np.testing.assert_array_equal(found, (a @ b).astype(np.float32))
    failure = run([cube], slots, [2], target="a2a3").failure
    assert failure
    assert (failure.fault, failure.message) == (
        Fault.NOT_SUPPORTED,
        "TMATMUL of HIF8 by HIF8 tiles into F32",
    )
