"""What is checked when a dump is loaded, over all records at once and without reading payload."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET

from insight_trace.dtypes import dtype_named
from insight_trace.dump.manifest_records import Record, RecordKind
from insight_trace.dump.scalars import bits_of_value
from insight_trace.errors import InputError
from insight_trace.model import MAX_TENSOR_DIMS, Stage

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


class Survey:
    """What loading a dump finds out about its records, a batch at a time: misfits, counts, payload ranges."""

    def __init__(self, where: Callable[[int, str], str]) -> None:
        self._where = where
        self._forms: set[tuple[Any, ...]] = set()
        self._broken: dict[tuple[Any, ...], tuple[str, str]] = {}
        self._misfits: list[str] = []
        self._misfit_count = 0
        self._ranges: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
        self._uncertain = 0
        self.first: Record | None = None
        self.count = 0
        self.before = 0
        self.has_scalars = self.has_typed_scalars = False

    def add(self, batch: Sequence[Record]) -> None:
        """Takes the next records of the manifest. An impossible geometry is an error."""
        base = self.count
        if self.first is None and batch:
            self.first = batch[0]
        self.count += len(batch)
        self.before += [r.stage for r in batch].count(Stage.BEFORE)
        self._add_forms(batch, base)
        sizes = np.array([r.bin_size for r in batch], dtype=np.int64)
        kept = np.flatnonzero(sizes)
        if len(kept):
            starts = np.array([r.bin_offset for r in batch], dtype=np.int64)[kept]
            self._ranges.append((starts, sizes[kept], kept + base))
        unset = UNSET
        scalars = [r for r in batch if r.kind is RecordKind.SCALAR]
        if scalars:
            self.has_scalars = True
            self.has_typed_scalars = self.has_typed_scalars or any(
                r.dtype.casefold() != "uint64" for r in scalars
            )
        self._uncertain += sum(map(_is_uncertain, [r for r in batch if r.value is not unset]))

    def _add_forms(self, batch: Sequence[Record], base: int) -> None:
        """Checks each distinct geometry once."""
        forms = {(r.dtype, r.shape, r.strides, r.bin_size, r.truncated, r.kind) for r in batch}
        self._broken |= {
            form: trouble for form in forms - self._forms if (trouble := _trouble(*form)) is not None
        }
        self._forms |= forms
        for i, r in enumerate(batch):
            if r.raw_shape is UNSET:
                continue
            lengths = {len(r.shape), *(len(x) for x in (r.raw_shape, r.offsets) if x is not UNSET)}
            if len(lengths) > 1 or r.offsets is UNSET:
                raise InputError(
                    "shape, raw_shape and offsets have different lengths",
                    where=self._where(base + i, "raw_shape"),
                )
        if self._broken.keys().isdisjoint(forms):
            return
        for i, r in enumerate(batch):
            trouble = self._broken.get((r.dtype, r.shape, r.strides, r.bin_size, r.truncated, r.kind))
            if trouble is None:
                continue
            key, text = trouble
            if key != "bin_size":
                raise InputError(text, where=self._where(base + i, key))
            self._misfit_count += 1
            if self._misfit_count <= _SHOWN:
                self._misfits.append(f"{self._where(base + i, key)}: {text}: its payload is left aside")

    @property
    def lists_scalars(self) -> bool:
        """False for schemas A to C, which list tensors alone."""
        return self.first is None or self.first.subtask_id is UNSET or self.has_scalars

    def warnings(self, header: dict[str, Any], bin_size: int | None) -> list[str]:
        """What is wrong with the records that were added; `bin_size` of their payload file, if there is one."""
        found = _count_warnings(header, self.count, self.before)
        unknown = sorted({form[0] for form in self._forms if dtype_named(form[0]) is None})
        if unknown:
            found.append(f"dtype {', '.join(unknown)} is not known: such tensors are kept as plain bytes")
        found += self._misfits
        if self._misfit_count > _SHOWN:
            found.append(f"{self._misfit_count - _SHOWN:,} more records have a payload of the wrong size")
        if bin_size is not None and self._ranges:
            starts, sizes, records = (np.concatenate(column) for column in zip(*self._ranges, strict=True))
            found += _range_warnings(
                starts.view(np.uint64), sizes.view(np.uint64), records, bin_size, self._where
            )
        if self._uncertain:
            found.append(
                f"{self._uncertain:,} float scalars are printed with six digits or as null, "
                "which does not give their exact bits"
            )
        return found


def _is_uncertain(scalar: Record) -> bool:
    printed = (type(scalar.value) is float or scalar.value is None) and scalar.bits is UNSET
    dtype = dtype_named(scalar.dtype) if printed else None
    if dtype is not None and dtype.is_float:
        return not bits_of_value(scalar.value, dtype)[1]
    return not scalar.exact


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


def _range_warnings(
    starts: NDArray[np.uint64],
    sizes: NDArray[np.uint64],
    records: NDArray[np.int64],
    bin_size: int,
    where: Callable[[int, str], str],
) -> list[str]:
    """Payloads that lie outside the file, and ranges that overlap."""
    found: list[str] = []
    ends = starts + sizes
    outside = np.flatnonzero(ends > np.uint64(bin_size))
    for i in outside[:_SHOWN]:
        found.append(
            f"{where(int(records[i]), 'bin_offset')}: bytes {starts[i]}..{ends[i]} lie outside the "
            f"payload file of {bin_size} bytes: this payload is left aside"
        )
    if len(outside) > _SHOWN:
        found.append(f"{len(outside) - _SHOWN:,} more payloads lie outside the payload file")
    if bool((starts[1:] >= ends[:-1]).all()):  # as writers lay them: nothing to sort
        return found
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order])
    overlapping = np.flatnonzero(starts[order][1:] < reach[:-1])
    for i in overlapping[:_SHOWN]:
        first, second = int(records[order[i]]), int(records[order[i + 1]])
        found.append(
            f"{where(second, 'bin_offset')}: its payload overlaps that of an earlier range ({first})"
        )
    if len(overlapping) > _SHOWN:
        found.append(f"{len(overlapping) - _SHOWN:,} more payloads overlap")
    return found


def _count_warnings(header: dict[str, Any], records: int, before: int) -> list[str]:
    """Counters that disagree with the records, and losses that the runtime counted itself."""
    counted = {
        "total_args": records,
        "total_tensors": records,
        "before_dispatch": before,
        "after_completion": records - before,
    }
    found = []
    for key, there in counted.items():
        said = header.get(key)
        if isinstance(said, int) and said != there:
            found.append(f"{key} says {said:,}, the manifest holds {there:,}")
    for key, meaning in (
        ("dropped_records", "records were dropped by the runtime: arguments may be missing"),
        ("dropped_overwrite", "payloads were overwritten before they were saved"),
        ("truncated_args", "payloads are cut off at the size of the runtime's buffer"),
        ("truncated_tensors", "payloads are cut off at the size of the runtime's buffer"),
    ):
        lost = header.get(key)
        if isinstance(lost, int) and lost > 0:
            found.append(f"{lost:,} {meaning}")
    return found
