"""Global memory of a captured run: the scene's tensors, then room for what the runtime allocates.

A file in memory that the runner and its workers map at one fixed address. Pages that nothing touches cost
nothing, so there is room for far more than the machine has.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import DType
from insight_trace.errors import RequestError
from insight_trace.model import MAX_TENSOR_DIMS
from insight_trace.scene.live import LiveTensor
from insight_trace.simulate.embedded.memory import BASE, Buffer, GlobalMemory, escape

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEAP_BYTES = 1 << 38
MARGIN = 64 << 10  # bytes after each tensor that a kernel may read, as it may on a device


class Arena:
    """The scene's tensors at their addresses. Close it when the run is over."""

    def __init__(self, tensors: Sequence[LiveTensor]) -> None:
        self.tensors = tensors
        memory = GlobalMemory()
        self._buffers = [memory.reserve(t.name, t.array.nbytes, t.array.nbytes + MARGIN) for t in tensors]
        self.heap = memory.end
        self.end = self.heap + HEAP_BYTES
        try:
            self.file = os.memfd_create("insight-trace-capture")
            os.ftruncate(self.file, self.end - BASE)
            self._map = mmap.mmap(self.file, max(self.heap - BASE, mmap.PAGESIZE))
        except OSError as error:
            error.filename = "the memory of the run"  # the machine's fault, never told as one of the scene
            raise
        for tensor, buffer in zip(tensors, self._buffers, strict=True):
            if tensor.array.ndim > MAX_TENSOR_DIMS:
                raise RequestError(
                    f"tensor {tensor.name!r} has {tensor.array.ndim} dimensions, a kernel's has at most 5"
                )
            start = buffer.address - BASE
            self._map[start : start + tensor.array.nbytes] = _bytes(tensor.array)

    def placed(self) -> Iterator[tuple[LiveTensor, int]]:
        """Each tensor and its address."""
        return ((t, b.address) for t, b in zip(self.tensors, self._buffers, strict=True))

    def job_lines(self) -> list[str]:
        lines = [f"arena\t{self.file}\t{BASE}\t{self.heap}\t{self.end}"]
        for tensor, buffer in zip(self.tensors, self._buffers, strict=True):
            shape = tensor.array.shape or (1,)
            what = (buffer.address, buffer.size, tensor.name, tensor.dtype, shape, row_major(shape))
            lines.append(tensor_line(*what))
        return lines

    def copy_back(self) -> None:
        """What the run wrote goes into the scene's own arrays."""
        import numpy as np

        for tensor, buffer in zip(self.tensors, self._buffers, strict=True):
            count = tensor.array.size
            seen = np.frombuffer(self._map, tensor.array.dtype, count, buffer.address - BASE)
            if tensor.direction != "IN":
                tensor.array[...] = seen.reshape(tensor.array.shape)
            del seen

    def overruns(self) -> list[str]:
        """What was written past the end of a tensor: nothing is put there before the run."""
        return [
            f"something was written past the end of {tensor.name}"
            for tensor, buffer in zip(self.tensors, self._buffers, strict=True)
            if any(self._after(buffer))
        ]

    def _after(self, buffer: Buffer) -> bytes:
        start = buffer.address - BASE + buffer.size
        return self._map[start : start + MARGIN]

    def close(self) -> None:
        self._map.close()
        os.close(self.file)


def _bytes(array: NDArray[Any]) -> memoryview:
    import numpy as np

    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def tensor_line(
    address: int, size: int, name: str, dtype: DType, shape: Sequence[int], strides: Sequence[int]
) -> str:
    """How the runner is told of a tensor that the orchestration gets."""
    return "\t".join(map(str, ["tensor", address, size, escape(name), dtype.code, *shape, *strides]))


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a tensor without gaps."""
    strides = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    return tuple(strides)
