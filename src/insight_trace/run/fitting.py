"""Parameters from measurements: which the data can tell apart, their values with intervals, and how good the rest is.

Everything is in logarithms: a parameter is a factor on what the chip's file says, a measurement has a relative error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from insight_trace.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Simulated values of all quantities when parameters are multiplied by these factors.
Model = Callable[[Mapping[str, float]], Sequence[float]]

WORTH_KNOWING = (
    0.025  # a parameter is fitted when its standard error is no larger: 95 % lie within twice that
)
TOTALS = ("total", "duration")  # what the errors are of
_USUAL_SCATTER = 0.05  # of one measurement, where too few were made to see it
_ENOUGH = 20  # degrees of freedom to see it
_STEP = 0.08  # how far a parameter is moved to see what it does
_ROUNDS = 6
_FOLDS = 5
_PRIOR = 0.5  # how far a number of a chip file may be off, for what nothing else tells


@dataclass(frozen=True, slots=True)
class Quantity:
    """One thing that was measured of tasks of one kind: by task, its values."""

    task: str
    what: str
    values: tuple[tuple[int, float], ...]  # task id, value

    @property
    def measured(self) -> float:
        return _mean(value for _, value in self.values)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A parameter's factor and half the width of its 95 % interval, relative."""

    name: str
    factor: float
    within: float


@dataclass(frozen=True, slots=True)
class Refused:
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Fit:
    """Errors are root mean squares over measured totals, each relative to what is simulated of it."""

    fitted: tuple[Fitted, ...]
    refused: tuple[Refused, ...]
    scatter: float  # of measurements of the same kind of task
    before: float  # with the chip's file as it is
    held_out: float  # of tasks that were not used, a fifth of each kind left out in its turn
    unseen: float  # of kinds of tasks that were not used, each left out in its turn
    simulated: tuple[float, ...]  # of each quantity, before
    after: tuple[float, ...]

    @property
    def factors(self) -> dict[str, float]:
        return {parameter.name: parameter.factor for parameter in self.fitted}


def fit(quantities: Sequence[Quantity], model: Model, names: Sequence[str]) -> Fit:
    """Fits what the quantities can tell of the parameters; every run of the model counts."""
    import numpy as np

    if not quantities:
        raise InputError(
            "nothing was measured that is simulated", hint="do the dump and the records belong together?"
        )
    noise = scatter(quantities)
    measured, spread = _means(quantities, noise)
    at = dict.fromkeys(names, 0.0)
    first = _logs(model, at)
    slopes = np.stack([_slope(model, at, name, first) for name in names], axis=1)
    chosen, refused = told_apart(slopes, spread, names)
    columns = slopes[:, [names.index(name) for name in chosen]]
    now = first
    for fresh in (False, True) if chosen else ():
        if fresh:
            columns = _slopes(model, at, chosen, now)
        # what a parameter does changes little on the way: its slope serves for several steps
        for _ in range(_ROUNDS):
            change = np.clip(_solve(columns, measured - now, spread), -0.5, 0.5)
            if np.abs(change).max() < 2e-3:
                break
            for name, step in zip(chosen, change, strict=True):
                at[name] += float(step)
            now = _logs(model, at)
    left = measured - now
    # more scatter than the measurements have is the model's: intervals are that much wider
    free = max(1, len(quantities) - len(chosen))
    scale = max(1.0, float(np.sqrt(((left / spread) ** 2).sum() / free)))
    errors = _standard_errors(columns, spread) * scale if chosen else np.zeros(0)
    linear = _Linear(quantities, noise, columns, now, np.array([at[name] for name in chosen]))
    return Fit(
        tuple(
            Fitted(name, float(np.exp(at[name])), float(1.96 * error))
            for name, error in zip(chosen, errors, strict=True)
        ),
        tuple(refused),
        noise,
        _error(_totals(quantities, first)),
        _error(linear.tasks_left_out()),
        _error(linear.kinds_left_out()),
        tuple(np.exp(first)),
        tuple(np.exp(now)),
    )


def scatter(quantities: Sequence[Quantity]) -> float:
    """How far single measurements of the same thing lie apart, relative; what is usual where too few say it."""
    squares, free = 0.0, 0
    for quantity in quantities:
        logs = [math.log(value) for _, value in quantity.values]
        mean = _mean(logs)
        squares += sum((value - mean) ** 2 for value in logs)
        free += len(logs) - 1
    return math.sqrt(squares / free) if free >= _ENOUGH and squares > 0 else _USUAL_SCATTER


