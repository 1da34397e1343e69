"""The folder of one executed job: what lies in it, who writes it, and how it is read again.

| file | what it is | written by |
|---|---|---|
| `replay.json` | the job and its options, verdicts and warnings: `replay WORKSPACE` repeats it | `write_record` |
| `inputs/` | content of every tensor, before and after | `write_record` |
| `kernel/` | the kernels, and below `include/` every file that they include, under its own path | `write_record` |
| `insight_export/OPPROF_*/simulator/` | what MindStudio Insight opens (`collect/out/` in a profile) | `write_insight` |
| `insight_export/OPPROF_*/recording/` | the recording that everything else reads | `write_insight` |
| `<kernel>_d<dispatch>.bin` | its `visualize_data.bin`, by a name that Insight's Data Manager shows | `write_import` |
| `pmu.csv` | the counters of the device, group PIPE_UTILIZATION | `write_counters` |
| `<label>_trace.json`, `<label>_trace_perfetto.json` | the traces of core_swimlane | `write_named_traces` |
| `<label>_memory_info.json` | Insight's On-Chip Memory page | `write_named_traces` |
| `shadow.json` | which lines lose precision (`replay --shadow`) | `debug.shadow` |
| `journal/` | every change of memory, made when a moment is first asked for | `debug.debug_session` |
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from insight_trace import __version__
from insight_trace.arguments.record import from_record, inside, keep, to_record
from insight_trace.errors import InputError
from insight_trace.job import ENTRY_SHOWN, Job
from insight_trace.limits import RECORD_BYTES, SOURCE_BYTES, cut
from insight_trace.model import Case, CoreType, Kernel, Scene
from insight_trace.options import RunOptions
from insight_trace.reading import load_json, read_regular
from insight_trace.simulate.embedded.sandbox import Sandbox
from insight_trace.storage import second_name, write_whole

if TYPE_CHECKING:
    from insight_trace.recording.store import Recording
    from insight_trace.replay.pipeline import Execution
    from insight_trace.trace.shown_part import Shown
    from insight_trace.trace.stats import Stats

RECORD = "replay.json"
_VERSION = 1
_INCLUDE = "kernel/include"
_SOURCES = (".cpp", ".cc", ".cxx", ".cce", ".c", ".h", ".hpp", ".hh", ".inc")
PLAIN, PERFETTO = "_trace.json", "_trace_perfetto.json"
MOST_INSTRUCTIONS = 1_000_000  # of a Perfetto trace as JSON: 290 MB, and as long as all other files together


# --- places and names


def workspace_path(output: Path | None, job: Job, build: str = "") -> Path:
    """Where the user asked for it, else outputs/insight_trace_<scene>_<case>_<kernel>_<time>.

    The kernel of a PyPTO `build` goes where its users look for one: build_output/incore_<kernel>_<build>_<time>.
    """
    if output is not None:
        return output
    if build:
        from insight_trace.trace.run_folder import BUILD_OUTPUT, presentable_name

        return BUILD_OUTPUT / presentable_name(job.label, build)
    case = job.case.name if job.case else "nocase"
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S_%f")[:-3]
    words = [job.scene.name if job.scene else "kernel", case, job.label]
    name = "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", word) for word in words)
    return Path("outputs") / f"insight_trace_{name[:120]}_{stamp}"


def label_of(job: Job) -> str:
    """`<class>_<case>_<target>_<kernel>`, with the members of a mix."""
    words = [job.scene.class_name or job.scene.name] if job.scene else []
    words += [job.case.name] if job.case else []
    words += [job.target, job.name or job.kernels[0].name]
    if all(kernel.func_id is not None for kernel in job.kernels):
        words.append("mix" + "_".join(str(kernel.func_id) for kernel in job.kernels))
    return "_".join(re.sub(r"[^A-Za-z0-9._-]+", "-", word) for word in words)


def import_name(job: Job) -> str:
    """Of the file to import: Insight's Data Manager shows where a path ends, about sixteen letters of it."""
    kernel = re.sub(r"[^A-Za-z0-9_-]+", "_", job.name or job.kernels[0].name)
    return kernel[:60] + (f"_d{job.dispatch.dispatch_id}" if job.dispatch else "") + ".bin"


