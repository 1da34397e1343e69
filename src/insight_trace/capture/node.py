"""A node: several chips on this host, as a level-3 orchestration sees them.

One memory holds every chip's tensors and windows, at the same addresses for all. An orchestration only submits;
what it submitted runs when it has returned (insight_trace.capture.node_capture).
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from insight_trace.capture.arena import MARGIN, row_major
from insight_trace.dtypes import DTYPES, DType
from insight_trace.errors import JobError, RequestError
from insight_trace.scene.live import LiveTensor
from insight_trace.scene.node_names import (
    OWNER_INSTANCE_ID_BYTES,
    AddressSpace,
    BackendKind,
    BufferIdentity,
    ChipTaskArgs,
    CommBufferSpec,
    TensorArgType,
)
from insight_trace.simulate.embedded.memory import BASE, GlobalMemory

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_CHIPS = 64
_SHARED_BYTES = 1 << 36  # of tensors and windows; pages that nobody touches cost nothing
_HEAP_BYTES = 1 << 36  # of each chip's runtime
_CONTEXT_BYTES = 1056  # CommContext: rank, ranks, size of a window, where every rank's window is
_WORKSPACE_BYTES = 16384 + 48 * 512  # nothing is put there: what engines are asked for happens at once
_PAGE = 4096


@dataclass(frozen=True, slots=True, eq=False)
class NodeBuffer:
    """A piece of the node's memory."""

    memory: NodeMemory
    name: str
    base: int
    nbytes: int
    dtype: DType | None = None
    shape: tuple[int, ...] = ()

    def tensor(
        self, shapes: Sequence[int], dtype: Any, strides: Sequence[int] | None = None, byte_offset: int = 0
    ) -> NodeTensor:
        """A view of it; `strides` in elements."""
        element = _element(dtype)
        shape = tuple(int(extent) for extent in shapes)
        steps = row_major(shape) if strides is None else tuple(int(step) for step in strides)
        last = sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))
        if byte_offset + (last + 1) * element.size > self.nbytes and 0 not in shape:
            raise ValueError(
                f"a tensor {shape} from byte {byte_offset} does not fit into {self.nbytes} bytes"
            )
        return NodeTensor(self, element, shape, steps, byte_offset)

    def whole(self) -> NodeTensor:
        assert self.dtype is not None
        return self.tensor(self.shape, self.dtype.code)

    @property
    def shm(self) -> Any:
        """Its bytes, as `shm.buf`."""
        return SimpleNamespace(buf=self.memory.view(self))

    @property
    def identity(self) -> BufferIdentity:
        """Its place names it; nothing is given back, so nothing comes there again."""
        return BufferIdentity(b"one node"[:OWNER_INSTANCE_ID_BYTES], self.base)

    @property
    def backend_kind(self) -> BackendKind:
        return BackendKind.POSIX_SHM

    @property
    def address_space(self) -> AddressSpace:
        return AddressSpace.HOST

    def close(self) -> None:
        """Nothing: it lives as long as the node."""


@dataclass(frozen=True, slots=True)
class NodeTensor:
    """A view of a buffer."""

    buffer: NodeBuffer
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    byte_offset: int

    @property
    def address(self) -> int:
        return self.buffer.base + self.byte_offset

    @property
    def end(self) -> int:
        last = sum((extent - 1) * step for extent, step in zip(self.shape, self.strides, strict=True))
        return self.address + (last + 1) * self.dtype.size


