"""Writes one run as the directory that MindStudio Insight opens: `OPPROF_<time>_<letters>/simulator/`."""

from __future__ import annotations

import contextlib
import datetime
import gc
import os
import re
import shutil
import string
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from insight_trace.errors import JobError, RequestError
from insight_trace.insight import container
from insight_trace.insight.added_events import moved_findings
from insight_trace.insight.container import BlockType
from insight_trace.insight.core_timeline import core_timeline_pieces
from insight_trace.insight.csv_files import code_csv, instruction_csv
from insight_trace.insight.details_page import DetailsPage, details_blocks
from insight_trace.insight.encoding import WORTH_LOADING, load_compiled
from insight_trace.insight.event_text import fragments_of
from insight_trace.insight.hotspots import count_addresses, count_lines
from insight_trace.insight.locate import SHOWN_FOLDER
from insight_trace.insight.prepared import Extras, Prepared, check_columns
from insight_trace.insight.source_page import opening_on
from insight_trace.insight.tables import instruction_table, line_table, usable_sources
from insight_trace.insight.timeline import timeline_pieces
from insight_trace.insight.validator import validate_directory
from insight_trace.model import Trace
from insight_trace.recording.store import FOLDER, HEADER, Recording, save
from insight_trace.recording.stream import distinct, take
from insight_trace.storage import require_room, second_name, whole_directory

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE_MODE = 0o640
DIRECTORY_MODE = 0o750
LARGE_TRACE = 500 << 20  # what MindStudio Insight documents as its limit
TIMELINE_BYTES = 1000  # that an instruction takes of the timeline, about: flags and arrows counted
RECORDING_BYTES = 120  # that an instruction takes of a recording, about
_COPIES = 3  # of the timeline: for all cores, by core, and in the container
SPLITS = ("core", "time")
_ROWS_PER_PART = 1_000_000
_ROWS_FOR_TWO = 200_000  # from here on a second process is worth its start
_LETTERS = 16
_NAME = re.compile(r"[A-Z]{16}")


class LargeTraceWarning(UserWarning):
    """The timeline is larger than MindStudio Insight promises to open."""


