"""How long every task of a run takes: each distinct dispatch is simulated once, wherever jobs are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from insight_trace.errors import JobError
from insight_trace.model import Role
from insight_trace.run.distinct import Dispatches
from insight_trace.run.job_journal import JobJournal
from insight_trace.run.timing_job import Timed, TimingJob, digest
from insight_trace.simulate.embedded.toolchain import Toolchain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Runs jobs somewhere and gives each its result as it comes, with its place in what was asked for.
Execute = Callable[[Sequence[TimingJob]], Iterable[tuple[int, Timed]]]


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
    execute: Execute,
    journal: JobJournal[Timed],
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
        names = [digest(job, toolchain) for job in jobs]
        progress(done, done + len(jobs))
        for place, timed in _results(jobs, names, execute, journal):
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
        times = ((max(given),) * len(kernels),) * job.block_count
        found.append(Variant(job, Timed(max(given), times, {}, 1.0, 0), form.pending))
    return left, found


def _results(
    jobs: Sequence[TimingJob], names: Sequence[str], execute: Execute, journal: JobJournal[Timed]
) -> Iterator[tuple[int, Timed]]:
    """What the journal has, then the others as they are done; equal jobs are run once."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name or f"no name: {place}", []).append(place)
    new = []
    for name, wanted in places.items():
        known = journal.get(name)
        if known is None:
            new.append(name)
        else:
            yield from ((place, known) for place in wanted)
    for number, timed in execute([jobs[places[name][0]] for name in new]):
        if names[places[new[number]][0]] and not timed.failure:
            journal.add(new[number], timed)
        yield from ((place, timed) for place in places[new[number]])


def _take(form: _Form, job: TimingJob, timed: Timed, dispatches: Dispatches, found: list[Variant]) -> None:
    """Takes the tasks that this result is of out of the form, or notes what its job lacked."""
    import numpy as np

    if timed.failure:
        raise JobError(f"{job.name} cannot be timed: {timed.failure}")
    first = int(form.pending[0])
    inputs = frozenset(t.slot for t in job.tensors if t.role != Role.OUTPUT)
    looked = inputs if timed.looks_on_chip else frozenset(timed.reads) & inputs
    content = {t.slot for t in job.tensors if t.content is not None}
    try:
        dispatches.steered_by(first, looked)
    except KeyError as slot:
        raise NeedsValuesError(f"{job.name} looks at slot {slot}, which another kernel writes") from None
    if looked - content or (timed.looks_on_chip and not job.computes):
        form.given, form.computes = form.given | looked, timed.looks_on_chip
        return
    mine = dispatches.steered_by(first, looked)
    same = np.array([not looked or dispatches.steered_by(int(p), looked) == mine for p in form.pending], bool)
    found.append(Variant(job, timed, form.pending[same]))
    form.pending = form.pending[~same]
