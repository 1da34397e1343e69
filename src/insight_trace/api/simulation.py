"""Simulate: one dispatch, all of a dump, the kernels of a build, a whole chip, a program, single ops."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from insight_trace.api import PathName, as_path, numbers
from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.limits import RUN_SECONDS
from insight_trace.options import KERNEL_SECONDS, RunKeywords, RunOptions, VendorOptions, run_options
from insight_trace.results import Progress, silent, steps_of

if TYPE_CHECKING:
    from insight_trace.arguments.overrides import Overrides
    from insight_trace.profile.case_run import BuildCommand
    from insight_trace.profile.profile_run import ProfileResult
    from insight_trace.profile.profile_run import Progress as KernelProgress
    from insight_trace.program.products import ProgramResult
    from insight_trace.ptoas.kernel_plan import Settings
    from insight_trace.ptoas.planned_kernel import PlannedKernel
    from insight_trace.replay.replaying import Replay
    from insight_trace.run.bulk_replay import ReplayAllResult
    from insight_trace.run.run_tables import RunResult
    from insight_trace.simulate.embedded.single_op import OpTiming, TableRow


def replay(
    scene: PathName,
    *,
    case: str | None = None,
    func_id: int | Iterable[int] | None = None,
    kernel: str | None = None,
    kernel_source: PathName | None = None,
    dump_dir: PathName | None = None,
    own_dump: bool = False,
    dispatch_id: int | None = None,
    task_id: int | None = None,
    arg_spec: PathName | None = None,
    recipe: bool = False,
    overrides: Overrides | None = None,
    output: PathName | None = None,
    label: str | None = None,
    force: bool = False,
    as_recorded: bool = False,
    collect: bool = True,
    also: str | None = None,
    shadow: bool = False,
    options: RunOptions | None = None,
    vendor: VendorOptions | None = None,
    progress: Progress = silent,
    **run: Unpack[RunKeywords],
) -> Replay:
    """Replays one dispatch of a scene or of a PyPTO build, or an earlier workspace again.

    Its arguments come from `dump_dir`, `arg_spec`, `recipe`, with `own_dump` from the dump that the build's run left, or
    else from a capture of the case. A workspace runs its kernel as the file is now, `as_recorded` as it was. `also` are
    files of other simulators to write (npusim, perf-sim, pmu), `shadow` repeats the run in double arithmetic.
    The result has `.directory`, `.instructions`, `.outputs`, `.checks`, `.findings`.
    """
    from msgspec.structs import replace

    from insight_trace.arguments.overrides import Overrides
    from insight_trace.replay.build_dump import build_and_dump, members_of
    from insight_trace.replay.jobs import ReplayRequest
    from insight_trace.replay.replaying import run_replay

    how = run_options(options, run)
    if shadow and (how.timing_only or not collect):
        raise RequestError(
            "--shadow needs a run that computes", hint="leave --timing-only and --no-collect out"
        )
    forms: tuple[str, ...] = ()
    if also is not None:
        from insight_trace.trace.other_simulators import forms_of

        forms = forms_of(also)
    place, dump = Path(scene), as_path(dump_dir)
    if own_dump:
        place, dump = build_and_dump(place, dump)
    func_ids = numbers(func_id)
    if dump is not None and kernel is not None and not func_ids:
        func_ids, kernel = members_of(dump, place, kernel), None
    request = ReplayRequest(
        place, case, func_ids, kernel, as_path(kernel_source), dump, dispatch_id, task_id, as_path(arg_spec), recipe,
        overrides or Overrides(), how, vendor or VendorOptions(), as_path(output),
        Path(scene).resolve().name if own_dump else "", label, collect, force, as_recorded,
    )  # fmt: skip
    done = run_replay(request, steps_of(progress))
    if own_dump and done.directory is not None:
        _add_clean_trace(done, Path(scene))
    if forms and done.directory is not None:
        from insight_trace.trace.other_simulators import add_to_workspace

        add_to_workspace(done.directory, done.workspace, done.job.kernels[0].name, forms)
    if not shadow:
        return done
    from insight_trace.debug.shadow import write_shadow

    return replace(done, shadow=write_shadow(done.workspace))


def _add_clean_trace(replay: Replay, build: Path) -> None:
    """What users look for with a profile of a build's kernel: the clean trace, figures, a page of text."""
    from insight_trace.insight import open_trace
    from insight_trace.trace.run_folder import add_to_workspace

    assert replay.directory is not None
    dispatch, members = replay.dispatch, replay.job.kernels
    about = {
        "build": str(build),
        "kernels": ", ".join(f"{kernel.name} ({kernel.core_type}) {kernel.source}" for kernel in members),
        "workload": replay.job.origin + (f", task 0x{dispatch.task_id:016x}" if dispatch else ""),
        "verified": "; ".join(check.text for check in replay.checks) or "nothing compared",
        "simulator": replay.simulator,
    }
    add_to_workspace(open_trace(replay.directory), replay.workspace, members[0].name, about)