# --- what Insight and other viewers open


def write_insight(
    done: Execution,
    folder: Path,
    options: RunOptions,
    *,
    name: str | None = None,
    timestamp: str | None = None,
) -> tuple[Path, Shown, Stats]:
    """Writes OPPROF_*/simulator/ with its recording below the folder; where it is, what it shows, and the run's figures."""
    from insight_trace.insight.writer import write_insight_directory
    from insight_trace.trace.details_figures import details_of
    from insight_trace.trace.shown_part import shown_part
    from insight_trace.trace.stats import stats

    assert done.recording is not None
    job, trace = done.job, done.recording.trace
    figures = stats(trace)
    shown = shown_part(trace, figures.path, options)
    names = [job.name] if job.name else [kernel.name for kernel in job.kernels]
    place = write_insight_directory(
        shown.trace,
        folder,
        name=name,
        timestamp=timestamp,
        include_source=options.include_source,
        dump_logs=options.dump_logs,
        details=details_of(trace, names, job.target, figures, shown),
        recording=done.recording,
        row_shown=shown.place,
    )
    return place, shown, figures


def write_import(job: Job, simulator: Path, workspace: Path) -> None:
    """The container under the kernel's name; Insight takes no symbolic links."""
    if (made := simulator / "visualize_data.bin").is_file():
        second_name(made, workspace / import_name(job))


def write_counters(recording: Recording, job: Job, workspace: Path, figures: Stats | None = None) -> None:
    """pmu.csv, as the runtime writes one on a device; `figures` where they are known already."""
    from insight_trace.recording.busy import Cores
    from insight_trace.trace.other_simulators import pmu

    task = job.dispatch.task_id if job.dispatch else 0
    by_side: dict[bool, list[int]] = {True: [], False: []}
    for kernel in job.kernels:
        by_side[kernel.core_type is CoreType.AIC].append(kernel.func_id or 0)
    text = pmu(figures or Cores(recording.trace), task=task, cube=by_side[True], vector=by_side[False])
    write_whole(workspace / "pmu.csv", text, sync=False)


def write_named_traces(
    recording: Recording | None, simulator: Path, workspace: Path, label: str, shown: Shown | None = None
) -> tuple[str, ...]:
    """Puts the traces of core_swimlane into the workspace, and Insight's On-Chip Memory page; returns what to say.

    The first is Insight's own timeline, as a link where the file system has links. The second holds every instruction as
    one slice on a lane where none overlaps another, which Perfetto needs, and the counters. `shown` is the part of the
    recording that Insight's timeline has.
    """
    from insight_trace.insight.added_events import finding_spans, moved_findings
    from insight_trace.insight.memory_page import write_memory_page
    from insight_trace.storage import whole_file
    from insight_trace.trace.chrome import write_chrome
    from insight_trace.trace.clean import whole
    from insight_trace.trace.critical import critical_path
    from insight_trace.trace.timeline_spans import timeline_spans

    timeline = simulator / "trace.json"
    if not timeline.is_file():
        return ()
    second_name(timeline, workspace / f"{label}{PLAIN}")
    if recording is not None and shown is not None:
        recording = replace(recording, trace=shown.trace)
    if recording is not None:
        trace = recording.trace
    else:  # the vendor's simulator leaves no recording
        from insight_trace.insight.reader import open_trace

        try:
            trace = open_trace(simulator)
        except InputError as error:  # a result of the vendor's that shows nothing is still a result
            return (f"no {label}{PERFETTO}: {error}",)
    if len(trace.instructions) > MOST_INSTRUCTIONS:
        return (
            f"no {label}{PERFETTO} and no {label}_memory_info.json: {len(trace.instructions):,} instructions are more "
            "than viewers take as JSON; `insight-trace clean --format perfetto` writes them, `view` shows tiles",
        )
    with whole_file(workspace / f"{label}{PERFETTO}") as file:
        spans = timeline_spans(trace, shown.path if shown else critical_path(trace))
        if recording is not None:
            findings = moved_findings(recording.findings, shown.place if shown is not None else None)
            spans = (*spans, *finding_spans(trace.instructions, findings))
        write_chrome(whole(trace), file, counters=True, spans=spans)
    if recording is not None:
        write_memory_page(recording, workspace, label)
    return ()


