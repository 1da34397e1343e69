"""Which elements of its sources an element of a tile op's result is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.tile_calls import Number, TileCall
from insight_trace.debug.tile_layout import Tile
from insight_trace.recording.stream import distinct

_MOVES = {"TMOV", "TLOAD", "TSTORE", "TFILLPAD", "TFILLPAD_INPLACE", "TFILLPAD_EXPAND", "TPUSH", "TCVT"}
_WHOLE = ("TGATHER", "TSCATTER", "MGATHER", "MSCATTER", "TSORT32", "TMRGSORT", "THISTOGRAM", "TIMG2COL",
          "TINTERLEAVE", "TDEINTERLEAVE", "TPAIRREDUCESUM", "TPART", "TQUANT", "TDEQUANT")  # fmt: skip
# what op takes its result for one of its sources, too
_INTO = {"TMULADDDST", "TFUSEDMULADD", "TFUSEDMULADDRELU", "TAXPY"}
_NO_SOURCE = {"TEXPANDS", "TCI", "TTRI", "TRANDOM"}
# the operand that is only scratch, where an op has so many
_SCRATCH = {
    **{(f"TROW{name}", 3): 2 for name in ("MAX", "MIN", "SUM", "PROD", "ARGMAX", "ARGMIN")},
    **{(f"TROWEXPAND{name}", 4): 3 for name in ("ADD", "SUB", "MUL", "DIV", "MAX", "MIN", "EXPDIF")},
    ("TCOLSUM", 4): 2, ("TXOR", 4): 3, ("TXORS", 4): 3, ("TREM", 4): 3, ("TREMS", 4): 3, ("TPOW", 4): 3,
    ("TPOWS", 4): 3, ("TRSQRT", 3): 2, ("TPRELU", 4): 3, ("TSEL", 5): 4, ("TSELS", 5): 3, ("TTRANS", 3): 2,
    ("TGATHER", 4): 3, ("TADDDEQRELU", 5): 4,
}  # fmt: skip
NZ = 2  # pto::Layout


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """Some elements of an operand: rows and columns, each pair once."""

    operand: int
    row: NDArray[np.int64]
    col: NDArray[np.int64]


def sources(call: TileCall, result: Elements) -> list[Elements]:
    """The elements that were read to make these; of ops whose data decide, whole operands."""
    dst = call.operands[result.operand]
    assert isinstance(dst, Tile)
    if call.op in _NO_SOURCE:
        return []
    scratch = _SCRATCH.get((call.op, len(call.operands)), -1)
    found = []
    for place, (number, tile) in enumerate(_inputs(call, result.operand, scratch)):
        rows, cols = _of_source(call, dst, tile, place, result.row, result.col)
        height, width = tile.valid if tile.valid[0] and tile.valid[1] else (tile.rows, tile.cols)
        inside = (rows >= 0) & (cols >= 0) & (rows < height) & (cols < width)
        if inside.any():
            pairs = distinct(rows[inside] * width + cols[inside])
            found.append(Elements(number, pairs // width, pairs % width))
    return found


def _inputs(call: TileCall, result: int, scratch: int) -> list[tuple[int, Tile]]:
    taken = [(n, t) for n, t in call.tiles if n not in (result, scratch)]
    if (call.op == "TMATMUL_ACC" and len(call.tiles) == 3) or call.op in _INTO:
        taken.append((result, call.tiles[0][1]))
    return taken


def is_scratch(call: TileCall, operand: int) -> bool:
    """Whether an operand only holds what the op computes on the way."""
    return _SCRATCH.get((call.op, len(call.operands)), -1) == operand


Pair = tuple[NDArray[np.int64], NDArray[np.int64]]


def moved_from(call: TileCall, tile: Tile, row: NDArray[np.int64], col: NDArray[np.int64]) -> Pair:
    """Where the elements of an op that only moves lie in its source, one for each."""
    dst = call.operands[0]
    assert isinstance(dst, Tile)
    return _of_source(call, dst, tile, 0, row, col)


def _of_source(
    call: TileCall, dst: Tile, tile: Tile, place: int, row: NDArray[np.int64], col: NDArray[np.int64]
) -> Pair:
    op = call.op
    if op.startswith("TMATMUL"):
        return _of_product(call, tile, place, row, col)
    if op.startswith(_WHOLE):
        return _whole(tile)
    if op == "TTRANS":
        return col, row
    if op in ("TEXTRACT", "TINSERT"):
        options = [int(o.value) for o in call.operands if isinstance(o, Number)][-2:]
        down, right = options if len(options) == 2 else (0, 0)
        return (row + down, col + right) if op == "TEXTRACT" else (row - down, col - right)
    if op == "TCONCAT":
        width = next(t for n, t in call.tiles if n == 1).valid[1]
        return (row, col) if place == 0 else (row, col - width)
    if op in ("TCMP", "TCMPS", "TSEL", "TSELS") and dst.valid != tile.valid:
        return _rows_of(tile, row)
    if op.startswith("TROW") and (place > 0 or not op.startswith("TROWEXPAND") or op == "TROWEXPAND"):
        return _rows_of(tile, row)
    if op.startswith("TCOL") and (place > 0 or not op.startswith("TCOLEXPAND") or op == "TCOLEXPAND"):
        return _cols_of(tile, col)
    if op in _MOVES:
        return _moved(dst, tile, row, col)
    if dst.valid == tile.valid or place == 0:
        return row, col
    return _rows_of(tile, row) if tile.valid[0] == dst.valid[0] else _whole(tile)


def _of_product(
    call: TileCall, tile: Tile, place: int, row: NDArray[np.int64], col: NDArray[np.int64]
) -> Pair:
    # in the order of the operands: (accumulator), left, right, (bias)
    accumulates = call.op == "TMATMUL_ACC" and len(call.tiles) == 4
    if tile.memory == call.tiles[0][1].memory and (accumulates or call.op == "TMATMUL_ACC"):
        return row, col
    kind = place - (1 if accumulates else 0)
    if kind == 0:
        return _rows_of(tile, row)
    return _cols_of(tile, col)


def _moved(dst: Tile, src: Tile, row: NDArray[np.int64], col: NDArray[np.int64]) -> Pair:
    if src.in_global and src.layout == NZ:
        return _from_boxes(src, row, col)
    if dst.in_global and dst.layout == NZ:
        return _to_boxes(dst, row, col)
    return row, col


def _from_boxes(tensor: Tile, row: NDArray[np.int64], col: NDArray[np.int64]) -> Pair:
    """Element of a matrix in the flat rows of a tensor [n, columns of boxes, rows of boxes, 16, line]."""
    _, across, down, height, width = tensor.shape
    place = ((col // width) * down + row // height) * height + row % height
    del across
    return place, col % width


def _to_boxes(tensor: Tile, row: NDArray[np.int64], col: NDArray[np.int64]) -> Pair:
    _, _, down, height, width = tensor.shape
    box, inner = row // height, row % height
    return (box % down) * height + inner, (box // down) * width + col


def _whole(tile: Tile) -> Pair:
    rows, cols = tile.valid
    r, c = np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij")
    return r.reshape(-1), c.reshape(-1)


def _rows_of(tile: Tile, row: NDArray[np.int64]) -> Pair:
    rows, cols = tile.valid
    wanted = distinct(row)
    if rows == 1 and cols > 1 and (wanted.max(initial=0) >= 1):  # a line of one number per row
        return np.zeros_like(wanted), wanted
    return np.repeat(wanted, cols), np.tile(np.arange(cols), len(wanted))


def _cols_of(tile: Tile, col: NDArray[np.int64]) -> Pair:
    rows, _ = tile.valid
    wanted = distinct(col)
    return np.tile(np.arange(rows), len(wanted)), np.repeat(wanted, rows)
