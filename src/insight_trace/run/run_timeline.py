"""A run as a timeline for Perfetto, and as a table: what every core, scheduler and the orchestrator did when."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from insight_trace.limits import cell
from insight_trace.run.schedule import ActivityKind
from insight_trace.run.whole_run import WholeRun, task_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS = 16384
_PROCESS = 1  # of all lanes: Perfetto shows processes by their number of slices, and threads by their numbers
_LANES = 1000  # a number of its own, or a viewer calls the first thread the main thread
_PATH, _ORCHESTRATOR, _SCHEDULERS, _CORES = (
    _LANES * part for part in range(1, 5)
)  # in the order of what is shown
_WORDS = {ActivityKind.SUBMIT: "submit", ActivityKind.DISPATCH: "dispatch", ActivityKind.COMPLETE: "complete"}


def write_timeline(run: WholeRun, file: IO[bytes]) -> int:
    """Chrome trace JSON, which Perfetto opens; times are microseconds. Returns how many events it holds.

    Times are whole nanoseconds, as Perfetto counts: it rounds begin and length apart, and drops a slice that begins
    before the one ahead of it has ended. Exact cycles stand in the arguments.
    """
    count = 0
    file.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    for events in _pieces(run):
        if events:
            file.write((",\n" if count else "").encode() + ",\n".join(events).encode())
            count += len(events)
    file.write(b"\n]}\n")
    return count


def _pieces(run: WholeRun) -> Iterator[list[str]]:
    yield _metadata(run)
    names = [json.dumps(name) for name in task_names(run.graph)]
    ids = run.graph.tasks["id"].tolist()
    schedule, mhz = run.schedule, run.chip.mhz
    replays = _replays(run)
    for first in range(0, len(schedule.kind), _ROWS):
        piece = slice(first, first + _ROWS)
        columns = (schedule.kind, schedule.task, schedule.block, schedule.place, schedule.start, schedule.end)
        events = []
        for kind, task, block, place, start, end in zip(*(c[piece].tolist() for c in columns), strict=True):
            if kind == ActivityKind.KERNEL:
                lane, name = _CORES + place, names[task]
            else:
                lane = _ORCHESTRATOR if kind == ActivityKind.SUBMIT else _SCHEDULERS + place
                name = f'"{_WORDS[ActivityKind(kind)]} {names[task][1:]}'
            inside = f',"replay":"{replays[task]}"' if kind == ActivityKind.KERNEL else ""
            events.append(
                f'{{"ph":"X","pid":{_PROCESS},"tid":{lane},{_span(start, end, mhz)},'
                f'"name":{name},"args":{{"task":{task},"id":"0x{ids[task]:x}","block":{block},"cycles":{end - start}'
                f"{inside}}}}}"
            )
        yield events
    yield [
        f'{{"ph":"X","pid":{_PROCESS},"tid":{_PATH},{_span(part.begin, part.begin + part.cycles, mhz)},'
        f'"name":{names[part.task] if part.what == "kernel" else json.dumps(part.what)},'
        f'"args":{{"task":{part.task},"cycles":{part.cycles}}}}}'
        for part in run.path
    ]


def _span(start: int, end: int, mhz: float) -> str:
    begin, past = (int(cycle * 1000 / mhz) for cycle in (start, end))
    return f'"ts":{begin / 1000:.3f},"dur":{(past - begin) / 1000:.3f}'


def _replays(run: WholeRun) -> list[str]:
    """By task, the command that opens its kernel, as the text of a JSON string."""
    scene, case = shlex.quote(str(run.graph.scene.path)), shlex.quote(run.graph.case.name)
    found = []
    for task_id, functions in zip(
        run.graph.tasks["id"].tolist(), run.graph.tasks["func"].tolist(), strict=True
    ):
        members = ",".join(str(function) for function in functions if function >= 0)
        words = f"insight-trace replay {scene} --case {case} --func-id {members} --task-id 0x{task_id:x}"
        found.append(json.dumps(words)[1:-1])
    return found


def core_names(clusters: int) -> list[str]:
    """By place: the cube cores, then the vector cores."""
    return [f"AIC {core}" for core in range(clusters)] + [f"AIV {core}" for core in range(2 * clusters)]


def _metadata(run: WholeRun) -> list[str]:
    named = {
        "pid": _PROCESS,
        "name": "process_name",
        "args": {"name": f"{run.graph.scene.name} {run.graph.case.name}"},
    }
    events: list[dict[str, object]] = [{"ph": "M", **named}]
    lanes = {_PATH: "critical path", _ORCHESTRATOR: "orchestrator"}
    lanes |= {_SCHEDULERS + thread: f"scheduler {thread}" for thread in range(run.machine.threads)}
    lanes |= {_CORES + core: name for core, name in enumerate(core_names(run.machine.clusters))}
    for lane, name in lanes.items():
        place = {"ph": "M", "pid": _PROCESS, "tid": lane}
        events.append({**place, "name": "thread_name", "args": {"name": name}})
        events.append({**place, "name": "thread_sort_index", "args": {"sort_index": lane}})
    return [json.dumps(event, separators=(",", ":")) for event in events]


def write_tasks(run: WholeRun, file: IO[bytes]) -> None:
    """tasks.csv: a line for each kernel on each core."""
    names = task_names(run.graph)
    ids, dispatches = run.graph.tasks["id"].tolist(), run.graph.tasks["dispatch_id"].tolist()
    schedule = run.schedule
    path = {(part.task, part.place) for part in run.path if part.what == "kernel"}
    file.write(
        b"task,task_id,dispatch_id,kernel,block,core,start_cycles,end_cycles,waited_from_cycles,on_path\n"
    )
    for rows in _kernel_rows(schedule.kind):
        columns = (
            schedule.task,
            schedule.block,
            schedule.place,
            schedule.start,
            schedule.end,
            schedule.begin,
        )
        lines = []
        for task, block, place, start, end, begin in zip(*(c[rows].tolist() for c in columns), strict=True):
            quoted = str(cell(names[task]))
            quoted = quoted if not set(quoted) & set(',"\n') else '"' + quoted.replace('"', '""') + '"'
            lines.append(
                f"{task},0x{ids[task]:016x},{dispatches[task] + block},{quoted},{block},{place},{start},{end},"
                f"{begin},{int((task, place) in path)}\n"
            )
        file.write("".join(lines).encode())


def _kernel_rows(kind: NDArray[np.uint8]) -> Iterator[NDArray[np.int64]]:
    import numpy as np

    rows = np.flatnonzero(kind == ActivityKind.KERNEL)
    for first in range(0, len(rows), _ROWS):
        yield rows[first : first + _ROWS]