def replay_all(
    scene: PathName,
    dump_dir: PathName,
    *,
    case: str | None = None,
    func_id: int | Iterable[int] | None = None,
    sample: int | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    output: PathName | None = None,
    force: bool = False,
    options: RunOptions | None = None,
    progress: Progress = silent,
    **run: Unpack[RunKeywords],
) -> ReplayAllResult:
    """Replays every dispatch of a dump, or a sample of `sample` of them, each verified: no traces, one table.

    What an earlier call into the same `output` replayed, and what has not changed since, is not run again.
    """
    from insight_trace.executor import open_executor
    from insight_trace.executor.journal import Journal
    from insight_trace.run import bulk_replay
    from insight_trace.run.bulk_replay import JOURNAL, ReplayAllResult, open_folder, write_summary

    if sample is not None and sample < 1:
        raise RequestError(f"--sample {sample}: at least one dispatch is replayed")
    progress("read the dump")
    how = run_options(options, run)
    planned = bulk_replay.plan(Path(scene), Path(dump_dir), case, how, numbers(func_id), sample)
    chosen = planned.case.name if planned.case else None
    folder = open_folder(as_path(output), f"{Path(scene).stem}_{chosen or 'nocase'}", force=force)

    def counted(done: int, total: int) -> None:
        progress("replay", done, total)

    with (
        Journal(folder / JOURNAL, bulk_replay.ReplayRow) as journal,
        contextlib.closing(open_executor(jobs, cluster)) as executor,
    ):
        rows = bulk_replay.replay_all(planned, executor, journal, counted)
    about = {"scene": str(planned.scene.path), "case": chosen, "dump": str(dump_dir)}
    notes = (*planned.dump.warnings, *write_summary(rows, folder, about))
    return ReplayAllResult(tuple(rows), folder, about, journal.used, planned.dump.lost, notes)


