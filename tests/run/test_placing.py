"""Schedules worked out by hand hold to the cycle, and no schedule breaks the rules of a chip."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight_trace.chips import load_chip
from insight_trace.errors import InputError
from insight_trace.run.critical_tasks import busy, critical_path, longest_chain, shares
from insight_trace.run.pages import TaskPages
from insight_trace.run.placing import place
from insight_trace.run.schedule import (
    CUBE,
    VECTOR0,
    VECTOR1,
    ActivityKind,
    Machine,
    Schedule,
    Work,
    machine_of,
)
from insight_trace.run.shared_memory import RATE, WALKS, MemoryDemand

MIX = CUBE | VECTOR0 | VECTOR1
BOTH_VECTORS = VECTOR0 | VECTOR1
# Cube cores 0 and 1; vector cores 2 and 3 of the first cluster, 4 and 5 of the second.
TWO = Machine(clusters=2, threads=1)
ONE = Machine(clusters=1, threads=1)


@dataclass(frozen=True)
class T:
    members: int
    cycles: int
    blocks: int = 1
    after: tuple[int, ...] = ()
    sync: bool = False
    early: bool = False
    held: tuple[int, ...] = ()


def work_of(tasks: list[T]) -> Work:
    times, first = [], []
    for task in tasks:
        first.append(len(times))
        times += [[task.cycles if task.members & m else 0 for m in (CUBE, VECTOR0, VECTOR1)]] * task.blocks
    edges = [(before, number, False) for number, task in enumerate(tasks) for before in task.after]
    edges += [(before, number, True) for number, task in enumerate(tasks) for before in task.held]
    columns = [
        np.array([edge[i] for edge in edges], kind) for i, kind in enumerate((np.int64, np.int64, bool))
    ]
    return Work(
        np.array([task.members for task in tasks], np.uint8),
        np.array([task.blocks for task in tasks], np.int64),
        np.array(first, np.int64),
        np.array(times, np.int64).reshape(-1, 3),
        np.array([task.sync for task in tasks], bool),
        np.array([task.early for task in tasks], bool),
        *columns,
    )


def kernels_of(schedule: Schedule) -> list[tuple[int, int, int, int]]:
    """Task, core, start and end of everything that ran."""
    rows = np.flatnonzero(schedule.kind == ActivityKind.KERNEL)
    columns = (schedule.task, schedule.place, schedule.start, schedule.end)
    return sorted(zip(*(column[rows].tolist() for column in columns), strict=True))


C, V = CUBE, VECTOR0
BY_HAND: dict[str, tuple[Machine, list[T], list[tuple[int, int, int, int]], int]] = {
    "a chain stays on the lowest core": (
        TWO, [T(C, 10), T(C, 20, after=(0,)), T(C, 30, after=(1,))],
        [(0, 0, 0, 10), (1, 0, 10, 30), (2, 0, 30, 60)], 60,
    ),
    "a fan-out uses the cores side by side": (
        TWO, [T(C, 10), T(V, 5, after=(0,)), T(V, 5, after=(0,)), T(V, 5, after=(0,))],
        [(0, 0, 0, 10), (1, 2, 10, 15), (2, 3, 10, 15), (3, 4, 10, 15)], 15,
    ),
    "a task waits for the last of its producers": (
        TWO, [T(C, 10), T(C, 20), T(V, 5, after=(0, 1))], [(0, 0, 0, 10), (1, 1, 0, 20), (2, 2, 20, 25)], 25,
    ),
    "a diamond": (
        TWO, [T(C, 4), T(V, 7, after=(0,)), T(V, 9, after=(0,)), T(C, 2, after=(1, 2))],
        [(0, 0, 0, 4), (1, 2, 4, 11), (2, 3, 4, 13), (3, 0, 13, 15)], 15,
    ),
    "more tasks than cores wait behind running ones, two deep": (
        TWO, [T(C, 10)] * 5,
        [(0, 0, 0, 10), (1, 1, 0, 10), (2, 0, 10, 20), (3, 1, 10, 20), (4, 0, 20, 30)], 30,
    ),
    "a task that waits behind a long one stays there though another core is free sooner": (
        TWO, [T(C, 30), T(C, 10), T(C, 10), T(C, 10)],
        [(0, 0, 0, 30), (1, 1, 0, 10), (2, 0, 30, 40), (3, 1, 10, 20)], 40,
    ),
    "a mix takes the cores of one cluster": (
        TWO, [T(MIX, 10), T(MIX, 20)],
        [(0, 0, 0, 10), (0, 2, 0, 10), (0, 3, 0, 10), (1, 1, 0, 20), (1, 4, 0, 20), (1, 5, 0, 20)], 20,
    ),
    "a mix comes before tasks of one core": (
        TWO, [T(C, 20), T(C, 30), T(MIX, 10)],
        [(0, 1, 0, 20), (1, 0, 10, 40), (2, 0, 0, 10), (2, 2, 0, 10), (2, 3, 0, 10)], 40,
    ),
    "members of a mix start apart where one of its cores is at work": (
        TWO, [T(C, 20), T(C, 30), T(V, 1), T(MIX, 10, after=(2,))],
        [(0, 0, 0, 20), (1, 1, 0, 30), (2, 2, 0, 1), (3, 0, 20, 30), (3, 2, 1, 11), (3, 3, 1, 11)], 30,
    ),
    "two vector members want both vector cores of a cluster": (
        TWO, [T(V, 10), T(V, 1), T(BOTH_VECTORS, 4, after=(1,))],
        [(0, 2, 0, 10), (1, 3, 0, 1), (2, 4, 1, 5), (2, 5, 1, 5)], 10,
    ),
    "blocks that start together wait for the core that changes over last": (
        replace(TWO, switch=5), [T(C, 10), T(MIX, 10, after=(0,), sync=True)],
        [(0, 0, 0, 10), (1, 0, 15, 25), (1, 2, 15, 25), (1, 3, 15, 25)], 25,
    ),
    "blocks of one task run on all cores": (
        TWO, [T(V, 10, blocks=4)], [(0, 2, 0, 10), (0, 3, 0, 10), (0, 4, 0, 10), (0, 5, 0, 10)], 10,
    ),
    "more blocks than cores wait behind the first ones": (
        TWO, [T(V, 10, blocks=7)],
        [(0, 2, 0, 10), (0, 2, 10, 20), (0, 3, 0, 10), (0, 3, 10, 20), (0, 4, 0, 10), (0, 4, 10, 20), (0, 5, 0, 10)],
        20,
    ),
    "a task wider than the chip and its slots takes three waves": (
        TWO, [T(C, 10, blocks=5)],
        [(0, 0, 0, 10), (0, 0, 10, 20), (0, 0, 20, 30), (0, 1, 0, 10), (0, 1, 10, 20)], 30,
    ),
    "blocks of a mix take a cluster each": (
        TWO, [T(MIX, 10, blocks=3)],
        [(0, 0, 0, 10), (0, 0, 10, 20), (0, 1, 0, 10), (0, 2, 0, 10), (0, 2, 10, 20), (0, 3, 0, 10),
         (0, 3, 10, 20), (0, 4, 0, 10), (0, 5, 0, 10)], 20,
    ),
    "a task that starts together waits until all of its cores are idle, and the others wait for it": (
        TWO, [T(C, 10), T(V, 1), T(C, 5, blocks=2, after=(1,), sync=True), T(V, 2), T(C, 3, after=(3,))],
        [(0, 0, 0, 10), (1, 2, 0, 1), (2, 0, 10, 15), (2, 1, 10, 15), (3, 3, 0, 2), (4, 0, 15, 18)], 18,
    ),
    "one scheduler gives out one task after the other": (
        replace(TWO, dispatch=4), [T(C, 10), T(C, 10)], [(0, 0, 4, 14), (1, 1, 8, 18)], 18,
    ),
    "two schedulers give tasks to their own clusters at the same time": (
        Machine(2, 2, dispatch=4), [T(C, 10), T(C, 10)], [(0, 0, 4, 14), (1, 1, 4, 14)], 14,
    ),
    "every core that gets a block costs a write": (
        replace(TWO, dispatch=4, write=3), [T(V, 10, blocks=4)],
        [(0, 2, 16, 26), (0, 3, 16, 26), (0, 4, 16, 26), (0, 5, 16, 26)], 26,
    ),
    "tasks come as fast as they are submitted": (
        replace(TWO, submit=3), [T(C, 10), T(C, 10), T(V, 10)], [(0, 0, 3, 13), (1, 1, 6, 16), (2, 2, 9, 19)], 19,
    ),
    "a follower starts when the end was seen": (
        replace(TWO, seen=4), [T(C, 10), T(C, 10, after=(0,))], [(0, 0, 0, 10), (1, 0, 14, 24)], 28,
    ),
    "a task from the slot behind starts after a switch": (
        replace(ONE, start=3, switch=2), [T(C, 10), T(C, 10)], [(0, 0, 3, 13), (1, 0, 15, 25)], 25,
    ),
    "the first task of a core starts later": (
        replace(ONE, start=3, first=100), [T(C, 10), T(C, 10, after=(0,))], [(0, 0, 103, 113), (1, 0, 116, 126)], 126,
    ),
    "every end is read, and the last one completes the task": (
        replace(TWO, read=1, complete=2), [T(C, 10, blocks=2), T(V, 5, after=(0,))],
        [(0, 0, 0, 10), (0, 1, 0, 10), (1, 2, 14, 19)], 22,
    ),
    "all costs of a chain of two": (
        Machine(2, 1, submit=1, dispatch=2, write=1, start=3, first=100, seen=4, read=1, complete=5),
        [T(C, 10), T(C, 20, after=(0,))], [(0, 0, 107, 117), (1, 0, 133, 153)], 163,
    ),
    "without early dispatch a follower is given out after its producer": (
        replace(TWO, dispatch=2, start=3, seen=4, doorbell=1), [T(C, 10), T(V, 5, after=(0,))],
        [(0, 0, 5, 15), (1, 2, 24, 29)], 33,
    ),
    "with early dispatch it stands on its core and is told to start": (
        replace(TWO, dispatch=2, start=3, seen=4, doorbell=1), [T(C, 10), T(V, 5, after=(0,), early=True)],
        [(0, 0, 5, 15), (1, 2, 20, 25)], 29,
    ),
    "early tasks are given out when no others are left": (
        replace(TWO, dispatch=2), [T(C, 3), T(V, 5, after=(0,), early=True), T(C, 3)],
        [(0, 0, 2, 5), (1, 2, 6, 11), (2, 1, 4, 7)], 11,
    ),
    "a task without a kernel takes no time": (
        TWO, [T(C, 10), T(0, 0, after=(0,)), T(C, 5, after=(1,))], [(0, 0, 0, 10), (2, 0, 10, 15)], 15,
    ),
    "an orchestration that reads a result submits its next task afterwards": (
        replace(TWO, submit=3), [T(C, 10), T(V, 2), T(C, 10, held=(0,)), T(V, 1)],
        [(0, 0, 3, 13), (1, 2, 6, 8), (2, 0, 16, 26), (3, 2, 19, 20)], 26,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_a_schedule_worked_out_by_hand_holds_to_the_cycle(name):
    machine, tasks, expected, total = BY_HAND[name]
    schedule = place(work_of(tasks), machine)
    assert kernels_of(schedule) == sorted(expected)
    assert schedule.total == total
    assert sum(part.cycles for part in critical_path(schedule)) == total


def test_the_path_of_a_chain_says_what_each_cycle_went_to():
    machine, tasks, _, total = BY_HAND["all costs of a chain of two"]
    parts = critical_path(place(work_of(tasks), machine))
    assert shares(parts) == {
        "submit": 1, "dispatch": 6, "kernel": 30, "complete": 12, "start": 106, "seen": 8,
    }  # fmt: skip
    assert parts[0].begin == 0
    assert parts[-1].end == total
    assert all(one.end == other.begin for one, other in itertools.pairwise(parts))


def test_tasks_that_wait_for_each_other_are_refused():
    with pytest.raises(InputError, match="2 tasks wait for each other"):
        place(work_of([T(C, 1, after=(1,)), T(C, 1, after=(0,))]), TWO)


def test_more_blocks_at_once_than_there_are_cores_are_refused():
    with pytest.raises(InputError, match="room for 2"):
        place(work_of([T(C, 1, blocks=3, sync=True)]), TWO)


def test_every_chip_says_what_scheduling_costs():
    for target, threads in (("a2a3", 3), ("a5", 4)):
        machine = machine_of(load_chip(target=target))
        assert machine.threads == threads
        assert machine.dispatch > machine.start > machine.write > 0
        assert machine.hbm < machine.l2


def test_a_task_that_waits_for_nothing_and_each_of_its_tensors_cost_the_orchestrator_more():
    machine = replace(TWO, submit=3, ready=5, argument=2)
    work = replace(work_of([T(C, 10), T(C, 10, after=(0,)), T(0, 0)]), arguments=np.array([2, 1, 0]))
    schedule = place(work, machine)
    submitted = schedule.kind == ActivityKind.SUBMIT
    assert (schedule.end - schedule.start)[submitted].tolist() == [3 + 2 * 2 + 5, 3 + 2, 3]


def crowd(tasks: list[T], part: int, hbm: int, l2: int = 0) -> Work:
    """Every kernel asks for so many bytes of HBM and L2 a cycle in so many eighths of its time."""
    work = work_of(tasks)
    rows = np.ones(work.times.shape, np.int64) * (work.times > 0)
    return replace(
        work, demand=MemoryDemand((rows * part).astype(np.uint8), rows * hbm * RATE, rows * l2 * RATE)
    )


@pytest.mark.parametrize(
    ("part", "hbm", "l2", "cycles"),
    [
        (8, 50, 0, 1000),  # two of them get all they ask for
        (8, 100, 0, 2000),  # two share what one could have
        (4, 150, 0, 3000),  # half of the time moves data: that half takes five times as long
        (8, 0, 400, 4000),
        (0, 100, 0, 1000),  # a kernel that never waits for data is not slowed down by the others
    ],
)
def test_kernels_that_run_at_the_same_time_share_what_the_chip_gives(part, hbm, l2, cycles):
    machine = replace(TWO, hbm=100 * RATE, l2=200 * RATE)
    schedule = place(crowd([T(C, 1000), T(C, 1000)], part, hbm, l2), machine)
    assert schedule.total == pytest.approx(cycles, rel=0.02)


def test_a_kernel_is_slowed_down_only_while_others_run():
    machine = replace(TWO, hbm=100 * RATE)
    schedule = place(crowd([T(C, 1000), T(C, 3000)], 8, 100), machine)
    # until 2000 both at half their pace, then the longer one alone
    assert [end for *_, end in kernels_of(schedule)] == pytest.approx([2000, 4000], rel=0.02)


def pages_of(*kernels: list[int]) -> TaskPages:
    """Of tasks of one block, the pages that their cube members load from."""
    members = [pages for kernel in kernels for pages in (kernel, [], [])]
    first = np.cumsum([0, *map(len, members)])
    return TaskPages(first, np.array([page for pages in members for page in pages], np.int64))


def test_a_cluster_looks_each_page_up_once():
    one = replace(TWO, clusters=1, walk=50)
    work = replace(work_of([T(C, 1000), T(C, 1000, after=(0,))]), pages=pages_of([7, 9], [9, 11]))
    spans = [end - start for *_, start, end in kernels_of(place(work, one))]
    assert spans == [1000 + 2 * 50, 1000 + 50]


def test_clusters_look_pages_up_in_turns():
    machine = replace(TWO, walk=100, walks=WALKS // 100)  # one walk of the chip in 100 cycles
    work = work_of([T(C, 100), T(C, 100)])
    work = replace(work, demand=MemoryDemand(*(np.zeros(work.times.shape, np.int64) for _ in range(3))))
    work = replace(work, pages=pages_of(list(range(50)), list(range(50))))
    # 50 walks of two clusters: no more than one in 100 cycles
    assert place(work, machine).total == pytest.approx(2 * 50 * 100, rel=0.05)


# simpler pull request 694: microseconds of the run and of its orchestrator; what the kernels take is what the engine says
# of them (25.7 k and 18.1 k cycles of 128 x 128 products and sums, four at a time)
PUBLISHED = {
    "alternating_matmul_add Case1": (
        [T(C, 25_695), T(V, 18_058)] * 500, [3, 3] * 500, 789.4, 788.4,
    ),
    "benchmark_bgemm Case0": (
        [T(*((C, 26_486) if i % 2 == 0 else (V, 15_852)),
           after=(() if i % 2 == 0 else (i - 1,)) + ((i - 2,) if i % 4 == 3 else ())) for i in range(1000)],
        [4, 4] * 500, 598.6, 549.2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_run_takes_as_long_as_published_and_for_the_published_reason(name):
    tasks, arguments, micros, orchestrator = PUBLISHED[name]
    chip = load_chip(target="a2a3")
    schedule = place(replace(work_of(tasks), arguments=np.array(arguments)), machine_of(chip))
    assert schedule.total / chip.mhz == pytest.approx(micros, rel=0.15)
    submits = schedule.kind == ActivityKind.SUBMIT
    spent = int((schedule.end - schedule.start)[submits].sum())
    assert spent / schedule.total == pytest.approx(orchestrator / micros, abs=0.08)
    assert shares(critical_path(schedule))["submit"] > 0.85 * schedule.total


@st.composite
def runs(draw):
    cost = st.integers(0, 9)
    machine = Machine(draw(st.integers(1, 3)), 1, *(draw(cost) for _ in range(12)))
    machine = replace(machine, threads=draw(st.integers(1, machine.clusters)))
    tasks = []
    for number in range(draw(st.integers(1, 14))):
        members = draw(st.sampled_from([C, V, MIX, BOTH_VECTORS, C | V, VECTOR1, 0]))
        sync = draw(st.booleans()) and members != 0
        most = machine.clusters if sync else 9
        earlier = st.sets(st.integers(0, number - 1), max_size=3) if number else st.just(set())
        tasks.append(
            T(
                members,
                draw(st.integers(0, 20)) if members else 0,
                draw(st.integers(1, most)) if members else 1,
                tuple(sorted(draw(earlier))),
                sync,
                draw(st.booleans()),
                tuple(sorted(draw(earlier))) if draw(st.integers(0, 4)) == 0 else (),
            )
        )
    return machine, tasks


@settings(max_examples=80, deadline=None)
@given(runs())
def test_no_schedule_breaks_the_rules_of_a_chip(run):
    machine, tasks = run
    work = work_of(tasks)
    schedule = place(work, machine)
    ran = kernels_of(schedule)
    # every member of every block ran once
    for number, task in enumerate(tasks):
        mine = [row for row in ran if row[0] == number]
        assert len(mine) == task.blocks * task.members.bit_count()
        assert all(end - start == task.cycles for _, _, start, end in mine)
        # no task before its producers, nor before the orchestrator had what it waited for
        for before in (*task.after, *task.held):
            ends = [end for other, _, _, end in ran if other == before]
            assert all(start >= end for _, _, start, _ in mine for end in ends)
        if task.sync:
            assert len({start for _, _, start, _ in mine}) == 1
    # no core does two things at once
    by_core = sorted((core, start, end) for _, core, start, end in ran)
    for (one, _, end), (other, start, _) in itertools.pairwise(by_core):
        assert one != other or start >= end
    # no scheduler, and no orchestrator, does two things at once
    for kinds in ((ActivityKind.DISPATCH, ActivityKind.COMPLETE), (ActivityKind.SUBMIT,)):
        rows = np.flatnonzero(np.isin(schedule.kind, kinds))
        spans = sorted(
            zip(*(c[rows].tolist() for c in (schedule.place, schedule.start, schedule.end)), strict=True)
        )
        assert all(a[0] != b[0] or a[2] <= b[1] for a, b in itertools.pairwise(spans))
    # no run is shorter than its longest chain, nor than its work shared among all cores
    assert schedule.total >= longest_chain(work, schedule).cycles
    assert schedule.total * machine.cores >= int(busy(schedule).sum())
    # the path's parts lie end to end from the beginning to the end
    parts = critical_path(schedule)
    assert sum(part.cycles for part in parts) == schedule.total
    # what an activity waited for ended where it begins
    causes = np.where(schedule.cause >= 0, schedule.end[schedule.cause], 0)
    assert (schedule.begin == causes).all()
    assert (schedule.start >= schedule.begin).all()


@given(runs())
def test_the_same_tasks_give_the_same_schedule(run):
    machine, tasks = run
    one, other = place(work_of(tasks), machine), place(work_of(tasks), machine)
    assert all(
        (getattr(one, c) == getattr(other, c)).all() for c in ("task", "place", "start", "end", "cause")
    )
