"""Turn core model dump logs into the directory that MindStudio Insight opens, without CANN.

insight-trace export DUMP -o OUT          writes OUT/OPPROF_<time>_<letters>/simulator/
insight-trace export --validate PATH      checks any such directory, bin or trace.json; exit 0 only if
                                          no rule is broken
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.commands import call
from insight_trace.errors import RequestError

if TYPE_CHECKING:
    from insight_trace.api.traces import Exported

_METRICS = ("PipeUtilization", "ResourceConflictRatio", "PMSampling", "Overhead")


OPTIONS = """
dump                 path ?     folder with core*.instr_log.dump and so on
-o --output          path       folder in which OPPROF_* is created
--validate PATH      path       check PATH instead of exporting
--soc-version V      text =     chip of the logs (default for logs of A2 and A3: Ascend910B1)
--aic-metrics LIST   text =PipeUtilization,ResourceConflictRatio  comma list of PipeUtilization, ResourceConflictRatio, \
PMSampling, Overhead, as msprof takes it (default: %(default)s)
--core-id 0|31       text       only these cores, numbers joined by |
--source-root        path       where source files are if not where they were
--no-source          on         leave source texts out of the bin
--split              core|time  several smaller results instead of one
--name               text       the 16 letters of the directory, for reproducible names
--timestamp          text       its time, YYYYmmddHHMMSS
--force              on         replace a directory of the same name
--json               on         print the result as JSON
"""


def run(options: argparse.Namespace) -> int:
    if options.validate is not None:
        if options.dump is not None or options.output is not None:
            raise RequestError(
                "--validate takes no DUMP and no -o", hint="insight-trace export --validate PATH"
            )
        return _validate(options.validate, as_json=options.json)
    if options.dump is None or options.output is None:
        raise RequestError("DUMP and -o OUT are needed", hint="insight-trace export DUMP -o OUT")
    return _export(options)


def _validate(path: Path, *, as_json: bool) -> int:
    from insight_trace import validate
    from insight_trace.insight import RULES

    broken = validate(path)
    if as_json:
        found = [{"rule": each.rule, "where": each.where, "what": each.what} for each in broken]
        print(json.dumps({"path": str(path), "rules": len(RULES), "broken": found}))
        return 1 if broken else 0
    if not broken:
        print(f"valid      {path}\n           all {len(RULES)} rules of MindStudio Insight hold")
        return 0
    for each in broken:
        print(f"broken     {each.rule}: {each.what}\n           {each.where}\n           {RULES[each.rule]}")
    print(f"invalid    {path} breaks {len({each.rule for each in broken})} of {len(RULES)} rules")
    return 1


def _metrics(text: str) -> set[str]:
    known = {name.casefold(): name for name in _METRICS}
    chosen = set()
    for word in text.split(","):
        if word.strip().casefold() not in known:
            raise RequestError(
                f"there is no metric {word.strip()!r}", hint=f"choose from {', '.join(_METRICS)}"
            )
        chosen.add(known[word.strip().casefold()])
    return chosen


def _core_ids(text: str | None) -> frozenset[int]:
    try:
        return frozenset() if text is None else frozenset(int(word) for word in text.split("|"))
    except ValueError:
        raise RequestError(
            f"--core-id {text!r} is not numbers joined by |", hint="--core-id '0|31'"
        ) from None


def _export(options: argparse.Namespace) -> int:
    from insight_trace.insight.camodel.read import ExportOptions

    metrics = _metrics(options.aic_metrics)
    how = ExportOptions(
        soc_version=options.soc_version,
        flags="ResourceConflictRatio" in metrics,
        overhead="Overhead" in metrics,
        throughput="PMSampling" in metrics,
        core_ids=_core_ids(options.core_id),
        source_root=options.source_root,
    )
    done: Exported = call("export", options, options=how, include_source=not options.no_source)
    if options.json:
        print(json.dumps(done.data()))
        return 0
    trace = done.trace
    for text in done.warnings:
        print(f"warning    {text}", file=sys.stderr)
    cores = ", ".join(trace.instructions.cores)
    chip = trace.soc_version if options.soc_version else f"taken as {trace.soc_version} (--soc-version)"
    print(f"exported   {len(trace.instructions):,} instructions of {cores} at {trace.mhz:g} MHz, {chip}")
    print(
        "insight    import visualize_data.bin of this folder: the folder by itself has no Source and no Details"
    )
    print(f"open       {done.directory}/")
    return 0
