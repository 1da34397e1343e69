"""The page of a run: kernels, the critical path, the timeline of all cores, and from a task to its own trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from insight_trace.pages import shared
from insight_trace.run.run_timeline import core_names
from insight_trace.run.schedule import ActivityKind
from insight_trace.run.whole_run import WholeRun, task_names

_MOST_BARS = 20_000  # that the page draws; timeline.json has all

_PAGE, _SCRIPT = (Path(__file__).with_suffix(kind) for kind in (".html", ".js"))
_FACTS = (
    "cycles",
    "mhz",
    "chip",
    "dispatches",
    "distinct",
    "path",
    "kernels",
    "case",
    "scene",
    "bound",
    "occupancy",
)


def page_text(run: WholeRun, data: dict[str, Any], folder: Path) -> str:
    """One self-contained file. Of more tasks than a page can draw the longest are drawn."""
    import numpy as np

    schedule = run.schedule
    names = task_names(run.graph)
    kernels = {row["name"]: number for number, row in enumerate(data["kernels"])}
    rows = np.flatnonzero(schedule.kind == ActivityKind.KERNEL)
    longest = np.argsort(schedule.start[rows] - schedule.end[rows], kind="stable")[:_MOST_BARS]
    drawn = rows[np.sort(longest)]
    columns = (schedule.place, schedule.start, schedule.end, schedule.task)
    bars = [
        [core, start, end, kernels[names[task]], task]
        for core, start, end, task in zip(*(column[drawn].tolist() for column in columns), strict=True)
    ]
    ids = run.graph.tasks["id"].tolist()
    replayed = {
        int(Path(place).parents[2].name.rpartition("_")[2]): Path(place).relative_to(folder).as_posix()
        for place in data.get("replayed", [])
    }
    content = {
        **{key: data[key] for key in _FACTS},
        "names": core_names(run.machine.clusters),
        "all": len(rows),
        "bars": bars,
        "ids": {task: f"0x{ids[task]:x}" for *_, task in bars},
        "replayed": replayed,
    }
    # nothing in it may end the element that it stands in
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    title = f"{run.graph.scene.name} {run.graph.case.name}".replace("&", "&amp;").replace("<", "&lt;")
    script = shared("draw.js") + _SCRIPT.read_text(encoding="utf-8")
    parts = {"@TITLE@": title, "@STYLE@": shared("page.css"), "@SCRIPT@": script, "@DATA@": text}
    page = _PAGE.read_text(encoding="utf-8")
    for mark, part in parts.items():
        page = page.replace(mark, part)
    return page
