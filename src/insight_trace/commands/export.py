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

from insight_trace.errors import RequestError

_METRICS = ("PipeUtilization", "ResourceConflictRatio", "PMSampling", "Overhead")


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dump", nargs="?", type=Path, help="folder with core*.instr_log.dump and so on")
    parser.add_argument("-o", "--output", type=Path, help="folder in which OPPROF_* is created")
    parser.add_argument("--validate", type=Path, metavar="PATH", help="check PATH instead of exporting")
    parser.add_argument(
        "--soc-version",
        default="",
        metavar="V",
        help="chip of the logs (default for logs of A2 and A3: Ascend910B1)",
    )
    parser.add_argument(
        "--aic-metrics",
        default="PipeUtilization,ResourceConflictRatio",
        metavar="LIST",
        help=f"comma list of {', '.join(_METRICS)}, as msprof takes it (default: %(default)s)",
    )
    parser.add_argument("--core-id", metavar="0|31", help="only these cores, numbers joined by |")
    parser.add_argument("--source-root", type=Path, help="where source files are if not where they were")
    parser.add_argument("--no-source", action="store_true", help="leave source texts out of the bin")
    parser.add_argument("--split", choices=("core", "time"), help="several smaller results instead of one")
    parser.add_argument("--name", help="the 16 letters of the directory, for reproducible names")
    parser.add_argument("--timestamp", help="its time, YYYYmmddHHMMSS")
    parser.add_argument("--force", action="store_true", help="replace a directory of the same name")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


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
    from insight_trace import export
    from insight_trace.insight.camodel.read import ExportOptions

    metrics = _metrics(options.aic_metrics)
    done = export(
        options.dump,
        options.output,
        options=ExportOptions(
            soc_version=options.soc_version,
            flags="ResourceConflictRatio" in metrics,
            overhead="Overhead" in metrics,
            throughput="PMSampling" in metrics,
            core_ids=_core_ids(options.core_id),
            source_root=options.source_root,
        ),
        name=options.name,
        timestamp=options.timestamp,
        include_source=not options.no_source,
        split=options.split,
        force=options.force,
    )
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
