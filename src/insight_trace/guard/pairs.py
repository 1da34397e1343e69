"""From two folders to pairs of kernels on the same data: PyPTO builds, scenes, and workspaces of replays and programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.guard.comparing import Pair
from insight_trace.guard.matching import Listed, Match, listed, match, source_text
from insight_trace.job import Job
from insight_trace.model import Kernel, Scene
from insight_trace.options import RunOptions, repeated
from insight_trace.profile import ProfileRequest, list_kernels
from insight_trace.profile.build_run import with_workloads
from insight_trace.profile.embedded_runner import EmbeddedRunner
from insight_trace.ptoas.kernel_plan import Settings
from insight_trace.ptoas.planned_kernel import BrokenKernel, BufferArg, PlannedKernel, ProfileKernel, ValueArg
from insight_trace.reading import is_folder
from insight_trace.replay.jobs import ReplayRequest, jobs_of
from insight_trace.replay.workspace import RECORD, read_record
from insight_trace.scene.build_directory import CONFIG
from insight_trace.scene.static import load_scene

_FUNCS = "funcs"  # of a profile run, a workspace for each kernel
_GUESSED = ("loop bound", "condition")
_MOST_COMPILED_VARIANTS = 2

Say = Callable[[str], None]


class Paired(Struct, frozen=True, eq=False):
    """All that there is to judge."""

    pairs: tuple[Pair, ...]
    same: tuple[tuple[str, str, str], ...]  # the same code: names in both, and what matched them
    gone: tuple[str, ...]
    new: tuple[tuple[str, Job | None, str], ...]  # with data of its own, or why there is none
    notes: tuple[str, ...] = ()


class How(Struct, frozen=True):
    """How pairs are made."""

    options: RunOptions
    case: str | None = None
    synthetic: bool = False  # made-up arguments, without a run of the build
    run_same: bool = False  # also kernels whose code is the same
    threshold: float = 0.01
    settings: Settings = field(default_factory=Settings)


def paired(a: Path, b: Path, how: How, folder: Path, say: Say = lambda _: None) -> Paired:
    """What both paths hold, matched; runs of builds and captures go into `folder`."""
    kinds = kind_of(a), kind_of(b)
    if kinds[0] != kinds[1]:
        raise RequestError(
            f"{a} is {kinds[0]}, and {b} is {kinds[1]}: only two of a kind are compared",
            hint="two PyPTO builds, two scenes, two folders of workspaces, or two baselines",
        )
    if kinds[0] == WORKSPACES:
        return _workspaces(a, b, how)
    if kinds[0] == BUILD:
        return _builds(a, b, how, folder, say)
    return _scenes(a, b, how, folder, say)


BUILD, SCENE, WORKSPACES, BASELINE = "a PyPTO build", "a scene", "a folder of workspaces", "a gate baseline"


def kind_of(path: Path) -> str:
    """What a path is; an error for anything that cannot be compared."""
    if path.suffix == ".json" and path.is_file():
        return BASELINE
    if path.suffix == ".py" and path.is_file():
        return SCENE
    if not is_folder(path):
        raise RequestError(
            f"there is no {path}",
            hint="give a PyPTO build, a scene, a folder of workspaces, or a gate baseline",
        )
    if _workspaces_in(path):
        return WORKSPACES
    if (path / CONFIG).is_file() or any(path.glob("**/ptoas")) or any(path.glob("**/kernels/**/*.pto")):
        return BUILD
    raise RequestError(
        f"{path} holds no kernels: no {CONFIG}, no ptoas folder, and no {RECORD} of a workspace",
        hint="give a PyPTO build, a scene, a folder of workspaces, or a gate baseline",
    )


# --- builds ----------------------------------------------------------------------------------------------


def _builds(a: Path, b: Path, how: How, folder: Path, say: Say) -> Paired:
    say("read both builds")
    plans = [list_kernels(ProfileRequest(path, settings=how.settings)) for path in (a, b)]
    found, left, right = match(
        *([_listed(kernel, path) for kernel in plan] for plan, path in zip(plans, (a, b), strict=True))
    )
    texts = [
        [_listed(kernel, path).text for kernel in plan] for plan, path in zip(plans, (a, b), strict=True)
    ]
    same = [] if how.run_same else [one for one in found if texts[0][one.a] == texts[1][one.b]]
    differing = [one for one in found if one not in same]
    notes: list[str] = []
    on_data = {kernel.name: kernel for kernel in plans[0]}
    if differing and not how.synthetic:
        say("run the first build")
        wanted = tuple(plans[0][one.a] for one in differing)
        ran = with_workloads(
            wanted, a, folder / "a", "median", target=how.settings.target, seconds=how.options.seconds,
            warn=notes.append,
        )  # fmt: skip
        on_data |= {kernel.name: kernel for kernel in ran}
    runner = EmbeddedRunner(how.options)
    scenes: dict[Path, Scene | None] = {}
    pairs = [
        _build_pair(on_data[plans[0][one.a].name], plans[1][one.b], one, how, runner, scenes, b)
        for one in differing
    ]
    return Paired(
        tuple(pairs),
        tuple((plans[0][one.a].name, plans[1][one.b].name, one.by) for one in same),
        tuple(plans[0][i].name for i in left),
        tuple(_new(plans[1][j], runner) for j in right),
        tuple(notes),
    )


def _listed(kernel: PlannedKernel, build: Path) -> Listed:
    if isinstance(kernel, BrokenKernel):
        return listed(kernel.name, kernel.kind, (), [source_text(kernel.source)], (kernel.name,))
    functions = kernel.functions
    signature = [
        f"{p.type}{'*' if p.is_pointer else ''}" for function in functions for p in function.parameters
    ]
    names = (kernel.entry, *(function.name for function in functions))
    texts = [source_text(kernel.source), *(source_text(path) for path in _wrapped(kernel, build))]
    return listed(kernel.name, kernel.kind.value, signature, texts, names)


def _wrapped(kernel: ProfileKernel, build: Path) -> list[Path]:
    """The kernel as the build's own run dispatches it."""
    for folder in kernel.source.parents:
        found = [
            path
            for function in kernel.functions
            for path in sorted((folder / "kernels").glob(f"*/{function.name}.cpp"))
        ]
        if found or folder == build:
            return found
    return []