class NodeMemory:
    """What all chips map at one address. Close it when the run is over."""

    def __init__(self, chips: int) -> None:
        self._places = GlobalMemory()
        self.chips = chips
        try:
            self.file = os.memfd_create("insight-trace-node")
            os.ftruncate(self.file, _SHARED_BYTES + chips * _HEAP_BYTES)
            self._map = mmap.mmap(self.file, _SHARED_BYTES)
        except OSError as error:
            error.filename = "the memory of the run"  # the machine's fault, never told as one of the scene
            raise
        self.board = self.reserve("what the chips tell each other", _PAGE)

    def reserve(self, name: str, nbytes: int, padded: int = 0) -> NodeBuffer:
        place = self._places.reserve(name, nbytes, max(nbytes + padded, 1))
        if self._places.end - BASE > _SHARED_BYTES:
            raise JobError(f"the tensors of this run need more than {_SHARED_BYTES >> 30} GB")
        return NodeBuffer(self, name, place.address, nbytes)

    def host(self, tensor: LiveTensor) -> NodeBuffer:
        """A copy of a scene's tensor."""
        import numpy as np

        content = np.ascontiguousarray(tensor.array).reshape(-1).view(np.uint8)
        place = self.reserve(tensor.name, content.nbytes, MARGIN)
        start = place.base - BASE
        self._map[start : start + content.nbytes] = content.data
        return NodeBuffer(
            self, tensor.name, place.base, content.nbytes, tensor.dtype, tensor.array.shape or (1,)
        )

    def heap(self, chip: int) -> tuple[int, int]:
        """Where a chip's runtime allocates."""
        first = BASE + _SHARED_BYTES + chip * _HEAP_BYTES
        return first, first + _HEAP_BYTES

    def view(self, buffer: NodeBuffer) -> memoryview:
        return memoryview(self._map)[buffer.base - BASE : buffer.base - BASE + buffer.nbytes]

    def array(self, tensor: NodeTensor) -> NDArray[Any]:
        """What is there now, without a copy."""
        import numpy as np

        steps = tuple(step * tensor.dtype.size for step in tensor.strides)
        return np.ndarray(tensor.shape, tensor.dtype.numpy, self._map, tensor.address - BASE, steps)

    def close(self) -> None:
        with contextlib.suppress(BufferError):  # a scene still looks at it: its own end is the process's
            self._map.close()
        os.close(self.file)


@dataclass(frozen=True)
class ChipDomain:
    """One rank's part of a domain."""

    name: str
    domain_rank: int
    domain_size: int
    device_ctx: int
    local_window_base: int
    actual_window_size: int
    buffers: dict[str, NodeBuffer]


@dataclass(frozen=True)
class NodeCall:
    """One submitted task: a chip's callable for each member, or a Python function."""

    number: int
    callable: Any
    members: tuple[tuple[int, ChipTaskArgs], ...]  # chip and arguments; chip -1: on the host
    after: frozenset[int]  # numbers of calls that write what it reads


