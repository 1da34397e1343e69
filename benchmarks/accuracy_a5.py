"""How near the 950 family's times are to what has been published about it.

    python benchmarks/accuracy_a5.py [--json] [--pto-isa CHECKOUT]

Four comparisons, each of whole ops on the engine with numbers that stand here or in points_a5.csv: single ops against
published profiled cycles, the same against the formulas that were fitted to those, transfers against published tables, and
the cube unit against published fits. With a checkout of pto-isa, all of its profiled points are compared, not only those of
points_a5.csv. Precision is 1 - |ours - published| / published.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from insight_trace.dtypes import DType, dtype_named  # noqa: E402
from insight_trace.model import Instructions  # noqa: E402
from insight_trace.simulate.embedded.op_forms import OpRequest  # noqa: E402
from insight_trace.simulate.embedded.op_script import GlobalSpec, Option, Spec, TileSpec, run_op  # noqa: E402
from insight_trace.simulate.embedded.simulator import EmbeddedOptions  # noqa: E402
from insight_trace.simulate.embedded.single_op import time_op  # noqa: E402
from insight_trace.simulate.embedded.toolchain import Toolchain  # noqa: E402

# op, type, (to), cycles of one run: slope, head; row by row: slope, row, head (pto-isa a5 formula_params.csv)
FORMULAS = [
    ("TADD", "half", None, (1.2469671, 55.073657), (1.8749443, 2.8762808, 44.344619)),
    ("TADD", "float", None, (1.2469671, 55.073657), (1.8749443, 2.8762808, 44.344619)),
    ("TSUB", "half", None, (1.2469671, 55.073657), (1.8749443, 2.8762808, 44.344619)),
    ("TSUB", "float", None, (1.2469671, 55.073657), (1.8749443, 2.8762808, 44.344619)),
    ("TMUL", "half", None, (1.1941075, 56.285962), (1.8708194, 2.9123738, 44.844619)),
    ("TMUL", "float", None, (1.1941075, 56.285962), (1.8708194, 2.9123738, 44.844619)),
    ("TEXP", "half", None, (3.7622951, 65.934426), (3.9981682, -0.12080507, 64.159204)),
    ("TEXP", "float", None, (1.9670711, 62.656846), (1.8548854, 2.5442386, 60.598247)),
    ("TSQRT", "half", None, (3.7622951, 66.934426), (3.9981682, -0.12080507, 65.159204)),
    ("TSQRT", "float", None, (1.9670711, 63.656846), (1.8548854, 2.5442386, 61.598247)),
    ("TRSQRT", "half", None, (8.1065574, 81.098361), (8.011194, 0.05721393, 80.711443)),
    ("TRSQRT", "float", None, (4.0294627, 75.570191), (4.0, 0.032648126, 76.464329)),
    ("TRECIP", "half", None, (3.5491803, 68.737705), (3.9981682, -0.12080507, 65.159204)),
    ("TRECIP", "float", None, (1.9081456, 64.516464), (1.8688724, 2.4753589, 62.942563)),
    ("TDIVS", "half", None, (3.5491803, 68.737705), (3.9981682, -0.12080507, 65.159204)),
    ("TDIVS", "float", None, (1.9081456, 64.516464), (1.8688724, 2.4753589, 62.942563)),
    ("TMINS", "half", None, (1.0589255, 53.140381), (1.1016757, 4.5314383, 49.627872)),
    ("TMINS", "float", None, (1.0589255, 53.140381), (1.1016757, 4.5314383, 49.627872)),
    ("TNEG", "half", None, (1.0589255, 55.140381), (1.0952879, 4.5652633, 51.508464)),
    ("TNEG", "float", None, (1.0589255, 55.140381), (1.0952879, 4.5652633, 51.508464)),
    ("TSEL", "half", None, (2.0983607, 52.47541), (2.4617368, 1.427318, 48.616915)),
    ("TSEL", "float", None, (1.9336735, 58.846939), (3.0869132, 36.109522, 22.512394)),
    ("TCVT", "float", "bfloat16", (1.3196721, 52.295082), (2.2580054, 1.0422433, 55.18408)),
    ("TCVT", "float", "half", (1.3196721, 52.295082), (2.2580054, 1.0422433, 55.18408)),
    ("TCVT", "bfloat16", "half", (1.2131148, 53.196721), (1.279308, 1.8333786, 51.80597)),
    ("TCVT", "bfloat16", "float4_e2m1fn", (12.42623, 55.393443), (87.72924, -29.743917, 7.0348259)),
    ("TCVT", "half", "hif8", (1.3196721, 53.295082), (1.2897558, 1.7846223, 52.472637)),
    # the formulas for one run of the next two fall with more work, so only the nested ones can be compared
    ("TCVT", "half", "float", None, (1.2703528, 1.929896, 51.661692)),
    ("TCVT", "bfloat16", "float", None, (1.2703528, 1.929896, 51.661692)),
    ("TCVT", "float", "float8_e4m3fn", (12.319672, 55.295082), (87.638195, -30.013071, 7.6069652)),
    ("TCVT", "float8_e4m3fn", "float", (3.9344262, 81.016393), (5.1631615, -1.7589326, 69.099502)),
]
# elements of a loop where it is not 256 bytes of the wider type: two registers of floats are packed at a time
PACKED = 128
RUNS = (2, 8, 16, 32, 64)
NESTED = ((8, 1), (32, 1), (16, 2), (32, 2))  # rows, loops in a row

# cycles by size (mskpp tables for 91095 at 1.8 GHz)
SIZES_KB = (1, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32)
TABLES = {
    "GM to UB": (236, 237, 237, 238, 239, 241, 293, 470, 469, 518, 587),
    "GM to L1": (151, 152, 155, 157, 160, 164, 169, 241, 241, 259, 295),
    "UB to GM": (303, 305, 325, 338, 348, 359, 377, 707, 706, 736, 754),
    "L0C to GM": (148, 149, 153, 162, 162, 175, 190, 348, 353, 355, 383),
    "L1 to L0A": (8, 9, 18, 26, 35, 53, 70, 87, 105, 122, 140),
    "L1 to L0B": (8, 9, 18, 26, 35, 53, 70, 87, 105, 122, 140),
    "L0C to UB": (9, 18, 35, 52, 70, 105, 140, 175, 210, 244, 279),
    "UB to L1": (9, 18, 35, 52, 70, 105, 140, 175, 210, 244, 279),
}
PRODUCTS = ((16, 16, 16), (32, 64, 32), (64, 64, 64), (128, 64, 128), (128, 128, 128))
DRAINS = ((16, 16), (32, 64), (64, 128), (128, 128), (128, 80))


# types that no tensor descriptor names have the codes that the engine gives them
NARROW = {
    "hif8": DType("HIF8", 16, 1, "uint8", "hif8", "hifloat8_t", True),
    "float4_e1m2": DType("FP4E1M2", 17, 1, "uint8", "f4e1m2", "float4_e1m2x2_t", True),
    "float8_e5m2": DType("FP8E5M2", 15, 1, "uint8", "f8e5m2", "float8_e5m2_t", True),
}


@dataclass(frozen=True)
class Point:
    group: str
    case: str
    ours: float
    published: float

    @property
    def precision(self) -> float:
        return max(0.0, 1.0 - abs(self.ours - self.published) / self.published)


@dataclass(frozen=True)
class Profiled:
    """One published measurement: a tile of rows x cols with its valid part, and the cycles of the op on it."""

    op: str
    source: str
    to: str
    rows: int
    cols: int
    valid_rows: int
    valid_cols: int
    cycles: float
    peer: float  # how near the publisher's own formula is


def _dtype(name: str) -> DType:
    found = NARROW.get(name) or dtype_named(name)
    assert found is not None, name
    return found


def written_down() -> list[Profiled]:
    """The points of points_a5.csv."""
    lines = (ROOT / "benchmarks" / "points_a5.csv").read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    sizes = ("rows", "cols", "valid_rows", "valid_cols")
    return [
        Profiled(
            row["op"],
            row["from"],
            row["to"],
            *(int(row[key]) for key in sizes),
            float(row["cycles"]),
            float(row["peer"]),
        )
        for row in rows
    ]


_NAMES = {
    "Float": "float", "Half": "half", "BFloat16": "bfloat16", "Int8": "int8", "HFloat8": "hif8",
    "Float8E4M3": "float8_e4m3fn", "Float8E5M2": "float8_e5m2", "Float4E2M1": "float4_e2m1fn",
    "Float4E1M2": "float4_e1m2",
}  # fmt: skip
_CALLED = re.compile(r"run\w+<(float|half), ([\d., ]+?)(?:, VFImplKind::\w+)?>\(\)")
_LISTED = re.compile(
    r"\{DType::(\w+), (?:DType::(\w+), )?(\d+), (\d+), (\d+), (\d+), ([\d.]+), ([\d.]+), VFImplKind::\w+(?:, \"(\w*)\")?"
)


def in_checkout(checkout: Path) -> list[Profiled]:
    """Every profiled point of the usual algorithms in a checkout of pto-isa, each once."""
    found: dict[tuple[object, ...], Profiled] = {}
    for path in sorted((checkout / "tests/costmodel/st_a5_fit/testcase").glob("*_fit/main.cpp")):
        op, text = path.parent.name.removesuffix("_fit").upper(), path.read_text(encoding="utf-8")
        for call in _CALLED.finditer(text):
            *shape, cycles, peer = (float(number) for number in call[2].split(","))
            rows, cols, valid_rows, valid_cols = (int(n) for n in (shape if len(shape) == 4 else shape * 2))
            point = Profiled(op, call[1], "", rows, cols, valid_rows, valid_cols, cycles, peer)
            found.setdefault((op, call[1], "", rows, cols, valid_rows, valid_cols), point)
        for case in _LISTED.finditer(text):
            source, to = _NAMES[case[1]], _NAMES[case[2]] if case[2] else ""
            if case[9] == "high_precision" or source == "int8":
                continue  # another algorithm; TSEL of bytes, which the engine does not have
            sizes = tuple(int(n) for n in case.group(3, 4, 5, 6))
            found.setdefault(
                (op, source, to, *sizes), Profiled(op, source, to, *sizes, float(case[7]), float(case[8]))
            )
    return list(found.values())


def profiled(points: list[Profiled]) -> Iterator[Point]:
    """The engine's cycles for each of them."""
    for point in points:
        request = OpRequest(
            point.op,
            _dtype(point.source),
            point.rows,
            point.cols,
            valid_rows=point.valid_rows,
            valid_cols=point.valid_cols,
            to=_dtype(point.to) if point.to else None,
            dynamic=False,
            addresses=(0, 0x10000, 0x20000),  # times do not depend on them, and the largest tiles fit
        )
        types = f"{point.source}{' to ' + point.to if point.to else ''}"
        case = f"{point.op} {types}, {point.valid_rows} x {point.valid_cols} of {point.rows} x {point.cols}"
        yield Point(point.op, case, _cycles(request), point.cycles)