def _build_pair(
    a: PlannedKernel,
    b: PlannedKernel,
    one: Match,
    how: How,
    runner: EmbeddedRunner,
    scenes: dict[Path, Scene | None],
    build_b: Path,
) -> Pair:
    shell = Pair(a.name, b.name, one.by, None, None, how.options, threshold=how.threshold)
    if isinstance(a, BrokenKernel) or isinstance(b, BrokenKernel):
        said = [kernel.problem if isinstance(kernel, BrokenKernel) else "" for kernel in (a, b)]
        return replace(shell, problem_a=_short(said[0]), problem_b=_short(said[1]))
    same = _types(a) == _types(b)
    data = (
        f"dispatch {a.workload.number} of {a.workload.count} of A's run"
        if a.workload
        else "made-up arguments"
    )
    variants: list[tuple[str, Job, Job]] = []
    try:
        if same and a.workload is not None:
            on_same = _with_workload_of(a, b, scenes, build_b)
            if on_same is None:
                a, data = dataclasses.replace(a, workload=None), "made-up arguments"
            else:
                b = on_same
        if same and a.workload is None:
            a, b = _on_same_arguments(a, b)
            variants = [(what, runner.job(x), runner.job(y)) for what, x, y in _with_other_values(a, b)]
        elif not same:
            a, data = dataclasses.replace(a, workload=None), "made-up arguments of each"
        jobs = runner.job(a), runner.job(b)
    except InsightTraceError as error:
        return replace(shell, problem_a=str(error))
    return replace(shell, a=jobs[0], b=jobs[1], data=data, same_data=same, variants=tuple(variants))


def _types(kernel: ProfileKernel) -> list[tuple[str, bool]]:
    return [(p.type, p.is_pointer) for function in kernel.functions for p in function.parameters]


