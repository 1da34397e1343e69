"""Looks into a dump: list its dispatches, show or export arguments, compare two dumps.

DIR is a dump's JSON file, its directory or the run directory; without it the newest under outputs/ is taken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from insight_trace.dump.entries import EntryFilter
    from insight_trace.model import Scene

_LINES_AT_ONCE = 4096


def prepare(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|export|diff")
    for name, text in (
        ("list", "one line per dispatch; with --args, or a filter of arguments, one per argument and stage"),
        ("show", "tensors with statistics, scalars with value and bits"),
        ("export", "arguments as .npy, .txt or .csv files"),
        ("diff", "compare two dumps, or one tensor of a dump with a golden .npy or .bin file"),
    ):
        action = actions.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name == "diff":
            action.add_argument("dump", metavar="DIR", help="the dump to look at")
            action.add_argument("other", metavar="OTHER", help="another dump, or a golden .npy or .bin file")
            action.add_argument("--rtol", type=_tolerance, default=0.0, help="relative tolerance, default 0")
            action.add_argument("--atol", type=_tolerance, default=0.0, help="absolute tolerance, default 0")
        else:
            action.add_argument("dump", metavar="DIR", nargs="?", help="default: the newest under outputs/")
        _add_filters(action)
        if name == "list":
            action.add_argument("--args", action="store_true", help="one line per argument and stage")
        if name == "export":
            action.add_argument(
                "--format",
                choices=("npy", "txt", "csv"),
                default="npy",
                help="of the files (default: %(default)s)",
            )
            action.add_argument("-o", "--output", type=Path, metavar="OUT", help="default: DIR/<format>")
            action.add_argument("--force", action="store_true", help="replace files that exist")
        action.add_argument("--json", action="store_true", help="as JSON")


def _add_filters(action: argparse.ArgumentParser) -> None:
    action.add_argument("--scene", metavar="SCENE", help="names the kernels, and infers them where needed")
    action.add_argument(
        "-t",
        "--task",
        "--task-id",
        type=_number,
        metavar="ID",
        dest="task",
        help="only this task, hex or decimal",
    )
    action.add_argument("--func-id", type=int, metavar="N", help="only dispatches of this kernel")
    action.add_argument("--kernel", metavar="NAME", help="kernel name (needs --scene unless the dump has it)")
    action.add_argument(
        "--dispatch-id", "--dispatch", type=_number, metavar="N", dest="dispatch", help="only this dispatch"
    )
    action.add_argument(
        "-s",
        "--stage",
        choices=("before", "after", "before_dispatch", "after_completion"),
        help="only what was recorded before the dispatch, or after completion",
    )
    action.add_argument(
        "-r",
        "--role",
        choices=("input", "output", "inout"),
        help="only arguments that the kernel reads, writes, or both",
    )
    action.add_argument(
        "-a", "--slot", "--arg", type=int, metavar="N", dest="slot", help="only this slot of the args array"
    )
    action.add_argument("-i", "--index", type=int, metavar="N", help="row of `dump list --args`")


def _number(text: str) -> int:
    return int(text, 16 if text[:2].lower() == "0x" else 10)


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def run(options: argparse.Namespace) -> int:
    from insight_trace.dump.dump_place import find_manifest, newest_dump
    from insight_trace.scene.static import load_scene

    scene = load_scene(options.scene) if options.scene else None
    if options.dump is None:
        path = newest_dump()
        print(f"newest dump: {path}", file=sys.stderr)
    else:
        path = find_manifest(options.dump)
    action = {"list": _list, "show": _show, "export": _export, "diff": _diff}[options.action]
    return action(options, path, scene, _selection(options))


def _selection(options: argparse.Namespace) -> EntryFilter:
    from insight_trace.dump.entries import EntryFilter
    from insight_trace.model import Role, Stage

    stage = {"b": Stage.BEFORE, "a": Stage.AFTER}.get((options.stage or " ")[0])
    return EntryFilter(
        task_id=options.task,
        func_id=options.func_id,
        kernel=options.kernel,
        dispatch_id=options.dispatch,
        stage=stage,
        role=Role(options.role) if options.role else None,
        slot=options.slot,
        index=options.index,
    )


def _selected(path: Path, scene: Scene | None, selection: EntryFilter, warnings: list[str]) -> Iterator[Any]:
    from insight_trace.dump.entries import selected
    from insight_trace.dump.load import load_dump, stream_dispatches

    if not selection.names_dispatches:
        return selected(stream_dispatches(path, scene, warnings), selection)
    dump = load_dump(path, scene)
    warnings += dump.warnings
    return selected(dump.dispatches, selection)


def _entries(path: Path, scene: Scene | None, selection: EntryFilter, warnings: list[str]) -> Iterator[Any]:
    return (entry for _, entries in _selected(path, scene, selection, warnings) for entry in entries)


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _nothing(selection: EntryFilter, path: Path) -> Exception:
    from insight_trace.dump.load import load_dump
    from insight_trace.errors import RequestError

    dump = load_dump(path)
    if not len(dump.dispatches):
        return RequestError("the dump holds no dispatches", where=str(path))
    first, last = dump.dispatches[0], dump.dispatches[-1]
    if selection.kernel is not None and not first.kernel:
        hint = "the dump has no kernel names: give --scene"
        return RequestError(f"nothing matches {selection}", where=str(path), hint=hint)
    known = sorted({i for d in dump.dispatches[:10_000] for i in d.func_ids})
    return RequestError(
        f"nothing matches {selection}" if str(selection) else "nothing to show",
        where=str(path),
        hint=f"dispatches {first.dispatch_id}..{last.dispatch_id}, tasks 0x{first.task_id:016x}.."
        f"0x{last.task_id:016x}, func ids {', '.join(map(str, known)) or 'not recorded'}",
    )


def _list(options: argparse.Namespace, path: Path, scene: Scene | None, selection: EntryFilter) -> int:
    from insight_trace.dump.entries import HEADING, LIST_HEADING, dispatch_json, dispatch_lines, entry_line

    warnings: list[str] = []
    found = 0
    if options.json:
        import json

        print("[", end="")
        for dispatch, entries in _selected(path, scene, selection, warnings):
            arguments = {e.argument.slot: e.argument for e in entries}
            row = dispatch_json(dispatch, [arguments[slot] for slot in sorted(arguments)])
            print(",\n" if found else "\n", json.dumps(row), sep="", end="")
            found += 1
        print("\n]" if found else "]")
        _warn(warnings)
        return 0
    if not options.args and not selection.selects_entries:
        from insight_trace.dump.load import load_dump

        dump = load_dump(path, scene)
        lines = dispatch_lines(dump.dispatches, selection)
        while some := list(islice(lines, _LINES_AT_ONCE)):
            sys.stdout.write("\n".join([*([] if found else [LIST_HEADING]), *some, ""]))
            found += len(some)
        _warn(list(dump.warnings))
        if not found:
            raise _nothing(selection, path)
        return 0
    for entry in _entries(path, scene, selection, warnings):
        if not found:
            print(HEADING)
        found += 1
        print(entry_line(entry))
    _warn(warnings)
    if not found:
        raise _nothing(selection, path)
    return 0


def _show(options: argparse.Namespace, path: Path, scene: Scene | None, selection: EntryFilter) -> int:
    from insight_trace.dump.show import entry_json, entry_lines

    warnings: list[str] = []
    found = 0
    rows = []
    for entry in _entries(path, scene, selection, warnings):
        found += 1
        if options.json:
            rows.append(entry_json(entry))
            continue
        for line in entry_lines(entry):
            print(line)
    if options.json:
        import json

        print(json.dumps(rows, indent=2))
    _warn(warnings)
    if not found:
        raise _nothing(selection, path)
    return 0


def _export(options: argparse.Namespace, path: Path, scene: Scene | None, selection: EntryFilter) -> int:
    from insight_trace.dump.export import export_entry
    from insight_trace.storage import whole_files

    warnings: list[str] = []
    folder = options.output or path.parent / options.format
    written: list[Path] = []
    found = empty = 0
    with whole_files(folder, force=options.force) as beside:
        for entry in _entries(path, scene, selection, warnings):
            found += 1
            file = export_entry(entry, beside, options.format)
            if file is None:
                empty += 1
            else:
                written.append(folder / file.name)
        _warn(warnings)
        if not found:
            raise _nothing(selection, path)
    if options.json:
        import json

        print(json.dumps({"files": [str(p) for p in written], "without_content": empty}, indent=2))
        return 0
    without = f", {empty} without recorded content left out" if empty else ""
    print(f"{len(written)} files{without}\n{folder}")
    return 0


def _diff(options: argparse.Namespace, path: Path, scene: Scene | None, selection: EntryFilter) -> int:
    from insight_trace.dump.compare_golden import compare_with_golden
    from insight_trace.dump.dump_diff import DiffTolerance, compare_dumps
    from insight_trace.dump.load import load_dump

    tolerance = DiffTolerance(options.rtol, options.atol)
    left = load_dump(path, scene)
    _warn([f"{options.dump}: {w}" for w in left.warnings])
    if Path(options.other).suffix in (".npy", ".bin"):
        comparison = compare_with_golden(left.dispatches, selection, Path(options.other), tolerance)
    else:
        right = load_dump(options.other, scene)
        _warn([f"{options.other}: {w}" for w in right.warnings])
        chosen = [
            [d for d in dump.dispatches if selection.has_dispatch(d)] if str(selection) else dump.dispatches
            for dump in (left, right)
        ]
        comparison = compare_dumps(chosen[0], chosen[1], tolerance)
    if options.json:
        import json

        print(json.dumps(comparison.as_json(), indent=2))
    else:
        for line in comparison.lines():
            print(line)
    return 0 if comparison.equal else 1
