"""Why an element is what it is, and which line most likely made an output wrong."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from insight_trace.debug.journal import GM
from insight_trace.debug.mismatch import Wrong, addresses_in, wrong_outputs
from insight_trace.debug.slices import Backward, Slice
from insight_trace.debug.suspects import SuspectSite, gather
from insight_trace.debug.what_if import Bench, Outcome, try_fixes
from insight_trace.errors import RequestError

if TYPE_CHECKING:
    from insight_trace.arguments.slots import ReplayTensor
    from insight_trace.debug.debug_session import Session

SECONDS = 20.0  # that runs with something changed may take


@dataclass(frozen=True, eq=False)
class Suspect:
    """A line that may have made the outputs wrong, and why it may."""

    file: str
    line: int
    op: str
    reasons: tuple[str, ...]
    fix: str = ""  # the change after which outputs are right, or nearer to it
    explained: float = 0.0  # of the difference, by that change; 1: all of it
    exact: bool = False  # every element is what was recorded then


@dataclass(frozen=True, eq=False)
class Mismatch:
    """What is wrong in the outputs, and the lines that may have done it, the most suspicious first."""

    wrong: tuple[Wrong, ...]
    suspects: tuple[Suspect, ...]
    slice: Slice
    runs: int  # that were made to find out


def why_element(session: Session, tensor: ReplayTensor, index: tuple[int, ...]) -> Slice:
    """Everything that an element of an argument was made of, at the end of the run."""
    flat = np.array([np.ravel_multi_index(index, tensor.shape) if index else 0], np.int64)
    backward = Backward(session)
    return backward.slice(0, GM, addresses_in(session, tensor, flat), len(session.instructions))


def first_mismatch(session: Session, seconds: float = SECONDS) -> Mismatch:
    """Outputs against what was recorded; the lines on the way back, ranked, the best ones tried out."""
    begin = time.perf_counter()
    run = session.run()
    one_run = time.perf_counter() - begin
    wrong = wrong_outputs(session, run)
    if not wrong:
        compared = [t.slot for t in session.arguments.tensors if t.is_output and t.expected is not None]
        if not compared:
            raise RequestError(
                "nothing was recorded of the outputs: there is nothing to compare with",
                hint="replay from a dump with payload (capture --dump-args 2), or ask for one element: SLOT[i,j]",
            )
        raise RequestError(
            f"every element of slot {', '.join(map(str, compared))} is what was recorded",
            hint="ask for one element: SLOT[i,j]",
        )
    backward = Backward(session)
    evidence = gather(backward, wrong)
    bench = Bench(backward, wrong, seconds, one_run)
    outcomes = try_fixes(bench, evidence) if seconds > 0 else []
    return Mismatch(tuple(wrong), _ranked(evidence.sites, outcomes), evidence.wrong, bench.runs)


def _ranked(sites: list[SuspectSite], outcomes: list[Outcome]) -> tuple[Suspect, ...]:
    best: dict[int, Outcome] = {}
    for outcome in outcomes:
        best.setdefault(id(outcome.fix.site), outcome)
    place = {id(site): number for number, site in enumerate(sites)}

    def key(site: SuspectSite) -> tuple[float, ...]:
        outcome = best.get(id(site))
        if outcome is None or outcome.explained < 0.5:
            return 1.0, 0.0, place[id(site)]
        return 0.0, -round(outcome.explained, 3) - outcome.exact, outcome.oddities, place[id(site)]

    found = []
    for site in sorted(sites, key=key):
        suspect = Suspect(site.file, site.line, site.op, tuple(site.reasons))
        tried = best.get(id(site))
        if tried is not None and tried.explained >= 0.5:
            suspect = dataclasses.replace(
                suspect, fix=tried.fix.text, explained=tried.explained, exact=tried.exact
            )
        found.append(suspect)
    return tuple(found)
