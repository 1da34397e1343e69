"""Writes docs/tile-ops.md: every tile op with the element types and layouts it takes, what it becomes, and how well
its time is known. Everything on the page is found by running the op on the modelled core.

    python tools/tile_op_table.py            write the page
    python tools/tile_op_table.py --check    say whether the page is current (exit 1 if not)
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from insight_trace.chips import FOLDER
from insight_trace.dtypes import DType, dtype_named
from insight_trace.errors import RequestError
from insight_trace.outcome import Fault
from insight_trace.simulate.embedded.engine_objects import INCLUDE
from insight_trace.simulate.embedded.op_forms import OpRequest, operands_of
from insight_trace.simulate.embedded.op_script import GlobalSpec, Option, ScalarSpec, Spec, TileSpec, run_op
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from insight_trace.simulate.embedded.toolchain import Toolchain

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tile-ops.md"
TYPES = ("float32", "float16", "bfloat16", "int32", "int16", "int8", "uint32", "uint16", "uint8")
ROWS, COLS = 16, 64
_STEP = 0x2000

# Operands of ops that have no form by size alone. d a b c t: tiles of the type; # a scalar of the type; oN an
# option; NAME:x the tile or scalar in that type; col, row: a vector along the other axis; wide, half: twice or
# half the columns; mask: a bit per element; few: a short scratch; pad: a tile that names what fills it; sorted:
# values with their places; gm: global memory.
_FORMS = {
    "TXOR": "d a b t", "TXORS": "d a # t", "TREM": "d a b t", "TREMS": "d a # t", "TPOW": "d a b t",
    "TPOWS": "d a # t", "TPRELU": "d a b uint8:t", "TSUBRELU": "d a b", "TMULADDDST": "d a b",
    "TFUSEDMULADD": "d a b", "TFUSEDMULADDRELU": "d a b", "TAXPY": "d a #", "TADDC": "d a b c", "TSUBC": "d a b c",
    "TADDSC": "d a # b", "TSUBSC": "d a # b", "TCMP": "mask a b o0", "TCMPS": "mask a # o0",
    "TSELS": "d mask a few #", "TPARTMUL": "d a b", "TCI": "d # o0", "TTRI": "d int32:# o0",
    "TADDRELUCONV": "float16:d a b", "TSUBRELUCONV": "float16:d a b", "TADDDEQRELU": "float16:d a b float32:# t",
    "TDEQUANT": "float32:d a float32:col float32:col", "TPRINT": "d o0",
    "TFILLPAD": "pad a", "TFILLPAD_INPLACE": "pad pad0", "TFILLPAD_EXPAND": "pad a",
    "TGATHER": "d a int32:b int32:t", "TGATHERB": "d a uint32:b", "TSCATTER": "d a index", "TSORT32": "sorted a uint32:b",
    "TMRGSORT": "d a uint32:#16", "TCONCAT": "wide a b", "TINTERLEAVE": "d c a b", "TDEINTERLEAVE": "d c a b",
    "MGATHER": "d gm int32:b o1 o0", "MSCATTER": "gm a int32:b o1 o0 o0", "TROWARGMAX": "uint32:col a t",
    "TROWARGMIN": "uint32:col a t", "TCOLARGMAX": "uint32:row a t", "TCOLARGMIN": "uint32:row a t",
    "TPAIRREDUCESUM": "half a", "TQUANT": "int8:d a col o2 t",
    "TPARTARGMAX": "d a b uint32:d uint32:a uint32:b", "TPARTARGMIN": "d a b uint32:d uint32:a uint32:b",
}  # fmt: skip
_CUBE = {
    "TMATMUL": "acc left right", "TMATMUL_ACC": "acc acc left right", "TMATMUL_BIAS": "acc left right bias",
    "TINSERT": "big small int32:#0 int32:#0", "TEXTRACT": "left mat int32:#0 int32:#0", "TMOV": "left mat",
    # a map of 8 x 8 pixels and 64 channels, a filter of one tap
    "TIMG2COL": "left map o274877906944 o524296 o72340172821299201 o0 o262145",
}  # fmt: skip
# Ops whose operands a test cannot place: they need another core, or the formats of 8-bit floats.
_ELSEWHERE = {
    "TPUSH": (
        "float32, float16, bfloat16, int32, int8",
        "a5: FIX_L0C_TO_UB from the cube core, MOV_UB_TO_L1 to it",
    ),
    "TMATMUL_MX": (
        "a5: float8_e4m3, float8_e5m2; float4_e2m1, float4_e1m2; with float8_e8m0 scales",
        "a5: MMAD",
    ),
    "TINTERLEAVE": ("a5: all numbers of 8, 16 and 32 bits", "a5: a vector function"),
    "TDEINTERLEAVE": ("a5: all numbers of 8, 16 and 32 bits", "a5: a vector function"),
    "THISTOGRAM": ("a5: uint16, uint32", "a5: a vector function"),
    "TRANDOM": ("a5: int32, uint32", "a5: a vector function"),
}
_FAMILIES = {
    "transfer": "Between global memory and the core",
    "elementwise": "Element by element",
    "reduce": "Along rows and columns",
    "rearrange": "Elements change place",
    "cube": "The cube core, and tile to tile",
}


@dataclass(frozen=True)
class Probe:
    """What one op did with one element type in one layout."""

    works: bool
    instructions: tuple[str, ...] = ()
    why: str = ""


def families() -> Iterator[tuple[str, list[str]]]:
    """The ops of each table that the engine is compiled from."""
    for stem, title in _FAMILIES.items():
        text = (INCLUDE / "insight_trace" / "ops" / f"{stem}.def").read_text(encoding="utf-8")
        yield title, re.findall(r"^TILE_OP\((\w+)", text, re.M)


def probe(op: str, type_name: str, layout: str, toolchain: Toolchain) -> Probe:
    """Runs the op once, without arithmetic."""
    dtype = _dtype(type_name)
    try:
        operands = example_operands(op, dtype, layout)
    except RequestError as error:
        return Probe(False, why=error.what)
    simulation = run_op(op, operands, EmbeddedOptions(timing_only=True), toolchain).simulation
    if simulation.failure:
        # a fault of the kernel is a form that the op does not have: just as unsupported to who reads the page
        if simulation.failure.fault not in (Fault.NOT_SUPPORTED, Fault.KERNEL):
            raise SystemExit(f"{op} of {type_name} in {layout}: {simulation.failure}")
        return Probe(False, why=simulation.failure.message)
    columns = simulation.instructions
    names = [columns.names[i] for i in columns.name[:-1]]  # without the closing END
    return Probe(True, tuple(names))


def _dtype(name: str) -> DType:
    found = dtype_named(name)
    assert found is not None, name
    return found


def example_operands(op: str, dtype: DType, layout: str = "ND", target: str = "a2a3") -> list[Spec]:
    """Operands that the op takes, in the order in which kernels pass them; tiles are empty."""
    if op in _CUBE:
        return [_cube(token, dtype, target) for token in _CUBE[op].split()]
    if op in _FORMS:
        return [_placed(token, i, dtype, layout) for i, token in enumerate(_FORMS[op].split())]
    to = _dtype("float16" if dtype.name == "FLOAT32" else "float32") if op == "TCVT" else None
    request = OpRequest(op, dtype, ROWS, COLS, columns=layout == "DN", to=to)
    operands = operands_of(request)
    if op in ("TLOAD", "TSTORE") or layout == "ND":
        return operands
    turned: list[Spec] = []
    for operand in operands:
        whole = isinstance(operand, TileSpec) and (operand.rows, operand.cols) == (ROWS, COLS)
        turned.append(_turned(operand) if whole and isinstance(operand, TileSpec) else operand)
    return turned


def _turned(tile: TileSpec) -> TileSpec:
    """The same tile, column by column."""
    return TileSpec(tile.dtype, COLS, ROWS, tile.address, layout="DN", dynamic=tile.dynamic)


def _placed(token: str, place: int, dtype: DType, layout: str) -> Spec:
    if re.fullmatch(r"o\d+", token):
        return Option(int(token[1:]))
    if ":" in token:
        name, token = token.split(":")
        dtype = _dtype(name)
    if token.startswith("#"):
        return ScalarSpec(dtype, int(token[1:] or 1))
    address = place * _STEP
    byte = _dtype("uint8")
    if token == "gm":
        return _global(dtype)
    shapes = {
        "mask": TileSpec(byte, ROWS, 32, address, valid_cols=COLS // 8),
        "few": TileSpec(byte, 1, 256, address),
        "col": TileSpec(dtype, ROWS * 2, 1, address, layout="DN", valid_rows=ROWS),
        "row": TileSpec(dtype, 1, COLS, address),
        "wide": TileSpec(dtype, ROWS, 2 * COLS, address),
        "half": TileSpec(dtype, ROWS, COLS, address, valid_cols=COLS // 2),
        "index": TileSpec(_dtype("int32" if dtype.size == 4 else "int16"), ROWS, COLS, address),
        "pad": TileSpec(dtype, ROWS, COLS, address, pad=1),
        "pad0": TileSpec(dtype, ROWS, COLS, 0, pad=1, valid_cols=COLS // 2),
        "sorted": TileSpec(dtype, ROWS, COLS * 8 // dtype.size, address),
    }
    if token in shapes:
        return shapes[token]
    tile = TileSpec(dtype, ROWS, COLS, address)
    return tile if layout == "ND" else _turned(tile)


def _global(dtype: DType) -> GlobalSpec:
    import numpy as np

    whole = ROWS * COLS
    return GlobalSpec(
        np.zeros(whole, dtype.numpy), dtype, (1, 1, 1, ROWS, COLS), (whole, whole, whole, COLS, 1)
    )


def _cube(token: str, dtype: DType, target: str) -> Spec:
    wide = _dtype("float32" if dtype.is_float else "int32")
    if token.startswith("int32:#"):
        return ScalarSpec(_dtype("int32"), int(token[-1]))
    if re.fullmatch(r"o\d+", token):
        return Option(int(token[1:]))
    shapes = {
        "acc": TileSpec(wide, COLS, COLS, 0, "l0c", "NZ", fractal=1024),
        "left": TileSpec(dtype, COLS, COLS, 0, "l0a", "NZ" if target == "a5" else "ZZ"),
        "right": TileSpec(dtype, COLS, COLS, 0, "l0b", "ZN"),
        "bias": TileSpec(wide, 1, COLS, 0, "bias"),
        "mat": TileSpec(dtype, COLS, COLS, 0, "l1", "NZ"),
        "map": TileSpec(dtype, COLS * COLS * dtype.size // 32, 32 // dtype.size, 0, "l1"),
        "big": TileSpec(dtype, ROWS, COLS, 0),
        "small": TileSpec(dtype, ROWS, COLS, _STEP),
    }
    return shapes[token]


@lru_cache(maxsize=1)
def _sources() -> dict[str, str]:
    """Instruction -> how its cycles are known, from the table of the chips."""
    table = tomllib.loads((FOLDER / "a2a3.toml").read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for instruction, by_type in table.get("vector", {}).items():
        kinds = sorted({entry.get("kind", "") for entry in by_type.values()} - {""})
        found[instruction] = "/".join(kinds)
    for instruction, entry in table.get("move", {}).items():
        found[instruction] = entry.get("kind", "")
    for instruction, value in _VALUES.items():
        found.setdefault(instruction, table["value"][value]["kind"])
    return found


# Instructions whose cycles are single values of the table.
_VALUES = {
    "MMAD": "mmad.head",
    "LD_XD_XN_IMM": "scalar.load_ub",
    "ST_XD_XN_IMM": "scalar.store_ub",
    "LD_DEV": "scalar.load_gm",
    "ST_DEV": "scalar.store_gm",
}


_CONTROL = {"BAR", "SET_FLAG", "WAIT_FLAG", "MOV_SPR_XN", "MOVEMASK", "MOV_XD_SPR"}


def _timing(instructions: Sequence[str]) -> str:
    sources = _sources()
    work = [name for name in dict.fromkeys(instructions) if name not in _CONTROL]
    kinds = {sources.get(name) or "estimate" for name in work}
    order = ("measured", "published", "derived", "estimate")
    flat = {kind for joined in kinds for kind in joined.split("/")}
    return ", ".join(kind for kind in order if kind in flat) or "none: no instruction of its own"


def _run_length(instructions: Sequence[str]) -> str:
    """`VADD x 2, BAR, VMUL`."""
    runs: list[list[Any]] = []
    for name in instructions:
        if runs and runs[-1][0] == name:
            runs[-1][1] += 1
        else:
            runs.append([name, 1])
    shown = [name if count == 1 else f"{name} x {count}" for name, count in runs]
    return ", ".join(shown if len(shown) <= 10 else [*shown[:9], f"... ({len(instructions)} in all)"])


def row(op: str, found: dict[tuple[str, str], Probe]) -> str:
    """One op's line of the page."""
    if op in _ELSEWHERE:
        types, expansion = _ELSEWHERE[op]
        return f"| {op} | {types} | | {expansion} | estimate |"
    by_layout = {layout: [name for name in TYPES if found[name, layout].works] for layout in ("ND", "DN")}
    shown = next((found[name, "ND"] for name in TYPES if found[name, "ND"].works), None)
    if shown is None:
        shown = next((found[name, "DN"] for name in TYPES if found[name, "DN"].works), Probe(False))
    first = ", ".join(by_layout["ND"]) or "none"
    if op in _CUBE:
        second = ""
    elif by_layout["DN"] == by_layout["ND"]:
        second = "the same"
    else:
        second = ", ".join(by_layout["DN"]) or "none"
    return (
        f"| {op} | {first} | {second} | {_run_length(shown.instructions)} | {_timing(shown.instructions)} |"
    )


