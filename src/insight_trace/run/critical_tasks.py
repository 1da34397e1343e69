"""What a run's time is made of: the chain of activities that ends last, and how busy the cores were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from insight_trace.run.schedule import ActivityKind, Lead, Schedule, Work

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KINDS = {
    ActivityKind.SUBMIT: "submit",
    ActivityKind.DISPATCH: "dispatch",
    ActivityKind.KERNEL: "kernel",
    ActivityKind.COMPLETE: "complete",
}
_LEADS = {
    Lead.NONE: "wait",
    Lead.START: "start",
    Lead.SWITCH: "switch",
    Lead.DOORBELL: "doorbell",
    Lead.SEEN: "seen",
}
PARTS = (*_KINDS.values(), *_LEADS.values())


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the critical path; one ends where the next begins, the first at 0 and the last with the run."""

    what: str  # one of PARTS
    task: int
    place: int  # core of a kernel, thread of a scheduler
    begin: int
    end: int

    @property
    def cycles(self) -> int:
        return self.end - self.begin


def critical_path(schedule: Schedule) -> list[Part]:
    """The parts in order of time. Pieces that take no time are left out."""
    import numpy as np

    parts: list[Part] = []
    now = int(np.argmax(schedule.end)) if len(schedule.end) else -1
    while now >= 0:
        task, place = int(schedule.task[now]), int(schedule.place[now])
        begin, start, end = (int(column[now]) for column in (schedule.begin, schedule.start, schedule.end))
        if end > start:
            parts.append(Part(_KINDS[ActivityKind(schedule.kind[now])], task, place, start, end))
        if start > begin:
            parts.append(Part(_LEADS[Lead(schedule.lead[now])], task, place, begin, start))
        now = int(schedule.cause[now])
    return parts[::-1]


def shares(parts: list[Part]) -> dict[str, int]:
    """Cycles of the path by what they went to."""
    found = dict.fromkeys(PARTS, 0)
    for part in parts:
        found[part.what] += part.cycles
    return {what: cycles for what, cycles in found.items() if cycles}


@dataclass(frozen=True, slots=True)
class Chain:
    """Tasks that wait for each other, in order, and the cycles of their kernels."""

    tasks: tuple[int, ...] = ()
    cycles: int = 0


def longest_chain(work: Work, schedule: Schedule) -> Chain:
    """The longest chain of tasks that wait for each other, each from its first kernel's start to its last one's end.

    With nothing else to wait for the run would take as long. The first of several, as simpler's own tool has it.
    """
    import numpy as np

    count = len(work.members)
    runs = np.flatnonzero(schedule.kind == ActivityKind.KERNEL)
    first, ended = np.full(count, schedule.total, np.int64), np.zeros(count, np.int64)
    np.minimum.at(first, schedule.task[runs], schedule.start[runs])
    np.maximum.at(ended, schedule.task[runs], schedule.end[runs])
    longest = np.maximum(ended - first, 0)
    own, done, last = longest.tolist(), [0] * count, [-1] * count
    order = np.argsort(work.after, kind="stable")
    before, after = work.before[order].tolist(), work.after[order].tolist()
    edge = 0
    for task in range(count):  # tasks only wait for those that were submitted before them
        latest = 0
        while edge < len(after) and after[edge] == task:
            if done[before[edge]] > latest:
                latest, last[task] = done[before[edge]], before[edge]
            edge += 1
        done[task] = latest + own[task]
    if not count:
        return Chain()
    now = max(range(count), key=done.__getitem__)
    tasks, cycles = [], done[now]
    while now >= 0:
        if own[now]:  # not what only allocates, or was switched off
            tasks.append(now)
        now = last[now]
    return Chain(tuple(tasks[::-1]), cycles)


def busy(schedule: Schedule) -> NDArray[np.int64]:
    """Cycles in which each core runs a kernel."""
    import numpy as np

    runs = np.flatnonzero(schedule.kind == ActivityKind.KERNEL)
    found = np.zeros(schedule.machine.cores, np.int64)
    np.add.at(found, schedule.place[runs], schedule.end[runs] - schedule.start[runs])
    return found
