"""From the runner's rows to a dump: args_dump.json and kernel_args_dump.json beside args.bin.

The runner appends a row of fixed size for each argument at each stage, and only when its payload is in
args.bin. So at any moment the rows that are there make a valid dump, which is then marked as partial.
"""

from __future__ import annotations

import math
import mmap
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from insight_trace.dtypes import DTYPES
from insight_trace.dump.manifest_writer import DumpForm, write_manifest
from insight_trace.dump.scalars import printed_value
from insight_trace.dump.write_kernel_args import write_kernel_args
from insight_trace.errors import JobError
from insight_trace.model import Argument, CoreType, Dispatch, Payload, Role, ScalarArg, Stage, TensorArg
from insight_trace.storage import whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The layout of struct Row in capture/host/recorder.hpp
ROW = np.dtype(
    [
        *((name, "<u8") for name in (
            "task_id", "start_offset", "value", "bin_offset", "bin_size", "pointer", "buffer_size",
        )),
        ("shape", "<u4", 5),
        ("strides", "<u4", 5),
        ("func", "<i4", 3),
        *((name, "<u4") for name in ("dispatch_id", "block_idx", "block_count")),
        ("core_id", "<u2"),
        *((name, "u1") for name in (
            "func_count", "arg_index", "role", "stage", "scalar", "dtype", "ndims", "contiguous", "ambiguous",
            "partial", "core_type", "subtask", "reserved0", "reserved1",
        )),
        ("cycles", "<u8"),
    ]
)  # fmt: skip
assert ROW.itemsize == 144

_ROLES, _STAGES, _CORES = tuple(Role), tuple(Stage), (CoreType.AIC, CoreType.AIV, CoreType.MIX)
_ROLE_NAMES, _STAGE_NAMES = [r.value for r in _ROLES], [s.value for s in _STAGES]
_PIECE = 4096


def read_rows(path: Path) -> NDArray[Any]:
    """Whole rows that are in the file now; mapped, not read."""
    count = path.stat().st_size // ROW.itemsize if path.exists() else 0
    return np.memmap(path, ROW, "r", shape=(count,)) if count else np.empty(0, ROW)


def write_args_dump(
    folder: Path,
    rows: NDArray[Any],
    level: int,
    names: Mapping[int, str],
    *,
    partial: bool,
    failure: Mapping[str, Any] | None = None,
    case: str = "",
) -> Path:
    """Writes args_dump.json for the rows; `partial` marks a run that did not (or not yet) end well."""
    order = np.lexsort((rows["block_idx"], rows["role"], rows["arg_index"], rows["stage"], rows["task_id"]))
    firsts = np.zeros(len(order), bool)  # the first record of each dispatch
    firsts[np.unique(rows["dispatch_id"][order], return_index=True)[1]] = True
    stages = np.bincount(rows["stage"], minlength=len(Stage)).tolist()
    roles = np.bincount(rows["role"], minlength=len(Role)).tolist()
    encode = msgspec.json.Encoder().encode
    with tempfile.TemporaryFile(dir=folder) as spool:
        before = b"    "
        for row, first in zip(_pieces(rows, order), firsts, strict=True):
            spool.write(before + encode(_record(row, names, first)))
            before = b",\n    "
        header: dict[str, Any] = {
            "run_dir": "args_dump",
            **({"case": case} if case else {}),
            "bin_format": {"type": "logical_contiguous", "byte_order": "little_endian"},
            "dump_args_level": level,
            "total_args": len(rows),
            **{stage.value: count for stage, count in zip(Stage, stages, strict=True)},
            **{f"{role.value}_args": count for role, count in zip(Role, roles, strict=True)},
            "truncated_args": 0,
            "dropped_records": 0,
            "dropped_overwrite": 0,
        }
        if partial:
            header["partial"] = True
        if failure:
            header["failure"] = dict(failure)
        header["bin_file"] = DumpForm.ARGS_DUMP.bin if rows["bin_size"].any() else None
        spool.seek(0)
        manifest = folder / DumpForm.ARGS_DUMP.manifest
        with whole_file(manifest, force=True) as file:
            write_manifest(file, header, "args", spool)
    return manifest


def write_kernel_dump(folder: Path, rows: NDArray[Any], names: Mapping[int, str], case: str = "") -> Path:
    """Writes kernel_args_dump.json for the rows; its payload is that of args.bin."""
    order = np.lexsort((rows["stage"], rows["arg_index"], rows["dispatch_id"]))
    dispatches = _dispatches(_pieces(rows, order), folder / DumpForm.ARGS_DUMP.bin, names)
    return write_kernel_args(folder, dispatches, payload_beside=DumpForm.ARGS_DUMP.bin, force=True, case=case)


_BOUNDS = {
    "role": len(_ROLES), "stage": len(_STAGES), "core_type": len(_CORES), "dtype": len(DTYPES),
    "ndims": ROW["shape"].shape[0] + 1, "func_count": ROW["func"].shape[0] + 1,
}  # fmt: skip


