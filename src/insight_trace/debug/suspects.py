"""Which lines of a kernel made outputs wrong: what stands out on the way back from the wrong elements."""

from __future__ import annotations

import bisect
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from insight_trace.debug.journal import GM
from insight_trace.debug.liveness import Liveness, liveness
from insight_trace.debug.mismatch import Wrong, addresses_in
from insight_trace.debug.slices import Backward, Slice, SliceStep
from insight_trace.debug.tile_calls import TileCall, TileCalls
from insight_trace.debug.tile_layout import Tile, as_double, element_size, type_name
from insight_trace.recording.stream import distinct

_NEAR_READERS = 3
_OFF_THE_WAY = -1.5
_SAMPLE = 256  # wrong elements that are followed back; of the right ones as many
ROUND_MODES = ("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")


@dataclass
class SuspectSite:
    """A line of the kernel with one tile op: everything it executed on the way to the wrong elements."""

    file: str
    line: int
    op: str
    calls: list[int] = field(default_factory=list)  # all that were executed, not only those on the way
    score: float = 0.0
    reasons: list[str] = field(default_factory=list)

    def suspect(self, weight: float, reason: str) -> None:
        self.score += weight
        if reason not in self.reasons:
            self.reasons.append(reason)

    def says(self, words: str) -> bool:
        """Whether a reason has these words."""
        return any(words in reason for reason in self.reasons)


@dataclass
class Evidence:
    """What the way back from the wrong elements shows."""

    sites: list[SuspectSite]  # the most suspicious first
    wrong: Slice
    right: Slice
    small: bool  # all differences are of the last digit

    @cached_property
    def _lines(self) -> dict[int, tuple[int, str]]:
        return {number: (site.line, site.op) for site in self.sites for number in site.calls}

    def line_of(self, call: int) -> tuple[int, str]:
        """The line of an executed op, and its name."""
        return self._lines.get(call, (0, ""))

    @cached_property
    def _calls(self) -> tuple[set[int], set[int]]:
        wrong, right = (
            {step.call.number for step in part.steps.values() if step.call is not None}
            for part in (self.wrong, self.right)
        )
        return wrong, right

    def executions(self, site: SuspectSite) -> tuple[set[int], set[int]]:
        """Those of a line that wrong elements come from, and those that right ones do."""
        wrong, right = self._calls
        return wrong.intersection(site.calls), right.intersection(site.calls)


def sampled(flat: NDArray[np.int64], most: int = _SAMPLE) -> NDArray[np.int64]:
    """The first and others evenly over all."""
    if len(flat) <= most:
        return flat
    return flat[np.linspace(0, len(flat) - 1, most).astype(np.int64)]


class _Sites:
    """Lines with tile ops that are looked at, by what they executed."""

    def __init__(self, backward: Backward) -> None:
        self.session = backward.session
        self.known: dict[tuple[str, int, str], SuspectSite] = {}

    def of(self, call: TileCall) -> SuspectSite:
        key = (*self.session.place_of(call.first), call.op)
        if key not in self.known:
            self.known[key] = SuspectSite(*key)
        return self.known[key]

    def fill(self) -> None:
        """Every execution of these lines; and all other lines, for a way that could not be followed."""
        for number in range(len(self.session.operands.calls)):
            first, _ = self.session.call_rows(number)
            if first >= 0:
                key = (*self.session.place_of(first), self.session.op_name(number))
                if key not in self.known:
                    self.known[key] = SuspectSite(*key, score=_OFF_THE_WAY)
                self.known[key].calls.append(number)


def gather(backward: Backward, wrong: list[Wrong]) -> Evidence:
    """Lines on the way back from wrong elements, the most suspicious first."""
    session = backward.session
    end = len(session.instructions)
    sites = _Sites(backward)

    def back(part: str) -> Slice:
        places = [addresses_in(session, one.tensor, sampled(getattr(one, part))) for one in wrong]
        return backward.slice(0, GM, distinct(np.concatenate(places)), end)

    bad, good = back("flat"), back("right")
    order: dict[int, int] = {}
    for step in [*bad.steps.values(), *good.steps.values()]:
        if step.call is not None:
            order.setdefault(id(sites.of(step.call)), len(order))
    for one in wrong:
        _beside(backward, one, sites, end)
    for step in bad.steps.values():
        if step.call is not None:
            _look_at(backward, step, bad, sites)
    _contrast(bad, good, sites)
    small = all(_last_digit(one) for one in wrong)
    _signature(small, bad, sites)
    _unread(backward, sites)
    sites.fill()
    for site in sites.known.values():
        _stands_out(site, backward.calls)
    # of lines that look alike, the one nearest to the outputs
    ranked = sorted(sites.known.values(), key=lambda site: (-site.score, order.get(id(site), len(order))))
    return Evidence(ranked, bad, good, small)


