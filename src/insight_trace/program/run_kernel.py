"""One kernel of a file, simulated: from the command line with a workspace, from Python with arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.chips import target_of_chip
from insight_trace.errors import JobError, next_step
from insight_trace.limits import RUN_SECONDS, seconds_given
from insight_trace.model import Case, CoreType, Scene
from insight_trace.program.kernel_file import KernelFile, PlannedKernel, Value, plan_kernel, with_expected
from insight_trace.scratch import scratch_folder

if TYPE_CHECKING:
    from insight_trace.outcome import Simulation
    from insight_trace.replay.replaying import Replay


def replay_kernel(
    planned: PlannedKernel,
    file: Path,
    *,
    target: str,
    output: Path | None = None,
    origin: str = "the command line",
    label: str = "",
    force: bool = False,
    **how: Any,
) -> Replay:
    """A workspace of one kernel, as `replay` writes it. `how` are fields of RunOptions."""
    from insight_trace.job import Job
    from insight_trace.options import RunOptions
    from insight_trace.replay.jobs import ReplayRequest
    from insight_trace.replay.replaying import replay_job

    scene = Scene(file, file.stem, "", 2, "", (), planned.kernels, None)
    case = Case(label) if label else None
    options = RunOptions(target=target, simulator="embedded", **{"launch": "kernel", **how})
    job = Job(planned.kernels, planned.arguments, target, scene, case, origin=origin)
    return replay_job(job, ReplayRequest(file, options=options, output=output, force=force))


class KernelFunction:
    """A kernel that is called with arrays: what it writes is written back into them."""

    def __init__(
        self,
        path: str | Path,
        entry: str | None = None,
        *,
        target: str | None = None,
        soc_version: str | None = None,
        include_dirs: Sequence[str] = (),
        defines: Sequence[str] = (),
        core: str | None = None,
        seconds: float = RUN_SECONDS,
    ) -> None:
        family = target or target_of_chip(soc_version or "") or "a2a3"
        kind = CoreType(core) if core else None
        self.file = KernelFile(Path(path), entry, family, tuple(include_dirs), tuple(defines), kind)
        self.soc_version = soc_version
        self.seconds = seconds_given(seconds, "--time-limit")
        self.simulation: Simulation | None = None  # of the last call

    def replay(
        self,
        arguments: Mapping[str, Value] | Sequence[Value],
        *,
        blocks: int = 1,
        expected: Mapping[str, Path] | None = None,
        output: str | Path | None = None,
        preset: str = "device",
        timing_only: bool = False,
        check: bool = False,
        l2: str | None = None,
        launch: str = "kernel",
        force: bool = False,
        also: str | None = None,
    ) -> Replay:
        """Runs it and writes a workspace. Arguments go by name or in order, `expected` are .npy files of them afterwards."""
        from insight_trace.trace.other_simulators import add_to_workspace, forms_of

        planned = plan_kernel(self.file, arguments, blocks=blocks)
        forms = forms_of(also) if also is not None else ()
        with scratch_folder("expected") as folder:
            done = replay_kernel(
                with_expected(planned, expected or {}, folder),
                self.file.path,
                target=self.file.target,
                output=None if output is None else Path(output),
                soc_version=self.soc_version,
                preset=preset,
                timing_only=timing_only,
                check=check,
                l2=l2,
                launch=launch,
                seconds=self.seconds,
                force=force,
            )
        add_to_workspace(done.directory, done.workspace, planned.name, forms)
        return done

    def __repr__(self) -> str:
        last = f" · {self.simulation.cycles:,} cycles in its last call" if self.simulation else ""
        return f"<KernelFunction {self.file.entry or 'kernel_entry'} of {self.file.path}{last}>"

    def __call__(self, *values: Value, blocks: int = 1, **named: Value) -> int:
        """Runs it to its end; the cycles that it takes. NumPy arrays and torch tensors get their new content."""
        from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

        given: Mapping[str, Value] | Sequence[Value] = values
        if named:
            given = {**dict(zip(plan_names(self.file), values, strict=False)), **named}
        planned = plan_kernel(self.file, given, blocks=blocks)
        how = EmbeddedOptions(self.soc_version, self.file.target, seconds=self.seconds, launch="kernel")
        simulation = run_embedded(planned.kernels, planned.arguments, how)
        if simulation.failure:
            failure = simulation.failure
            raise JobError(
                f"{failure.message} [{failure.fault}]",
                where=failure.where,
                hint=next_step(failure.fault, failure.limit, failure.log),
            )
        for finding in simulation.findings:
            if finding.category == "gm-out-of-bounds":
                raise JobError(finding.message, where=str(self.file.path), hint=finding.fix)
        self.simulation = simulation
        by_name = {item.name: item.slot for item in planned.arguments.slots}
        for name, value in zip(planned.names, values, strict=False):
            _write_back(value, simulation, by_name.get(name))
        for name, value in named.items():
            _write_back(value, simulation, by_name.get(name))
        return simulation.cycles


def plan_names(file: KernelFile) -> tuple[str, ...]:
    """The names of a kernel's parameters."""
    from insight_trace.program.kernel_file import _function

    function = _function(file, file.path.read_text(encoding="utf-8", errors="replace"))
    return tuple(parameter.name for parameter in function.parameters) if function else ()


def _write_back(value: Value, simulation: Simulation, slot: int | None) -> None:
    if slot is None or slot not in simulation.outputs or not hasattr(value, "shape"):
        return
    made = simulation.outputs[slot]
    if type(value).__module__.split(".")[0] == "torch":
        import torch

        raw = torch.from_numpy(made.view(f"i{made.dtype.itemsize}").copy())
        value.view(raw.dtype).copy_(raw)
    elif value.ndim:
        value[...] = made


def kernel(
    path: str | Path,
    entry: str | None = None,
    *,
    target: str | None = None,
    soc_version: str | None = None,
    include_dirs: Sequence[str] = (),
    defines: Sequence[str] = (),
    core: str | None = None,
    seconds: float = RUN_SECONDS,
) -> KernelFunction:
    """A kernel of a C++ file as a function of arrays: `kernel("f.cpp", "f")(x, y, n, blocks=20)`.

    `.replay(arguments)` writes a workspace as well.
    """
    return KernelFunction(
        path, entry, target=target, soc_version=soc_version, include_dirs=include_dirs, defines=defines, core=core,
        seconds=seconds,
    )  # fmt: skip
