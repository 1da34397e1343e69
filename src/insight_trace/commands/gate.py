"""Cases against a committed baseline: exact cycles of every kernel, the golden's verdict, what the checker finds.

insight-trace gate BASELINE SCENE::CASE ... --update     makes a baseline, or adds cases to it
insight-trace gate BASELINE                              exit 1 if something is worse than its threshold allows
insight-trace gate BASELINE --update                     takes the figures of now
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from insight_trace.run.gate_figures import Subject

RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", type=Path, metavar="BASELINE", help="the committed JSON file")
    parser.add_argument(
        "subjects", nargs="*", metavar="SCENE::CASE", help="cases to look at (default: those of the baseline)"
    )
    parser.add_argument("--update", action="store_true", help="write the figures of now into the baseline")
    parser.add_argument(
        "--threshold", type=float, metavar="R",
        help="how much slower a kernel may be, relative (default: the baseline's, 0.01 in a new one)",
    )  # fmt: skip
    parser.add_argument("--chip", metavar="NAME", help="the chip of cases that are named here")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: one for each core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="time dispatches on a Dask cluster")
    parser.add_argument(
        "--junit", type=Path, metavar="F", help="also write a JUnit report (replaced if it is there)"
    )
    parser.add_argument(
        "--sarif", type=Path, metavar="F", help="also write SARIF 2.1.0 (replaced if it is there)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    import dataclasses

    from insight_trace.commands.run import Progress, executor
    from insight_trace.errors import RequestError
    from insight_trace.run.baseline import Baseline, differences, read_baseline, update_baseline
    from insight_trace.run.gate_figures import measure
    from insight_trace.run.gate_reports import junit, sarif_of
    from insight_trace.scratch import scratch_folder
    from insight_trace.storage import write_whole

    if options.threshold is not None and not 0 <= options.threshold < 10:
        raise RequestError(f"--threshold {options.threshold}: a share such as 0.02 for 2 % is wanted")
    new = options.update and not options.baseline.exists()
    baseline = Baseline(()) if new else read_baseline(options.baseline)
    threshold = options.threshold if options.threshold is not None else baseline.threshold
    root = options.baseline.resolve().parent
    subjects = _subjects(options, baseline.cases, root)
    if not subjects:
        raise RequestError("no case to look at", hint="insight-trace gate BASELINE SCENE::CASE --update")
    say, now, findings = Progress(), [], []
    execute = executor(options)
    for subject in subjects:
        with scratch_folder("gate") as folder:
            figures, found = measure(subject, root, execute, folder, say.step)
        now.append(figures)
        findings += found
    say.end()
    asked = {(case.name, case.chip) for case in now}
    before = [case for case in baseline.cases if not options.subjects or (case.name, case.chip) in asked]
    changes = differences(before, now, threshold)
    if options.junit is not None:
        write_whole(options.junit, junit(now, changes), force=True)
    if options.sarif is not None:
        write_whole(options.sarif, json.dumps(sarif_of(changes, findings, root), indent=1) + "\n", force=True)
    if options.update:
        update_baseline(
            options.baseline, baseline.cases, now, options.threshold, replace_all=not options.subjects
        )
    worse = sum(change.worse for change in changes)
    kernels = sum(len(case.kernels) for case in now)
    if options.json:
        data = {"cases": len(now), "kernels": kernels, "threshold": threshold, "worse": worse}
        print(json.dumps({**data, "changes": [dataclasses.asdict(change) for change in changes]}, indent=2))
    else:
        for change in changes:
            print(f"{'worse' if change.worse else 'other':<6} {change.case}: {change.text}")
        print(f"{len(now)} cases · {kernels} kernels · {worse} worse · {len(changes) - worse} other changes")
        if options.update:
            print(f"written {options.baseline}")
    return 1 if worse and not options.update else 0


def _subjects(options: argparse.Namespace, cases: tuple, root: Path) -> list[Subject]:  # type: ignore[type-arg]
    from insight_trace.run.gate_figures import Subject

    if not options.subjects:
        return [Subject(root / case.scene, case.case, case.chip) for case in cases]
    found = []
    for text in options.subjects:
        scene, _, case = text.rpartition("::") if "::" in text else (text, "", "")
        found.append(Subject(Path(scene), case or None, options.chip))
    return found
