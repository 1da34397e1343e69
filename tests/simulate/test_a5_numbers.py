"""What the 950 computes in another way than a2a3, or alone: against NumPy."""

import ml_dtypes
import numpy as np
import pytest

from insight_trace.outcome import Fault
from tests.simulate.op_harness import Option, failure_of, run_tile_op, scalar, tile

RNG = np.random.default_rng(11)


def _on(op, *operands):
    return run_tile_op(op, *operands, target="a5")


def test_a_slope_for_every_element_leaves_its_source_alone():
    x, slope = RNG.normal(size=(2, 8, 64)).astype(np.float32)
    source = tile(x, 0x0)
    found = _on("TPRELU", tile(np.zeros_like(x), 0x2000), source, tile(slope, 0x4000), tile(x, 0x0))
    np.testing.assert_array_equal(found.matrix(0), np.where(x > 0, x, x * slope))
    np.testing.assert_array_equal(found.matrix(1), x)


@pytest.mark.parametrize("kind", ["float32", "float16", "int32", "int16", "uint16"])
@pytest.mark.parametrize(("op", "function"), [("TREM", np.remainder), ("TFMOD", np.fmod)])
def test_remainders_are_exact_where_that_is_asked_for(op, function, kind):
    if kind.startswith("float"):
        a = (RNG.normal(size=(4, 64)) * 1000).astype(kind)
        b = (RNG.uniform(0.5, 9, (4, 64)) * RNG.choice([-1, 1], (4, 64))).astype(kind)
    else:
        a = RNG.integers(0, 1000, (4, 64)).astype(kind) - np.array(300 * (kind[0] != "u"), kind)
        b = RNG.integers(1, 40, (4, 64)).astype(kind)
    operands = [tile(np.zeros_like(a), 0x4000), tile(a), tile(b, 0x2000)]
    operands += [tile(np.zeros_like(a), 0x6000)] if op == "TREM" else []
    found = _on(op, *operands, Option(1))
    np.testing.assert_array_equal(found.matrix(0), function(a, b))


def test_an_inverse_root_is_one_over_the_rounded_root():
    x = RNG.uniform(0.01, 100, (4, 64)).astype(np.float32)
    found = _on("TRSQRT", tile(np.zeros_like(x), 0x2000), tile(x))
    np.testing.assert_array_equal(found.matrix(0), np.float32(1) / np.sqrt(x))


@pytest.mark.parametrize("kind", ["int16", "uint16", "int32", "int8", "float32"])
@pytest.mark.parametrize(
    ("mode", "function"), [(1, np.not_equal), (2, np.less), (3, np.less_equal), (4, np.greater)]
)
def test_numbers_are_compared_as_they_are_and_the_rest_of_a_mask_is_zero(mode, function, kind):
    a = RNG.integers(-5, 6, (4, 96)).astype(kind)
    valid = 4, 70
    mask = tile(np.full((4, 32), 0xFF, np.uint8), 0x4000)
    found = _on("TCMPS", mask, tile(a, valid=valid), scalar(1, kind), Option(mode))
    bits = np.unpackbits(found.matrix(0), axis=1, bitorder="little")
    np.testing.assert_array_equal(bits[:, :70], function(a[:, :70], a.dtype.type(1)))
    assert not bits[:, 70:128].any()


@pytest.mark.parametrize(
    ("op", "function"), [("TXORS", np.bitwise_xor), ("TANDS", np.bitwise_and), ("TORS", np.bitwise_or)]
)
def test_bits_are_changed_in_place(op, function):
    a = RNG.integers(0, 1000, (4, 64)).astype(np.int32)
    found = _on(op, tile(a), tile(a), scalar(0x155, "int32"), tile(a))
    np.testing.assert_array_equal(found.matrix(0), function(a, np.int32(0x155)))


def test_inverses_are_computed_in_place():
    x = RNG.uniform(0.5, 100, (4, 64)).astype(np.float32)
    np.testing.assert_array_equal(_on("TRECIP", tile(x), tile(x)).matrix(0), np.float32(1) / x)


