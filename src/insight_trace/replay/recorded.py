"""A simulation as a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from insight_trace.arguments.slots import ReplayArguments, ReplayScalar, ReplaySlot
from insight_trace.finding import finding_data
from insight_trace.model import Kernel, Trace
from insight_trace.outcome import Simulation
from insight_trace.recording.store import Recording
from insight_trace.replay.verification import OutputCheck


def recording_of(
    simulation: Simulation,
    trace: Trace,
    kernels: Sequence[Kernel] = (),
    arguments: ReplayArguments | None = None,
    checks: Sequence[OutputCheck] = (),
    about: Mapping[str, Any] | None = None,
) -> Recording:
    """Everything a run showed; `trace` is the simulation with the text of its sources."""
    places = {region[0]: region for region in simulation.regions}
    return Recording(
        trace,
        tuple(
            {
                "name": kernel.name,
                "core_type": str(kernel.core_type),
                "func_id": kernel.func_id,
                "entry": kernel.entry,
                "source": str(kernel.written or kernel.source),
            }
            for kernel in kernels
        ),
        tuple(_argument(item, places) for item in arguments.slots) if arguments else (),
        tuple(
            {
                "slot": check.slot,
                "status": str(check.status),
                "max_error": check.max_error,
                "first_index": check.first_index,
                "wrong": check.wrong,
                "compared": check.compared,
                "why": check.why,
            }
            for check in checks
        ),
        tuple(finding_data(finding) for finding in simulation.findings),
        {"name": simulation.soc_version, "mhz": simulation.mhz, "parameters": simulation.parameters},
        {
            "regions": simulation.regions,
            "printed": simulation.printed,
            **(about or {}),
            **_estimates(simulation, (about or {}).get("preset")),
        },
    )


def _estimates(simulation: Simulation, preset: str | None) -> dict[str, Any]:
    """Which part of the time rests on estimated numbers, and on which; the largest come first."""
    if preset is None:
        return {}
    from insight_trace.simulate.embedded.estimates import estimate_share
    from insight_trace.simulate.embedded.simulator import chip_that_ran

    found = estimate_share(simulation, chip_that_ran(simulation, preset))
    return {"estimates": {"share": found.share, "numbers": [asdict(one) for one in found.estimates[:20]]}}


def _argument(item: ReplaySlot, places: Mapping[str, tuple[str, int, int, int]]) -> dict[str, Any]:
    shared = {
        "slot": item.slot,
        "dtype": item.dtype.name,
        "tier": str(item.tier),
        "name": item.name,
        "origin": item.origin,
    }
    if isinstance(item, ReplayScalar):
        return {"kind": "scalar", **shared, "bits": item.bits}
    owner = item.slot if item.shares is None else item.shares
    _, address, size, padded = places.get(f"slot {owner}", ("", 0, 0, 0))
    return {
        "kind": "tensor",
        **shared,
        "shape": item.shape,
        "strides": item.strides,
        "start_offset": item.start_offset,
        "role": item.role and str(item.role),
        "address": address,
        "size": size,
        "padded": padded,
    }
