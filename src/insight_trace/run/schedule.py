"""What is to be placed on a chip, the chip that it is placed on, and what came of it. Times are whole cycles."""

from __future__ import annotations

import enum
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from insight_trace.chips import Chip
from insight_trace.chips.chip_files import SCHEDULE
from insight_trace.errors import InputError
from insight_trace.run.pages import TaskPages
from insight_trace.run.shared_memory import RATE, WALKS, MemoryDemand

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CUBE, VECTOR0, VECTOR1 = 1, 2, 4  # members of a task, bits of Work.members
MIX, AIC, AIV = range(3)  # shapes, in the order in which a scheduler looks for work


class ActivityKind(enum.IntEnum):
    """What an activity is, and what leads to it."""

    SUBMIT = 0  # the orchestrator hands a task in
    DISPATCH = 1  # a scheduler gives blocks of a task to cores
    KERNEL = 2  # a core works
    COMPLETE = 3  # a scheduler takes note of an end, and of who waited for it


class Lead(enum.IntEnum):
    """What lies between the end of the cause and the start of an activity."""

    NONE = 0
    START = 1  # from the dispatch to the kernel's first instruction
    SWITCH = 2  # from the end of the task before it on the core
    DOORBELL = 3  # a core that held the task is told that it may start
    SEEN = 4  # from a kernel's end until a scheduler sees it


@dataclass(frozen=True, slots=True)
class Machine:
    """Cores, scheduler threads, and what their work takes, in cycles."""

    clusters: int  # each a cube core and two vector cores
    threads: int  # schedulers; thread t has the clusters i with i % threads == t
    submit: int = 0
    dispatch: int = 0  # of one task by one thread
    write: int = 0  # and for each core that gets a part of it
    start: int = 0
    first: int = 0  # more, for the first task of a core
    switch: int = 0
    doorbell: int = 0
    seen: int = 0
    read: int = 0  # to take note of one core's end
    complete: int = 0  # more, when it was the task's last
    ready: int = (
        0  # more to submit a task that waits for nothing: the orchestrator puts it into a queue itself
    )
    argument: int = 0  # more to submit, for each tensor of the task that is looked up or entered
    hbm: int = (
        0  # what all cores together get, in thousandths (shared_memory.RATE) of bytes a cycle; 0: no limit
    )
    l2: int = 0
    walk: int = 0  # to look up one page
    walks: int = 0  # of all cores together in shared_memory.WALKS cycles; 0: no limit

    @property
    def cores(self) -> int:
        return 3 * self.clusters

    def core(self, cluster: int, member: int) -> int:
        """Cube cores first, then the vector cores of cluster 0, 1, ..., as the runtime numbers them."""
        if member == CUBE:
            return cluster
        return self.clusters + 2 * cluster + (member == VECTOR1)


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Tasks in the order of their submission."""

    members: NDArray[np.uint8]  # 0: there is nothing to run
    blocks: NDArray[np.int64]
    first_time: NDArray[np.int64]  # block b of the task takes row first_time + b of `times`
    times: NDArray[np.int64]  # cycles of the cube and the two vector members
    sync: NDArray[np.bool_]  # all blocks start together
    early: NDArray[np.bool_]  # may be given to a core before its producers are done
    before: NDArray[np.int64]  # edges: this task
    after: NDArray[np.int64]  # is waited for by that one
    held: NDArray[np.bool_]  # by the orchestrator, which submits it only then
    arguments: NDArray[np.int64] | None = (
        None  # tensors that are looked up or entered for the task; None: none
    )
    demand: MemoryDemand | None = None  # None: kernels do not slow each other down
    pages: TaskPages | None = None  # None: every core knows them


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Every activity: [begin, start) is what leads to it, [start, end) it itself; the cause's end is `begin`."""

    machine: Machine
    kind: NDArray[np.uint8]
    lead: NDArray[np.uint8]
    task: NDArray[np.int64]
    block: NDArray[np.int64]  # of kernels; -1 elsewhere
    place: NDArray[np.int64]  # core of a kernel, thread of a scheduler's activity, -1 for the orchestrator
    begin: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    cause: NDArray[np.int64]  # -1: the beginning

    @property
    def total(self) -> int:
        return int(self.end.max()) if len(self.end) else 0


class Activities:
    """A schedule while it grows."""

    def __init__(self) -> None:
        self.kind, self.lead = array("B"), array("B")
        self.task, self.block, self.place = array("q"), array("q"), array("q")
        self.begin, self.start, self.end, self.cause = array("q"), array("q"), array("q"), array("q")

    def note(
        self, kind: ActivityKind, task: int, place: int, begin: int, start: int, end: int, cause: int,
        lead: Lead = Lead.NONE, block: int = -1,
    ) -> int:  # fmt: skip
        self.kind.append(kind)
        self.lead.append(lead)
        self.task.append(task)
        self.block.append(block)
        self.place.append(place)
        self.begin.append(begin)
        self.start.append(start)
        self.end.append(end)
        self.cause.append(cause)
        return len(self.kind) - 1

    def schedule(self, machine: Machine) -> Schedule:
        import numpy as np

        names = ("task", "block", "place", "begin", "start", "end", "cause")
        columns = {name: np.array(getattr(self, name), np.int64) for name in names}
        kind, lead = (np.array(column, np.uint8) for column in (self.kind, self.lead))
        return Schedule(machine=machine, kind=kind, lead=lead, **columns)


def shape_of(members: int) -> int:
    """Two or more members want one cluster; one alone any core of its kind."""
    if members == CUBE:
        return AIC
    return AIV if members in (VECTOR0, VECTOR1) else MIX


def require_room(work: Work, machine: Machine) -> None:
    """A task whose blocks start together must fit on the chip."""
    import numpy as np

    for task in np.flatnonzero(work.sync).tolist():
        most = machine.clusters * (2 if shape_of(int(work.members[task])) == AIV else 1)
        if work.blocks[task] > most:
            raise InputError(
                f"task {task} starts {work.blocks[task]} blocks at once, and the chip has room for {most}",
                hint="set_require_sync_start needs all of its blocks on cores at the same time",
            )


def machine_of(chip: Chip) -> Machine:
    """A chip's cores, and its schedulers by the [schedule] of its file, which is in nanoseconds."""
    costs = {name: round(chip.schedule(name) * chip.mhz / 1000) for name in SCHEDULE if name != "threads"}
    return Machine(
        round(chip.value("chip.cube_cores")), round(chip.schedule("threads")), **costs,
        hbm=round(chip.value("gm.chip_rate") * RATE), l2=round(chip.value("l2.chip_rate") * RATE),
        walk=round(chip.value("page.walk")), walks=round(WALKS / max(1.0, chip.value("page.turn"))),
    )  # fmt: skip
