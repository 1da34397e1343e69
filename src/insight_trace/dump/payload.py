"""Recorded bytes as NumPy arrays, mapped from their file when they are asked for."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import DType
from insight_trace.errors import InputError, RequestError
from insight_trace.model import Payload, Stage, TensorArg

if TYPE_CHECKING:
    from numpy.typing import NDArray


def payload_bytes(payload: Payload) -> memoryview:
    """The recorded bytes, mapped read-only: no byte is read before it is looked at."""
    try:
        with payload.path.open("rb") as file:
            length = file.seek(0, 2)
            if payload.offset + payload.size > length:
                raise InputError(
                    f"bytes {payload.offset}..{payload.offset + payload.size} lie outside its {length} bytes",
                    where=str(payload.path),
                    hint="the payload file was cut off after the dump was loaded; dump again",
                )
            if payload.size == 0:
                return memoryview(b"")
            start = payload.offset - payload.offset % mmap.ALLOCATIONGRANULARITY
            span = payload.offset + payload.size - start
            mapped = mmap.mmap(file.fileno(), span, access=mmap.ACCESS_READ, offset=start)
            return memoryview(mapped)[payload.offset - start :]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(payload.path)) from None


def payload_array(payload: Payload, dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """The tensor that a payload holds. A truncated payload gives its elements in a row, as far as they go."""
    import numpy as np

    flat: NDArray[Any] = np.frombuffer(payload_bytes(payload), dtype=dtype.numpy)
    return flat if payload.truncated else flat.reshape(shape)


def tensor_array(tensor: TensorArg, stage: Stage) -> NDArray[Any]:
    """What was recorded of a tensor at that stage; RequestError where nothing was."""
    payload = tensor.before if stage is Stage.BEFORE else tensor.after
    if payload is None:
        raise RequestError(
            f"slot {tensor.slot} has no recorded content at {stage.value}",
            hint="dump at level 2, or mark the tensor with dump() in the orchestration",
        )
    return payload_array(payload, tensor.dtype, tensor.shape)
