"""Buffers as a kernel finds them: logical content scattered into its strided place, and gathered back.

A buffer of a big pool is reserved, not filled: pages that nobody writes cost nothing.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.arguments.slots import (
    CallerArray,
    Fill,
    FromFile,
    OtherRecord,
    Random,
    Recorded,
    ReplayTensor,
    Zero,
    element_count,
    view_extent,
)
from insight_trace.dtypes import DoesNotFitError, encode_element, integer_range
from insight_trace.dump import recorded_bytes
from insight_trace.errors import InputError, JobError, RequestError
from insight_trace.model import Payload
from insight_trace.reading import load_npy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from insight_trace.dtypes import DType

_RESERVE_FROM = 64 * 1024 * 1024
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux; Python names it from 3.13 on
_RANDOM_INTEGERS = 8


def materialise(tensor: ReplayTensor) -> NDArray[np.uint8]:
    """The tensor's whole buffer, `buffer_size` bytes, with its content in place and zero elsewhere."""
    buffer = reserve(tensor.buffer_size, f"slot {tensor.slot}")
    scatter(tensor, buffer)
    return buffer


def scatter(tensor: ReplayTensor, buffer: NDArray[np.uint8], *, base: int = 0) -> None:
    """Writes the tensor's content into a buffer of its bytes from `base` on. Nothing else is touched."""
    content = tensor.content
    if isinstance(content, Zero) or tensor.numel == 0:
        return
    if isinstance(content, OtherRecord):
        view = _strided(
            content.dtype, content.shape, content.strides, content.start_offset, buffer, base, tensor.slot
        )
        _assign(view, payload_bytes(content.payload), content.dtype)
        return
    view = view_of(tensor, buffer, base=base)
    if isinstance(content, Recorded):
        _assign(view, payload_bytes(content.payload), tensor.dtype)
    elif isinstance(content, CallerArray):
        view[...] = content.array.reshape(view.shape)
    elif isinstance(content, FromFile):
        view[...] = file_elements(content.path, tensor)
    elif isinstance(content, Fill):
        view[...] = _fill_element(content, tensor)
    else:
        view[...] = _random_elements(content, tensor)


def view_of(tensor: ReplayTensor, buffer: NDArray[np.uint8], *, base: int = 0) -> NDArray[Any]:
    """The tensor's elements inside its buffer: a view to read or write, in the tensor's shape."""
    return _strided(
        tensor.dtype, tensor.shape, tensor.strides, tensor.start_offset, buffer, base, tensor.slot
    )


def content_span(tensor: ReplayTensor) -> tuple[int, int]:
    """First byte and end of the part of the buffer that its content reaches; empty for zero content."""
    content = tensor.content
    if isinstance(content, Zero) or tensor.numel == 0:
        return 0, 0
    geometry: ReplayTensor | OtherRecord = content if isinstance(content, OtherRecord) else tensor
    size = geometry.dtype.size
    end = view_extent(geometry.shape, geometry.strides, geometry.start_offset)
    return geometry.start_offset * size, end * size


def span_bytes(tensor: ReplayTensor) -> tuple[int, NDArray[np.uint8]]:
    """The part of the buffer that has content: where it starts, and its bytes. The rest is zero."""
    start, end = content_span(tensor)
    span = reserve(end - start, f"slot {tensor.slot}")
    scatter(tensor, span, base=start)
    return start, span


def payload_bytes(payload: Payload) -> NDArray[np.uint8]:
    """A recorded payload's bytes, mapped."""
    import numpy as np

    return np.frombuffer(recorded_bytes.payload_bytes(payload), np.uint8)


def reserve(size: int, what: str) -> NDArray[np.uint8]:
    """Zeroed bytes; large ones are mapped without being backed until they are touched."""
    import numpy as np

    if size < _RESERVE_FROM:
        return np.zeros(size, np.uint8)
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    except (OSError, OverflowError, ValueError):
        raise JobError(f"{what} needs a buffer of {size} bytes, which this machine cannot reserve") from None
    return np.frombuffer(memory, np.uint8)


