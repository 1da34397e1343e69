"""Kernels of the checkout that push tiles between cores: right with one and two vector lanes, in any order of host threads.

A lane that does not run leaves its rows as they were; the rows of lane 0 are right either way.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from insight_trace.model import CoreType
from insight_trace.outcome import Simulation
from tests.simulate.dispatching import kernel, mix, outputs, run

SEEDS = range(1, 51)  # for each number of lanes
_DEEPSEEK = "examples/a2a3/tensormap_and_ringbuffer/deepseek_v4_flash_decode/kernels"

Run = Callable[
    [Path, int, int], tuple[Simulation, int, NDArray[Any], int]
]  # …, slot, expected, rows of lane 0


def _uniform(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _bgemm(checkout: Path, lanes: int, perturb: int) -> tuple[Simulation, int, NDArray[Any], int]:
    source = checkout / "examples/a5/tensormap_and_ringbuffer/bgemm/kernels/mix/kernel_bgemm.cpp"
    a, b, c = _uniform(1, 64, 64), _uniform(2, 64, 64), _uniform(3, 64, 64)
    simulation = run(mix(source, lanes), [a, b, c], [2], target="a5", perturb=perturb)
    return simulation, 2, c + a @ b, 32


def _attention(chip: str) -> Run:
    heads, width, page, pages, batch = 16, 128, 128, 3, 2
    lengths = np.array([300, 129], np.int32)

    def run_it(checkout: Path, lanes: int, perturb: int) -> tuple[Simulation, int, NDArray[Any], int]:
        folder = f"tests/st/{chip}/tensormap_and_ringbuffer/spmd_paged_attention/kernels/mix"
        source = checkout / folder / "paged_attention_parallel.cpp"
        q, k, v = (
            _uniform(seed, rows, width).astype(ml_dtypes.bfloat16)
            for seed, rows in ((4, batch * heads), (5, batch * pages * page), (6, batch * pages * page))
        )
        table = np.arange(batch * pages, dtype=np.int32)[::-1].reshape(batch, pages).copy()
        rings = [np.zeros(2 * batch * 64 * 128 * size // 4, np.int32) for size in (4, 2, 4)]
        scale = width**-0.5
        out = np.zeros((batch * heads, width), np.float32)
        bits = int(np.float32(scale).view(np.uint32))
        scalars = [bits, heads, width, page, pages, 1, batch, heads]
        slots = [q, k, v, table, lengths, out, *rings, *scalars]
        simulation = run(mix(source, lanes), slots, [5], batch, target=chip, perturb=perturb)
        wide = [array.astype(np.float64) for array in (q, k, v)]
        for i in range(batch):
            rows = np.concatenate([np.arange(page) + t * page for t in table[i]])[: lengths[i]]
            scores = wide[0][i * heads : (i + 1) * heads] @ wide[1][rows].T * scale
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[i * heads : (i + 1) * heads] = weights @ wide[2][rows] / weights.sum(axis=1, keepdims=True)
        return simulation, 5, out[:heads], heads // 2

    return run_it


def _gate(name: str) -> Run:
    def run_it(checkout: Path, lanes: int, perturb: int) -> tuple[Simulation, int, NDArray[Any], int]:
        folder = checkout / _DEEPSEEK
        cube = kernel(folder / f"aic/{name}_aic.cpp", CoreType.AIC)
        vector = kernel(folder / f"aiv/{name}_aiv.cpp", CoreType.AIV)
        x, w = _uniform(7, 16, 4096), _uniform(8, 64, 4096) / 16
        inverse = np.abs(_uniform(9, 1, 16)) + 0.5
        out, ring = np.zeros((16, 256), np.float32), np.zeros(4 * 2048, np.float32)
        slots = [np.zeros((1, 256), np.float32), x, w, inverse, out, ring]
        simulation = run([cube, *[vector] * lanes], slots, [4], 4, perturb=perturb)
        logits = (x.astype(np.float64) @ w.astype(np.float64).T) * inverse.T
        softplus = np.maximum(logits, 0) + np.log1p(np.exp(-np.abs(logits)))
        far_below = np.clip(-logits - 10, 0, 1) * np.exp(np.minimum(logits, 0))
        expected = np.zeros((16, 256))
        expected[:, :64] = np.sqrt(np.maximum(softplus, far_below))
        return simulation, 4, expected, 16

    return run_it


CASES: dict[str, Run] = {
    "bgemm of a5": _bgemm,
    "paged attention of a2a3": _attention("a2a3"),
    "paged attention of a5": _attention("a5"),
    "gate of DeepSeek": _gate("gate"),
    "gate_0 of DeepSeek": _gate("gate_0"),
}


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_a_mix_of_the_checkout_is_right_under_any_scheduling(
    simpler_checkout: Path, name: str, lanes: int
) -> None:
    simulation, slot, expected, rows = CASES[name](simpler_checkout, lanes, 0)
    rows = rows if lanes == 1 else len(expected)
    calm = outputs(simulation)[slot][: len(expected)]
    np.testing.assert_allclose(calm[:rows], expected[:rows], rtol=2e-2, atol=2e-2)
    for seed in SEEDS:
        perturbed, *_ = CASES[name](simpler_checkout, lanes, seed)
        np.testing.assert_array_equal(outputs(perturbed)[slot][: len(expected)], calm)
