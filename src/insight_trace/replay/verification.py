"""Did the replay compute what the run computed? Outputs against what was recorded after completion."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace.arguments.buffers import payload_bytes, view_of
from insight_trace.arguments.slots import ReplayArguments, ReplayTensor
from insight_trace.model import Tier

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from insight_trace.dtypes import DType


class Status(enum.StrEnum):
    """What a comparison of one output slot came to."""

    VERIFIED = "verified"
    MISMATCH = "mismatch"
    UNVERIFIABLE = "unverifiable"


class Tolerance(Struct, frozen=True):
    """An element agrees if its error is at most `absolute + relative x |expected|`."""

    relative: float
    absolute: float


class OutputCheck(Struct, frozen=True):
    """One output slot's comparison."""

    slot: int
    status: Status
    max_error: float | None = None  # largest absolute error; None: nothing was compared
    first_index: tuple[int, ...] | None = None  # of the first element that disagrees
    wrong: int = 0  # elements that disagree
    compared: int = 0
    why: str = ""

    @property
    def text(self) -> str:
        """As the replay command prints it."""
        if self.status is Status.VERIFIED:
            how = "exact" if not self.max_error else f"within {self.max_error:.2g}"
            return f"slot {self.slot} {how}" + (f" in {self.why}" if self.why else "")
        if self.status is Status.MISMATCH:
            at = ",".join(map(str, self.first_index or ()))
            return (
                f"slot {self.slot} mismatch: {self.wrong} of {self.compared} elements, "
                f"largest error {self.max_error:.6g}, first at [{at}]"
            )
        return f"slot {self.slot} unverifiable: {self.why}"


# A few units in the last place: the recorded run may have been another implementation of the same arithmetic
# (hardware, or a host library's exp) that rounds and adds up in another order. Whole numbers have no excuse.
_TOLERANCES = {
    "FLOAT32": Tolerance(1e-4, 1e-5),
    "FLOAT16": Tolerance(2e-3, 1e-3),
    "BFLOAT16": Tolerance(1.6e-2, 1e-3),
    "FP8E4M3FN": Tolerance(0.13, 2e-3),
    "FP8E8M0": Tolerance(0.0, 0.0),
    "FP4E2M1": Tolerance(0.0, 0.5),
}
_EXACT = Tolerance(0.0, 0.0)
_BLOCK = 1 << 20  # elements compared at a time


def tolerance_of(dtype: DType) -> Tolerance:
    return _TOLERANCES.get(dtype.name, _EXACT)


def verify_outputs(
    arguments: ReplayArguments,
    buffers: Mapping[int, NDArray[np.uint8]],
    *,
    tolerance: Tolerance | None = None,
    partial: str = "",
    written: Callable[[ReplayTensor], NDArray[np.uint8] | None] | None = None,
) -> tuple[OutputCheck, ...]:
    """Compares every output slot's buffer with the recorded payload.

    `tolerance` replaces that of the float types. `partial` says why the replay covered only part of the
    dispatch (some of its blocks), if it did. A disagreement that made-up or changed inputs, or a partial run,
    explain is unverifiable, not a mismatch. `written` tells what bytes the replay wrote of a buffer: a run that
    was shortened is compared there, and verified if all that it wrote agrees.
    """
    excuse = partial or _excuse(arguments)
    return tuple(
        _check(tensor, buffers.get(tensor.slot), tolerance, excuse, written)
        for tensor in arguments.tensors
        if tensor.is_output
    )


def _excuse(arguments: ReplayArguments) -> str:
    for tier, text in ((Tier.SYNTHETIC, "made up"), (Tier.FILLED, "changed by --set-arg or --fill")):
        slots = [item.slot for item in arguments.slots if item.tier is tier]
        if slots:
            listed = ", ".join(map(str, slots))
            return f"input slot {listed} is {text}" if len(slots) == 1 else f"input slots {listed} are {text}"
    return ""


