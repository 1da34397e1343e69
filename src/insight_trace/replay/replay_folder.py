"""The folder of one replay: where it goes, and the record that lets it be repeated."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace import __version__
from insight_trace.arguments.record import from_record, inside, keep, to_record
from insight_trace.errors import InputError
from insight_trace.limits import RECORD_BYTES, cut
from insight_trace.model import Case, CoreType, Kernel, Scene
from insight_trace.reading import read_regular
from insight_trace.replay.gathering import Gathered
from insight_trace.replay.request import ReplayRequest
from insight_trace.replay.selection import Selection
from insight_trace.simulate.embedded.sandbox import Sandbox
from insight_trace.storage import write_whole

if TYPE_CHECKING:
    from insight_trace.replay.replaying import Replay

RECORD = "replay.json"
_VERSION = 1


def workspace_path(request: ReplayRequest, selection: Selection) -> Path:
    """Where the user asked for it, else outputs/insight_trace_<scene>_<case>_<kernel>_<time>."""
    if request.output is not None:
        return request.output
    case = selection.case.name if selection.case else "nocase"
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S_%f")[:-3]
    words = [selection.scene.name, case, selection.label]
    name = "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", word) for word in words)
    return Path("outputs") / f"insight_trace_{name[:120]}_{stamp}"


def write_record(request: ReplayRequest, replay: Replay, workspace: Path) -> None:
    """Keeps inputs, kernel sources and everything else that repeating the replay takes."""
    arguments = keep(replay.arguments, workspace / "inputs")
    kernels = [_kept_kernel(kernel, workspace) for kernel in replay.selection.kernels]
    simulation = replay.simulation
    record = {
        "version": _VERSION,
        "insight_trace": __version__,
        "scene": {
            "path": str(replay.selection.scene.path),
            "name": replay.selection.scene.name,
            "class_name": replay.selection.scene.class_name,
            "runtime": replay.selection.scene.runtime,
        },
        "case": replay.selection.case.name if replay.selection.case else None,
        "kernels": kernels,
        "origin": replay.origin,
        "dispatch": _dispatch(replay),
        "arguments": to_record(arguments, workspace),
        "simulator": replay.simulator,
        "target": replay.target,
        "soc_version": simulation.soc_version if simulation else request.soc_version,
        "preset": request.preset,
        "timing_only": request.timing_only,
        "l2": request.l2,
        "launch": request.launch,
        "mark_cost": request.mark_cost,
        "cycles": replay.cycles,
        "outputs": [
            {
                "slot": c.slot,
                "status": str(c.status),
                "max_error": c.max_error,
                "ulp": c.ulp,
                "compared": c.compared,
            }
            for c in replay.checks
        ],
        "warnings": list(replay.warnings),
    }
    write_whole(workspace / RECORD, json.dumps(record, indent=2) + "\n", sync=False)


def _dispatch(replay: Replay) -> dict[str, Any] | None:
    dispatch = replay.dispatch
    if dispatch is None:
        return None
    return {
        "dispatch_id": dispatch.dispatch_id,
        "task_id": f"0x{dispatch.task_id:016x}",
        "func_ids": list(dispatch.func_ids),
        "block_count": dispatch.block_count,
        "inferred": list(dispatch.inferred),
    }


def _kept_kernel(kernel: Kernel, workspace: Path) -> dict[str, Any]:
    import hashlib

    place = workspace / "kernel" / f"{'' if kernel.func_id is None else kernel.func_id}_{kernel.source.name}"
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(kernel.source, place)
    return {
        "name": kernel.name,
        "func_id": kernel.func_id,
        "core_type": str(kernel.core_type),
        "entry": kernel.entry,
        "source": str(kernel.source),
        "copy": str(place.relative_to(workspace)),
        "sha256": hashlib.sha256(place.read_bytes()).hexdigest(),
        "include_dirs": list(kernel.include_dirs),
        "signature": list(kernel.signature) if kernel.signature is not None else None,
    }


def read_record(workspace: Path) -> tuple[Selection, Gathered, dict[str, Any]]:
    """What a workspace replays: its kernels (the copies), its arguments, and the record itself."""
    path = workspace / RECORD
    try:
        record = json.loads(read_regular(path, most=RECORD_BYTES).decode("utf-8"))
    except OSError as error:
        raise InputError(f"the record cannot be read: {error.strerror}", where=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a JSON file: {cut(str(error))}", where=str(path)) from None
    if not isinstance(record, Mapping) or record.get("version") != _VERSION:
        raise InputError(f"not a replay record of version {_VERSION}", where=str(path))
    try:
        kernels = tuple(_kernel(entry, workspace) for entry in record["kernels"])
        scene = record["scene"]
        case = Case(record["case"]) if record["case"] else None
        selection = Selection(
            Scene(
                Path(scene["path"]),
                scene["name"],
                scene["class_name"],
                2,
                scene["runtime"],
                (),
                kernels,
                None,
            ),
            case,
            kernels,
        )
        arguments = from_record(record["arguments"], workspace, where=str(path))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError, OSError) as error:
        raise InputError(f"the record lacks or garbles {cut(str(error))}", where=str(path)) from None
    return selection, Gathered(arguments, f"workspace {workspace}"), dict(record)


def _kernel(entry: Mapping[str, Any], workspace: Path) -> Kernel:
    original = Path(entry["source"])
    signature = entry["signature"]
    folders = (str(original.parent), *entry["include_dirs"])
    if (
        Sandbox.chosen() is Sandbox.STRICT
    ):  # what a workspace from elsewhere names is not for its kernel to read
        real = workspace.resolve()
        folders = tuple(folder for folder in folders if Path(folder).resolve().is_relative_to(real))
    return Kernel(
        entry["name"],
        inside(workspace, entry["copy"]).resolve(),
        CoreType(entry["core_type"]),
        entry["func_id"],
        tuple(signature) if signature is not None else None,
        # the copy stands alone, but what it includes may still lie beside the original
        folders,
        entry["entry"],
    )
