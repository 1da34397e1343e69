"""The bytes that a kernel reads about its arguments: the args array of `kernel_entry(int64_t *args)`, 50 slots of 64
bits; the 128-byte descriptor behind a tensor slot; the two contexts behind slots 48 and 49.

Layouts: simpler, src/common/task_interface/tensor.h since 2026-05-20 (what kernels read, addr, start_offset and shapes,
has stood where it is since April 2026), and src/*/runtime/*/common/intrinsic.h. These tables are the only description:
the headers that kernels and orchestrations include are checked against them, and generated host code takes its
offsets from them. A kernel on its own has no asynchronous completion and no DMA workspace; those fields are null.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from insight_trace.arguments.slots import ReplayArguments, ReplayScalar, ReplayTensor, view_extent
from insight_trace.errors import RequestError
from insight_trace.model import ARG_SLOTS, GLOBAL_CONTEXT_SLOT, LOCAL_CONTEXT_SLOT, MAX_TENSOR_DIMS

ARGS_SIZE = ARG_SLOTS * 8

# field -> how it is packed; names as in the C++ structs, where a dot leads into a nested one
DESCRIPTOR = {
    "buffer.addr": "Q",
    "buffer.size": "Q",
    "owner_task_id": "Q",
    "start_offset": "Q",
    "version": "i",
    "ndims": "I",
    "dtype": "B",
    "manual_dep": "B",
    "is_contiguous": "B",
    "address_space": "B",
    "shapes": f"{MAX_TENSOR_DIMS}I",
    "extent_elem_cache": "Q",
    "strides": f"{MAX_TENSOR_DIMS}I",
    "reserved": "36x",
}
LOCAL_CONTEXT = {
    "block_idx": "i",
    "block_num": "i",
    "async_ctx.completion_count": "Q",
    "async_ctx.completion_error_code": "Q",
    "async_ctx.completion_entries": "Q",
    "async_ctx.completion_capacity": "I4x",
    "async_ctx.task_token": "Q",
}
GLOBAL_CONTEXT = {"sub_block_id": "i4x", "dma_workspace": "2Q"}


def offsets(layout: Mapping[str, str]) -> dict[str, int]:
    """Where each field begins."""
    codes = list(layout.values())
    return {name: struct.calcsize("<" + "".join(codes[:i])) for i, name in enumerate(layout)}


def _struct(layout: Mapping[str, str]) -> struct.Struct:
    return struct.Struct("<" + "".join(layout.values()))


_DESCRIPTOR, _LOCAL, _GLOBAL = map(_struct, (DESCRIPTOR, LOCAL_CONTEXT, GLOBAL_CONTEXT))
DESCRIPTOR_SIZE, LOCAL_CONTEXT_SIZE, GLOBAL_CONTEXT_SIZE = _DESCRIPTOR.size, _LOCAL.size, _GLOBAL.size


def pack_arguments(
    arguments: ReplayArguments, descriptors: Mapping[int, int], *, local_context: int, global_context: int
) -> bytes:
    """The args array, given where each tensor slot's descriptor and the two contexts lie."""
    slots = [0] * ARG_SLOTS
    for item in arguments.slots:
        if isinstance(item, ReplayScalar):
            slots[item.slot] = item.bits
        elif item.slot in descriptors:
            slots[item.slot] = descriptors[item.slot]
        else:
            raise RequestError(f"slot {item.slot} is a tensor without a descriptor address")
    slots[LOCAL_CONTEXT_SLOT] = local_context
    slots[GLOBAL_CONTEXT_SLOT] = global_context
    return struct.pack(f"<{ARG_SLOTS}Q", *slots)


def pack_descriptor(tensor: ReplayTensor, address: int, *, owner_task: int = 0) -> bytes:
    """The descriptor of a tensor whose buffer starts at `address`."""
    padding = (0,) * (MAX_TENSOR_DIMS - len(tensor.shape))
    extent = view_extent(tensor.shape, tensor.strides, 0)
    return _DESCRIPTOR.pack(
        address, tensor.declared_size, owner_task, tensor.start_offset, 0, len(tensor.shape), tensor.dtype.code,
        0, tensor.is_contiguous, 0, *tensor.shape, *padding, extent, *tensor.strides, *padding,
    )  # fmt: skip


def pack_local_context(block_idx: int, block_count: int) -> bytes:
    """What `get_block_idx(args)` and `get_block_num(args)` read."""
    return _LOCAL.pack(block_idx, block_count, 0, 0, 0, 0, 0)


def pack_global_context(sub_block_id: int) -> bytes:
    """What `get_sub_block_id(args)` reads: which vector core of a mix this is."""
    return _GLOBAL.pack(sub_block_id, 0, 0)