def _check(
    tensor: ReplayTensor,
    buffer: NDArray[np.uint8] | None,
    tolerance: Tolerance | None,
    excuse: str,
    written: Callable[[ReplayTensor], NDArray[np.uint8] | None] | None,
) -> OutputCheck:
    expected = tensor.expected
    if expected is None:
        return _unverifiable(tensor, "nothing was recorded after completion")
    if buffer is None:
        return _unverifiable(tensor, "the simulator returned no content for it")
    if tensor.numel == 0:
        return OutputCheck(tensor.slot, Status.VERIFIED, 0.0)
    if expected.size < tensor.dtype.size:
        return _unverifiable(tensor, "its recorded payload was cut off before the first element")
    used = tolerance if tolerance is not None and tensor.dtype.is_float else tolerance_of(tensor.dtype)
    result = _compare(tensor, view_of(tensor, buffer), payload_bytes(expected), used)
    if result.status is Status.MISMATCH and excuse:
        mask = written(tensor) if written is not None else None
        part = None
        if mask is not None:
            part = _written_part(tensor, view_of(tensor, buffer), mask, payload_bytes(expected), used)
        if part is not None:
            return part
        return OutputCheck(
            tensor.slot,
            Status.UNVERIFIABLE,
            result.max_error,
            result.first_index,
            result.wrong,
            result.compared,
            f"it differs from the recording, as it may: {excuse}",
        )
    if result.status is Status.VERIFIED and result.compared < tensor.numel:
        why = f"only {result.compared} of {tensor.numel} elements were recorded; those agree"
        return OutputCheck(
            tensor.slot, Status.UNVERIFIABLE, result.max_error, compared=result.compared, why=why
        )
    return result


def _written_part(
    tensor: ReplayTensor,
    actual: NDArray[Any],
    mask: NDArray[np.uint8],
    raw: NDArray[np.uint8],
    tolerance: Tolerance,
) -> OutputCheck | None:
    """A run that was shortened writes less: the elements that it did write, if all of them agree."""
    import numpy as np

    size = tensor.dtype.size
    want = raw[: raw.nbytes // size * size].view(tensor.dtype.numpy)
    got = actual.reshape(-1)[: want.size]
    touched = np.ascontiguousarray(view_of(tensor, mask)).view(f"u{size}").reshape(-1)[: want.size] != 0
    errors, agree = agreement(got[touched], want[touched], tensor.dtype, tolerance)
    if not errors.size or not bool(agree.all()):
        return None
    why = f"the {errors.size:,} of {got.size:,} elements that it wrote"
    return OutputCheck(tensor.slot, Status.VERIFIED, float(errors.max()), compared=errors.size, why=why)


def _unverifiable(tensor: ReplayTensor, why: str) -> OutputCheck:
    return OutputCheck(tensor.slot, Status.UNVERIFIABLE, why=why)


def _compare(
    tensor: ReplayTensor, actual: NDArray[Any], raw: NDArray[np.uint8], tolerance: Tolerance
) -> OutputCheck:
    import numpy as np

    size = tensor.dtype.size
    expected = raw[: raw.nbytes // size * size].view(tensor.dtype.numpy)
    max_error, wrong, compared = 0.0, 0, 0
    first: tuple[int, ...] | None = None
    for start, block in _blocks(actual):
        want = expected[start : start + block.size]
        if not want.size:
            break
        got = block.reshape(-1)[: want.size]
        compared += want.size
        if got.tobytes() == want.tobytes():
            continue
        errors, agree = agreement(got, want, tensor.dtype, tolerance)
        max_error = max(max_error, float(errors.max()))
        missed = int(agree.size - np.count_nonzero(agree))
        if missed and first is None:
            flat = start + int(np.argmin(agree))
            first = tuple(int(i) for i in np.unravel_index(flat, tensor.shape)) if tensor.shape else ()
        wrong += missed
    status = Status.MISMATCH if wrong else Status.VERIFIED
    return OutputCheck(tensor.slot, status, max_error, first, wrong, compared)


def _blocks(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Pieces of whole leading rows with the flat index where each starts, so that no copy is large."""
    if array.ndim == 0 or array.size <= _BLOCK:
        yield 0, array
        return
    row = array.size // array.shape[0]
    if row > _BLOCK:
        for index in range(array.shape[0]):
            for start, block in _blocks(array[index]):
                yield index * row + start, block
        return
    rows = max(1, _BLOCK // row)
    for index in range(0, array.shape[0], rows):
        yield index * row, array[index : index + rows]


def agreement(
    got: NDArray[Any], want: NDArray[Any], dtype: DType, tolerance: Tolerance
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Absolute error per element, and whether it is within tolerance. NaN agrees with NaN only."""
    import numpy as np

    if not dtype.is_float:
        # float64 cannot tell neighbours above 2**53 apart, so equality is decided on the integers
        agree = got == want
        large = np.maximum(got, want).astype(np.float64), np.minimum(got, want).astype(np.float64)
        errors = np.where(agree, 0.0, np.maximum(large[0] - large[1], 1.0))
        return errors, np.asarray(agree)
    with np.errstate(all="ignore"):
        a = got.astype(np.float32).astype(np.float64)
        b = want.astype(np.float32).astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        errors = np.where(same, 0.0, np.abs(a - b))
        agree = same | (errors <= tolerance.absolute + tolerance.relative * np.abs(b))
        agree &= same | (np.isfinite(a) & np.isfinite(b))
    return np.where(np.isnan(errors), np.inf, errors), agree
