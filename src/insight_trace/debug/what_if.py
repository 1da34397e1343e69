"""What if a line had been given something else: runs with it fixed tell whether the outputs are right then."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from insight_trace.debug.fixes import Catalogue, Fix, bits_of
from insight_trace.debug.liveness import liveness
from insight_trace.debug.mismatch import Wrong, distance, expected_of, unlike
from insight_trace.debug.slices import Backward
from insight_trace.debug.suspects import Evidence
from insight_trace.debug.tile_calls import ChangedCalls, Number
from insight_trace.debug.tile_layout import as_double
from insight_trace.simulate.embedded.journaling import OperandChange
from insight_trace.simulate.embedded.variants import Outputs, at_most

MOST_RUNS = 4000  # for one answer, so that a quick machine says what a slow one does
_RUNS_AFTER = 1536  # a fix by which all is right: others may be as good, and likelier
_BATCH = 64
_SECANTS = 7
_SLOWER = 20.0  # than the run itself a fixed one may be
_LEAST_SECONDS = 1.0  # for one fixed run
_MOST_FOLLOWED = 3  # fixes of one line by which all is right
_MOST_OPS = 60_000  # in all runs that are followed


@dataclass(frozen=True)
class Outcome:
    """A fix that was tried."""

    fix: Fix
    unlike: int  # elements of the outputs that still differ
    explained: float  # 1: all of the difference, 0: none
    oddities: int = 0  # results that nobody reads, and the like, that would be left in the kernel

    @property
    def exact(self) -> bool:
        return self.unlike == 0


class Bench:
    """Runs a dispatch with changes and compares its outputs with what was recorded."""

    def __init__(self, backward: Backward, wrong: Sequence[Wrong], seconds: float, one_run: float) -> None:
        self.calls = backward.calls
        self.wrong = wrong
        self.runs = 0
        self.session = backward.session
        self._each = max(_LEAST_SECONDS, one_run * _SLOWER)
        self._end = time.monotonic() + seconds
        self._expected = {
            tensor.slot: (tensor, want)
            for tensor in self.session.arguments.tensors
            if tensor.is_output and (want := expected_of(tensor)) is not None
        }
        self._tensors = [tensor for tensor, _ in self._expected.values()]
        self._distance = sum(distance(one.got, one.want) for one in wrong) or 1.0

    @property
    def left(self) -> float:
        """Seconds that runs may still take."""
        return max(0.0, self._end - time.monotonic())

    @property
    def over(self) -> bool:
        return self.left <= 0 or self.runs >= MOST_RUNS

    @property
    def batch(self) -> int:
        return min(_BATCH, at_most(self._tensors))

    def outputs(self, variants: Sequence[tuple[OperandChange, ...]]) -> list[Outputs | None]:
        """Output slots of runs with these changes; None: one does not end well, or there was no time."""
        found: list[Outputs | None] = []
        for start in range(0, len(variants), self.batch):
            some = variants[start : start + self.batch]
            if self.over:
                found += [None] * len(some)
                continue
            self.runs += len(some)
            found += self.session.run_variants(some, self._tensors, self._each, self.left)
        return found

    def outcome(self, fix: Fix, found: Outputs) -> Outcome:
        left = sum(unlike(values, self._expected[slot][1]) for slot, values in found.items())
        far = sum(distance(values, self._expected[slot][1]) for slot, values in found.items())
        return Outcome(fix, left, max(0.0, 1.0 - far / self._distance))


def try_fixes(bench: Bench, evidence: Evidence) -> list[Outcome]:
    """Fixes in the order in which they are likely, until some make every output right; the best first."""
    catalogue = Catalogue(bench.calls, evidence)
    few, many = catalogue.all()
    outcomes = _tried(bench, few)
    if not any(outcome.exact for outcome in outcomes):
        outcomes += _solved_numbers(bench, catalogue, evidence)
    if not any(outcome.exact for outcome in outcomes):
        outcomes += _tried(bench, many)
    return sorted(
        _followed(bench, outcomes),
        key=lambda o: (not o.exact, -round(o.explained, 3), o.oddities, -o.fix.likely),
    )


def _tried(bench: Bench, fixes: Sequence[Fix]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    exact: Counter[int] = Counter()
    after, until, waiting = 0, 0.0, list(fixes)
    while waiting and not bench.over and after < _RUNS_AFTER and bench.left > until:
        some, waiting = waiting[: bench.batch], waiting[bench.batch :]
        for fix, found in zip(some, bench.outputs([fix.changes for fix in some]), strict=True):
            if found is not None:
                outcomes.append(bench.outcome(fix, found))
                exact[id(fix.site)] += outcomes[-1].exact
        if any(exact.values()):
            after += len(some)
            until = until or bench.left / 2
            waiting = [fix for fix in waiting if exact[id(fix.site)] < _MOST_FOLLOWED]
    return outcomes


def _followed(bench: Bench, outcomes: list[Outcome]) -> list[Outcome]:
    """Of fixes by which all is right: what would be odd in the kernel then. A kernel that is right has little of it."""
    tried: Counter[int] = Counter()
    ops = 0
    found = []
    for outcome in sorted(outcomes, key=lambda outcome: -outcome.fix.likely):
        site = id(outcome.fix.site)
        if outcome.exact and tried[site] < _MOST_FOLLOWED and ops < _MOST_OPS:
            tried[site] += 1
            ops += len(bench.calls)
            known = liveness(bench.session, ChangedCalls(bench.calls, outcome.fix.changes))
            outcome = dataclasses.replace(outcome, oddities=known.oddities if known is not None else 0)
        elif outcome.exact:
            outcome = dataclasses.replace(outcome, oddities=1 << 30)
        found.append(outcome)
    return found


# --- numbers: the one that makes the worst element right, all lines and operands side by side ---------------------


@dataclass
class _Search:
    """Secants towards the number by which the worst element is what was recorded."""

    fix: Fix  # its text and changes are of no use
    calls: tuple[int, ...]
    operand: int
    number: Number
    x: tuple[float, float]
    f: float
    best: Outcome | None = None
    value: float = 0.0
    over: bool = False

    def at(self, value: float) -> Fix:
        bits = bits_of(value, self.number.type)
        changes = tuple(OperandChange(call, self.operand, "scalar", bits) for call in self.calls)
        shown = Number(bits, self.number.type).value
        text = f"{shown:.9g} instead of {self.number.value:.9g} as operand {self.operand}"
        return Fix(self.fix.site, text + self.fix.text, changes, self.fix.likely)


def _solved_numbers(bench: Bench, catalogue: Catalogue, evidence: Evidence) -> list[Outcome]:
    one = bench.wrong[0]
    with np.errstate(all="ignore"):
        gap = np.abs(as_double(one.got) - as_double(one.want)).reshape(-1)
    gap[~np.isfinite(gap)] = 0
    worst = int(gap.argmax())
    want = float(as_double(one.want).reshape(-1)[worst])
    got = float(as_double(one.got).reshape(-1)[worst])
    searches = []
    for site in evidence.sites:
        for scope in catalogue.scopes(site):
            for operand, number in scope.calls[0].numbers:
                if number.type >= 0:
                    x0 = float(number.value)
                    empty = Fix(site, scope.text, (), site.score + scope.likely)
                    calls = tuple(call.number for call in scope.calls)
                    next_ = x0 * 1.125 if x0 else 0.125
                    searches.append(_Search(empty, calls, operand, number, (x0, next_), got - want))
    searches.sort(key=lambda search: -search.fix.likely)
    for _ in range(_SECANTS):
        active = [search for search in searches if not search.over]
        fixes = [search.at(search.x[1]) for search in active]
        answers = bench.outputs([fix.changes for fix in fixes])
        for search, fix, found in zip(active, fixes, answers, strict=True):
            if found is None or one.tensor.slot not in found:
                search.over = True
                continue
            outcome = bench.outcome(fix, found)
            _step(search, float(as_double(found[one.tensor.slot]).reshape(-1)[worst]) - want, outcome)
        if any(search.best is not None and search.best.exact for search in searches):
            break
    return [outcome for search in searches for outcome in _rounded(bench, search)]


def _step(search: _Search, f1: float, outcome: Outcome) -> None:
    x0, x1 = search.x
    if search.best is None or (outcome.unlike == 0, outcome.explained) > (
        search.best.exact,
        search.best.explained,
    ):
        search.best, search.value = outcome, x1
    if outcome.exact or f1 == search.f or not np.isfinite(f1):
        search.over = True
        return
    following = x1 - f1 * (x1 - x0) / (f1 - search.f)
    search.over = not np.isfinite(following) or following == x1
    search.x, search.f = (x1, following), f1


def _rounded(bench: Bench, search: _Search) -> list[Outcome]:
    """What was found, and the plain numbers and the neighbours beside it if one of them is exact."""
    if search.best is None:
        return []
    if search.best.exact or search.best.explained < 0.9:
        return [search.best]
    near = np.float32(search.value)
    values = [float(f"{search.value:.{digits}g}") for digits in range(1, 8)]
    values += [float(np.nextafter(near, np.float32(way))) for way in (-np.inf, np.inf)]
    fixes = [search.at(value) for value in dict.fromkeys(values)]
    answers = bench.outputs([fix.changes for fix in fixes])
    tried = [
        bench.outcome(fix, found) for fix, found in zip(fixes, answers, strict=True) if found is not None
    ]
    return [*tried, search.best]
