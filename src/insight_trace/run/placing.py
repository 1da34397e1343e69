"""Tasks placed on the cores of a chip by the rules of the runtime: a pure function from arrays to arrays.

What happens is a list of activities. Each begins when the one that let it begin has ended, so that going back from the
last one gives a path whose parts add up to the whole run.
"""

from __future__ import annotations

import heapq
from collections import deque

from insight_trace.errors import InputError
from insight_trace.run.schedule import (
    AIC,
    AIV,
    CUBE,
    MIX,
    VECTOR0,
    VECTOR1,
    Activities,
    ActivityKind,
    Lead,
    Machine,
    Schedule,
    Work,
    require_room,
    shape_of,
)
from insight_trace.run.shared_memory import PARTS, WALKS, RunningKernels

_SLOTS = 2  # tasks that a core holds: one runs, one waits behind it


def place(work: Work, machine: Machine) -> Schedule:
    """Places every task. Costs n log n: every activity is made once, and events come from a heap."""
    return _Simulation(work, machine).run()


_SUBMITTED, _VISIBLE, _FREE, _BEGIN, _END = range(5)


class _Simulation:
    def __init__(self, work: Work, machine: Machine) -> None:
        import numpy as np

        self.m = machine
        self.members: list[int] = work.members.tolist()
        self.blocks: list[int] = work.blocks.tolist()
        self.first_time: list[int] = work.first_time.tolist()
        self.times: list[list[int]] = work.times.tolist()
        self.sync: list[bool] = work.sync.tolist()
        self.early: list[bool] = work.early.tolist()
        self.running = RunningKernels(machine.hbm, machine.l2, machine.walks)
        self.pages = work.pages
        self.first_kernel = (np.cumsum(work.blocks) - work.blocks).tolist() if work.pages else []
        self.known: list[set[int]] = [set() for _ in range(machine.clusters)]  # pages
        self.asked = 0  # how often the next end was asked for: an earlier answer holds no more
        demand = work.demand
        self.demand: list[list[list[int]]] | None = None
        if demand is not None:
            self.demand = [demand.part.tolist(), demand.hbm.tolist(), demand.l2.tolist()]
        count = len(self.members)
        self.submission = [machine.submit] * count
        if work.arguments is not None:
            self.submission = [machine.submit + machine.argument * n for n in work.arguments.tolist()]
        self.followers: list[list[int]] = [[] for _ in range(count)]
        self.held_back: list[list[int]] = [[] for _ in range(count)]  # what the orchestrator waits with
        self.waits = [1] * count  # for its submission
        self.unpublished = [1] * count
        self.holds = [0] * count
        for before, after, held in zip(
            work.before.tolist(), work.after.tolist(), work.held.tolist(), strict=True
        ):
            if held:
                self.held_back[before].append(after)
                self.holds[after] += 1
            else:
                self.followers[before].append(after)
                self.waits[after] += 1
                self.unpublished[after] += 1
        self.shapes = [shape_of(m) if m else -1 for m in self.members]
        require_room(work, machine)
        # activities
        self.log = log = Activities()
        self.note, self.kind, self.lead, self.cause = log.note, log.kind, log.lead, log.cause
        self.task, self.block, self.place = log.task, log.block, log.place
        self.begin, self.start, self.end = log.begin, log.start, log.end
        # tasks
        self.to_claim = list(self.blocks)  # blocks without a core
        self.to_publish = list(self.blocks)
        self.to_end = [b * m.bit_count() for b, m in zip(self.blocks, self.members, strict=True)]
        self.next_block = [0] * count
        self.ready_at = [-1] * count  # when it may start, and which activity let it
        self.ready_by = [-1] * count
        self.staged: dict[int, list[int]] = {}  # kernels on cores that wait for their gate
        # cores: how many slots are taken, the kernel placed last, when a slot became free, by which activity
        self.used = [0] * machine.cores
        self.tail = [-1] * machine.cores
        self.freed_by = [-1] * machine.cores
        self.behind: dict[int, int] = {}  # kernel -> the one behind it
        self.lane: dict[int, int] = {}  # kernel that is to begin -> its member's column of times
        # masks of cores with 0 and 1 slots taken, for all threads together
        every = (1 << machine.cores) - 1
        self.with_used = [every, 0]
        self.own = [0] * machine.threads
        for core in range(machine.cores):
            self.own[self.thread_of(core)] |= 1 << core
        self.kind_mask = [0, (1 << machine.clusters) - 1, every ^ ((1 << machine.clusters) - 1)]
        # schedulers
        self.queues: list[deque[int]] = [deque(), deque(), deque()]
        self.early_queues: list[deque[int]] = [deque(), deque(), deque()]
        self.sync_queue: deque[int] = deque()
        self.drained_by = -1
        self.doing = [-1] * machine.threads  # activity
        # dispatch -> core, block, member of its parts; kernel -> the one before it, member; completion -> core, whether last
        self.given: dict[int, list[tuple[int, int, int]]] = {}
        # dispatch of blocks that start together -> whether a core is there for the first time, what ended last on them
        self.together: dict[int, tuple[bool, int]] = {}
        self.done_last = [-1] * machine.threads
        self.visible: list[deque[int]] = [deque() for _ in range(machine.threads)]
        self.events: list[tuple[int, int, int, int]] = []
        self.order = self.submitted = 0
        self.waiting = False  # the orchestrator, for what a task computes
        self.left = count  # tasks that are not done

    def thread_of(self, core: int) -> int:
        n = self.m.clusters
        return (core if core < n else (core - n) // 2) % self.m.threads

    # --- activities and events

    def at(self, time: int, what: int, which: int) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, which))

    def end_of(self, activity: int) -> int:
        return self.end[activity] if activity >= 0 else 0

    def run(self) -> Schedule:
        self.submit_next(0, -1)
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                _, _, what, which = heapq.heappop(self.events)
                if what == _SUBMITTED:
                    task = self.task[which]
                    self.submit_next(now, which)
                    self.published(task, which)
                    self.one_less(task, which)
                elif what == _VISIBLE:
                    self.visible[self.thread_of(self.place[which])].append(which)
                elif what == _BEGIN:
                    self.begin_kernel(which, now)
                elif what == _END:
                    if which == self.asked:
                        self.end_kernels(now)
                else:
                    self.finish(which)
            self.work_at(now)
        if self.left:
            raise InputError(f"{self.left} tasks wait for each other, or for tasks that are not there")
        return self.log.schedule(self.m)

    # --- the orchestrator

    def submit_next(self, now: int, cause: int) -> None:
        """Begins to hand in the next task, unless it has to wait for what a task computes."""
        task = self.submitted
        self.waiting = task < len(self.members) and self.holds[task] > 0
        if task == len(self.members) or self.waiting:
            return
        self.submitted += 1
        end = now + self.submission[task]
        if self.members[task] and self.waits[task] == 1:  # for this alone
            end += self.m.ready
        activity = self.note(ActivityKind.SUBMIT, task, -1, now, now, end, cause)
        self.at(end, _SUBMITTED, activity)

    # --- tasks

    def one_less(self, task: int, activity: int) -> None:
        """One thing less that the task waits for; the last one makes it ready."""
        self.waits[task] -= 1
        if self.waits[task]:
            return
        self.ready_at[task], self.ready_by[task] = self.end_of(activity), activity
        if not self.members[task]:
            self.completed(task, activity)
        elif self.sync[task]:
            self.sync_queue.append(task)
        else:
            if self.to_claim[task]:
                self.queues[self.shapes[task]].append(task)
            for kernel in self.staged.pop(task, ()):
                if kernel in self.given:  # the one before it on its core may have let it start already
                    self.try_start(kernel)

    def published(self, task: int, activity: int) -> None:
        """The submission, or a producer all of whose blocks are on cores: what an early task waits for."""
        self.unpublished[task] -= 1
        if self.early[task] and not self.sync[task] and self.members[task] and not self.unpublished[task]:
            self.ready_by[task] = activity  # for a place on a core; it may start later
            self.early_queues[self.shapes[task]].append(task)

    def completed(self, task: int, activity: int) -> None:
        for follower in self.followers[task]:
            if not self.members[task]:
                self.published(follower, activity)
            self.one_less(follower, activity)
        self.left -= 1
        for later in self.held_back[task]:
            self.holds[later] -= 1
            if self.waiting and later == self.submitted and not self.holds[later]:
                self.submit_next(self.end_of(activity), activity)

    # --- schedulers

    def work_at(self, now: int) -> None:
        """Threads that have nothing to do take up ends first, then work for idle cores, then for slots behind others."""
        for thread in range(self.m.threads):
            while self.doing[thread] < 0 and self.visible[thread]:
                self.take_note(thread, now)
        while self.any_work():
            acted = False
            for take in (self.take_sync, self.take_idle, self.take_pending, self.take_early):
                for thread in range(self.m.threads):
                    if self.doing[thread] < 0 and take(thread, now):
                        acted = True
                if acted:
                    break
            if not acted:
                return

    def any_work(self) -> bool:
        queues = self.queues
        return bool(
            (queues[0] or queues[1] or queues[2] or self.sync_queue or any(self.early_queues))
            and min(self.doing) < 0
        )

    def take_note(self, thread: int, now: int) -> None:
        kernel = self.visible[thread].popleft()
        task = self.task[kernel]
        self.to_end[task] -= 1
        cost = self.m.read + (0 if self.to_end[task] else self.m.complete)
        seen = self.end[kernel] + self.m.seen
        if seen == now:
            activity = self.note(
                ActivityKind.COMPLETE, task, thread, self.end[kernel], now, now + cost, kernel, Lead.SEEN
            )
        else:  # the thread was busy with something else
            activity = self.note(
                ActivityKind.COMPLETE, task, thread, now, now, now + cost, self.done_last[thread]
            )
        self.given[activity] = [(self.place[kernel], -1, int(not self.to_end[task]))]
        self.busy(thread, activity)

    def busy(self, thread: int, activity: int) -> None:
        self.doing[thread] = activity
        if self.end[activity] == self.start[activity]:
            self.finish(activity)
        else:
            self.at(self.end[activity], _FREE, activity)

    def finish(self, activity: int) -> None:
        """What a scheduler's activity leaves behind."""
        thread, task = self.place[activity], self.task[activity]
        self.doing[thread] = -1
        self.done_last[thread] = activity
        parts = self.given.pop(activity)
        if self.kind[activity] == ActivityKind.COMPLETE:
            core, _, last = parts[0]
            self.take_slots(core, -1)
            self.freed_by[core] = activity
            if last:
                self.completed(task, activity)
            return
        if self.sync[task]:  # all as late as the slowest
            before = [self.tail[core] for core, _, _ in parts]
            self.together[activity] = min(before) < 0, max(before, key=self.end_of)
        for core, block, member in parts:
            self.put(task, block, member, core, activity)
        self.to_publish[task] -= len({block for _, block, _ in parts})
        if not self.to_publish[task]:
            for follower in self.followers[task]:
                self.published(follower, activity)

    def take_slots(self, core: int, change: int) -> None:
        bit, before = 1 << core, self.used[core]
        after = before + change
        self.used[core] = after
        if before < _SLOTS:
            self.with_used[before] &= ~bit
        if after < _SLOTS:
            self.with_used[after] |= bit

    # --- which cores

    def take_sync(self, thread: int, now: int) -> bool:
        if not self.sync_queue or self.end_of(self.drained_by) > now:
            return False
        task = self.sync_queue[0]
        places = self.places(task, self.with_used[0], self.blocks[task])
        if len(places) < self.blocks[task]:
            return False
        self.sync_queue.popleft()
        self.drained_by = self.give(thread, task, places, now)
        return True

    def drains(self, now: int) -> bool:
        """Nothing else is given out from when a task wants to start together until its blocks are on cores."""
        return bool(self.sync_queue) or self.end_of(self.drained_by) > now

    def take_idle(self, thread: int, now: int) -> bool:
        return not self.drains(now) and self.take(thread, now, self.queues, self.with_used[0])

    def take_pending(self, thread: int, now: int) -> bool:
        free = self.with_used[0] | self.with_used[1]
        return not self.drains(now) and self.take(thread, now, self.queues, free)

    def take_early(self, thread: int, now: int) -> bool:
        if self.drains(now) or any(self.queues):
            return False
        for queue in self.early_queues:
            while queue and self.ready_at[queue[0]] >= 0:
                queue.popleft()  # it is an ordinary task by now
        idle, free = self.with_used[0], self.with_used[0] | self.with_used[1]
        return any(self.take(thread, now, self.early_queues, cores) for cores in (idle, free))

    def take(self, thread: int, now: int, queues: list[deque[int]], free: int) -> bool:
        """Gives the cores of the thread the next task that fits on some of them."""
        free &= self.own[thread]
        for shape in (MIX, AIC, AIV):
            queue = queues[shape]
            if not queue:
                continue
            task = queue[0]
            places = self.places(task, free, self.to_claim[task])
            if places:
                queue.popleft()
                if len(places) < self.to_claim[task]:
                    queue.append(task)
                self.give(thread, task, places, now)
                return True
        return False

    def places(self, task: int, free: int, most: int) -> list[list[tuple[int, int]]]:
        """For each block that fits its cores and members, the lowest first."""
        shape, members = self.shapes[task], self.members[task]
        found: list[list[tuple[int, int]]] = []
        if shape != MIX:
            free &= self.kind_mask[shape]
            while free and len(found) < most:
                low = free & -free
                free ^= low
                found.append([(low.bit_length() - 1, members)])
            return found
        wanted = [m for m in (CUBE, VECTOR0, VECTOR1) if members & m]
        for cluster in range(self.m.clusters):
            if len(found) == most:
                break
            cores = [(self.m.core(cluster, m), m) for m in wanted]
            if all(free >> core & 1 for core, _ in cores):
                found.append(cores)
        return found

    def give(self, thread: int, task: int, places: list[list[tuple[int, int]]], now: int) -> int:
        """The thread starts to hand blocks to these cores; which takes it some time."""
        first = self.next_block[task]
        parts = [(core, first + i, member) for i, cores in enumerate(places) for core, member in cores]
        why = [self.ready_by[task], self.done_last[thread], self.drained_by]
        for core, _, _ in parts:
            self.take_slots(core, 1)
            why.insert(1, self.freed_by[core])
        cause = max(why, key=self.end_of)
        end = now + self.m.dispatch + self.m.write * len(parts)
        activity = self.note(ActivityKind.DISPATCH, task, thread, self.end_of(cause), now, end, cause)
        self.next_block[task] += len(places)
        self.to_claim[task] -= len(places)
        self.given[activity] = parts
        self.busy(thread, activity)
        return activity

    # --- cores

    def put(self, task: int, block: int, member: int, core: int, activity: int) -> None:
        """A block reaches its core: it runs when the one before it has ended, and its task may."""
        kernel = self.note(ActivityKind.KERNEL, task, core, -1, -1, -1, activity, block=block)
        before = self.tail[core]
        self.tail[core] = kernel
        self.given[kernel] = [(before, member, 0)]
        if before >= 0:
            self.behind[before] = kernel
        self.try_start(kernel)

    def try_start(self, kernel: int) -> None:
        task = self.task[kernel]
        before, member, _ = self.given[kernel][0]
        if self.ready_at[task] < 0:
            self.staged.setdefault(task, []).append(kernel)
            return
        if before >= 0 and self.end[before] < 0:
            return  # asked again when that one has ended
        m, dispatch = self.m, self.cause[kernel]
        given = self.end[dispatch]
        if self.ready_at[task] > self.start[dispatch]:  # it was given to the core before it might start
            gate = self.ready_by[task] if self.ready_at[task] >= given else dispatch
            start, cause, lead = self.end[gate] + m.doorbell, gate, Lead.DOORBELL
        else:
            first, before = self.together.get(dispatch, (before < 0, before))
            start, cause, lead = given + m.start + (m.first if first else 0), dispatch, Lead.START
        if before >= 0 and self.end[before] + m.switch > start:
            start, cause, lead = self.end[before] + m.switch, before, Lead.SWITCH
        self.begin[kernel], self.start[kernel] = self.end[cause], start
        self.cause[kernel], self.lead[kernel] = cause, lead
        del self.given[kernel]
        self.lane[kernel] = (CUBE, VECTOR0, VECTOR1).index(member)
        self.at(start, _BEGIN, kernel)

    def begin_kernel(self, kernel: int, now: int) -> None:
        row, lane = self.first_time[self.task[kernel]] + self.block[kernel], self.lane.pop(kernel)
        part, hbm, l2 = [column[row][lane] for column in self.demand] if self.demand else (0, 0, 0)
        cycles, new = self.times[row][lane], self.new_pages(kernel, lane)
        if not new or not cycles:
            self.running.begin(kernel, now, cycles, part, hbm, l2)
        else:  # its loads wait for one page after the other
            longer = cycles + new * self.m.walk
            part = round((part * cycles + PARTS * new * self.m.walk) / longer)
            rates = hbm * cycles // longer, l2 * cycles // longer, new * WALKS // longer
            self.running.begin(kernel, now, longer, part, *rates)
        self.ask_for_ends()

    def new_pages(self, kernel: int, lane: int) -> int:
        """How many pages the kernel loads from that its cluster has not seen in this run."""
        if self.pages is None:
            return 0
        core, n = self.place[kernel], self.m.clusters
        known = self.known[core if core < n else (core - n) // 2]
        before = len(known)
        known.update(self.pages.of((self.first_kernel[self.task[kernel]] + self.block[kernel]) * 3 + lane))
        return len(known) - before

    def end_kernels(self, now: int) -> None:
        for kernel in self.running.ended(now):
            self.end[kernel] = now
            self.at(now + self.m.seen, _VISIBLE, kernel)
            after = self.behind.pop(kernel, None)
            if after is not None and after in self.given:
                self.try_start(after)
        self.ask_for_ends()

    def ask_for_ends(self) -> None:
        at = self.running.next_end()
        if at is not None:
            self.asked += 1
            self.at(at, _END, self.asked)
