"""The books of a profile run: manifest_export.csv, summary.txt, README.txt and the pointer to the latest run.

Every file is replaced as a whole, after each kernel, so that a killed run leaves true books.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from insight_trace.errors import InputError
from insight_trace.limits import KIB, RECORD_BYTES, cell
from insight_trace.profile.kernel_runner import EXPORTED
from insight_trace.reading import is_folder, open_regular, read_regular
from insight_trace.storage import write_whole

MANIFEST = "manifest_export.csv"
SUMMARY = "summary.txt"
ABOUT = "README.txt"
POINTER = "latest_all_funcs_kernel_insight_export_root.txt"

# The columns that readers of the existing tool know, in its order; ours come after them.
COLUMNS = (
    "func", "status", "source_cpp", "symbol", "demangled", "app", "kernel_lib", "case_dir", "build_dir", "collect_dir",
    "export_dir", "export_src", "artifact_count", "trace_json", "visualize_data_bin", "core_trace_count",
    "instr_csv_count", "duration_sec", "message",
)  # fmt: skip
OUR_COLUMNS = (
    "kind",
    "arch",
    "entry",
    "cycles",
    "bound_by",
    "pipe_cycles",
    "warnings",
    "fingerprint",
    "workload",  # run: a dispatch of the build's own run; synthetic: made-up arguments
    "workload_note",
    "verified",
    "python",  # the lines of the user's program that take most of its cycles
)


WORKLOADS = ("run", "synthetic")


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One kernel of the manifest; a column that does not apply is empty."""

    func: str
    status: str
    columns: Mapping[str, str] = field(default_factory=dict)

    def cell(self, column: str) -> str:
        text = {"func": self.func, "status": self.status}.get(column, self.columns.get(column, ""))
        return " ".join(text.split())

    @property
    def exported(self) -> bool:
        return self.status == EXPORTED


def write_books(root: Path, rows: Iterable[ManifestRow], total: int) -> None:
    """Manifest and summary of a run, as far as it has come."""
    listed = list(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*COLUMNS, *OUR_COLUMNS))
    writer.writerows([cell(row.cell(column)) for column in (*COLUMNS, *OUR_COLUMNS)] for row in listed)
    write_whole(root / MANIFEST, text.getvalue(), mode=0o600)
    exported = sum(row.exported for row in listed)
    lines = [
        f"run_root={root}",
        f"total={total}",
        f"exported={exported}",
        f"failed={sum(not row.exported for row in listed)}",
        "",
        "exports:",
    ]
    shown = ("func", "status", "export_dir", "message", "workload", "workload_note")
    lines += ["\t".join(row.cell(c) for c in shown) for row in listed]
    lines += ["", *(f"workload_{k}={sum(r.cell('workload') == k for r in listed)}" for k in WORKLOADS)]
    write_whole(root / SUMMARY, "\n".join(lines) + "\n", mode=0o600)


def read_manifest(root: Path) -> dict[str, ManifestRow]:
    """Rows by kernel name; a manifest of the existing tool reads too, it only lacks our columns."""
    path = root / MANIFEST
    try:
        with io.TextIOWrapper(open_regular(path, most=RECORD_BYTES), "utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if not reader.fieldnames or "func" not in reader.fieldnames or "status" not in reader.fieldnames:
                raise InputError(
                    "is not the manifest of a profile run: it has no func or status", where=str(path)
                )
            rows = {}
            for record in reader:
                cells = {key: value for key, value in record.items() if key and isinstance(value, str)}
                rows[cells.get("func", "")] = ManifestRow(
                    cells.get("func", ""), cells.get("status", ""), cells
                )
            return rows
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None


def write_pointer(build: Path, root: Path) -> None:
    """`<build>/latest_…txt`: one line, the run."""
    write_whole(build / POINTER, f"{root}\n")


def latest_run(build: Path) -> Path | None:
    """The run that the pointer names, if it is still there."""
    try:
        text = read_regular(build / POINTER, most=KIB * 64).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError, InputError):
        return None
    return Path(text) if text and is_folder(Path(text)) else None


def build_of(root: Path) -> Path | None:
    """The build that a run says it is of."""
    try:
        lines = read_regular(root / ABOUT, most=RECORD_BYTES).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError, InputError):
        return None
    named = next((line.partition("=")[2] for line in lines if line.startswith("build_dir=")), "")
    return Path(named) if named else None
