"""Jobs from what a user names: the case, the kernels, the target, and arguments from whichever source serves."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from insight_trace.arguments.overrides import Overrides, apply_overrides
from insight_trace.arguments.slots import ReplayArguments
from insight_trace.chips import TARGETS, target_of_chip
from insight_trace.dump.load import load_dump
from insight_trace.errors import JobError, RequestError
from insight_trace.job import Job, PythonSource
from insight_trace.model import Case, Dispatch, Kernel, Role, Scene, TensorArg
from insight_trace.options import RunOptions, VendorOptions, target_of_platform
from insight_trace.replay.selection import (
    RecordedDispatch,
    case_of_dump,
    recorded_members,
    select_case,
    select_dispatch,
    select_kernels,
)
from insight_trace.scene.build_directory import CONFIG

if TYPE_CHECKING:
    from insight_trace.capture.session import CaptureOptions

Progress = Callable[[str], None]


def job_of(request: ReplayRequest, progress: Progress = lambda _step: None) -> Job:
    """The one job that a request names: its arguments from a dump, a spec or a recipe, or else from a capture."""
    from insight_trace.scene.static import load_scene

    progress("scene")
    scene = load_scene(request.scene)
    kernels = select_kernels(
        scene, func_ids=request.func_ids, name=request.kernel, source=request.kernel_source
    )
    recorded = None
    if request.dump_dir is not None:
        recorded = select_dispatch(
            request.dump_dir, scene, request.func_ids, request.dispatch_id, request.task_id
        )
        case = case_of_dump(recorded.dump, scene, request.case)
    else:
        case = select_case(scene, request.case)
    target = target_of(request.options, case, kernels)
    _require_target(request, scene, case, kernels, target)
    progress("arguments")
    if recorded is not None:
        job = recorded_job(recorded, scene, case, kernels, target)
    elif request.arg_spec is not None:
        from insight_trace.arguments.arg_spec import read_arg_spec

        spec = read_arg_spec(request.arg_spec)
        _require_every_slot(spec, kernels, request.arg_spec)
        job = Job(kernels, spec, target, scene, case, origin=f"arg spec {request.arg_spec}")
    elif request.recipe:
        job = _from_recipe(scene, case, kernels, target)
    else:
        # no source was named: run the case on the host and take the kernel's first dispatch from what it records
        job = recorded_job(_captured_dispatch(request, scene, case, kernels), scene, case, kernels, target)
    arguments = apply_overrides(job.arguments, request.overrides, job.dispatch)
    if request.options.blocks is not None:
        arguments = replace(arguments, block_count=request.options.blocks)
    held = held_slots(request.dump_dir, job.dispatch) if request.options.l2 == "trace" else ()
    return replace(job, arguments=arguments, held=held, python=python_of_build(job.kernels))


def recorded_job(
    recorded: RecordedDispatch, scene: Scene, case: Case | None, kernels: tuple[Kernel, ...], target: str
) -> Job:
    """What a dump holds of a dispatch, as its replay takes it."""
    from insight_trace.arguments.dispatch import from_dispatch

    dispatch = recorded.dispatch
    signature = kernels[0].signature if len(kernels) == 1 else None
    arguments = from_dispatch(dispatch, signature=signature, earlier=recorded.dump.earlier)
    if "scalars" in dispatch.missing:
        arguments = _with_recipe_scalars(arguments, case, kernels, recorded.step)
    if recorded.dump.warnings:
        arguments = replace(arguments, notes=(*arguments.notes, *recorded.dump.warnings))
    members = recorded_members(kernels, dispatch)
    return Job(members, arguments, target, scene, case, dispatch, f"dump {recorded.dump.path}")


def _require_every_slot(spec: ReplayArguments, kernels: tuple[Kernel, ...], path: Path) -> None:
    """A slot that a spec leaves out is a null pointer or a zero to the kernel: not what anybody means."""
    from insight_trace.scene.kernel_source import kernel_shape

    reads = sorted({slot for kernel in kernels for slot in kernel_shape(kernel).slots})
    have = {item.slot for item in spec.slots}
    lacks = [str(slot) for slot in reads if slot not in have]
    if lacks:
        raise RequestError(
            f"the spec has no slot {', '.join(lacks)}; the source of {kernels[0].name} reads slots "
            f"{', '.join(map(str, reads))}",
            where=str(path),
            hint=f'add an entry with "index": {lacks[0]}; docs/arg-spec.md has the form of one',
        )


def _from_recipe(scene: Scene, case: Case | None, kernels: tuple[Kernel, ...], target: str) -> Job:
    from insight_trace.arguments.argument_recipes import from_recipe

    if case is None:
        raise RequestError("a recipe needs a case of the scene")
    if len(kernels) != 1:
        raise RequestError("recipes make the arguments of one kernel, not of a mix")
    name = kernels[0].name
    return Job(kernels, from_recipe(name, case), target, scene, case, origin=f"recipe {name}")


def _with_recipe_scalars(
    arguments: ReplayArguments, case: Case | None, kernels: tuple[Kernel, ...], step: int
) -> ReplayArguments:
    """The oldest dumps hold no scalars; a recipe knows those of its kernels."""
    from insight_trace.arguments.argument_recipes import from_recipe, recipe_names, with_missing_scalars

    if len(kernels) != 1 or case is None:
        return arguments
    name = kernels[0].name
    if name.casefold() not in {known.casefold() for known in recipe_names()}:
        return arguments
    try:
        made = from_recipe(name, case, step)
    except RequestError:
        return arguments  # the case's parameters are not those of this recipe
    return with_missing_scalars(arguments, made)


def _captured_dispatch(
    request: ReplayRequest, scene: Scene, case: Case | None, kernels: tuple[Kernel, ...]
) -> RecordedDispatch:
    """The first dispatch of the kernels, or the task that the request names, with its payload.

    Nothing else is recorded, and the run ends when it is done: a case of a thousand tasks costs one of them.
    """
    from insight_trace.capture.session import CaptureOptions, run_capture

    func_ids = tuple(kernel.func_id for kernel in kernels if kernel.func_id is not None)
    if case is None or len(func_ids) != len(kernels):
        raise RequestError(
            "no arguments were given, and this kernel is not part of a case that could be captured",
            hint="give --dump-dir with --func-id, --arg-spec, or --recipe",
        )
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S_%f")[:-3]
    label = "_".join(dict.fromkeys(kernel.name for kernel in kernels))
    output = Path("outputs") / f"{scene.class_name.replace('/', '_')}_{case.name}_{label}_{stamp}"
    options = CaptureOptions(
        level=2,
        platform=request.options.platform,
        seconds=request.options.seconds,
        golden=False,
        only_kernels=func_ids,
        only_task=request.task_id,
    )
    try:
        capture = run_capture(request.scene, case.name, output, options)
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise
    if capture.directory is None or capture.failure is not None:
        shutil.rmtree(output, ignore_errors=True)
        if capture.failure is None and request.task_id is None:
            _require_whole_mix(request, func_ids, output)
        why = str(capture.failure) if capture.failure else capture.note
        which = f" task 0x{request.task_id:x} of" if request.task_id is not None else ""
        raise JobError(
            f"capturing{which} {case.name} for func id {','.join(map(str, func_ids))}: {why}",
            hint="`insight-trace capture SCENE --dump-args 3` lists what is dispatched; or give --dump-dir",
        )
    return select_dispatch(capture.directory, scene, func_ids, None, request.task_id)


def _require_whole_mix(request: ReplayRequest, func_ids: tuple[int, ...], folder: Path) -> None:
    """Kernels that the case dispatches with others only are named with those."""
    from insight_trace.capture.session import CaptureOptions

    try:
        ran = load_dump(_captured(request, folder, CaptureOptions(level=3))).kernels()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    asked = ",".join(map(str, func_ids))
    whole = next((members for members in ran if set(func_ids) < set(members)), None)
    if whole is not None:
        together = ",".join(map(str, whole))
        raise RequestError(
            f"func id {asked} is part of a mix: the case dispatches {together} together",
            hint=f"use --func-id {together}",
        )
    listed = " · ".join(",".join(map(str, members)) for members in ran)
    raise RequestError(
        f"the case dispatches no func id {asked}", hint=f"it dispatches {listed}: use one of these"
    )


# --- the target


def target_of(options: RunOptions, case: Case | None, kernels: tuple[Kernel, ...]) -> str:
    """What was asked for; else a5 when the chip, the platform, the case's only platforms, or the kernel's place say so."""
    if options.target:
        return options.target
    chip = target_of_chip(options.soc_version or "")
    if chip:
        return chip
    if options.platform:
        return target_of_platform(options.platform)
    platforms = case.platforms if case else ()
    if platforms and all(platform.startswith("a5") for platform in platforms):
        return "a5"
    return _family_of_place(kernels[0].source) or "a2a3"


def _family_of_place(source: Path) -> str:
    """The family that a checkout keeps the kernel under; folders above the checkout say nothing about it."""
    for folder in source.parents:
        if (folder / ".git").exists():
            return ""
        if folder.name in TARGETS:
            return folder.name
    return ""


def _require_target(
    request: ReplayRequest, scene: Scene, case: Case | None, kernels: tuple[Kernel, ...], target: str
) -> None:
    """A kernel that was written for one family is not run on the other without a word."""
    chip = target_of_chip(request.options.soc_version or "")
    if chip and chip != target:
        raise RequestError(
            f"{request.options.soc_version} is a chip of {chip}, and --target says {target}",
            hint="leave one of the two out",
        )
    cases = (case,) if case else scene.cases
    platforms = sorted({platform for one in cases for platform in one.platforms})
    known = {platform.removesuffix("sim") for platform in platforms}
    if request.options.any_target or not platforms or target in known:
        return
    raise RequestError(
        f"{kernels[0].name} was written for {', '.join(platforms)}, not for {target}",
        where=str(scene.path),
        hint="add the platform to the case, or replay it all the same with --any-target"
        + (" (--force only replaces an existing workspace)" if request.force else ""),
    )


# --- what else a job knows


def held_slots(dump_dir: Path | None, dispatch: Dispatch | None) -> tuple[tuple[int, bool], ...]:
    """Slots of the dispatch that an earlier one used, the longest ago first, and whether it wrote them: L2 holds them."""
    if dump_dir is None or dispatch is None:
        raise RequestError(
            "--l2 trace needs a dump: it is what earlier dispatches left",
            hint="give --dump-dir, or --l2 cold or warm",
        )
    dump = load_dump(dump_dir)
    used = []
    for argument in dispatch.arguments:
        if not isinstance(argument, TensorArg) or not argument.pointer:
            continue
        last, written = -1, False  # when it was used last, and whether it was ever written
        for earlier in dump.earlier(dispatch, argument.pointer):
            if earlier.dispatch_id < dispatch.dispatch_id:
                last = max(last, earlier.dispatch_id)
                written = any(
                    isinstance(a, TensorArg)
                    and a.pointer == argument.pointer
                    and a.role in (Role.OUTPUT, Role.INOUT)
                    for a in earlier.arguments
                )
                if written:
                    break
        if last >= 0:
            used.append((last, written, argument.slot))
    return tuple((slot, written) for _, written, slot in sorted(used))


def python_of_build(kernels: tuple[Kernel, ...]) -> PythonSource | None:
    """The user's Python behind the lines of a PyPTO build's kernels; None: they are of no build."""
    build = next((p for p in kernels[0].source.parents if (p / CONFIG).is_file()), None)
    if build is None:
        return None
    from insight_trace.ptoas.python_trace import lines_of_build

    lines = lines_of_build(kernels, build)
    return PythonSource(lines, (build, *build.parents[:2])) if lines else None


# --- every kernel of a case


def jobs_of(
    request: ReplayRequest, folder: Path, progress: Progress = lambda _step: None, dump: Path | None = None
) -> Iterator[Job]:
    """A job for each kernel and mix that the request names: the one asked for, or all that the case dispatches.

    Their arguments: what was named, the first dispatches in `dump`, or what a run of the case records in `folder`.
    """
    from insight_trace.capture.session import CaptureOptions
    from insight_trace.scene.static import load_scene

    if request.dump_dir is not None or request.arg_spec is not None or request.recipe:
        yield job_of(request)
        return
    scene = load_scene(request.scene)
    if dump is None:
        progress("capture")
        if request.func_ids or request.kernel or request.kernel_source:
            chosen = select_kernels(
                scene, func_ids=request.func_ids, name=request.kernel, source=request.kernel_source
            )
            ids = tuple(kernel.func_id for kernel in chosen if kernel.func_id is not None)
            options = CaptureOptions(only_kernels=ids, only_task=request.task_id)
        else:
            # what is dispatched is found by a run without payload; then each is recorded once
            listed = _captured(request, folder / "list", CaptureOptions(level=3))
            ran = load_dump(listed, scene)
            first = tuple(ran.dispatches[number].dispatch_id for number in ran.kernels().values())
            options = CaptureOptions(only_dispatches=first)
        dump = _captured(request, folder / "dump", options)
    recorded = load_dump(dump, scene)
    for func_ids, number in recorded.kernels().items():
        yield job_of(
            replace(
                request,
                kernel=None,
                kernel_source=None,
                task_id=None,
                func_ids=func_ids,
                dump_dir=dump,
                dispatch_id=recorded.dispatches[number].dispatch_id,
            )
        )


def _captured(request: ReplayRequest, folder: Path, options: CaptureOptions) -> Path:
    import dataclasses

    from insight_trace.capture.session import run_capture

    run = request.options
    options = dataclasses.replace(options, platform=run.platform, seconds=run.seconds, golden=False)
    capture = run_capture(request.scene, request.case, folder, options)
    if capture.directory is None or capture.failure is not None:
        raise JobError(
            f"the case does not run: {capture.failure or capture.note}",
            hint="name one kernel with --func-id and give its arguments with --dump-dir or --arg-spec",
        )
    return capture.directory


# --- what a replay was asked to do


class ReplayRequest(Struct, frozen=True):
    """One replay. Paths are the caller's; nothing is read before the replay runs."""

    scene: Path
    case: str | None = None
    func_ids: tuple[int, ...] = ()
    kernel: str | None = None
    kernel_source: Path | None = None
    # where the arguments come from: a dump, a spec, a recipe, or else a capture of the case
    dump_dir: Path | None = None
    dispatch_id: int | None = None
    task_id: int | None = None
    arg_spec: Path | None = None
    recipe: bool = False
    overrides: Overrides = field(default_factory=Overrides)
    options: RunOptions = field(default_factory=RunOptions)
    vendor: VendorOptions = field(default_factory=VendorOptions)
    # what to write
    output: Path | None = None
    build: str = ""  # the name of a PyPTO build, whose extern kernel is profiled: decides the usual workspace
    label: str | None = None  # of the named traces in the workspace; None: class, case, target, kernel
    collect: bool = True  # False: stop when the workspace is written
    force: bool = False  # replace a workspace that is there
    as_recorded: bool = False  # of a workspace: the text that it holds, not the files as they are now

    def __post_init__(self) -> None:
        if self.dump_dir is not None and not self.func_ids:
            raise RequestError(
                "--dump-dir needs --func-id: a dispatch is chosen by both its kernel and its id",
                hint="`insight-trace dump list DIR` shows func ids and dispatch ids",
            )
        sources = [self.dump_dir is not None, self.arg_spec is not None, self.recipe].count(True)
        if sources > 1:
            raise RequestError("choose one of --dump-dir, --arg-spec and --recipe")
        if self.dump_dir is None and self.dispatch_id is not None:
            raise RequestError(
                "--dispatch-id chooses from a dump: give --dump-dir",
                hint="`insight-trace capture SCENE -o DIR` makes one, `insight-trace dump list DIR` shows what it holds",
            )

    def require_of(self, job: Job) -> None:
        """Of a workspace, which has one dispatch and its arguments: nothing else may be asked for."""
        has = [kernel.func_id for kernel in job.kernels if kernel.func_id is not None]
        if not set(self.func_ids) <= set(has):
            raise RequestError(
                f"{self.scene} has no kernel with func id {','.join(map(str, self.func_ids))}",
                hint=f"it is the workspace of {', '.join(kernel.name for kernel in job.kernels)}: leave --func-id out",
            )
        if self.dump_dir is not None or self.arg_spec is not None or self.recipe:
            raise RequestError(
                f"{self.scene} is a workspace, which has its arguments",
                hint="leave --dump-dir, --arg-spec and --recipe out, or give the scene instead",
            )
