"""A page for several kernels: a table of them, each with a page of its own beside it."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insight_trace.errors import InputError, InsightTraceError, RequestError
from insight_trace.insight import open_trace
from insight_trace.limits import RECORD_BYTES
from insight_trace.pages import shared
from insight_trace.profile.manifest import MANIFEST
from insight_trace.reading import is_folder, read_regular
from insight_trace.report.page import asset, write_page

INDEX = "index.html"
_COLUMNS = (
    "Kernel", "#Cycles", "Share", "#Time", "#On a chip, 90 %", "#Estimates", "Workload", "Bound by", "Outputs",
    "#Findings", "What to fix first",
)  # fmt: skip
_SHARE = 2  # the column with bars: cycles of a kernel of those of all


@dataclass(frozen=True, slots=True)
class Found:
    """A kernel that ran, or that did not."""

    title: str
    path: Path | None  # None: there is no trace of it
    failure: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    title: str
    link: str
    cells: tuple[tuple[str, Any], ...]  # text, and what it is sorted by; one for every column but the first


def traces_below(folder: Path) -> list[Found]:
    """Every kernel of a profile's output, or every result below a folder."""
    manifest = folder / MANIFEST
    if manifest.is_file():
        return _of_manifest(manifest)
    if not folder.is_dir() or folder.name == "simulator" or folder.name.startswith("OPPROF_"):
        return [Found(title_of(folder), folder)]
    results = sorted(path for path in folder.glob("**/OPPROF_*/simulator") if path.is_dir())
    return [Found(title_of(path), path) for path in results] or [Found(title_of(folder), folder)]


def _of_manifest(manifest: Path) -> list[Found]:
    """Kernels in the manifest's order; the folder may have moved since it was written."""
    found = []
    text = read_regular(manifest, most=RECORD_BYTES).decode("utf-8", errors="replace")
    try:
        for row in csv.DictReader(io.StringIO(text, newline="")):
            name = row.get("func") or "?"
            place = manifest.parent / "funcs" / name
            # a name is that of a folder there, and not a way to another place
            inside = place.name == name and is_folder(place)
            results = sorted(place.glob("**/OPPROF_*/simulator")) if inside else []
            trace = results[-1] if results else None
            told = "" if trace else row.get("message") or row.get("status") or "no trace"
            found.append(Found(name, trace, told))
    except csv.Error as error:
        raise InputError(f"is not the manifest of a profile run: {error}", where=str(manifest)) from None
    if not found:
        raise RequestError(f"{manifest} names no kernel", hint="profile the build again")
    return found


def title_of(path: Path) -> str:
    """The last part of the path that says something: every result ends in OPPROF_*/simulator/trace.json."""
    telling = [
        part
        for part in path.resolve().parts
        if part not in ("/", "simulator", "insight_export", "collect", "out")
        and not part.startswith("OPPROF_")
        and part not in ("trace.json", "visualize_data.bin")
    ]
    return telling[-1] if telling else path.name


def write_table(
    folder: Path,
    found: Sequence[Found],
    title: str,
    *,
    confidential: bool = False,
    told: Callable[[int, str], None] | None = None,
) -> None:
    """`index.html` and a page for every kernel; one that cannot be read is a row that says why."""
    rows = []
    names: set[str] = set()
    for number, one in enumerate(found):
        if told is not None:
            told(number, one.title)
        link = _file_name(one.title, names)
        try:
            if one.path is None:
                raise RequestError(one.failure)
            with (folder / link).open("wb") as file:
                trace = open_trace(one.path)
                (facts,) = write_page(file, [trace], [one.title], confidential=confidential, table=INDEX)
        except InsightTraceError as error:
            (folder / link).unlink(missing_ok=True)
            rows.append(_Row(one.title, "", _failed(str(error))))
        else:
            rows.append(_Row(one.title, link, _cells(facts)))
    (folder / INDEX).write_text(_document(title, rows), encoding="utf-8")


def plain_name(title: str) -> str:
    """A part of a file's name that any file system has."""
    plain = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in title
    )
    return plain.strip(".")[:80] or "kernel"


def _file_name(title: str, taken: set[str]) -> str:
    """A name that no two kernels share."""
    plain = plain_name(title)
    name, number = f"{plain}.html", 2
    while name.lower() in taken or name == INDEX:
        name, number = f"{plain}-{number}.html", number + 1
    taken.add(name.lower())
    return name


