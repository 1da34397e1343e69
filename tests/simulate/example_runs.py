"""Kernels of the examples and of our own tests with arguments that they accept; each is run once per process."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from insight_trace.model import CoreType, Kernel
from insight_trace.outcome import Simulation
from insight_trace.simulate import simulate

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Example:
    sources: tuple[tuple[str, CoreType], ...]
    arguments: Callable[[], dict[int, Any]]
    blocks: int = 1


def _floats(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def _small(*shape: int) -> Any:
    return _floats(*shape).astype(ml_dtypes.bfloat16)


def _matrices(count: int) -> dict[int, Any]:
    return {slot: _floats(64, 64) for slot in range(count)}


def _update(first: bool, last: bool) -> dict[int, Any]:
    columns = {slot: abs(_floats(16, 1)) for slot in (0, 1, 3, 4)}
    return {
        **columns,
        2: _floats(16, 128),
        5: _floats(16, 128),
        6: _floats(16, 128),
        7: int(first),
        8: int(last),
    }


def _gemm() -> dict[int, Any]:
    left, right = _floats(256, 128).astype(np.float16), _floats(128, 512).astype(np.float16)
    return {0: left, 1: right, 2: np.zeros((256, 512), np.float32), 3: 256, 4: 512, 5: 128}


_AIC, _AIV = CoreType.AIC, CoreType.AIV
_CHAIN, _MIX, _PAGED = (
    "examples/vector_chain/kernels",
    "examples/mixed_example/kernels",
    "examples/paged_attention/kernels",
)

EXAMPLES = {
    "chain add": Example(((f"{_CHAIN}/add.cpp", _AIV),), lambda: _matrices(3)),
    "chain multiply": Example(((f"{_CHAIN}/multiply.cpp", _AIV),), lambda: _matrices(3)),
    "chain add scalar": Example(
        ((f"{_CHAIN}/add_scalar.cpp", _AIV),), lambda: {**_matrices(2), 2: 1.5, 3: 64}
    ),
    "mix": Example(
        ((f"{_MIX}/matmul.cpp", _AIC), (f"{_MIX}/add.cpp", _AIV), (f"{_MIX}/multiply.cpp", _AIV)),
        lambda: _matrices(9),
    ),
    "scores": Example(
        ((f"{_PAGED}/scores.cpp", _AIC),),
        lambda: {0: _small(16, 128), 1: _small(128, 128), 2: _floats(16, 128)},
    ),
    "softmax": Example(
        ((f"{_PAGED}/softmax.cpp", _AIV),),
        lambda: {0: _floats(16, 128), 1: _small(16, 128), 2: _floats(16, 1), 3: _floats(16, 1), 4: 0.125},
    ),
    "values": Example(
        ((f"{_PAGED}/values.cpp", _AIC),),
        lambda: {0: _small(16, 128), 1: _small(128, 128), 2: _floats(16, 128)},
    ),
    "update, first": Example(((f"{_PAGED}/update.cpp", _AIV),), lambda: _update(True, False)),
    "update, last": Example(((f"{_PAGED}/update.cpp", _AIV),), lambda: _update(False, True)),
    "blocks": Example(
        (("examples/spmd_multiblock/kernels/scale.cpp", _AIV),),
        lambda: {0: _floats(64, 64), 1: _floats(64, 64), 2: 2.5},
        blocks=4,
    ),
    "gemm": Example((("tests/data/kernels/gemm.cpp", _AIC),), _gemm, blocks=2),
    "stream": Example((("tests/data/kernels/stream.cpp", _AIV),), lambda: {**_matrices(3), 3: 5}),
}


@lru_cache(maxsize=64)
def run_example(name: str, timing_only: bool = False, target: str = "a2a3") -> Simulation:
    example = EXAMPLES[name]
    kernels = [Kernel(Path(source).stem, ROOT / source, kind) for source, kind in example.sources]
    done = simulate(
        kernels, example.arguments(), block_count=example.blocks, timing_only=timing_only, target=target
    )
    assert done.failure is None, done.failure
    return done