def told_apart(slopes: Array, spread: Array, names: Sequence[str]) -> tuple[list[str], list[Refused]]:
    """Parameters that can be known together, the strongest first, and why not the others."""
    import numpy as np

    weighted = slopes / spread[:, None]
    strength = np.linalg.norm(weighted, axis=0)
    chosen: list[int] = []
    refused = []
    for j in np.argsort(-strength, kind="stable"):
        if strength[j] < 1e-9:
            refused.append(Refused(names[j], "no measured task depends on it"))
        elif 1 / strength[j] > WORTH_KNOWING:
            refused.append(
                Refused(names[j], f"too little depends on it: known to {2 / strength[j]:.0%} at best")
            )
        elif _standard_errors(slopes[:, [*chosen, j]], spread).max() > WORTH_KNOWING:
            alike = max(
                chosen, key=lambda k: abs(weighted[:, k] @ weighted[:, j]) / (strength[k] * strength[j])
            )
            refused.append(Refused(names[j], f"cannot be told apart from {names[alike]}"))
        else:
            chosen.append(int(j))
    return [names[j] for j in chosen], refused


class _Linear:
    """The fit near its end, where it is a straight line: what it would have been without some measurements."""

    def __init__(
        self, quantities: Sequence[Quantity], noise: float, columns: Array, now: Array, at: Array
    ) -> None:
        self.quantities, self.noise = quantities, noise
        self.columns, self.now, self.at = columns, now, at

    def without(self, kept: Sequence[Quantity]) -> Array:
        """What all quantities would be simulated as, had only `kept` been measured (in the same order)."""
        import numpy as np

        rows = [i for i, quantity in enumerate(kept) if quantity.values]
        if not rows or not len(self.at):
            return self.now - self.columns @ self.at
        measured, spread = _means([kept[i] for i in rows], self.noise)
        # what they do not tell stays near the chip's file, not near what those left out told
        weighted = np.vstack([self.columns[rows] / spread[:, None], np.eye(len(self.at)) / _PRIOR])
        wanted = np.concatenate([(measured - self.now[rows]) / spread, -self.at / _PRIOR])
        change = np.linalg.lstsq(weighted, wanted, rcond=None)[0]
        return np.asarray(self.now + self.columns @ change)

    def tasks_left_out(self) -> list[float]:
        found: list[float] = []
        for fold in range(_FOLDS):
            kept, out = [], []
            for quantity in self.quantities:
                ids = sorted({task for task, _ in quantity.values})
                out.append(_only(quantity, set(ids[fold::_FOLDS])))
                kept.append(_only(quantity, set(ids).difference(ids[fold::_FOLDS])))
            found += _totals(out, self.without(kept))
        return found

    def kinds_left_out(self) -> list[float]:
        found: list[float] = []
        nothing: set[int] = set()
        for kind in sorted({quantity.task for quantity in self.quantities}):
            kept = [_only(q, nothing) if q.task == kind else q for q in self.quantities]
            out = [q if q.task == kind else _only(q, nothing) for q in self.quantities]
            found += _totals(out, self.without(kept))
        return found


def _only(quantity: Quantity, ids: set[int]) -> Quantity:
    """What was measured of some tasks."""
    return Quantity(quantity.task, quantity.what, tuple(pair for pair in quantity.values if pair[0] in ids))


def _totals(quantities: Sequence[Quantity], simulated: Array) -> list[float]:
    """log(measured / simulated) of every measured total; of everything where there are no totals."""
    rows = [i for i, quantity in enumerate(quantities) if quantity.what in TOTALS]
    return [
        math.log(value) - float(simulated[i])
        for i in rows or range(len(quantities))
        for _, value in quantities[i].values
    ]


def _error(differences: Sequence[float]) -> float:
    return math.sqrt(_mean(x * x for x in differences)) if differences else math.nan


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return math.fsum(listed) / len(listed)


def _means(quantities: Sequence[Quantity], noise: float) -> tuple[Array, Array]:
    """Logs of the means, and their standard errors."""
    import numpy as np

    logs = [_mean(math.log(value) for _, value in quantity.values) for quantity in quantities]
    return np.array(logs), np.array([noise / math.sqrt(len(quantity.values)) for quantity in quantities])


def _logs(model: Model, at: Mapping[str, float]) -> Array:
    import numpy as np

    values = np.asarray(model({name: float(np.exp(v)) for name, v in at.items() if v}), float)
    return np.asarray(np.log(np.maximum(values, 1e-3)))


def _slope(model: Model, at: Mapping[str, float], name: str, now: Array) -> Array:
    return (_logs(model, {**at, name: at[name] + _STEP}) - now) / _STEP


def _slopes(model: Model, at: Mapping[str, float], names: Sequence[str], now: Array) -> Array:
    import numpy as np

    return np.stack([_slope(model, at, name, now) for name in names], axis=1)


def _solve(columns: Array, left: Array, spread: Array) -> Array:
    import numpy as np

    return np.asarray(np.linalg.lstsq(columns / spread[:, None], left / spread, rcond=None)[0])


def _standard_errors(columns: Array, spread: Array) -> Array:
    import numpy as np

    weighted = columns / spread[:, None]
    try:
        return np.asarray(np.sqrt(np.diag(np.linalg.inv(weighted.T @ weighted))))
    except np.linalg.LinAlgError:
        return np.full(columns.shape[1], np.inf)
