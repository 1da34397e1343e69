"""What tile ops compute, in double: the result that an op would have without rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.op_flow import moved_from
from insight_trace.debug.tile_calls import Number, TileCall
from insight_trace.debug.tile_layout import Tile

Doubles = NDArray[np.float64]
Values = Callable[[int], Doubles]  # operand -> its elements, whole

_TWO: dict[str, Callable[..., Any]] = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide, "MAX": np.maximum, "MIN": np.minimum,
    "EXPDIF": lambda a, b: np.exp(a - b),
}  # fmt: skip
_ONE: dict[str, Callable[..., Any]] = {
    "TEXP": np.exp, "TLOG": np.log, "TSQRT": np.sqrt, "TRSQRT": lambda a: 1 / np.sqrt(a), "TABS": np.abs,
    "TNEG": np.negative, "TRECIP": lambda a: 1 / a, "TRELU": lambda a: np.maximum(a, 0),
}  # fmt: skip
_FOLD: dict[str, Callable[..., Any]] = {"SUM": np.sum, "MAX": np.max, "MIN": np.min, "PROD": np.prod}
_MOVED = {"TLOAD", "TSTORE", "TMOV", "TEXTRACT", "TINSERT", "TTRANS", "TCVT", "TCONCAT", "TFILLPAD",
          "TFILLPAD_INPLACE", "TFILLPAD_EXPAND", "TPUSH"}  # fmt: skip


def double_result(call: TileCall, values: Values) -> Doubles | None:
    """The valid part of the first operand; None: this op has no double form, and its own result stands."""
    with np.errstate(all="ignore"):
        return quiet_result(call, values)


def quiet_result(call: TileCall, values: Values) -> Doubles | None:
    """The same, where NumPy has been told not to warn."""
    op = call.op
    dst = call.operands[0]
    if not isinstance(dst, Tile):
        return None
    rows, cols = dst.valid
    numbers = [float(n.value) for _, n in call.numbers if n.type >= 0]

    def part(operand: int) -> Doubles:
        tile = call.operands[operand]
        assert isinstance(tile, Tile)
        return values(operand)[: tile.valid[0], : tile.valid[1]]

    def shaped(operand: int) -> Doubles:
        return values(operand)[:rows, :cols]

    if op in _ONE:
        return np.asarray(_ONE[op](shaped(1)))
    if op[1:] in _TWO and op != "TEXPDIF" and len(call.tiles) >= 3:
        return np.asarray(_TWO[op[1:]](shaped(1), shaped(2)))
    if op.endswith("S") and op[1:-1] in _TWO and len(call.operands) == 3 and numbers:
        first = isinstance(call.operands[1], Number)
        tile = shaped(2 if first else 1)
        return np.asarray(_TWO[op[1:-1]](numbers[0], tile) if first else _TWO[op[1:-1]](tile, numbers[0]))
    if op == "TEXPANDS" and numbers:
        return np.full((rows, cols), numbers[0])
    if op == "TAXPY" and numbers:
        return shaped(0) + numbers[0] * shaped(1)
    if op in _MOVED:
        return _moved(call, values, rows, cols)
    if op.startswith("TROWEXPAND") or op.startswith("TCOLEXPAND"):
        return _spread(call, part, shaped, rows, cols)
    if op.startswith("TROW") and op[4:] in _FOLD:
        return _as_result(_FOLD[op[4:]](part(1), axis=1), rows, cols, down=True)
    if op.startswith("TCOL") and op[4:] in _FOLD:
        return _as_result(_FOLD[op[4:]](part(1), axis=0), rows, cols, down=False)
    if op in ("TMATMUL", "TMATMUL_ACC", "TMATMUL_BIAS"):
        return _product(call, values)
    return None


def _as_result(line: Doubles, rows: int, cols: int, *, down: bool) -> Doubles | None:
    if down and len(line) == rows:
        return np.repeat(line[:, None], cols, axis=1)
    if not down and len(line) == cols:
        return np.repeat(line[None, :], rows, axis=0)
    if len(line) == rows * cols:
        return line.reshape(rows, cols)
    return None


def _spread(
    call: TileCall, part: Callable[[int], Doubles], shaped: Callable[[int], Doubles], rows: int, cols: int
) -> Doubles | None:
    down = call.op.startswith("TROW")
    kind = call.op[len("TROWEXPAND") :]
    line = part(2 if kind else 1)
    if down:
        line = line.T if line.shape[0] != rows and line.size == rows else line
        line = line[:, :1] if line.shape[0] == rows else line.reshape(-1)[:rows, None]
    else:
        line = line[:1, :]
    if line.shape not in ((rows, 1), (1, cols)):
        return None
    if not kind:
        return np.broadcast_to(line, (rows, cols)).copy()
    return np.asarray(_TWO[kind](shaped(1), line)) if kind in _TWO else None


def _moved(call: TileCall, values: Values, rows: int, cols: int) -> Doubles | None:
    """Every element is one of the source, wherever it lies there."""
    if any(n.type >= 0 for _, n in call.numbers):
        return None  # scaled on the way
    row, col = (each.reshape(-1) for each in np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij"))
    found = np.full(rows * cols, np.nan)
    filled = np.zeros(rows * cols, bool)
    for operand, tile in [pair for pair in call.tiles if pair[0] > 0][: 2 if call.op == "TCONCAT" else 1]:
        r, c = moved_from(call, tile, row, col)
        held = values(operand)
        height, width = held.shape if tile.in_global else tile.valid
        inside = (r >= 0) & (c >= 0) & (r < min(height, held.shape[0])) & (c < min(width, held.shape[1]))
        if call.op == "TCONCAT" and operand > 1:
            c = c - call.tiles[1][1].valid[1]
            inside = ~filled & (c >= 0) & (c < width) & (r < height)
        found[inside] = held[r[inside], c[inside]]
        filled |= inside
    if not filled.all():
        own = values(0)[:rows, :cols].reshape(-1)
        found[~filled] = own[~filled]
    return found.reshape(rows, cols)


def _product(call: TileCall, values: Values) -> Doubles | None:
    dst = call.operands[0]
    assert isinstance(dst, Tile)
    tiles = [(n, t) for n, t in call.tiles if n > 0]
    if call.op == "TMATMUL_ACC" and len(call.tiles) == 4:
        tiles = tiles[1:]
    if len(tiles) < 2:
        return None
    (left, a), (right, b) = tiles[:2]
    m, k, n = a.valid[0], a.valid[1], b.valid[1]
    product = values(left)[:m, :k] @ values(right)[:k, :n]
    if call.op == "TMATMUL_ACC":
        added = 0 if len(call.tiles) == 3 else call.tiles[1][0]
        product = product + values(added)[:m, :n]
    elif call.op == "TMATMUL_BIAS" and len(tiles) == 3:
        product = product + values(tiles[2][0])[:1, :n]
    rows, cols = dst.valid
    if product.shape == (rows, cols):
        return np.asarray(product)
    whole = np.array(values(0)[:rows, :cols])
    whole[:m, :n] = product[:rows, :cols]
    return whole
