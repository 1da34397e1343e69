"""Shadow arithmetic: beside a kernel's own types every element in double, op by op.

An op's introduced error is its own rounding: its result against the double result of its actual inputs. Its inherited error
is its result against that of inputs that were never rounded at all.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.debug_session import Session, open_session
from insight_trace.debug.forward import Forward
from insight_trace.debug.journal import GM, PAGE
from insight_trace.debug.mismatch import addresses_in, expected_of
from insight_trace.debug.op_double import Doubles, quiet_result
from insight_trace.debug.tile_calls import TileCall, TileCalls
from insight_trace.debug.tile_layout import Tile, as_double, element_size, is_float, largest, smallest
from insight_trace.recording.stream import distinct
from insight_trace.storage import write_whole

_CANCELLED = 1024.0  # a sum so much smaller than its terms has lost ten bits of them


@dataclass
class LineError:
    """What one line of a kernel does to precision, all of its executions together."""

    file: str
    line: int
    op: str
    calls: int = 0
    introduced: float = 0.0  # largest, absolute
    relative: float = 0.0  # the same, of the largest number in that result
    inherited: float = 0.0
    cancelled: int = 0  # elements: sums far smaller than their terms
    overflowed: int = 0  # infinite where the double result is not
    saturated: int = 0  # the largest number of the type where the double result is larger
    flushed: int = 0  # zero where the double result is not, below what the type has


@dataclass(frozen=True)
class SlotError:
    """An output: how far it is from double arithmetic, and from what was recorded."""

    slot: int
    precision: float  # largest difference to the double result
    difference: float | None  # to the recording; None: nothing was recorded
    explained: float | None  # the part of that difference that precision explains, at most 1
    exceeds: tuple[str, int, str] | None  # the first line whose inherited error is larger than the difference


@dataclass(frozen=True, eq=False)
class Shadow:
    """The precision of a run."""

    lines: tuple[LineError, ...]  # the largest introduced error, relative to its result, first
    slots: tuple[SlotError, ...]
    without: dict[str, int]  # ops without a double form, and how often: their own results stand

    def data(self) -> dict[str, Any]:
        return {
            "lines": [vars(line) for line in self.lines],
            "slots": [
                vars(slot) | {"exceeds": list(slot.exceeds) if slot.exceeds else None} for slot in self.slots
            ],
            "without_double_form": self.without,
        }


class _Beside:
    """A double for every element that has one, by where the element begins; NaN where there is none."""

    def __init__(self) -> None:
        self._local: dict[tuple[int, int], Doubles] = {}
        self._pages: dict[int, Doubles] = {}
        self.grown = 0  # how often memories were moved: views from before are of no use

    def _held(self, core: int, memory: int, end: int) -> Doubles:
        held = self._local.get((core, memory))
        if held is None or len(held) < end:
            grown = np.full(max(end, 1 << 16), np.nan)
            if held is not None:
                grown[: len(held)] = held
            self._local[core, memory] = held = grown
            self.grown += 1
        return held

    def read(self, core: int, tile: Tile, actual: Doubles) -> Doubles:
        """The doubles of a tile, and what it holds where there is none."""
        if tile.memory == GM:
            return self._read_pages((tile.address + tile.offsets()).reshape(-1), actual)
        held = self._held(core, tile.memory, _end(tile))
        found = held[tile.address + tile.offsets()].reshape(actual.shape)
        return np.where(np.isnan(found), actual, found)

    def plain(self, core: int, tile: Tile) -> Doubles | None:
        """The doubles of a tile whose rows follow each other, where they are."""
        if not tile.plain:
            return None
        held = self._held(core, tile.memory, _end(tile))
        view = held[tile.address :: element_size(tile.type)][: tile.rows * tile.cols]
        return view.reshape(tile.rows, tile.cols)

    def _read_pages(self, addresses: NDArray[np.int64], actual: Doubles) -> Doubles:
        found = np.array(actual).reshape(-1)
        for page, where in _split(addresses):
            held = self._pages.get(page)
            if held is not None:
                values = held[addresses[where] % PAGE]
                found[where] = np.where(np.isnan(values), found[where], values)
        return found.reshape(actual.shape)

    def slot(self, addresses: NDArray[np.int64], actual: Doubles) -> Doubles:
        return self._read_pages(addresses, actual)

    def write(self, core: int, tile: Tile, values: Doubles) -> None:
        """The doubles of the first rows and columns of a tile."""
        rows, cols = values.shape
        if tile.memory != GM:
            held = self._held(core, tile.memory, _end(tile))
            held[tile.address + tile.offsets()[:rows, :cols]] = values
            return
        addresses = (tile.address + tile.offsets()[:rows, :cols]).reshape(-1)
        flat = values.reshape(-1)
        for page, where in _split(addresses):
            if page not in self._pages:
                self._pages[page] = np.full(PAGE, np.nan)
            self._pages[page][addresses[where] % PAGE] = flat[where]

    def forget(self, core: int, memory: int, begin: int, end: int) -> None:
        begin = max(0, begin - 7)  # an element may begin before the first byte that changed
        if memory != GM:
            held = self._local.get((core, memory))
            if held is not None:
                held[begin:end] = np.nan
            return
        for page in range(begin // PAGE, (end - 1) // PAGE + 1):
            known = self._pages.get(page)
            if known is not None:
                known[max(0, begin - page * PAGE) : end - page * PAGE] = np.nan


@lru_cache(maxsize=1 << 16)
def _end(tile: Tile) -> int:
    return (
        tile.address
        + int(tile.offsets()[-1:, -1:].max(initial=0))
        + tile.rows * tile.cols * element_size(tile.type)
    )


def _split(addresses: NDArray[np.int64]) -> list[tuple[int, Any]]:
    pages = addresses // PAGE
    low, high = int(pages.min()), int(pages.max())
    if low == high:
        return [(low, slice(None))]
    return [(page, np.flatnonzero(pages == page)) for page in distinct(pages).tolist()]


def shadow(session: Session) -> Shadow:
    """Runs over the journal once, with double arithmetic beside it."""
    calls, beside = TileCalls(session), _Beside()
    forward = Forward(session, beside.forget)
    lines: dict[tuple[str, int, str], LineError] = {}
    without: Counter[str] = Counter()
    order: list[tuple[LineError, float]] = []
    kinds = session.journal().call_kinds().tolist()
    stacks = np.asarray(session.instructions.stack)
    entries: dict[tuple[int, str], LineError] = {}
    known: dict[int, _Op] = {}  # ops that were given the same operands have the same
    with np.errstate(all="ignore"):
        for number, kind in enumerate(kinds):
            first, last = session.call_rows(number)
            if first < 0:
                continue
            stack = int(stacks[first])
            op = known.get(kind)
            if op is None:
                op = known[kind] = _Op(calls[number], forward, beside)
            if op.dst is None:
                continue
            entry = entries.get((stack, op.call.op))
            if entry is None:
                key = (*session.place_of(first), op.call.op)
                entry = entries[stack, op.call.op] = lines.setdefault(key, LineError(*key))
            if not _one_call(forward, op, (first, last), entry, order):
                without[op.call.op] += 1
        forward.to(len(session.instructions) - 1)
        slots = _slots(session, forward, beside, order)
    ranked = sorted(lines.values(), key=lambda each: (-each.relative, each.file, each.line))
    return Shadow(tuple(ranked), slots, dict(without))


class _Op:
    """A tile op with its operands: where they lie, looked up once for all of its executions."""

    def __init__(self, call: TileCall, forward: Forward, beside: _Beside) -> None:
        self.call = call
        self.dst = call.operands[0] if call.operands and isinstance(call.operands[0], Tile) else None
        self._forward, self._beside = forward, beside
        self._views = {operand: forward.view(call.core, tile) for operand, tile in call.tiles}
        self._doubles: dict[int, Doubles | None] = {}
        self._grown = -1

    def actual(self, operand: int) -> Doubles:
        """What an operand holds now."""
        view = self._views[operand]
        if view is not None:
            return as_double(view)
        tile = self.call.operands[operand]
        assert isinstance(tile, Tile)
        return as_double(self._forward.values(self.call.core, tile))

    def _place(self, operand: int) -> Doubles | None:
        """Where its doubles lie; None: they have to be gathered."""
        while self._grown != self._beside.grown:
            self._grown = self._beside.grown
            core = self.call.core
            self._doubles = {
                o: None if t.memory == GM else self._beside.plain(core, t) for o, t in self.call.tiles
            }
        return self._doubles[operand]

    def unrounded(self, operand: int, actual: Doubles) -> Doubles:
        """What it would hold if nothing had ever been rounded."""
        found = self._place(operand)
        if found is not None:
            return np.where(np.isnan(found), actual, found)
        tile = self.call.operands[operand]
        assert isinstance(tile, Tile)
        return self._beside.read(self.call.core, tile, actual)

    def keep(self, result: Doubles) -> None:
        """The result without rounding."""
        place = self._place(0)
        if place is not None:
            place[: result.shape[0], : result.shape[1]] = result
        elif self.dst is not None:
            self._beside.write(self.call.core, self.dst, result)


def _one_call(
    forward: Forward, op: _Op, rows: tuple[int, int], entry: LineError, order: list[tuple[LineError, float]]
) -> bool:  # fmt: skip
    entry.calls += 1
    forward.to(rows[0] - 1)
    actual: dict[int, Doubles] = {}
    unrounded: dict[int, Doubles] = {}

    def values(operand: int) -> Doubles:
        found = actual.get(operand)
        if found is None:
            found = actual[operand] = op.actual(operand)
        return found

    def chained(operand: int) -> Doubles:
        found = unrounded.get(operand)
        if found is None:
            found = unrounded[operand] = op.unrounded(operand, values(operand))
        return found

    own = quiet_result(op.call, values)
    chain = quiet_result(op.call, chained) if own is not None else None
    forward.to(rows[1])
    if own is None or chain is None:
        return False
    height, width = own.shape
    got = op.actual(0)[:height, :width]
    if got.shape != own.shape:
        return False
    assert op.dst is not None
    before = entry.inherited
    _count(entry, op.call, op.dst, own, chain, got, values)
    if entry.inherited > before:
        order.append((entry, entry.inherited))
    if is_float(op.dst.type):
        op.keep(chain)
    return True


def _count(
    entry: LineError, call: TileCall, dst: Tile, own: Doubles, chain: Doubles, got: Doubles, values: Any
) -> None:
    gap, far, size = np.abs(got - own), np.abs(got - chain), np.abs(own)
    worst, furthest, scale = (
        float(gap.max(initial=0.0)),
        float(far.max(initial=0.0)),
        float(size.max(initial=0.0)),
    )
    if not (np.isfinite(worst) and np.isfinite(furthest) and np.isfinite(scale)):
        finite = np.isfinite(gap) & np.isfinite(size)
        worst, scale = float(gap[finite].max(initial=0.0)), float(size[finite].max(initial=0.0))
        furthest = float(far[np.isfinite(far)].max(initial=0.0))
        entry.overflowed += int((np.isinf(got) & np.isfinite(own)).sum())
    entry.introduced = max(entry.introduced, worst)
    entry.relative = max(entry.relative, worst / scale if scale else 0.0)
    entry.inherited = max(entry.inherited, furthest)
    top = largest(dst.type)
    if scale > top:
        entry.saturated += int(((size > top) & (np.abs(got) >= top) & np.isfinite(got)).sum())
    if worst and float(size.min(initial=0.0)) < smallest(dst.type):
        entry.flushed += int(((got == 0) & (own != 0) & (size < smallest(dst.type))).sum())
    if call.op in ("TADD", "TSUB", "TROWEXPANDSUB", "TCOLEXPANDSUB", "TROWEXPANDADD", "TCOLEXPANDADD"):
        term = np.abs(values(1)[: own.shape[0], : own.shape[1]])
        entry.cancelled += int(((np.abs(own) * _CANCELLED < term) & (own != 0)).sum())


def _slots(
    session: Session, forward: Forward, beside: _Beside, order: list[tuple[LineError, float]]
) -> tuple[SlotError, ...]:
    found = []
    for tensor in session.arguments.tensors:
        if not tensor.is_output or not tensor.numel or not tensor.dtype.is_float:
            continue
        places = addresses_in(session, tensor, np.arange(tensor.numel))
        begin, end = int(places.min()), int(places.max()) + tensor.dtype.size
        content = forward.bytes(0, GM, begin, end)
        raw = content[(places - begin)[:, None] + np.arange(tensor.dtype.size)]
        got = as_double(np.ascontiguousarray(raw).view(tensor.dtype.numpy)[:, 0])
        unrounded = beside.slot(places, got)
        precision = _largest(got - unrounded)
        want = expected_of(tensor)
        if want is None:
            found.append(SlotError(tensor.slot, precision, None, None, None))
            continue
        difference = _largest(got - as_double(want).reshape(-1))
        explained = 1.0 if not difference else min(1.0, precision / difference)
        exceeds = next((entry for entry, error in order if difference and error > difference), None)
        place = (exceeds.file, exceeds.line, exceeds.op) if exceeds else None
        found.append(SlotError(tensor.slot, precision, difference, explained, place))
    return tuple(found)


def _largest(gaps: Doubles) -> float:
    finite = np.abs(gaps[np.isfinite(gaps)])
    return float(finite.max()) if finite.size else 0.0


def write_shadow(workspace: Path) -> Shadow:
    """The precision of a workspace's run, also kept in it."""
    found = shadow(open_session(workspace))
    write_whole(workspace / "shadow.json", json.dumps(found.data(), indent=1) + "\n", sync=False)
    return found


