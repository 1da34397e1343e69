"""The args array of `kernel_entry(int64_t *args)`: 50 slots of 64 bits."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from insight_trace.arguments.slots import ReplayArguments, ReplayScalar
from insight_trace.errors import RequestError
from insight_trace.model import ARG_SLOTS, GLOBAL_CONTEXT_SLOT, LOCAL_CONTEXT_SLOT

ARGS_SIZE = ARG_SLOTS * 8


def pack_arguments(
    arguments: ReplayArguments,
    descriptors: Mapping[int, int],
    *,
    local_context: int,
    global_context: int,
) -> bytes:
    """The array, given where each tensor slot's descriptor and the two contexts lie."""
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
