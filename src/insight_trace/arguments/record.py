"""Arguments on disk: what a workspace keeps so that its replay can be repeated without the dump.

`keep` copies every payload beside the record; `to_record` and `from_record` are the JSON form.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from insight_trace.arguments.buffers import payload_bytes
from insight_trace.arguments.slots import (
    CallerArray,
    Content,
    Fill,
    FromFile,
    OtherRecord,
    Random,
    Recorded,
    ReplayArguments,
    ReplayScalar,
    ReplaySlot,
    ReplayTensor,
    Zero,
    buffer_sizes,
    geometry_problem,
)
from insight_trace.dtypes import DType, decode_element, dtype_named, encode_element
from insight_trace.errors import InputError, InsightTraceError
from insight_trace.limits import cut
from insight_trace.model import Payload, Role, Tier
from insight_trace.reading import prepared
from insight_trace.storage import whole_file


def keep(arguments: ReplayArguments, directory: Path) -> ReplayArguments:
    """The same arguments with every payload copied into `directory` and taken from there.

    The directory belongs to a workspace that is put into place as a whole.
    """
    return arguments.replaced(*(_kept(tensor, directory) for tensor in arguments.tensors))


def to_record(arguments: ReplayArguments, directory: Path) -> dict[str, Any]:
    """The arguments as JSON values. Files below `directory` are named relative to it."""

    def plain(path: Path) -> str:
        return str(path.relative_to(directory) if path.is_relative_to(directory) else path)

    kept = _Arguments(arguments.block_count, arguments.notes, [*map(_slot_record, arguments.slots)])
    return dict(msgspec.to_builtins(kept, enc_hook=plain))


def from_record(record: Mapping[str, Any], directory: Path, *, where: str = "record") -> ReplayArguments:
    """The arguments that a record describes; anything else in its place is an input error."""
    try:
        kept = msgspec.convert(record, prepared(_Arguments), dec_hook=lambda _, name: inside(directory, name))
        return ReplayArguments(tuple(map(_slot, kept.slots)), kept.block_count, kept.notes)
    except InsightTraceError:
        raise
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"not a record of arguments: {error}", where=where) from None


def inside(directory: Path, name: str) -> Path:
    """A file of a workspace. One from elsewhere may name any file of this machine: those are not read, nor copied."""
    path = directory / name
    if not path.resolve().is_relative_to(directory.resolve()):
        raise InputError(f"the workspace names a file outside its folder: {cut(name)}", where=str(directory))
    return path


# --- keeping --------------------------------------------------------------------------------------------


def _kept(tensor: ReplayTensor, directory: Path) -> ReplayTensor:
    stem = directory / f"slot{tensor.slot:02}"
    content = tensor.content
    if isinstance(content, Recorded):
        content = Recorded(_copied(content.payload, stem.with_suffix(".before.bin")))
    elif isinstance(content, OtherRecord):
        payload = _copied(content.payload, stem.with_suffix(".before.bin"))
        content = replace(content, payload=payload)
    elif isinstance(content, FromFile):
        place = stem.with_suffix(".before" + (".npy" if content.path.suffix == ".npy" else ".bin"))
        _copy_file(content.path, place)
        content = FromFile(place)
    elif isinstance(content, CallerArray):
        place = stem.with_suffix(".before.bin")
        raw = content.array.tobytes()
        with whole_file(place, sync=False) as file:
            file.write(raw)
        content = Recorded(Payload(place, 0, len(raw)))
    expected = tensor.expected and _copied(tensor.expected, stem.with_suffix(".after.bin"))
    return replace(tensor, content=content, expected=expected)


def _copied(payload: Payload, place: Path) -> Payload:
    content = payload_bytes(payload)
    with whole_file(place, sync=False) as file:
        file.write(content.data)
    return Payload(place, 0, payload.size, payload.truncated)


def _copy_file(source: Path, place: Path) -> None:
    try:
        with source.open("rb") as original, whole_file(place, sync=False) as copy:
            shutil.copyfileobj(original, copy)
    except OSError as error:
        raise InputError(f"the file cannot be copied: {error.strerror}", where=str(source)) from None


# --- the record -----------------------------------------------------------------------------------------


class _Fill(Struct, frozen=True, tag="fill", tag_field="kind"):
    bits: str  # JSON has no infinity, and a decimal may not come back as the same float


class _Other(Struct, frozen=True, tag="other", tag_field="kind"):
    payload: Payload
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start_offset: int


class _Scalar(Struct, frozen=True, tag="scalar", tag_field="kind"):
    slot: int
    dtype: str
    tier: Tier
    name: str
    origin: str
    bits: str


class _Tensor(Struct, frozen=True, tag="tensor", tag_field="kind", omit_defaults=True):
    slot: int
    dtype: str
    tier: Tier
    name: str
    origin: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start_offset: int
    role: Role | None
    declared_size: int
    buffer_size: int
    shares: int | None
    content: Zero | _Fill | Random | Recorded | FromFile | _Other
    expected: Payload | None
    address: int | None = None


class _Arguments(Struct, frozen=True):
    block_count: int
    notes: tuple[str, ...]
    slots: list[_Tensor | _Scalar]


def _slot_record(item: ReplaySlot) -> _Tensor | _Scalar:
    values = asdict(item) | {"dtype": item.dtype.name}
    if isinstance(item, ReplayScalar):
        return _Scalar(**values | {"bits": f"{item.bits:#x}"})
    content = item.content
    if isinstance(content, CallerArray):
        raise InputError(f"slot {item.slot}: an array in memory has no place in a record; keep it first")
    if isinstance(content, Fill):
        bits = int.from_bytes(encode_element(item.dtype, content.value), "little")
        values["content"] = _Fill(f"{bits:#x}")
    elif isinstance(content, OtherRecord):
        values["content"] = _Other(**asdict(content) | {"dtype": content.dtype.name})
    return _Tensor(**values)


def _slot(entry: _Tensor | _Scalar) -> ReplaySlot:
    dtype, values = _dtype(entry.dtype), asdict(entry)
    if isinstance(entry, _Scalar):
        bits = int(entry.bits, 16)
        if not 0 <= bits < 2**64:
            raise ValueError(f"slot {entry.slot}: {entry.bits} is no 64-bit pattern")
        return ReplayScalar(**values | {"dtype": dtype, "bits": bits})
    problem = geometry_problem(dtype, entry.shape, entry.strides, entry.start_offset)
    if problem:
        raise ValueError(f"slot {entry.slot}: {problem}")
    least = buffer_sizes(dtype, entry.shape, entry.strides, entry.start_offset, 0)
    if entry.buffer_size < max(entry.declared_size, least[0]):
        raise ValueError(f"slot {entry.slot}: a buffer of {entry.buffer_size} bytes is too small")
    content: Content
    if isinstance(entry.content, _Fill):
        content = Fill(decode_element(dtype, int(entry.content.bits, 16).to_bytes(dtype.size, "little")))
    elif isinstance(entry.content, _Other):
        content = OtherRecord(**asdict(entry.content) | {"dtype": _dtype(entry.content.dtype)})
    else:
        content = entry.content
    return ReplayTensor(**values | {"dtype": dtype, "content": content})


def _dtype(name: str) -> DType:
    dtype = dtype_named(name)
    if dtype is None:
        raise ValueError(f"dtype {name!r}")
    return dtype
