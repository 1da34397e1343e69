"""The 128-byte tensor descriptor that a kernel finds behind a tensor slot.

Layout: simpler, src/common/task_interface/tensor.h since 2026-05-20. What kernels read (addr, start_offset,
shapes) has stood where it is since April 2026.
"""

from __future__ import annotations

import struct

from insight_trace.arguments.slots import ReplayTensor, view_extent
from insight_trace.model import MAX_TENSOR_DIMS

DESCRIPTOR_SIZE = 128

# addr, size, owner task, start_offset; version, ndims; dtype, manual_dep, is_contiguous, address_space;
# shapes; extent; strides; padding
_LAYOUT = struct.Struct("<QQQQ iI BBBB 5I Q 5I 36x".replace(" ", ""))
assert _LAYOUT.size == DESCRIPTOR_SIZE


def pack_descriptor(tensor: ReplayTensor, address: int, *, owner_task: int = 0) -> bytes:
    """The descriptor of a tensor whose buffer starts at `address`."""
    padding = (0,) * (MAX_TENSOR_DIMS - len(tensor.shape))
    return _LAYOUT.pack(
        address,
        tensor.declared_size,
        owner_task,
        tensor.start_offset,
        0,
        len(tensor.shape),
        tensor.dtype.code,
        0,
        tensor.is_contiguous,
        0,
        *tensor.shape,
        *padding,
        view_extent(tensor.shape, tensor.strides, 0),
        *tensor.strides,
        *padding,
    )
