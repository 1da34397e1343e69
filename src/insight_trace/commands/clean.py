"""A trace without clutter: lanes in dataflow order, flags as arrows, and a table of every instruction.

Without -o the files are written beside the trace. With -o a run folder is made: the clean trace, the table,
a summary, and a copy of the raw result.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from insight_trace.commands.replay_text import add_also, also_of


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, help="an OPPROF_* or simulator folder, a .bin or a trace.json")
    parser.add_argument("-o", "--output-dir", type=Path, metavar="OUT", help="make a run folder there")
    parser.add_argument(
        "--build-output-root",
        type=Path,
        metavar="DIR",
        help="make a run folder DIR/incore_<kernel>_<source>_<time>/, as PyPTO's skill has it (DIR: build_output)",
    )
    parser.add_argument("--keep-scalar", action="store_true", help="keep the SCALAR lane")
    parser.add_argument("--raw-metrics", action="store_true", help="copy the instruction table unchanged")
    parser.add_argument(
        "--copy-raw",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="with -o, whether the raw result is copied into raw_simulator/",
    )
    parser.add_argument(
        "--format", choices=("chrome", "perfetto"), default="chrome", help="of the clean trace"
    )
    parser.add_argument("--gzip", action="store_true", help="compress the clean trace")
    parser.add_argument("--kernel", metavar="NAME", help="with -o, the kernel's name")
    parser.add_argument(
        "--note", action="append", default=[], metavar="KEY=VALUE", help="with -o, a line of the summary"
    )
    add_also(parser)
    parser.add_argument("--force", action="store_true", help="replace what is there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from insight_trace.commands import CollectorPaused

    with CollectorPaused():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    import json

    from insight_trace.insight import open_trace
    from insight_trace.trace.clean import clean
    from insight_trace.trace.other_simulators import write_also
    from insight_trace.trace.run_folder import (
        CleanForm,
        beside,
        clean_lines,
        kernel_name,
        presentable_name,
        raw_metrics,
        run_folder,
        workspace_of,
    )

    notes = _notes(options.note)
    also = also_of(options)
    trace = open_trace(options.path)
    cleaned = clean(trace, keep_scalar=options.keep_scalar)
    form = CleanForm(perfetto=options.format == "perfetto", gzip=options.gzip)
    raw = raw_metrics(trace.path) if options.raw_metrics else None
    known = workspace_of(trace)
    kernel = _safe(options.kernel or known.get("kernel") or kernel_name(trace))
    if options.build_output_root is not None and options.output_dir is None:
        name = presentable_name(kernel, known.get("source") or kernel_name(trace))
        options.output_dir = options.build_output_root / name
    if options.output_dir is None:
        path = trace.path or options.path
        written = list(
            beside(cleaned, path if path.is_dir() else path.parent, form, raw=raw, force=options.force)
        )
    else:
        written = run_folder(
            cleaned,
            options.output_dir,
            form,
            kernel=kernel,
            provenance=notes,
            raw=raw,
            copy_raw=options.copy_raw,
            force=options.force,
        )
    if also:
        path = trace.path or options.path
        place = options.output_dir or (path if path.is_dir() else path.parent)
        written += write_also(trace, place, kernel, also, force=options.force)
    if options.json:
        arrows = cleaned.arrows
        facts = {
            "kept": len(cleaned.rows),
            "lanes": len(cleaned.lanes),
            "dropped": cleaned.dropped,
            "arrows": len(arrows.producer),
            "arrows_hidden": arrows.hidden,
            "arrows_unanchored": arrows.unanchored,
            "flags_unpaired": arrows.unpaired,
            "notes": list(cleaned.notes),
            "written": [str(path) for path in written],
        }
        print(json.dumps(facts, indent=2))
        return 0
    print("\n".join(clean_lines(cleaned)))
    for note in cleaned.notes:
        print(f"note       {note}")
    for path in written:
        print(f"wrote      {path}")
    return 0


def _notes(pairs: list[str]) -> dict[str, str]:
    from insight_trace.errors import RequestError

    notes = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise RequestError(f"--note {pair!r} is not KEY=VALUE")
        notes[key.strip()] = " ".join(value.split())
    return notes


def _safe(name: str) -> str:
    """A kernel's name becomes part of a file name; what cannot stand in one becomes an underscore."""
    import re

    return re.sub(r"[^\w.+-]", "_", name).lstrip(".")[:120] or "trace"
