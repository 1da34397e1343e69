"""Profiles the kernels of a PyPTO build: plan, run, books. `insight-trace profile` is a skin over this.

`python -m insight_trace.profile` is the same command under the name that users of the earlier script expect.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from insight_trace import make_callable
from insight_trace.errors import RequestError
from insight_trace.executor import Executor, Local, can_copy, open_executor
from insight_trace.options import KERNEL_SECONDS, RunOptions, VendorOptions
from insight_trace.profile.build_run import check_choice, with_workloads
from insight_trace.profile.kernel_runner import KernelRunner
from insight_trace.profile.manifest import ABOUT, MANIFEST, build_of, latest_run, write_pointer
from insight_trace.profile.profile_run import ProfileResult, ProfileRun, Progress
from insight_trace.ptoas.assembler import assemble, find_ptoas
from insight_trace.ptoas.discovery import RUN_PREFIX, KernelSource, find_sources
from insight_trace.ptoas.kernel_plan import Settings, plan_kernels, refuse_unused_names, select_kernels
from insight_trace.ptoas.planned_kernel import BrokenKernel, PlannedKernel, ProfileKernel
from insight_trace.reading import is_folder
from insight_trace.simulate.embedded.toolchain import library_checkout
from insight_trace.simulate.simulators import find_simulator
from insight_trace.storage import write_whole


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """Which kernels, with which values, to where."""

    build: Path
    ptoas_dir: Path | None = None
    source_glob: str | None = None
    funcs: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    output_root: Path | None = None  # None: the build
    name: str = RUN_PREFIX
    jobs: int | None = None  # None: the cores of this machine, or of the cluster
    keep_going: bool = True
    resume: bool | Path = False  # True: the latest run of the build
    ptoas_bin: Path | None = None
    dispatch: str = "median"  # of the build's own run: see build_run.CHOICES, or a number
    synthetic: bool = False  # do not run the build: made-up arguments
    options: RunOptions = field(default_factory=lambda: RunOptions(seconds=KERNEL_SECONDS))
    vendor: VendorOptions = field(default_factory=VendorOptions)

    def __post_init__(self) -> None:
        if Path(self.name).name != self.name or self.name.startswith("."):
            raise RequestError(f"--name {self.name!r}: a plain name was expected")


def make_runner(
    options: RunOptions,
    vendor: VendorOptions,
    arches: Iterable[str] = (),
    warn: Callable[[str], None] = lambda _: None,
) -> KernelRunner:
    """What profiles kernels on the simulator that the options name, ready for kernels of these targets."""
    simulator = find_simulator(options, vendor, arches, warn)
    if simulator.name == "embedded":
        from insight_trace.profile.embedded_runner import EmbeddedRunner

        return EmbeddedRunner(options)
    from insight_trace.profile.msprof_runner import MsprofRunner
    from insight_trace.simulate.msprof.msprof_simulator import MsprofSimulator

    assert isinstance(simulator, MsprofSimulator)
    return MsprofRunner(vendor, simulator=simulator)


def list_kernels(request: ProfileRequest) -> tuple[PlannedKernel, ...]:
    """The kernels of a build without running or assembling anything; no toolchain is touched."""
    return _planned(request)[1]


def _planned(request: ProfileRequest) -> tuple[tuple[KernelSource, ...], tuple[PlannedKernel, ...]]:
    sources = find_sources(request.build, ptoas_dir=request.ptoas_dir, source_glob=request.source_glob)
    planned = select_kernels(plan_kernels(sources, request.build, request.settings), request.funcs)
    refuse_unused_names(planned, request.settings)
    return sources, planned


def _new_root(request: ProfileRequest) -> Path:
    parent = request.output_root or request.build
    stamp = time.strftime("%Y%m%d_%H%M%S")
    for number in range(1, 1000):
        root = parent / (f"{request.name}_{stamp}" + (f"_{number}" if number > 1 else ""))
        try:
            root.mkdir(parents=True, mode=0o700)
        except FileExistsError:
            continue
        except OSError as error:
            raise RequestError(
                f"{parent}: cannot be written: {error.strerror}", hint="name another place with --output-root"
            ) from None
        return root
    raise RequestError(f"{parent} holds a thousand runs of this second")


def _root(request: ProfileRequest) -> Path:
    if request.resume is False:
        return _new_root(request)
    named = request.resume if isinstance(request.resume, Path) else None
    root = named or latest_run(request.output_root or request.build) or latest_run(request.build)
    if root is None or not root.is_dir():
        raise RequestError(
            f"--resume: {named or request.build} has no run to continue",
            hint="start one without --resume",
        )
    other = build_of(root)
    # A build that was copied still points to the run of the one it was copied from.
    if other is not None and is_folder(other) and not other.samefile(request.build):
        raise RequestError(
            f"--resume: {root} is a run of another build, {other}",
            hint="start one without --resume, or name a run of this build: --resume RUN",
        )
    return root


def _about(
    root: Path, request: ProfileRequest, planned: tuple[PlannedKernel, ...], runner: KernelRunner
) -> str:
    lines = [
        f"run_root={root}",
        f"build_dir={request.build}",
        f"source_count={len(planned)}",
        f"simulator={runner.name}",
        f"dynamic_dim={request.settings.dynamic_dim}",
        f"seed={request.settings.seed}",
        "",
        "kernels and their arguments:",
    ]
    for kernel in planned:
        lines.append(f"{kernel.name}\t{kernel.source}")
        for argument in kernel.arguments if isinstance(kernel, ProfileKernel) else ():
            lines.append(f"  {argument_line(argument)}")
    return "\n".join(lines) + "\n"


def argument_line(argument: object) -> str:
    """One argument as people read it."""
    from insight_trace.ptoas.planned_kernel import BufferArg, ValueArg

    if isinstance(argument, BufferArg):
        text = f"{argument.dtype.short}[{argument.elements}] {argument.content.value}"
        if argument.content.value in ("constant", "index"):
            text += (
                f" {argument.low}" if argument.low == argument.high else f" {argument.low}..{argument.high}"
            )
        return f"{argument.position:>2} {argument.label:<24} {text} ({argument.why})"
    assert isinstance(argument, ValueArg)
    value = "lane" if argument.per_lane else argument.value
    return f"{argument.position:>2} {argument.label:<24} {argument.cpp_type} = {value} ({argument.why})"


def _with_cause(kernel: PlannedKernel, problems: Mapping[Path, str]) -> PlannedKernel:
    """A kernel that could not be assembled fails with the assembler's words."""
    if isinstance(kernel, BrokenKernel) and kernel.source in problems:
        return dataclasses.replace(kernel, problem=problems[kernel.source])
    return kernel