def ops() -> Iterator[Point]:
    """Against the formulas, at sizes beyond those of the points too."""
    for op, name, to, run, nested in FORMULAS:
        kind, target = _dtype(name), _dtype(to) if to else None
        per_loop = 256 // max(kind.size, target.size if target else 0)
        in_rows = PACKED if target and kind.size == 4 and target.size < 4 else per_loop
        label = f"{op} {kind.short}{' to ' + target.short if target else ''}"
        for loops in RUNS if run else ():
            request = OpRequest(op, kind, loops, per_loop, to=target, dynamic=False)
            yield Point(op, f"{label}, {loops} loops", _cycles(request), run[0] * loops + run[1])
        for rows, inner in NESTED:
            if target and inner == 1:
                continue  # the formulas of conversions miss the profiled points there, which the engine follows
            request = OpRequest(op, kind, rows, (inner + 1) * in_rows, valid_cols=inner * in_rows, to=target)
            wanted = (nested[0] * inner + nested[1]) * rows + nested[2]
            yield Point(op, f"{label}, {rows} rows of {inner}", _cycles(request), wanted)


def _cycles(request: OpRequest) -> int:
    """Of the op's function or instruction; writes of control registers before it are not part of what was published."""
    columns = time_op(request, EmbeddedOptions(target="a5"), _toolchain()).simulation.instructions
    return _span(columns)


