"""Which core runs what: the members of a dispatch laid out on one cube core and two vector cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from insight_trace.errors import RequestError
from insight_trace.model import CoreType, Kernel
from insight_trace.simulate.msprof.carried_sources import CopiedKernels, copy_kernels
from insight_trace.simulate.msprof.name_clashes import shared_names

CORES_PER_BLOCK = 3  # cube, vector 0, vector 1: both targets have one cube and two vector cores in a block


@dataclass(frozen=True, slots=True)
class Member:
    """One kernel of the dispatch, as the generated file includes it."""

    name: str
    core_type: str
    source: str  # in the workspace
    entry: str  # what replay_entry calls
    renamed: tuple[str, ...] = ()
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class CoreLayout:
    """The members by core, and the files that have to stand in the workspace."""

    cube: tuple[Member, ...]
    vector: tuple[Member, ...]
    both_lanes: bool  # the one vector member runs on both vector cores
    files: tuple[tuple[str, bytes], ...]
    include_dirs: tuple[str, ...]

    @property
    def members(self) -> tuple[Member, ...]:
        return self.cube + self.vector


def lay_out(kernels: Sequence[Kernel]) -> CoreLayout:
    """The members on their cores; a kernel given twice (func ids 0,1,1) runs on both vector cores."""
    cube = [kernel for kernel in kernels if kernel.core_type is CoreType.AIC]
    vector = [kernel for kernel in kernels if kernel.core_type is CoreType.AIV]
    for kernel in kernels:
        if kernel.core_type is CoreType.MIX:  # one source for both kinds of core
            cube.append(kernel)
            vector += [kernel, kernel]
    distinct = _distinct(vector)
    if not kernels:
        raise RequestError("a replay needs at least one kernel")
    if len(_distinct(cube)) > 1 or len(distinct) > 2 or len(vector) > 2:
        raise RequestError(
            f"a block has one cube and two vector cores, but the dispatch has {len(_distinct(cube))} aic and "
            f"{len(vector)} aiv members",
            hint="name the func ids of one task",
        )
    copied = copy_kernels(_distinct(kernels), "kernels")
    renamed: tuple[str, ...] = ()
    if len(distinct) == 2:
        first, second = (_text(kernel, copied) for kernel in distinct)
        entries = {kernel.entry for kernel in distinct}
        renamed = tuple(sorted(set(shared_names(first, second)) | entries))
    return CoreLayout(
        cube=tuple(_member(kernel, copied, (), 0) for kernel in _distinct(cube)),
        vector=tuple(_member(kernel, copied, renamed, n) for n, kernel in enumerate(distinct)),
        both_lanes=len(distinct) == 1 and len(vector) == 2,
        files=copied.files,
        include_dirs=copied.include_dirs,
    )


def _distinct(kernels: Sequence[Kernel]) -> list[Kernel]:
    return list({kernel.source: kernel for kernel in reversed(kernels)}.values())[::-1]


def _text(kernel: Kernel, copied: CopiedKernels) -> str:
    return dict(copied.files)[copied.entries[kernel.source]].decode("utf-8", "replace")


def _member(kernel: Kernel, copied: CopiedKernels, renamed: tuple[str, ...], number: int) -> Member:
    prefix = f"replay_vector{number}_" if renamed else ""
    source = copied.entries[kernel.source]
    return Member(kernel.name, kernel.core_type.value, source, prefix + kernel.entry, renamed, prefix)
