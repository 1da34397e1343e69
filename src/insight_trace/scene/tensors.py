"""A scene's tensors as arrays, and how far an output of a run is from what it should be."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import dtype_named
from insight_trace.errors import InputError, JobError
from insight_trace.limits import cut

if TYPE_CHECKING:
    from numpy.typing import NDArray


_USUAL_TOLERANCE = 1e-5


def tolerance(name: str, value: Any, where: Path) -> float:
    """RTOL or ATOL as a scene gives it. What every number is within, or none, is no tolerance."""
    if not isinstance(value, (int, float)):
        return _USUAL_TOLERANCE
    if not 0 <= value < (1 if name == "RTOL" else 1 << 64):
        wanted = "a number from 0 to below 1" if name == "RTOL" else "a number from 0 on"
        raise InputError(f"{name} = {cut(value)} is no tolerance", where=str(where), hint=f"give {wanted}")
    return float(value)


def tensor_array(name: str, value: Any) -> NDArray[Any]:
    """A NumPy view of a scene's tensor: of a NumPy array, or of a CPU torch tensor of any type."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return value
    if not hasattr(value, "data_ptr"):
        raise JobError(
            f"tensor {name!r} is a {type(value).__name__}, neither a NumPy array nor a torch tensor"
        )
    torch = importlib.import_module("torch")
    tensor = value.detach()
    element = dtype_named(str(value.dtype).removeprefix("torch."))
    try:
        plain: NDArray[Any] = tensor.numpy()
        return plain
    except TypeError:
        # bf16 and fp8 have no NumPy form in torch: the same memory, seen as plain integers first
        carriers = {1: torch.uint8, 2: torch.int16}
        if element is None:
            raise JobError(f"tensor {name!r} has the type {value.dtype}, which no kernel has") from None
        seen: NDArray[Any] = tensor.view(carriers[element.size]).numpy().view(element.numpy)
        return seen


def difference(name: str, actual: Any, expected: Any, rtol: float, atol: float) -> tuple[float, str]:
    """The largest difference, and what is wrong: empty where every element is within the tolerances."""
    import numpy as np

    found = tensor_array(name, actual).astype(np.float64)
    wanted = tensor_array(name, expected).astype(np.float64)
    if found.shape != wanted.shape:
        # dimensions of 1 more or less are the same elements; anything else would be spread over others
        if [n for n in found.shape if n != 1] != [n for n in wanted.shape if n != 1]:
            return float(
                "inf"
            ), f"{name}: the golden has the shape {list(wanted.shape)}, the output {list(found.shape)}"
        wanted = wanted.reshape(found.shape)
    with np.errstate(invalid="ignore"):
        apart = np.where(found == wanted, 0.0, np.abs(found - wanted))
    largest = float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))
    close = np.isclose(found, wanted, rtol=rtol, atol=atol)
    if close.all():
        return largest, ""
    index = np.unravel_index(int(np.argmin(close)), close.shape)
    at = ",".join(map(str, index))
    return largest, (
        f"{name}: {int((~close).sum())} of {close.size} differ, first {name}[{at}] is "
        f"{found[index]:.6g} and should be {wanted[index]:.6g}"
    )


def compare_outputs(test_args: Any, golden_args: Any, names: Any, rtol: float, atol: float) -> None:
    """AssertionError says which of the outputs are not what they should be."""
    wrong = [
        difference(name, getattr(test_args, name), getattr(golden_args, name), rtol, atol)[1]
        for name in names
    ]
    message = "; ".join(text for text in wrong if text)
    if message:
        raise AssertionError(message)
