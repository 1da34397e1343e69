"""What a run on a device left beside its times: who waits for whom (deps.json), and names of kernels (name_map*.json)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from insight_trace.errors import InputError
from insight_trace.limits import TABLE_BYTES
from insight_trace.reading import read_regular, readable

SWIMLANES = ("chip_swimlane_records.json", "l2_swimlane_records.json", "l2_perf_records.json")


@dataclass(frozen=True, slots=True)
class DependedTask:
    """A task of deps.json."""

    task_id: int
    func_ids: tuple[int, int, int] | None  # cube and the two vector members, -1: none; None: not recorded
    block_count: int | None


@dataclass(frozen=True, slots=True)
class Dependences:
    tasks: tuple[DependedTask, ...]  # in the order of their submission; empty in the oldest files
    edges: tuple[tuple[int, int], ...]  # task ids: this one, and who waits for it; each pair once


@dataclass(frozen=True, slots=True)
class Records:
    """The files of one folder that a device's run left; None where one is missing."""

    swimlane: Path | None
    pmu: Path | None
    deps: Path | None
    names: Path | None


def find_records(folder: Path) -> Records:
    """The files of a run's folder, or the one file that is named. A folder without times is an error."""
    if folder.is_file():
        return (
            Records(folder, None, None, None)
            if folder.suffix == ".json"
            else Records(None, folder, None, None)
        )
    swimlane = next((folder / name for name in SWIMLANES if (folder / name).is_file()), None)
    names = sorted(folder.glob("name_map*.json"))
    pmu, deps = folder / "pmu.csv", folder / "deps.json"
    found = Records(
        swimlane,
        pmu if pmu.is_file() else None,
        deps if deps.is_file() else None,
        names[0] if len(names) == 1 else None,
    )
    if found.swimlane is None and found.pmu is None:
        raise InputError(
            f"{folder} holds no times of a device",
            hint=f"it needs one of {', '.join(SWIMLANES)} or pmu.csv",
        )
    return found


def _read(path: Path, what: str) -> dict[str, Any]:
    with readable(path, f"the {what}"):
        text = read_regular(path, most=TABLE_BYTES)
    try:
        content = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"the {what} is not JSON: {error}", where=str(path)) from None
    if not isinstance(content, dict):
        raise InputError(f"the {what} is a {type(content).__name__}, not an object", where=str(path))
    return content


def read_deps(path: Path) -> Dependences:
    """deps.json in every form that it has had: pairs alone, with tensors, with kernels and blocks."""
    content = _read(path, "list of dependences")
    try:
        tasks = tuple(
            DependedTask(
                int(task["task_id"]),
                _three(task["kernel_ids"]) if "kernel_ids" in task else None,
                int(task["block_num"]) if "block_num" in task else None,
            )
            for task in content.get("tasks", [])
        )
        pairs = []
        for edge in content["edges"]:
            if isinstance(edge, dict) and "wait" not in edge.get("flags", ["wait"]):
                continue  # it keeps a buffer alive, and nobody waits for it
            pairs.append(
                (int(edge[0]), int(edge[1]))
                if isinstance(edge, list)
                else (int(edge["pred"]), int(edge["succ"]))
            )
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(
            f"this is no list of dependences: {error}",
            where=str(path),
            hint="a run with --enable-dep-gen writes it",
        ) from None
    return Dependences(tasks, tuple(dict.fromkeys(pairs)))


def _three(ids: Any) -> tuple[int, int, int]:
    cube, first, second = map(int, ids)
    return cube, first, second


def read_names(path: Path) -> dict[int, str]:
    """name_map*.json: func id -> name, in its own form or as a flat object."""
    content = _read(path, "map of names")
    table = content.get("callable_id_to_name", content)
    try:
        return {int(key): str(value) for key, value in table.items() if str(key).isdecimal()}
    except (AttributeError, ValueError) as error:
        raise InputError(f"this is no map of names: {error}", where=str(path)) from None
