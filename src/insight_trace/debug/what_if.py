"""What if a tile op had been given something else: one more run tells whether the outputs are right then."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.arguments.buffers import view_of
from insight_trace.debug.mismatch import Wrong, distance, expected_of, unlike
from insight_trace.debug.slices import Backward
from insight_trace.debug.suspects import ROUND_MODES, Evidence, Site
from insight_trace.debug.tile_calls import Number, TileCall
from insight_trace.debug.tile_layout import Tile, as_double, element_size, numpy_type, type_name
from insight_trace.simulate.embedded.journaling import Change

_SECANTS = 6
_OTHER_ADDRESSES = 4


@dataclass(frozen=True)
class Repair:
    """A change of every execution of a line, and what it leads to."""

    site: Site
    text: str
    changes: tuple[Change, ...]
    weight: float = 0.0  # how well it fits what stands out


@dataclass(frozen=True)
class Outcome:
    """A repair that was tried."""

    repair: Repair
    unlike: int  # elements of the outputs that still differ
    explained: float  # 1: all of the difference, 0: none

    @property
    def exact(self) -> bool:
        return self.unlike == 0


class Bench:
    """Runs a dispatch with changes and compares its outputs with what was recorded."""

    def __init__(self, backward: Backward, wrong: Sequence[Wrong], seconds: float) -> None:
        self.backward = backward
        self.session = backward.session
        self.wrong = wrong
        self.runs = 0
        self._end = time.monotonic() + seconds
        self._expected = {
            tensor.slot: (tensor, want)
            for tensor in self.session.arguments.tensors
            if tensor.is_output and (want := expected_of(tensor)) is not None
        }
        self._distance = sum(distance(one.got, one.want) for one in wrong) or 1.0

    @property
    def over(self) -> bool:
        return time.monotonic() > self._end

    def outputs(self, changes: tuple[Change, ...]) -> dict[int, NDArray[Any]] | None:
        """Output slots of a run with these changes; None: it does not end well."""
        self.runs += 1
        run = self.session.run(changes)
        if run.failure is not None:
            return None
        return {
            slot: np.asarray(view_of(tensor, run.buffers[slot])).reshape(tensor.shape)
            for slot, (tensor, _) in self._expected.items()
            if slot in run.buffers
        }

    def tried(self, repair: Repair) -> Outcome | None:
        found = self.outputs(repair.changes)
        return None if found is None else self.outcome(repair, found)

    def outcome(self, repair: Repair, found: dict[int, NDArray[Any]]) -> Outcome:
        left = sum(unlike(values, self._expected[slot][1]) for slot, values in found.items())
        far = sum(distance(values, self._expected[slot][1]) for slot, values in found.items())
        return Outcome(repair, left, max(0.0, 1.0 - far / self._distance))


def try_repairs(bench: Bench, evidence: Evidence) -> list[Outcome]:
    """Repairs in the order in which they are likely, until one makes every output right."""
    calls = bench.backward.calls
    plans: list[tuple[float, int, Repair]] = []
    for rank, site in enumerate(evidence.sites):
        for repair in _repairs(site, calls, evidence, bench):
            plans.append((-(site.score + repair.weight), rank, repair))
    plans.sort(key=lambda plan: plan[:2])
    outcomes: list[Outcome] = []
    for _, _, repair in plans:
        if bench.over:
            break
        outcome = bench.tried(repair)
        if outcome is None:
            continue
        outcomes.append(outcome)
        if outcome.exact:
            break
    if not any(outcome.exact for outcome in outcomes):
        outcomes += _numbers(bench, evidence)
    return sorted(outcomes, key=lambda o: (o.unlike > 0, -o.explained, o.unlike, -o.repair.weight))


def _repairs(site: Site, calls: Any, evidence: Evidence, bench: Bench) -> Iterator[Repair]:
    some: TileCall = calls[site.calls[0]]
    reasons = " ".join(site.reasons)
    yield from _round_modes(site, some)
    yield from _types(site, some, calls, evidence, 1.0 if "is written and" in reasons else -1.0)
    sized = 1.0 if "all but" in reasons or "valid" in reasons else -0.5
    yield from _valid_sizes(site, some, calls, sized)
    yield from _addresses(
        site, some, calls, bench, 0.0 if "older" in reasons or "nobody" in reasons else -1.5
    )


def _round_modes(site: Site, some: TileCall) -> Iterator[Repair]:
    if some.op != "TCVT":
        return
    operand, number = next(((i, n) for i, n in some.numbers if n.type < 0), (-1, Number(0, -1)))
    if operand < 0:
        return
    for mode in (1, 0, 5, 2, 3, 4, 6):
        if mode != number.value:
            changes = tuple(Change(call, operand, "option", mode) for call in site.calls)
            yield Repair(site, f"rounding by {ROUND_MODES[mode]}", changes, 0.5 if mode < 2 else -0.5)


def _types(site: Site, some: TileCall, calls: Any, evidence: Evidence, weight: float) -> Iterator[Repair]:
    near: set[int] = set()
    for step in evidence.wrong.steps.values():
        if step.call is not None:
            near |= {tile.type for _, tile in step.call.tiles}
    used = {tile.type for _, tile in some.tiles}
    for old in sorted(used):
        for new in sorted(near - {old}):
            if element_size(new) != element_size(old):
                continue
            changes = tuple(
                Change(call, operand, "type", new)
                for call in site.calls
                for operand, given in enumerate(calls[call].operands)
                if given.type == old and not (isinstance(given, Tile) and given.in_global)
            )
            yield Repair(site, f"{type_name(new)} instead of {type_name(old)}", changes, weight)


def _valid_sizes(site: Site, some: TileCall, calls: Any, weight: float) -> Iterator[Repair]:
    tiles = [(operand, tile) for operand, tile in some.tiles if not tile.in_global]
    for what, by in (("rows", 1), ("cols", 1), ("rows", -1), ("cols", -1)):
        field = f"valid_{what}"
        for chosen in ([operand for operand, _ in tiles], *([operand] for operand, _ in tiles)):
            if len(tiles) == 1 and len(chosen) == 1 and chosen != [tiles[0][0]]:
                continue
            changes = []
            for call in site.calls:
                for operand in chosen:
                    tile = calls[call].operands[operand]
                    most = tile.rows if what == "rows" else tile.cols
                    value = getattr(tile, field) + by
                    if 0 < value <= most:
                        changes.append(Change(call, operand, field, value))
            if changes:
                whose = "" if len(chosen) == len(tiles) else f" of operand {chosen[0]}"
                text = f"{abs(by)} valid {what} {'more' if by > 0 else 'fewer'}{whose}"
                yield Repair(
                    site, text, tuple(changes), weight - (0.3 if whose else 0.0) - (0.2 if by < 0 else 0)
                )
            if len(tiles) == 1:
                break


def _addresses(site: Site, some: TileCall, calls: Any, bench: Bench, weight: float) -> Iterator[Repair]:
    known: dict[tuple[int, int], set[int]] = {}
    for number in range(len(calls)):
        if calls[number].core == some.core:
            for _, tile in calls[number].tiles:
                if not tile.in_global:
                    known.setdefault(
                        (tile.memory, tile.rows * tile.cols * element_size(tile.type)), set()
                    ).add(tile.address)
    del bench
    for operand, tile in some.tiles:
        if tile.in_global:
            continue
        others = known.get((tile.memory, tile.rows * tile.cols * element_size(tile.type)), set())
        near = sorted(others - {tile.address}, key=lambda a: (abs(a - tile.address), a))[:_OTHER_ADDRESSES]
        for address in near:
            changes = tuple(
                Change(call, operand, "address", address)
                for call in site.calls
                if calls[call].operands[operand].address == tile.address
            )
            text = f"operand {operand} at 0x{address:x} instead of 0x{tile.address:x}"
            yield Repair(site, text, changes, weight - (0.2 if operand == 0 else 0.0))


# --- numbers: the one that makes the worst element right --------------------------------------------------------


def _numbers(bench: Bench, evidence: Evidence) -> list[Outcome]:
    found = []
    for site in evidence.sites:
        some = bench.backward.calls[site.calls[0]]
        for operand, number in some.numbers:
            if number.type < 0 or bench.over:
                continue
            outcome = _solved(bench, site, operand, number)
            if outcome is not None:
                found.append(outcome)
    return found


def _solved(bench: Bench, site: Site, operand: int, number: Number) -> Outcome | None:
    """The number by which the worst element becomes what was recorded (secants), rounded to a plain one if that serves."""
    one = bench.wrong[0]
    with np.errstate(all="ignore"):
        gap = np.abs(as_double(one.got) - as_double(one.want)).reshape(-1)
    gap[~np.isfinite(gap)] = 0
    worst = int(gap.argmax())
    want = float(as_double(one.want).reshape(-1)[worst])

    def at(value: float) -> tuple[float, Outcome] | None:
        bits = _bits(value, number.type)
        changes = tuple(Change(call, operand, "scalar", bits) for call in site.calls)
        found = bench.outputs(changes)
        if found is None or one.tensor.slot not in found:
            return None
        got = float(as_double(found[one.tensor.slot]).reshape(-1)[worst])
        repair = Repair(site, f"{value:.9g} instead of {number.value:.9g} as operand {operand}", changes)
        return got - want, bench.outcome(repair, found)

    x0 = float(number.value)
    f0 = float(as_double(one.got).reshape(-1)[worst]) - want
    x1 = x0 * 1.125 if x0 else 0.125
    best: tuple[float, float, Outcome] | None = None
    for _ in range(_SECANTS):
        tried = None if bench.over else at(x1)
        if tried is None or not np.isfinite(tried[0]):
            break
        f1, outcome = tried
        if best is None or outcome.explained > best[1]:
            best = (x1, outcome.explained, outcome)
        if outcome.exact or f1 == f0:
            break
        x0, x1, f0 = x1, x1 - f1 * (x1 - x0) / (f1 - f0), f1
    if best is None or best[2].exact:
        return best[2] if best else None
    for digits in range(1, 8):
        plain = float(f"{best[0]:.{digits}g}")
        if best[1] > 0.9 and plain != best[0] and not bench.over:
            tried = at(plain)
            if tried is not None and tried[1].exact:
                return tried[1]
    return best[2]


def _bits(value: float, type_: int) -> int:
    kind = numpy_type(type_)
    element = np.array([round(value) if kind.kind in "iu" else value]).astype(
        np.float32 if kind.kind == "V" else kind
    )
    return int.from_bytes(element.astype(kind).tobytes().ljust(8, b"\0")[:8], "little")