@dataclass
class Node:
    """What an orchestration gets as `orch`, and a scene with a test of its own as the worker."""

    memory: NodeMemory
    calls: list[NodeCall] = field(default_factory=list)
    windows: list[NodeBuffer] = field(default_factory=list)
    _writers: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    def submit_next_level(
        self,
        callable: Any,
        args: ChipTaskArgs,
        config: Any = None,  # noqa: ARG002
        *,
        worker: int,
    ) -> None:
        self._submit(callable, ((worker, args),))

    def submit_next_level_group(
        self,
        callable: Any,
        args_list: Sequence[ChipTaskArgs],
        config: Any = None,  # noqa: ARG002
        *,
        workers: Sequence[int],
    ) -> None:
        if len(args_list) != len(workers) or len(set(workers)) != len(workers):
            raise ValueError("a group needs as many different workers as it has members")
        self._submit(callable, tuple(zip(workers, args_list, strict=True)))

    def submit_sub(self, function: Any, args: ChipTaskArgs | None = None) -> None:
        self._submit(function, ((-1, args or ChipTaskArgs()),))

    def submit_sub_group(self, function: Any, args_list: Sequence[ChipTaskArgs]) -> None:
        self._submit(function, tuple((-1, args) for args in args_list))

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        yield

    def scope_begin(self) -> None:
        """Nothing: memory of a node is given back at its end."""

    scope_end = scope_begin

    def create_buffer(self, nbytes: int) -> NodeBuffer:
        return self.memory.reserve("a buffer of the scene", nbytes, MARGIN)

    def alloc(self, shape: Sequence[int], dtype: Any) -> NodeTensor:
        nbytes = _element(dtype).size
        for extent in shape:
            nbytes *= int(extent)
        return self.create_buffer(nbytes).tensor(shape, dtype)

    def alloc_child_tensor(self, worker_id: int, shapes: Sequence[int], dtype: Any) -> NodeTensor:
        self._chip(worker_id)
        return self.alloc(shapes, dtype)

    def free(self, buffer: Any) -> None:
        """Nothing: memory of a node is given back at its end."""

    def copy_to(self, dst: NodeBuffer, src: NodeBuffer) -> None:
        if src.nbytes > dst.nbytes:
            raise ValueError(f"{src.nbytes} bytes do not fit into {dst.nbytes}")
        self.memory.view(dst)[: src.nbytes] = self.memory.view(src)

    copy_from = copy_to

    @contextlib.contextmanager
    def allocate_domain(
        self, *, name: str, workers: Sequence[int], window_size: int, buffers: Sequence[CommBufferSpec]
    ) -> Iterator[dict[int, ChipDomain]]:
        """Windows of zeros, one for each of the chips, that all of them can reach; keyed by chip."""
        if sum(spec.nbytes for spec in buffers) > window_size:
            raise ValueError(f"the buffers of domain {name} need more than its window of {window_size} bytes")
        for chip in workers:
            self._chip(chip)
        windows = [
            self.memory.reserve(f"chip {chip}'s window of domain {name}", window_size) for chip in workers
        ]
        domain = {}
        for rank, chip in enumerate(workers):
            context = self.memory.reserve(f"chip {chip}'s context of domain {name}", _CONTEXT_BYTES)
            workspace = self.memory.reserve(f"chip {chip}'s workspace of DMA engines", _WORKSPACE_BYTES)
            bases = [window.base for window in windows] + [0] * (64 - len(windows))
            first_words = (workspace.base, workspace.nbytes, rank, len(windows), window_size)
            self.memory.view(context)[:] = struct.pack("<QQIIQ128Q", *first_words, *bases, *bases)
            self.windows += [context, workspace]
            pieces, first = {}, windows[rank].base
            for spec in buffers:
                pieces[spec.name] = NodeBuffer(self.memory, spec.name, first, spec.nbytes)
                first += spec.nbytes
            domain[chip] = ChipDomain(
                name, rank, len(windows), context.base, windows[rank].base, window_size, pieces
            )
        self.windows += windows
        yield domain

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise RequestError(
            f"the orchestration calls {name}, which a node on this host does not have",
            hint="submit_next_level(_group), submit_sub, allocate_domain, copy_to/from, alloc and scope are here",
        )

    def _chip(self, chip: int) -> None:
        if not 0 <= chip < self.memory.chips:
            raise ValueError(f"there is no chip {chip}: the case has {self.memory.chips}")

    def _submit(self, callable: Any, members: tuple[tuple[int, ChipTaskArgs], ...]) -> None:
        number = len(self.calls)
        after: set[int] = set()
        for chip, args in members:
            if chip != -1:
                self._chip(chip)
            for tensor, tag in args.tensors:
                if tag in (TensorArgType.INPUT, TensorArgType.INOUT):
                    after.update(self._writers_of(tensor))
        for _, args in members:
            for tensor, tag in args.tensors:
                if tag in (TensorArgType.OUTPUT, TensorArgType.OUTPUT_EXISTING, TensorArgType.INOUT):
                    known = self._writers.setdefault(tensor.buffer.base, [])
                    known.append((tensor.address, tensor.end, number))
        self.calls.append(NodeCall(number, callable, members, frozenset(after - {number})))

    def _writers_of(self, tensor: NodeTensor) -> Iterator[int]:
        for first, last, number in self._writers.get(tensor.buffer.base, ()):
            if first < tensor.end and tensor.address < last:
                yield number


def _element(dtype: Any) -> DType:
    if not 0 <= int(dtype) < len(DTYPES):
        raise ValueError(f"there is no element type {dtype}")
    return DTYPES[int(dtype)]
