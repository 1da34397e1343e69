"""Dispatches as a loader would make them, for tests that need one."""

import json
from pathlib import Path

from insight_trace.dtypes import dtype_named
from insight_trace.model import Dispatch, Payload, Role, ScalarArg, TensorArg


def payload(directory: Path, raw: bytes, *, truncated: bool = False, name: str = "args.bin") -> Payload:
    path = directory / name
    offset = path.stat().st_size if path.exists() else 0
    with path.open("ab") as file:
        file.write(raw)
    return Payload(path, offset, len(raw), truncated)


def tensor(slot, dtype="FLOAT32", shape=(2, 2), strides=None, **rest) -> TensorArg:
    if strides is None:
        strides, step = [], 1
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= extent
    return TensorArg(slot, dtype_named(dtype), tuple(shape), tuple(strides), **rest)


def scalar(slot, dtype="UINT64", bits=0, **rest) -> ScalarArg:
    return ScalarArg(slot, dtype_named(dtype), bits, **rest)


def dispatch(*arguments, dispatch_id=0, task_id=0x200000000, **rest) -> Dispatch:
    return Dispatch(dispatch_id, task_id, tuple(arguments), **rest)


def real_dispatches(directory: Path) -> list[Dispatch]:
    """The tasks of a dump in the newest schema. The loader has its own package."""
    manifest = json.loads((directory / "args_dump.json").read_text())
    tasks: dict[str, dict[int, dict]] = {}
    funcs = {}
    for record in manifest["args"]:
        funcs[record["task_id"]] = tuple(record["func_id"])
        stages = tasks.setdefault(record["task_id"], {}).setdefault(record["arg_index"], {})
        stages[record["stage"]] = record
    result = []
    for number, (task, slots) in enumerate(tasks.items()):
        arguments = []
        for slot, stages in sorted(slots.items()):
            record = stages.get("before_dispatch") or stages["after_completion"]
            dtype = record["dtype"]
            if record["kind"] == "scalar":
                arguments.append(scalar(slot, dtype, record["value"]))
                continue
            found = {
                stage: Payload(directory / manifest["bin_file"], r["bin_offset"], r["bin_size"])
                for stage, r in stages.items()
                if r["bin_size"]
            }
            arguments.append(
                tensor(
                    slot,
                    dtype,
                    record["shape"],
                    record["strides"],
                    start_offset=record["start_offset"],
                    role=Role(record["role"]),
                    before=found.get("before_dispatch"),
                    after=found.get("after_completion"),
                )
            )
        result.append(dispatch(*arguments, dispatch_id=number, task_id=int(task, 16), func_ids=funcs[task]))
    return result
