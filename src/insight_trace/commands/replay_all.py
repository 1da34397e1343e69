"""Replay every dispatch of a dump, or a sample of them, each verified: no traces, one table.

insight-trace replay-all SCENE --dump-dir D
insight-trace replay-all SCENE --dump-dir D --func-id 1 --sample 20 --cluster tcp://HOST:8786

`replay --all` is the same. Results are kept: what has not changed since is not run again.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from insight_trace.options import RunOptions, add_options, options_of

if TYPE_CHECKING:
    from insight_trace.run.bulk_replay import BulkRequest, ReplayJob, ReplayRow

_JOURNAL = "replays.jsonl"


RUNS_KERNELS = True


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scene", type=Path, metavar="SCENE", help="the scene module, or a PyPTO build directory"
    )
    parser.add_argument("--case", metavar="C", help="case of the scene (default: the dump's)")
    parser.add_argument("--func-id", metavar="A[,B,C]", help="only this kernel, or this mix")
    parser.add_argument("--dump-dir", "--args-dump", type=Path, metavar="D", dest="dump_dir", help="the dump")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="N of them, spread over kernels and forms of arguments"
    )
    add_options(
        parser, RunOptions, "soc_version", "target", "platform", "preset", "check", "seconds", "pto_isa_root"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit 1 also for what could not be verified, and for findings"
    )
    _add_workers(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="where (default: outputs/replay_all_<scene>_<case>)"
    )
    parser.add_argument("--force", action="store_true", help="write into a folder that holds other things")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    options.dispatch_id = options.task_id = None
    return run_all(options)


def _add_workers(to: argparse._ActionsContainer) -> None:
    to.add_argument("--jobs", type=int, metavar="N", help="processes (default: one for each core)")
    to.add_argument("--cluster", metavar="ADDRESS", help="on the workers of a Dask cluster")


def prepare_all(parser: argparse.ArgumentParser) -> None:
    many = parser.add_argument_group("many dispatches of a dump: no traces, one table")
    many.add_argument("--all", action="store_true", help="every dispatch, or every one of --func-id")
    many.add_argument(
        "--sample", type=int, metavar="N", help="N of them, spread over kernels and forms of arguments"
    )
    _add_workers(many)


def run_all(options: argparse.Namespace) -> int:
    from insight_trace.commands.replay import numbers
    from insight_trace.commands.run import Progress
    from insight_trace.errors import RequestError
    from insight_trace.run.bulk_replay import FAILED, BulkRequest, ReplayRow, is_known, plan, replay_all
    from insight_trace.run.bulk_summary import text_lines, totals, write_summary
    from insight_trace.run.job_journal import JobJournal

    if options.dump_dir is None:
        raise RequestError("--all and --sample replay dispatches of a dump", hint="give --dump-dir D")
    if options.dispatch_id is not None or options.task_id is not None:
        raise RequestError(
            "--all and --sample choose their dispatches", hint="leave --dispatch-id and --task-id out"
        )
    if options.sample is not None and options.sample < 1:
        raise RequestError(f"--sample {options.sample}: at least one dispatch is replayed")
    request = BulkRequest(
        options.scene, options.dump_dir, options.case, numbers(options.func_id, "--func-id"), options.sample,
        options_of(options, RunOptions),
    )  # fmt: skip
    say = Progress()
    say.step("read the dump")
    planned = plan(request)
    scene, case, jobs = planned.scene, planned.case, planned.jobs
    folder = _folder(options, request, case.name if case else "nocase")
    with JobJournal(folder / _JOURNAL, ReplayRow) as journal:
        known = sum(is_known(job, journal) for job in jobs)
        rows = replay_all(jobs, _executor(options), journal, say.replayed)
    about = {"scene": str(scene.path), "case": case.name if case else None, "dump": str(options.dump_dir)}
    said = write_summary(rows, folder, about)
    say.end()
    wrong = sum(row.verdict in ("mismatch", FAILED) for row in rows)
    verified = sum(row.verdict == "verified" for row in rows)
    errors = sum(row.errors for row in rows)
    lost = planned.dump.lost
    if options.json:
        counts = {"dispatches": len(rows), "verified": verified, "wrong": wrong, "records_lost": lost}
        print(json.dumps({**about, "directory": str(folder), "kernels": totals(rows), **counts}, indent=2))
    else:
        more = f" · {known:,} known before" if known else ""
        open_ = len(rows) - verified - wrong
        more = (f" · {open_:,} could not be verified" if open_ else "") + more
        print(f"replayed   {len(rows):,} dispatches · {verified:,} verified · {wrong:,} wrong{more}")
        print("\n".join(text_lines(rows)))
        for text in (*planned.dump.warnings, *said):
            print(f"note       {text}")
        print(f"written    {folder}: summary.csv, summary.json")
    problem = _not_proven(len(rows), verified, lost)
    if problem and not options.json:
        print(f"insight-trace replay: {problem}", file=sys.stderr)
    unproven = options.strict and (errors or verified < len(rows))
    return 1 if wrong or problem or unproven else 0


def _not_proven(dispatches: int, verified: int, lost: int) -> str:
    """Why "nothing is wrong" cannot be said of the dump, though no dispatch was found wrong."""
    if not verified:
        return f"none of the {dispatches:,} dispatches could be verified: nothing is known to be right"
    if lost:
        return f"the dump lost {lost:,} records or payloads: what they held was not replayed"
    return ""


def _folder(options: argparse.Namespace, request: BulkRequest, case: str) -> Path:
    """Where the user asked for it; a folder of an earlier call is gone on with."""
    from insight_trace.errors import RequestError
    from insight_trace.storage import visible_names

    word = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{request.scene.stem}_{case}")
    folder: Path = options.output or Path("outputs") / f"replay_all_{word}"
    if folder.exists():
        held = visible_names(folder) if folder.is_dir() else {"a file"}
        others = held - {_JOURNAL, "summary.csv", "summary.json", "summary.parquet"}
        if others and not options.force:
            raise RequestError(f"{folder} holds other things", hint="name another place with -o")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _executor(
    options: argparse.Namespace,
) -> Callable[[Sequence[ReplayJob]], Iterable[tuple[int, ReplayRow]]]:
    from insight_trace.batch.local_pool import run_jobs, usual_jobs
    from insight_trace.run.bulk_replay import run_replay_job

    if options.cluster:
        from insight_trace.batch.cluster_jobs import ClusterJobs

        return ClusterJobs(options.cluster).replay
    processes = options.jobs if options.jobs is not None else usual_jobs()
    return lambda jobs: run_jobs(run_replay_job, jobs, processes)
