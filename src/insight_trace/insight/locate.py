"""Finds the `simulator/` directory in what a user names."""

from __future__ import annotations

import os
from pathlib import Path

from insight_trace.errors import RequestError

_DEPTH = 6
_MOST_DIRECTORIES = 10_000
FILES = ("trace.json", "visualize_data.bin")
# Of a folder Insight draws every file called trace.json, each instruction once for all cores and once for its own. Where
# a folder has one of this name, as other profilers write it, Insight takes what lies in there alone. (It takes no links.)
SHOWN_FOLDER = "mindstudio_profiler_output"


def holds_result(directory: Path) -> bool:
    return any((directory / name).is_file() for name in FILES)


def find_simulators(path: Path) -> list[Path]:
    """Every `simulator/` at or below a folder, without following links."""
    if holds_result(path):
        return [path]
    found = []
    base = len(path.parts)
    for looked, (name, folders, _) in enumerate(os.walk(path)):
        directory = Path(name)
        if looked > _MOST_DIRECTORIES:
            raise RequestError(
                f"more than {_MOST_DIRECTORIES} folders lie below {path}",
                hint="name the OPPROF_* folder itself",
            )
        if directory.name == "simulator" and holds_result(directory):
            found.append(directory)
            folders[:] = []
        elif len(directory.parts) - base >= _DEPTH:
            folders[:] = []
        folders.sort()
    return found


def find_simulator(path: Path) -> Path:
    """The only one; several or none are an error that says what to do."""
    found = find_simulators(path)
    if len(found) == 1:
        return found[0]
    if not found:
        raise RequestError(
            f"no simulator/ with a trace.json or visualize_data.bin lies at or below {path}",
            hint="give an OPPROF_* folder, its simulator/, a trace.json or a visualize_data.bin",
        )
    shown = "\n  ".join(str(each) for each in found[:8])
    more = f"\n  and {len(found) - 8} more" if len(found) > 8 else ""
    raise RequestError(f"{len(found)} results lie below {path}; name one of them:\n  {shown}{more}")
