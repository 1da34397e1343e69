"""How far a total can be trusted: an interval from the model's errors on published kernels and from its parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from insight_trace.model import Confidence
from insight_trace.simulate.embedded.estimates import parameter_times

if TYPE_CHECKING:
    from insight_trace.chips import Chip
    from insight_trace.outcome import Simulation

# Root mean square of log(ours / published) over points that set no parameter, by what kind of kernel they are:
# benchmarks/accuracy.py writes this line from benchmarks/whole_kernels.json.
MODEL_ERROR = {"cube": 0.132, "vector": 0.039, "mix": 0.181}
# How far a parameter may be off, relative, by what it is worth.
KIND_ERROR = {"measured": 0.03, "published": 0.10, "derived": 0.10, "estimate": 0.30}
_NINE_OF_TEN = 1.64


def kernel_kind(cores: Sequence[str]) -> str:
    """By the cores that it ran on."""
    cube = any("cubecore" in name for name in cores)
    vector = any("veccore" in name for name in cores)
    return "mix" if cube and vector else "cube" if cube else "vector"


def model_spread(cores: Sequence[str]) -> float:
    """How far totals of such kernels are off, nine times of ten, parameters apart."""
    return math.expm1(_NINE_OF_TEN * MODEL_ERROR[kernel_kind(cores)])


def confidence(simulation: Simulation, chip: Chip) -> Confidence:
    """The interval of a run's total."""
    total, times = parameter_times(simulation, chip)
    # errors of different numbers are independent; each counts by the time that it times
    shares = (
        ((time.cycles / total, KIND_ERROR[time.entry["kind"]]) for time in times.values()) if total else ()
    )
    parameters = math.sqrt(sum((share * error) ** 2 for share, error in shares))
    kind = kernel_kind(simulation.instructions.cores)
    spread = math.expm1(_NINE_OF_TEN * math.hypot(MODEL_ERROR[kind], parameters))
    return Confidence(simulation.cycles, spread, kind)