def _failed(why: str) -> tuple[tuple[str, Any], ...]:
    nothing: tuple[str, Any] = ("", "")
    return (("failed", -1), *[nothing] * (len(_COLUMNS) - 3), (why, why))


def _cells(facts: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    cycles, expected = facts["cycles"], facts["expected_cycles"]
    estimates = (facts["estimates"] or {}).get("share")
    findings = [finding["severity"] for finding in facts["findings"]]
    wrong = sum(check.get("status") == "mismatch" for check in facts["checks"])
    good = sum(check.get("status") == "verified" for check in facts["checks"])
    outputs = f"{wrong} wrong" if wrong else f"{good} verified" if good else "not compared"
    bound, share = _bound(facts)
    advice = facts["advice"][0] if facts["advice"] else None
    moved = sum(path["bytes"] for path in facts["traffic"])
    operations = sum(unit["operations"] for unit in facts["arithmetic"])
    return (
        (f"{cycles:,}", cycles),
        ("", cycles),
        (f"{facts['micros']:,.3f} µs", facts["micros"]),
        (f"{expected['low']:,} to {expected['high']:,}", expected["high"]) if expected else ("", -1),
        (f"{estimates:.0%}", estimates) if estimates is not None else ("", -1),
        (f"{moved / 1e6:,.2f} MB · {operations / 1e6:,.2f} Mop", operations or moved),
        (f"{bound} {share:.0%}" if bound else "", share),
        (outputs, -wrong or good),
        (_counted(findings), _weight(findings)),
        (advice["text"] if advice else "", advice["saves"] if advice else 0),
    )


def _bound(facts: dict[str, Any]) -> tuple[str, float]:
    """The busiest pipe of the core that ends last."""
    core = next((one for one in facts["cores"] if one["core"] == facts["slowest"]), None)
    pipes = [one for one in facts["pipes"] if one["core"] == facts["slowest"]]
    busiest = max(pipes, key=lambda one: one["busy"], default=None)
    return (
        (busiest["pipe"], busiest["busy"] / core["cycles"])
        if busiest and core and core["cycles"]
        else ("", 0.0)
    )


def _counted(severities: Sequence[str]) -> str:
    counts = ((kind, severities.count(kind)) for kind in ("error", "warning", "note"))
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts if count) or "0"


def _weight(severities: Sequence[str]) -> int:
    return sum({"error": 10**6, "warning": 10**3}.get(severity, 1) for severity in severities)


def _bar(cycles: int, total: int) -> str:
    share = cycles / total if total else 0.0
    return f'<span class="heat" style="width:{round(60 * share)}px"></span> {share:.1%}'


def _document(title: str, rows: Sequence[_Row]) -> str:
    total = sum(row.cells[_SHARE - 1][1] or 0 for row in rows)
    head = []
    for place, column in enumerate(_COLUMNS):
        kind = ' class="num"' if column.startswith("#") else ""
        button = (
            f'<button class="plain" data-column="{place}">{html.escape(column.removeprefix("#"))}</button>'
        )
        head.append(f'<th scope="col"{kind} aria-sort="none">{button}</th>')
    body = []
    for row in rows:
        name = html.escape(row.title)
        link = f'<a class="jump" href="{html.escape(row.link)}">{name}</a>' if row.link else name
        cells = [f'<th scope="row" data-sort="{name}">{link}</th>']
        for place, (text, key) in enumerate(row.cells, 1):
            kind = ' class="num"' if _COLUMNS[place].startswith("#") else ""
            shown = _bar(key, total) if place == _SHARE and key != "" else html.escape(text)
            cells.append(f'<td{kind} data-sort="{html.escape(str(key))}">{shown}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    parts = {
        "<!-- title -->": html.escape(title),
        "/* style */": shared("page.css"),
        "<!-- count -->": f"{len(rows)} {'kernel' if len(rows) == 1 else 'kernels'}",
        "<!-- head -->": "".join(head),
        "<!-- rows -->": "\n".join(body),
        "/* script */": shared("draw.js") + asset("kernels.js"),
    }
    text = asset("kernels.html")
    for mark, content in parts.items():
        text = text.replace(mark, content)
    return text