# --- the record


def write_record(done: Execution, options: RunOptions, workspace: Path, warnings: Sequence[str] = ()) -> None:
    """Keeps inputs, kernels with all that they include, and everything else that repeating the job takes."""
    job, simulation = done.job, done.simulation
    arguments = keep(job.arguments, workspace / "inputs")
    dispatch = job.dispatch
    record = {
        "version": _VERSION,
        "insight_trace": __version__,
        "scene": {
            "path": str(job.scene.path) if job.scene else "",
            "name": job.scene.name if job.scene else job.label,
            "class_name": job.scene.class_name if job.scene else "",
            "runtime": job.runtime,
        },
        "case": job.case.name if job.case else None,
        "name": job.name,
        "kernels": [_kept_kernel(kernel, job, workspace) for kernel in job.kernels],
        "included": _kept_includes(simulation.read if simulation else None, job, workspace),
        "origin": job.origin,
        "dispatch": dispatch
        and {
            "dispatch_id": dispatch.dispatch_id,
            "task_id": f"0x{dispatch.task_id:016x}",
            "func_ids": list(dispatch.func_ids),
            "block_count": dispatch.block_count,
            "inferred": list(dispatch.inferred),
        },
        "held": list(job.held),
        "arguments": to_record(arguments, workspace),
        "simulator": done.simulator,
        "target": job.target,
        "soc_version": simulation.chip_file or simulation.soc_version if simulation else options.soc_version,
        "preset": options.preset,
        "timing_only": options.timing_only,
        "l2": options.l2,
        "launch": options.launch,
        "mark_cost": options.mark_cost,
        "pto_isa_root": str(options.pto_isa_root) if options.pto_isa_root else None,
        "ascendc_root": str(options.ascendc_root) if options.ascendc_root else None,
        "cycles": simulation.cycles if simulation else None,
        "outputs": [
            {
                "slot": c.slot,
                "status": str(c.status),
                "max_error": c.max_error,
                "ulp": c.ulp,
                "compared": c.compared,
            }
            for c in done.checks
        ],
        "warnings": list(warnings),
    }
    write_whole(workspace / RECORD, json.dumps(record, indent=2) + "\n", sync=False)


def _kept_kernel(kernel: Kernel, job: Job, workspace: Path) -> dict[str, Any]:
    place = workspace / "kernel" / f"{'' if kernel.func_id is None else kernel.func_id}_{kernel.source.name}"
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(kernel.source, place)
    return {
        "name": kernel.name,
        "func_id": kernel.func_id,
        "core_type": str(kernel.core_type),
        "entry": kernel.entry,
        "source": job.shown(str(kernel.source)),
        "written": str(kernel.written) if kernel.written else None,
        "copy": str(place.relative_to(workspace)),
        "sha256": hashlib.sha256(place.read_bytes()).hexdigest(),
        "include_dirs": [job.shown(f"{folder}/").rstrip("/") for folder in kernel.include_dirs],
        "signature": list(kernel.signature) if kernel.signature is not None else None,
    }


def _kept_includes(read: Sequence[Path] | None, job: Job, workspace: Path) -> str | None:
    """Copies what the compiler read for the kernels, each under its own path; None: that is not known."""
    if read is None:
        return None
    for path in read:
        place = workspace / _INCLUDE / job.shown(str(path)).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError, InputError):  # what is gone since is missed when it is repeated
            place.write_bytes(read_regular(path, most=SOURCE_BYTES))
    return _INCLUDE


