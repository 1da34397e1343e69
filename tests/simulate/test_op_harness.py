"""The harness itself: layouts go in and come out as matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.op_harness import element_offsets, run_tile_op, tile


@pytest.mark.parametrize("layout", ["ND", "DN", "NZ", "ZN", "ZZ", "NN"])
@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_every_layout_is_a_permutation_of_the_tile(layout, kind):
    spec = tile(np.zeros((64, 64), kind), layout=layout)
    assert sorted(element_offsets(spec).ravel()) == list(range(64 * 64))


@given(st.integers(0, 2**32 - 1))
def test_an_op_runs_on_what_it_is_given(seed):
    a = np.random.default_rng(seed).normal(size=(16, 64)).astype(np.float32)
    result = run_tile_op("TADD", tile(np.zeros_like(a), 0x8000), tile(a, 0), tile(a, 0x4000))
    np.testing.assert_array_equal(result.matrix(0), a + a)
    assert result.instructions == ["VADD"]
