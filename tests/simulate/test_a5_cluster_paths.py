"""On the 950 a cube core writes its vector cores' memory, and they write its own: every path against NumPy."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulate.dispatching import mix, outputs, run

N = 32


def _factors() -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    random = np.random.default_rng(5)
    return random.integers(-4, 5, (N, N)).astype(np.float16), random.integers(-4, 5, (N, N)).astype(
        np.float16
    )


def _words(scales: NDArray[np.float32]) -> NDArray[np.int32]:
    """One 64-bit word per column, as pairs of 32 bits."""
    words = scales.astype(np.float32).view(np.uint32).astype(np.uint64)
    return words.view(np.int32)


def _run(path: int, dtype: type = np.float32, perturb: int = 0) -> NDArray[np.float32]:
    a, b = _factors()
    scales = _words(np.linspace(0.25, 4, N).astype(np.float32))
    out = np.zeros((2, N, N), dtype)
    simulation = run(
        mix("cluster_paths.cpp", 2), [a, b, out, path, scales], [2], target="a5", perturb=perturb
    )
    return outputs(simulation)[2]


def _product() -> NDArray[np.float32]:
    a, b = _factors()
    return a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize("lane", [0, 1])
def test_an_accumulator_goes_to_the_vector_core_that_is_named(lane: int) -> None:
    out = _run(lane)
    np.testing.assert_array_equal(out[lane], _product())
    assert not out[1 - lane].any()


def test_rows_of_an_accumulator_are_split_between_the_vector_cores() -> None:
    out = _run(2)
    half = N // 2
    np.testing.assert_array_equal(out[0].ravel()[: half * N].reshape(half, N), _product()[:half])
    np.testing.assert_array_equal(out[1].ravel()[: half * N].reshape(half, N), _product()[half:])


def test_columns_of_an_accumulator_are_split_between_the_vector_cores() -> None:
    out = _run(3)
    half = N // 2
    np.testing.assert_array_equal(out[0].ravel()[: half * N].reshape(N, half), _product()[:, :half])
    np.testing.assert_array_equal(out[1].ravel()[: half * N].reshape(N, half), _product()[:, half:])


def test_a_part_of_an_accumulator_is_cut_out_for_a_vector_core() -> None:
    out, half = _run(6), N // 2
    np.testing.assert_array_equal(out[1].ravel()[: half * half].reshape(half, half), _product()[half:, half:])
    assert not out[0].any()


def test_an_accumulator_is_put_into_a_larger_tile_of_a_vector_core() -> None:
    out = _run(7)
    np.testing.assert_array_equal(out[0], _product())
    assert not out[1].any()


def test_every_column_is_scaled_by_ten_bits_of_its_own_factor() -> None:
    factors = np.linspace(0.25, 4, N).astype(np.float32)
    factors = (factors.view(np.uint32) & 0xFFFFE000).view(np.float32)
    out = _run(4, np.float16)
    np.testing.assert_array_equal(out[0], (np.maximum(_product(), 0) * factors).astype(np.float16))


@pytest.mark.parametrize("perturb", [0, 3])
def test_a_vector_tile_goes_through_the_cube_cores_memory_to_both_lanes(perturb: int) -> None:
    out = _run(5, np.float16, perturb)
    boxes = _factors()[0].reshape(N, N // 16, 16).transpose(1, 0, 2).reshape(N, N)
    np.testing.assert_array_equal(out[0], boxes)
    np.testing.assert_array_equal(out[1], boxes)
