"""Puts the page together: markup, style, script and data in one file that opens from disk."""

from __future__ import annotations

import base64
import html
import importlib.resources
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from insight_trace.errors import InputError
from insight_trace.model import Trace
from insight_trace.pages import shared
from insight_trace.reading import open_regular
from insight_trace.report.payload import PagePayload, Section, payload
from insight_trace.trace.compare import compare
from insight_trace.trace.compare_text import comparison_data

_MARK = b"<!DOCTYPE html><!-- insight-trace page -->"
_SCRIPTS = (
    *("data.js", "timeline.js", "timeline_strips.js", "timeline_marks.js", "timeline_input.js"),
    *("panels.js", "source.js", "roofline.js", "memory.js", "tiles.js", "compare.js", "main.js"),
)


def write_page(
    file: IO[bytes],
    traces: Sequence[Trace],
    titles: Sequence[str],
    *,
    confidential: bool = False,
    sections: Sequence[Section] = (),
    table: str = "",
) -> list[dict[str, Any]]:
    """One run, or two side by side with their comparison; gives back their facts.

    `sections` say more about instructions of the first; `table` is the page that leads back to all kernels.
    """
    import zlib

    import msgspec

    if not 1 <= len(traces) == len(titles) <= 2:
        raise ValueError("a page shows one run or two, each with a title")
    parts: list[tuple[str, bytes]] = []
    facts: list[dict[str, Any]] = []
    for number, (trace, title) in enumerate(zip(traces, titles, strict=True)):
        run: PagePayload = payload(
            trace, title=title, confidential=confidential, sections=() if number else sections
        )
        facts.append(run.facts)
        parts.append((f"run{number}-facts", zlib.compress(msgspec.json.encode(run.facts), 6)))
        parts += [(f"run{number}-{name}", content) for name, content in run.parts.items()]
    if len(traces) == 2:
        difference = comparison_data(compare(traces[0], traces[1]))
        parts.append(("comparison", zlib.compress(msgspec.json.encode(difference), 6)))

    template = asset("page.html")
    head, data_and_rest = template.split("<!-- data -->")
    middle, tail = data_and_rest.split("<!-- script -->")
    title = " against ".join(titles)
    head = head.replace("<!-- title -->", html.escape(title)).replace("/* style */", shared("page.css"))
    back = f'<a class="jump" id="back" href="{html.escape(table)}">← all kernels</a>' if table else ""
    file.write(head.replace("<!-- back -->", back).encode())
    for name, content in parts:
        file.write(f'<script type="application/octet-stream" id="{name}">'.encode())
        file.write(base64.b64encode(content))
        file.write(b"</script>\n")
    file.write(middle.encode())
    script = "\n".join((shared("draw.js"), *map(asset, _SCRIPTS)))
    file.write(f'<script>\n"use strict";\n(() => {{\n{script}\n}})();\n</script>'.encode())
    file.write(tail.encode())
    return facts


def is_page(path: Path) -> bool:
    """Whether a file is a page of ours, which a new one may replace."""
    try:
        with open_regular(path) as file:  # a pipe would be waited for
            return file.read(len(_MARK)) == _MARK
    except (OSError, InputError):
        return False


def asset(name: str) -> str:
    """The text of a file of the page."""
    return importlib.resources.files("insight_trace.report").joinpath("assets", name).read_text("utf-8")