def _with_workload_of(
    a: ProfileKernel, b: ProfileKernel, scenes: dict[Path, Scene | None], build_b: Path
) -> ProfileKernel | None:
    """The second build's kernel on the first one's dispatch; None where it is not there in that form."""
    work = a.workload
    assert work is not None
    program = next((p for p in b.source.parents if (p / CONFIG).is_file()), None)
    if program is None or not program.is_relative_to(build_b):
        return None
    if program not in scenes:
        try:
            scenes[program] = load_scene(program)
        except InsightTraceError:
            scenes[program] = None
    scene = scenes[program]
    if scene is None:
        return None
    by_name = {kernel.name: kernel for kernel in scene.kernels}
    names = {one.name: other.name for one, other in zip(a.functions, b.functions, strict=True)}
    members = [by_name.get(names.get(kernel.name, "")) for kernel in work.kernels]
    found = tuple(kernel for kernel in members if kernel is not None)
    if len(found) != len(members):
        return None
    return dataclasses.replace(b, workload=dataclasses.replace(work, kernels=found, scene=scene))


def _on_same_arguments(a: ProfileKernel, b: ProfileKernel) -> tuple[ProfileKernel, ProfileKernel]:
    """Both on the arguments that were made up for the first; a buffer is as large as either needs it."""
    merged = []
    for one, other in zip(a.arguments, b.arguments, strict=True):
        if isinstance(one, BufferArg) and isinstance(other, BufferArg) and other.elements > one.elements:
            one = dataclasses.replace(one, elements=other.elements)
        merged.append(one)
    return (
        dataclasses.replace(a, arguments=tuple(merged)),
        dataclasses.replace(b, arguments=tuple(merged), seed=a.seed, workload=None),
    )


def _with_other_values(a: ProfileKernel, b: ProfileKernel) -> list[tuple[str, ProfileKernel, ProfileKernel]]:
    """Made-up scalars that decide how often a loop turns or whether a branch is taken, as zero."""
    found = []
    for place, argument in enumerate(a.arguments):
        if not isinstance(argument, ValueArg) or argument.why not in _GUESSED or not argument.value:
            continue
        zero = dataclasses.replace(argument, value=0)
        both = [
            dataclasses.replace(k, arguments=(*k.arguments[:place], zero, *k.arguments[place + 1 :]))
            for k in (a, b)
        ]
        found.append((f"{argument.label} = 0", both[0], both[1]))
    return found[:_MOST_COMPILED_VARIANTS]


def _new(kernel: PlannedKernel, runner: EmbeddedRunner) -> tuple[str, Job | None, str]:
    if isinstance(kernel, BrokenKernel):
        return kernel.name, None, _short(kernel.problem)
    try:
        return kernel.name, runner.job(kernel), ""
    except InsightTraceError as error:
        return kernel.name, None, str(error)


def _short(text: str) -> str:
    return " ".join(text.split())[:300]


# --- scenes ----------------------------------------------------------------------------------------------


def _scenes(a: Path, b: Path, how: How, folder: Path, say: Say) -> Paired:
    """Every kernel that the first scene's case dispatches, and the second scene's in its place."""
    scenes = [load_scene(path) for path in (a, b)]
    kernels = [list(scene.kernels) for scene in scenes]
    found, left, right = match(*([_listed_kernel(kernel) for kernel in side] for side in kernels))
    texts = [[_listed_kernel(kernel).text for kernel in side] for side in kernels]
    unchanged = {one.a for one in found if texts[0][one.a] == texts[1][one.b]}
    partner = {one.a: one for one in found}
    request = ReplayRequest(a, how.case, options=replace(how.options, any_target=True, simulator="embedded"))
    say("capture the first scene")
    pairs, same, gone, notes = [], [], [], []
    ran: set[int] = set()
    for job in jobs_of(request, folder / "a"):
        places = [_place(kernels[0], kernel) for kernel in job.kernels]
        ran |= set(places)
        name = "+".join(dict.fromkeys(kernel.name for kernel in job.kernels))
        if any(place not in partner for place in places):
            gone.append(name)
            continue
        matched = [partner[place] for place in places]
        members = tuple(kernels[1][one.b] for one in matched)
        name_b = "+".join(dict.fromkeys(kernel.name for kernel in members))
        by = " and ".join(dict.fromkeys(one.by for one in matched))
        if set(places) <= unchanged and not how.run_same:
            same.append((name, name_b, by))
            continue
        other = replace(job, kernels=members, scene=scenes[1])
        pairs.append(
            Pair(name, name_b, by, job, other, how.options, data=job.origin, threshold=how.threshold)
        )
    gone += [kernels[0][i].name for i in left if i not in ran]
    idle = [kernels[0][one.a].name for one in found if one.a not in ran and one.a not in unchanged]
    if idle:
        notes.append(f"the case does not dispatch {', '.join(idle)}: their changes are not judged")
    new = [_new_of_scene(b, kernels[1][j], how, folder / f"b{j}") for j in right]
    return Paired(tuple(pairs), tuple(same), tuple(gone), tuple(new), tuple(notes))


