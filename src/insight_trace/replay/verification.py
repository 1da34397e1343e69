"""Did the replay compute what the run computed? Outputs against what was recorded after completion."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

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
    UNWRITTEN = (
        "unwritten"  # as recorded, but the replay wrote no byte of it: nothing speaks for it or against it
    )


class OutputCheck(Struct, frozen=True):
    """One output slot's comparison."""

    slot: int
    status: Status
    max_error: float | None = None  # largest absolute error; None: nothing was compared
    first_index: tuple[int, ...] | None = None  # of the first element that disagrees
    wrong: int = 0  # elements that disagree
    compared: int = 0
    why: str = ""
    ulp: float | None = None  # the largest error in units in the last place (`units_apart`)
    furthest: tuple[int, ...] | None = None  # where that is

    @property
    def text(self) -> str:
        """As the replay command prints it."""
        if self.status is Status.VERIFIED:
            how = "exact" if not self.max_error else f"within {self.ulp:.2g} ulp"
            furthest = f", furthest at [{','.join(map(str, self.furthest))}]" if self.furthest else ""
            return f"slot {self.slot} {how} in {self.why or f'{self.compared:,} elements'}{furthest}"
        if self.status is Status.MISMATCH:
            at = ",".join(map(str, self.first_index or ()))
            return (
                f"slot {self.slot} mismatch: {self.wrong:,} of {self.compared:,} elements, "
                f"largest error {self.max_error:.6g} ({self.ulp:.3g} ulp), first at [{at}]"
            )
        return f"slot {self.slot} {self.status}: {self.why}"


def verdict(checks: Sequence[OutputCheck]) -> Status:
    """Of a dispatch: verified only if one of its slots is, and none is wrong or unknown."""
    found = {check.status for check in checks}
    for status in (Status.MISMATCH, Status.UNVERIFIABLE, Status.VERIFIED):
        if status in found:
            return status
    return Status.UNVERIFIABLE


# Units in the last place by which an output may differ: the recorded run may have been another implementation of the
# same arithmetic (hardware, or a host library's exp) that rounds and adds up in another order. Sums are kept in FLOAT32,
# where that shows most; a narrower type is rounded once. Whole numbers have no excuse.
_UNITS = {"FLOAT32": 64.0, "FLOAT16": 4.0, "BFLOAT16": 4.0, "FP8E4M3FN": 2.0, "FP8E5M2": 2.0, "FP4E2M1": 1.0}
_FRACTION_BITS = {
    "FLOAT32": 23, "FLOAT16": 10, "BFLOAT16": 7, "FP8E4M3FN": 3, "FP8E5M2": 2, "FP4E2M1": 1, "FP8E8M0": 0,
}  # fmt: skip
_LEAST_EXPONENT = {
    "FLOAT32": -126,
    "BFLOAT16": -126,
    "FLOAT16": -14,
    "FP8E4M3FN": -6,
    "FP8E5M2": -14,
    "FP4E2M1": 0,
}
_SAMPLE = 1 << 16  # elements of which a tensor's usual size is taken
_BLOCK = 1 << 20  # elements compared at a time


def verify_outputs(
    arguments: ReplayArguments,
    buffers: Mapping[int, NDArray[np.uint8]],
    *,
    partial: str = "",
    written: Callable[[ReplayTensor], NDArray[np.uint8] | None] | None = None,
) -> tuple[OutputCheck, ...]:
    """Compares every output slot's buffer with the recorded payload.

    `partial` says why the replay covered only part of the dispatch (some of its blocks), if it did. A disagreement
    that made-up or changed inputs, or a partial run, explain is unverifiable, not a mismatch. `written` tells what
    bytes the replay wrote of a buffer, None where that is not known: a run that was shortened is compared there, and
    verified if all that it wrote agrees. A slot in which no byte was written is never verified.
    """
    excuse = partial or _excuse(arguments)
    return tuple(
        _check(tensor, buffers.get(tensor.slot), excuse, written)
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
    excuse: str,
    written: Callable[[ReplayTensor], NDArray[np.uint8] | None] | None,
) -> OutputCheck:
    expected = tensor.expected
    if expected is None:
        return _unverifiable(tensor, "nothing was recorded after completion")
    if buffer is None:
        return _unverifiable(tensor, "the simulator returned no content for it")
    if tensor.numel == 0:
        return _unverifiable(tensor, "it has no elements")
    if expected.size < tensor.dtype.size:
        return _unverifiable(tensor, "its recorded payload was cut off before the first element")
    result = _compare(tensor, view_of(tensor, buffer), payload_bytes(expected))
    mask = written(tensor) if written is not None else None
    if result.status is Status.VERIFIED and not _is_written(mask, buffer):
        return replace(result, status=Status.UNWRITTEN, why="as recorded, but no byte of it was written")
    if result.status is Status.MISMATCH and excuse:
        part = None
        if mask is not None:
            part = _written_part(tensor, view_of(tensor, buffer), mask, payload_bytes(expected))
        if part is not None:
            return part
        why = f"it differs from the recording, as it may: {excuse}"
        return replace(result, status=Status.UNVERIFIABLE, why=why)
    if result.status is Status.VERIFIED and result.compared < tensor.numel:
        why = f"only {result.compared} of {tensor.numel} elements were recorded; those agree"
        return replace(result, status=Status.UNVERIFIABLE, why=why)
    return result


