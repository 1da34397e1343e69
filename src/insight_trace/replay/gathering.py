"""Arguments for a replay, from whichever source was asked for, with the user's changes applied."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.arguments.overrides import apply_overrides
from insight_trace.arguments.slots import ReplayArguments
from insight_trace.errors import RequestError
from insight_trace.model import Dispatch
from insight_trace.replay.request import ReplayRequest
from insight_trace.replay.selection import RecordedDispatch, Selection, select_dispatch


class Gathered(Struct, frozen=True):
    """The arguments, and the recorded dispatch where there is one."""

    arguments: ReplayArguments
    origin: str  # as people read it
    dispatch: Dispatch | None = None


def gather_arguments(request: ReplayRequest, selection: Selection) -> Gathered:
    """The first source that the request names: a dump, a spec, a recipe; with none of them a capture."""
    if request.dump_dir is not None:
        gathered = _from_dump(request, selection)
    elif request.arg_spec is not None:
        from insight_trace.arguments.arg_spec import read_arg_spec

        gathered = Gathered(read_arg_spec(request.arg_spec), f"arg spec {request.arg_spec}")
    elif request.recipe:
        gathered = _from_recipe(selection)
    else:
        gathered = _from_capture(request, selection)
    arguments = apply_overrides(gathered.arguments, request.overrides, gathered.dispatch)
    if request.block_dim is not None:
        arguments = replace(arguments, block_count=request.block_dim)
    return replace(gathered, arguments=arguments)


def _from_recipe(selection: Selection) -> Gathered:
    from insight_trace.arguments.argument_recipes import from_recipe

    if selection.case is None:
        raise RequestError("a recipe needs a case of the scene")
    if len(selection.kernels) != 1:
        raise RequestError("recipes make the arguments of one kernel, not of a mix")
    name = selection.kernels[0].name
    return Gathered(from_recipe(name, selection.case), f"recipe {name}")


def _from_dump(request: ReplayRequest, selection: Selection) -> Gathered:
    assert request.dump_dir is not None
    recorded = select_dispatch(
        request.dump_dir, selection.scene, request.func_ids, request.dispatch_id, request.task_id
    )
    return recorded_arguments(recorded, selection)


def recorded_arguments(recorded: RecordedDispatch, selection: Selection) -> Gathered:
    """What a dump holds of a dispatch, as its replay takes it."""
    from insight_trace.arguments.dispatch import from_dispatch

    dispatch = recorded.dispatch
    signature = selection.kernels[0].signature if len(selection.kernels) == 1 else None
    arguments = from_dispatch(dispatch, signature=signature, others=recorded.dump.dispatches)
    if "scalars" in dispatch.missing:
        arguments = _with_recipe_scalars(arguments, selection, recorded.step)
    if recorded.dump.warnings:
        arguments = replace(arguments, notes=(*arguments.notes, *recorded.dump.warnings))
    return Gathered(arguments, f"dump {recorded.dump.path}", dispatch)


def _with_recipe_scalars(arguments: ReplayArguments, selection: Selection, step: int) -> ReplayArguments:
    """The oldest dumps hold no scalars; a recipe knows those of its kernels."""
    from insight_trace.arguments.argument_recipes import from_recipe, recipe_names, with_missing_scalars

    if len(selection.kernels) != 1 or selection.case is None:
        return arguments
    name = selection.kernels[0].name
    if name.casefold() not in {known.casefold() for known in recipe_names()}:
        return arguments
    try:
        made = from_recipe(name, selection.case, step)
    except RequestError:
        return arguments  # the case's parameters are not those of this recipe
    return with_missing_scalars(arguments, made)


def _from_capture(request: ReplayRequest, selection: Selection) -> Gathered:
    """No source was given: run the case on the host and take the kernel's first dispatch from what it records."""
    from insight_trace.replay.capturing import captured_dispatch

    return recorded_arguments(captured_dispatch(request, selection), selection)
