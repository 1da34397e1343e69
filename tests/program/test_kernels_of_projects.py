"""`insight_trace.kernel` on kernels of three projects, from their files alone, against NumPy."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import insight_trace

Arrays = list[Any]
RNG = np.random.default_rng(7)
DEVICE_TESTS = "tests/npu/a2a3/src/st/testcase"


class Tried(NamedTuple):
    """A kernel, its arguments, and what one of them holds afterwards."""

    file: str
    entry: str | None
    arguments: Callable[[], Arrays]
    output: int
    expected: Callable[..., np.ndarray]  # of the arguments as they were
    tolerance: float = 0.0
    blocks: int = 1


def positive(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.uniform(0.5, 4.0, shape).astype(dtype)


def signed(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.uniform(-4.0, 4.0, shape).astype(dtype)


def whole(*shape: int) -> np.ndarray:
    return RNG.integers(-1000, 1000, shape).astype(np.int16)


def one(
    folder: str,
    entry: str,
    make: Callable[..., np.ndarray],
    expected: Callable[..., np.ndarray],
    tolerance: float = 0.0,
) -> Tried:
    kind = "int16_t" if make is whole else "float"
    dtype = np.int16 if make is whole else np.float32
    return Tried(
        f"{DEVICE_TESTS}/{folder}/{folder}_kernel.cpp", f"{entry}<{kind},64,64,64,64>",
        lambda: [np.zeros((64, 64), dtype), make(64, 64)], 0, lambda _, x: expected(x), tolerance,
    )  # fmt: skip


def two(
    folder: str,
    entry: str,
    make: Callable[..., np.ndarray],
    expected: Callable[..., np.ndarray],
    tolerance: float = 0.0,
) -> Tried:
    kind = "int16_t" if make is whole else "float"
    dtype = np.int16 if make is whole else np.float32
    return Tried(
        f"{DEVICE_TESTS}/{folder}/{folder}_kernel.cpp", f"{entry}<{kind},64,64,64,64>",
        lambda: [np.zeros((64, 64), dtype), make(64, 64), make(64, 64)], 0, lambda _, x, y: expected(x, y), tolerance,
    )  # fmt: skip


def columns(folder: str, entry: str, expected: Callable[..., np.ndarray]) -> Tried:
    return Tried(
        f"{DEVICE_TESTS}/{folder}/{folder}_kernel.cpp", f"{entry}<float,64,16,16>",
        lambda: [np.zeros((1, 64), np.float32), signed(16, 64)], 0, lambda _, x: expected(x, axis=0)[None],
    )  # fmt: skip


PTO_ISA = [
    one("tneg", "runTNeg", signed, np.negative),
    one("trelu", "runTRELU", signed, lambda x: np.maximum(x, 0)),
    one("tabs", "runTAbs", signed, np.abs),
    one("tnot", "runTNOT", whole, np.invert),
    one("trecip", "runTRecip", positive, lambda x: 1 / x, 1e-3),
    one("texp", "runTExp", signed, np.exp, 1e-3),
    one("tlog", "runTLog", positive, np.log, 1e-3),
    one("tsqrt", "runTSqrt", positive, np.sqrt, 1e-3),
    one("trsqrt", "runTRsqrt", positive, lambda x: 1 / np.sqrt(x), 5e-3),
    two("tadd", "runTAdd", signed, np.add),
    two("tsub", "runTSUB", signed, np.subtract),
    two("tmul", "runTMul", signed, np.multiply),
    two("tdiv", "runTDiv", positive, np.divide, 1e-6),
    two("tand", "runTAnd", whole, np.bitwise_and),
    two("tor", "runTOr", whole, np.bitwise_or),
    columns("tcolmax", "runTCOLMAX", np.max),
    columns("tcolmin", "runTCOLMIN", np.min),
]  # fmt: skip


def magnitudes(kind: str, dtype: Any) -> Tried:
    arguments = lambda: [signed(1024, dtype=dtype), np.zeros(1024, dtype), 1024]  # noqa: E731
    return Tried(
        "csrc/kernel/kernel_abs.cpp", f"vabs_{kind}", arguments, 1, lambda x, *_: np.abs(x), blocks=4
    )


def products(kind: str, dtype: Any, tolerance: float) -> Tried:
    return Tried(
        "csrc/kernel/kernel_simple_matmul.cpp", f"simple_matmul_{kind}",
        lambda: [signed(64, 64, dtype=dtype), signed(64, 64, dtype=dtype), np.zeros((64, 64), np.float32), 64], 2,
        lambda a, b, *_: a.astype(np.float32) @ b.astype(np.float32), tolerance,
    )  # fmt: skip


def gathered(kind: str, dtype: Any) -> Tried:
    def arguments() -> Arrays:
        indices = RNG.integers(0, 512, 256).astype(np.int32)
        return [
            positive(256, dtype=dtype),
            indices,
            positive(512, dtype=dtype),
            np.zeros(256, dtype),
            512,
            256,
        ]

    return Tried(
        "csrc/kernel/kernel_csr_gather.cpp", f"csr_gather_{kind}", arguments, 3,
        lambda values, indices, x, *_: values * x[indices], blocks=2,
    )  # fmt: skip


def squares(kind: str, dtype: Any, tolerance: float) -> Tried:
    return Tried(
        "csrc/kernel/kernel_batch_matrix_square.cpp", f"batch_matrix_square_{kind}",
        lambda: [np.zeros((2, 32, 32), np.float32), signed(2, 32, 32, dtype=dtype), 32], 0,
        lambda _, x, __: x.astype(np.float32) @ x.astype(np.float32), tolerance, 2,
    )  # fmt: skip


def swiglu(x: np.ndarray, *_: Any) -> np.ndarray:
    gate, value = np.split(x.astype(np.float32), 2, axis=1)
    return gate / (1 + np.exp(-gate)) * value


PTO_KERNELS = [
    magnitudes("fp16", np.float16),
    magnitudes("fp32", np.float32),
    products("fp16", np.float16, 1e-3),
    products("bf16", ml_dtypes.bfloat16, 1e-3),
    products("fp32", np.float32, 1e-3),
    gathered("fp16", np.float16),
    gathered("fp32", np.float32),
    squares("fp16", np.float16, 1e-3),
    squares("fp32", np.float32, 1e-3),
    Tried(
        "csrc/kernel/kernel_swiglu.cpp", "swiglu_fp16",
        lambda: [signed(8, 256, dtype=np.float16), np.zeros((8, 128), np.float16), 8, 256], 1, swiglu, 5e-3, 2,
    ),
]  # fmt: skip

_VECTOR = "examples/a2a3/tensormap_and_ringbuffer/vector_example/kernels/aiv"
_MIXED = "tests/st/a2a3/tensormap_and_ringbuffer/mixed_example/kernels"


def slots(file: str, expected: Callable[..., np.ndarray], side: int = 128, tolerance: float = 0.0) -> Tried:
    arguments = lambda: [signed(side, side), signed(side, side), np.zeros((side, side), np.float32)]  # noqa: E731
    return Tried(file, None, arguments, 2, lambda x, y, _: expected(x, y), tolerance)


SIMPLER = [
    slots(f"{_VECTOR}/kernel_add.cpp", np.add),
    slots(f"{_VECTOR}/kernel_mul.cpp", np.multiply),
    slots(f"{_MIXED}/aiv/kernel_add_standalone.cpp", np.add),
    Tried(  # it counts tiles of 128 x 128 in the first extent
        f"{_MIXED}/aic/kernel_matmul.cpp", None,
        lambda: [signed(128, 128).ravel(), signed(128, 128).ravel(), np.zeros(128 * 128, np.float32)], 2,
        lambda x, y, _: (x.reshape(128, 128) @ y.reshape(128, 128)).ravel(), 1e-3,
    ),
    Tried(
        f"{_VECTOR}/kernel_add_scalar.cpp", None,
        lambda: [signed(128, 128), np.zeros((128, 128), np.float32), 1.5], 1, lambda x, *_: x + np.float32(1.5),
    ),
]  # fmt: skip


@pytest.fixture(scope="session")
def pto_kernels_checkout() -> Path:
    value = os.environ.get("INSIGHT_TRACE_PTO_KERNELS")
    if not value:
        pytest.skip("set INSIGHT_TRACE_PTO_KERNELS to a checkout of pto-kernels to run this test")
    return Path(value)


def run(root: Path, tried: Tried) -> None:
    arguments = tried.arguments()
    before = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    cycles = insight_trace.kernel(root / tried.file, tried.entry)(*arguments, blocks=tried.blocks)
    assert cycles > 0
    made, expected = arguments[tried.output].astype(np.float64), tried.expected(*before).astype(np.float64)
    np.testing.assert_allclose(made, expected, rtol=tried.tolerance, atol=tried.tolerance)


def name(tried: Tried) -> str:
    return tried.entry.split("<")[0] if tried.entry else Path(tried.file).stem


@pytest.mark.parametrize("tried", PTO_ISA, ids=name)
def test_a_kernel_of_pto_isa_gives_what_numpy_gives(tried: Tried, pto_isa_checkout: Path) -> None:
    run(pto_isa_checkout, tried)


@pytest.mark.parametrize("tried", PTO_KERNELS, ids=name)
def test_a_kernel_of_pto_kernels_gives_what_numpy_gives(tried: Tried, pto_kernels_checkout: Path) -> None:
    run(pto_kernels_checkout, tried)


@pytest.mark.parametrize("tried", SIMPLER, ids=name)
def test_a_kernel_of_simpler_gives_what_numpy_gives(tried: Tried, simpler_checkout: Path) -> None:
    run(simpler_checkout, tried)