def _place(kernels: Sequence[Kernel], kernel: Kernel) -> int:
    return next(
        i
        for i, k in enumerate(kernels)
        if (k.name, k.source, k.core_type) == (kernel.name, kernel.source, kernel.core_type)
    )


def _listed_kernel(kernel: Kernel) -> Listed:
    text = source_text(kernel.source, kernel.include_dirs)
    return listed(kernel.name, kernel.core_type.value, kernel.signature or (), [text], (kernel.name,))


def _new_of_scene(scene: Path, kernel: Kernel, how: How, folder: Path) -> tuple[str, Job | None, str]:
    request = ReplayRequest(
        scene, how.case, kernel=kernel.name, options=replace(how.options, any_target=True)
    )
    try:
        return kernel.name, next(iter(jobs_of(request, folder)), None), "the case does not dispatch it"
    except InsightTraceError as error:
        return kernel.name, None, str(error)


# --- workspaces ------------------------------------------------------------------------------------------


def _workspaces_in(folder: Path) -> list[Path]:
    """A workspace, or those in a folder that `exec` or `profile` wrote."""
    if (folder / RECORD).is_file():
        return [folder]
    found = sorted(folder.glob(f"*/{RECORD}")) or sorted(folder.glob(f"{_FUNCS}/*/{RECORD}"))
    return [path.parent for path in found]


def _workspaces(a: Path, b: Path, how: How) -> Paired:
    sides = [[(place, *read_record(place)) for place in _workspaces_in(path)] for path in (a, b)]
    found, left, right = match(*([_listed_job(job) for _, job, _ in side] for side in sides))
    texts = [[_listed_job(job).text for _, job, _ in side] for side in sides]
    pairs, same = [], []
    for one in found:
        (place_a, job_a, record), (place_b, job_b, _) = sides[0][one.a], sides[1][one.b]
        if texts[0][one.a] == texts[1][one.b] and not how.run_same:
            same.append((place_a.name, place_b.name, one.by))
            continue
        options = repeated(how.options, {**record, "simulator": None, "timing_only": None})
        fits = _slots(job_a) == _slots(job_b)
        other = replace(job_b, arguments=job_a.arguments) if fits else job_b
        pairs.append(
            Pair(
                place_a.name, place_b.name, one.by, job_a, other, options, same_data=fits,
                data=f"what {place_a.name} recorded" if fits else "what each recorded", threshold=how.threshold,
            )
        )  # fmt: skip
    return Paired(
        tuple(pairs),
        tuple(same),
        tuple(sides[0][i][0].name for i in left),
        tuple((sides[1][j][0].name, sides[1][j][1], "") for j in right),
    )


def _slots(job: Job) -> list[tuple[int, str, bool]]:
    tensors = {item.slot for item in job.arguments.tensors}
    return [(item.slot, item.dtype.name, item.slot in tensors) for item in job.arguments.slots]


def _listed_job(job: Job) -> Listed:
    kernels = {kernel.source: kernel for kernel in job.kernels}.values()
    texts = [source_text(kernel.written or kernel.source, kernel.include_dirs) for kernel in kernels]
    kind = "mix" if len({kernel.core_type for kernel in job.kernels}) > 1 else job.kernels[0].core_type.value
    return listed(job.label, kind, [f"{slot[1:]}" for slot in _slots(job)], texts, {k.name for k in kernels})
