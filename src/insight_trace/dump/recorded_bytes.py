"""Recorded bytes: as NumPy arrays, mapped when they are asked for, and collected into one .bin file."""

from __future__ import annotations

import contextlib
import mmap
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from insight_trace.dtypes import DType
from insight_trace.errors import InputError, RequestError
from insight_trace.model import Payload, Stage, TensorArg
from insight_trace.reading import open_regular
from insight_trace.storage import refuse_existing, whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PIECE = 1 << 20


def payload_bytes(payload: Payload) -> memoryview:
    """The recorded bytes, mapped read-only: no byte is read before it is looked at."""
    try:
        with open_regular(payload.path) as file:
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


class PayloadCopy:
    """A .bin file being written; it appears only if a payload was added and nothing failed."""

    def __init__(self, path: Path, *, force: bool) -> None:
        self._path = path
        self._force = force
        self._stack = contextlib.ExitStack()
        self._file: IO[bytes] | None = None
        self._position = 0

    @property
    def written(self) -> bool:
        return self._file is not None

    def add(self, payload: Payload) -> tuple[int, int]:
        """Appends a payload; returns its offset and size in this file."""
        if self._file is None:
            self._file = self._stack.enter_context(whole_file(self._path, force=self._force))
        data = payload_bytes(payload)
        for start in range(0, len(data), _PIECE):
            self._file.write(data[start : start + _PIECE])
        offset = self._position
        self._position += len(data)
        return offset, len(data)

    def __enter__(self) -> PayloadCopy:
        refuse_existing(self._path, force=self._force)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