def require_known(rows: NDArray[Any]) -> None:
    """The runner shares its process with kernels, which may have written over its rows."""
    for name, bound in _BOUNDS.items():
        if len(rows) and (most := int(rows[name].max())) >= bound:
            raise JobError(
                f"a kernel wrote over the recorded arguments: {name} {most}, less than {bound} is known",
                hint="look for a store through a wild pointer in the kernels",
            )


def _pieces(rows: NDArray[Any], order: NDArray[Any]) -> Iterator[dict[str, Any]]:
    fields = ROW.names or ()
    for start in range(0, len(order), _PIECE):
        piece = rows[order[start : start + _PIECE]]
        require_known(piece)
        for values in zip(*(piece[name].tolist() for name in fields), strict=True):
            yield dict(zip(fields, values, strict=True))
        if isinstance(rows.base, mmap.mmap):
            rows.base.madvise(mmap.MADV_DONTNEED)  # what was read need not stay in memory


def _record(row: dict[str, Any], names: Mapping[int, str], first: bool) -> dict[str, Any]:
    func_ids = row["func"][: row["func_count"]]
    dtype = DTYPES[row["dtype"]]
    record: dict[str, Any] = {
        "task_id": f"0x{row['task_id']:016x}",
        "func_id": func_ids,
        "arg_index": row["arg_index"],
        "role": _ROLE_NAMES[row["role"]],
        "stage": _STAGE_NAMES[row["stage"]],
        "kind": "scalar" if row["scalar"] else "tensor",
        "dtype": dtype.name,
    }
    if row["scalar"]:
        record["value"] = printed_value(row["value"], dtype)
    shape = row["shape"][: row["ndims"]]
    record |= {
        "is_contiguous": bool(row["contiguous"]),
        "shape": shape,
        "strides": row["strides"][: row["ndims"]],
        "start_offset": row["start_offset"],
        "numel": math.prod(shape),
        "bin_offset": row["bin_offset"],
        "bin_size": row["bin_size"],
        "truncated": False,
        "overwritten": False,
    }
    if row["ambiguous"]:
        record["arg_index_ambiguous"] = True
    # what follows are keys of our own, which other readers pass over
    if row["scalar"]:
        record["bits"] = f"0x{row['value']:016x}"
    else:
        record |= {"pointer": f"0x{row['pointer']:x}", "buffer_size": row["buffer_size"]}
    if row["partial"]:
        record["partial"] = True
    record["dispatch_id"] = row["dispatch_id"]
    if first:
        record["dispatch"] = {
            "subtask_id": row["subtask"],
            "core_type": _CORES[row["core_type"]].value,
            "core_id": row["core_id"],
            "block_idx": row["block_idx"],
            **({"block_count": row["block_count"]} if row["block_count"] != 1 else {}),
            "kernel": _kernel_name(func_ids, names),
        }
    return record


def _kernel_name(func_ids: list[int], names: Mapping[int, str]) -> str:
    return "+".join(names.get(f, str(f)) for f in func_ids)


def _dispatches(
    rows: Iterator[dict[str, Any]], payload: Path, names: Mapping[int, str]
) -> Iterator[Dispatch]:
    group: list[dict[str, Any]] = []
    for row in rows:
        if group and row["dispatch_id"] != group[0]["dispatch_id"]:
            yield _dispatch(group, payload, names)
            group = []
        group.append(row)
    if group:
        yield _dispatch(group, payload, names)


def _dispatch(group: list[dict[str, Any]], payload: Path, names: Mapping[int, str]) -> Dispatch:
    first = group[0]
    func_ids = tuple(first["func"][: first["func_count"]])
    slots: dict[int, list[dict[str, Any]]] = {}
    for row in group:
        slots.setdefault(row["arg_index"], []).append(row)
    return Dispatch(
        dispatch_id=first["dispatch_id"],
        task_id=first["task_id"],
        arguments=tuple(_argument(found, payload) for found in slots.values()),
        func_ids=func_ids,
        subtask_id=first["subtask"],
        core_type=_CORES[first["core_type"]],
        core_id=first["core_id"],
        block_idx=first["block_idx"],
        block_count=first["block_count"],
        kernel=_kernel_name(list(func_ids), names),
    )


def _argument(found: list[dict[str, Any]], payload: Path) -> Argument:
    row = found[0]
    dtype = DTYPES[row["dtype"]]
    if row["scalar"]:
        return ScalarArg(row["arg_index"], dtype, row["value"], ambiguous=bool(row["ambiguous"]))
    taken = {
        _STAGES[r["stage"]]: Payload(payload, r["bin_offset"], r["bin_size"]) for r in found if r["bin_size"]
    }
    return TensorArg(
        slot=row["arg_index"],
        dtype=dtype,
        shape=tuple(row["shape"][: row["ndims"]]),
        strides=tuple(row["strides"][: row["ndims"]]),
        start_offset=row["start_offset"],
        role=_ROLES[row["role"]],
        before=taken.get(Stage.BEFORE),
        after=taken.get(Stage.AFTER),
        pointer=row["pointer"],
        buffer_size=row["buffer_size"],
    )