def rows_of(ops: Sequence[str], toolchain: Toolchain) -> list[str]:
    """The lines of those ops, probed."""
    wanted = [
        (op, name, layout) for op in ops for name in TYPES for layout in ("ND", "DN") if op not in _ELSEWHERE
    ]
    toolchain.runner()
    with ThreadPoolExecutor(2) as pool:
        found = dict(
            zip(wanted, pool.map(lambda key: probe(key[0], key[1], key[2], toolchain), wanted), strict=True)
        )
    by_op: dict[str, dict[tuple[str, str], Probe]] = {op: {} for op in ops}
    for (op, name, layout), result in found.items():
        by_op[op][name, layout] = result
    return [row(op, by_op[op]) for op in ops]


_BY_HAND = "\n## Device tests of pto-isa\n"  # from here on the page is written by hand


def _device_tests() -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(_BY_HAND) :]


def page(toolchain: Toolchain) -> str:
    parts = [_HEAD]
    for title, ops in families():
        lines = rows_of(ops, toolchain)
        parts.append(f"\n## {title}\n\n{_COLUMNS}\n" + "\n".join(lines) + "\n")
    return "".join([*parts, _conversions(toolchain), _device_tests()])


def _conversions(toolchain: Toolchain) -> str:
    """Which type TCVT turns into which."""
    pairs = [(source, to) for source in TYPES for to in TYPES if source != to]

    def works(pair: tuple[str, str]) -> bool:
        source, to = map(_dtype, pair)
        operands = operands_of(OpRequest("TCVT", source, ROWS, COLS, to=to))
        return (
            run_op("TCVT", operands, EmbeddedOptions(timing_only=True), toolchain).simulation.failure is None
        )

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(pairs, pool.map(works, pairs), strict=True))
    lines = [
        "\n## TCVT, from each type to each\n",
        "| from \\ to | " + " | ".join(TYPES) + " |",
        "|---" * 10 + "|",
    ]
    for source in TYPES:
        cells = ["" if source == to else "yes" if found[source, to] else "no" for to in TYPES]
        lines.append(f"| {source} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


_COLUMNS = """| op | row major (ND) | column major (DN) | becomes, for 16 x 64 of the first type | cycles are |
|---|---|---|---|---|"""
_HEAD = """# Tile ops

Generated by `tools/tile_op_table.py`, all but the last chapter: each op was run on the modelled core with every element
type, its tiles row by row and column by column. A type that is not listed ends the run with "not supported" and the
kernel's line.

- An op is lowered for each family: what stands here was run on a2a3 (Ascend910B1 to B4). The same types give
  the same results on a5 (Ascend950), where a vector op is one function (`VF`, with `RV_` instructions on lanes of its
  own); its times are those of [accuracy-a5.md](accuracy-a5.md).
- Only on a5: TMATMUL of float8_e4m3, float8_e5m2 (in any pair) and hifloat8; TMATMUL_MX; TPUSH into another core's memory;
  TCVT of float32 and float16 to hifloat8 and back to float32, and of bfloat16 to float4_e2m1 and float4_e1m2 and back.
- "becomes" are hardware instructions under the names that the vendor's simulator prints; `MOV_SPR_XN` sets masks, counts
  and strides. Longer tiles take more repeats or more instructions of the same kind.
- "cycles are" names the weakest and the best kind of source behind the instructions' timing (`chips/*.toml` names each):
  measured on a chip, published by the vendor, derived from those, or an estimate.
- Tiles of the cube core are boxed: Mat NZ or ZN, Left ZZ (a2a3) or NZ (a5), Right ZN, Acc NZ.
- TASSIGN, TRESHAPE and TSUBVIEW issue nothing. TPUSH, TPOP, TFREE and TALLOC through global memory are a TSTORE or TLOAD
  with cross-core flags; so are TPUSH, TPOP and TFREE of a `TMPipe`, which on the 950 may also go straight into the other
  core's memory (TMOV, TINSERT), as the library has them, without its control pipes (`CTRL_FIFO`). TPUT and TGET are TLOAD
  and TSTORE through their staging tile; TNOTIFY is ST_ATOMIC or ST_DEV, TWAIT an LD_DEV that waits. TPREFETCH and
  TPREFETCH_ASYNC issue nothing.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    text = page(Toolchain.find())
    if options.check:
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
        print("docs/tile-ops.md is current" if current else "docs/tile-ops.md is out of date")
        return 0 if current else 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.name}: {sum(len(ops) for _, ops in families())} ops")
    return 0


if __name__ == "__main__":
    sys.exit(main())
