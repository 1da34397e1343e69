"""Read traces: where cycles go, what changed, SQL, pages, clean and exported forms."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace.api import PathName, as_path
from insight_trace.errors import RequestError
from insight_trace.results import Progress, Result, silent

if TYPE_CHECKING:
    from insight_trace.insight import Broken
    from insight_trace.insight.camodel.read import ExportOptions
    from insight_trace.model import Trace
    from insight_trace.outcome import Simulation
    from insight_trace.results import TracedResult
    from insight_trace.trace.compare import Comparison
    from insight_trace.trace.run_folder import CleanResult
    from insight_trace.trace.sql import Answer
    from insight_trace.trace.text import StatsResult

    Traced = TracedResult | Simulation | str | PathLike[str]


def open_any(source: Traced) -> Trace:
    """A trace, the one of a simulation or a replay, or the one at a path."""
    from insight_trace.insight import open_trace
    from insight_trace.model import Trace
    from insight_trace.outcome import Simulation
    from insight_trace.replay.pipeline import make_trace

    if isinstance(source, Trace):
        return source
    if isinstance(source, Simulation):
        return make_trace(source)
    place = _place_of(source)
    if place is None:
        raise RequestError("this replay has no trace: it was not simulated")
    return open_trace(place)


def _place_of(source: Traced) -> Path | None:
    """Where the trace is on disk."""
    if isinstance(source, str | PathLike):
        return Path(source)
    place = getattr(source, "directory", None) or getattr(source, "path", None)
    return Path(place) if place is not None else None


def stats(source: Traced) -> StatsResult:
    """Where the cycles of a trace go: pipes, waits, critical path, hot lines, traffic, roofs, and what to fix first."""
    from insight_trace.recording.store import recorded_findings
    from insight_trace.trace.advice import advise
    from insight_trace.trace.idle_sync import idle_sync
    from insight_trace.trace.stats import stats as figures_of
    from insight_trace.trace.text import StatsResult

    with _collector_paused():
        trace = open_any(source)
        figures = figures_of(trace)
        place = _place_of(source)
        idle = idle_sync(recorded_findings(place), figures) if place is not None else ()
        return StatsResult(trace, figures, (*advise(trace, figures), *idle))


def compare(before: Traced, after: Traced) -> Comparison:
    """Two traces, instruction by instruction and pipe by pipe: what became faster or slower, came, went or moved."""
    from insight_trace.trace.compare import compare as compared

    with _collector_paused():
        return compared(open_any(before), open_any(after))


def table(source: Traced) -> dict[str, Any]:
    """One column per fact and one row per executed instruction."""
    from insight_trace.trace.dataframe import table as columns

    return columns(open_any(source))


def query(workspace: PathName, sql: str) -> Answer:
    """The answer to one select over a recording (docs/query.md); its rows come as they are read."""
    from insight_trace.recording import open_recording
    from insight_trace.trace.sql import ask

    return ask(open_recording(Path(workspace)), sql)


def view(
    *sources: Traced,
    output: PathName | None = None,
    titles: Sequence[str] = (),
    table: bool = False,
    values: bool = False,
    confidential: bool = False,
    browser: bool = True,
    force: bool = False,
    warn: Callable[[str], None] = lambda _text: None,
    progress: Progress = silent,
) -> Path:
    """Writes the page of one run, of two side by side, or a table of many; opens it where `browser` says so.

    `values` runs the workspace's kernel again and shows every op's tile before and after.
    """
    from insight_trace.report.write import write_view

    with _collector_paused():
        places = [_place_of(source) for source in sources]
        if not places or None in places:
            raise RequestError("a page is made of what is on disk: name a folder, or a replay that wrote one")
        page = write_view(
            [place for place in places if place is not None], as_path(output), titles, table=table, values=values,
            confidential=confidential, force=force, warn=warn, progress=progress,
        )  # fmt: skip
    if browser:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    return page


def clean(
    path: PathName,
    *,
    keep_scalar: bool = False,
    perfetto: bool = False,
    gzip: bool = False,
    output_dir: PathName | None = None,
    kernel: str | None = None,
    notes: Mapping[str, str] | None = None,
    raw_metrics: bool = False,
    copy_raw: bool = True,
    also: str | None = None,
    build_output_root: PathName | None = None,
    force: bool = False,
) -> CleanResult:
    """A trace without clutter: lanes in dataflow order, flags as arrows, per-instruction numbers.

    It is written where the trace is, into the run folder `output_dir`, or into one of its own below `build_output_root`.
    """
    from insight_trace.trace.run_folder import CleanForm, clean_files

    with _collector_paused():
        return clean_files(
            open_any(path), Path(path), CleanForm(perfetto=perfetto, gzip=gzip), keep_scalar=keep_scalar,
            output=as_path(output_dir), below=as_path(build_output_root),
            kernel=kernel, notes=notes or {}, raw=raw_metrics, copy_raw=copy_raw, also=also,
            force=force,
        )  # fmt: skip


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Inside, Python looks for no cycles: of the millions of small objects of a large file none is part of one."""
    import gc

    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def validate(path: PathName) -> Sequence[Broken]:
    """Which rules of MindStudio Insight a directory or file breaks; none: it is valid."""
    from insight_trace.insight import validate as broken_rules

    return broken_rules(Path(path))


class Exported(Result, Struct, frozen=True, eq=False):
    """An Insight directory that was made of logs."""

    trace: Trace
    directory: Path
    warnings: tuple[str, ...]

    def summary(self) -> str:
        return f"{len(self.trace.instructions):,} instructions · {self.directory}"

    def data(self) -> dict[str, Any]:
        count = len(self.trace.instructions)
        return {"directory": str(self.directory), "instructions": count, "warnings": list(self.warnings)}


def export(
    dump: PathName,
    output: PathName,
    *,
    options: ExportOptions | None = None,
    name: str | None = None,
    timestamp: str | None = None,
    include_source: bool = True,
    split: str | None = None,
    force: bool = False,
) -> Exported:
    """Core model dump logs of the vendor's simulator as an Insight directory."""
    import warnings

    from insight_trace.insight import LargeTraceWarning, write_insight_directory
    from insight_trace.insight.camodel.read import ExportOptions, read_dump

    trace, extras = read_dump(Path(dump), options or ExportOptions())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LargeTraceWarning)
        directory = write_insight_directory(
            trace, Path(output), name=name, timestamp=timestamp, include_source=include_source, split=split,
            force=force, extras=extras,
        )  # fmt: skip
    large = [str(each.message) for each in caught if issubclass(each.category, LargeTraceWarning)]
    return Exported(trace, directory, (*trace.warnings, *large))
