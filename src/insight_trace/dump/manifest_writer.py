"""Writes dispatches as a unified manifest with its .bin: the newest form, or that of tensor_dump.json.

Both are exactly what other readers expect, with keys of our own beside theirs (docs/dump-formats.md), so that
a dump that is written and read again is the same dump.
"""

from __future__ import annotations

import enum
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from insight_trace.dump.dispatches import row_major
from insight_trace.dump.entries import stages_of
from insight_trace.dump.recorded_bytes import PayloadCopy
from insight_trace.dump.scalars import printed_value
from insight_trace.model import ContextArg, Dispatch, Payload, Role, ScalarArg, Stage, TensorArg
from insight_trace.storage import refuse_existing, whole_file


class DumpForm(enum.Enum):
    """The two unified manifests that are written."""

    ARGS_DUMP = ("args_dump.json", "args.bin", "args")
    TENSOR_DUMP = ("tensor_dump.json", "tensor_dump.bin", "tensors")

    @property
    def manifest(self) -> str:
        return self.value[0]

    @property
    def bin(self) -> str:
        return self.value[1]

    @property
    def noun(self) -> str:
        return self.value[2]


def write_unified(
    folder: str | Path,
    dispatches: Iterable[Dispatch],
    *,
    form: DumpForm = DumpForm.ARGS_DUMP,
    level: int = 2,
    force: bool = False,
) -> Path:
    """Writes <folder>/args_dump.json and args.bin, or tensor_dump.json and .bin; returns the manifest.

    Payload is copied from wherever the dispatches point to. The manifest appears last, so a folder that
    has one is complete. Give a folder named args_dump or tensor_dump below a run's directory.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    manifest, bin_path = folder / form.manifest, folder / form.bin
    refuse_existing(manifest, force=force)
    counts: Counter[str] = Counter()
    empty: list[dict[str, Any]] = []
    with tempfile.TemporaryFile(dir=folder) as spool:
        with PayloadCopy(bin_path, force=force) as payloads:
            for dispatch in dispatches:
                lines = [_line(row, counts) for row in _rows(dispatch, payloads, form)]
                if not lines:
                    empty.append(_empty(dispatch))
                for line in lines:
                    spool.write((b",\n    " if counts["written"] else b"    ") + line)
                    counts["written"] += 1
            has_payload = payloads.written
        header = _header(form, level, counts, form.bin if has_payload else None, empty)
        spool.seek(0)
        with whole_file(manifest, force=force) as file:
            write_manifest(file, header, form.noun, spool)
    return manifest


def write_manifest(file: IO[bytes], header: dict[str, Any], noun: str, spool: IO[bytes]) -> None:
    file.write(b"{\n")
    for key, value in header.items():
        file.write(b"  " + msgspec.json.encode(key) + b": " + msgspec.json.encode(value) + b",\n")
    file.write(b'  "' + noun.encode() + b'": [\n')
    shutil.copyfileobj(spool, file, 1 << 20)
    file.write(b"\n  ]\n}\n")


def _header(
    form: DumpForm, level: int, counts: Counter[str], bin_file: str | None, empty: list[dict[str, Any]]
) -> dict[str, Any]:
    header: dict[str, Any] = {
        "run_dir": form.manifest.removesuffix(".json"),
        "bin_format": {"type": "logical_contiguous", "byte_order": "little_endian"},
    }
    if form is DumpForm.ARGS_DUMP:
        header["dump_args_level"] = level
    header[f"total_{form.noun}"] = counts["written"]
    for stage in Stage:
        header[stage.value] = counts[stage.value]
    for role in Role:
        header[f"{role.value}_{form.noun}"] = counts[role.value]
    header |= {f"truncated_{form.noun}": counts["truncated"], "dropped_records": 0, "dropped_overwrite": 0}
    if empty:
        header["empty_dispatches"] = empty
    return header | {"bin_file": bin_file}


def _line(row: dict[str, Any], counts: Counter[str]) -> bytes:
    counts[row["stage"]] += 1
    counts[row["role"] or ""] += 1
    counts["truncated"] += row["truncated"]
    return msgspec.json.encode(row)


def _rows(dispatch: Dispatch, payloads: PayloadCopy, form: DumpForm) -> Iterator[dict[str, Any]]:
    facts: dict[str, Any] | None = _facts(dispatch)
    for stage in Stage:
        for argument in dispatch.arguments:
            if isinstance(argument, ContextArg) or stage not in stages_of(argument):
                continue
            row: dict[str, Any] = {
                "task_id": f"0x{dispatch.task_id:016x}",
                "func_id": list(dispatch.func_ids) or [-1],
                "arg_index": argument.slot,
            }
            if isinstance(argument, ScalarArg):
                row |= _scalar(argument, form)
            else:
                payload = argument.before if stage is Stage.BEFORE else argument.after
                row |= _tensor(argument, stage, payload, payloads)
            row["dispatch_id"] = dispatch.dispatch_id
            if facts is not None:
                row["dispatch"] = facts
                facts = None
            if argument.name:
                row["name"] = argument.name
            yield row


def _scalar(scalar: ScalarArg, form: DumpForm) -> dict[str, Any]:
    raw = form is DumpForm.TENSOR_DUMP
    row: dict[str, Any] = {
        "role": Role.INPUT.value,
        "stage": Stage.BEFORE.value,
        "kind": "scalar",
        # A raw 64-bit number is what this form holds; the type it stands for is kept beside it.
        "dtype": "UINT64" if raw else scalar.dtype.name,
        "value": scalar.bits if raw else printed_value(scalar.bits, scalar.dtype),
        "is_contiguous": True,
        "shape": [],
        "strides": [],
        "start_offset": 0,
        "numel": 1,
        "bin_offset": 0,
        "bin_size": 0,
        "truncated": False,
        "overwritten": False,
    }
    if scalar.ambiguous:
        row["arg_index_ambiguous"] = True
    if raw and scalar.dtype.name != "UINT64":
        row["scalar_dtype"] = scalar.dtype.name
    row["bits"] = f"0x{scalar.bits:016x}"
    if not scalar.exact:
        row["exact"] = False
    return row


def _tensor(
    tensor: TensorArg, stage: Stage, payload: Payload | None, payloads: PayloadCopy
) -> dict[str, Any]:
    offset, size = (0, 0) if payload is None else payloads.add(payload)
    row: dict[str, Any] = {
        "role": None if tensor.role is None else tensor.role.value,
        "stage": stage.value,
        "kind": "tensor",
        "dtype": tensor.dtype.name,
        "is_contiguous": tensor.strides == row_major(tensor.shape),
        "shape": tensor.shape,
        "strides": tensor.strides,
        "start_offset": tensor.start_offset,
        "numel": tensor.numel,
        "bin_offset": offset,
        "bin_size": size,
        "truncated": payload is not None and payload.truncated,
        "overwritten": False,
    }
    if tensor.pointer is not None:
        row["pointer"] = f"0x{tensor.pointer:x}"
    if tensor.buffer_size is not None:
        row["buffer_size"] = tensor.buffer_size
    return row


def context_rows(dispatch: Dispatch) -> list[dict[str, Any]]:
    """Context pointers in the list of their own that every form keeps them in."""
    return [
        {
            "arg_index": a.slot,
            "pointer": None if a.pointer is None else f"0x{a.pointer:x}",
            **({"name": a.name} if a.name else {}),
        }
        for a in dispatch.arguments
        if isinstance(a, ContextArg)
    ]


def _facts(dispatch: Dispatch) -> dict[str, Any]:
    facts = {
        "subtask_id": dispatch.subtask_id,
        "core_type": None if dispatch.core_type is None else dispatch.core_type.value,
        "core_id": dispatch.core_id,
        "block_idx": dispatch.block_idx,
        "block_count": dispatch.block_count if dispatch.block_count != 1 else None,
        "kernel": dispatch.kernel or None,
        "contexts": context_rows(dispatch) or None,
        "inferred": dispatch.inferred or None,
        "missing": dispatch.missing or None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _empty(dispatch: Dispatch) -> dict[str, Any]:
    return {
        "task_id": f"0x{dispatch.task_id:016x}",
        "dispatch_id": dispatch.dispatch_id,
        "func_id": list(dispatch.func_ids) or [-1],
        **_facts(dispatch),
    }
