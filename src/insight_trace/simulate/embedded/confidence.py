"""How far a total can be trusted: an interval from the model's errors on published kernels and from its parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from insight_trace.model import Confidence, Instructions, Pipe
from insight_trace.simulate.embedded.estimates import parameter_times

if TYPE_CHECKING:
    from insight_trace.chips import Chip
    from insight_trace.outcome import Simulation

# Root mean square of log(ours / published) over points that set no parameter, by what kind of kernel they are:
# benchmarks/accuracy.py writes this line from benchmarks/whole_kernels.json.
MODEL_ERROR = {"cube": 0.093, "vector": 0.091, "mix": 0.112}
# How far a parameter may be off, relative, by what it is worth.
KIND_ERROR = {"measured": 0.03, "published": 0.10, "derived": 0.10, "estimate": 0.30}
_NINE_OF_TEN = 1.64
_WAITS = ("WAIT_", "SET_", "BAR", "END", "LD_DEV")  # they last as long as something else makes them
_ATOMIC = frozenset({"ST_ATOMIC"})
_SHORT = 64  # cycles: mostly head
_WORTH_A_WORD = 0.2


def kernel_kind(cores: Sequence[str]) -> str:
    """By the cores that it ran on."""
    cube = any("cubecore" in name for name in cores)
    vector = any("veccore" in name for name in cores)
    return "mix" if cube and vector else "cube" if cube else "vector"


def model_spread(cores: Sequence[str]) -> float:
    """How far totals of such kernels are off: the 90 % interval, parameters apart."""
    return math.expm1(_NINE_OF_TEN * MODEL_ERROR[kernel_kind(cores)])


def first_launch_error(chip: Chip) -> float:
    """How far what only a first launch waits for may put its total off: as far as the number it rests on most."""
    return KIND_ERROR[chip.table["value"]["page.turn"]["kind"]]


def confidence(simulation: Simulation, chip: Chip) -> Confidence:
    """The interval of a run's total."""
    total, times = parameter_times(simulation, chip)
    # errors of different numbers are independent; each counts by the time that it times
    shares = (
        ((time.cycles / total, KIND_ERROR[time.entry["kind"]]) for time in times.values()) if total else ()
    )
    parameters = math.sqrt(sum((share * error) ** 2 for share, error in shares))
    kind = kernel_kind(simulation.instructions.cores)
    untried = _untried(simulation.instructions)
    if simulation.launch is not None and simulation.launch.first:
        untried["a first launch, which looks up its code and its pages"] = first_launch_error(chip)
    spread = math.expm1(_NINE_OF_TEN * math.hypot(MODEL_ERROR[kind], parameters, *untried.values()))
    return Confidence(simulation.cycles, spread, kind, tuple(untried))


def _untried(columns: Instructions) -> dict[str, float]:
    """What a run rests on that no published kernel has tried, in words, and how far that may put its total off."""
    import numpy as np

    if not len(columns):
        return {}
    spent = (columns.end - columns.start).astype(np.int64)
    whole = max(1, int(columns.end.max()) * len(columns.cores))
    names = np.array([not name.startswith(_WAITS) for name in columns.names])[columns.name]
    scalar = int(spent[(columns.pipe == Pipe.SCALAR) & names].sum()) / whole
    vector = columns.pipe == Pipe.VECTOR
    short = int(spent[vector & (spent <= _SHORT)].sum()) / whole
    found = {}
    for what, share in (("code and loads of the scalar unit", scalar), ("short vector instructions", short)):
        if share > _WORTH_A_WORD:
            found[f"{what}, {share:.0%} of the time"] = share * KIND_ERROR["estimate"]
    if any(name in _ATOMIC for name in columns.names):
        found["atomic stores"] = KIND_ERROR["estimate"] / 3
    return found
