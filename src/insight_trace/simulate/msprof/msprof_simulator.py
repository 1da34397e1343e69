"""The vendor's simulator from end to end: workspace, preflight, build, collect."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from insight_trace.chips import family_named
from insight_trace.errors import RequestError
from insight_trace.simulate.msprof.building import build
from insight_trace.simulate.msprof.collecting import Collected, collect
from insight_trace.simulate.msprof.preflight import Ready, prepare
from insight_trace.simulate.msprof.toolkit import find_toolkits, not_found
from insight_trace.simulate.msprof.vendor_workspace import VendorJob, write_workspace


def find_ready(
    target: str,
    environ: Mapping[str, str],
    *,
    cann_home: Path | None = None,
    set_env: Path | None = None,
    soc_version: str | None = None,
    places: tuple[Path, ...] | None = None,
) -> Ready:
    """The best installation here that can simulate the target, or an error that says what is missing."""
    toolkits = find_toolkits(environ, cann_home=cann_home, set_env=set_env, places=places)
    return prepare(toolkits, family_named(target), soc_version, not_found(environ, places))


def simulate(
    job: VendorJob,
    ready: Ready,
    workspace: Path,
    *,
    progress: Callable[[str], None] = lambda _step: None,
    limit_seconds: float | None = None,
) -> Collected:
    """Writes the workspace, builds it and runs it. `progress` hears each step as it begins."""
    if job.pto_isa_root is None:
        raise RequestError(
            "the vendor's simulator needs pto-isa's headers", hint="give --pto-isa-root, or set PTO_ISA_ROOT"
        )
    job = dataclasses.replace(job, soc_version=ready.soc_version)
    progress("workspace")
    write_workspace(job, workspace)
    progress("build")
    application = build(job, ready, workspace)
    progress("simulate")
    return collect(job, ready, workspace, application, limit_seconds=limit_seconds)
