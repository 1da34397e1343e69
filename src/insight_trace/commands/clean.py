"""A trace without clutter: lanes in dataflow order, flags as arrows, and a table of every instruction.

Without -o the files are written beside the trace. With -o a run folder is made: the clean trace, the table,
a summary, and a copy of the raw result.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from insight_trace.commands import call, show

if TYPE_CHECKING:
    from insight_trace.trace.run_folder import CleanResult


OPTIONS = """
path                     path        an OPPROF_* or simulator folder, a .bin or a trace.json
-o --output-dir OUT      path        make a run folder there
--build-output-root DIR  path        make a run folder DIR/incore_<kernel>_<source>_<time>/, as PyPTO's skill has it \
(DIR: build_output)
--keep-scalar            on          keep the SCALAR lane
--raw-metrics            on          copy the instruction table unchanged
--copy-raw               either      with -o, whether the raw result is copied into raw_simulator/
--format                 chrome|perfetto =chrome  of the clean trace
--gzip                   on          compress the clean trace
--kernel NAME            text        with -o, the kernel's name
--note KEY=VALUE         text many   with -o, a line of the summary
--also LIST              text        also write the files of other simulators: npusim, perf-sim, pmu
--force                  on          replace what is there
--json                   on          print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    from insight_trace.trace.run_folder import clean_lines

    done: CleanResult = call(
        "clean", options, perfetto=options.format == "perfetto", notes=_notes(options.note)
    )
    notes = [f"note       {note}" for note in done.cleaned.notes]
    wrote = [f"wrote      {path}" for path in done.written]
    show(options, done.data, lambda: [*clean_lines(done.cleaned), *notes, *wrote])
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
