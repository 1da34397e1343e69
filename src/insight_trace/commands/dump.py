"""Looks into a dump: list its dispatches, show or export arguments, compare two dumps.

DIR is a dump's JSON file, its directory or the run directory; without it the newest under outputs/ is taken.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.commands import call, show
from insight_trace.dump.entries import Entry, argument_json, plain_number, scalar_text
from insight_trace.dump.recorded_bytes import payload_array
from insight_trace.dump.statistics import DIGITS, Statistics, element_text, statistics
from insight_trace.model import ScalarArg, TensorArg
from insight_trace.options import add_table

if TYPE_CHECKING:
    from insight_trace.dump.entries import EntryFilter

_LINES_AT_ONCE = 4096


_FILTERS = """
--scene SCENE                text  names the kernels, and infers them where needed
-t --task --task-id ID -> task  number  only this task, hex or decimal
--func-id N                  int   only dispatches of this kernel
--kernel NAME                text  kernel name (needs --scene unless the dump has it)
--dispatch-id --dispatch N -> dispatch  number  only this dispatch
-s --stage                   before|after|before_dispatch|after_completion  only what was recorded before the dispatch, \
or after completion
-r --role                    input|output|inout  only arguments that the kernel reads, writes, or both
-a --slot --arg N            int   only this slot of the args array
-i --index N                 int   row of `dump list --args`
"""
_NEWEST = """
dump DIR                     text ?  default: the newest under outputs/
"""
_JSON = """
--json                       on    as JSON
"""
# action -> what it does, and what it takes
_ACTIONS: dict[str, tuple[str, str]] = {
    "list": (
        "one line per dispatch; with --args, or a filter of arguments, one per argument and stage",
        f"""
        {_NEWEST} {_FILTERS}
        --args               on    one line per argument and stage
        """,
    ),
    "show": ("tensors with statistics, scalars with value and bits", f"{_NEWEST} {_FILTERS}"),
    "export": (
        "arguments as .npy, .txt or .csv files",
        f"""
        {_NEWEST} {_FILTERS}
        --format             npy|txt|csv =npy  of the files (default: %(default)s)
        -o --output OUT      path  default: DIR/<format>
        --force              on    replace files that exist
        """,
    ),
    "diff": (
        "compare two dumps, or one tensor of a dump with a golden .npy or .bin file",
        f"""
        dump DIR             text  the dump to look at
        other OTHER          text  another dump, or a golden .npy or .bin file
        --rtol               tolerance =0  relative tolerance, default 0
        --atol               tolerance =0  absolute tolerance, default 0
        {_FILTERS}
        """,
    ),
}


def prepare(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|export|diff")
    for name, (text, takes) in _ACTIONS.items():
        action = actions.add_parser(name, help=text, description=text, allow_abbrev=False)
        add_table(action, takes + _JSON, number=_number, tolerance=_tolerance)


def _number(text: str) -> int:
    return int(text, 16 if text[:2].lower() == "0x" else 10)


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def run(options: argparse.Namespace) -> int:
    from insight_trace.dump.dump_place import find_manifest, newest_dump

    if options.dump is None:
        path = newest_dump()
        print(f"newest dump: {path}", file=sys.stderr)
    else:
        path = find_manifest(options.dump)
    action = {"list": _list, "show": _show, "export": _export, "diff": _diff}[options.action]
    warnings: list[str] = []
    code = action(options, path, _selection(options), warnings)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return code


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


def _list(options: argparse.Namespace, path: Path, selection: EntryFilter, warnings: list[str]) -> int:
    from insight_trace import load_dump, load_scene
    from insight_trace.dump.entries import HEADING, LIST_HEADING, dispatch_json, dispatch_lines, entry_line

    found = 0
    if not options.json and not options.args and not selection.selects_entries:
        dump = load_dump(path, load_scene(options.scene) if options.scene else None)
        lines = dispatch_lines(dump.dispatches, selection)
        while some := list(islice(lines, _LINES_AT_ONCE)):
            sys.stdout.write("\n".join([*([] if found else [LIST_HEADING]), *some, ""]))
            found += len(some)
        warnings += dump.warnings
        if not found:
            raise _nothing(selection, path)
        return 0
    chosen = call("dump_entries", options, dump=path, selection=selection, warnings=warnings)
    if options.json:
        print("[", end="")
        for dispatch, entries in chosen:
            arguments = {e.argument.slot: e.argument for e in entries}
            row = dispatch_json(dispatch, [arguments[slot] for slot in sorted(arguments)])
            print(",\n" if found else "\n", json.dumps(row), sep="", end="")
            found += 1
        print("\n]" if found else "]")
        return 0
    for _, entries in chosen:
        for entry in entries:
            if not found:
                print(HEADING)
            found += 1
            print(entry_line(entry))
    if not found:
        raise _nothing(selection, path)
    return 0


def _show(options: argparse.Namespace, path: Path, selection: EntryFilter, warnings: list[str]) -> int:
    chosen = call("dump_entries", options, dump=path, selection=selection, warnings=warnings)
    every, found = (entry for _, entries in chosen for entry in entries), 0
    if options.json:
        rows = [entry_json(entry) for entry in every]
        found = len(rows)
        print(json.dumps(rows, indent=2))
    else:
        for entry in every:
            found += 1
            print("\n".join(entry_lines(entry)))
    if not found:
        raise _nothing(selection, path)
    return 0


def _export(options: argparse.Namespace, path: Path, selection: EntryFilter, warnings: list[str]) -> int:
    folder = options.output or path.parent / options.format
    chosen = {"dump": path, "output": folder, "selection": selection, "form": options.format}
    written, empty = call("export_dump", options, **chosen, warnings=warnings)
    if not written and not empty:
        raise _nothing(selection, path)
    without = f", {empty} without recorded content left out" if empty else ""
    show(
        options,
        lambda: {"files": [str(p) for p in written], "without_content": empty},
        lambda: [f"{len(written)} files{without}", str(folder)],
    )
    return 0


def _diff(options: argparse.Namespace, path: Path, selection: EntryFilter, warnings: list[str]) -> int:
    comparison = call("diff_dumps", options, dump=path, selection=selection, warnings=warnings)
    show(options, comparison.as_json, comparison.lines)
    return 0 if comparison.equal else 1


# --- one entry of a dump, in full: a tensor with statistics, a scalar with value and bits


def _statistics(entry: Entry) -> Statistics | None:
    a = entry.argument
    if entry.payload is None or not isinstance(a, TensorArg):
        return None
    return statistics(payload_array(entry.payload, a.dtype, a.shape))


def entry_json(entry: Entry) -> dict[str, Any]:
    """The entry as plain JSON data."""
    d = entry.dispatch
    found = _statistics(entry)
    row: dict[str, Any] | None = None
    if found is not None:
        row = asdict(found)
        for key in ("minimum", "maximum", "mean"):
            row[key] = None if row[key] is None else plain_number(row[key])
        for key in ("first", "last"):
            row[key] = [v if isinstance(v, str) else plain_number(v) for v in row[key]]
    return {
        "index": entry.index,
        "dispatch_id": d.dispatch_id,
        "task_id": f"0x{d.task_id:016x}",
        "func_ids": list(d.func_ids),
        "kernel": d.kernel,
        "stage": entry.stage.value,
        **argument_json(entry.argument),
        "statistics": row,
    }


def entry_lines(entry: Entry) -> Iterator[str]:
    """The entry as aligned lines."""
    d, a = entry.dispatch, entry.argument
    func = ",".join(map(str, d.func_ids)) or "not recorded"
    inferred = " (inferred)" if "func_ids" in d.inferred else ""
    yield (
        f"dispatch {d.dispatch_id} · task 0x{d.task_id:016x} · {d.kernel or 'kernel not known'} · "
        f"func {func}{inferred} · slot {a.slot} · {entry.stage.value}"
    )
    if isinstance(a, ScalarArg):
        yield f"  scalar    {a.dtype.short}  {scalar_text(a)}"
    elif isinstance(a, TensorArg):
        role = "role not recorded" if a.role is None else a.role.value
        where = f" start {a.start_offset}" if a.start_offset else ""
        yield f"  tensor    {a.dtype.short} {list(a.shape)} strides {list(a.strides)}{where} · {role}"
        found = _statistics(entry)
        yield from ["  content   not recorded"] if found is None else _statistics_lines(found, entry, a)
    else:
        pointer = "not recorded" if a.pointer is None else f"0x{a.pointer:x}"
        yield f"  context   {pointer}; a replay builds its own"
    yield ""


def _statistics_lines(found: Statistics, entry: Entry, tensor: TensorArg) -> Iterator[str]:
    digits = DIGITS.get(tensor.dtype.name, 6)
    if entry.payload is not None and entry.payload.truncated:
        yield f"  truncated {found.count:,} of {tensor.numel:,} elements were recorded"
    if found.minimum is not None and found.maximum is not None and found.mean is not None:
        low, high = element_text(found.minimum, digits), element_text(found.maximum, digits)
        yield f"  range     min {low}  max {high}  mean {found.mean:.6g}"
    if found.nan or found.infinite:
        yield f"  not finite  {found.nan:,} NaN, {found.infinite:,} Inf of {found.count:,}"
    first = " ".join(element_text(v, digits) for v in found.first)
    last = " ".join(element_text(v, digits) for v in found.last)
    yield f"  first     {first}"
    if last:
        yield f"  last      {last}"
