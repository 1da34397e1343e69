"""Which kernel a dispatch ran, where the dump does not say: from the scene, and reported as inferred."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.model import CoreType, Dispatch, Kernel, Role, Scene, TensorArg

_ROLE_OF_DIRECTION = {"IN": Role.INPUT, "OUT": Role.OUTPUT, "INOUT": Role.INOUT}
_MOST_COMBINATIONS = 20_000


class Naming(Struct, frozen=True):
    """Kernel names and core types by func id."""

    kernels: dict[int, Kernel]

    @classmethod
    def of(cls, scene: Scene | None) -> Naming:
        kernels = {} if scene is None else {k.func_id: k for k in scene.kernels if k.func_id is not None}
        return cls(kernels)

    def _members(self, func_ids: Sequence[int]) -> list[Kernel]:
        """The kernels of these ids; none where one is not known."""
        members = [self.kernels[i] for i in func_ids if i in self.kernels]
        return members if len(members) == len(func_ids) else []

    def name_of(self, func_ids: Sequence[int], recorded: str) -> str:
        """What a kernel or the members of a mix are called: as the dump has it, else by the scene."""
        return recorded or "+".join(dict.fromkeys(k.name for k in self._members(func_ids)))

    def named(self, dispatch: Dispatch) -> Dispatch:
        """The dispatch with its kernel's name and core type, and roles where the file had none."""
        members = self._members(dispatch.func_ids)
        if not members:
            return dispatch
        inferred = list(dispatch.inferred)
        arguments = dispatch.arguments
        signature = members[0].signature
        if len(members) == 1 and signature is not None:
            arguments = tuple(
                replace(a, role=_ROLE_OF_DIRECTION.get(signature[a.slot]))
                if isinstance(a, TensorArg) and a.role is None and a.slot < len(signature)
                else a
                for a in arguments
            )
            if arguments != dispatch.arguments:
                inferred.append("role")
        core_type = dispatch.core_type
        if core_type is None or "core_type" in inferred:
            core_type = members[0].core_type if len(members) == 1 else CoreType.MIX
            inferred = [*(name for name in inferred if name != "core_type"), "core_type"]
        kernel = self.name_of(dispatch.func_ids, dispatch.kernel)
        missing = tuple(m for m in dispatch.missing if m != "core_type")
        return replace(
            dispatch,
            arguments=arguments,
            core_type=core_type,
            kernel=kernel,
            inferred=tuple(inferred),
            missing=missing,
        )


def name_dispatches(
    dispatches: Sequence[Dispatch], scene: Scene | None, warnings: list[str]
) -> Sequence[Dispatch]:
    """Gives each dispatch without func ids those of the kernel that it must have run, if that can be told."""
    if scene is None:
        warnings.append("the dump lacks func ids: give the scene that was run to have them inferred")
        return dispatches
    open_ones = [i for i, d in enumerate(dispatches) if not d.func_ids]
    if not open_ones:
        return dispatches
    naming = Naming.of(scene)
    candidates = {i: _candidates(dispatches[i], naming.kernels) for i in open_ones}
    chosen = _decide(dispatches, candidates)
    result = list(dispatches)
    for i in open_ones:
        if i in chosen:
            d = result[i]
            known = replace(
                d,
                func_ids=chosen[i],
                inferred=(*d.inferred, "func_ids"),
                missing=tuple(m for m in d.missing if m != "func_ids"),
            )
            result[i] = naming.named(known)
    unknown = len(open_ones) - len(chosen)
    if unknown:
        warnings.append(
            f"the kernel of {unknown:,} of {len(open_ones):,} dispatches cannot be told from "
            f"signatures, dtypes, shapes and order: select those by task id and say which kernel they ran"
        )
    return result


def _roles(kernels: Iterable[Kernel]) -> tuple[Role, ...]:
    return tuple(_ROLE_OF_DIRECTION[d] for k in kernels for d in k.signature or () if d in _ROLE_OF_DIRECTION)