def _is_written(mask: NDArray[np.uint8] | None, buffer: NDArray[np.uint8]) -> bool:
    """Whether something shows that a byte was written; without the instructions, content that is not zero does."""
    return bool((buffer if mask is None else mask).any())


def _written_part(
    tensor: ReplayTensor,
    actual: NDArray[Any],
    mask: NDArray[np.uint8],
    raw: NDArray[np.uint8],
) -> OutputCheck | None:
    """A run that was shortened writes less: the elements that it did write, if all of them agree."""
    import numpy as np

    size = tensor.dtype.size
    want = raw[: raw.nbytes // size * size].view(tensor.dtype.numpy)
    got = actual.reshape(-1)[: want.size]
    touched = np.ascontiguousarray(view_of(tensor, mask)).view(f"u{size}").reshape(-1)[: want.size] != 0
    scale = usual_size(want[touched], tensor.dtype)
    errors, units, agree = agreement(got[touched], want[touched], tensor.dtype, scale)
    if not errors.size or not bool(agree.all()):
        return None
    why = f"the {errors.size:,} of {got.size:,} elements that it wrote"
    worst = float(units.max())
    return OutputCheck(
        tensor.slot, Status.VERIFIED, float(errors.max()), compared=errors.size, why=why, ulp=worst
    )


def _unverifiable(tensor: ReplayTensor, why: str) -> OutputCheck:
    return OutputCheck(tensor.slot, Status.UNVERIFIABLE, why=why)


def _compare(tensor: ReplayTensor, actual: NDArray[Any], raw: NDArray[np.uint8]) -> OutputCheck:
    import numpy as np

    size = tensor.dtype.size
    expected = raw[: raw.nbytes // size * size].view(tensor.dtype.numpy)
    max_error, ulp, wrong, compared = 0.0, 0.0, 0, 0
    first: tuple[int, ...] | None = None
    furthest: tuple[int, ...] | None = None
    scale = None

    def index(flat: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(flat, tensor.shape)) if tensor.shape else ()

    for start, block in _blocks(actual):
        want = expected[start : start + block.size]
        if not want.size:
            break
        got = block.reshape(-1)[: want.size]
        compared += want.size
        if got.tobytes() == want.tobytes():
            continue
        scale = usual_size(expected, tensor.dtype) if scale is None else scale
        errors, units, agree = agreement(got, want, tensor.dtype, scale)
        max_error = max(max_error, float(errors.max()))
        if float(units.max()) > ulp:
            ulp = float(units.max())
            furthest = index(start + int(np.argmax(units)))
        missed = int(agree.size - np.count_nonzero(agree))
        if missed and first is None:
            first = index(start + int(np.argmin(agree)))
        wrong += missed
    status = Status.MISMATCH if wrong else Status.VERIFIED
    return OutputCheck(tensor.slot, status, max_error, first, wrong, compared, ulp=ulp, furthest=furthest)


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


def usual_size(values: NDArray[Any], dtype: DType) -> float:
    """The median of what is not zero: a result near zero is a difference of values of about this size."""
    import numpy as np

    if not dtype.is_float or not values.size:
        return 0.0
    sample = values.reshape(-1)[:: max(1, values.size // _SAMPLE)]
    with np.errstate(all="ignore"):
        sizes = np.abs(sample.astype(np.float32))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.median(sizes)) if sizes.size else 0.0


def agreement(
    got: NDArray[Any], want: NDArray[Any], dtype: DType, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Error per element, absolute and in units in the last place, and whether it is within the type's tolerance.

    A unit is that of the expected value, or of `scale` where the value is smaller. NaN agrees with NaN only.
    """
    import numpy as np

    if not dtype.is_float:
        # float64 cannot tell neighbours above 2**53 apart, so equality is decided on the integers
        agree = got == want
        large = np.maximum(got, want).astype(np.float64), np.minimum(got, want).astype(np.float64)
        errors = np.where(agree, 0.0, np.maximum(large[0] - large[1], 1.0))
        return errors, errors, np.asarray(agree)
    with np.errstate(all="ignore"):
        a = got.astype(np.float32).astype(np.float64)
        b = want.astype(np.float32).astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        errors = np.where(same, 0.0, np.abs(a - b))
        size = np.maximum(np.abs(b), scale)
        exponent = np.maximum(np.floor(np.log2(size)), _LEAST_EXPONENT.get(dtype.name, -126))
        unit = np.exp2(exponent - _FRACTION_BITS.get(dtype.name, 0))
        units = np.where(same, 0.0, errors / unit)
        agree = same | (units <= _UNITS.get(dtype.name, 0.0))
        agree &= same | (np.isfinite(a) & np.isfinite(b))
    return (*(np.where(np.isnan(each), np.inf, each) for each in (errors, units)), agree)
