"""Every dispatch of a dump, or a sample of them, replayed and verified: what to replay, and what came of it."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

from msgspec.structs import replace

from insight_trace import limits
from insight_trace.digest import job_digest
from insight_trace.dump.load import Dump, load_dump
from insight_trace.errors import InsightTraceError, JobError, RequestError
from insight_trace.executor import Executor, run_named
from insight_trace.executor.journal import Journal
from insight_trace.finding import Severity
from insight_trace.job import Job
from insight_trace.limits import cell
from insight_trace.model import Case, Scene
from insight_trace.options import RunOptions
from insight_trace.replay.jobs import recorded_job, target_of
from insight_trace.replay.pipeline import execute
from insight_trace.replay.selection import (
    RecordedDispatch,
    case_of_dump,
    require_complete,
    select_kernels,
)
from insight_trace.replay.verification import Status, verdict
from insight_trace.results import Result
from insight_trace.scene.static import load_scene
from insight_trace.simulate.embedded.toolchain import Toolchain
from insight_trace.storage import visible_names, whole_files

FAILED = "failed"


@dataclass(frozen=True)
class ReplayJob:
    """One dispatch to replay."""

    job: Job
    options: RunOptions
    dispatch_id: int
    task_id: int


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """What came of one; a line of the summary."""

    dispatch_id: int
    task_id: str
    kernel: str
    func_ids: str
    blocks: int
    verdict: str  # verified, mismatch, unverifiable or failed
    cycles: int
    micros: float
    max_error: float | None
    why: str  # of every other verdict than verified
    errors: int  # that the checker found; 0 without --check
    warnings: int


@dataclass(frozen=True)
class Plan:
    """What is known of the dump, and the places of the dispatches to replay."""

    scene: Scene
    case: Case | None
    dump: Dump
    chosen: Sequence[int]
    options: RunOptions

    def jobs(self) -> Iterator[tuple[str, ReplayJob]]:
        """The jobs in the order of the dump, each with its digest, made as they are asked for."""
        steps, options = self.dump.steps(), self.options
        toolchain = Toolchain.find(options.pto_isa_root, options.ascendc_root)
        for number in self.chosen:
            dispatch = self.dump.dispatches[number]
            kernels = select_kernels(self.scene, func_ids=tuple(dict.fromkeys(dispatch.func_ids)))
            target = target_of(options, self.case, kernels)
            recorded = RecordedDispatch(self.dump, dispatch, int(steps[number]))
            job = replace(
                recorded_job(recorded, self.scene, self.case, kernels, target), scene=None, case=None
            )
            name = job_digest(job, options, toolchain, dispatch.dispatch_id, dispatch.task_id)
            yield name, ReplayJob(job, options, dispatch.dispatch_id, dispatch.task_id)


def plan(
    scene_path: Path,
    dump_dir: Path,
    case_name: str | None,
    options: RunOptions,
    func_ids: Sequence[int] = (),
    sample: int | None = None,
) -> Plan:
    """What to replay: all dispatches, those of some kernels, or a sample, spread over kernels and forms of arguments."""
    require_complete(dump_dir)
    scene = load_scene(scene_path)
    dump = load_dump(dump_dir, scene)
    case = case_of_dump(dump, scene, case_name)
    chosen = dump.of_kernels(func_ids)
    if not chosen:
        raise RequestError(
            f"no dispatch of {dump_dir} is of these kernels",
            hint="`insight-trace dump list DIR` shows them",
        )
    if sample is not None:
        chosen = [chosen[i] for i in sampled(dump.forms(chosen), sample)]
    # of the host's cores the others run other dispatches
    return Plan(scene, case, dump, chosen, replace(options, simulator="embedded", host_cores=1))


def sampled(forms: Sequence[Hashable], count: int) -> list[int]:
    """The places of as many of them, each form of arguments in its turn; of a form evenly spread ones."""
    places: dict[Hashable, list[int]] = {}
    for place, form in enumerate(forms):
        places.setdefault(form, []).append(place)
    groups = list(places.values())
    takes = [0] * len(groups)
    left = min(count, len(forms))
    while left:
        for number, group in enumerate(groups):
            if left and takes[number] < len(group):
                takes[number] += 1
                left -= 1
    found = []
    for group, take in zip(groups, takes, strict=True):
        found += [group[i * len(group) // take] for i in range(take)]
    return sorted(found)


def run_replay_job(job: ReplayJob) -> ReplayRow:
    """Simulates the dispatch and compares its outputs with what was recorded. What goes wrong is its verdict."""
    try:
        done = execute(job.job, job.options, record=False)
    except InsightTraceError as error:
        return _row(job, FAILED, why=str(error).splitlines()[0])
    run, checks = done.simulation, done.checks
    assert run is not None
    if run.failure is not None:
        return _row(job, FAILED, why=str(run.failure))
    worst = max((c.max_error for c in checks if c.max_error is not None), default=None)
    why = "; ".join(c.text for c in checks if c.status is not Status.VERIFIED)
    severities = [finding.severity for finding in run.findings]
    return _row(
        job, str(verdict(checks)), run.cycles, run.cycles / run.mhz, worst, why if checks else "it has no outputs",
        severities.count(Severity.ERROR), severities.count(Severity.WARNING),
    )  # fmt: skip


def _row(
    job: ReplayJob, verdict: str, cycles: int = 0, micros: float = 0.0, worst: float | None = None, why: str = "",
    errors: int = 0, warnings: int = 0,
) -> ReplayRow:  # fmt: skip
    return ReplayRow(
        job.dispatch_id, f"0x{job.task_id:016x}", "+".join(k.name for k in job.job.kernels),
        ",".join(str(k.func_id) for k in job.job.kernels), job.job.arguments.block_count, verdict, cycles,
        round(micros, 4),
        worst, why, errors, warnings,
    )  # fmt: skip


def replay_all(
    planned: Plan,
    executor: Executor,
    journal: Journal[ReplayRow],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[ReplayRow]:
    """A row for each dispatch, in their order; what the journal has is not run again, unless it failed."""
    rows: dict[int, ReplayRow] = {}
    jobs: dict[int, ReplayJob] = {}

    def named() -> Iterator[tuple[str, ReplayJob]]:
        for place, (name, job) in enumerate(planned.jobs()):
            jobs[place] = job
            yield name, job

    for place, row in run_named(executor, run_replay_job, named(), ReplayRow, journal, is_answer):
        job = jobs.pop(place)
        rows[place] = (
            _row(job, FAILED, why=str(row).splitlines()[0]) if isinstance(row, InsightTraceError) else row
        )
        progress(len(rows), len(planned.chosen))
    return [rows[place] for place in range(len(rows))]


def is_answer(row: ReplayRow) -> bool:
    """What failed may have had a full disk, and is tried again."""
    return row.verdict != FAILED


# --- the table of many replays: text, CSV, JSON, and Parquet where something is installed that writes it


JOURNAL = "replays.jsonl"
_WRITTEN = {JOURNAL, "summary.csv", "summary.json", "summary.parquet"}
VERDICTS = ("verified", "mismatch", "unverifiable", FAILED)


def open_folder(wanted: Path | None, name: str, *, force: bool) -> Path:
    """Where the user asked for it; a folder of an earlier call is gone on with."""
    folder = wanted or Path("outputs") / f"replay_all_{re.sub(r'[^A-Za-z0-9.-]+', '-', name)}"
    if folder.exists():
        held = visible_names(folder) if folder.is_dir() else {"a file"}
        if held - _WRITTEN and not force:
            raise RequestError(f"{folder} holds other things", hint="name another place with -o")
        if JOURNAL not in held and (foreign := held & _WRITTEN):
            raise RequestError(
                f"{folder / min(foreign)} is not of this command, and is not replaced even with --force",
                hint="name another place with -o",
            )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def totals(rows: Sequence[ReplayRow]) -> list[dict[str, Any]]:
    """One entry for each kernel."""
    kernels: dict[str, list[ReplayRow]] = {}
    for row in rows:
        kernels.setdefault(row.kernel, []).append(row)
    found = []
    for name, mine in kernels.items():
        cycles = [row.cycles for row in mine if row.verdict != FAILED] or [0]
        errors = [row.max_error for row in mine if row.max_error is not None]
        found.append(
            {
                "kernel": name,
                "dispatches": len(mine),
                **{verdict: sum(row.verdict == verdict for row in mine) for verdict in VERDICTS},
                "least": min(cycles),
                "median": round(median(cycles)),
                "most": max(cycles),
                "max_error": max(errors, default=None),
                "errors": sum(row.errors for row in mine),
                "warnings": sum(row.warnings for row in mine),
            }
        )
    return found


def write_summary(rows: Sequence[ReplayRow], folder: Path, about: dict[str, Any]) -> list[str]:
    """Writes summary.csv, summary.json and, where it can be, summary.parquet; says what was left out and why."""
    said = []
    with whole_files(folder, force=True, last="summary.json") as beside:
        (beside / "summary.csv").write_text(_csv(rows), encoding="utf-8")
        data = {**about, "kernels": totals(rows), "dispatches": [asdict(row) for row in rows]}
        (beside / "summary.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        if not _parquet(beside / "summary.csv", beside / "summary.parquet"):
            said.append("no summary.parquet: neither duckdb nor pyarrow is installed (pip install duckdb)")
    return said


def _csv(rows: Sequence[ReplayRow]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [field.name for field in fields(ReplayRow)]
    writer.writerow(names)
    for row in rows:
        writer.writerow(["" if (value := getattr(row, name)) is None else cell(value) for name in names])
    return text.getvalue()


def _parquet(source: Path, target: Path) -> bool:
    if importlib.util.find_spec("duckdb"):
        duckdb = importlib.import_module("duckdb")
        connection = duckdb.connect()
        text = ["task_id", "kernel", "func_ids", "verdict", "why"]
        types = "{" + ", ".join(f"'{name}': 'VARCHAR'" for name in text) + "}"
        paths = [str(path).replace("'", "''") for path in (source, target)]
        try:
            connection.execute(
                f"copy (select * from read_csv('{paths[0]}', header=true, types={types})) to '{paths[1]}' (format parquet)"
            )
        except duckdb.Error as error:
            raise JobError(
                f"{target.name} could not be written: {limits.cut(str(error))}",
                hint="look at the disk: room, permissions, health; results so far are kept",
            ) from None
        finally:
            connection.close()
        return True
    if importlib.util.find_spec("pyarrow"):
        table = importlib.import_module("pyarrow.csv").read_csv(source)
        importlib.import_module("pyarrow.parquet").write_table(table, target)
        return True
    return False


def text_lines(rows: Sequence[ReplayRow]) -> list[str]:
    """As the command prints it: a line for each kernel, and those that are not verified."""
    table = totals(rows)
    width = max([6, *(len(entry["kernel"]) for entry in table)])
    heads = " ".join(f"{verdict:>12}" for verdict in VERDICTS)
    lines = [
        f"           {'kernel':<{width}} {'dispatches':>10} {heads} {'cycles: least':>14} {'median':>9} {'most':>9}"
    ]
    for entry in table:
        counts = " ".join(f"{entry[verdict] or '':>12}" for verdict in VERDICTS)
        lines.append(
            f"           {entry['kernel']:<{width}} {entry['dispatches']:>10,} {counts} {entry['least']:>14,}"
            f" {entry['median']:>9,} {entry['most']:>9,}"
        )
    wrong = [row for row in rows if row.verdict in ("mismatch", FAILED)]
    lines += [f"{row.verdict:<10} dispatch {row.dispatch_id} {row.kernel}: {row.why}" for row in wrong[:10]]
    if len(wrong) > 10:
        lines.append(f"           and {len(wrong) - 10} more: summary.csv")
    return lines


@dataclass(frozen=True, eq=False, repr=False)
class ReplayAllResult(Result):
    """Every dispatch that was replayed, and what its verdict is."""

    rows: tuple[ReplayRow, ...]
    directory: Path
    about: Mapping[str, Any]  # scene, case and dump
    known: int = 0  # of them, replayed by an earlier call
    lost: int = 0  # records and payloads that the dump does not have though they were made
    notes: tuple[str, ...] = ()

    @property
    def verified(self) -> int:
        return sum(row.verdict == "verified" for row in self.rows)

    @property
    def wrong(self) -> int:
        return sum(row.verdict in ("mismatch", FAILED) for row in self.rows)

    @property
    def errors(self) -> int:
        """What the checker found."""
        return sum(row.errors for row in self.rows)

    @property
    def unproven(self) -> str:
        """Why "nothing is wrong" cannot be said of the dump, though no dispatch was found wrong."""
        if not self.verified:
            return (
                f"none of the {len(self.rows):,} dispatches could be verified: nothing is known to be right"
            )
        if self.lost:
            return f"the dump lost {self.lost:,} records or payloads: what they held was not replayed"
        return ""

    def summary(self) -> str:
        unverified = len(self.rows) - self.verified - self.wrong
        more = f" · {unverified:,} could not be verified" if unverified else ""
        more += f" · {self.known:,} known before" if self.known else ""
        return f"{len(self.rows):,} dispatches · {self.verified:,} verified · {self.wrong:,} wrong{more}"

    def columns(self) -> Mapping[str, Any]:
        """One row per dispatch."""
        return {field.name: [getattr(row, field.name) for row in self.rows] for field in fields(ReplayRow)}

    def data(self) -> dict[str, Any]:
        counts = {"dispatches": len(self.rows), "verified": self.verified, "wrong": self.wrong}
        kernels = {"directory": str(self.directory), "kernels": totals(self.rows)}
        return {**self.about, **kernels, **counts, "records_lost": self.lost}