@lru_cache(maxsize=1)
def _toolchain() -> Toolchain:
    return Toolchain.find()


def _span(columns: Instructions) -> int:
    rows = [i for i in range(len(columns) - 1) if columns.names[columns.name[i]] != "MOV_SPR_XN"]
    return int(columns.end[rows].max() - columns.start[rows].min())


def _alone(op: str, operands: list[Spec], preset: str = "device") -> int:
    """From the start of an op's first real instruction to its end."""
    options = EmbeddedOptions(target="a5", preset=preset, timing_only=True)
    return _span(run_op(op, operands, options, _toolchain()).simulation.instructions)


def transfers() -> Iterator[Point]:
    half, single = _dtype("half"), _dtype("float")
    for path, wanted in TABLES.items():
        for kb, cycles in zip(SIZES_KB, wanted, strict=True):
            yield Point(path, f"{path}, {kb} KB", _alone(*_path(path, kb * 1024, half, single)), cycles)


def _path(path: str, size: int, half: DType, single: DType) -> tuple[str, list[Spec]]:
    rows, cols = size // 512, 256  # of half; the smallest has two rows
    acc_rows, acc_cols = size // 64, 16  # of float: columns of boxes
    plain = TileSpec(half, rows, cols)
    boxed_rows, boxed_cols = max(16, size // 512), min(256, size // 32)
    boxed = TileSpec(half, boxed_rows, boxed_cols, 0, "l1", "NZ")
    match path:
        case "GM to UB":
            return "TLOAD", [plain, _view(half, rows * cols)]
        case "UB to GM":
            return "TSTORE", [_view(half, rows * cols), plain, Option(0), Option(0)]
        case "GM to L1":
            tile = TileSpec(half, rows, cols, 0, "l1")
            return "TLOAD", [tile, _view(half, rows * cols)]
        case "L0C to GM":
            acc = TileSpec(single, acc_rows, acc_cols, 0, "l0c", "NZ", fractal=1024)
            return "TSTORE", [_boxes(single, acc_rows, acc_cols), acc, Option(0), Option(0)]
        case "L1 to L0A":
            return "TMOV", [TileSpec(half, boxed_rows, boxed_cols, 0, "l0a", "NZ"), boxed]
        case "L1 to L0B":
            turned = TileSpec(half, boxed_rows, boxed_cols, 0, "l1", "ZN")
            return "TMOV", [TileSpec(half, boxed_rows, boxed_cols, 0, "l0b", "ZN"), turned]
        case "L0C to UB":
            acc = TileSpec(single, acc_rows, acc_cols, 0, "l0c", "NZ", fractal=1024)
            return "TMOV", [TileSpec(single, acc_rows, acc_cols), acc]
        case _:
            return "TMOV", [
                TileSpec(half, boxed_rows, boxed_cols, 0, "l1", "NZ"),
                TileSpec(half, boxed_rows, boxed_cols, 0, "ub", "NZ"),
            ]


def _view(kind: DType, count: int) -> GlobalSpec:
    import numpy as np

    rows = count // 256
    return GlobalSpec(np.zeros(count, kind.numpy), kind, (1, 1, 1, rows, 256), (count, count, count, 256, 1))


def _boxes(kind: DType, rows: int, cols: int) -> GlobalSpec:
    """An NZ tensor of 16 x 16 boxes."""
    import numpy as np

    count = rows * cols
    shape, strides = (1, cols // 16, rows // 16, 16, 16), (count, rows * 16, 256, 16, 1)
    return GlobalSpec(np.zeros(count, kind.numpy), kind, shape, strides, layout=2)


def cube() -> Iterator[Point]:
    for m, k, n in PRODUCTS:
        for name, passes in (("half", 1), ("float", 8)):
            kind = _dtype(name)
            fractals = (m // 16) * (k * kind.size // 32) * (n // 16)
            if max(m * k, k * n) * kind.size > 65536:
                continue
            request = OpRequest("TMATMUL", kind, m, n, depth=k)
            yield Point("MMAD", f"{kind.short} {m} x {k} x {n}", _cycles(request), 25 + passes * fractals)
    single = _dtype("float")
    for m, n in DRAINS:
        odd = -(-n // 8)
        while odd % 2 == 0:
            odd //= 2
        wanted = 343 + m * (max(4.59, 4 * n / 30) + 0.26 * (odd - 1))
        acc = TileSpec(single, m, n, 0, "l0c", "NZ", fractal=1024)
        import numpy as np

        view = GlobalSpec(np.zeros(m * n, np.float32), single, (1, 1, 1, m, n), (m * n, m * n, m * n, n, 1))
        ours = _alone("TSTORE", [view, acc, Option(0), Option(0)], "camodel")
        yield Point("FIXPIPE", f"{m} x {n} to ND, preset camodel", ours, wanted)


def mean(points: list[Point]) -> float:
    return sum(point.precision for point in points) / len(points)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="print every point")
    parser.add_argument("--pto-isa", type=Path, help="a checkout whose profiled points are compared as well")
    options = parser.parse_args()
    points = in_checkout(options.pto_isa) if options.pto_isa else written_down()
    parts = {
        "profiled ops": list(profiled(points)),
        "op formulas": list(ops()),
        "transfers": list(transfers()),
        "cube": list(cube()),
    }
    if options.json:
        print(
            json.dumps(
                {k: [vars(p) | {"precision": p.precision} for p in v] for k, v in parts.items()}, indent=2
            )
        )
        return 0
    print(
        f"the publisher's own formulas on the profiled ops: {sum(p.peer for p in points) / len(points):.3f}"
    )
    for part, compared in parts.items():
        print(f"{part}: mean precision {mean(compared):.3f} over {len(compared)} points")
        for group in dict.fromkeys(point.group for point in compared):
            own = [point for point in compared if point.group == group]
            worst = min(own, key=lambda point: point.precision)
            print(
                f"  {group:<10} {mean(own):.3f} over {len(own):>3}   worst {worst.precision:.2f}: {worst.case},"
                f" ours {worst.ours:.0f}, published {worst.published:.0f}"
            )
    everything = [point for compared in parts.values() for point in compared]
    print(f"mean precision {mean(everything):.3f} over {len(everything)} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())
