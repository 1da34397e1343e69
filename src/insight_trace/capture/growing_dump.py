"""The dump of a capture while it grows: valid from its first moment, and gone again if nothing came."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.capture import growing_dump as recover
from insight_trace.capture.process import RunnerReport
from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.limits import PAYLOAD_BYTES
from insight_trace.model import Scene
from insight_trace.simulate.embedded.memory import escape
from insight_trace.storage import whole_directory

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORD = ("args_dump/args_dump.json",)  # what a folder has that a capture made
_SPARE = 1 << 30  # bytes of disk that a dump leaves free


@dataclass(frozen=True, slots=True)
class Ran:
    """One task that a capture ran to its end."""

    dispatch_id: int  # of its first block
    task_id: int
    func_ids: tuple[int, ...]  # its members in order: cube, first and second vector core
    block_count: int
    cycles: int


def payload_limit(folder: Path, asked: int | None) -> int:
    """How many bytes of payload a dump may have: what was asked for, and never more than the disk has."""
    existing = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(existing).free - _SPARE
    if asked is not None and asked > free:
        raise RequestError(
            f"{asked / 1e9:.3g} GB of payload do not fit: {existing} has {max(free, 0) / 1e9:.3g} GB to spare",
            hint="name another place with -o, or allow less with --max-payload",
        )
    return max(0, min(PAYLOAD_BYTES if asked is None else asked, free))


@contextlib.contextmanager
def dump_directory(
    path: Path, level: int, inputs: Sequence[Path], *, force: bool = False
) -> Iterator[Path | None]:
    """The directory, holding a valid dump of nothing from the moment it exists; gone if nothing came."""
    if not level:
        yield None
        return
    import numpy as np

    from insight_trace.capture.dump_rows import ROW, write_args_dump

    with whole_directory(path, force=force, record=RECORD, inputs=inputs) as beside:
        (beside / "args_dump").mkdir()
        (beside / "args_dump" / "args.bin").touch()
        write_args_dump(beside / "args_dump", np.empty(0, ROW), level, {}, partial=True)
    try:
        yield path / "args_dump"
    finally:
        rows = path / "args_dump" / ".rows"
        # a manifest that could not be written leaves the one of nothing
        if not rows.exists() or rows.stat().st_size == 0 or not _records_in(path / "args_dump"):
            if path.exists():  # a runner that saw itself orphaned has removed it
                shutil.rmtree(path)
        else:
            rows.unlink(missing_ok=True)


def _records_in(folder: Path) -> int:
    """How many records the manifest on disk describes."""
    from insight_trace.dump.manifest_reader import open_manifest

    with (
        contextlib.suppress(OSError, InsightTraceError),
        open_manifest(folder / "args_dump.json") as manifest,
    ):
        return int(manifest.header.get("total_args", 0))
    return 0


@dataclass(frozen=True, slots=True)
class WrittenDump:
    """What came into a dump."""

    records: int = 0
    payload_bytes: int = 0
    tasks: tuple[Ran, ...] = ()


class GrowingDump:
    """Keeps the manifests at the state of the rows: now and then while they grow, and at the end."""

    def __init__(self, folder: Path | None, level: int, scene: Scene, case: str = "") -> None:
        self.case = case
        self.folder = folder
        self.level = level
        self.names = {k.func_id: k.name for k in scene.kernels if k.func_id is not None}
        self._seen = 0
        self._next = time.monotonic() + 1.0

    @property
    def job_lines(self) -> list[str]:
        if self.folder is None:
            return []
        folder = self.folder.resolve()
        after_a_kill = "\t".join(map(escape, recover.command(folder, self.level, self.names)))
        return [
            f"records\t{escape(str(folder / '.rows'))}",
            f"payload\t{escape(str(folder / 'args.bin'))}",
            f"recover\t{after_a_kill}",
        ]

    def look(self) -> None:
        """Writes a partial manifest when it is due: the longer that takes, the less often."""
        if self.folder is None or time.monotonic() < self._next:
            return
        from insight_trace.capture.dump_rows import read_rows, write_args_dump

        started = time.monotonic()
        rows = read_rows(self.folder / ".rows")
        if len(rows) > self._seen:
            write_args_dump(self.folder, rows, self.level, self.names, partial=True)
            self._seen = len(rows)
        self._next = time.monotonic() + max(1.0, 20 * (time.monotonic() - started))

    def finish(self, report: RunnerReport) -> WrittenDump:
        """Both manifests in their last state."""
        if self.folder is None:
            return WrittenDump()
        from insight_trace.capture.dump_rows import read_rows, write_args_dump, write_kernel_dump

        rows = read_rows(self.folder / ".rows")
        if not len(rows):
            return WrittenDump()
        failure = None
        if report.failure is not None:
            failure = {"fault": report.failure.fault.value, "message": report.failure.message}
            failure |= {"where": report.failure.where} if report.failure.where else {}
            failure |= {"task_id": report.facts["task"][0]} if "task" in report.facts else {}
        write_kernel_dump(self.folder, rows, self.names, self.case)
        write_args_dump(
            self.folder,
            rows,
            self.level,
            self.names,
            partial=report.failure is not None,
            failure=failure,
            case=self.case,
        )
        return WrittenDump(len(rows), int((self.folder / "args.bin").stat().st_size), _tasks(rows))


def _tasks(rows: NDArray[Any]) -> tuple[Ran, ...]:
    import numpy as np

    done = rows[rows["stage"] == 1]
    firsts = np.unique(done["dispatch_id"], return_index=True)[1]
    return tuple(
        Ran(
            int(row["dispatch_id"]),
            int(row["task_id"]),
            tuple(row["func"][: row["func_count"]].tolist()),
            int(row["block_count"]),
            int(row["cycles"]),
        )
        for row in done[firsts]
    )


# --- finishes the dump of a capture that was killed. The runner starts this when it finds its caller gone


KILLED = {"fault": "environment", "message": "the capture was killed"}


def command(folder: Path, level: int, names: Mapping[int, str]) -> list[str]:
    """What the runner is to execute."""
    return [sys.executable, "-m", __name__, str(folder), str(level), json.dumps(names)]


def main(folder: Path, level: int, names: Mapping[int, str]) -> None:
    from insight_trace.capture.dump_rows import read_rows, write_args_dump, write_kernel_dump

    rows = read_rows(folder / ".rows")
    if not len(rows):
        shutil.rmtree(folder.parent, ignore_errors=True)
        return
    write_args_dump(folder, rows, level, names, partial=True, failure=KILLED)
    write_kernel_dump(folder, rows, names)
    (folder / ".rows").unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), {int(k): v for k, v in json.loads(sys.argv[3]).items()})