def _beside(backward: Backward, one: Wrong, sites: _Sites, end: int) -> None:
    """Wrong elements that nobody wrote: who wrote those beside them."""
    places = addresses_in(backward.session, one.tensor, one.flat[:_SAMPLE])
    rows = backward.writers.last(0, GM, places, end)
    missing = one.flat[:_SAMPLE][rows < 0]
    if not len(missing):
        return
    width = one.tensor.shape[-1] if one.tensor.shape else 1
    near = distinct(np.concatenate([missing + step for step in (-1, 1, -width, width)]))
    near = np.setdiff1d(near[(near >= 0) & (near < one.tensor.numel)], missing)
    writers = backward.writers.last(0, GM, addresses_in(backward.session, one.tensor, near), end)
    for row in distinct(writers[writers >= 0]).tolist():
        call = backward.session.call_of(row)
        if call is not None:
            sites.of(backward.calls[call]).suspect(
                4.0, f"writes elements beside {len(missing)} of slot {one.tensor.slot} that nobody writes"
            )


def _look_at(backward: Backward, step: SliceStep, bad: Slice, sites: _Sites) -> None:
    call = step.call
    assert call is not None
    site = sites.of(call)
    for operand, made_by in step.sources.items():
        tile = call.operands[operand]
        assert isinstance(tile, Tile)
        _mixed(backward, site, call, operand, made_by, sites)
        for key in made_by:
            maker = bad.steps[key].call if key >= 0 else None
            if maker is not None:
                _types(site, call, tile, maker, sites)
    _sizes(site, call)
    for _, number in call.numbers:
        if call.op == "TCVT" and number.type < 0 and number.value not in (0, 1):
            site.suspect(0.4, f"rounds by {ROUND_MODES[int(number.value) % len(ROUND_MODES)]}")
            break


def _mixed(
    backward: Backward,
    site: SuspectSite,
    call: TileCall,
    operand: int,
    made_by: dict[int, int],
    sites: _Sites,
) -> None:
    """A tile that is made in part by one op, and what wrong elements come from by others or by nobody."""
    tile = call.operands[operand]
    assert isinstance(tile, Tile)
    if tile.in_global:
        return
    rows, cols = tile.valid
    everything = distinct((tile.address + tile.offsets()[:rows, :cols]).reshape(-1))
    writers = backward.writers.last(call.core, tile.memory, everything, call.first)
    makers: dict[int, int] = {}
    for row, count in zip(*np.unique(writers, return_counts=True), strict=True):
        of = backward.session.call_of(int(row)) if row >= 0 else None
        makers[-1 if of is None else of] = makers.get(-1 if of is None else of, 0) + int(count)
    main = max((number for number in makers if number >= 0), key=lambda n: (makers[n], n), default=-1)
    if made_by.get(-1):
        site.suspect(1.5, f"reads {made_by[-1]} elements of operand {operand} that nobody wrote")
    forms = [backward.calls[number].tiles[0][1] for number in makers if number >= 0]
    if len(makers) > 1 and not any(
        (t.address, t.rows, t.cols) == (tile.address, tile.rows, tile.cols) for t in forms
    ):
        site.suspect(0.8, f"operand {operand} reaches over tiles of another form")
    others = sum(count for number, count in makers.items() if number != main)
    if main < 0 or not 0 < others < makers[main]:
        return
    if not any(key < 0 or backward.session.call_of(key) != main for key in made_by):
        return
    later = {number: count for number, count in makers.items() if number > main}
    if others > sum(later.values()):
        sites.of(backward.calls[main]).suspect(
            3.0, f"writes all but {others} of the elements that {call.op} reads of operand {operand}"
        )
        site.suspect(1.0, f"reads {others} elements that are older than the rest of operand {operand}")
    for number, count in later.items():
        text = f"writes over {count} of the elements that {backward.calls[main].op} made for {call.op}"
        sites.of(backward.calls[number]).suspect(3.0, text)


def _types(site: SuspectSite, call: TileCall, tile: Tile, maker: TileCall, sites: _Sites) -> None:
    written = next((t for _, t in maker.tiles if t.memory == tile.memory and t.address == tile.address), None)
    if written is None or written.type == tile.type:
        return
    if element_size(written.type) == element_size(tile.type):
        text = f"{type_name(written.type)} is written and {type_name(tile.type)} read"
        site.suspect(2.0, f"{text}: {maker.op} to {call.op}")
        sites.of(maker).suspect(2.0, f"{text}: {maker.op} to {call.op}")


