"""Runs ops of every family and our example kernels; prints digests of what they computed and issued.

Two builds of the engine that print the same did the same: another compiler, or one with sanitizers.
"""

import hashlib
import sys

import numpy as np

from insight_trace import simulate
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.op_script import run_op
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from tests.conftest import ROOT
from tests.simulate.narrow_formats import E1M2, E2M1, E4M3, E5M2, E8M0, HIF8, narrow_tile
from tests.simulate.op_harness import TARGETS, Option, glob, scalar, tile

FAR = 0x10000

SCALAR_MEMORY = ("LD_XD_XN_IMM", "ST_XD_XN_IMM")


def digest(*arrays: np.ndarray) -> str:
    text = hashlib.sha256()
    for array in arrays:
        text.update(np.ascontiguousarray(array).tobytes())
    return text.hexdigest()[:16]


def say(name: str, simulation: Simulation, contents: list[np.ndarray]) -> bool:
    if simulation.failure:
        print(f"{name}: {simulation.failure}", file=sys.stderr)
        return False
    columns = simulation.instructions
    # Which plain loads of global memory a kernel makes, and in which order, is its compiler's choice (and a sanitized
    # kernel's are not watched), so neither they nor the times behind them count here.
    rows = [i for i in range(len(columns)) if columns.names[columns.name[i]] not in SCALAR_MEMORY]
    issued = "\n".join(
        f"{columns.names[columns.name[i]]} {columns.pipe[i]} {columns.detail[i]}" for i in rows
    )
    work = hashlib.sha256(issued.encode()).hexdigest()[:16]
    print(f"{name} {len(rows)} instructions {work} {digest(*contents)}")
    return True


def vector_ops() -> list[tuple[str, tuple]]:
    rng = np.random.default_rng(7)
    found: list[tuple[str, tuple]] = []
    for kind in ("float32", "float16", "bfloat16", "int32", "int16"):
        values = (rng.normal(size=(12, 96)) * 9).astype("float32")
        a = tile(values, dtype_name=kind, valid=(11, 70))
        b = tile(values[::-1] + 1, 0x8000, dtype_name=kind, valid=(11, 70))
        out = tile(np.zeros((12, 96)), FAR, dtype_name=kind, valid=(11, 70))
        for name in ("TADD", "TSUB", "TMUL", "TMAX", "TMIN"):
            found.append((name, (out, a, b)))
        found.append(("TMULS", (out, a, scalar(3, kind))))
        found.append(("TFILLPAD", (tile(np.zeros((12, 96)), FAR, dtype_name=kind, pad=2), a)))
        if kind in ("float32", "float16"):
            for name in ("TEXP", "TABS", "TSQRT", "TRECIP"):
                found.append((name, (out, a)))
            column = tile(np.zeros((16, 1)), 0x18000, dtype_name=kind, layout="DN", valid=(11, 1))
            found.append(("TROWMAX", (column, a, tile(np.zeros((12, 96)), 0x1C000, dtype_name=kind))))
            found.append(("TROWSUM", (column, a, tile(np.zeros((12, 96)), 0x1C000, dtype_name=kind))))
        if kind != "float32":
            wide = tile(np.zeros((12, 96)), FAR, dtype_name="float32", valid=(11, 70))
            found.append(("TCVT", (wide, a, Option(1))))
        view = glob(values.astype(out.dtype.numpy), (11, 70), (96, 1), dtype_name=kind)
        found.append(("TLOAD", (out, view)))
        found.append(("TSTORE", (view, a, Option(1), Option(0))))
    return found


