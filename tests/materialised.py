"""The buffers of a replay's tensors, side by side in this process."""

import numpy as np
from numpy.typing import NDArray

from insight_trace.arguments.buffers import reserve, scatter
from insight_trace.arguments.slots import ReplayArguments


def materialise_all(arguments: ReplayArguments) -> dict[int, NDArray[np.uint8]]:
    """Every tensor's buffer by slot; slots that share a buffer get the same array."""
    sizes: dict[int, int] = {}
    for tensor in arguments.tensors:
        owner = tensor.slot if tensor.shares is None else tensor.shares
        sizes[owner] = max(sizes.get(owner, 0), tensor.buffer_size)
    owned = {slot: reserve(size, f"slot {slot}") for slot, size in sizes.items()}
    buffers = {}
    for tensor in arguments.tensors:
        buffers[tensor.slot] = owned[tensor.slot if tensor.shares is None else tensor.shares]
        scatter(tensor, buffers[tensor.slot])
    return buffers
