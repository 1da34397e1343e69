"""The kernels of examples/kernels against NumPy."""

import numpy as np
import pytest

from insight_trace import simulate
from tests.conftest import ROOT

KERNELS = ROOT / "examples" / "kernels"


def run(name: str, values: dict, **options):
    """On both families, which must compute the same; the run on a2a3 comes back."""
    there, result = (simulate(KERNELS / name, values, target=target, **options) for target in ("a5", "a2a3"))
    for one in (there, result):
        assert one.failure is None, str(one.failure)
        assert one.findings == ()
    for slot, found in result.outputs.items():
        np.testing.assert_array_equal(there.outputs[slot], found)
    return result


@pytest.mark.parametrize("shape", [(1,), (4096,), (4097,), (3, 5000), (2, 3, 1000)])
def test_vector_add(shape):
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(2, *shape)).astype(np.float32)
    result = run("vector_add.cpp", {0: left, 1: right, 2: np.zeros(shape, np.float32)})
    np.testing.assert_array_equal(result.outputs[2], left + right)


@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (64, 256, 128), (128, 192, 64)])
def test_tiled_matmul(m, k, n):
    rng = np.random.default_rng(2)
    left = rng.integers(-8, 8, (m, k)).astype(np.float16)
    right = rng.integers(-8, 8, (k, n)).astype(np.float16)
    result = run("tiled_matmul.cpp", {0: left, 1: right, 2: np.zeros((m, n), np.float32)})
    np.testing.assert_array_equal(result.outputs[2], left.astype(np.float32) @ right.astype(np.float32))
    names = [result.instructions.names[i] for i in result.instructions.name]
    assert names.count("MMAD") == (m // 64) * (n // 64) * (k // 64)


@pytest.mark.parametrize("shape", [(16, 128), (5, 128), (40, 72), (1, 8)])
def test_softmax(shape):
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32) * 4
    result = run("softmax.cpp", {0: x, 1: np.zeros(shape, np.float32)})
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    want = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.outputs[1], want, rtol=1e-5, atol=1e-7)


def test_loads_run_ahead_of_additions():
    """Two rooms: the second load starts before the first addition has ended."""
    size = 4 * 4096
    values = {0: np.ones(size, np.float32), 1: np.ones(size, np.float32), 2: np.zeros(size, np.float32)}
    columns = run("vector_add.cpp", values).instructions
    names = np.array([columns.names[i] for i in columns.name])
    loads, adds = columns.start[names == "MOV_OUT_TO_UB_ALIGN"], columns.end[names == "VADD"]
    assert loads[2] < adds[0]
