"""Arrays in, arrays out: a dispatch of kernels of ours on the embedded simulator."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from insight_trace.arguments.slots import CallerArray, ReplayArguments, ReplayScalar, ReplaySlot, make_tensor
from insight_trace.dtypes import dtype_named
from insight_trace.model import CoreType, Kernel, Role, Tier
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

KERNELS = Path(__file__).resolve().parent.parent / "data" / "kernels"
_NAMES = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "int8": "INT8",
    "int32": "INT32",
    "uint8": "UINT8",
    "bfloat16": "BFLOAT16",
}


def kernel(source: Path | str, core_type: CoreType) -> Kernel:
    path = KERNELS / source
    return Kernel(path.stem, path, core_type)


def mix(source: Path | str, lanes: int) -> list[Kernel]:
    """One source on the cube core and on `lanes` vector cores."""
    return [kernel(source, CoreType.AIC), *[kernel(source, CoreType.AIV)] * lanes]


def arguments(slots: Sequence[Any], outputs: Sequence[int] = (), blocks: int = 1) -> ReplayArguments:
    """NumPy arrays as tensors, numbers as scalars, in the order of their slots."""
    made: list[ReplaySlot] = []
    for slot, value in enumerate(slots):
        if isinstance(value, np.ndarray):
            dtype = dtype_named(_NAMES[value.dtype.name])
            assert dtype
            role = Role.INOUT if slot in outputs else Role.INPUT
            made.append(make_tensor(slot, dtype, value.shape, CallerArray(value), Tier.EXACT, role=role))
        else:
            dtype = dtype_named("INT64")
            assert dtype
            made.append(ReplayScalar(slot, dtype, int(value), Tier.EXACT))
    return ReplayArguments(tuple(made), blocks)


def run(
    kernels: Sequence[Kernel], slots: Sequence[Any], outputs: Sequence[int], blocks: int = 1, **options: Any
) -> Simulation:
    return run_embedded(kernels, arguments(slots, outputs, blocks), EmbeddedOptions(**options))


def outputs(simulation: Simulation) -> Mapping[int, Any]:
    assert simulation.failure is None, simulation.failure
    return simulation.outputs