@pytest.mark.parametrize("kind", ["int8", "int64"])
def test_bytes_and_words_are_chosen_by_a_mask(kind):
    a, b = RNG.integers(-100, 100, (2, 4, 64)).astype(kind)
    bits = RNG.integers(0, 2, (4, 256))
    mask = tile(np.packbits(bits, axis=1, bitorder="little"), 0x6000)
    tmp = tile(np.zeros((1, 32), np.uint8), 0x7000)
    found = _on("TSEL", tile(np.zeros_like(a), 0x4000), mask, tile(a), tile(b, 0x2000), tmp)
    np.testing.assert_array_equal(found.matrix(0), np.where(bits[:, :64], a, b))


@pytest.mark.parametrize("rounds_up", [False, True])
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
def test_groups_of_32_share_a_power_of_two(kind, rounds_up):
    values = (RNG.normal(size=(4, 64)) * np.exp2(RNG.integers(-6, 7, (4, 1)))).astype(np.float32)
    dtype = ml_dtypes.bfloat16 if kind == "bfloat16" else np.dtype(kind)
    values = values.astype(dtype)
    found = _on(
        "TQUANT",
        tile(np.zeros((4, 64), np.int8), 0x4000),
        tile(values, dtype_name=kind),
        tile(np.zeros((1, 32), np.uint8), 0x6000),
        Option(0),
        tile(np.zeros((1, 16), dtype), 0x7000, dtype_name=kind),
        tile(np.zeros((1, 16), dtype), 0x8000, dtype_name=kind),
        Option(int(rounds_up)),
    )
    groups = values.astype(np.float64).reshape(8, 32)
    largest = np.abs(groups).max(axis=1)
    power = np.ceil(np.log2(largest / 448)) if rounds_up else np.floor(np.log2(largest)) - 8
    np.testing.assert_array_equal(found.matrix(2)[0, :8], (power + 127).astype(np.uint8))
    scaled = np.clip(groups / np.exp2(power)[:, None], -448, 448).astype(np.float32)
    want = scaled.astype(ml_dtypes.float8_e4m3fn).view(np.int8).reshape(4, 64)
    np.testing.assert_array_equal(found.matrix(0), want)


def test_rows_are_quantised_without_scratch():
    x = (RNG.normal(size=(4, 64)) * 90).astype(np.float32)
    scale, offset = np.full((8, 1), 0.5, np.float32), np.full((8, 1), 100, np.float32)
    scale[1] = 2
    operands = [
        tile(np.zeros((4, 64), np.uint8), 0x4000),
        tile(x),
        tile(scale, 0x6000, layout="DN"),
        Option(3),
    ]
    found = _on("TQUANT", *operands, tile(scale, 0x6000, layout="DN"), tile(offset, 0x7000, layout="DN"))
    want = np.clip(np.rint(x * scale[:4] + offset[:4]), 0, 255)
    np.testing.assert_array_equal(found.matrix(0), want.astype(np.uint8))
    np.testing.assert_array_equal(found.matrix(1), x)


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_numbers_of_64_bits_spread_and_scatter(kind):
    x = RNG.integers(0, 2**62, (4, 16)).astype(kind)
    spread = _on("TCOLEXPAND", tile(np.zeros_like(x), 0x2000), tile(x[:1], valid=(1, 16)))
    np.testing.assert_array_equal(spread.matrix(0), np.broadcast_to(x[0], x.shape))
    spread = _on("TROWEXPAND", tile(np.zeros_like(x), 0x2000), tile(x))
    np.testing.assert_array_equal(spread.matrix(0), np.broadcast_to(x[:, :1], x.shape))
    places = RNG.permutation(64).astype(np.uint32).reshape(4, 16)
    moved = _on("TSCATTER", tile(np.ones_like(x), 0x2000), tile(x), tile(places, 0x4000))
    want = np.zeros(64, kind)
    want[places.ravel()] = x.ravel()
    np.testing.assert_array_equal(moved.matrix(0).ravel(), want)


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_powers_of_16_bit_floats_round_once(kind):
    base, exponent = RNG.uniform(0.1, 5, (4, 64)).astype(kind), RNG.uniform(0, 3, (4, 64)).astype(kind)
    operands = (tile(np.zeros((4, 64), kind), 0x2000), tile(base), tile(exponent, 0x4000))
    found = _on("TPOW", *operands, tile(np.zeros((4, 64), kind), 0x6000)).matrix(0)
    want = base.astype(np.float64) ** exponent.astype(np.float64)
    np.testing.assert_array_equal(found, want.astype(np.float32).astype(kind))


