"""Operands of a tile op that is asked for by name: which tiles it takes, of which size, and where they lie."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from insight_trace.dtypes import DType, dtype_named
from insight_trace.errors import RequestError
from insight_trace.simulate.embedded.engine_objects import INCLUDE
from insight_trace.simulate.embedded.op_script import (
    GlobalSpec,
    Option,
    ScalarSpec,
    Spec,
    TileSpec,
    op_numbers,
)

_STEP = 0x4000  # sources at 0x0 and 0x4000, the result at 0x8000: where the public measurements put them

_ROW = re.compile(r"^TILE_OP\((\w+), \d, \d, ([\w, ]+)\)", re.M)
_OPERANDS = ("dst", "src", "number", "scratch")  # what a row may call an operand
_ROW_REDUCE = frozenset(["TROWMAX", "TROWMIN", "TROWSUM", "TROWPROD"])
_COLUMN_REDUCE = frozenset(["TCOLMAX", "TCOLMIN", "TCOLPROD", "TCOLSUM"])


@dataclass(frozen=True)
class OpRequest:
    """One op on tiles of one size."""

    op: str
    dtype: DType
    rows: int
    cols: int
    valid_rows: int | None = None
    valid_cols: int | None = None
    to: DType | None = None  # TCVT
    depth: int | None = None  # k of a matmul
    addresses: tuple[int, ...] = ()  # sources in order, then the result
    in_place: bool = False
    scalar_first: bool = False
    pieces: int = 1  # outer extents of a TLOAD's tensor
    padded_cols: int | None = None
    columns: bool = False  # TLOAD of a column-major tensor
    dynamic: bool = True  # the valid size is known only at run time, as in generated kernels
    timing_only: bool = True


def operands_of(request: OpRequest, target: str = "a2a3") -> list[Spec]:
    """The op's operands in the order in which kernels pass them, as they lie on that family."""
    op = request.op
    if op not in op_numbers():
        near = difflib.get_close_matches(op.upper(), op_numbers(), 3)
        known = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(op_numbers()))}"
        raise RequestError(f"there is no tile op '{op}'", hint=known)
    _check(request)
    if op in ("TLOAD", "TSTORE"):
        return _transfer(request)
    if op == "TMATMUL":
        return _matmul(request, target)
    words = _named_operands().get(op)
    if words is not None:
        return _of_one_size(request, words)
    if op == "TCVT":
        dst, src = _placed(request, 1)
        to = request.to or request.dtype
        return [_retyped(dst, to), src, Option(1), Option(1 if to.is_float else 0)]
    return _shaped(request)


@functools.cache
def _named_operands() -> dict[str, tuple[str, ...]]:
    """What the operands of an op are, for those whose row in a table says it."""
    tables = sorted((INCLUDE / "insight_trace" / "ops").glob("*.def"))
    rows = [row for table in tables for row in _ROW.findall(table.read_text(encoding="utf-8"))]
    return {op: tuple(words.split(", ")) for op, words in rows}


def _of_one_size(request: OpRequest, words: tuple[str, ...]) -> list[Spec]:
    """Ops whose tiles are all of the request's size."""
    unknown = sorted(set(words) - set(_OPERANDS))
    if unknown:
        raise RequestError(
            f"the row of {request.op} has an operand '{unknown[0]}'", hint=f"known: {', '.join(_OPERANDS)}"
        )
    wanted = words.count("src")
    result, *sources = _placed(request, wanted) if wanted else [_tile(request, _address(request, 0, 0))]
    spare = max(3, wanted + 1)
    made: list[Spec] = []
    for word in words:
        if word == "number":
            made.append(ScalarSpec(request.dtype, 1 if sources else 0))
        elif word == "scratch":
            made.append(_tile(request, _address(request, spare, spare)))
        else:
            made.append(result if word == "dst" else sources[words[: len(made)].count("src")])
    if request.scalar_first and words[:3] == ("dst", "src", "number"):
        return [made[0], made[2], made[1]]
    return made