def read_record(workspace: Path, *, current: bool = False) -> tuple[Job, dict[str, Any]]:
    """The job that a workspace repeats, and the record itself.

    Its kernels are the copies that the workspace holds; with `current`, the files that those are copies of, where one of
    them, or of what they include, is another now.
    """
    path = workspace / RECORD
    record = load_json(path, most=RECORD_BYTES)
    if not isinstance(record, Mapping) or record.get("version") != _VERSION:
        raise InputError(f"not a replay record of version {_VERSION}", where=str(path))
    try:
        kept = record.get("included")
        changed = _changed(record, workspace) if current else ()
        kernels = tuple(_kernel(entry, kept, workspace, now=bool(changed)) for entry in record["kernels"])
        if not kernels:
            raise ValueError("its kernels")
        scene = record["scene"]
        job = Job(
            kernels,
            from_record(record["arguments"], workspace, where=str(path)),
            str(record.get("target") or "a2a3"),
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
            Case(record["case"]) if record["case"] else None,
            origin=f"workspace {workspace}",
            held=tuple((int(slot), bool(written)) for slot, written in record.get("held") or ()),
            name=str(record.get("name") or ""),
            shown_as=_original_names(record["kernels"], kernels, workspace),
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError, OSError) as error:
        raise InputError(f"the record lacks or garbles {cut(str(error))}", where=str(path)) from None
    return job, dict(record)


def source_line(workspace: Path, *, current: bool) -> str:
    """Which text of its kernels a workspace repeats, and whether that is what lies where it came from."""
    _, record = read_record(workspace)
    names = ", ".join(dict.fromkeys(Path(str(entry["source"])).name for entry in record["kernels"]))
    changed = _changed(record, workspace)
    if not changed:
        gone = any(not Path(str(entry["source"])).is_file() for entry in record["kernels"])
        return f"{names} as it was replayed" + ("" if gone else ", which is what it is now")
    files = ", ".join(changed)
    if current:
        return f"{names} as it is now: {files} has changed since it was replayed (--as-recorded takes the text of then)"
    return f"{names} as it was replayed; {files} has changed since"


def _changed(record: Mapping[str, Any], workspace: Path) -> tuple[str, ...]:
    """Names of the files that are not what the workspace holds of them; of files that are gone nothing is known.

    Nothing is read for a stranger: with a strict sandbox, and of files that are no source.
    """
    if Sandbox.chosen() is Sandbox.STRICT:
        return ()
    pairs = [
        (Path(str(entry["source"])), inside(workspace, str(entry["copy"])))
        for entry in record["kernels"]
        if not entry.get("written")
    ]
    if any(not original.is_file() for original, _ in pairs):
        return ()
    folder = workspace / _INCLUDE
    if record.get("included") is not None:
        pairs += [
            (Path("/") / copy.relative_to(folder), copy) for copy in folder.rglob("*") if copy.is_file()
        ]
    found: dict[str, None] = {}
    for original, copy in pairs:
        if original.suffix.lower() not in _SOURCES:
            continue
        with contextlib.suppress(OSError, InputError):
            if read_regular(original, most=SOURCE_BYTES) != read_regular(copy, most=SOURCE_BYTES):
                found[original.name] = None
    return tuple(found)


def _original_names(
    entries: Sequence[Mapping[str, Any]], kernels: Sequence[Kernel], workspace: Path
) -> dict[str, str]:
    """A trace of the copies names what they are copies of."""
    shown = {f"{(workspace / _INCLUDE).resolve()}/": "/"}
    for entry, kernel in zip(entries, kernels, strict=True):
        shown[str(kernel.source)] = ENTRY_SHOWN if kernel.written else str(entry["source"])
    return shown


def _kernel(entry: Mapping[str, Any], included: object, workspace: Path, *, now: bool = False) -> Kernel:
    original = Path(entry["source"])
    signature = entry["signature"]
    folders = (str(original.parent), *entry["include_dirs"])
    now = now and not entry.get("written") and original.suffix.lower() in _SOURCES
    if now:
        pass  # headers as they are
    elif included is not None:
        # headers of then, in the order in which they were found
        folders = tuple(str((workspace / _INCLUDE).resolve() / folder.lstrip("/")) for folder in folders)
    elif (
        Sandbox.chosen() is Sandbox.STRICT
    ):  # what a workspace from elsewhere names is not for its kernel to read
        real = workspace.resolve()
        folders = tuple(folder for folder in folders if Path(folder).resolve().is_relative_to(real))
    # else a workspace of before: what the copy includes may still lie beside the original
    return Kernel(
        entry["name"],
        original if now else inside(workspace, entry["copy"]).resolve(),
        CoreType(entry["core_type"]),
        entry["func_id"],
        tuple(signature) if signature is not None else None,
        folders,
        entry["entry"],
        written=Path(entry["written"]) if entry.get("written") else None,
    )
