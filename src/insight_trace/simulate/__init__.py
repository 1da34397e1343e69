"""Simulators: the embedded AI core and, where CANN is installed, the vendor's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from insight_trace import make_callable

if TYPE_CHECKING:
    from insight_trace.arguments.slots import ReplayArguments
    from insight_trace.model import CoreType, Kernel
    from insight_trace.outcome import Simulation
    from insight_trace.simulate.embedded.simulator import EmbeddedKeywords


def simulate(
    kernel: Kernel | str | Path | Sequence[Kernel],
    arguments: ReplayArguments | Mapping[int, Any] | Sequence[Any],
    *,
    core_type: CoreType | str | None = None,
    block_count: int = 1,
    **options: Unpack[EmbeddedKeywords],
) -> Simulation:
    """Runs a kernel, or the members of a mix, on the embedded core.

    `kernel` is a source file (its core type given, or guessed from the source), a Kernel, or several.
    `arguments` are ReplayArguments, or arrays and numbers by slot or in the order of the slots. The rest are fields of
    EmbeddedOptions.
    A kernel that fails gives a Simulation with its `failure`; a request that is wrong raises.
    """
    from insight_trace.arguments.arrays import from_arrays
    from insight_trace.arguments.slots import ReplayArguments
    from insight_trace.model import Kernel
    from insight_trace.simulate.embedded.checked_run import run_checked
    from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

    if isinstance(kernel, Kernel):
        kernels: list[Kernel] = [kernel]
    elif isinstance(kernel, str | Path):
        kernels = [kernel_from_source(Path(kernel), core_type)]
    else:
        kernels = list(kernel)
    if not isinstance(arguments, ReplayArguments):
        by_slot = arguments if isinstance(arguments, Mapping) else dict(enumerate(arguments))
        arguments = from_arrays(by_slot, block_count=block_count)
    run = run_checked if options.get("check") else run_embedded
    return run(kernels, arguments, EmbeddedOptions(**options))


def kernel_from_source(source: Path, core_type: CoreType | str | None = None) -> Kernel:
    """A kernel that stands alone; without a core type, the one that its source is written for."""
    from insight_trace.errors import RequestError
    from insight_trace.model import CoreType, Kernel
    from insight_trace.scene.kernel_source import kernel_shape

    if not source.is_file():
        raise RequestError(f"there is no kernel source {source}")
    kind = CoreType(core_type) if core_type else kernel_shape(source).core_type
    if core_type is None and kind is CoreType.MIX:
        raise RequestError(
            f"{source.name} is written for both kinds of core",
            hint="say which: core_type='aic' or 'aiv', or give a Kernel for each",
        )
    return Kernel(source.stem, source.resolve(), kind)


make_callable(__name__)