def run_name(name: str | None = None, timestamp: datetime.datetime | str | None = None) -> str:
    """`OPPROF_<YYYYmmddHHMMSS>_<16 letters>`; what is not given is the time now and random letters."""
    if name is None:
        drawn = int.from_bytes(os.urandom(4 * _LETTERS), "little")
        name = "".join(string.ascii_uppercase[drawn // 26**place % 26] for place in range(_LETTERS))
    if not _NAME.fullmatch(name):
        raise RequestError(
            f"{name!r} is not {_LETTERS} capital letters", where="name of the Insight directory"
        )
    if timestamp is None:
        timestamp = datetime.datetime.now()
    text = timestamp if isinstance(timestamp, str) else timestamp.strftime("%Y%m%d%H%M%S")
    if not re.fullmatch(r"[0-9]{14}", text):
        raise RequestError(f"{text!r} is not YYYYmmddHHMMSS", where="time stamp of the Insight directory")
    return f"OPPROF_{text}_{name}"


def write_insight_directory(
    trace: Trace,
    parent: Path,
    *,
    name: str | None = None,
    timestamp: datetime.datetime | str | None = None,
    include_source: bool = True,
    split: str | None = None,
    dump_logs: bool = False,
    force: bool = False,
    extras: Extras | None = None,
    recording: Recording | None = None,
    details: DetailsPage | None = None,
    row_shown: NDArray[np.int64] | None = None,
) -> Path:
    """Writes `parent/OPPROF_*/simulator/`, checks it, puts it into place, and returns that path.

    With `name` and `timestamp` given the same trace gives the same bytes. `split` ("core" or "time") writes
    `OPPROF_*/<part>/simulator/` for each part and returns `OPPROF_*`. `dump_logs` adds `dump/`, logs that the
    vendor's exporter reads. A `recording` is kept beside `simulator/`, and moves with it. `details` fills Insight's
    Details and Cache pages; a trace that is split has none, since its figures are those of the whole. Where `trace` is a
    part of the recording, `row_shown` has the row of the part by row of the recording, -1 for those that are left out.
    """
    if split is not None and split not in SPLITS:
        raise RequestError(f"split {split!r} is not one of {', '.join(SPLITS)}")
    check_columns(trace.instructions)
    _require_room(trace, parent, recording)
    directory = parent / run_name(name, timestamp)
    record = ("simulator/visualize_data.bin", "*/simulator/visualize_data.bin")
    core = ""
    if recording is not None:
        sources = [str(kernel["source"]) for kernel in recording.kernels]
        trace, core = opening_on(trace, sources)
    with whole_directory(directory, force=force, record=record, mode=DIRECTORY_MODE) as beside:
        parts = [("", trace, extras)] if split is None else list(_parts(trace, extras or Extras(), split))
        for label, part, facts in parts:
            place = beside / label if label else beside
            stamp = directory.name.split("_")[1] + "000"
            write_simulator(
                part,
                place / "simulator",
                include_source=include_source,
                extras=facts,
                stamp=stamp,
                opens_on=core,
                details=None if split else details,
                findings=moved_findings(recording.findings, row_shown)
                if recording is not None and not split
                else (),
                shown_once=recording is not None,
            )
            if dump_logs:
                from insight_trace.insight.camodel.log_writer import write_logs

                write_logs(part, place / "dump")
        if recording is not None:
            save(recording, beside / FOLDER)
    return directory if split else directory / "simulator"


def _require_room(trace: Trace | None, parent: Path, recording: Recording | None) -> None:
    """Refuses before anything is written what the disk cannot hold."""
    shown = len(trace.instructions) if trace is not None else 0
    kept = len(recording.instructions) if recording is not None else 0
    if max(shown, kept) < _ROWS_FOR_TWO:
        return  # a small one says so itself when it comes to it
    timeline, columns = shown * TIMELINE_BYTES * _COPIES, kept * RECORDING_BYTES
    if timeline:
        what = f"the Insight directory of {shown:,} instructions"
        hint = "--cores and --window write a part of it, --no-insight the recording alone"
        require_room(parent, timeline + columns, what, hint)
    else:
        require_room(parent, columns, f"the recording of {kept:,} instructions", "name another place with -o")


def write_recording(
    recording: Recording,
    parent: Path,
    *,
    name: str | None = None,
    timestamp: datetime.datetime | str | None = None,
) -> Path:
    """Writes `parent/OPPROF_*/recording/` alone; the OPPROF_*."""
    _require_room(None, parent, recording)
    directory = parent / run_name(name, timestamp)
    with whole_directory(directory, record=(f"{FOLDER}/{HEADER}",), mode=DIRECTORY_MODE) as beside:
        save(recording, beside / FOLDER)
    return directory


def write_simulator(
    trace: Trace,
    directory: Path,
    *,
    include_source: bool = True,
    extras: Extras | None = None,
    stamp: str = "",
    opens_on: str = "",
    details: DetailsPage | None = None,
    findings: Sequence[Mapping[str, Any]] = (),
    shown_once: bool = False,
) -> None:
    """Fills one `simulator/` and checks it; the caller sees to it that it appears whole.

    `stamp` is the time in the names of the CSV files, as the vendor's exporter writes it; `opens_on` the core that
    the Source page shows first, `findings` become marks in the timeline. `shown_once` adds a second name of the
    timeline, by which Insight draws each instruction of the folder once.
    """
    suffix = f"_{stamp}.csv" if stamp else ".csv"
    prepared = Prepared(trace.instructions, extras or Extras(), trace.mhz, opens_on)
    directory.mkdir(parents=True, mode=DIRECTORY_MODE)
    fragments = fragments_of(prepared)
    if len(trace.instructions) >= WORTH_LOADING:
        load_compiled()
    for core in prepared.cores:
        (directory / trace.instructions.cores[core]).mkdir(mode=DIRECTORY_MODE)

    timeline, tables = directory / "trace.json", directory / "tables"

    def write_rest() -> None:
        for core in prepared.cores:
            label = trace.instructions.cores[core]
            _write(directory / label / "trace.json", core_timeline_pieces(prepared, fragments, core))
        pages = details_blocks(details) if details is not None else []
        _write_tables(prepared, trace, directory, tables, suffix, pages, include_source=include_source)

    spans = details.spans if details is not None else ()
    rows = sum(map(len, prepared.ordered.values()))  # ordered here, once for both processes
    if rows >= _ROWS_FOR_TWO:
        fragments.work_out()
    with _beside_work(write_rest, apart=rows >= _ROWS_FOR_TWO):
        _write(timeline, timeline_pieces(prepared, fragments, trace.counters, findings, spans))
        with _open(directory / "visualize_data.bin") as file:
            container.write_block_from(file, BlockType.TRACE, timeline)
    with (directory / "visualize_data.bin").open("ab") as file, tables.open("rb") as blocks:
        shutil.copyfileobj(blocks, file)
    tables.unlink()
    if shown_once:
        (directory / SHOWN_FOLDER).mkdir(mode=DIRECTORY_MODE)
        second_name(timeline, directory / SHOWN_FOLDER / timeline.name)
    if timeline.stat().st_size > LARGE_TRACE:
        warnings.warn(
            f"the timeline has {timeline.stat().st_size >> 20} MiB, and MindStudio Insight promises to open"
            f" {LARGE_TRACE >> 20}; write it with split='core' or split='time'",
            LargeTraceWarning,
            stacklevel=3,
        )
    broken = validate_directory(directory, own_output=True)
    if broken:
        raise JobError(
            f"the directory that was written breaks {len(broken)} rules, first: {broken[0]}",
            where=str(directory),
            hint="this is a fault of Insight Trace; nothing was put into place",
        )


def _write_tables(
    prepared: Prepared,
    trace: Trace,
    directory: Path,
    tables: Path,
    suffix: str,
    pages: list[tuple[BlockType, bytes]],
    *,
    include_source: bool,
) -> None:
    """The CSV files of every core, and what follows the timeline in the container."""
    counted = count_addresses(prepared)
    lines = count_lines(prepared)
    for place, core in enumerate(prepared.cores):
        label = trace.instructions.cores[core]
        own = directory / label
        if counted is not None:
            _write(own / f"{label}_instr_exe{suffix}", [_text(instruction_csv(prepared, counted[1], place))])
        _write(own / f"{label}_code_exe{suffix}", [_text(code_csv(prepared, lines, place))])

    sources = usable_sources(lines, trace.sources) if include_source else {}
    table = line_table(prepared, lines, sources) if lines is not None and sources else None
    with _open(tables) as file:
        for path, text in sources.items():
            container.write_block(file, BlockType.SOURCE, text, path)
        if table is not None:
            container.write_block(file, BlockType.API_FILE, table)
        if counted is not None:
            container.write_block(file, BlockType.API_INSTR, instruction_table(prepared, *counted))
        for type_, payload in pages:
            container.write_block(file, type_, payload)


def _text(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _open(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb")


def _write(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    with _open(path) as file:
        for piece in pieces:
            file.write(piece)


def _parts(trace: Trace, extras: Extras, split: str) -> Iterable[tuple[str, Trace, Extras]]:
    """The parts of a split trace: the cores of one block stay together, as their flags cross between them."""
    columns = trace.instructions
    if split == "core":
        blocks = np.array([core.partition(".")[0] for core in columns.cores])
        present = sorted({str(block) for block in blocks[distinct(columns.core)]})
        for block in present:
            rows = np.flatnonzero(blocks[columns.core] == block)
            yield block, replace(trace, instructions=take(columns, rows), counters=()), _take(extras, rows)
        return
    order = np.argsort(columns.end, kind="stable")
    width = len(str((len(order) - 1) // _ROWS_PER_PART))
    for number, begin in enumerate(range(0, len(order), _ROWS_PER_PART)):
        rows = np.sort(order[begin : begin + _ROWS_PER_PART])
        counters = trace.counters if number == 0 else ()
        part = replace(trace, instructions=take(columns, rows), counters=counters)
        yield f"part{number:0{width}d}", part, _take(extras, rows)


def _take(extras: Extras, rows: NDArray[np.int64]) -> Extras:
    def chosen(column: NDArray[np.generic] | None) -> NDArray[np.generic] | None:
        return None if column is None else column[rows]

    return Extras(
        gpr=chosen(extras.gpr),  # type: ignore[arg-type]
        warp=chosen(extras.warp),  # type: ignore[arg-type]
        fetched=chosen(extras.fetched),  # type: ignore[arg-type]
        decoded=chosen(extras.decoded),  # type: ignore[arg-type]
    )


@contextlib.contextmanager
def _beside_work(work: Callable[[], None], *, apart: bool) -> Iterator[None]:
    """Does `work` while the block runs, in a child if `apart`, and before it otherwise.

    A child is a copy of this process, so it is made only while no other thread runs that could hold a lock.
    """
    if not apart or not hasattr(os, "fork") or threading.active_count() > 1 or (os.cpu_count() or 1) < 2:
        work()
        yield
        return
    with warnings.catch_warnings():
        # newer Pythons warn of any native thread; those of NumPy's algebra are idle and not used here
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        gc.disable()  # it would write to pages that both processes share
        try:
            work()
            code = 0
        except BaseException as error:
            os.write(2, f"insight-trace: {error!r}\n".encode(errors="replace"))
        finally:
            os._exit(code)  # neither flushes nor runs what belongs to the parent
    try:
        yield
    finally:
        _, status = os.waitpid(child, 0)
    if status != 0:
        raise JobError("the second process could not write the timelines of the cores")
