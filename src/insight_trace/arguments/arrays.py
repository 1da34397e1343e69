"""Arguments that a program hands over directly: arrays and numbers by slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from insight_trace.arguments.slots import CallerArray, ReplayArguments, ReplayScalar, ReplaySlot, make_tensor
from insight_trace.dtypes import DoesNotFitError, DType, dtype_named, scalar_bits
from insight_trace.errors import RequestError
from insight_trace.model import Role, Tier

if TYPE_CHECKING:
    from numpy.typing import NDArray


def from_arrays(values: Mapping[int, Any], *, block_count: int = 1) -> ReplayArguments:
    """NumPy arrays become tensors (read and written), Python and NumPy numbers become scalars.

    A Python float is passed as float32 bits, as kernels read it; an int as the 64-bit slot itself.
    """
    slots = tuple(_slot(slot, value) for slot, value in values.items())
    return ReplayArguments(slots, block_count=block_count)


def _slot(slot: int, value: Any) -> ReplaySlot:
    import numpy as np

    if isinstance(value, np.ndarray) and value.ndim > 0:
        return make_tensor(
            slot,
            _dtype(slot, value),
            value.shape,
            CallerArray(value),
            Tier.EXACT,
            role=Role.INOUT,
            origin="given",
        )
    if isinstance(value, bool | int | float | np.generic):
        name = value.dtype.name if isinstance(value, np.generic) else _PYTHON_SCALARS[type(value)]
        dtype = dtype_named(name)
        if dtype is None:
            raise RequestError(f"slot {slot}: no scalar type for {name}")
        number = value.item() if isinstance(value, np.generic) else value
        try:
            bits = scalar_bits(dtype, number)
        except DoesNotFitError as error:
            raise RequestError(f"slot {slot}: {error}") from None
        return ReplayScalar(slot, dtype, bits, Tier.EXACT, origin="given")
    raise RequestError(
        f"slot {slot}: {type(value).__name__} is neither an array nor a number",
        hint="give a NumPy array for a tensor and a number for a scalar",
    )


_PYTHON_SCALARS = {bool: "bool", int: "int64", float: "float32"}


def _dtype(slot: int, array: NDArray[Any]) -> DType:
    dtype = dtype_named(array.dtype.name)
    if dtype is None:
        raise RequestError(f"slot {slot}: kernels have no element type {array.dtype}")
    return dtype
