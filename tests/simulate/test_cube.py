"""The cube core against NumPy: tiles brought into place, cut out, put in, multiplied."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.outcome import Fault
from insight_trace.simulate.embedded.op_script import TileSpec
from tests.conftest import or_half
from tests.simulate.op_harness import TARGETS, Option, dtype, failure_of, run_tile_op, scalar, tile

SEEDS = st.integers(0, 2**32 - 1)
OPERANDS = ["float32", "float16", "bfloat16", "int8"]
LEFT = {"a2a3": "ZZ", "a5": "NZ"}
RIGHT, ACC = "ZN", "NZ"
ON_BOTH = pytest.mark.parametrize("target", TARGETS)
INDEX = "uint16"


def numbers(seed: int, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(dtype(kind).numpy)


def box(kind: str) -> int:
    """A size that is whole boxes in every layout of this type."""
    return max(16, 32 // dtype(kind).size)


def accumulator(matrix: np.ndarray, kind: str, valid: tuple[int, int], address: int = 0) -> TileSpec:
    return tile(matrix, address, dtype_name=kind, layout=ACC, fractal=1024, space="l0c", valid=valid)


@ON_BOTH
@pytest.mark.parametrize("space", ["l0a", "l0b"])
@pytest.mark.parametrize("source_layout", ["NZ", "ZN"])
@pytest.mark.parametrize("kind", OPERANDS)
@settings(max_examples=or_half(10))
@given(data=st.data(), seed=SEEDS)
def test_a_part_of_an_l1_tile_is_cut_out_whatever_its_layout(kind, source_layout, space, target, data, seed):
    unit, layout = box(kind), LEFT[target] if space == "l0a" else RIGHT
    down, across = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    rows, cols = data.draw(st.integers(1, down)), data.draw(st.integers(1, across))
    row, col = data.draw(st.integers(0, down - rows)) * unit, data.draw(st.integers(0, across - cols)) * unit
    matrix = numbers(seed, kind, (down * unit, across * unit))
    source = tile(matrix, dtype_name=kind, layout=source_layout, space="l1")
    into = tile(np.zeros((rows * unit, cols * unit)), dtype_name=kind, layout=layout, space=space)
    found = run_tile_op("TEXTRACT", into, source, scalar(row, INDEX), scalar(col, INDEX), target=target)
    part = matrix[row : row + rows * unit, col : col + cols * unit]
    np.testing.assert_array_equal(found.matrix(0), part)
    if target == "a5":  # one instruction, turned or not
        assert found.instructions == [f"LOAD_L1_TO_{space.upper()}_2D"]
    else:
        assert set(found.instructions) <= {
            "MOV_SPR_XN", "LOAD_L1_TO_L0A_3Dv2", "LOAD_L1_TO_L0B_3Dv2", "LOAD_L1_TO_L0B_2D",
            "LOAD_L1_TO_L0A_2D_TRANSPOSE", "LOAD_L1_TO_L0B_2D_TRANSPOSE",
        }  # fmt: skip
    if (rows, cols) == (down, across):
        moved = run_tile_op("TMOV", into, source, target=target)
        np.testing.assert_array_equal(moved.matrix(0), matrix)


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int32", "int16", "int8"])
@settings(max_examples=or_half(12))
@given(data=st.data(), seed=SEEDS)
def test_a_vector_tile_is_moved_within_its_valid_part(kind, data, seed):
    block = 32 // dtype(kind).size
    rows, cols = data.draw(st.integers(1, 20)), block * data.draw(st.integers(1, 8))
    valid = data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols))
    matrix, before = numbers(seed, kind, (rows, cols)), numbers(seed + 1, kind, (rows, cols))
    want = before.copy()
    want[: valid[0], : valid[1]] = matrix[: valid[0], : valid[1]]
    into = tile(before, 0x10000, dtype_name=kind, valid=valid)
    found = run_tile_op("TMOV", into, tile(matrix, dtype_name=kind, valid=valid), whole_blocks=True)
    np.testing.assert_array_equal(found.a5.matrix(0), want)
    whole = -(-valid[1] // block) * block
    want[: valid[0], :whole] = matrix[: valid[0], :whole]
    np.testing.assert_array_equal(found.matrix(0), want)


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@settings(max_examples=or_half(12))
@given(data=st.data(), seed=SEEDS)
def test_a_vector_tile_is_put_into_a_larger_one(kind, data, seed):
    block = 32 // dtype(kind).size
    rows, cols = data.draw(st.integers(1, 12)), block * data.draw(st.integers(1, 4))
    valid = data.draw(st.integers(1, rows)), data.draw(st.integers(1, cols))
    if kind == "int8" and valid[1] % 2 and valid != (1, 1):  # a2a3 copies what is left of a block in pairs
        valid = valid[0], valid[1] + 1
    row, col = data.draw(st.integers(0, 6)), block * data.draw(st.integers(0, 3))
    matrix = numbers(seed, kind, (rows, cols))
    before = numbers(seed + 1, kind, (rows + 6, cols + 3 * block))
    want = before.copy()
    want[row : row + valid[0], col : col + valid[1]] = matrix[: valid[0], : valid[1]]
    found = run_tile_op(
        "TINSERT",
        tile(before, 0x10000, dtype_name=kind),
        tile(matrix, dtype_name=kind, valid=valid),
        scalar(row, INDEX),
        scalar(col, INDEX),
    )
    np.testing.assert_array_equal(found.matrix(0), want)


@pytest.mark.parametrize(
    ("acc", "kind"), [("float32", "float16"), ("float32", "bfloat16"), ("int32", "int8")]
)
@pytest.mark.parametrize("op", ["TMOV", "TEXTRACT", "TINSERT"])
@settings(max_examples=or_half(10))
@given(data=st.data(), seed=SEEDS)
def test_an_accumulator_goes_back_to_l1_converted(op, acc, kind, data, seed):
    """TMOV and TINSERT take the accumulator, TEXTRACT what the result has room for, both in whole blocks."""
    rows, cols = 32 * data.draw(st.integers(1, 3)), 32 * data.draw(st.integers(1, 3))
    values = numbers(seed, acc, (rows, cols)) * 3
    before = numbers(seed + 1, kind, (rows, cols))
    want = before.copy()
    narrow = values if kind != "int8" else np.clip(np.rint(values * np.float32(0.5)), -128, 127)
    extra = (Option(0), scalar(1 << 46 | 0x3F000000, "uint64")) if kind == "int8" else ()  # signed, a half
    source = accumulator(values, acc, (rows, cols), 0)
    operands: tuple = ()
    if op == "TMOV":
        want[:] = narrow.astype(want.dtype)
        operands = extra
        valid = rows, cols
    elif op == "TEXTRACT":
        row, col = data.draw(st.sampled_from([0, 16])), data.draw(st.sampled_from([0, 16]))
        valid = data.draw(st.integers(1, rows - row)), data.draw(st.integers(1, cols - col))
        block = 32 // want.dtype.itemsize
        wide = min(-(-valid[1] // block) * block, cols - col)  # whole blocks
        part = narrow[row : row + valid[0], col : col + wide]
        want[: valid[0], :wide] = part.astype(want.dtype)
        operands = (scalar(row, INDEX), scalar(col, INDEX), *extra)
    else:
        source = accumulator(values, acc, (rows - 16, cols - 16), 0)
        row, col = data.draw(st.sampled_from([0, 16])), data.draw(st.sampled_from([0, 16]))
        block = 32 // want.dtype.itemsize
        wide = min(-(-(cols - 16) // block) * block, cols - col)
        # every row of the accumulator's boxes, as far as there is room
        want[row:, col : col + wide] = narrow[: rows - row, :wide].astype(want.dtype)
        operands = (scalar(row, INDEX), scalar(col, INDEX), *extra)
        valid = rows, cols
    into = tile(before, dtype_name=kind, layout="NZ", space="l1", valid=valid)
    found = run_tile_op(op, into, source, *operands)
    np.testing.assert_array_equal(found.matrix(0), want)
    assert found.instructions[-1] == "FIX_L0C_TO_L1"


def multiplied(left: np.ndarray, right: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Products of whole numbers: exact in every order."""
    wide = np.int64 if left.dtype == np.int8 else np.float64
    return (left.astype(wide) @ right.astype(wide) + start).astype(start.dtype)


