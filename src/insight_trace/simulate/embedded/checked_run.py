"""A run with the checker: the run itself, and the same with other unwritten bytes or in other orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from insight_trace.check.explain import failed
from insight_trace.finding import Finding, Severity
from insight_trace.model import Kernel
from insight_trace.outcome import Simulation
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


_ROUNDING = 1e-3  # what sums may differ by when they are added up in another order


def perturbed(
    kernels: Sequence[Kernel],
    arguments: ReplayArguments,
    options: EmbeddedOptions,
    run: Simulation,
    orders: int,
    toolchain: Toolchain | None = None,
) -> tuple[Finding, ...]:
    """A finding for each output that is not what `run` gave under one of so many orders, and for orders that fail."""
    changed: dict[int, list[int]] = {}
    worst: dict[int, float] = {}
    failed: list[tuple[int, str]] = []
    for seed in range(1, orders + 1):
        other = run_embedded(kernels, arguments, replace(options, perturb=seed), toolchain)
        if other.failure is not None:
            failed.append((seed, str(other.failure)))
            continue
        for slot, values in run.outputs.items():
            if values.tobytes() != other.outputs[slot].tobytes():
                changed.setdefault(slot, []).append(seed)
                worst[slot] = max(worst.get(slot, 0.0), _difference(values, other.outputs[slot]))
    adds = _adds_in_memory(run)
    return (
        *(_changed(slot, seeds, orders, worst[slot], adds) for slot, seeds in changed.items()),
        *_failing(failed, orders),
    )


def _changed(slot: int, seeds: Sequence[int], orders: int, worst: float, adds: bool) -> Finding:
    sums = adds and worst <= _ROUNDING
    why = "; sums that several stores add up differ by rounding" if sums else ""
    return Finding(
        category="order-dependent",
        severity=Severity.NOTE if sums else Severity.ERROR,
        message=f"slot {slot} changes in {len(seeds)} of {orders} orders of cores and pipes that the synchronisation "
        f"allows (first in order {seeds[0]}, by up to {worst:.3g} of its largest value){why}",
        fix="see what the race findings name; --perturb with more orders finds rarer ones",
        count=len(seeds),
    )


def _failing(failed: Sequence[tuple[int, str]], orders: int) -> tuple[Finding, ...]:
    if not failed:
        return ()
    seed, text = failed[0]
    said = f"the kernel fails in {len(failed)} of {orders} orders of cores and pipes (first in order {seed}): {text}"
    return (Finding("order-dependent", Severity.ERROR, said, "order what it waits for", count=len(failed)),)


def _adds_in_memory(run: Simulation) -> bool:
    operands = run.instructions.operands
    # record.hpp calls this byte of a geometry `atomic`; recordings of before had nothing in it
    return operands is not None and bool(operands.geometries["reserved"].any())


def _difference(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The largest difference of two outputs, measured against the largest value of the first."""
    import numpy as np

    a, b = one.astype(np.float64), other.astype(np.float64)
    gap = np.abs(a - b)
    if not np.isfinite(gap).all():
        return float("inf")
    return float(gap.max()) / max(float(np.abs(a).max()), 1e-30)
