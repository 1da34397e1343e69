"""Which modelled core runs which kernel of a dispatch, and how many processes of the host run its blocks."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from insight_trace import limits
from insight_trace.errors import RequestError
from insight_trace.model import CoreType, Kernel

_VECTOR_LANES = 2
_FEWEST_BLOCKS = 2
_MOST_SHARES = 8  # the first process puts the rows of all others behind its own
VARIABLE = "INSIGHT_TRACE_HOST_CORES"


class CorePlan(Struct, frozen=True):
    kernel: int
    cube: bool
    block: int
    sub_block: int
    name: str


def plan_cores(kernels: Sequence[Kernel], block_count: int) -> list[CorePlan]:
    """Which core runs what: per block the cube kernel on cubecore0, vector kernels on veccore0 and 1."""
    if not kernels:
        raise RequestError("a dispatch needs at least one kernel")
    cubes = [i for i, k in enumerate(kernels) if k.core_type is CoreType.AIC]
    vectors = [i for i, k in enumerate(kernels) if k.core_type is CoreType.AIV]
    if len(cubes) > 1 or len(vectors) > _VECTOR_LANES or len(cubes) + len(vectors) != len(kernels):
        raise RequestError(
            f"a cluster has one cube core and {_VECTOR_LANES} vector cores; "
            f"{len(cubes)} cube and {len(vectors)} vector kernels do not fit"
        )
    if block_count * len(kernels) > limits.CORES:
        raise RequestError(
            f"{block_count:,} blocks of {len(kernels)} kernels are more than the {limits.CORES:,} cores that "
            "one simulation takes",
            hint="--block-dim N replays fewer blocks",
        )
    plans = []
    for block in range(block_count):
        plans += [CorePlan(i, True, block, 0, f"core{block}.cubecore0") for i in cubes]
        plans += [
            CorePlan(i, False, block, lane, f"core{block}.veccore{lane}") for lane, i in enumerate(vectors)
        ]
    return plans


def core_line(plan: CorePlan, args: int, block_count: int, kernel: int | None = None) -> str:
    """The line of a job for a core whose args array lies at that address; `kernel`: its number among those of the job."""
    kind = "aic" if plan.cube else "aiv"
    fields = (
        plan.kernel if kernel is None else kernel,
        kind,
        plan.block,
        block_count,
        plan.sub_block,
        args,
        plan.name,
    )
    return "\t".join(["core", *map(str, fields)])


def host_cores() -> int:
    """As INSIGHT_TRACE_HOST_CORES says, else as many as this process may use."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= 1024:
        raise RequestError(f"{VARIABLE} is {given[:40]!r}", hint="a number of cores, from 1 to 1024")
    return int(given)


def shares_of_blocks(blocks: int, cores: int | None) -> int:
    """Into how many processes the blocks of a dispatch go; 1 where that would not be worth it."""
    if blocks < _FEWEST_BLOCKS:
        return 1
    return max(1, min(host_cores() if cores is None else cores, blocks, _MOST_SHARES))
