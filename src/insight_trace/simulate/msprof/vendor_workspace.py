"""The replay workspace: five generated files, the kernels and the payloads. It needs nothing of this machine.

replay_kernel.cpp  replay_launch.cpp  replay_host.cpp  CMakeLists.txt  run_collect.sh
kernels/…  payloads/slotNN.bin  outputs/ (after a run)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.arguments.buffers import content_span, reserve, span_bytes
from insight_trace.arguments.packing import DESCRIPTOR, DESCRIPTOR_SIZE, LOCAL_CONTEXT, offsets
from insight_trace.arguments.slots import ReplayArguments, ReplayTensor, view_extent
from insight_trace.chips import Family, family_named
from insight_trace.errors import InputError, RequestError
from insight_trace.model import ARG_SLOTS, GLOBAL_CONTEXT_SLOT, LOCAL_CONTEXT_SLOT, MAX_TENSOR_DIMS, Kernel
from insight_trace.simulate.msprof.carried_sources import CORES_PER_BLOCK, CoreLayout, lay_out
from insight_trace.simulate.msprof.escaping import template_environment
from insight_trace.storage import whole_file, write_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GENERATED = ("replay_kernel.cpp", "replay_launch.cpp", "replay_host.cpp", "CMakeLists.txt", "run_collect.sh")
# Larger buffers are allocated only around the view: the simulator's device memory is this machine's.
_WINDOW_FROM = 2 * 1024**3
_WINDOW_ALIGN = 512
_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class VendorJob:
    """What to replay in the vendor's simulator, and how."""

    kernels: tuple[Kernel, ...]  # members in the order of the dispatch's func ids
    arguments: ReplayArguments
    target: str  # a2a3 or a5
    runtime: str = "tensormap_and_ringbuffer"  # which of simpler's runtimes the kernel's headers come from
    pto_isa_root: Path | None = None
    simpler_root: Path | None = None
    soc_version: str | None = None  # None: the target's first
    hardware_blocks: int = 1  # blocks that are simulated, from block 0 on
    launch_count: int = 1
    timeout_minutes: int = 120
    device: int = 0

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("block count to simulate", self.hardware_blocks, 1, 64),
            ("launch count", self.launch_count, 1, 5000),
            ("timeout in minutes", self.timeout_minutes, 1, 2880),
            ("device", self.device, 0, 1023),
        ):
            if not low <= value <= high:
                raise RequestError(f"the {name} must be {low} to {high}, not {value}")


@dataclass(frozen=True, slots=True)
class _Buffer:
    bytes: int
    first: int


@dataclass(frozen=True, slots=True)
class _Piece:
    buffer: int
    file: str
    at: int
    bytes: int


def write_workspace(job: VendorJob, directory: Path) -> None:
    """Writes everything into `directory`, which may exist. Equal jobs give equal bytes."""
    layout = lay_out(job.kernels)
    texts = generate(job, layout)
    for name, content in layout.files:
        write_whole(directory / name, content)
    for tensor in job.arguments.tensors:
        start, end = content_span(tensor)
        if end > start:
            _write_sparsely(directory / _payload_name(tensor), span_bytes(tensor)[1])
    for name, text in texts.items():
        # generated text is ASCII but for paths, which are whatever the file system holds
        content = text.encode("utf-8", "surrogateescape")
        write_whole(directory / name, content, mode=0o777 if name.endswith(".sh") else 0o666)


def generate(job: VendorJob, layout: CoreLayout | None = None) -> dict[str, str]:
    """The five generated texts by file name."""
    layout = layout or lay_out(job.kernels)
    target = family_named(job.target)
    values = _template_values(job, layout, target)
    environment = template_environment()
    try:
        return {name: environment.get_template(f"{name}.j2").render(values) for name in GENERATED}
    except ValueError as error:  # a filter refused: a zero byte in a path, a runtime that is no plain word
        raise RequestError(f"the workspace cannot be written: {error}") from None


def read_outputs(arguments: ReplayArguments, directory: Path) -> dict[int, NDArray[np.uint8]]:
    """The buffers that a run left in outputs/, by slot, for `verify_outputs`. Absent ones are left out."""
    import numpy as np

    found = {}
    for tensor in arguments.tensors:
        path = directory / _output_name(tensor)
        if not tensor.is_output or not path.is_file():
            continue
        start, end = _view_span(tensor)
        content = np.fromfile(path, np.uint8)
        if content.nbytes != end - start:
            raise InputError(f"{content.nbytes} bytes where {end - start} are due", where=str(path))
        buffer = reserve(tensor.buffer_size, f"slot {tensor.slot}")
        buffer[start:end] = content
        found[tensor.slot] = buffer
    return found


def _write_sparsely(path: Path, content: NDArray[np.uint8]) -> None:
    """A view with wide strides is mostly gaps, which take no room on disk."""
    with whole_file(path) as file:
        for at in range(0, content.nbytes, _CHUNK):
            chunk = content[at : at + _CHUNK]
            if chunk.any():
                file.seek(at)
                file.write(chunk.data)
        file.truncate(content.nbytes)


