"""Many runs of one dispatch that differ in what single tile ops are given: only what they leave in outputs is kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.arguments.buffers import view_of
from insight_trace.arguments.slots import ReplayArguments, ReplayTensor
from insight_trace.errors import JobError
from insight_trace.limits import MIB
from insight_trace.model import Kernel
from insight_trace.reading import read_regular
from insight_trace.simulate.embedded.core_plan import core_line, plan_cores
from insight_trace.simulate.embedded.job_files import with_job_directory
from insight_trace.simulate.embedded.journaling import OperandChange
from insight_trace.simulate.embedded.memory import escape
from insight_trace.simulate.embedded.runner import run_variants_job
from insight_trace.simulate.embedded.simulator import (
    EmbeddedOptions,
    MemoryLayout,
    chip_of,
    compiled,
    job_options,
)
from insight_trace.simulate.embedded.toolchain import KernelBuildError, Toolchain

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_BYTES = 512 * MIB  # of outputs that are kept at once
_AT_ONCE = 4
_WELL = 1
Outputs = dict[int, "NDArray[Any]"]  # by slot, in the tensor's shape


def at_most(tensors: Sequence[ReplayTensor]) -> int:
    """How many variants one call takes, so that what is kept of them fits."""
    size = sum(tensor.extent * tensor.dtype.size for tensor in tensors)
    return max(1, _MOST_BYTES // max(1, size))


def run_variants(
    kernels: Sequence[Kernel],
    arguments: ReplayArguments,
    variants: Sequence[Sequence[OperandChange]],
    tensors: Sequence[ReplayTensor],
    options: EmbeddedOptions,
    seconds: float,
    toolchain: Toolchain,
) -> list[Outputs | None]:
    """What each variant leaves in these tensors; None: it did not end well, or `seconds` were over before it began."""
    soc = chip_of(options)
    plans = plan_cores(kernels, arguments.block_count)
    try:
        objects = compiled(kernels, soc, options, toolchain)
    except KernelBuildError as error:
        raise JobError(str(error.failure)) from None

    def run_in(directory: Path) -> list[Outputs | None]:
        gm = MemoryLayout(arguments, plans)
        gm.fill(directory / "gm")
        found = directory / "variants"
        lines = [
            *job_options(soc, options, directory),
            *gm.memory.job_lines(directory / "gm"),
            *(f"kernel\t{escape(str(o))}\t{k.entry}" for o, k in zip(objects, kernels, strict=True)),
            *(core_line(plan, gm.args_address(plan), arguments.block_count) for plan in plans),
            f"variants\t{found}\t{seconds}\t{min(_AT_ONCE, os.cpu_count() or 1)}",
            *(f"kept\t{gm.buffers[t.slot].address}\t{t.extent * t.dtype.size}" for t in tensors),
        ]
        for changes in variants:
            lines += ["variant", *(change.job_line for change in changes)]
        readable = tuple({o.parent for o in objects})
        run_variants_job(
            toolchain.runner(), directory, lines, options.seconds, seconds, options.sandbox, readable
        )
        return _read(found, len(variants), tensors)

    return with_job_directory(run_in)


def _read(path: Path, count: int, tensors: Sequence[ReplayTensor]) -> list[Outputs | None]:
    import numpy as np

    sizes = [tensor.extent * tensor.dtype.size for tensor in tensors]
    row = 1 + sum(sizes)
    # a kernel can do to this file what it likes
    rows = np.frombuffer(read_regular(path, most=count * row, follow=False), np.uint8)
    if len(rows) != count * row:
        raise JobError(f"the runner kept {len(rows):,} bytes of {count} variants, not {count * row:,}")
    found: list[Outputs | None] = []
    for content in rows.reshape(count, row):
        if content[0] != _WELL:
            found.append(None)
            continue
        at, outputs = 1, {}
        for tensor, size in zip(tensors, sizes, strict=True):
            outputs[tensor.slot] = np.asarray(view_of(tensor, content[at : at + size].copy()))
            at += size
        found.append(outputs)
    return found