@ON_BOTH
@pytest.mark.parametrize("op", ["TMATMUL", "TMATMUL_ACC", "TMATMUL_BIAS"])
@pytest.mark.parametrize("kind", OPERANDS)
@settings(max_examples=or_half(15))
@given(data=st.data(), seed=SEEDS)
def test_a_product_of_exact_numbers_is_exact(op, kind, target, data, seed):
    unit = box(kind)
    m, k, n = (unit * data.draw(st.integers(1, 3)) for _ in range(3))
    vm, vk, vn = (data.draw(st.integers(1, size)) for size in (m, k, n))
    acc = "int32" if kind == "int8" else "float32"
    left, right = numbers(seed, kind, (m, k)), numbers(seed + 1, kind, (k, n))
    before = numbers(seed + 2, acc, (m, n))
    a = tile(left, dtype_name=kind, layout=LEFT[target], space="l0a", valid=(vm, vk))
    b = tile(right, dtype_name=kind, layout=RIGHT, space="l0b", valid=(vk, vn))
    c = accumulator(before, acc, (vm, vn))
    start = np.zeros((vm, vn), before.dtype)
    operands = [c, a, b]
    if op == "TMATMUL_ACC":
        start = before[:vm, :vn]
        added = data.draw(st.sampled_from(["its own", "named", "another"]))
        if added == "named":
            operands.insert(1, c)
        elif added == "another":
            other = numbers(seed + 4, acc, (m, n))
            operands.insert(1, accumulator(other, acc, (vm, vn), address=m * n * 4))
            start = other[:vm, :vn]
    elif op == "TMATMUL_BIAS":
        bias = numbers(seed + 3, acc, (1, n))
        start = np.broadcast_to(bias[:, :vn], (vm, vn))
        operands.append(tile(bias, dtype_name=acc, space="bias"))
    want = before.copy()
    want[:vm, :vn] = multiplied(left[:vm, :vk], right[:vk, :vn], start)
    found = run_tile_op(op, *operands, target=target)
    np.testing.assert_array_equal(found.matrix(0), want)
    assert found.instructions == ["MMAD"]


