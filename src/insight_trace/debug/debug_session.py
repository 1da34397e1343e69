"""A workspace that can be looked into: its recording, and the journal of its run, made when it is first asked for."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from insight_trace.arguments.slots import ReplayArguments
from insight_trace.debug.journal import HEADER, Journal
from insight_trace.debug.moment import Moment
from insight_trace.errors import InputError, JobError, RequestError, next_step
from insight_trace.limits import JOURNAL_BYTES, MIB
from insight_trace.model import Instructions, Kernel, Operands, Tier
from insight_trace.outcome import Simulation
from insight_trace.recording.operands import NONE, WRITES, all_operands, operands_of
from insight_trace.recording.store import Recording, open_recording
from insight_trace.replay.workspace import RECORD, read_record
from insight_trace.simulate.embedded.journaling import JournalRequest, OperandChange
from insight_trace.storage import whole_directory

if TYPE_CHECKING:
    from insight_trace.arguments.slots import ReplayTensor
    from insight_trace.simulate.embedded.simulator import EmbeddedOptions
    from insight_trace.simulate.embedded.toolchain import Toolchain
    from insight_trace.simulate.embedded.variants import Outputs

FOLDER = "journal"
_LEAST_ROOM = 256 * MIB  # that stays free
_MADE_UP = {Tier.SYNTHETIC, Tier.FILLED}

Progress = Callable[[str], None]


class Session:
    """A recording with the content of every memory after every instruction."""

    def __init__(
        self,
        workspace: Path,
        recording: Recording,
        record: dict[str, Any],
        kept: tuple[tuple[Kernel, ...], ReplayArguments] | None = None,  # read from the workspace without it
    ) -> None:
        self.workspace = workspace
        self.recording = recording
        self.record = record
        self.progress: Progress = lambda _step: None
        self.most = JOURNAL_BYTES
        self._journal: Journal | None = None
        self._given = kept

    @property
    def instructions(self) -> Instructions:
        return self.recording.instructions

    @cached_property
    def operands(self) -> Operands:
        return operands_of(self.instructions)

    @cached_property
    def _kept(self) -> tuple[tuple[Kernel, ...], ReplayArguments]:
        if self._given is not None:
            return self._given
        job, _ = read_record(self.workspace)
        return job.kernels, job.arguments

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self._kept[0]

    @property
    def arguments(self) -> ReplayArguments:
        return self._kept[1]

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of these values: made-up inputs, and sources that have changed since."""
        said = []
        made_up = [str(item["slot"]) for item in self.recording.arguments if item["tier"] in _MADE_UP]
        if made_up:
            said.append(
                f"the content of slot {', '.join(made_up)} is made up: values that come from it are not the run's"
            )
        for kernel in self.record.get("kernels", ()):
            original = Path(kernel["source"])
            try:
                now = hashlib.sha256(original.read_bytes()).hexdigest()
            except OSError:
                continue
            if now != kernel["sha256"]:
                said.append(
                    f"{original.name} has changed since this replay: shown is the kernel that was recorded "
                    f"({kernel['copy']}); replay again to look at the new one"
                )
        return tuple(said)

    # --- the journal ----------------------------------------------------------------------------------------

    def run(
        self, changes: Sequence[OperandChange] = (), journal: JournalRequest | None = None, **more: Any
    ) -> Simulation:
        """The dispatch once more, as it was recorded but for the changes and options that are given."""
        from insight_trace.simulate.embedded.simulator import run_embedded

        options = self._options(changes=(*self.recorded_changes, *changes), journal=journal, **more)
        return run_embedded(self.kernels, self.arguments, options, self._toolchain)

    def run_variants(
        self, variants: Sequence[Sequence[OperandChange]], tensors: Sequence[ReplayTensor], each: float, seconds: float
    ) -> list[Outputs | None]:  # fmt: skip
        """What tensors hold after runs with changes; None: a run did not end well, or was not begun in time."""
        from insight_trace.simulate.embedded.variants import run_variants

        options = self._options(changes=self.recorded_changes, seconds=each)
        return run_variants(
            self.kernels, self.arguments, variants, tensors, options, seconds, self._toolchain
        )

    def _options(self, **more: Any) -> EmbeddedOptions:
        from insight_trace.simulate.embedded.simulator import EmbeddedOptions

        return EmbeddedOptions(
            soc_version=self.record.get("soc_version") or self.recording.chip.get("name"),
            target=self.record.get("target") or "a2a3",
            preset=self.record.get("preset") or "device",
            launch=self.record.get("launch"),
            mark_cost=bool(self.record.get("mark_cost")),
            **more,
        )

    @cached_property
    def _toolchain(self) -> Toolchain:
        from insight_trace.simulate.embedded.toolchain import Toolchain

        return Toolchain.find()

    @cached_property
    def recorded_changes(self) -> tuple[OperandChange, ...]:
        """Changes that the recorded run itself had (tools that inject faults)."""
        return tuple(OperandChange(*change) for change in self.recording.about.get("changes", ()))

    def journal(self, row: int | None = None) -> Journal:
        """The journal that holds a row; made by one more run where there is none yet."""
        wanted = len(self.instructions) - 1 if row is None else row
        if self._journal is None and (self.workspace / FOLDER / HEADER).is_file():
            found = Journal(self.workspace / FOLDER)
            if found.instructions == len(self.instructions) and found.of == self._name():
                self._journal = found
        if self._journal is None or not self._holds(self._journal, wanted):
            self._journal = self._made(wanted)
        return self._journal

    def _name(self) -> str:
        """The same for the same kernels with the same changes."""
        known = hashlib.sha256(repr(self.recorded_changes).encode())
        for kernel in self.kernels:
            known.update(kernel.source.read_bytes())
        return known.hexdigest()[:16]

    def _holds(self, journal: Journal, row: int) -> bool:
        return row < 0 or journal.first <= max(row, 0) < journal.complete

    def estimate(self) -> int:
        """At most so many bytes are written by the run: what its instructions name as written."""
        operands = self.operands
        prints = operands.footprints
        sizes = prints["run"].astype(np.int64) * prints["count"].astype(np.int64).prod(axis=1)
        sizes[(prints["role"] & WRITES) == 0] = 0
        kinds = np.bincount(operands.rows["footprint"][all_operands(operands)], minlength=len(prints))
        entries = int((kinds * ((prints["role"] & WRITES) > 0)).sum())
        return int((kinds * sizes).sum()) + 64 * entries

    def _made(self, row: int) -> Journal:
        self.progress("run with a journal")
        free = shutil.disk_usage(self.workspace).free
        room = min(self.most, free - _LEAST_ROOM)
        if room < min(self.estimate(), 64 * MIB):
            raise JobError(
                f"no room for the journal: {free:,} bytes are free beside the workspace, and "
                f"about {self.estimate():,} are needed",
                hint="make room, or copy the workspace to another file system",
            )
        # the whole run if it fits, else from shortly before the row that is asked for
        first = 0 if self.estimate() <= room else max(0, row - 1000)
        folder = self.workspace / FOLDER
        with whole_directory(folder, force=True, record=(HEADER,)) as place:
            run = self.run(journal=JournalRequest(place, first, room, of=self._name()))
            if run.failure is not None:
                raise JobError(str(run.failure), hint=next_step(run.failure.fault, run.failure.limit))
            self._require_same(run.instructions)
        return Journal(folder)

    def _require_same(self, again: Instructions) -> None:
        """Rows of the journal are rows of the recording."""
        recorded = self.instructions
        names, others = np.array(recorded.names), np.array(again.names)
        same = (
            len(again) == len(recorded)
            and bool((again.core == recorded.core).all())
            and bool((names[recorded.name] == others[again.name]).all())
        )
        if not same:
            raise InputError(
                f"run again, the kernel does not do what was recorded ({len(again):,} instructions, not "
                f"{len(recorded):,}): a header that it includes or this program has changed since",
                where=str(self.workspace),
                hint="replay the dispatch again, and look into the new workspace",
            )

    # --- moments and tile ops --------------------------------------------------------------------------------

    def moment(self, row: int) -> Moment:
        """The state after an instruction; -1: before the first one."""
        if not -1 <= row < len(self.instructions):
            raise RequestError(
                f"there is no instruction {row}: the recording has {len(self.instructions):,}, from 0 on"
            )
        return Moment(self, row)

    @cached_property
    def _call_bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        call = np.asarray(self.operands.call)
        rows = np.flatnonzero(call != NONE)
        first = np.full(len(self.operands.calls), -1, np.int64)
        last = np.full(len(self.operands.calls), -1, np.int64)
        last[call[rows]] = rows
        first[call[rows[::-1]]] = rows[::-1]
        return first, last

    def call_rows(self, call: int) -> tuple[int, int]:
        """First and last instruction of a tile op; -1, -1: it has none."""
        first, last = self._call_bounds
        return int(first[call]), int(last[call])

    def call_of(self, row: int) -> int | None:
        """The tile op that an instruction belongs to."""
        if row < 0:
            return None
        call = int(self.operands.call[row])
        return None if call == NONE else call

    def op_name(self, call: int) -> str:
        return self.operands.ops[int(self.operands.calls["op"][call])]

    def place_of(self, row: int) -> tuple[str, int]:
        """File and line of an instruction; the innermost frame."""
        stack = self.instructions.stacks[int(self.instructions.stack[row])].split("\n")[0]
        file, _, line = stack.rpartition(":")
        return (file, int(line)) if line.isdigit() else ("", 0)

    def line_text(self, row: int) -> str:
        """The source line of an instruction, where the recording has it."""
        file, line = self.place_of(row)
        text = self.recording.trace.sources.get(file)
        if text is None or line < 1:
            return ""
        lines = text.decode("utf-8", errors="replace").splitlines()
        return lines[line - 1].strip() if line <= len(lines) else ""


def open_session(workspace: str | Path, progress: Progress | None = None) -> Session:
    """Opens the workspace of a replay; nothing is run before a value is asked for."""
    folder = Path(workspace)
    if not (folder / RECORD).is_file():
        there = (
            f"is not the workspace of a replay: it has no {RECORD}" if folder.exists() else "does not exist"
        )
        raise RequestError(
            f"{folder} {there}",
            hint="give the folder that `insight-trace replay` wrote (-o WORKSPACE)",
        )
    _, record = read_record(folder)
    if record.get("simulator") != "embedded":
        raise RequestError(
            f"this workspace was run on '{record.get('simulator') or 'nothing'}': only the embedded simulator "
            "shows what memories hold",
            hint=f"insight-trace replay {folder} --simulator embedded -o OTHER",
        )
    if record.get("timing_only"):
        raise RequestError(
            "this workspace was replayed with --timing-only: nothing was computed, and there are no values",
            hint=f"insight-trace replay {record['scene']['path']} … without --timing-only",
        )
    session = Session(folder, open_recording(folder), dict(record))
    if progress is not None:
        session.progress = progress
    return session
