"""A run with the checker: the run itself, and the same with other unwritten bytes or in other orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from insight_trace.check.explain import failed
from insight_trace.finding import Finding, Severity
from insight_trace.model import Kernel
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.orders import perturbed
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

if TYPE_CHECKING:
    from insight_trace.arguments.slots import ReplayArguments
    from insight_trace.simulate.embedded.toolchain import Toolchain

_ODD_BYTES = 0xFF  # a NaN in every floating type, and -1 in every integer


def run_checked(
    kernels: Sequence[Kernel],
    arguments: ReplayArguments,
    options: EmbeddedOptions,
    toolchain: Toolchain | None = None,
    orders: int = 0,
) -> Simulation:
    """The plain run, with findings. Its instructions, cycles and outputs are those of a run without checker.

    It is repeated under so many `orders` of cores and pipes that the synchronisation allows.
    """
    run = run_embedded(kernels, arguments, replace(options, check=True), toolchain)
    if run.failure is not None:
        return replace(run, findings=(*failed(run.failure), *run.findings))
    if options.timing_only:
        return run
    findings = run.findings
    if any(finding.category == "unwritten-read" for finding in findings):
        odd = run_embedded(kernels, arguments, replace(options, unwritten=_ODD_BYTES), toolchain)
        findings = _judged(findings, _differ(run, odd))
    if _has_odd_numbers(run):
        watched = run_embedded(kernels, arguments, replace(options, numbers=True), toolchain)
        findings = (*findings, *(f for f in watched.findings if f.category in ("nan-born", "inf-born")))
    if orders:
        findings = (*perturbed(kernels, arguments, options, run, orders, toolchain), *findings)
    return replace(run, findings=findings)


def _has_odd_numbers(run: Simulation) -> bool:
    """Whether an output holds a NaN or an infinity."""
    import numpy as np

    reals = (values for values in run.outputs.values() if values.dtype.kind in "fV")
    return any(not np.isfinite(values.astype(np.float32)).all() for values in reals)


def _differ(run: Simulation, odd: Simulation) -> bool:
    """Whether what nobody wrote reaches a result."""
    if odd.failure is not None:
        return True
    return any(run.outputs[slot].tobytes() != odd.outputs[slot].tobytes() for slot in run.outputs)


def _judged(findings: Sequence[Finding], reaches: bool) -> tuple[Finding, ...]:
    if not reaches:
        return tuple(findings)
    return tuple(
        replace(
            finding,
            severity=Severity.ERROR,
            message=f"{finding.message}, and the outputs depend on what lies there",
        )
        if finding.category == "unwritten-read"
        else finding
        for finding in findings
    )
