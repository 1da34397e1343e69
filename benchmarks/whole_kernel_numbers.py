"""Whole kernels of a pto-isa checkout, their numbers against NumPy.

    python benchmarks/whole_kernel_numbers.py --pto-isa PATH [--only TEXT]

The kernels are those of `whole_kernels.py`, compiled as there: unmodified but for their host part. Their sizes are
template parameters or macros of their own; here they are small, so that every number is computed in seconds. Products
are of small whole numbers and must be exact; attention must be within the tolerance that its own program has.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

from insight_trace.simulate import simulate  # noqa: E402
from whole_kernel_points import A2, A5, Whole, points, queues_of  # noqa: E402
from whole_kernels import kernels_of  # noqa: E402

Array = np.ndarray[Any, Any]
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


@dataclass(frozen=True)
class Numbers:
    """A small run of a kernel: what goes in, and what must come out of which slots."""

    point: Whole
    inputs: dict[int, Array]
    golden: dict[int, Array]
    tolerance: float = 0.0  # absolute and relative

    def problem(self, found: dict[int, Array]) -> str:
        """What is wrong with the outputs; empty if nothing is."""
        for slot, want in self.golden.items():
            have = found[slot].reshape(-1)[: want.size].reshape(want.shape).astype(np.float64)
            want = want.astype(np.float64)
            bad = ~(np.abs(have - want) <= self.tolerance * np.maximum(1, np.abs(want)))
            if bad.any():
                at = tuple(int(i) for i in np.argwhere(bad)[0])
                return (
                    f"slot {slot}: {bad.sum()} of {bad.size} wrong, first {have[at]} for {want[at]} at {at}"
                )
        return ""


def _point(kernel: str, chip: str, entry: str, blocks: int, inputs: dict[int, Array], **more: Any) -> Whole:
    """The published point's kernel with another call."""
    first = next(p for p in points() if p.kernel == kernel and p.family == ("a5" if chip == A5 else "a2a3"))
    case = f"numbers, {entry}"[:60]
    return replace(
        first, case=case, entry=entry, blocks=blocks, chip=chip, tensors=lambda: dict(inputs), **more
    )


def _whole(random: np.random.Generator, *shape: int) -> Array:
    return random.integers(-3, 4, shape).astype(np.float32)


def gemm(random: np.random.Generator) -> Iterator[Numbers]:
    m, k, n = 256, 512, 512
    a, b = _whole(random, m, k), _whole(random, k, n)
    inputs = {0: np.zeros((m, n), np.float32), 1: a.astype(np.float16), 2: b.T.astype(np.float16).copy()}
    entry = (
        f"GemmPerformance<uint16_t, 4, {m}, {k}, {n}, 128, {k}, 256, 128, 64, 256, 1, 4, 4, 1>(p0, p1, p2)"
    )
    yield Numbers(_point("GEMM half", A2, entry, 4, inputs), inputs, {0: a @ b})


def gemm_ar(random: np.random.Generator) -> Iterator[Numbers]:
    m, k, n, blocks = 256, 512, 512, 2
    a, b = _whole(random, m, k), _whole(random, k, n)
    inputs = {
        0: np.zeros((m, n), np.float16), 1: a.astype(np.float16), 2: b.T.astype(np.float16).copy(),
        3: queues_of(blocks),
    }  # fmt: skip
    sizes = (("COMPUTE_BLOCK_NUM", blocks), ("G_M", m), ("G_K", k), ("G_N", n))
    define = "".join(f"#define CONFIG_{name} {value}\n" for name, value in sizes)
    entry = f"GemmComputeKernel(p0, p1, p2, p3, 0, {blocks}, {k})"
    for chip in (A2, A5):
        point = _point("gemm_ar, its product", chip, entry, blocks, inputs, define=define)
        yield Numbers(point, inputs, {0: (a @ b).astype(np.float16)})


def top_k(random: np.random.Generator) -> Iterator[Numbers]:
    rows, cols, stored, k = 16, 1024, 1280, 1000
    for name, kind, count in (("float", np.float32, k), ("uint16_t", np.float16, k + 8)):
        values = np.zeros((rows, stored), kind)
        values[:, :cols] = random.permuted(
            np.tile(np.arange(cols) - 512, (rows, 1)), axis=1
        )  # no two are equal
        order = np.argsort(-values[:, :cols].astype(np.float32), axis=1)[:, :count]
        inputs = {
            0: np.zeros((rows, count), kind), 1: np.zeros((rows, count), np.uint32), 2: values,
            3: np.arange(cols, dtype=np.uint32),
        }  # fmt: skip
        entry = (
            f"Topk<{name}, 1, 1, 1, {rows}, {cols}, 1, 1, 1, {rows}, {stored}, {count}, 4>(p0, p1, p2, p3)"
        )
        point = _point("top-k", A2, entry, 4, inputs)
        yield Numbers(point, inputs, {0: np.take_along_axis(values, order, 1), 1: order})


