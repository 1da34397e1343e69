"""The traces of a replay under the names of core_swimlane: `<label>_trace.json`, `<label>_trace_perfetto.json`."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from insight_trace.errors import InputError
from insight_trace.replay.selection import Selection

PLAIN, PERFETTO = "_trace.json", "_trace_perfetto.json"
MOST_INSTRUCTIONS = 1_000_000  # of a Perfetto trace as JSON: 290 MB, and as long as all other files together


def label_of(selection: Selection, target: str) -> str:
    """`<class>_<case>_<target>_<kernel>`, with the members of a mix."""
    kernels = selection.kernels
    words = [selection.scene.class_name or selection.scene.name]
    words += [selection.case.name] if selection.case else []
    words += [target, kernels[0].name]
    if all(kernel.func_id is not None for kernel in kernels):
        words.append("mix" + "_".join(str(kernel.func_id) for kernel in kernels))
    return "_".join(re.sub(r"[^A-Za-z0-9._-]+", "-", word) for word in words)


def write_named_traces(simulator: Path, workspace: Path, label: str) -> tuple[str, ...]:
    """Puts both into the workspace, and Insight's On-Chip Memory page; returns what to tell the user.

    The first is Insight's own timeline, as a link where the file system has links. The second holds every instruction as one
    slice on a lane where none overlaps another, which Perfetto needs, and the counters.
    """
    from insight_trace.insight.memory_page import write_memory_page
    from insight_trace.recording.store import HEADER, beside, open_recording
    from insight_trace.storage import whole_file
    from insight_trace.trace.chrome import write_chrome
    from insight_trace.trace.clean import whole
    from insight_trace.trace.critical import critical_path
    from insight_trace.trace.timeline_spans import timeline_spans

    timeline = simulator / "trace.json"
    if not timeline.is_file():
        return ()
    plain = workspace / f"{label}{PLAIN}"
    try:
        os.link(timeline, plain)
    except OSError:
        shutil.copyfile(timeline, plain)
    recording = None
    try:
        if (beside(simulator) / HEADER).is_file():
            recording = open_recording(beside(simulator))
            trace = recording.trace
        else:  # the vendor's simulator leaves no recording
            from insight_trace.insight.reader import open_trace

            trace = open_trace(simulator)
    except InputError as error:  # a result of the vendor's that shows nothing is still a result
        return (f"no {label}{PERFETTO}: {error}",)
    if len(trace.instructions) > MOST_INSTRUCTIONS:
        return (
            f"no {label}{PERFETTO} and no {label}_memory_info.json: {len(trace.instructions):,} instructions are more "
            "than viewers take as JSON; `insight-trace clean --format perfetto` writes them, `view` shows tiles",
        )
    with whole_file(workspace / f"{label}{PERFETTO}") as file:
        write_chrome(whole(trace), file, counters=True, spans=timeline_spans(trace, critical_path(trace)))
    if recording is not None:
        write_memory_page(recording, workspace, label)
    return ()