def run_profile(
    request: ProfileRequest,
    runner: KernelRunner | None = None,
    report: Callable[[Progress], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    *,
    cluster: str | None = None,
) -> ProfileResult:
    """Runs every kernel of a request; what is exported stands in the result's directory.

    Without a runner the simulator of the request's options serves, or the workers of a Dask cluster.
    """
    sources, planned = _planned(request)
    library_checkout(request.options.pto_isa_root)  # before anything is written
    if cluster is not None and request.options.simulator == "msprof":
        raise RequestError("--cluster runs kernels on the embedded simulator, not on msprof")
    executor = open_executor(request.jobs, cluster, warn) if cluster is not None else None
    with contextlib.closing(executor) if executor is not None else contextlib.nullcontext():
        if runner is None:
            arches = (kernel.arch for kernel in planned if kernel.arch != "?")
            how = replace(request.options, simulator="embedded") if cluster else request.options
            runner = make_runner(how, request.vendor, arches, warn)
        if executor is None:
            # where copies of this process cannot be made, kernels still run beside each other
            width = min(request.jobs or os.cpu_count() or 1, max(1, len(planned)))
            threads = runner.in_threads or not can_copy()
            executor = Local(width, threads=threads, stop=runner.stop)
        return _run(request, sources, planned, runner, executor, report, warn)


def _run(
    request: ProfileRequest,
    sources: tuple[KernelSource, ...],
    planned: tuple[PlannedKernel, ...],
    runner: KernelRunner,
    executor: Executor,
    report: Callable[[Progress], None],
    warn: Callable[[str], None],
) -> ProfileResult:
    root = _root(request)
    if any(source.cpp is None for source in sources):
        ptoas = find_ptoas(request.ptoas_bin)
        if ptoas is not None:
            sources, problems = assemble(
                sources,
                ptoas,
                root / "assembled",
                timeout=request.options.seconds,
                build=request.build,
                target=request.settings.target,
            )
            planned = select_kernels(plan_kernels(sources, request.build, request.settings), request.funcs)
            planned = tuple(_with_cause(kernel, problems) for kernel in planned)
    if not request.synthetic:
        # on dispatches of the build's own run, where it can be run and the simulator takes them
        made_up = getattr(
            runner, "why_made_up", f"{runner.name.split()[0]} runs kernels on made-up arguments"
        )
        planned = with_workloads(
            planned, request.build, root / "run", check_choice(request.dispatch), target=request.settings.target,
            seconds=request.options.seconds, warn=warn, instead=made_up,
        )  # fmt: skip
    write_whole(root / ABOUT, _about(root, request, planned, runner), mode=0o600)
    for place in dict.fromkeys((request.build, request.output_root or request.build)):
        try:
            write_pointer(place, root)
        except OSError as error:  # a build may be read-only; the run is elsewhere then
            warn(f"{place}: the pointer to this run cannot be written: {error.strerror}")
    resumes = request.resume is not False and (root / MANIFEST).is_file()
    return ProfileRun(root, runner).run(
        planned, executor, keep_going=request.keep_going, resume=resumes, report=report
    )


make_callable(__name__)
