"""A trace without clutter: lanes in dataflow order, flags as arrows, and a table of every instruction.

Without -o the files are written beside the trace. With -o a run folder is made: the clean trace, the table,
a summary, and a copy of the raw result.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from insight_trace.commands.replay_text import add_also


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
    from insight_trace import clean
    from insight_trace.trace.run_folder import clean_lines

    done = clean(
        options.path,
        keep_scalar=options.keep_scalar,
        perfetto=options.format == "perfetto",
        gzip=options.gzip,
        output_dir=options.output_dir,
        kernel=options.kernel,
        notes=_notes(options.note),
        raw_metrics=options.raw_metrics,
        copy_raw=options.copy_raw,
        also=options.also,
        build_output_root=options.build_output_root,
        force=options.force,
    )
    if options.json:
        print(json.dumps(done.data(), indent=2))
        return 0
    print("\n".join(clean_lines(done.cleaned)))
    for note in done.cleaned.notes:
        print(f"note       {note}")
    for path in done.written:
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