def test_scales_of_groups_go_into_boxes():
    rows, groups = 20, 4
    exponents = RNG.integers(0, 255, (rows, groups)).astype(np.uint8)
    packed = np.zeros((1, 128), np.uint8)
    packed[0, : rows * groups] = exponents.ravel()
    boxes = tile(np.zeros((32, groups), np.uint8), 0x2000, layout="ZZ", fractal=32, valid=(rows, groups))
    found = _on("TMOV", boxes, tile(packed), tile(np.zeros((1, 128), np.uint8), 0x4000))
    np.testing.assert_array_equal(found.matrix(0)[:rows], exponents)
    assert not found.matrix(0)[rows:].any()


def test_scales_with_gaps_between_their_rows_do_not_go_into_boxes():
    boxes = tile(np.zeros((32, 4), np.uint8), 0x2000, layout="ZZ", fractal=32)
    scratch = tile(np.zeros((1, 128), np.uint8), 0x4000)
    failure = failure_of("TMOV", boxes, tile(np.zeros((32, 32), np.uint8)), scratch, target="a5")
    assert failure.fault is Fault.KERNEL
    assert (
        "reads 4 scales a row without gaps, but the rows of its 32 x 32 source lie 32 apart"
        in failure.message
    )


@pytest.mark.parametrize("byte", [1, 0])
def test_a_histogram_counts_bytes_below_the_ones_that_are_wanted(byte):
    numbers = RNG.integers(0, 0x400, (2, 100)).astype(np.uint16)
    wanted = np.zeros((32, 1), np.uint8)
    wanted[:2, 0] = [1, 2]
    operands = (
        tile(np.zeros((2, 256), np.uint32), 0x4000),
        tile(np.pad(numbers, ((0, 0), (0, 12))), valid=(2, 100)),
        tile(wanted, 0x6000, layout="DN"),
        Option(byte),
    )
    found = _on("THISTOGRAM", *operands).matrix(0)
    for row in range(2):
        above, below = numbers[row] >> 8, numbers[row] & 0xFF
        counted = above if byte else below[above == wanted[row, 0]]
        np.testing.assert_array_equal(found[row], np.cumsum(np.bincount(counted, minlength=256)))
    assert failure_of("THISTOGRAM", *operands, target="a2a3").fault is Fault.NOT_SUPPORTED


def _philox(counter: int, key: tuple[int, int]) -> list[int]:
    words = [counter >> 32 * i & 0xFFFFFFFF for i in range(4)]
    for i in range(10):
        first, second = ((key[j] + i * add) & 0xFFFFFFFF for j, add in enumerate((0x9E3779B9, 0xBB67AE85)))
        a, b = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [b >> 32 ^ words[1] ^ first, b & 0xFFFFFFFF, a >> 32 ^ words[3] ^ second, a & 0xFFFFFFFF]
    return words


def test_random_numbers_are_those_of_philox():
    words = [scalar(word, "uint32") for word in (7, 9, 0xFFFFFFFE, 1, 2, 3)]
    found = _on("TRANDOM", tile(np.zeros((1, 64), np.uint32)), Option(10), *words).matrix(0)
    counter = 3 << 96 | 2 << 64 | 1 << 32 | 0xFFFFFFFE
    want = [word for i in range(16) for word in _philox(counter + i, (7, 9))]
    np.testing.assert_array_equal(found[0], np.array(want, np.uint32))


@pytest.mark.parametrize(("op", "function"), [("TSHLS", np.left_shift), ("TSHRS", np.right_shift)])
def test_of_the_count_of_a_64_bit_shift_six_bits_matter(op, function):
    x = RNG.integers(-(2**62), 2**62, (4, 16))
    found = run_tile_op(op, tile(np.zeros_like(x), 0x2000), tile(x), scalar(67, "int64"))
    np.testing.assert_array_equal(found.matrix(0), function(x, 3))
