"""Tile ops of a2a3 whose instructions are those of the tile library, in its order."""

import numpy as np

from tests.simulate.op_harness import Option, Result, glob, run_tile_op, scalar, tile

DN = 1
UB = 192 << 10
COUNTED = ["MOV_SPR_XN", "MOV_SPR_XN"]  # a mode and a mask, before and after
BY_SCALAR = ["SET_FLAG", "WAIT_FLAG", "LD_XD_XN_IMM", "ST_XD_XN_IMM", "SET_FLAG", "WAIT_FLAG"]


def issued(result: Result) -> list[str]:
    return result.instructions


def extract(dst: object, src: object, row: int, col: int) -> Result:
    return run_tile_op("TEXTRACT", dst, src, scalar(row, "int32"), scalar(col, "int32"), target="a2a3")


def numbers(rows: int, cols: int, kind: str = "float32") -> np.ndarray:
    return np.arange(rows * cols).reshape(rows, cols).astype(kind)


def test_one_element_is_extracted_and_inserted_by_the_scalar_unit() -> None:
    one = tile(np.zeros((1, 8), np.float32), 0x4000, valid=(1, 1))
    found = extract(one, tile(numbers(4, 8)), 2, 3)
    assert issued(found) == BY_SCALAR
    assert found.matrix(0)[0, 0] == 19
    there = run_tile_op(
        "TINSERT", tile(numbers(4, 8)), one, scalar(1, "int32"), scalar(5, "int32"), target="a2a3"
    )
    assert issued(there) == BY_SCALAR
    assert there.matrix(0)[1, 5] == 0


def test_what_is_left_of_a_block_is_extracted_two_bytes_at_a_time() -> None:
    dst = tile(np.full((4, 16), -1, np.float32), 0x4000, valid=(3, 11))
    found = extract(dst, tile(numbers(8, 32)), 4, 8)
    assert issued(found) == ["MOV_UB_TO_UB", *COUNTED, "VCOPY", *COUNTED]
    np.testing.assert_array_equal(found.matrix(0)[:3, :11], numbers(8, 32)[4:7, 8:19])
    assert (found.matrix(0)[:, 11:] == -1).all()


def test_columns_of_boxes_are_extracted_as_one_burst_each() -> None:
    boxes = {"layout": "NZ", "dtype_name": "float16"}
    dst = tile(np.zeros((16, 32), np.float16), 0x4000, **boxes)
    found = extract(dst, tile(numbers(32, 64, "float16"), **boxes), 16, 32)
    assert issued(found) == ["MOV_UB_TO_UB"]
    np.testing.assert_array_equal(found.matrix(0), numbers(32, 64, "float16")[16:, 32:])


def test_rows_become_boxes_by_a_copy_for_each_column_of_them() -> None:
    dst = tile(np.zeros((16, 32), np.float16), 0x4000, layout="NZ", dtype_name="float16")
    found = extract(dst, tile(numbers(16, 64, "float16"), dtype_name="float16"), 0, 16)
    assert issued(found) == [*COUNTED, "VCOPY", "MOV_SPR_XN", "VCOPY", *COUNTED]
    np.testing.assert_array_equal(found.matrix(0), numbers(16, 64, "float16")[:, 16:48])


def test_rows_of_an_odd_number_of_bytes_become_boxes_as_halves() -> None:
    source = (numbers(16, 64, "int32") % 100 - 50).astype(np.int8)
    dst = tile(np.zeros((16, 32), np.int8), 0x4000, layout="NZ", dtype_name="int8", valid=(16, 7))
    found = extract(dst, tile(source, dtype_name="int8"), 0, 32)
    assert issued(found) == [*COUNTED, "VCONV", "BAR", "VCONV", "BAR", "MOV_SPR_XN"]
    np.testing.assert_array_equal(found.matrix(0)[:, :7], source[:, 32:39])


def test_a_column_that_is_column_major_is_stored_as_one_line() -> None:
    column = tile(numbers(16, 1), layout="DN", valid=(13, 1))
    stored = run_tile_op(
        "TSTORE", glob(np.zeros(16, np.float32), (13, 1), (1, 1)), column, Option(0), target="a2a3"
    )
    assert stored.simulation.instructions.name.size == 2  # and the end
    np.testing.assert_array_equal(stored.buffer(0), [*range(13), 0, 0, 0])


def test_values_and_their_indices_are_chosen_repeat_by_repeat_with_barriers() -> None:
    a, b = numbers(2, 64), numbers(2, 64)[::-1].copy()
    of_a, of_b = np.zeros((2, 64), np.int32), np.ones((2, 64), np.int32)
    zero = np.zeros((2, 64), np.float32)
    found = run_tile_op(
        "TPARTARGMAX",
        *(tile(x, 0x400 * i) for i, x in enumerate((zero, a, b))),
        *(tile(x, 0x1000 + 0x400 * i) for i, x in enumerate((of_a, of_a, of_b))),
        target="a2a3",
    )
    row = ["VCMP", "BAR", "VSEL", "VSEL", "BAR"]
    assert issued(found) == [*COUNTED, *row, *row, "MOV_SPR_XN"]
    np.testing.assert_array_equal(found.matrix(0), np.maximum(a, b))


def test_a_scratch_tile_that_says_more_than_its_memory_holds_is_no_fault_where_nobody_touches_it() -> None:
    source = np.zeros((4, 64), np.float32)
    source[:, 17] = 1
    scratch = tile(np.zeros((1, 8), np.float32), UB - 64, valid=(4, 64), dynamic=3)
    index = tile(np.zeros((4, 8), np.int32), 0x4000, valid=(4, 1))
    found = run_tile_op("TROWARGMAX", index, tile(source), scratch, target="a2a3")
    assert (found.matrix(0)[:, 0] == 17).all()
