"""The vendor's simulator from end to end: workspace, preflight, build, collect."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from insight_trace.chips import family_named
from insight_trace.errors import RequestError
from insight_trace.job import Job
from insight_trace.options import RunOptions, VendorOptions
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.msprof.building import build
from insight_trace.simulate.msprof.collecting import Collected, collect
from insight_trace.simulate.msprof.preflight import Ready, WorkerError, check, prepare
from insight_trace.simulate.msprof.toolkit import Toolkit, find_toolkits, not_found
from insight_trace.simulate.msprof.vendor_workspace import VendorJob, read_outputs, write_workspace
from insight_trace.simulate.msprof.worker import find_worker, with_worker
from insight_trace.simulate.simulators import Progress, SimulatorResult

_NO_HEADERS = "the vendor's simulator needs pto-isa's headers"
_NAME_HEADERS = "give --pto-isa-root, or set PTO_ISA_ROOT"


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
        raise RequestError(_NO_HEADERS, hint=_NAME_HEADERS)
    job = dataclasses.replace(job, soc_version=ready.soc_version)
    named, workspace = workspace, workspace.absolute()  # build and run have it as their own working directory
    progress("workspace")
    write_workspace(job, workspace)
    progress("build")
    application = build(job, ready, workspace)
    progress("simulate")
    collected = collect(job, ready, workspace, application, limit_seconds=limit_seconds)
    return dataclasses.replace(collected, directory=named / collected.directory.relative_to(workspace))


class MsprofSimulator:
    """Runs dispatches in the vendor's simulator; each target's installation is looked for once."""

    name = "msprof"

    def __init__(
        self, options: RunOptions, vendor: VendorOptions, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.options = options
        self.vendor = vendor
        self.environ = environ
        self.found: dict[str, Ready] = {}  # by target
        self._seen: Toolkit | None = None  # the toolkit with a worker from elsewhere
        self._one_probe = threading.Lock()

    @cached_property
    def pto_isa_root(self) -> Path:
        given, named, home = self.options.pto_isa_root, named_pto_isa(self.environ), self.environ.get("HOME")
        for root in (given, named, Path(home, "pto-isa") if home else None):
            if root is not None and (root / "include").is_dir():
                return root.absolute()
            if root is not None and root is given:
                raise RequestError(
                    f"--pto-isa-root: {root} has no include/", hint="name a checkout of pto-isa"
                )
        raise RequestError(_NO_HEADERS, hint=_NAME_HEADERS)

    def ready(self, target: str) -> Ready:
        """The installation and the chip for a target."""
        with self._one_probe:
            if target not in self.found:
                self.found[target] = self._find(target)
            return self.found[target]

    def require(self, targets: Iterable[str]) -> None:
        for target in sorted(set(targets)) or ["a2a3"]:
            self.ready(target)
        _ = self.pto_isa_root

    def run(
        self, job: Job, workspace: Path | None = None, progress: Progress = lambda _step: None
    ) -> SimulatorResult:
        if workspace is None:
            raise RequestError("the vendor's simulator needs a folder to work in")
        progress("preflight")
        ready = self.ready(job.target)
        wanted = vendor_job(job, self.options, self.vendor)
        vendors = dataclasses.replace(wanted, pto_isa_root=self.pto_isa_root)
        collected = simulate(vendors, ready, workspace, progress=progress)
        return SimulatorResult(
            read_outputs(job.arguments, workspace),
            directory=collected.directory,
            partial="the time was over before the kernel's end" if collected.partial else "",
            warnings=collected.warnings,
        )

    def _find(self, target: str) -> Ready:
        asked, soc = self.vendor, self.options.soc_version

        def usual() -> Ready:
            return find_ready(
                target, self.environ, cann_home=asked.cann_home, set_env=asked.cann_set_env, soc_version=soc
            )

        if asked.msopprof is None:
            try:
                return usual()
            except WorkerError:
                if not asked.auto_msopprof:
                    raise
        found = find_toolkits(self.environ, cann_home=asked.cann_home, set_env=asked.cann_set_env)
        toolkit = next(iter(found), None)
        worker = asked.msopprof or (find_worker(toolkit, self.environ) if toolkit else None)
        if toolkit is None or worker is None:
            return usual()
        if self._seen is None:
            while_here = contextlib.ExitStack()
            weakref.finalize(self, while_here.close)
            folder = while_here.enter_context(scratch_folder("cann"))
            self._seen = with_worker(toolkit, worker, folder)
        return check(self._seen, family_named(target), soc)


def named_pto_isa(environ: Mapping[str, str]) -> Path | None:
    """The checkout that the environment names."""
    named = environ.get("PTO_ISA_ROOT")
    return Path(named) if named else None


def vendor_job(job: Job, options: RunOptions, vendor: VendorOptions) -> VendorJob:
    """A job as the vendor's workspace is written for it."""
    made = VendorJob(
        kernels=job.kernels,
        arguments=job.arguments,
        target=job.target,
        pto_isa_root=options.pto_isa_root or named_pto_isa(os.environ),
        soc_version=options.soc_version,
        hardware_blocks=vendor.hardware_blocks,
        launch_count=vendor.launch_count,
        timeout_minutes=vendor.timeout_minutes,
        device=vendor.device,
    )
    return dataclasses.replace(made, runtime=job.runtime) if job.runtime else made