def _strided(
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    start_offset: int,
    buffer: NDArray[np.uint8],
    base: int,
    slot: int,
) -> NDArray[Any]:
    import numpy as np

    start = start_offset * dtype.size - base
    end = view_extent(shape, strides, start_offset) * dtype.size - base
    if element_count(shape) == 0:
        return np.empty(shape, dtype.numpy)
    if start < 0 or end > buffer.nbytes:
        raise RequestError(
            f"slot {slot}: a buffer of {buffer.nbytes} bytes does not hold bytes {start} to {end}"
        )
    elements = buffer[start:end].view(dtype.numpy)
    steps = tuple(step * dtype.size for step in strides)
    return np.lib.stride_tricks.as_strided(elements, shape, steps, writeable=buffer.flags.writeable)


def _assign(view: NDArray[Any], raw: NDArray[np.uint8], dtype: DType) -> None:
    """Row-major elements into a view; a prefix leaves the rest as it is."""
    elements = raw[: raw.nbytes // dtype.size * dtype.size].view(dtype.numpy)
    if elements.size == view.size:
        view[...] = elements.reshape(view.shape)
    elif elements.size:
        # Whole leading rows at once, then the row in which the prefix ends, dimension by dimension.
        while view.ndim > 1:
            row = view.size // view.shape[0]
            whole = elements.size // row
            view[:whole] = elements[: whole * row].reshape((whole, *view.shape[1:]))
            elements = elements[whole * row :]
            if not elements.size:
                return
            view = view[whole]
        view[: elements.size] = elements


def _fill_element(content: Fill, tensor: ReplayTensor) -> Any:
    import numpy as np

    try:
        raw = encode_element(tensor.dtype, content.value)
    except DoesNotFitError as error:
        raise RequestError(f"slot {tensor.slot}: {error}") from None
    return np.frombuffer(raw, tensor.dtype.numpy)[0]


def _random_elements(content: Random, tensor: ReplayTensor) -> NDArray[Any]:
    import numpy as np

    generator = np.random.default_rng([content.seed, tensor.slot])
    if tensor.dtype.is_float:
        drawn = generator.uniform(-1.0, 1.0, tensor.shape).astype(np.float32)
        if tensor.dtype.name == "FP8E8M0":  # a scale format: positive powers of two only
            drawn = np.exp2(np.floor(drawn * 4)).astype(np.float32)
        return np.asarray(drawn.astype(tensor.dtype.numpy))
    high = min(integer_range(tensor.dtype)[1] + 1, _RANDOM_INTEGERS)
    return np.asarray(generator.integers(0, high, tensor.shape).astype(tensor.dtype.numpy))


def file_elements(path: Path, tensor: ReplayTensor) -> NDArray[Any]:
    """A user's file as the tensor's elements; one that does not fit the tensor is refused."""
    import numpy as np

    where = f"slot {tensor.slot}, {path}"
    try:
        if path.suffix == ".npy":
            return _npy_elements(path, tensor, where)
        needed = tensor.numel * tensor.dtype.size
        size = path.stat().st_size
        if size != needed:
            raise InputError(
                f"the file has {size} bytes, but {tensor.dtype.name} {list(tensor.shape)} has {needed}",
                where=where,
            )
        raw = payload_bytes(Payload(path, 0, needed))
        return np.asarray(raw.view(tensor.dtype.numpy).reshape(tensor.shape))
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", where=where) from None


def _npy_elements(path: Path, tensor: ReplayTensor, where: str) -> NDArray[Any]:
    import numpy as np

    array = load_npy(path)
    if array.dtype != tensor.dtype.numpy:
        # NumPy cannot name bf16 or fp8 in a .npy file: they arrive as raw elements of the same width.
        if array.dtype.kind not in "Vu" or array.dtype.itemsize != tensor.dtype.size:
            raise InputError(f"the file holds {array.dtype}, the slot is {tensor.dtype.name}", where=where)
        array = array.view(tensor.dtype.numpy)
    if array.size != tensor.numel:
        raise InputError(
            f"the file has shape {list(array.shape)}, the slot {list(tensor.shape)}", where=where
        )
    return np.asarray(array.reshape(tensor.shape))