def cube_ops(target: str) -> list[tuple[str, tuple]]:
    left_layout = "NZ" if target == "a5" else "ZZ"
    rng = np.random.default_rng(8)
    found: list[tuple[str, tuple]] = []
    for kind, acc in (
        ("float32", "float32"),
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("int8", "int32"),
    ):
        left, right = rng.integers(-9, 9, (32, 64)), rng.integers(-9, 9, (64, 32))
        l1 = tile(left, dtype_name=kind, layout="NZ", space="l1")
        a = tile(left, dtype_name=kind, layout=left_layout, space="l0a", valid=(30, 50))
        b = tile(right, dtype_name=kind, layout="ZN", space="l0b", valid=(50, 29))
        c = tile(np.ones((32, 32)), dtype_name=acc, layout="NZ", fractal=1024, space="l0c", valid=(30, 29))
        found.append(("TMOV", (a, l1)))
        corner = scalar(0, "uint16"), scalar(32, "uint16")
        part = tile(np.zeros((32, 32)), dtype_name=kind, layout=left_layout, space="l0a")
        found.append(("TEXTRACT", (part, l1, *corner)))
        found.append(("TMATMUL", (c, a, b)))
        found.append(("TMATMUL_ACC", (c, a, b)))
        view = glob(np.zeros((32, 40), c.dtype.numpy), (30, 29), (40, 1), dtype_name=acc)
        found.append(("TSTORE", (view, c, Option(0), Option(1))))
    return found


def narrow_ops() -> list[tuple[str, tuple]]:
    """What only the 950 has: HiFloat8, floats of four bits, products with scales."""
    rng = np.random.default_rng(10)
    values = rng.normal(size=(4, 64)) * 9
    codes = rng.integers(0, 16, (32, 64)).astype(np.uint8)
    ones = np.full((32, 2), 127, np.uint8)
    acc = tile(np.ones((32, 32)), dtype_name="float32", layout="NZ", fractal=1024, space="l0c")
    found: list[tuple[str, tuple]] = [
        ("TCVT", (narrow_tile(codes[:4], HIF8, FAR), tile(values.astype(np.float32)), Option(1))),
        ("TCVT", (tile(values.astype(np.float32), FAR), narrow_tile(codes[:4], HIF8), Option(1))),
        ("TCVT", (narrow_tile(codes[:4], E2M1, FAR), tile(values, dtype_name="bfloat16"), Option(1))),
        ("TCVT", (tile(values, FAR, dtype_name="bfloat16"), narrow_tile(codes[:4], E1M2), Option(1))),
    ]
    for kind in (E4M3, E5M2, E2M1, E1M2):
        left, right = (
            narrow_tile(codes, kind, layout="NZ", space="l0a"),
            narrow_tile(codes.T, kind, layout="ZN", space="l0b"),
        )
        by_row = narrow_tile(ones, E8M0, layout="ZZ", space="scale_left", fractal=32)
        by_column = narrow_tile(ones.T, E8M0, layout="NN", space="scale_right", fractal=32)
        found.append(("TMATMUL_MX", (acc, left, by_row, right, by_column)))
    eights = (
        narrow_tile(codes, HIF8, layout="NZ", space="l0a"),
        narrow_tile(codes.T, HIF8, layout="ZN", space="l0b"),
    )
    found.append(("TMATMUL", (acc, *eights)))
    return found


def example_kernels() -> list[tuple[str, dict]]:
    rng = np.random.default_rng(9)

    def draw(*shape: int, kind: str = "float32") -> np.ndarray:
        return rng.normal(size=shape).astype(kind)

    return [
        ("vector_add.cpp", {0: draw(9000), 1: draw(9000), 2: draw(9000)}),
        (
            "tiled_matmul.cpp",
            {0: draw(64, 128, kind="float16"), 1: draw(128, 64, kind="float16"), 2: draw(64, 64)},
        ),
        ("softmax.cpp", {0: draw(21, 100), 1: draw(21, 100)}),
    ]


def main() -> int:
    good = True
    for target in TARGETS:
        for name, operands in [*vector_ops(), *cube_ops(target), *(narrow_ops() if target == "a5" else ())]:
            run = run_op(name, operands, EmbeddedOptions(target=target))
            contents = [content for content in run.contents if content is not None]
            good &= say(f"{target} {name}", run.simulation, contents)
    for name, values in example_kernels():
        result = simulate(ROOT / "examples" / "kernels" / name, values)
        good &= say(name, result, list(result.outputs.values()))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
