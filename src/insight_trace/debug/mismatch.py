"""Which elements of a run's outputs are not what was recorded, and where any element of an argument lies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.arguments.buffers import payload_bytes, view_of
from insight_trace.arguments.slots import ReplayTensor
from insight_trace.debug.tile_layout import as_double
from insight_trace.errors import RequestError
from insight_trace.replay.verification import agreement, usual_size

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session
    from insight_trace.outcome import Simulation

_TARGET = re.compile(r"(?:slot\s*)?(?P<slot>\d+)\s*\[(?P<index>[\d\s,-]*)\]")


@dataclass(frozen=True, eq=False)
class Wrong:
    """One output slot that is not what was recorded."""

    tensor: ReplayTensor
    flat: NDArray[np.int64]  # elements that differ, row-major
    right: NDArray[np.int64]  # elements that do not
    got: NDArray[Any]  # of all elements
    want: NDArray[Any]
    tolerated: bool  # every difference is within the tolerance

    @property
    def first(self) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(int(self.flat[0]), self.tensor.shape or (1,)))


def tensor_of(session: Session, slot: int) -> ReplayTensor:
    """The tensor in a slot."""
    for tensor in session.arguments.tensors:
        if tensor.slot == slot:
            return tensor
    known = ", ".join(str(tensor.slot) for tensor in session.arguments.tensors)
    raise RequestError(f"slot {slot} holds no tensor", hint=f"tensors are in slot {known}")


def named_element(session: Session, text: str) -> tuple[ReplayTensor, tuple[int, ...]]:
    """`SLOT[i,j]` as a tensor and an index in it."""
    found = _TARGET.fullmatch(text.strip())
    if found is None:
        raise RequestError(f"'{text}' is no element", hint="SLOT[i,j], e.g. 1[3,5]")
    tensor = tensor_of(session, int(found["slot"]))
    try:
        index = tuple(int(part) for part in found["index"].split(",") if part.strip())
    except ValueError:
        raise RequestError(f"'{text}' is no element", hint="SLOT[i,j], e.g. 1[3,5]") from None
    if len(index) != len(tensor.shape):
        raise RequestError(
            f"slot {tensor.slot} has {len(tensor.shape)} dimensions, {list(tensor.shape)}, not {len(index)}"
        )
    for place, extent in zip(index, tensor.shape, strict=True):
        if not 0 <= place < extent:
            raise RequestError(
                f"element {list(index)} lies outside slot {tensor.slot}, {list(tensor.shape)}",
                hint=f"elements are counted from 0: the last is {[extent - 1 for extent in tensor.shape]}",
            )
    return tensor, index


def addresses_in(session: Session, tensor: ReplayTensor, flat: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where elements of a tensor argument lie in global memory."""
    argument = next(item for item in session.recording.arguments if item["slot"] == tensor.slot)
    index = np.unravel_index(flat, tensor.shape or (1,))
    place = np.full(len(flat), tensor.start_offset, np.int64)
    for axis, stride in zip(index, tensor.strides, strict=False):
        place += np.asarray(axis, np.int64) * stride
    found: NDArray[np.int64] = int(argument["address"]) + place * tensor.dtype.size
    return found


def wrong_outputs(session: Session, run: Simulation) -> list[Wrong]:
    """Output slots that differ from what was recorded: outside the tolerance, or else at all."""
    found = []
    for tensor in session.arguments.tensors:
        if not tensor.is_output or tensor.expected is None or tensor.slot not in run.buffers:
            continue
        one = compared_output(tensor, run)
        if one is not None:
            found.append(one)
    beyond = [wrong for wrong in found if not wrong.tolerated]
    return beyond or found


def expected_of(tensor: ReplayTensor) -> NDArray[Any] | None:
    """What was recorded of an output, in its shape; None: not all of it was."""
    if tensor.expected is None:
        return None
    raw = np.frombuffer(bytes(payload_bytes(tensor.expected)), np.uint8)
    if len(raw) < tensor.numel * tensor.dtype.size:
        return None
    kind = tensor.dtype.numpy
    return raw[: tensor.numel * tensor.dtype.size].view(kind).reshape(tensor.shape)


def compared_output(tensor: ReplayTensor, run: Simulation) -> Wrong | None:
    """An output against what was recorded of it; None: they are the same, or nothing was."""
    want = expected_of(tensor)
    if want is None or not tensor.numel:
        return None
    got = np.asarray(view_of(tensor, run.buffers[tensor.slot])).reshape(tensor.shape)
    _, _, agree = agreement(got, want, tensor.dtype, usual_size(want, tensor.dtype))
    same = (got.view(np.uint8) if got.ndim == 0 else _bits(got)) == _bits(want)
    tolerated = bool(np.all(agree))
    wrong = np.asarray(~same if tolerated else ~agree).reshape(-1)
    if not wrong.any():
        return None
    return Wrong(
        tensor, np.flatnonzero(wrong), np.flatnonzero(np.asarray(same).reshape(-1)), got, want, tolerated
    )


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    contiguous = np.ascontiguousarray(values)
    return contiguous.view(np.dtype(f"u{contiguous.dtype.itemsize}"))


def unlike(got: NDArray[Any], want: NDArray[Any]) -> int:
    """How many elements are not bit for bit the same."""
    return int((_bits(got) != _bits(want)).sum())


def distance(got: NDArray[Any], want: NDArray[Any]) -> float:
    """How far two tensors are apart in all; what is not finite in only one of them counts as very far."""
    other = np.flatnonzero(_bits(got).reshape(-1) != _bits(want).reshape(-1))
    if not len(other):
        return 0.0
    got, want = np.ascontiguousarray(got).reshape(-1)[other], np.ascontiguousarray(want).reshape(-1)[other]
    with np.errstate(all="ignore"):
        a, b = as_double(got), as_double(want)
        gap = np.abs(a - b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        scale = np.maximum(1e-30, np.abs(b))
        relative = np.where(same, 0.0, np.minimum(gap / scale, 1e6))
    return float(np.where(np.isnan(relative), 1e6, relative).sum())
