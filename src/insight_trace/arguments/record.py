"""Arguments on disk: what a workspace keeps so that its replay can be repeated without the dump.

`keep` copies every payload beside the record; `to_record` and `from_record` are the JSON form.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

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
from insight_trace.storage import whole_file


def keep(arguments: ReplayArguments, directory: Path) -> ReplayArguments:
    """The same arguments with every payload copied into `directory` and taken from there.

    The directory belongs to a workspace that is put into place as a whole.
    """
    return arguments.replaced(*(_kept(tensor, directory) for tensor in arguments.tensors))


def to_record(arguments: ReplayArguments, directory: Path) -> dict[str, Any]:
    """The arguments as JSON values. Files below `directory` are named relative to it."""
    return {
        "block_count": arguments.block_count,
        "notes": list(arguments.notes),
        "slots": [_slot_record(item, directory) for item in arguments.slots],
    }


def from_record(record: Mapping[str, Any], directory: Path, *, where: str = "record") -> ReplayArguments:
    """The arguments that a record describes; anything else in its place is an input error."""
    try:
        slots = tuple(_slot(entry, directory) for entry in record["slots"])
        notes = tuple(str(text) for text in record["notes"])
        return ReplayArguments(slots, int(record["block_count"]), notes)
    except InsightTraceError:
        raise
    except KeyError as error:
        raise InputError(f"the key {error} is missing", where=where) from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"not a record of arguments: {error}", where=where) from None


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


# --- writing --------------------------------------------------------------------------------------------


def _slot_record(item: ReplaySlot, directory: Path) -> dict[str, Any]:
    shared = {
        "slot": item.slot,
        "dtype": item.dtype.name,
        "tier": item.tier.value,
        "name": item.name,
        "origin": item.origin,
    }
    if isinstance(item, ReplayScalar):
        return {"kind": "scalar", **shared, "bits": f"{item.bits:#x}"}
    return {
        "kind": "tensor",
        **shared,
        "shape": list(item.shape),
        "strides": list(item.strides),
        "start_offset": item.start_offset,
        "role": item.role and item.role.value,
        "declared_size": item.declared_size,
        "buffer_size": item.buffer_size,
        "shares": item.shares,
        **({} if item.address is None else {"address": item.address}),
        "content": _content_record(item, directory),
        "expected": item.expected and _payload_record(item.expected, directory),
    }


def _content_record(item: ReplayTensor, directory: Path) -> dict[str, Any]:
    content = item.content
    if isinstance(content, Fill):
        # the element's bits: JSON has no infinity, and a decimal may not come back as the same float
        bits = int.from_bytes(encode_element(item.dtype, content.value), "little")
        return {"kind": "fill", "bits": f"{bits:#x}"}
    if isinstance(content, Random):
        return {"kind": "random", "seed": content.seed}
    if isinstance(content, Recorded):
        return {"kind": "recorded", "payload": _payload_record(content.payload, directory)}
    if isinstance(content, FromFile):
        return {"kind": "file", "path": _relative(content.path, directory)}
    if isinstance(content, OtherRecord):
        return {
            "kind": "other",
            "payload": _payload_record(content.payload, directory),
            "dtype": content.dtype.name,
            "shape": list(content.shape),
            "strides": list(content.strides),
            "start_offset": content.start_offset,
        }
    if isinstance(content, CallerArray):
        raise InputError(f"slot {item.slot}: an array in memory has no place in a record; keep it first")
    return {"kind": "zero"}


def _payload_record(payload: Payload, directory: Path) -> dict[str, Any]:
    return {
        "path": _relative(payload.path, directory),
        "offset": payload.offset,
        "size": payload.size,
        "truncated": payload.truncated,
    }


def _relative(path: Path, directory: Path) -> str:
    return str(path.relative_to(directory) if path.is_relative_to(directory) else path)


# --- reading --------------------------------------------------------------------------------------------


def _slot(entry: Mapping[str, Any], directory: Path) -> ReplaySlot:
    slot, dtype, tier = int(entry["slot"]), _dtype(entry["dtype"]), Tier(entry["tier"])
    name, origin = str(entry["name"]), str(entry["origin"])
    if entry["kind"] == "scalar":
        bits = int(entry["bits"], 16)
        if not 0 <= bits < 2**64:
            raise ValueError(f"slot {slot}: {entry['bits']} is no 64-bit pattern")
        return ReplayScalar(slot, dtype, bits, tier, name, origin)
    shape, strides = _numbers(entry["shape"]), _numbers(entry["strides"])
    problem = geometry_problem(dtype, shape, strides, int(entry["start_offset"]))
    if problem:
        raise ValueError(f"slot {slot}: {problem}")
    least = buffer_sizes(dtype, shape, strides, int(entry["start_offset"]), 0)
    if int(entry["buffer_size"]) < int(entry["declared_size"]) or int(entry["buffer_size"]) < least[0]:
        raise ValueError(f"slot {slot}: a buffer of {entry['buffer_size']} bytes is too small")
    return ReplayTensor(
        slot=slot,
        dtype=dtype,
        shape=shape,
        strides=strides,
        content=_content(entry["content"], dtype, directory),
        tier=tier,
        declared_size=int(entry["declared_size"]),
        buffer_size=int(entry["buffer_size"]),
        start_offset=int(entry["start_offset"]),
        role=Role(entry["role"]) if entry["role"] else None,
        expected=_payload(entry["expected"], directory) if entry["expected"] else None,
        name=name,
        origin=origin,
        shares=None if entry["shares"] is None else int(entry["shares"]),
        address=None if entry.get("address") is None else int(entry["address"]),
    )


def _content(entry: Mapping[str, Any], dtype: DType, directory: Path) -> Content:
    kind = entry["kind"]
    if kind == "zero":
        return Zero()
    if kind == "fill":
        return Fill(decode_element(dtype, int(entry["bits"], 16).to_bytes(dtype.size, "little")))
    if kind == "random":
        return Random(int(entry["seed"]))
    if kind == "recorded":
        return Recorded(_payload(entry["payload"], directory))
    if kind == "file":
        return FromFile(inside(directory, entry["path"]))
    if kind == "other":
        return OtherRecord(
            _payload(entry["payload"], directory),
            _dtype(entry["dtype"]),
            _numbers(entry["shape"]),
            _numbers(entry["strides"]),
            int(entry["start_offset"]),
        )
    raise ValueError(f"content of kind {kind!r}")


def inside(directory: Path, name: str) -> Path:
    """A file of a workspace. One from elsewhere may name any file of this machine: those are not read, nor copied."""
    path = directory / name
    if not path.resolve().is_relative_to(directory.resolve()):
        raise InputError(f"the workspace names a file outside its folder: {cut(name)}", where=str(directory))
    return path


def _payload(entry: Mapping[str, Any], directory: Path) -> Payload:
    path = inside(directory, entry["path"])
    return Payload(path, int(entry["offset"]), int(entry["size"]), bool(entry["truncated"]))


def _dtype(name: str) -> DType:
    dtype = dtype_named(name)
    if dtype is None:
        raise ValueError(f"dtype {name!r}")
    return dtype


def _numbers(values: list[int]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
