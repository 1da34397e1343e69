"""How results are shown: one line in a shell, a table in a notebook, columns for pandas and Arrow."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from insight_trace.errors import RequestError

if TYPE_CHECKING:
    from pathlib import Path

    from insight_trace import StatsResult

_ROWS_SHOWN = 20  # of a table in a notebook


class Progress(Protocol):
    """Is called with what is being done, and where that is counted, with how much of it is done."""

    def __call__(self, step: str, done: int = 0, total: int = 0, /) -> None: ...


def silent(_step: str, _done: int = 0, _total: int = 0, /) -> None:
    """The progress of who does not wait for it."""


def steps_of(progress: Progress) -> Callable[[str], None]:
    """For functions that say steps alone."""
    return lambda step: progress(step)


class Result:
    """What a function of the API returns. `data()` is what the command prints with --json."""

    __slots__ = ()

    def summary(self) -> str:
        """The result in one line."""
        raise NotImplementedError

    def columns(self) -> Mapping[str, Any]:
        """Its table: a sequence for each column, all equally long; {} where it has none."""
        return {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.summary()}>"

    def _repr_html_(self) -> str:
        return html_table(self.summary(), self.columns())

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`, where pandas is installed."""
        return installed("pandas").DataFrame(dict(self._table()))

    def to_arrow(self) -> Any:
        """The table as a `pyarrow.Table`, where pyarrow is installed."""
        return installed("pyarrow").table(dict(self._table()))

    def _table(self) -> Mapping[str, Any]:
        found = self.columns()
        if not found:
            raise RequestError(f"{self.summary()}: there is no table of this result")
        return found


class TracedResult(Result):
    """A result that has a trace, or is one."""

    __slots__ = ()

    def stats(self) -> StatsResult:
        """Where its cycles go, and what to fix first."""
        import insight_trace

        return insight_trace.stats(self)

    def view(self, *, browser: bool = True) -> Path:
        """Writes its page and opens it; where the page is."""
        import insight_trace

        return insight_trace.view(self, browser=browser)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int]) -> list[str]:
    """Aligned columns; those in `left` are text, the others figures."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (head, *rows)
    ]


def html_table(title: str, columns: Mapping[str, Any]) -> str:
    """A title and the first rows of a table, as notebooks show it."""
    from html import escape

    from insight_trace.limits import visible

    def cell(value: object) -> str:
        return escape(visible(f"{value:,.4g}" if isinstance(value, float) else str(value)))

    parts = [f"<div><p><b>{cell(title)}</b></p>"]
    if columns:
        count = len(next(iter(columns.values())))
        heads = "".join(f"<th>{cell(name)}</th>" for name in columns)
        rows = "".join(
            "<tr>" + "".join(f"<td>{cell(values[row])}</td>" for values in columns.values()) + "</tr>"
            for row in range(min(count, _ROWS_SHOWN))
        )
        parts.append(f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
        if count > _ROWS_SHOWN:
            parts.append(f"<p>{count - _ROWS_SHOWN:,} more rows</p>")
    return "".join([*parts, "</div>"])


def installed(name: str) -> Any:
    """A package that is of use where it is installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RequestError(f"{name} is not installed", hint=f"pip install {name}") from error