def shadow_lines(found: Shadow, most: int = 10) -> list[str]:
    """A ranked table by line, and a word on every output."""
    from pathlib import Path

    lines = [
        "precision  line                        op                 introduced  of its result   inherited"
    ]
    for line in found.lines[:most]:
        place = f"{Path(line.file).name}:{line.line}"
        words = [f"{getattr(line, name)} {name}" for name in ("cancelled", "overflowed", "saturated", "flushed")
                 if getattr(line, name)]  # fmt: skip
        tail = f"  {', '.join(words)}" if words else ""
        lines.append(
            f"           {place:<26}  {line.op:<17} {line.introduced:>11.3g} {line.relative:>14.2g} "
            f"{line.inherited:>11.3g}{tail}"
        )
    if len(found.lines) > most:
        lines.append(f"           and {len(found.lines) - most} lines more in shadow.json")
    for slot in found.slots:
        text = f"slot {slot.slot:<6} {slot.precision:.3g} from double arithmetic"
        if slot.difference is not None:
            text += f", {slot.difference:.3g} from the recording"
            if slot.difference:
                text += f": precision explains {slot.explained:.0%} of it"
            if slot.exceeds:
                text += f"; the error is larger from {Path(slot.exceeds[0]).name}:{slot.exceeds[1]} {slot.exceeds[2]} on"
        lines.append(text)
    if found.without:
        named = ", ".join(f"{op} x {count}" for op, count in sorted(found.without.items()))
        lines.append(f"           without a double form, their own results stand: {named}")
    return lines