@ON_BOTH
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@settings(max_examples=or_half(20))
@given(seed=SEEDS)
def test_a_product_of_any_numbers_is_right_to_float_precision(kind, target, seed):
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(32, 64)).astype(dtype(kind).numpy)
    right = rng.normal(size=(64, 48)).astype(dtype(kind).numpy)
    found = run_tile_op(
        "TMATMUL",
        accumulator(np.zeros((32, 48), np.float32), "float32", (32, 48)),
        tile(left, dtype_name=kind, layout=LEFT[target], space="l0a"),
        tile(right, dtype_name=kind, layout=RIGHT, space="l0b"),
        target=target,
    )
    want = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(found.matrix(0), want, rtol=1e-5, atol=1e-5)


@ON_BOTH
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@settings(max_examples=or_half(15))
@given(data=st.data(), seed=SEEDS)
def test_a_product_is_added_up_along_k_one_rounding_at_a_time(kind, target, data, seed):
    """Bit for bit, whatever the machine computes side by side: k is never split."""
    rng = np.random.default_rng(seed)
    m, k, n = (data.draw(st.integers(1, most)) for most in (32, 64, 48))
    left = rng.normal(size=(32, 64)).astype(dtype(kind).numpy)
    right = rng.normal(size=(64, 48)).astype(dtype(kind).numpy)
    before = rng.normal(size=(32, 48)).astype(np.float32)
    found = run_tile_op(
        "TMATMUL_ACC",
        accumulator(before, "float32", (m, n)),
        tile(left, dtype_name=kind, layout=LEFT[target], space="l0a", valid=(m, k)),
        tile(right, dtype_name=kind, layout=RIGHT, space="l0b", valid=(k, n)),
        target=target,
    )
    wide = np.float64 if kind == "float32" else np.float32
    total = np.zeros((m, n), np.float32)
    for p in range(k):
        product = left[:m, p, None].astype(wide) * right[None, p, :n].astype(wide)
        total = (total.astype(wide) + product).astype(np.float32)
    np.testing.assert_array_equal(found.matrix(0)[:m, :n], before[:m, :n] + total)


