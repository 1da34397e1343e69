"""What a person sees while kernels run: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from insight_trace.profile.profile_run import Progress

if TYPE_CHECKING:
    from rich.table import Table


class Report(Protocol):
    def __call__(self, progress: Progress, /) -> None: ...


def result_line(progress: Progress, warnings: list[str]) -> str:
    """One finished kernel: OK, WARN or FAIL, and why; `warnings` are those to print."""
    row = progress.row
    assert row is not None
    if not row.exported:
        what, *steps = row.columns.get("message", "").splitlines() or ["no message"]
        return "\n  ".join([f"FAIL {row.func}: {row.status}: {what}", *(step.strip() for step in steps[:2])])
    parts = [f"artifacts={row.cell('artifact_count')}"]
    parts += [f"cycles={row.cell('cycles')}"] if row.cell("cycles") else []
    parts += [f"bound by {row.cell('bound_by')}"] if row.cell("bound_by") else []
    parts += [f"workload: {row.cell('workload')}"] if row.cell("workload") else []
    parts += ["verified"] if row.cell("verified") and "mismatch" not in row.cell("warnings") else []
    parts += ["kept from the earlier run"] if progress.reused else []
    text = f"{'WARN' if row.cell('warnings') else 'OK'} {row.func}: {' '.join(parts)}"
    return "\n  ".join([text, *warnings])


# Steps that take long enough for a line of their own: those of the vendor's simulator.
_LONG_STEPS = frozenset({"generate", "build", "golden", "collect", "export"})


class _Told:
    """Warnings that were printed, and how often they came again."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()

    def line(self, progress: Progress) -> str:
        """The kernel's line, with those of its warnings that are new."""
        assert progress.row is not None
        given = [text for text in dict.fromkeys(progress.row.cell("warnings").split(" | ")) if text]
        new = [text for text in given if not self.times[text]]
        self.times.update(given)
        return result_line(progress, new)

    def repeated(self) -> list[str]:
        return [f"the same for {n - 1} more: {text}" for text, n in self.times.items() if n > 1]


class _Lines:
    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.numbers: dict[str, int] = {}
        self.told = _Told()

    def __call__(self, progress: Progress, /) -> None:
        if progress.row is not None:
            print(self.told.line(progress), file=self.stream, flush=True)
            return
        step = "run" if progress.step == "running" else progress.step
        if step == "run" or step in _LONG_STEPS:
            number = self.numbers.setdefault(progress.kernel, min(progress.total, progress.done + 1))
            width = len(str(progress.total))
            line = f"[{number:0{width}d}/{progress.total}] {step} {progress.kernel}"
            print(line, file=self.stream, flush=True)


class _LiveTable:
    """The last kernels and those that run; what scrolled out stands in summary.txt."""

    SHOWN = 20

    def __init__(self) -> None:
        self.latest: dict[str, Progress] = {}

    def table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for title in ("kernel", "step", "cycles", "bound by", "workload"):
            table.add_column(title)
        for progress in list(self.latest.values())[-self.SHOWN :]:
            row = progress.row
            cells = ("", "", "")
            if row is not None:
                cells = (row.cell("cycles"), row.cell("bound_by"), row.cell("workload"))
            table.add_row(progress.kernel, progress.step, *cells)
        return table


@contextmanager
def reporting() -> Iterator[Report]:
    """A report to hand to a run; on a terminal it is a table that follows along."""
    stream = sys.stdout
    if not stream.isatty():
        lines = _Lines(stream)
        yield lines
        for line in lines.told.repeated():
            print(line, file=stream, flush=True)
        return
    from rich.console import Console
    from rich.live import Live

    state, told = _LiveTable(), _Told()
    console = Console(file=stream)
    with Live(state.table(), console=console, refresh_per_second=8) as live:

        def follow(progress: Progress, /) -> None:
            state.latest.pop(progress.kernel, None)
            state.latest[progress.kernel] = progress
            live.update(state.table())
            if progress.row is not None and (not progress.row.exported or progress.row.cell("warnings")):
                console.print(told.line(progress), markup=False, highlight=False)

        yield follow
    for line in told.repeated():
        console.print(line, markup=False, highlight=False)
