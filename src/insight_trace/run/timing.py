"""How long every task of a run takes: each distinct dispatch is simulated once, wherever jobs are run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from insight_trace.arguments.content import Zero
from insight_trace.errors import JobError
from insight_trace.executor import Executor, required, run_named
from insight_trace.executor.journal import Journal
from insight_trace.model import Role
from insight_trace.run.distinct import Dispatches
from insight_trace.run.timing_job import Timed, TimingJob, digest, run_timing_job
from insight_trace.simulate.embedded.toolchain import Toolchain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class NeedsValuesError(Exception):
    """A kernel is steered by what another one computes."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A distinct dispatch: its job, what it took, and the tasks (places in Dispatches.tasks) that are the same."""

    job: TimingJob
    timed: Timed
    tasks: NDArray[np.int64]


@dataclass(slots=True)
class _Form:
    pending: NDArray[np.int64]
    given: frozenset[int] = frozenset()
    computes: bool = False


def time_all(
    dispatches: Dispatches,
    executor: Executor,
    journal: Journal[Timed],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    assumed: Mapping[str, int] = MappingProxyType({}),
) -> list[Variant]:
    """Every task in exactly one variant. `progress` gets how many jobs are done and how many are known to be needed.

    `assumed` has the cycles of kernels that are not simulated, by name."""
    toolchain = Toolchain.find()
    forms, found = _without_assumed([_Form(group) for group in dispatches.forms()], dispatches, assumed)
    done = 0
    while forms:
        jobs = [dispatches.job(int(form.pending[0]), form.given, computes=form.computes) for form in forms]
        named = [(digest(job, toolchain), job) for job in jobs]
        progress(done, done + len(jobs))
        results = run_named(executor, run_timing_job, named, Timed, journal, lambda timed: not timed.failure)
        for place, timed in required(results):
            _take(forms[place], jobs[place], timed, dispatches, found)
            done += 1
            progress(done, done + sum(len(form.pending) > 0 for form in forms))
        forms = [form for form in forms if len(form.pending)]
    return sorted(found, key=lambda variant: int(variant.tasks[0]))


def _without_assumed(
    forms: list[_Form], dispatches: Dispatches, assumed: Mapping[str, int]
) -> tuple[list[_Form], list[Variant]]:
    """The forms to be timed, and those of kernels whose time is given: a mix takes what the longest such member does."""
    left: list[_Form] = []
    found: list[Variant] = []
    for form in forms:
        kernels = dispatches.members(int(form.pending[0]))
        given = [assumed[kernel.name] for kernel in kernels if kernel.name in assumed]
        if not given:
            left.append(form)
            continue
        job = dispatches.job(int(form.pending[0]))
        times = ((max(given),) * len(kernels),) * job.job.arguments.block_count
        found.append(Variant(job, Timed(max(given), times, {}, 1.0, 0), form.pending))
    return left, found


def _take(form: _Form, job: TimingJob, timed: Timed, dispatches: Dispatches, found: list[Variant]) -> None:
    """Takes the tasks that this result is of out of the form, or notes what its job lacked."""
    import numpy as np

    if timed.failure:
        raise JobError(f"{job.job.name} cannot be timed: {timed.failure}")
    first = int(form.pending[0])
    inputs = frozenset(t.slot for t in job.job.arguments.tensors if t.role != Role.OUTPUT)
    looked = inputs if timed.looks_on_chip else frozenset(timed.reads) & inputs
    content = {t.slot for t in job.job.arguments.tensors if not isinstance(t.content, Zero)}
    try:
        dispatches.steered_by(first, looked)
    except KeyError as slot:
        raise NeedsValuesError(f"{job.job.name} looks at slot {slot}, which another kernel writes") from None
    if looked - content or (timed.looks_on_chip and not job.computes):
        form.given, form.computes = form.given | looked, timed.looks_on_chip
        return
    mine = dispatches.steered_by(first, looked)
    same = np.array([not looked or dispatches.steered_by(int(p), looked) == mine for p in form.pending], bool)
    found.append(Variant(job, timed, form.pending[same]))
    form.pending = form.pending[~same]