@ON_BOTH
def test_infinities_and_nan_go_through_a_product(target):
    left = np.ones((16, 16), ml_dtypes.bfloat16)
    left[0, 0], left[1, 0] = np.inf, np.nan
    found = run_tile_op(
        "TMATMUL",
        accumulator(np.zeros((16, 16), np.float32), "float32", (16, 16)),
        tile(left, layout=LEFT[target], space="l0a"),
        tile(np.ones((16, 16), ml_dtypes.bfloat16), layout=RIGHT, space="l0b"),
        target=target,
    ).matrix(0)
    assert np.isposinf(found[0]).all()
    assert np.isnan(found[1]).all()
    assert (found[2:] == 16).all()


@ON_BOTH
def test_what_the_cube_cannot_do_is_named(target):
    def failed(name, *operands):
        failure = failure_of(name, *operands, target=target)
        return failure.fault, failure.message

    a = tile(np.ones((16, 16), np.float16), layout=LEFT[target], space="l0a")
    b = tile(np.ones((32, 16), np.float16), layout=RIGHT, space="l0b")
    c = accumulator(np.zeros((16, 16), np.float32), "float32", (16, 16))
    integers = accumulator(np.zeros((16, 16), np.int32), "int32", (16, 16))
    wide = tile(np.ones((16, 64), np.float16), layout=LEFT[target], space="l0a")
    assert failed("TMATMUL", integers, a, b) == (Fault.NOT_SUPPORTED, "TMATMUL of F16 by F16 tiles into I32")
    assert failed("TMATMUL", c, b, a)[0] is Fault.KERNEL
    fault, message = failed("TMATMUL", c, wide, b)
    assert fault is Fault.KERNEL
    assert "does not fit" in message
    l1 = tile(np.ones((16, 16), np.float16), layout="NZ", space="l1")
    fault, message = failed("TEXTRACT", a, l1, scalar(16, INDEX), scalar(0, INDEX))
    assert (fault, message) == (Fault.KERNEL, "TEXTRACT from row 16, column 0 of a 16 x 16 tile")
    fault, message = failed("TMOV", a, tile(np.ones((16, 16), np.float32), layout="NZ", space="l1"))
    assert (fault, message) == (Fault.KERNEL, "TMOV between tiles of different element sizes")
    ub = tile(np.ones((16, 16), np.float16))
    fault, message = failed("TINSERT", ub, ub, scalar(8, INDEX), scalar(0, INDEX))
    assert fault is Fault.KERNEL
    assert "goes past the 16 x 16 tile" in message


@ON_BOTH
def test_a_left_tile_of_the_other_family_is_the_kernels_fault(target):
    other = LEFT["a5" if target == "a2a3" else "a2a3"]
    a = tile(np.ones((16, 16), np.float16), layout=other, space="l0a")
    b = tile(np.ones((16, 16), np.float16), layout=RIGHT, space="l0b")
    c = accumulator(np.zeros((16, 16), np.float32), "float32", (16, 16))
    failure = failure_of("TMATMUL", c, a, b, target=target)
    assert failure.fault is Fault.KERNEL
    assert f"takes a Left tile in {LEFT[target]}" in failure.message
    wrong = failure_of("TMATMUL", c, tile(np.ones((16, 16), np.float16), layout=LEFT[target], space="l0a"),
                       tile(np.ones((16, 16), np.float16), layout="NZ", space="l0b"), target=target)  # fmt: skip
    assert "takes a Right tile in ZN" in wrong.message


@pytest.mark.parametrize("kind", ["float32", "int32"])
@pytest.mark.parametrize(("space", "instruction"), [("bias", "MOV_L1_TO_BT"), ("scaling", "MOV_L1_TO_FB")])
@settings(max_examples=or_half(8))
@given(blocks=st.integers(1, 4), seed=SEEDS)
def test_a_row_of_l1_goes_to_the_tables_beside_the_cube(kind, space, instruction, blocks, seed):
    row = numbers(seed, kind, (1, 16 * blocks))
    into = tile(np.zeros_like(row), dtype_name=kind, space=space)
    found = run_tile_op("TMOV", into, tile(row, dtype_name=kind, space="l1"))
    np.testing.assert_array_equal(found.matrix(0), row)
    assert found.instructions == [instruction]
