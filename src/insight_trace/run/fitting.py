"""Parameters from measurements: which the data can tell apart, their values with intervals, and how good the rest is.

Everything is in logarithms: a parameter is a factor on what the chip's file says, a measurement has a relative error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from insight_trace.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Simulated values of all quantities when parameters are multiplied by these factors.
Model = Callable[[Mapping[str, float]], Sequence[float]]

WORTH_KNOWING = 0.05  # a parameter is fitted when its standard error is no larger
_STEP = 0.08  # how far a parameter is moved to see what it does
_ROUNDS = 4
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Quantity:
    """One thing that was measured, and how well."""

    task: str
    what: str
    measured: float
    spread: float  # relative standard error


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
    fitted: tuple[Fitted, ...]
    refused: tuple[Refused, ...]
    before: float  # error of the totals with the chip's file as it is, root mean square
    held_out: float  # the same of tasks that were not used, each left out in its turn
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
    measured = np.log([q.measured for q in quantities])
    spread = np.array([q.spread for q in quantities])
    at = dict.fromkeys(names, 0.0)
    first = _logs(model, at)
    slopes = np.stack([_slope(model, at, name, first) for name in names], axis=1)
    chosen, refused = told_apart(slopes, spread, names)
    now = first
    for round_ in range(_ROUNDS if chosen else 0):
        columns = (
            slopes[:, [names.index(n) for n in chosen]] if round_ == 0 else _slopes(model, at, chosen, now)
        )
        change = _solve(columns, measured - now, spread)
        for name, step in zip(chosen, np.clip(change, -0.5, 0.5), strict=True):
            at[name] += float(step)
        now = _logs(model, at)
        if np.abs(change).max() < 1e-3:
            break
    columns = _slopes(model, at, chosen, now)
    left = measured - now
    # more scatter than the measurements have is the model's: intervals are that much wider
    free = max(1, len(quantities) - len(chosen))
    scale = max(1.0, float(np.sqrt(((left / spread) ** 2).sum() / free)))
    errors = _standard_errors(columns, spread) * scale if chosen else np.zeros(0)
    return Fit(
        tuple(
            Fitted(name, float(np.exp(at[name])), float(1.96 * error))
            for name, error in zip(chosen, errors, strict=True)
        ),
        tuple(refused),
        _totals(quantities, measured - first),
        _left_out(quantities, columns, left, spread),
        tuple(np.exp(first)),
        tuple(np.exp(now)),
    )


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
                Refused(names[j], f"too little depends on it: known to {1 / strength[j]:.0%} at best")
            )
        elif _standard_errors(slopes[:, [*chosen, j]], spread).max() > WORTH_KNOWING:
            alike = max(
                chosen, key=lambda k: abs(weighted[:, k] @ weighted[:, j]) / (strength[k] * strength[j])
            )
            refused.append(Refused(names[j], f"cannot be told apart from {names[alike]}"))
        else:
            chosen.append(int(j))
    return [names[j] for j in chosen], refused


def _logs(model: Model, at: Mapping[str, float]) -> Array:
    import numpy as np

    values = np.asarray(model({name: float(np.exp(v)) for name, v in at.items() if v}), float)
    return np.asarray(np.log(np.maximum(values, 1e-3)))


def _slope(model: Model, at: Mapping[str, float], name: str, now: Array) -> Array:
    return (_logs(model, {**at, name: at[name] + _STEP}) - now) / _STEP


def _slopes(model: Model, at: Mapping[str, float], names: Sequence[str], now: Array) -> Array:
    import numpy as np

    if not names:
        return np.zeros((len(now), 0))
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


def _totals(quantities: Sequence[Quantity], left: Array) -> float:
    import numpy as np

    rows = [i for i, q in enumerate(quantities) if q.what in ("total", "duration")] or list(
        range(len(quantities))
    )
    return float(np.sqrt(np.mean(left[rows] ** 2)))


def _left_out(quantities: Sequence[Quantity], columns: Array, left: Array, spread: Array) -> float:
    """The error of the totals of tasks that the fit has not seen, in turns."""
    import numpy as np

    tasks = sorted({q.task for q in quantities})
    folds = min(_FOLDS, len(tasks))
    if folds < 2:
        return float("nan")
    found = np.zeros(len(left))
    for fold in range(folds):
        out = np.array([tasks.index(q.task) % folds == fold for q in quantities])
        kept = ~out
        change = _solve(columns[kept], left[kept], spread[kept]) if columns.shape[1] else np.zeros(0)
        found[out] = left[out] - columns[out] @ change
    return _totals(quantities, found)