def _candidates(dispatch: Dispatch, kernels: dict[int, Kernel]) -> tuple[tuple[int, ...], ...]:
    """Func ids whose declared tensors agree with the recorded ones: one kernel, else a mix of them."""
    recorded = {a.slot: a.role for a in dispatch.arguments if isinstance(a, TensorArg)}
    singles = [((i,), _roles([k])) for i, k in kernels.items() if k.signature is not None]
    exact = [ids for ids, roles in singles if dict(enumerate(roles)) == recorded]
    if exact:
        return tuple(sorted(exact))
    mixes = [(ids, _roles(kernels[i] for i in ids)) for ids in _mixes(kernels)]
    joint = [ids for ids, roles in mixes if dict(enumerate(roles)) == recorded]
    if joint:
        return tuple(sorted(joint))
    # A dump of marked arguments only holds some of the slots.
    partial = [
        ids
        for ids, roles in singles
        if recorded and all(s < len(roles) and roles[s] == role for s, role in recorded.items())
    ]
    return tuple(sorted(partial))


def _mixes(kernels: dict[int, Kernel]) -> list[tuple[int, ...]]:
    """Possible members of a mix in the order of its slots: a cube kernel and one or two vector kernels."""
    cubes = [i for i, k in kernels.items() if k.core_type is CoreType.AIC]
    vectors = [i for i, k in kernels.items() if k.core_type is CoreType.AIV]
    if (len(cubes) + 1) * (len(vectors) + 1) ** 2 > _MOST_COMBINATIONS:
        return []
    found = [*product(cubes, vectors), *product(vectors, vectors), *product(cubes, vectors, vectors)]
    return [tuple(ids) for ids in found]


def _decide(
    dispatches: Sequence[Dispatch], candidates: dict[int, tuple[tuple[int, ...], ...]]
) -> dict[int, tuple[int, ...]]:
    chosen = {i: ids[0] for i, ids in candidates.items() if len(ids) == 1}
    alike: dict[tuple[tuple[int, ...], ...], list[int]] = defaultdict(list)
    for i, ids in candidates.items():
        if len(ids) > 1:
            alike[ids].append(i)
    anchors = dict(chosen)
    for ids, members in alike.items():
        chosen |= _by_form(dispatches, ids, members) or _by_turns(anchors, ids, members)
    return chosen


def _by_form(
    dispatches: Sequence[Dispatch], ids: tuple[tuple[int, ...], ...], members: list[int]
) -> dict[int, tuple[int, ...]]:
    """Kernels of equal signature, told apart by dtypes or else shapes: as many forms as kernels."""
    for form in (_dtypes, _shapes):
        groups = dict.fromkeys(form(dispatches[i]) for i in members)
        if len(groups) == len(ids):
            order = dict(zip(groups, ids, strict=True))
            return {i: order[form(dispatches[i])] for i in members}
    return {}


def _dtypes(dispatch: Dispatch) -> tuple[object, ...]:
    return tuple(a.dtype.name for a in dispatch.arguments if isinstance(a, TensorArg))


def _shapes(dispatch: Dispatch) -> tuple[object, ...]:
    return tuple((a.dtype.name, a.shape) for a in dispatch.arguments if isinstance(a, TensorArg))


def _by_turns(
    anchors: dict[int, tuple[int, ...]], ids: tuple[tuple[int, ...], ...], members: list[int]
) -> dict[int, tuple[int, ...]]:
    """Kernels of equal signature and form take turns in the order of their func ids, as in a pipeline.

    Accepted only if the turns come out even and each kernel has a place of its own: always the same number
    of such dispatches after the same other kernel. A branch or a wrong phase breaks that.
    """
    if len(members) % len(ids):
        return {}
    turns = {i: ids[n % len(ids)] for n, i in enumerate(members)}
    known = sorted(anchors)
    places: dict[tuple[int, ...], set[tuple[tuple[int, ...], int]]] = defaultdict(set)
    position = since = 0
    for i in members:
        while position < len(known) and known[position] < i:
            position, since = position + 1, 0
        if position:  # before the first known kernel there is nothing to go by
            places[turns[i]].add((anchors[known[position - 1]], since))
        since += 1
    taken = [place for found in places.values() for place in found]
    if not taken or any(len(found) > 1 for found in places.values()) or len(set(taken)) < len(taken):
        return {}
    return turns