def conv2d(random: np.random.Generator) -> Iterator[Numbers]:
    batch, c1, h, w, out = 2, 3, 8, 16, 256  # 3 x 3, padded by 1, NC1HWC0
    m, k = batch * h * w, c1 * 16 * 9
    image, weights = _whole(random, batch, c1, h, w, 16), _whole(random, c1, 3, 3, out, 16)
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))
    result = np.zeros((batch, h, w, out), np.float32)
    for i in range(3):
        for j in range(3):
            result += np.einsum("bchwk,cnk->bhwn", padded[:, :, i : i + h, j : j + w], weights[:, i, j])
    golden = result.reshape(batch, h, w, out // 16, 16).transpose(0, 3, 1, 2, 4).astype(np.float16)
    inputs = {
        0: np.zeros(golden.shape, np.float16),
        1: image.astype(np.float16),
        2: weights.astype(np.float16),
    }
    entry = (
        f"Conv2dForward<uint16_t, 2, {m}, {k}, {out}, {h * w}, {k}, {out}, 128, 48, 256, 1, 3, 3, 1, {batch}, {c1}, "
        f"{h}, {w}, 16, 3, 3, {h}, {w}>(p0, p1, p2)"
    )
    yield Numbers(_point("conv2d 3 x 3", A2, entry, 2, inputs), inputs, {0: golden})


def attention(random: np.random.Generator) -> Iterator[Numbers]:
    rows, columns, head = 128, 1024, 128
    q, k, v = (random.normal(size=(n, head)).astype(np.float16) for n in (rows, columns, columns))
    scores = q.astype(np.float32) @ k.astype(np.float32).T / np.sqrt(np.float32(head))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    golden = weights @ v.astype(np.float32) / weights.sum(axis=1, keepdims=True)
    first = next(p for p in points() if p.kernel == "flash attention" and p.case == f"{rows} x {columns}")
    inputs = {**first.tensors(), 1: q, 2: k, 3: v, 8: np.zeros((rows, head), np.float32)}
    point = replace(first, case="numbers", tensors=lambda: dict(inputs))
    yield Numbers(point, inputs, {8: golden}, tolerance=1e-3)


def _scaled(random: np.random.Generator, codes: Array, values: Array) -> tuple[Array, Array, Array]:
    """Rows of codes, their exponents in groups of 32, and what they mean."""
    exponents = random.integers(127, 130, (codes.shape[0], codes.shape[1] // 32)).astype(np.uint8)
    return codes, exponents, values * np.repeat(np.exp2(exponents - np.float32(127)), 32, axis=1)


def mx_gemm(random: np.random.Generator) -> Iterator[Numbers]:
    for kind, base, (m, k, n) in (
        ("mxfp8", (128, 128), (256, 1024, 512)),
        ("mxfp4", (256, 256), (512, 2048, 512)),
    ):
        sides = []
        for lines in (m, n):
            values = random.integers(-1, 2, (lines, k)).astype(np.float32)
            if kind == "mxfp8":
                codes = values.astype(ml_dtypes.float8_e5m2).view(np.uint8)
            else:  # two in a byte, the first in the low half
                half = (np.searchsorted(_E2M1, np.abs(values)) | np.where(values < 0, 8, 0)).astype(np.uint8)
                codes = half[:, ::2] | half[:, 1::2] << 4
            sides.append((codes, *_scaled(random, values, values)[1:]))
        (a, a_scale, a_value), (b, b_scale, b_value) = sides
        golden = (a_value @ b_value.T).astype(ml_dtypes.bfloat16)
        inputs = {0: np.zeros((m, n), ml_dtypes.bfloat16), 1: a, 2: b, 3: a_scale, 4: b_scale}
        steps = "1, 4, 4, 1" if kind == "mxfp8" else "1, 2, 2, 1"
        entry = (
            f"MxMatmulPerformance<4, {m}, {k}, {n}, {m // 2}, {k}, {n // 2}, {base[0]}, {base[1]}, 256, {steps}>"
            "(p0, p1, p2, p3, p4)"
        )
        yield Numbers(_point(f"GEMM {kind}", A5, entry, 4, inputs), inputs, {0: golden})


GROUPS: tuple[Callable[[np.random.Generator], Iterator[Numbers]], ...] = (
    gemm, gemm_ar, top_k, conv2d, attention, mx_gemm,
)  # fmt: skip


def checked(numbers: Numbers, checkout: Path, scratch: Path) -> str:
    """Runs the kernel; what is wrong with it, or nothing."""
    point = numbers.point
    done = simulate(
        kernels_of(point, checkout, scratch), numbers.inputs, block_count=point.blocks, soc_version=point.chip,
        target=point.family, seconds=600.0,
    )  # fmt: skip
    if done.failure:
        return f"{done.failure.message} ({done.failure.where})"
    return numbers.problem(dict(done.outputs))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pto-isa", type=Path, required=True, metavar="PATH", help="a checkout of pto-isa")
    parser.add_argument("--only", default="", metavar="TEXT", help="kernels whose name has it")
    options = parser.parse_args()
    right = total = 0
    with tempfile.TemporaryDirectory(prefix="whole-kernels-") as name:
        for group in GROUPS:
            for numbers in group(np.random.default_rng(5)):
                if options.only not in numbers.point.kernel:
                    continue
                began = time.perf_counter()
                problem = checked(numbers, options.pto_isa.resolve(), Path(name))
                total, right = total + 1, right + (not problem)
                took = time.perf_counter() - began
                print(
                    f"{numbers.point.kernel:<22} {numbers.point.chip:<18} {problem or 'right'}  ({took:.1f} s)"
                )
    print(f"WHOLE_KERNELS total={total} right={right}")
    return 0 if right == total else 1


if __name__ == "__main__":
    sys.exit(main())
