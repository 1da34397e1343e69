"""Two runs of a dispatch: the first tile op whose values part, matched by op and source line."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.forward import Forward
from insight_trace.debug.journal import GM
from insight_trace.debug.slices import Backward
from insight_trace.debug.tile_calls import Number, TileCall, TileCalls
from insight_trace.debug.tile_layout import Tile, as_double, is_number, type_name

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session

_MOST_ALIGNED = 20_000  # ops of one core that are matched where they are not the same one by one


@dataclass(frozen=True, eq=False)
class OpDifference:
    """An op of both runs whose results are not the same."""

    a: TileCall
    b: TileCall
    operand: int
    index: tuple[int, int]  # the first element that differs
    count: int  # how many do
    got: tuple[Any, Any]  # their values
    largest: float | None


@dataclass(frozen=True, eq=False)
class Divergence:
    """Where two runs part."""

    matched: int
    only_a: tuple[int, ...]  # ops without a partner
    only_b: tuple[int, ...]
    first: OpDifference | None
    origin: tuple[TileCall, TileCall] | None  # an op on the way to it that was given something else
    given: tuple[str, ...] = ()  # what


def diverge(a: Session, b: Session) -> Divergence:
    """The first op, in the order of the first run, whose result differs."""
    calls_a, calls_b = TileCalls(a), TileCalls(b)
    pairs, only_a, only_b = _matched(a, b)
    forward_a, forward_b = Forward(a), Forward(b)
    for one, other in pairs:
        mine, theirs = calls_a[one], calls_b[other]
        if mine.last < 0 or theirs.last < 0:
            continue
        forward_a.to(mine.last)
        forward_b.to(theirs.last)
        found = _compared(mine, theirs, forward_a, forward_b, a, b)
        if found is not None:
            origin, given = _origin(a, b, pairs, calls_a, calls_b, found)
            return Divergence(len(pairs), tuple(only_a), tuple(only_b), found, origin, given)
    # no result differs: what was given may, and leave elements untouched that hold the same by chance
    for one, other in pairs:
        given = differences(calls_a[one], calls_b[other])
        if given:
            origin = (calls_a[one], calls_b[other])
            return Divergence(len(pairs), tuple(only_a), tuple(only_b), None, origin, given)
    return Divergence(len(pairs), tuple(only_a), tuple(only_b), None, None)


def _keys(session: Session) -> dict[int, Keyed]:
    """By core: op and text of its line, and its number."""
    found: dict[int, Keyed] = {}
    cores = session.operands.calls["core"]
    for call in range(len(session.operands.calls)):
        first, _ = session.call_rows(call)
        text = session.line_text(first) if first >= 0 else ""
        found.setdefault(int(cores[call]), []).append(((session.op_name(call), text), call))
    return found


def _matched(a: Session, b: Session) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    mine, theirs = _keys(a), _keys(b)
    pairs: list[tuple[int, int]] = []
    for core, left in mine.items():
        right = theirs.get(core, [])
        same = 0
        while same < min(len(left), len(right)) and left[same][0] == right[same][0]:
            same += 1
        pairs += [(left[i][1], right[i][1]) for i in range(same)]
        pairs += _aligned(left[same : same + _MOST_ALIGNED], right[same : same + _MOST_ALIGNED])
    pairs.sort()
    known_a, known_b = {p[0] for p in pairs}, {p[1] for p in pairs}
    only_a = [call for calls in mine.values() for _, call in calls if call not in known_a]
    only_b = [call for calls in theirs.values() for _, call in calls if call not in known_b]
    return pairs, sorted(only_a), sorted(only_b)


Keyed = list[tuple[tuple[str, str], int]]


def _aligned(left: Keyed, right: Keyed) -> list[tuple[int, int]]:
    """Ops of the same line; of lines that were changed, ops of the same name between those."""
    pairs = []
    matcher = difflib.SequenceMatcher(None, [k for k, _ in left], [k for k, _ in right], autojunk=False)
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        if kind == "equal":
            pairs += [(left[a + i][1], right[b + i][1]) for i in range(a_end - a)]
        elif kind == "replace":
            pairs += _replaced(left[a:a_end], right[b:b_end])
    return pairs


def _replaced(left: Keyed, right: Keyed) -> list[tuple[int, int]]:
    """Ops of the same name; between those, as many on either side, one op stands in the place of the other."""
    pairs = []
    names = [k[0] for k, _ in left], [k[0] for k, _ in right]
    at_a = at_b = 0
    for block in difflib.SequenceMatcher(None, *names, autojunk=False).get_matching_blocks():
        if block.a - at_a == block.b - at_b:
            pairs += [(left[at_a + i][1], right[at_b + i][1]) for i in range(block.a - at_a)]
        pairs += [(left[block.a + i][1], right[block.b + i][1]) for i in range(block.size)]
        at_a, at_b = block.a + block.size, block.b + block.size
    return pairs


def _compared(
    mine: TileCall, theirs: TileCall, forward_a: Forward, forward_b: Forward, a: Session, b: Session
) -> OpDifference | None:
    for (operand, tile), (_, other) in zip(mine.tiles, theirs.tiles, strict=False):
        if not _may_write(mine, operand):
            continue
        left = _part(forward_a.values(mine.core, tile), tile, other)
        right = _part(forward_b.values(theirs.core, other), tile, other)
        if left.shape != right.shape:
            continue
        unlike = _unlike(left, right)
        if unlike.any():
            row, col = (int(each) for each in np.argwhere(unlike)[0])
            largest = None
            if is_number(tile.type) and left.dtype == right.dtype:
                with np.errstate(all="ignore"):
                    gaps = np.abs(as_double(left) - as_double(right))[unlike]
                largest = float(np.nanmax(gaps)) if not np.isnan(gaps).all() else None
            values = (_plain(left[row, col]), _plain(right[row, col]))
            return OpDifference(mine, theirs, operand, (row, col), int(unlike.sum()), values, largest)
    del a, b
    return None


def _may_write(call: TileCall, operand: int) -> bool:
    """Results come first; what is read is compared where it was made."""
    return operand == call.tiles[0][0] or call.op in ("TDEINTERLEAVE", "TROWARGMAX", "TROWARGMIN") or (
        call.op.startswith(("TQUANT", "TMRGSORT", "TSORT"))
    )  # fmt: skip


def _part(values: NDArray[Any], tile: Tile, other: Tile) -> NDArray[Any]:
    """What is valid in either run."""
    rows, cols = max(tile.valid[0], other.valid[0]), max(tile.valid[1], other.valid[1])
    return values[:rows, :cols]


def _unlike(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    if left.dtype.itemsize != right.dtype.itemsize:
        return np.asarray(as_double(left) != as_double(right))
    kind = np.dtype(f"u{left.dtype.itemsize}")
    return np.asarray(np.ascontiguousarray(left).view(kind) != np.ascontiguousarray(right).view(kind))


def _plain(value: Any) -> float | int:
    return int(value) if value.dtype.kind in "iub" else float(np.float32(value))


# --- ops that were given something else ---------------------------------------------------------------------------


def _origin(
    a: Session, b: Session, pairs: list[tuple[int, int]], calls_a: TileCalls, calls_b: TileCalls, found: OpDifference
) -> tuple[tuple[TileCall, TileCall] | None, tuple[str, ...]]:  # fmt: skip
    """The op itself, or the last one on the way to it, in either run, whose operands differ."""
    given = differences(found.a, found.b)
    if given:
        return (found.a, found.b), given
    partner = dict(pairs)
    back = {theirs: mine for mine, theirs in pairs}
    on_the_way: set[int] = set()
    for session, call, side in ((a, found.a, 0), (b, found.b, 1)):
        tile = call.operands[found.operand]
        assert isinstance(tile, Tile)
        address = tile.address + tile.offsets()[found.index]
        slice_ = Backward(session).slice(call.core, tile.memory, np.array([address]), call.last + 1)
        for step in slice_.steps.values():
            if step.call is None:
                continue
            number = step.call.number if side == 0 else back.get(step.call.number, -1)
            if number in partner:
                on_the_way.add(number)
    for number in sorted(on_the_way, reverse=True):
        mine, theirs = calls_a[number], calls_b[partner[number]]
        given = differences(mine, theirs)
        if given:
            return (mine, theirs), given
    return None, ()


def differences(mine: TileCall, theirs: TileCall) -> tuple[str, ...]:
    """In what an op was given something else in the second run."""
    found = [] if mine.op == theirs.op else [f"{mine.op} in A, {theirs.op} in B"]
    for operand, (one, other) in enumerate(zip(mine.operands, theirs.operands, strict=False)):
        if isinstance(one, Number) and isinstance(other, Number):
            if one != other:
                found.append(f"operand {operand}: {one.text} and {other.text}")
        elif isinstance(one, Tile) and isinstance(other, Tile):
            if one.memory == GM and other.memory == GM:
                continue  # buffers lie elsewhere
            for name in ("address", "valid_rows", "valid_cols", "rows", "cols"):
                if getattr(one, name) != getattr(other, name):
                    left, right = getattr(one, name), getattr(other, name)
                    shown = (f"0x{left:x}", f"0x{right:x}") if name == "address" else (left, right)
                    found.append(f"operand {operand}: {name.replace('_', ' ')} {shown[0]} and {shown[1]}")
            if one.type != other.type:
                found.append(f"operand {operand}: {type_name(one.type)} and {type_name(other.type)}")
        else:
            found.append(f"operand {operand}: a number and a tile")
    return tuple(found)