def _shaped(request: OpRequest) -> list[Spec]:
    """Ops whose result has another shape than their source."""
    op, dtype, rows, cols = request.op, request.dtype, request.rows, request.cols
    block = 32 // dtype.size
    source = _tile(request, _address(request, 0, 0))
    result_at, spare_at = _address(request, 1, 1), _address(request, 2, 2)
    aligned = -(-rows // block) * block
    column = TileSpec(dtype, aligned, 1, result_at, layout="DN", valid_rows=source.valid_rows, valid_cols=1)
    row = TileSpec(dtype, 1, cols, result_at, valid_cols=source.valid_cols)
    spare = TileSpec(dtype, rows, cols, spare_at)
    if op in _ROW_REDUCE:
        return [column, source, spare]
    if op == "TCOLSUM":
        return [row, source, spare, Option(1)]
    if op in _COLUMN_REDUCE:
        return [row, source]
    if op == "TROWEXPAND":
        return [source, TileSpec(dtype, rows, block, result_at)]
    if op.startswith("TROWEXPAND"):
        return [_at(source, spare_at), source, column]
    if op == "TCOLEXPAND":
        return [source, row]
    if op.startswith("TCOLEXPAND"):
        return [_at(source, spare_at), source, row]
    if op == "TTRANS":
        across = TileSpec(dtype, cols, rows, result_at)
        return [across, source, spare]
    if op == "TSEL":
        mask_type = dtype_named("uint8")
        assert mask_type is not None
        mask = TileSpec(mask_type, rows, max(32, cols // 8), _address(request, 3, 3))
        temporary = TileSpec(mask_type, 1, 32, _address(request, 4, 4))
        return [_at(source, spare_at), mask, source, _at(source, result_at), temporary]
    raise RequestError(
        f"'{op}' cannot be asked for by size alone", hint="write a kernel that calls it, and replay that"
    )


def _check(request: OpRequest) -> None:
    if request.rows < 1 or request.cols < 1:
        raise RequestError(f"a tile has at least one row and column, not {request.rows} x {request.cols}")
    for name, valid, whole in (
        ("rows", request.valid_rows, request.rows),
        ("columns", request.valid_cols, request.cols),
    ):
        if valid is not None and not 0 <= valid <= whole:
            raise RequestError(f"{valid} valid {name} do not fit a tile of {whole}")
    if request.cols * request.dtype.size % 32 and request.op not in ("TMATMUL", "TLOAD"):
        raise RequestError(
            f"a row of {request.cols} {request.dtype.short} is {request.cols * request.dtype.size} bytes",
            hint="rows of a tile are whole blocks of 32 bytes; use --valid-cols for less",
        )


def _address(request: OpRequest, index: int, place: int) -> int:
    """The address given for that operand, else its usual place; large tiles push the later ones back."""
    if index < len(request.addresses):
        return request.addresses[index]
    size = request.rows * request.cols * max(request.dtype.size, request.to.size if request.to else 0)
    return place * -(-size // _STEP) * _STEP


def _tile(request: OpRequest, address: int) -> TileSpec:
    return TileSpec(
        request.dtype,
        request.rows,
        request.cols,
        address,
        valid_rows=request.valid_rows,
        valid_cols=request.valid_cols,
        dynamic=3 if request.dynamic else 0,
    )


def _placed(request: OpRequest, sources: int) -> list[TileSpec]:
    """The result first, as ops take it; its place in memory comes after the sources'."""
    tiles = [_tile(request, _address(request, i, i)) for i in range(sources)]
    result = _tile(request, tiles[0].address if request.in_place else _address(request, sources, sources))
    return [result, *tiles]


def _at(tile: TileSpec, address: int) -> TileSpec:
    return TileSpec(
        tile.dtype,
        tile.rows,
        tile.cols,
        address,
        valid_rows=tile.valid_rows,
        valid_cols=tile.valid_cols,
    )


def _retyped(tile: TileSpec, dtype: DType) -> TileSpec:
    return TileSpec(
        dtype, tile.rows, tile.cols, tile.address, valid_rows=tile.valid_rows, valid_cols=tile.valid_cols
    )


def _matmul(request: OpRequest, target: str) -> list[Spec]:
    m, k, n = request.rows, request.depth or request.rows, request.cols
    block = 32 // request.dtype.size
    acc_type = dtype_named("float32" if request.dtype.is_float else "int32")
    assert acc_type is not None

    def up(value: int, unit: int) -> int:
        return -(-value // unit) * unit

    rows, depth, cols = up(m, 16), up(k, block), up(n, 16)
    left = TileSpec(request.dtype, rows, depth, 0, "l0a", "NZ" if target == "a5" else "ZZ", m, k)
    right = TileSpec(request.dtype, depth, cols, 0, "l0b", "ZN", k, n)
    acc = TileSpec(acc_type, rows, cols, 0, "l0c", "NZ", m, n, fractal=1024)
    return [acc, left, right]


def _transfer(request: OpRequest) -> list[Spec]:
    """A vector tile and a packed tensor of `pieces` outer extents."""
    import numpy as np

    rows, cols, pieces = request.rows, request.cols, request.pieces
    tile_cols = request.padded_cols or -(-cols * request.dtype.size // 32) * 32 // request.dtype.size
    whole = rows * cols
    data = np.zeros(whole, request.dtype.numpy)
    per_piece = whole // pieces
    shape: Sequence[int]
    if request.columns:
        shape, strides = (1, 1, pieces, rows, cols // pieces), (whole, whole, per_piece, 1, rows)
        tile = TileSpec(request.dtype, rows, cols, layout="DN")
    else:
        shape, strides = (1, 1, pieces, rows // pieces, cols), (whole, whole, per_piece, cols, 1)
        tile = TileSpec(request.dtype, rows, tile_cols, valid_rows=rows, valid_cols=cols)
    a, b, c, d, e = shape
    view = GlobalSpec(data, request.dtype, (a, b, c, d, e), strides, layout=int(request.columns))
    if request.op == "TLOAD":
        return [tile, view]
    return [view, tile, Option(0), Option(0)]