def _sizes(site: SuspectSite, call: TileCall) -> None:
    """Operands of one op whose valid sizes are close to each other and differ."""
    valid = [tile.valid for _, tile in call.tiles]
    for rows, cols in valid[1:]:
        for mine, other, what in ((valid[0][0], rows, "rows"), (valid[0][1], cols, "columns")):
            if 0 < abs(mine - other) <= 1 and min(mine, other) > 1:
                site.suspect(1.0, f"{mine} valid {what} of the result and {other} of a source")


def _contrast(bad: Slice, good: Slice, sites: _Sites) -> None:
    """Ops that wrong elements come from, and right ones do not."""
    if not good.steps:
        return
    for key, step in bad.steps.items():
        if step.call is None:
            continue
        other = good.steps.get(key)
        mine = {(number, int(e)) for number, elements in step.made.items() for e in elements[:4096]}
        shared = 0
        if other is not None:
            theirs = {(number, int(e)) for number, elements in other.made.items() for e in elements[:4096]}
            shared = len(mine & theirs)
        site = sites.of(step.call)
        if mine and not shared:
            site.suspect(0.3, "only wrong elements come from it")
        elif mine and shared == len(mine):
            site.suspect(-0.6, "right elements come from the same part of its result")


def _unread(backward: Backward, sites: _Sites) -> None:
    """Results that nobody reads: of a kernel that is right there are hardly any."""
    known = liveness(backward.session, backward.calls)
    if known is None:
        return
    for number, count in known.unread.items():
        if count >= known.made[number]:
            sites.of(backward.calls[number]).suspect(1.2, "nobody reads its result")
            _passed_over(backward, sites, known, number)
    for number, count in known.lost.items():
        if count:
            text = f"writes over {count} elements that nobody had read"
            sites.of(backward.calls[number]).suspect(2.0, text)


def _passed_over(backward: Backward, sites: _Sites, known: Liveness, unread: int) -> None:
    """Ops that read an older tile of the same form while a result that nobody reads was there."""
    made = backward.calls[unread].tiles[0][1]
    first = bisect.bisect(known.reads, (unread + 1,))
    seen = 0
    for number, operand, maker in known.reads[first:]:
        if number > known.until[unread] or seen >= _NEAR_READERS:
            return
        call = backward.calls[number]
        tile = call.operands[operand]
        assert isinstance(tile, Tile)
        same = (tile.memory, tile.type, tile.valid) == (made.memory, made.type, made.valid)
        if same and maker < unread and call.core == backward.calls[unread].core:
            seen += 1
            text = f"operand {operand} is older than a result of the same form that nobody reads"
            sites.of(call).suspect(1.5, text)


def _stands_out(site: SuspectSite, calls: TileCalls) -> None:
    """One execution that was given something that none of the others was, where those are alike."""
    if len(site.calls) < 3:
        return
    for operand, given in enumerate(calls[site.calls[0]].operands):
        fields = (
            ("address", "valid_rows", "valid_cols", "type") if isinstance(given, Tile) else ("bits", "type")
        )
        for name in fields if not (isinstance(given, Tile) and given.in_global) else ():
            values = Counter(getattr(calls[n].operands[operand], name, None) for n in site.calls)
            once = [value for value, count in values.items() if count == 1]
            if len(once) == 1 and 1 < len(values) <= (len(site.calls) + 1) // 2:
                number = next(
                    n for n in site.calls if getattr(calls[n].operands[operand], name, None) == once[0]
                )
                what = "lies elsewhere" if name == "address" else f"has another {name.replace('_', ' ')}"
                site.suspect(0.8, f"operand {operand} {what} at instruction {calls[number].first} alone")


def _signature(small: bool, bad: Slice, sites: _Sites) -> None:
    """Differences of the last digit point to a conversion, others to numbers that an op was given."""
    seen: set[int] = set()
    for step in bad.steps.values():
        if step.call is None or id(sites.of(step.call)) in seen:
            continue
        site = sites.of(step.call)
        seen.add(id(site))
        if step.call.op == "TCVT" and small:
            site.suspect(2.5, "differences are of the last digit, and it rounds")
        elif not small and any(number.type >= 0 for _, number in step.call.numbers):
            site.suspect(0.5, "takes a number")


def _last_digit(one: Wrong) -> bool:
    """Whether elements differ by no more than rounding to 16 bits explains."""
    with np.errstate(all="ignore"):
        got = as_double(one.got).reshape(-1)[one.flat]
        want = as_double(one.want).reshape(-1)[one.flat]
        scale = float(np.abs(as_double(one.want)).max())
        return bool(np.all(np.abs(got - want) <= np.maximum(np.abs(want), scale * 2**-4) * 2**-6))