def _payload_name(tensor: ReplayTensor) -> str:
    return f"payloads/slot{tensor.slot:02}.bin"


def _output_name(tensor: ReplayTensor) -> str:
    return f"outputs/slot{tensor.slot:02}.bin"


def _view_span(tensor: ReplayTensor) -> tuple[int, int]:
    if tensor.numel == 0:
        return 0, 0
    return tensor.start_offset * tensor.dtype.size, tensor.extent * tensor.dtype.size


def _buffers(arguments: ReplayArguments) -> tuple[list[_Buffer], dict[int, int]]:
    """Allocations, and which of them each slot uses."""
    shared = {tensor.shares for tensor in arguments.tensors if tensor.shares is not None}
    buffers: list[_Buffer] = []
    index: dict[int, int] = {}
    for tensor in arguments.tensors:
        if tensor.shares is not None:
            index[tensor.slot] = index[tensor.shares]
            old = buffers[index[tensor.slot]]
            buffers[index[tensor.slot]] = _Buffer(max(old.bytes, tensor.buffer_size - old.first), old.first)
            continue
        index[tensor.slot] = len(buffers)
        alone = tensor.slot not in shared
        buffers.append(_window(tensor) if alone else _Buffer(tensor.buffer_size, 0))
    return buffers, index


def _window(tensor: ReplayTensor) -> _Buffer:
    if tensor.buffer_size <= _WINDOW_FROM:
        return _Buffer(tensor.buffer_size, 0)
    spans = [_view_span(tensor), content_span(tensor)]
    used = [span for span in spans if span[1] > span[0]] or [(0, 0)]
    first = min(span[0] for span in used) // _WINDOW_ALIGN * _WINDOW_ALIGN
    margin = tensor.buffer_size - tensor.declared_size
    end = min(tensor.buffer_size, max(span[1] for span in used) + margin)
    return _Buffer(end - first, first)


def _template_values(job: VendorJob, layout: CoreLayout, target: Family) -> dict[str, Any]:
    arguments = job.arguments
    buffers, index = _buffers(arguments)
    payloads, outputs = [], []
    for tensor in arguments.tensors:
        number = index[tensor.slot]
        first = buffers[number].first
        start, end = content_span(tensor)
        if end > start:
            payloads.append(_Piece(number, _payload_name(tensor), start - first, end - start))
        start, end = _view_span(tensor)
        if tensor.is_output and end > start:
            outputs.append(_Piece(number, _output_name(tensor), start - first, end - start))
    groups = [("__DAV_CUBE__", layout.cube), ("__DAV_VEC__", layout.vector)]
    return {
        "target": target,
        "members": layout.members,
        "groups": [(guard, group) for guard, group in groups if group],
        "cube": layout.cube,
        "vector": layout.vector,
        "both_lanes": layout.both_lanes,
        "include_dirs": layout.include_dirs,
        "slots": ARG_SLOTS,
        "local_context_slot": LOCAL_CONTEXT_SLOT,
        "global_context_slot": GLOBAL_CONTEXT_SLOT,
        "cores_per_block": CORES_PER_BLOCK,
        "descriptor_bytes": DESCRIPTOR_SIZE,
        "at": offsets(DESCRIPTOR),
        "context_at": offsets(LOCAL_CONTEXT),
        "most_dims": MAX_TENSOR_DIMS,
        "hardware_blocks": job.hardware_blocks,
        "block_count": max(arguments.block_count, job.hardware_blocks),
        "buffers": buffers,
        "payloads": payloads,
        "outputs": outputs,
        "tensors": [_tensor_values(tensor, index[tensor.slot]) for tensor in arguments.tensors],
        "scalars": [
            {"slot": s.slot, "bits": s.bits, "name": s.name, "dtype_name": s.dtype.name}
            for s in arguments.scalars
        ],
        "soc_version": job.soc_version or target.simulators[0],
        "pto_isa_root": str(job.pto_isa_root.absolute()) if job.pto_isa_root else "",
        "simpler_root": str(job.simpler_root.absolute()) if job.simpler_root else "",
        "runtime": job.runtime,
        "timeout_minutes": job.timeout_minutes,
        "launch_count": job.launch_count,
        "device": job.device,
    }


def _tensor_values(tensor: ReplayTensor, buffer: int) -> dict[str, Any]:
    padding = (0,) * (MAX_TENSOR_DIMS - len(tensor.shape))
    return {
        "slot": tensor.slot,
        "buffer": buffer,
        "size": tensor.declared_size,
        "start_offset": tensor.start_offset,
        "dtype": tensor.dtype.code,
        "contiguous": int(tensor.is_contiguous),
        "dims": len(tensor.shape),
        "shape": tensor.shape + padding,
        "strides": tensor.strides + padding,
        "extent": view_extent(tensor.shape, tensor.strides, 0),
        "name": tensor.name,
        "dtype_name": tensor.dtype.name,
    }
