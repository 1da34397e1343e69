"""The runs of `insight-trace run`, kept in an index: list, show, compare, prune.

insight-trace runs list
insight-trace runs show last
insight-trace runs compare last-1 last
insight-trace runs prune --keep 20
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

OPTIONS = """
what               list|show|compare|prune  what to do
runs RUN           text *  numbers of runs, or last, last-1, …
--index F          path    the index (default: outputs/runs.sqlite)
--scene TEXT       text    list: only scenes with this in their path
--case C           text    list: only this case
--keep N           int     prune: all but the last N
--older-than DAYS  float   prune: those that are older
--yes              on      prune: remove what these runs wrote, instead of saying which
--json             on      print one JSON object
"""


def run(options: argparse.Namespace) -> int:
    from insight_trace import runs
    from insight_trace.errors import RequestError

    store = runs(options.index)
    wanted = {"list": (0, 0), "show": (1, 1), "compare": (2, 2), "prune": (0, 0)}[options.what]
    if not wanted[0] <= len(options.runs) <= wanted[1]:
        raise RequestError(f"runs {options.what} takes {wanted[0]} runs", hint="insight-trace runs --help")
    return int(
        {"list": _list, "show": _show, "compare": _compare, "prune": _prune}[options.what](options, store)
    )


def _list(options: argparse.Namespace, store: Any) -> int:
    found = store.runs(options.scene, options.case)
    if options.json:
        fields = ("id", "made", "scene", "case", "chip", "cycles", "micros", "dispatches")
        data = [
            {**{f: getattr(r, f) for f in fields}, "directory": str(r.directory), "there": r.there}
            for r in found
        ]
        print(json.dumps({"runs": data}, indent=2))
        return 0
    print(f"{'run':>5}  {'when':<19}  {'time':>14}  {'dispatches':>10}  chip            case")
    for r in found:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(r.made))
        gone = "" if r.there else "  (its folder is gone)"
        where = f"{Path(r.scene).parent.name}/{Path(r.scene).name}"
        print(
            f"{r.id:>5}  {when}  {r.micros:>11,.2f} us  {r.dispatches:>10,}  {r.chip:<14}  {where} {r.case}{gone}"
        )
    return 0


def _show(options: argparse.Namespace, store: Any) -> int:
    found = store.run(options.runs[0])
    if options.json:
        print(json.dumps({"id": found.id, "directory": str(found.directory), **found.data}, indent=2))
        return 0
    data = found.data
    print(f"run        {found.id} · {found.scene} · {found.case} · {found.chip}")
    print(f"total      {found.micros:,.2f} us · {found.cycles:,} cycles · {found.dispatches:,} dispatches")
    total = max(found.cycles, 1)
    print("path       " + " · ".join(f"{what} {cycles / total:.1%}" for what, cycles in data["path"].items()))
    for row in data["kernels"]:
        print(
            f"           {row['name']:<16} {row['dispatches']:>9,} dispatches  {row['least']:>9,} {row['median']:>9,}"
            f" {row['most']:>9,} cycles  {row['path_share']:>6.1%} of the path  {row['bound']}"
        )
    print(f"folder     {found.directory}" + ("" if found.there else " (gone)"))
    return 0


def _compare(options: argparse.Namespace, store: Any) -> int:
    from insight_trace.run.run_store import compared

    one, other = (store.run(word) for word in options.runs)
    rows = compared(one.data, other.data)
    if options.json:
        data = [{"name": name, "before": before, "after": after} for name, before, after in rows]
        print(json.dumps({"before": one.id, "after": other.id, "cycles": data}, indent=2))
        return 0
    print(f"{'cycles':<20} {'run ' + str(one.id):>16} {'run ' + str(other.id):>16}")
    for name, before, after in rows:
        change = f"{after / before - 1:+.2%}" if before and after is not None else ""
        cells = ("-" if value is None else f"{value:,}" for value in (before, after))
        print(f"{name:<20} {next(cells):>16} {next(cells):>16}  {change}")
    return 0


def _prune(options: argparse.Namespace, store: Any) -> int:
    from insight_trace.errors import RequestError

    if options.keep is None and options.older_than is None:
        raise RequestError("prune what?", hint="--keep N, --older-than DAYS or both")
    if (options.keep or 0) < 0 or (options.older_than or 0) < 0:
        raise RequestError("prune takes numbers from 0 on")
    found = store.runs()
    chosen = found[options.keep :] if options.keep is not None else found
    if options.older_than is not None:
        limit = time.time() - options.older_than * 86400
        chosen = [r for r in chosen if r.made < limit]
    stayed = store.forget(chosen) if options.yes else {}
    if options.json:
        data = {"pruned": [r.id for r in chosen], "done": options.yes}
        print(
            json.dumps({**data, "stayed": {str(i): count for i, count in stayed.items() if count}}, indent=2)
        )
        return 0
    for r in chosen:
        more = f"; {stayed[r.id]} files that it did not write stay" if stayed.get(r.id) else ""
        print(f"{'removed' if options.yes else 'would remove'} run {r.id}: {r.directory}{more}")
    if chosen and not options.yes:
        print("--yes removes them")
    return 0
