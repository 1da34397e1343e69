"""Stand-ins for what a scene over several chips names: arguments of a chip's task, windows that chips share.

They hold what they are given; a node (insight_trace.capture.node) carries it out.
"""

from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass
from typing import Any


class TensorArgType(enum.IntEnum):
    """How a task uses a tensor."""

    INPUT = 0
    OUTPUT = 1
    INOUT = 2
    OUTPUT_EXISTING = 3
    NO_DEP = 4


class AddressSpace(enum.IntEnum):
    """Whose addresses a buffer has."""

    HOST = 0
    DEVICE = 1


class BackendKind(enum.IntEnum):
    """What a buffer's memory is. All of a node's is memory that processes share."""

    FORK_SHM = 0
    POSIX_SHM = 1
    VMM_WINDOW = 2
    REMOTE_SIDECAR = 3
    DEVICE_MALLOC = 4
    FORK_COW = 5


OWNER_INSTANCE_ID_BYTES = 8


@dataclass(frozen=True)
class BufferIdentity:
    """What tells a buffer from every other one of its owner."""

    owner_instance_id: bytes
    buffer_id: int
    generation: int = 1


class ChipTaskArgs:
    """Arguments of one task of a chip: tensors with how they are used, then scalars."""

    def __init__(self) -> None:
        self.tensors: list[tuple[Any, TensorArgType]] = []
        self.scalars: list[int] = []

    def add_tensor(self, tensor: Any, tag: Any = TensorArgType.INPUT) -> None:
        if not hasattr(tensor, "buffer"):
            raise TypeError(
                f"a {type(tensor).__name__} is no tensor of a node: name it by its buffer's tensor(...)"
            )
        self.tensors.append((tensor, TensorArgType(tag)))

    def add_scalar(self, value: Any) -> None:
        self.scalars.append(scalar_to_uint64(value))


@dataclass(frozen=True)
class CommBufferSpec:
    """A named piece of every rank's window."""

    name: str
    dtype: Any = None
    count: int = 0
    nbytes: int = 0
    load_from_host: bool = False
    store_to_host: bool = False


class CallConfig:
    """How a chip is called. Nothing of it changes a result here."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


def scalar_to_uint64(value: Any) -> int:
    """The 64 bits of a scalar's slot."""
    from insight_trace.scene.live import scalar_slot

    return scalar_slot(value.value if isinstance(value, ctypes.c_void_p) else value)[1]


def _rehosted_buffer_for(task_args: Any, tensor: Any) -> Any:
    for name, buffer in task_args.hosted.items():
        if getattr(task_args, name) is tensor:
            return buffer
    raise ValueError("this tensor is no argument of the scene")


def _rehosted_ref(task_args: Any, name: str) -> Any:
    return task_args.hosted[name].whole()


def _rehosted_ref_for(task_args: Any, tensor: Any) -> Any:
    return _rehosted_buffer_for(task_args, tensor).whole()


def _build_l3_task_args(
    task_args: Any,
    signature: Any,
    worker: Any = None,  # noqa: ARG001 - as scenes call it
) -> tuple[ChipTaskArgs, list[str]]:
    """All of the scene's arguments for one chip, tagged by what its orchestration declares."""
    tags = {"OUT": TensorArgType.OUTPUT_EXISTING, "INOUT": TensorArgType.INOUT}
    args, outputs = ChipTaskArgs(), []
    for number, spec in enumerate(task_args.specs):
        if spec.name not in task_args.hosted:
            args.add_scalar(spec.value)
            continue
        direction = getattr(signature[number], "name", "IN") if number < len(signature) else "IN"
        args.add_tensor(task_args.hosted[spec.name].whole(), tags.get(direction, TensorArgType.INPUT))
        outputs += [spec.name] if direction in tags else []
    return args, outputs


TASK_INTERFACE: dict[str, Any] = {
    "CallConfig": CallConfig,
    "CommBufferSpec": CommBufferSpec,
    "TaskArgs": ChipTaskArgs,
    "TensorArgType": TensorArgType,
    "scalar_to_uint64": scalar_to_uint64,
}
BUFFER: dict[str, Any] = {
    "AddressSpace": AddressSpace,
    "BackendKind": BackendKind,
    "BufferIdentity": BufferIdentity,
}
NATIVE: dict[str, Any] = {"OWNER_INSTANCE_ID_BYTES": OWNER_INSTANCE_ID_BYTES}
# what scenes compute with as they are imported; there is no mailbox here
WORKER: dict[str, Any] = {"MAILBOX_FRAME_SIZE": 65536, "MAILBOX_SIZE": 3 * 65536}
SCENE_TEST: dict[str, Any] = {
    "_build_l3_task_args": _build_l3_task_args,
    "_rehosted_buffer_for": _rehosted_buffer_for,
    "_rehosted_ref": _rehosted_ref,
    "_rehosted_ref_for": _rehosted_ref_for,
}
