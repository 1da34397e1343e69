"""A run with the checker: the run itself, the same with other unwritten bytes, and without idle synchronisation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from insight_trace.check.explain import redundant
from insight_trace.model import Finding, Kernel, Severity, Simulation
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

if TYPE_CHECKING:
    from insight_trace.arguments.slots import ReplayArguments
    from insight_trace.simulate.embedded.toolchain import Toolchain

_ODD_BYTES = 0xFF  # a NaN in every floating type, and -1 in every integer
_MOST_PRICED = 6  # each costs a run


def run_checked(
    kernels: Sequence[Kernel],
    arguments: ReplayArguments,
    options: EmbeddedOptions,
    toolchain: Toolchain | None = None,
) -> Simulation:
    """The plain run, with findings. Its instructions, cycles and outputs are those of a run without checker."""
    run = run_embedded(kernels, arguments, dataclasses.replace(options, check=True), toolchain)
    if run.failure is not None:
        return run
    findings = run.findings
    if any(finding.category == "unwritten-read" for finding in findings) and not options.timing_only:
        odd = run_embedded(kernels, arguments, dataclasses.replace(options, unwritten=_ODD_BYTES), toolchain)
        findings = _judged(findings, _differ(run, odd))
    timed = dataclasses.replace(options, timing_only=True)
    idle = [finding for finding in findings if finding.category == "redundant-sync"]
    idle = sorted(idle, key=lambda finding: -finding.count)[:_MOST_PRICED]
    prices = {}
    for finding in idle:
        without = run_embedded(
            kernels, arguments, dataclasses.replace(timed, left_out=_lines(finding)), toolchain
        )
        if without.failure is None:
            prices[finding] = run.cycles - without.cycles
    findings = tuple(redundant(f.places, f.count, prices[f]) if f in prices else f for f in findings)
    return dataclasses.replace(run, findings=findings)


def _lines(finding: Finding) -> tuple[tuple[str, int], ...]:
    return tuple(dict.fromkeys((place.file, place.line) for place in finding.places))


def _differ(run: Simulation, odd: Simulation) -> bool:
    """Whether what nobody wrote reaches a result."""
    if odd.failure is not None:
        return True
    return any(run.outputs[slot].tobytes() != odd.outputs[slot].tobytes() for slot in run.outputs)


def _judged(findings: Sequence[Finding], reaches: bool) -> tuple[Finding, ...]:
    if not reaches:
        return tuple(findings)
    return tuple(
        dataclasses.replace(
            finding,
            severity=Severity.ERROR,
            message=f"{finding.message}, and the outputs depend on what lies there",
        )
        if finding.category == "unwritten-read"
        else finding
        for finding in findings
    )
