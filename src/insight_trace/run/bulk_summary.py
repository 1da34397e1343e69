"""The table of many replays: text, CSV, JSON, and Parquet where something is installed that writes it."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

from insight_trace import limits
from insight_trace.errors import JobError, RequestError
from insight_trace.limits import cell
from insight_trace.results import Result
from insight_trace.run.bulk_replay import FAILED, ReplayRow
from insight_trace.storage import visible_names, whole_files

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
