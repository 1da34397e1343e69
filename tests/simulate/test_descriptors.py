"""Tiles and tensors that say more of themselves than their memory holds: the device's behaviour, or a clear fault."""

import numpy as np
import pytest

from insight_trace.outcome import Fault
from tests.simulate.op_harness import Option, failure_of, glob, run_tile_op, scalar, tile

UB, UB_950, L0A, L1 = 192 << 10, 256 << 10, 64 << 10, 512 << 10


def ones(rows: int, cols: int, kind: str = "float32") -> np.ndarray:
    return np.ones((rows, cols), kind)


def test_a_valid_part_past_the_end_of_the_memory_is_a_fault_where_it_is_touched() -> None:
    last = UB - 4 * 8 * 4
    t = tile(ones(4, 8), last, valid=(5, 8), dynamic=3)
    failure = failure_of("TADDS", t, t, scalar(1.0), target="a2a3")
    assert failure.fault is Fault.KERNEL
    assert "a tile of 4 x 8 cannot have 5 x 8 valid elements" in failure.message
    index = tile(np.zeros((4, 8), np.int32), 0x4000, valid=(4, 1))
    source = tile(ones(4, 64), UB - 3 * 256, valid=(4, 64))
    failure = failure_of("TROWARGMAX", index, source, tile(ones(1, 8)), target="a2a3")
    assert failure.fault is Fault.KERNEL
    assert str(UB) in failure.message


def test_a_quantised_tile_with_fewer_rows_than_its_source_is_a_fault_at_the_end_of_ub() -> None:
    scale = tile(ones(8, 1), 0x6000, layout="DN")
    dst = tile(np.zeros((4, 64), np.int8), UB_950 - 256)
    failure = failure_of("TQUANT", dst, tile(ones(8, 64)), scale, Option(2), target="a5")
    assert failure.fault is Fault.KERNEL
    assert str(UB_950) in failure.message


def test_a_tensor_wider_than_its_boxes_is_a_fault_at_the_end_of_l1_and_not_before() -> None:
    tensor = glob(np.ones(16 * 64, np.float16), (16, 64), (64, 1))
    mat = {"layout": "NZ", "space": "l1"}
    failure = failure_of("TLOAD", tile(ones(16, 16, "float16"), L1 - 512, **mat), tensor, target="a2a3")
    assert failure.fault is Fault.KERNEL
    assert f"past its {L1} bytes" in failure.message
    run_tile_op("TLOAD", tile(ones(16, 16, "float16"), 0, **mat), tensor, target="a2a3")


def test_an_atomic_store_of_more_rows_than_the_tile_is_a_fault_at_the_end_of_ub() -> None:
    tensor = glob(np.zeros(64, np.float32), (8, 8), (8, 1))
    failure = failure_of("TSTORE", tensor, tile(ones(4, 8), UB - 128), Option(1), target="a2a3")
    assert failure.fault is Fault.KERNEL
    assert f"past its {UB} bytes" in failure.message


def test_more_valid_rows_than_the_left_tile_are_a_fault_at_the_end_of_l0a() -> None:
    left = {"space": "l0a", "layout": "ZZ", "dynamic": 3}
    a = tile(ones(16, 16, "float16"), L0A - 512, valid=(32, 16), **left)
    b = tile(ones(16, 16, "float16"), space="l0b", layout="ZN")
    c = tile(ones(32, 16), space="l0c", layout="NZ", fractal=1024)
    failure = failure_of("TMATMUL", c, a, b, target="a2a3")
    assert failure.fault is Fault.KERNEL
    assert f"past the {L0A} bytes of L0A" in failure.message


@pytest.mark.parametrize("valid", [20, 33])
def test_a_source_wider_than_the_padded_tile_is_padded_where_the_librarys_addresses_lie(valid: int) -> None:
    src = tile(ones(2, 16), 0, valid=(2, valid), dynamic=3)
    dst = tile(ones(2, 16) * 7, 0x1000, pad=1)
    run = run_tile_op("TFILLPAD", dst, src, target="a2a3")
    wanted = ones(2, 16).ravel()
    wanted[valid : -(-valid // 8) * 8] = (
        0  # the rest of the block behind the first row's, as far as the tile goes
    )
    np.testing.assert_array_equal(run.matrix(0).ravel(), wanted)