def profile(
    build: PathName | None = None,
    *,
    command: BuildCommand | Sequence[str] | None = None,
    build_output_root: PathName | None = None,
    funcs: Iterable[str] = (),
    ptoas_dir: PathName | None = None,
    source_glob: str | None = None,
    dispatch: str = "median",
    synthetic: bool = False,
    dynamic_dim: int = 256,
    scalars: Mapping[str, int | float] | None = None,
    inputs: Mapping[str, PathName] | None = None,
    seed: int = 0,
    output_root: PathName | None = None,
    name: str = "kernel_insight_all_funcs",
    jobs: int | None = None,
    cluster: str | None = None,
    keep_going: bool = True,
    resume: bool | PathName = False,
    ptoas_bin: PathName | None = None,
    options: RunOptions | None = None,
    vendor: VendorOptions | None = None,
    report: Callable[[KernelProgress], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    **run: Unpack[RunKeywords],
) -> ProfileResult:
    """Runs every kernel of a PyPTO build, or those named `funcs`, and writes a trace of each.

    `command` makes the build first, below `build_output_root`. `resume` goes on with the build's latest run, or with
    the one that it names. Values of scalars and files of inputs go by NAME or KERNEL:NAME.
    """
    from insight_trace.profile import ProfileRequest, run_profile

    place = _built(build, command, build_output_root)
    how = run_options(options or RunOptions(seconds=KERNEL_SECONDS), run)
    request = ProfileRequest(
        place, as_path(ptoas_dir), source_glob, tuple(funcs), _settings(how, dynamic_dim, seed, scalars, inputs),
        as_path(output_root), name, jobs, keep_going, resume if isinstance(resume, bool) else Path(resume),
        as_path(ptoas_bin), dispatch, synthetic, how, vendor or VendorOptions(),
    )  # fmt: skip
    return run_profile(request, None, report, warn, cluster=cluster)


def list_kernels(
    build: PathName | None = None,
    *,
    command: BuildCommand | Sequence[str] | None = None,
    build_output_root: PathName | None = None,
    funcs: Iterable[str] = (),
    ptoas_dir: PathName | None = None,
    source_glob: str | None = None,
    dynamic_dim: int = 256,
    scalars: Mapping[str, int | float] | None = None,
    inputs: Mapping[str, PathName] | None = None,
    seed: int = 0,
    options: RunOptions | None = None,
    **run: Unpack[RunKeywords],
) -> tuple[Path, tuple[PlannedKernel, ...]]:
    """The build, and the kernels that `profile` would run; no toolchain is needed."""
    from insight_trace.profile import ProfileRequest
    from insight_trace.profile import list_kernels as listed

    place = _built(build, command, build_output_root)
    settings = _settings(run_options(options, run), dynamic_dim, seed, scalars, inputs)
    return place, listed(ProfileRequest(place, as_path(ptoas_dir), source_glob, tuple(funcs), settings))


def _settings(
    how: RunOptions,
    dynamic_dim: int,
    seed: int,
    scalars: Mapping[str, int | float] | None,
    inputs: Mapping[str, PathName] | None,
) -> Settings:
    from insight_trace.ptoas.kernel_plan import Settings

    files = {key: Path(value) for key, value in (inputs or {}).items()}
    return Settings(how.target or "", dynamic_dim, seed, dict(scalars or {}), files)


def _built(
    build: PathName | None, command: BuildCommand | Sequence[str] | None, root: PathName | None
) -> Path:
    from insight_trace.profile.case_run import BuildCommand, run_for_build

    if (build is None) == (command is None):
        raise RequestError("name either a build or the command that makes one")
    if build is not None:
        return Path(build).expanduser().absolute()
    assert command is not None
    below = Path(root) if root is not None else Path.cwd() / "build_output"
    made_by = command if isinstance(command, BuildCommand) else BuildCommand(tuple(command))
    return run_for_build(made_by, below, below / "kernel_insight_case_run" / "case_run.log")


def run(
    scene: PathName,
    case: str | None = None,
    *,
    chip: str | None = None,
    platform: str | None = None,
    seed: int = 0,
    values: bool = False,
    measured: PathName | None = None,
    deps: PathName | None = None,
    assume: Mapping[str, float] | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    seconds: float = RUN_SECONDS,
    replay_slowest: int = 0,
    output: PathName | None = None,
    force: bool = False,
    progress: Progress = silent,
) -> RunResult:
    """A case on a whole chip: how long it takes, which kernels that is made of, and when each task runs.

    `measured` is a folder of a device's records that are shown with it, `deps` its deps.json, `assume` microseconds of
    kernels that are not simulated. `replay_slowest` writes Insight directories of so many kernels.
    """
    from insight_trace.executor import open_executor
    from insight_trace.run.device_comparison import as_data as measured_data
    from insight_trace.run.device_comparison import beside
    from insight_trace.run.device_records import find_records
    from insight_trace.run.run_directory import keep, open_folder
    from insight_trace.run.run_store import RunStore, default_index
    from insight_trace.run.run_tables import RunResult, as_data, kernel_rows
    from insight_trace.run.whole_run import RunRequest, replay_task, run_case

    records = as_path(measured)
    waits = Path(deps) if deps is not None else find_records(records).deps if records is not None else None
    request = RunRequest(
        Path(scene), case, chip, platform=platform, seed=seed, seconds=seconds, values=values,
        assumed=tuple((assume or {}).items()), deps=waits,
    )  # fmt: skip
    notes = []
    with (
        contextlib.closing(open_executor(jobs, cluster)) as executor,
        open_folder(as_path(output), request, force=force) as folder,
    ):
        done = run_case(
            request, folder, executor, steps_of(progress),
            lambda count, total: progress("time distinct dispatches", count, total),
        )  # fmt: skip
        rows = kernel_rows(done, steps_of(progress))
        data = as_data(done, rows) | {"assumed": dict(request.assumed)}
        found = beside(done, records) if records is not None else None
        if found is not None:
            data["measured"] = measured_data(found)
        if replay_slowest:
            slowest = [row.slowest for row in rows[:replay_slowest]]
            data["replayed"] = [str(replay_task(done, request, task, folder)) for task in slowest]
        progress("write")
        keep(done, data, folder)
        number = 0
        try:
            number = RunStore(default_index()).add(data, folder)
        except (InsightTraceError, OSError) as error:  # a run is none the worse for it
            notes.append(f"not in the index of runs: {error}")
    return RunResult(done, tuple(rows), folder, data, found, number, tuple(notes), dict(request.assumed))


def run_program(
    command: Sequence[str],
    *,
    soc_version: str | None = None,
    preset: str = "device",
    trace: str = "first",
    kernel_name: str = "",
    launch_count: int | None = None,
    skip: int = 0,
    check: bool = False,
    timing_only: bool = False,
    seconds: float = RUN_SECONDS,
    output: PathName | None = None,
    also: str | None = None,
) -> ProgramResult:
    """Runs your program, unchanged, with its kernels on a simulated chip (`insight-trace exec`).

    Of each kernel the `trace` launches (none, first, slowest, all) get a workspace below `output`.
    """
    from insight_trace.limits import seconds_given
    from insight_trace.program.products import ProgramResult, make_products
    from insight_trace.program.session import ProgramOptions
    from insight_trace.program.session import run_program as started
    from insight_trace.trace.other_simulators import add_to_workspace, forms_of

    if not command:
        raise RequestError("there is no command to run", hint="insight-trace exec [options] -- COMMAND …")
    how = ProgramOptions(
        soc_version, preset, trace, kernel_name, launch_count, skip, check, timing_only,
        seconds_given(seconds, "--time-limit"),
    )  # fmt: skip
    forms = forms_of(also) if also is not None else ()
    with started(command, how) as ran:
        products = make_products(ran, how, as_path(output))
    for product in products.values():
        if product.workspace is not None:
            add_to_workspace(product.directory, product.workspace, product.kernel, forms)
    return ProgramResult(ran.code, ran.launches, products)


def time_op(
    op: str,
    dtype: str = "float",
    rows: int = 0,
    cols: int = 0,
    *,
    valid_rows: int | None = None,
    valid_cols: int | None = None,
    to: str | None = None,
    k: int | None = None,
    addresses: Sequence[int] = (),
    soc_version: str | None = None,
    preset: str = "device",
    l2: str | None = None,
) -> OpTiming:
    """Cycles of one tile op on the modelled core."""
    from insight_trace.simulate.embedded.op_forms import OpRequest
    from insight_trace.simulate.embedded.simulator import EmbeddedOptions
    from insight_trace.simulate.embedded.single_op import named_dtype
    from insight_trace.simulate.embedded.single_op import time_op as timed

    request = OpRequest(
        op, named_dtype(dtype), rows, cols, valid_rows=valid_rows, valid_cols=valid_cols,
        to=named_dtype(to) if to else None, depth=k, addresses=tuple(addresses),
    )  # fmt: skip
    return timed(request, EmbeddedOptions(soc_version=soc_version, preset=preset, l2=l2))


def time_table(
    path: PathName, *, soc_version: str | None = None, preset: str = "device", l2: str | None = None
) -> Sequence[TableRow]:
    """Cycles of every row of a table of measured ops."""
    from insight_trace.simulate.embedded.simulator import EmbeddedOptions
    from insight_trace.simulate.embedded.single_op import time_table as timed

    return timed(Path(path), EmbeddedOptions(soc_version=soc_version, preset=preset, l2=l2))
