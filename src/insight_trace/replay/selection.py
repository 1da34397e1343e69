"""Which case, which kernels and which dispatch a replay is about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from insight_trace.dump.dump_place import find_manifest
from insight_trace.dump.load import Dump, load_dump
from insight_trace.dump.manifest_reader import open_manifest
from insight_trace.errors import InputError, RequestError, did_you_mean
from insight_trace.model import Case, CoreType, Dispatch, Kernel, Scene


def recorded_members(kernels: tuple[Kernel, ...], dispatch: Dispatch | None) -> tuple[Kernel, ...]:
    """The kernels as they were dispatched: a mix recorded as 0,1,1 runs kernel 1 on both vector cores."""
    asked = {kernel.func_id: kernel for kernel in kernels}
    if dispatch is None or not dispatch.func_ids or set(dispatch.func_ids) != set(asked):
        return kernels
    return tuple(asked[func_id] for func_id in dispatch.func_ids)


def select_case(scene: Scene, name: str | None) -> Case | None:
    """The case of that name; without a name the first that is not manual."""
    if name is None:
        return next(
            (case for case in scene.cases if not case.manual), scene.cases[0] if scene.cases else None
        )
    for case in scene.cases:
        if case.name == name:
            return case
    known = ", ".join(case.name for case in scene.cases) or "none"
    raise RequestError(f"{scene.name} has no case '{name}'", hint=f"it has: {known}")


def select_kernels(
    scene: Scene, *, func_ids: Sequence[int] = (), name: str | None = None, source: Path | None = None
) -> tuple[Kernel, ...]:
    """The kernels that one of the three ways names; of a scene with one kernel, that one."""
    given = [bool(func_ids), name is not None, source is not None].count(True)
    if given == 0 and len(scene.kernels) == 1:
        return scene.kernels
    if given != 1:
        raise RequestError(
            "choose the kernel by one of --func-id, --kernel and --kernel-source",
            hint=f"kernels of {scene.name}: {_listed(scene)}",
        )
    if func_ids:
        return tuple(_by_func_id(scene, func_id) for func_id in func_ids)
    if name is not None:
        return (_by_name(scene, name),)
    assert source is not None
    return (_by_source(scene, source),)


def _listed(scene: Scene) -> str:
    return ", ".join(f"{k.func_id} {k.name}" for k in scene.kernels) or "none"


def _by_func_id(scene: Scene, func_id: int) -> Kernel:
    for kernel in scene.kernels:
        if kernel.func_id == func_id:
            return kernel
    raise RequestError(f"{scene.name} has no kernel with func id {func_id}", hint=f"it has: {_listed(scene)}")


def _by_name(scene: Scene, name: str) -> Kernel:
    found = [k for k in scene.kernels if name.casefold() in (k.name.casefold(), k.source.stem.casefold())]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(str(kernel.func_id) for kernel in found)
        raise RequestError(
            f"{scene.name} has {len(found)} kernels called '{name}'", hint=f"use --func-id: {ids}"
        )
    guess = did_you_mean(name, [kernel.name for kernel in scene.kernels])
    raise RequestError(f"{scene.name} has no kernel '{name}'", hint=f"{guess}it has: {_listed(scene)}")


def _by_source(scene: Scene, source: Path) -> Kernel:
    path = source.resolve()
    for kernel in scene.kernels:
        if kernel.source.resolve() == path:
            return kernel
    if not path.is_file():
        raise RequestError(f"there is no kernel source {source}", hint=f"{scene.name} has: {_listed(scene)}")
    from insight_trace.scene.kernel_source import kernel_shape

    core_type = kernel_shape(path).core_type
    if core_type is CoreType.MIX:
        raise both_kinds(path)
    return Kernel(path.stem, path, core_type)


def both_kinds(source: Path) -> RequestError:
    """A source for both kinds of core says nothing about which of them a single kernel is for."""
    return RequestError(
        f"{source.name} is written for both kinds of core",
        hint="name its members with --func-id A,B of a scene; in Python give core_type='aic' or 'aiv', or a Kernel for each",
    )


class RecordedDispatch(Struct, frozen=True):
    """A dispatch and the dump it stands in."""

    dump: Dump
    dispatch: Dispatch
    step: int  # how many dispatches of the same kernel came before it


def require_complete(path: Path) -> None:
    """A capture that still runs, or that was killed with its finisher, leaves its rows beside the manifest."""
    manifest = find_manifest(path)
    if not (manifest.parent / ".rows").exists():
        return
    last = manifest.with_name("args_dump.json")  # written when everything else is
    if last.is_file():
        with open_manifest(last) as opened:
            if not opened.header.get("partial"):
                return
    raise InputError(
        "the capture that writes this dump has not ended, or was killed",
        where=str(manifest),
        hint="capture the case again (--force replaces this dump)",
    )


def case_of_dump(dump: Dump, scene: Scene, name: str | None) -> Case | None:
    """The case of that name, or the one that the dump is of; a dump of one case is not taken for another."""
    if not dump.case:
        return select_case(scene, name)
    if name is not None and name != dump.case:
        raise RequestError(
            f"this dump is of the case {dump.case}, not of {name}",
            where=str(dump.path),
            hint=f"--case {dump.case}, or a dump of {name}",
        )
    return select_case(scene, dump.case)


def select_dispatch(
    path: Path, scene: Scene, func_ids: Sequence[int], dispatch_id: int | None, task_id: int | None
) -> RecordedDispatch:
    """The dispatch that matches the func ids and the id; without an id the first of that kernel."""
    require_complete(path)
    dump = load_dump(path, scene)
    dispatch = dump.dispatch(func_ids=func_ids, dispatch_id=dispatch_id, task_id=task_id)
    return RecordedDispatch(dump, dispatch, int(dump.steps()[dump.number_of(dispatch)]))
