"""Writes kernel_args_dump.json: per dispatch the arguments that kernel_entry(args) gets."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from insight_trace.dtypes import scalar_value
from insight_trace.dump.entries import plain_number
from insight_trace.dump.manifest_writer import context_rows, write_manifest
from insight_trace.dump.recorded_bytes import PayloadCopy
from insight_trace.model import ContextArg, Dispatch, Payload, ScalarArg, Stage, TensorArg
from insight_trace.storage import refuse_existing, whole_directory, whole_file

SCHEMA_VERSION = 1
MANIFEST = "kernel_args_dump.json"
BIN = "kernel_args_dump.bin"


def write_tensor_dump(run: Path, *, force: bool = False) -> Path:
    """`tensor_dump/kernel_args_dump.json` of a run that has an `args_dump/`: the same, where other tools look for it."""
    source, place = run / "args_dump", run / "tensor_dump"
    with whole_directory(place, force=force, record=(MANIFEST,)) as folder:
        shutil.copyfile(source / MANIFEST, folder / MANIFEST)
        for payload in source.glob("*.bin"):
            try:
                os.link(payload, folder / payload.name)
            except OSError:  # a file system without links
                shutil.copyfile(payload, folder / payload.name)
    return place / MANIFEST


def write_kernel_args(
    folder: str | Path,
    dispatches: Iterable[Dispatch],
    *,
    payload_beside: str | None = None,
    force: bool = False,
    case: str = "",
) -> Path:
    """Writes <folder>/kernel_args_dump.json; returns its path.

    Payload is copied into kernel_args_dump.bin. With `payload_beside`, the name of a .bin file in that folder
    which already holds it all (a unified dump's), it is pointed to instead.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / MANIFEST
    refuse_existing(manifest, force=force)
    total = arguments = 0
    with tempfile.TemporaryFile(dir=folder) as spool, contextlib.ExitStack() as stack:
        copy = None
        if payload_beside is None:
            copy = stack.enter_context(PayloadCopy(folder / BIN, force=force))
        for dispatch in dispatches:
            row = _dispatch(dispatch, copy)
            spool.write((b",\n    " if total else b"    ") + msgspec.json.encode(row))
            total += 1
            arguments += len(row["args"])
        stack.close()
        bin_file = payload_beside if copy is None else (BIN if copy.written else None)
        header: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            **({"case": case} if case else {}),
            "total_dispatches": total,
            "total_args": arguments,
            "bin_format": {"type": "logical_contiguous", "byte_order": "little_endian"},
            "bin_file": bin_file,
        }
        spool.seek(0)
        with whole_file(manifest, force=force) as file:
            write_manifest(file, header, "dispatches", spool)
    return manifest


def _dispatch(dispatch: Dispatch, copy: PayloadCopy | None) -> dict[str, Any]:
    ids = dispatch.func_ids
    row: dict[str, Any] = {
        "dispatch_id": dispatch.dispatch_id,
        "func_id": -1 if not ids else ids[0] if len(ids) == 1 else list(ids),
        "task_id": f"0x{dispatch.task_id:016x}",
        "subtask_id": dispatch.subtask_id,
        "core_type": None if dispatch.core_type is None else dispatch.core_type.value,
        "core_id": dispatch.core_id,
        "block_idx": dispatch.block_idx,
        "block_count": dispatch.block_count,
        "stage": Stage.BEFORE.value,
        "kernel": dispatch.kernel,
        "args": [
            _scalar(a) if isinstance(a, ScalarArg) else _tensor(a, copy)
            for a in dispatch.arguments
            if not isinstance(a, ContextArg)
        ],
        "contexts": context_rows(dispatch),
    }
    row["missing"] = list(dispatch.missing)
    if dispatch.inferred:
        row["inferred"] = list(dispatch.inferred)
    return row


def _scalar(scalar: ScalarArg) -> dict[str, Any]:
    value = scalar_value(scalar.dtype, scalar.bits)
    row: dict[str, Any] = {
        "arg_index": scalar.slot,
        "kind": "scalar",
        "dtype": scalar.dtype.name,
        "ndims": 0,
        "shape": [],
        "pointer": None,
        "value": plain_number(value),
        "bits": f"0x{scalar.bits:016x}",
        "pack_mode": "bits" if scalar.dtype.is_float else "value",
    }
    for key, given in (("ambiguous", scalar.ambiguous), ("name", scalar.name)):
        if given:
            row[key] = given
    if not scalar.exact:
        row["exact"] = False
    return row


def _tensor(tensor: TensorArg, copy: PayloadCopy | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "arg_index": tensor.slot,
        "kind": "tensor",
        "dtype": tensor.dtype.name,
        "ndims": len(tensor.shape),
        "shape": tensor.shape,
        "strides": tensor.strides,
        "start_offset": tensor.start_offset,
        "role": None if tensor.role is None else tensor.role.value,
        "pointer": None if tensor.pointer is None else f"0x{tensor.pointer:x}",
    }
    for key, payload in (("before", tensor.before), ("after", tensor.after)):
        if payload is not None:
            row[key] = _range(payload, copy)
    if tensor.buffer_size is not None:
        row["buffer_size"] = tensor.buffer_size
    if tensor.name:
        row["name"] = tensor.name
    return row


def _range(payload: Payload, copy: PayloadCopy | None) -> dict[str, Any]:
    offset, size = (payload.offset, payload.size) if copy is None else copy.add(payload)
    return {"offset": offset, "size": size, **({"truncated": True} if payload.truncated else {})}
