"""Get data: run a scene and record its dispatches; what a dump holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.api import PathName, as_path
from insight_trace.errors import RequestError
from insight_trace.limits import RUN_SECONDS
from insight_trace.options import RunOptions

if TYPE_CHECKING:
    from insight_trace.capture.session import Capture
    from insight_trace.dump.dump_diff import DumpDiff
    from insight_trace.dump.entries import Entry, EntryFilter
    from insight_trace.model import Dispatch


def capture(
    scene: PathName,
    case: str | None = None,
    *,
    output: PathName | None = None,
    level: int = 2,
    seed: int = 0,
    platform: str | None = None,
    seconds: float = RUN_SECONDS,
    workers: int | None = None,
    golden: bool = True,
    force: bool = False,
    shuffle: int = 0,
    max_payload: int | None = None,
    check: bool = False,
    tensor_dump: bool = False,
) -> Capture:
    """Runs one case of a scene, or a PyPTO build directory, on modelled cores and records its dispatches below `output`.

    `level` is 0 (nothing), 1 (what the orchestration marked), 2 (everything) or 3 (all metadata, payload of
    what was marked). `seconds` limits each dispatch, and the orchestration between two of its calls. With `check`
    the first dispatch of every kernel is checked, and `checked` says what was found. `tensor_dump` also writes the
    files of a tensor dump. A run that fails gives a Capture
    with its `failure` and what was recorded until then; a wrong request raises.
    """
    import dataclasses

    from insight_trace.capture.session import CaptureOptions, run_capture

    if check and level != 2:
        raise RequestError("--check needs every payload", hint="leave --dump-args at 2")
    if check:
        from insight_trace.replay.examine import require_one_chip

        require_one_chip(Path(scene))
    options = CaptureOptions(
        level=level, seed=seed, platform=platform, seconds=seconds, workers=workers, golden=golden, force=force,
        shuffle=shuffle, max_payload=max_payload,
    )  # fmt: skip
    done = run_capture(Path(scene), case, as_path(output), options)
    if tensor_dump and done.directory is not None and done.records:
        from insight_trace.dump.write_kernel_args import write_tensor_dump

        write_tensor_dump(done.directory, force=force)
    if not check:
        return done
    from insight_trace.replay.examine import examine
    from insight_trace.replay.jobs import ReplayRequest

    found = []
    if done.directory is not None and done.failure is None:
        how = RunOptions(platform=platform, seconds=seconds)
        found = examine(ReplayRequest(Path(scene), done.case, options=how), dump=done.directory)
    return dataclasses.replace(done, checked=tuple(found))


def dump_entries(
    dump: PathName,
    selection: EntryFilter | None = None,
    *,
    scene: PathName | None = None,
    warnings: list[str] | None = None,
) -> Iterator[tuple[Dispatch, list[Entry]]]:
    """Dispatches of a dump that a selection chooses, each with its chosen entries, read as they are asked for.

    `warnings` gets what is remarkable about the dump.
    """
    from insight_trace.dump.entries import EntryFilter, selected
    from insight_trace.dump.load import load_dump, stream_dispatches
    from insight_trace.scene.static import load_scene

    chosen, said = selection or EntryFilter(), [] if warnings is None else warnings
    known = load_scene(Path(scene)) if scene is not None else None
    if not chosen.names_dispatches:
        return selected(stream_dispatches(Path(dump), known, said), chosen)
    loaded = load_dump(Path(dump), known)
    said += loaded.warnings
    return selected(loaded.dispatches, chosen)


def export_dump(
    dump: PathName,
    output: PathName,
    selection: EntryFilter | None = None,
    *,
    form: str = "npy",
    scene: PathName | None = None,
    force: bool = False,
    warnings: list[str] | None = None,
) -> tuple[list[Path], int]:
    """Writes the content of what a selection chooses into files, all or none; the files, and how many had no content."""
    import itertools

    from insight_trace.dump.export import export_entry
    from insight_trace.storage import whole_files

    chosen = dump_entries(dump, selection, scene=scene, warnings=warnings)
    entries = (entry for _, of_dispatch in chosen for entry in of_dispatch)
    first = next(entries, None)
    if first is None:
        return [], 0
    folder, written, empty = Path(output), [], 0
    with whole_files(folder, force=force) as beside:
        for entry in itertools.chain([first], entries):
            file = export_entry(entry, beside, form)
            empty += file is None
            written += [folder / file.name] if file is not None else []
    return written, empty


def diff_dumps(
    dump: PathName,
    other: PathName,
    selection: EntryFilter | None = None,
    *,
    scene: PathName | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
    warnings: list[str] | None = None,
) -> DumpDiff:
    """Two dumps, or a dump and a .npy or .bin file of what an argument should hold."""
    from insight_trace.dump.dump_diff import DiffTolerance, compare_dumps, compare_with_golden
    from insight_trace.dump.entries import EntryFilter
    from insight_trace.dump.load import load_dump
    from insight_trace.scene.static import load_scene

    chosen, tolerance = selection or EntryFilter(), DiffTolerance(rtol, atol)
    known = load_scene(Path(scene)) if scene is not None else None
    said = [] if warnings is None else warnings
    left = load_dump(Path(dump), known)
    said += [f"{dump}: {text}" for text in left.warnings]
    if Path(other).suffix in (".npy", ".bin"):
        return compare_with_golden(left.dispatches, chosen, Path(other), tolerance)
    right = load_dump(Path(other), known)
    said += [f"{other}: {text}" for text in right.warnings]
    kept = [
        [d for d in each.dispatches if chosen.has_dispatch(d)] if str(chosen) else each.dispatches
        for each in (left, right)
    ]
    return compare_dumps(kept[0], kept[1], tolerance)
