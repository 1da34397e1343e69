"""What a kernel's source says: which argument slots it reads, and which cores it is written for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from insight_trace.errors import InputError, RequestError
from insight_trace.limits import SCENE_BYTES
from insight_trace.model import ARG_SLOTS, GLOBAL_CONTEXT_SLOT, LOCAL_CONTEXT_SLOT, CoreType, Kernel
from insight_trace.reading import read_regular

# Accessors that the runtime's intrinsic.h and pto_async_kernel_api.h give to kernels.
_LOCAL_CONTEXT = re.compile(r"\b(get_block_idx|get_block_num|get_async_ctx)\s*\(\s*\w|_LOCAL_CONTEXT_INDEX\b")
_GLOBAL_CONTEXT = re.compile(r"\b(get_sub_block_id|get_dma_workspace)\s*\(\s*\w|_GLOBAL_CONTEXT_INDEX\b")
_NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)
_ENTRY = re.compile(r"\bkernel_entry\s*\(([^)]*)\)\s*\{")
_CUBE_WORK = re.compile(
    r"\bT(MATMUL\w*|GEMV\w*|MOV_FP)\s*[<(]|\bTile(Left|Right|Acc)\w*\s*<|\b(TileType|Location)::(Left|Right|Acc)\b"
)


@dataclass(frozen=True, slots=True)
class KernelShape:
    """How a kernel uses its argument array."""

    core_type: CoreType
    slots: tuple[int, ...]  # argument slots that the source reads, contexts apart
    reads_local_context: bool  # slot 48: block index and count
    reads_global_context: bool  # slot 49: lane of a vector core, DMA workspaces
    complete: bool  # False: a slot is indexed by something that is not a number
    has_entry: bool  # the source defines kernel_entry


def kernel_shape(kernel: Kernel | Path, core_type: CoreType | None = None) -> KernelShape:
    """Reads one kernel's source, once. The declared core type counts; without one the guards in it decide."""
    path = kernel.source if isinstance(kernel, Kernel) else kernel
    declared = kernel.core_type if isinstance(kernel, Kernel) else core_type
    return shape_of_source(_text(path), declared, where=str(path))


def _number(text: str) -> int | None:
    """A number as C spells it: decimal, hexadecimal, or octal after a 0."""
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
        return int(text, 16)
    if re.fullmatch(r"0[0-7]{0,20}", text):
        return int(text, 8)
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,19}", text) else None


def shape_of_source(text: str, declared: CoreType | None, *, where: str = "") -> KernelShape:
    """The shape of a kernel whose source is at hand."""
    code = _NOT_CODE.sub(" ", text)
    entry = _ENTRY.search(code)
    array = "args"
    if entry is not None:
        parameters = re.findall(r"(\w+)\s*$", entry.group(1).strip())
        array = parameters[0] if parameters else array
    indices = re.findall(rf"\b{array}\s*\[\s*([^\]]*?)\s*\]", code)
    # A local accessor that takes the array and a number reads that slot.
    indices += re.findall(rf"\b(?!get_)\w+(?:<[^<>;]*>)?\s*\(\s*{array}\s*,\s*(\d+)\s*\)", code)
    numbers = {i: number for i in indices if (number := _number(i)) is not None}
    slots = set(numbers.values())
    others = {i for i in indices if i not in numbers and "CONTEXT_INDEX" not in i}
    body = code
    outside = sorted(slot for slot in slots if slot >= ARG_SLOTS)
    if outside:
        raise InputError(
            f"the kernel reads {array}[{outside[0]}], but there are {ARG_SLOTS} slots", where=where
        )
    return KernelShape(
        core_type=declared or _core_type(code),
        slots=tuple(sorted(slots - {LOCAL_CONTEXT_SLOT, GLOBAL_CONTEXT_SLOT})),
        reads_local_context=LOCAL_CONTEXT_SLOT in slots or bool(_LOCAL_CONTEXT.search(body)),
        reads_global_context=GLOBAL_CONTEXT_SLOT in slots or bool(_GLOBAL_CONTEXT.search(body)),
        complete=not others,
        has_entry=entry is not None,
    )


def _core_type(code: str) -> CoreType:
    cube = "__DAV_CUBE__" in code or "__DAV_C220_CUBE__" in code
    vector = "__DAV_VEC__" in code or "__DAV_C220_VEC__" in code
    if cube and vector:
        return CoreType.MIX
    if cube or vector:
        return CoreType.AIC if cube else CoreType.AIV
    # Only a cube core has a matrix unit and its operands; everything else runs on a vector core.
    return CoreType.AIC if _CUBE_WORK.search(code) else CoreType.AIV


def _text(path: Path) -> str:
    try:
        return read_regular(path, most=SCENE_BYTES).decode("utf-8", errors="replace")
    except FileNotFoundError:
        raise RequestError(f"the kernel source {path} does not exist") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
