"""Lets every call of every command that changes a file fail in turn, and looks at what is left.

    python tools/fault_sweep.py [--command NAME]... [--kinds turn|all] [--points N] [--jobs N] [--json FILE]

At a call: no room (ENOSPC), a broken device (EIO), no permission (EACCES) or SIGKILL. `turn` (the default) gives every
call one of the four, `all` each of them. Prints a table; exit code 1 if anything was broken, alive, or not told.
`--jobs` takes as many commands at once, each in folders of its own.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
_SLOW_SECONDS = 20.0  # shown, because something large was made again
COLUMNS = ("traceback", "exit code", "silent", "broken", "alive", "next run")
Rows = list[dict[str, object]]


def tried(
    name: str, shim: Path, folder: Path, kinds: str, points: int
) -> tuple[dict[str, object], Rows, float]:
    """What the runs without fault and those with one gave, and how long that took."""
    from tests.trust.fault_commands import swept

    begin = time.monotonic()
    first, rows = swept(name, shim, folder, kinds, points)
    return first, rows, time.monotonic() - begin


def main() -> int:
    from tests.trust.fault_commands import ALL, COMMANDS, TURN, compiled_shim, wrong

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--command", action="append", choices=tuple(COMMANDS), help="only this one (repeatable)"
    )
    parser.add_argument("--kinds", choices=(TURN, ALL), default=TURN)
    parser.add_argument("--points", type=int, default=0, help="so many calls of each, instead of every one")
    parser.add_argument("--jobs", type=int, default=1, help="commands at once")
    parser.add_argument("--json", type=Path, help="what went wrong, and the counts, go here too")
    options = parser.parse_args()
    results: dict[str, dict[str, object]] = {}
    bad = 0
    print(
        f"{'command':28}{'calls':>7}{'faults':>8}{'again':>7}" + "".join(f"{c:>11}" for c in COLUMNS),
        flush=True,
    )
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="insight-trace-faults-"))
        shim = compiled_shim(Path(scratch))
        if shim is None:
            sys.exit("gcc is needed")
        names = options.command or tuple(COMMANDS)
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(options.jobs))
        waiting = {
            pool.submit(tried, name, shim, Path(scratch) / str(number), options.kinds, options.points): name
            for number, name in enumerate(names)
        }
        for done in concurrent.futures.as_completed(waiting):
            name, (first, rows, seconds) = waiting[done], done.result()
            found = collections.Counter(wrong(row) for row in rows)
            reached = sum(bool(row["reached"]) for row in rows)  # two runs may differ by a call
            again = sum(row["again"] is not None for row in rows)
            print(
                f"{name:28}{first['calls']:>7}{reached:>8}{again:>7}" + "".join(f"{found[c]:>11}" for c in COLUMNS)
                + f"  {seconds:.0f} s",
                flush=True,
            )  # fmt: skip
            if first["code"]:
                print(f"    without a fault: {first}")
            for row in rows:
                if wrong(row):
                    print(f"    {wrong(row)}: {json.dumps(row)}", flush=True)
            slowest = max(rows, key=lambda row: float(str(row["seconds"])), default=None)
            if slowest and float(str(slowest["seconds"])) > _SLOW_SECONDS:
                print(f"    slow: {json.dumps(slowest)}", flush=True)
            bad += len(rows) - found[""] + bool(first["code"])
            results[name] = {"calls": first["calls"], "faults": reached, "again": again, **found}
            if options.json:
                options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
