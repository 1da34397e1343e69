"""The page of one run, of two side by side, or a table of many: which it is, and where it goes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from insight_trace.debug.debug_session import open_session
from insight_trace.debug.page_values import value_sections
from insight_trace.errors import RequestError
from insight_trace.insight import open_trace
from insight_trace.recording.store import recorded_title
from insight_trace.report.kernel_table import INDEX, Found, plain_name, title_of, traces_below, write_table
from insight_trace.report.page import is_page, write_page
from insight_trace.report.payload import Section
from insight_trace.results import Progress
from insight_trace.storage import refuse_existing, whole_directory, whole_file


def write_view(
    paths: Sequence[Path],
    output: Path | None,
    titles: Sequence[str],
    *,
    table: bool,
    values: bool,
    confidential: bool,
    force: bool,
    warn: Callable[[str], None],
    progress: Progress,
) -> Path:
    """Writes what shows these runs; where it begins."""
    found = [traces_below(path) for path in paths]
    if table or len(found) > 2 or any(len(runs) > 1 for runs in found):
        runs = [run for below in found for run in below]
        return _table(paths, runs, output, titles, confidential=confidential, force=force, progress=progress)
    if len(titles) > len(paths):
        raise RequestError(f"{len(titles)} titles for {len(paths)} runs")
    traces = [open_trace(path) for path in paths]
    first = traces[0].path or paths[0]
    # two runs are told apart by their folders: what ran is often the same
    ran = recorded_title(first) if len(paths) == 1 else ""
    named = [*titles, *(ran or title_of(path) for path in paths[len(titles) :])]
    # two runs have a page of their own, which replaces that of neither
    name = "report.html" if len(paths) == 1 else f"compare_{plain_name(named[0])}_{plain_name(named[1])}.html"
    page = output or (first if first.is_dir() else first.parent) / name
    force = force or is_page(page)
    refuse_existing(page, force=force, inputs=paths)
    sections = _values(paths[0], warn) if values else []
    with _writable(page), whole_file(page, force=force, inputs=paths) as file:
        write_page(file, traces, named, confidential=confidential, sections=sections)
    return page


def _values(path: Path, warn: Callable[[str], None]) -> list[Section]:
    """What the page says of values."""
    warn("--values runs the workspace's kernel again (--sandbox says with which rights)")
    sections, left_out = value_sections(open_session(path))
    if left_out:
        warn(f"the page has no values of the last {left_out:,} tile ops; `debug` has them")
    return [Section(title, entries) for title, entries in sections]


def _table(
    paths: Sequence[Path],
    found: list[Found],
    output: Path | None,
    titles: Sequence[str],
    *,
    confidential: bool,
    force: bool,
    progress: Progress,
) -> Path:
    if len(titles) > 1:
        raise RequestError(
            f"{len(titles)} titles for one table",
            hint="name the table once; its rows have the kernels' names",
        )
    one = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
    place = output or (one / "pages" if one else Path("insight_pages"))
    title = titles[0] if titles else title_of(one) if one else f"{len(found)} runs"
    force = force or is_page(place / INDEX)
    inputs = [run.path for run in found if run.path]
    with (
        _writable(place),
        whole_directory(place, force=force, record=(INDEX,), inputs=inputs) as folder,
    ):
        write_table(
            folder, found, title, confidential=confidential,
            told=lambda number, name: progress(f"page of {name}", number + 1, len(found)),
        )  # fmt: skip
    return place / INDEX


@contextlib.contextmanager
def _writable(output: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise RequestError(
            f"{output.parent} cannot be written to", hint="name another place with -o"
        ) from error
