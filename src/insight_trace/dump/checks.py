"""What is checked when a dump is loaded, over all records at once and without reading payload."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UNSET

from insight_trace.dtypes import dtype_named
from insight_trace.dump.manifest_records import Record, RecordKind
from insight_trace.errors import InputError
from insight_trace.model import MAX_TENSOR_DIMS, Stage

_MOST_BYTES = 2**63 - 1
_SHOWN = 3


def payload_file(manifest: Path, header: dict[str, Any], warnings: list[str]) -> Path | None:
    """The .bin file of a manifest, if there is one; only ever a plain name beside the manifest."""
    name = header.get("bin_file", _default_name(manifest))
    if name is None:
        return None
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise InputError(
            f"bin_file must be the name of a file beside the manifest, not {name!r}",
            where=f"{manifest}, key bin_file",
            hint="a dump never reaches outside its own directory",
        )
    layout = header.get("bin_format") or {}
    if isinstance(layout, dict):
        kind, order = layout.get("type", "logical_contiguous"), layout.get("byte_order", "little_endian")
        if (kind, order) != ("logical_contiguous", "little_endian"):
            warnings.append(f"bin_format is {kind}, {order}, which is not known: the payload is left aside")
            return None
    path = manifest.parent / name
    if len(os.fsencode(path.name)) > 255 or not path.is_file():
        if "bin_file" in header:
            warnings.append(f"the payload file {name} is not there: tensors have no content")
        return None
    return path


def _default_name(manifest: Path) -> str:
    return "args.bin" if manifest.name == "args_dump.json" else f"{manifest.stem}.bin"


def check_forms(records: Sequence[Record], where: Callable[[int, str], str], warnings: list[str]) -> None:
    """Checks each distinct geometry once. An impossible one is an error, a misfit payload a warning."""
    forms = {(r.dtype, r.shape, r.strides, r.bin_size, r.truncated, r.kind) for r in records}
    broken = {form: trouble for form in forms if (trouble := _trouble(*form)) is not None}
    for r in [r for r in records if r.raw_shape is not UNSET]:
        lengths = {len(r.shape), *(len(x) for x in (r.raw_shape, r.offsets) if x is not UNSET)}
        if len(lengths) > 1 or r.offsets is UNSET:
            raise InputError(
                "shape, raw_shape and offsets have different lengths",
                where=where(records.index(r), "raw_shape"),
            )
    unknown = sorted({form[0] for form in forms if dtype_named(form[0]) is None})
    if unknown:
        warnings.append(f"dtype {', '.join(unknown)} is not known: such tensors are kept as plain bytes")
    if not broken:
        return
    misfits = 0
    for i, r in enumerate(records):
        trouble = broken.get((r.dtype, r.shape, r.strides, r.bin_size, r.truncated, r.kind))
        if trouble is None:
            continue
        key, text = trouble
        if key != "bin_size":
            raise InputError(text, where=where(i, key))
        misfits += 1
        if misfits <= _SHOWN:
            warnings.append(f"{where(i, key)}: {text}: its payload is left aside")
    if misfits > _SHOWN:
        warnings.append(f"{misfits - _SHOWN:,} more records have a payload of the wrong size")


def has_usable_payload(record: Record, bin_bytes: int) -> bool:
    """Whether a record's payload lies in the file and is as long as its tensor."""
    if not record.bin_size or record.overwritten or record.bin_offset + record.bin_size > bin_bytes:
        return False
    return _trouble(record.dtype, record.shape, UNSET, record.bin_size, record.truncated, record.kind) is None


def _trouble(
    dtype: str, shape: tuple[int, ...], strides: Any, size: int, truncated: bool, kind: RecordKind
) -> tuple[str, str] | None:
    if kind is RecordKind.SCALAR:
        return None
    if len(shape) > MAX_TENSOR_DIMS:
        return "shape", f"a tensor of {len(shape)} dimensions; a descriptor holds at most {MAX_TENSOR_DIMS}"
    if strides is not UNSET and len(strides) != len(shape):
        return "strides", f"{len(strides)} strides for {len(shape)} dimensions"
    known = dtype_named(dtype)
    numel = math.prod(shape)
    expected = numel * (known.size if known else 1)
    if expected > _MOST_BYTES:
        return "shape", f"the product of {list(shape)} is more bytes than a machine can address"
    if size == 0:
        return None
    if known is None:
        fits = numel > 0 and (truncated or size % numel == 0)
    else:
        fits = (0 < size < expected and size % known.size == 0) if truncated else size == expected
    return None if fits else ("bin_size", f"{size} bytes of payload for a tensor of {expected} bytes")


def check_ranges(
    records: Sequence[Record], bin_size: int, where: Callable[[int, str], str], warnings: list[str]
) -> None:
    """Warns of payloads that lie outside the file, and of ranges that overlap."""
    sizes = np.array([r.bin_size for r in records], dtype=np.int64)
    kept = np.flatnonzero(sizes)
    if not len(kept):
        return
    starts = np.array([r.bin_offset for r in records], dtype=np.int64)[kept].astype(np.uint64)
    ends = starts + sizes[kept].astype(np.uint64)
    outside = np.flatnonzero(ends > np.uint64(bin_size))
    for i in outside[:_SHOWN]:
        warnings.append(
            f"{where(int(kept[i]), 'bin_offset')}: bytes {starts[i]}..{ends[i]} lie outside the "
            f"payload file of {bin_size} bytes: this payload is left aside"
        )
    if len(outside) > _SHOWN:
        warnings.append(f"{len(outside) - _SHOWN:,} more payloads lie outside the payload file")
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order])
    overlapping = np.flatnonzero(starts[order][1:] < reach[:-1])
    for i in overlapping[:_SHOWN]:
        first, second = int(kept[order[i]]), int(kept[order[i + 1]])
        warnings.append(
            f"{where(second, 'bin_offset')}: its payload overlaps that of an earlier range ({first})"
        )
    if len(overlapping) > _SHOWN:
        warnings.append(f"{len(overlapping) - _SHOWN:,} more payloads overlap")


def check_counts(header: dict[str, Any], records: Sequence[Record], warnings: list[str]) -> None:
    """Counters that disagree with the records, and losses that the runtime counted itself."""
    before = [r.stage for r in records].count(Stage.BEFORE)
    counted = {
        "total_args": len(records),
        "total_tensors": len(records),
        "before_dispatch": before,
        "after_completion": len(records) - before,
    }
    for key, there in counted.items():
        said = header.get(key)
        if isinstance(said, int) and said != there:
            warnings.append(f"{key} says {said:,}, the manifest holds {there:,}")
    for key, meaning in (
        ("dropped_records", "records were dropped by the runtime: arguments may be missing"),
        ("dropped_overwrite", "payloads were overwritten before they were saved"),
        ("truncated_args", "payloads are cut off at the size of the runtime's buffer"),
        ("truncated_tensors", "payloads are cut off at the size of the runtime's buffer"),
    ):
        lost = header.get(key)
        if isinstance(lost, int) and lost > 0:
            warnings.append(f"{lost:,} {meaning}")
