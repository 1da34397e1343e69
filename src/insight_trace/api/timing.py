"""Time many variants of a kernel, or of a few tile ops: for compilers and tuners that choose tiles, orders and buffers."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace.api import PathName
from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.limits import BLOCKS, RUN_SECONDS, RUN_SECONDS_MOST, seconds_given
from insight_trace.results import Result

if TYPE_CHECKING:
    from insight_trace.program.kernel_file import KernelPlanner, PlannedKernel
    from insight_trace.simulate.embedded.op_forms import OpRequest
    from insight_trace.simulate.embedded.program import Step
    from insight_trace.simulate.embedded.simulator import EmbeddedOptions
    from insight_trace.simulate.embedded.timings import Image, Launch, LaunchTime
    from insight_trace.simulate.embedded.toolchain import Toolchain


class Candidate(Struct, frozen=True, eq=False, kw_only=True):
    """One variant: a kernel of a file with its arguments and macros, or tile ops one after the other.

    Arguments are as `insight-trace kernel --arg` takes them (`"f32[64,64]"`, a number), or arrays and numbers.
    """

    kernel: PathName = ""
    arguments: Mapping[str, Any] = {}
    entry: str | None = None
    macros: Mapping[str, object] = {}
    blocks: int = 1
    soc_version: str | None = None
    ops: Sequence[OpRequest | Step] = ()

    @property
    def parameters(self) -> dict[str, object]:
        """What may differ from one variant to another, by name."""
        found: dict[str, object] = {**self.arguments, **self.macros}
        for op in self.ops:
            for name in ("op", "rows", "cols", "valid_rows", "valid_cols", "depth"):
                if getattr(op, name, None) is not None:
                    found[name] = getattr(op, name)
            for name in ("dtype", "to"):
                if getattr(op, name, None) is not None:
                    found[name] = getattr(op, name).short
        return {**found, "blocks": self.blocks, "soc_version": self.soc_version}


class CandidateTime(Struct, frozen=True):
    """What one variant takes. With a `failure` the numbers are 0."""

    cycles: int = 0
    low: int = 0  # `low` to `high`: the 90 % interval on a chip
    high: int = 0
    micros: float = 0.0
    bound: str = ""  # the pipe that works longest on one core
    instructions: int = 0
    failure: str = ""


class Timings(Result, Struct, frozen=True, eq=False):
    """The times of many variants, in their order."""

    candidates: tuple[Candidate, ...]
    times: tuple[CandidateTime, ...]

    @property
    def best(self) -> int:
        """The place of the fastest; the first of them where several are."""
        ended = [(time.cycles, place) for place, time in enumerate(self.times) if not time.failure]
        if not ended:
            raise RequestError(
                "no variant ended well", hint=self.times[0].failure if self.times else "there is none"
            )
        return min(ended)[1]

    def summary(self) -> str:
        failed = sum(bool(time.failure) for time in self.times)
        told = f"{len(self.times):,} variants"
        if failed < len(self.times):
            told += f" · fastest: number {self.best}, {self.times[self.best].cycles:,} cycles"
        return told + (f" · {failed:,} failed" if failed else "")

    def columns(self) -> Mapping[str, Any]:
        """What varies, then the times."""
        rows = [candidate.parameters for candidate in self.candidates]
        names = dict.fromkeys(name for row in rows for name in row)
        varied = [name for name in names if len({repr(row.get(name)) for row in rows}) > 1]
        found: dict[str, Any] = {name: [_plain(row.get(name)) for row in rows] for name in varied}
        for name in CandidateTime.__struct_fields__:
            found[name] = [getattr(time, name) for time in self.times]
        return found

    def data(self) -> dict[str, Any]:
        columns = self.columns()
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        return {"best": self.best if any(not t.failure for t in self.times) else None, "candidates": rows}


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    shape = getattr(value, "shape", None)
    return f"{getattr(value, 'dtype', '')}{list(shape)}" if shape else str(value)


def variants(
    kernel: PathName,
    arguments: Mapping[str, Any],
    *,
    macros: Mapping[str, Any] | None = None,
    blocks: int | Sequence[int] = 1,
    soc_version: str | Sequence[str | None] | None = None,
    entry: str | None = None,
) -> list[Candidate]:
    """Every combination of what is given as a list, a tuple or a range; the last varies fastest."""
    axes: list[tuple[str, str, Sequence[Any]]] = []
    for kind, given in (
        ("arguments", arguments),
        ("macros", macros or {}),
        ("", {"blocks": blocks, "soc_version": soc_version}),
    ):
        for name, value in given.items():
            axes.append((kind, name, value if isinstance(value, list | tuple | range) else (value,)))
    made = []
    for values in itertools.product(*(axis[2] for axis in axes)):
        parts: dict[str, dict[str, Any]] = {"arguments": {}, "macros": {}, "": {}}
        for (kind, name, _), value in zip(axes, values, strict=True):
            parts[kind][name] = value
        made.append(
            Candidate(
                kernel=kernel, entry=entry, arguments=parts["arguments"], macros=parts["macros"], **parts[""]
            )
        )
    return made


def op_variants(
    op: str,
    *,
    rows: int | Sequence[int],
    cols: int | Sequence[int],
    dtype: str | Sequence[str] = "float",
    valid_rows: int | Sequence[int] | None = None,
    valid_cols: int | Sequence[int] | None = None,
    to: str | Sequence[str] | None = None,
    k: int | Sequence[int] | None = None,
    soc_version: str | None = None,
) -> list[Candidate]:
    """Every combination of what is given as a list, a tuple or a range, for one tile op; the last varies fastest."""
    from insight_trace.simulate.embedded.op_forms import OpRequest
    from insight_trace.simulate.embedded.single_op import named_dtype

    given = (dtype, rows, cols, valid_rows, valid_cols, to, k)
    axes = [value if isinstance(value, list | tuple | range) else (value,) for value in given]
    made = []
    for kind, r, c, vr, vc, result, depth in itertools.product(*axes):
        request = OpRequest(
            op, named_dtype(kind), r, c, vr, vc, named_dtype(result) if result else None, depth
        )
        made.append(Candidate(ops=(request,), soc_version=soc_version))
    return made


def time_many(
    candidates: Iterable[Candidate],
    *,
    preset: str = "device",
    processes: int | None = None,
    seconds: float = RUN_SECONDS,
    all_seconds: float = RUN_SECONDS_MOST,
) -> Timings:
    """The cycles of each, as a run of it alone with `timing_only` gives them; nothing is computed, nothing recorded.

    Code is compiled once for each set of macros. A variant that fails says why, and the others go on. `seconds` is for
    one, `all_seconds` for all of them, `processes` how many run at once. The interval is as wide as that of the first
    variant of the same kernel, chip and kind of cores.
    """
    from insight_trace.simulate.embedded.toolchain import Toolchain

    listed = tuple(candidates)
    toolchain = Toolchain.find()
    batch = _Batch(listed, toolchain, preset, seconds_given(seconds, "seconds"), processes, all_seconds)
    return Timings(listed, tuple(batch.times()))


class _Batch:
    """One call of `time_many`: what variants share is made once."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        toolchain: Toolchain,
        preset: str,
        seconds: float,
        processes: int | None,
        all_seconds: float,
    ) -> None:
        self.candidates = candidates
        self.toolchain = toolchain
        self.preset = preset
        self.seconds = seconds
        self.processes = processes
        self.all_seconds = all_seconds
        self.failures: dict[int, str] = {}
        self.images: dict[Any, tuple[Image, Any]] = {}
        self.spreads: dict[Any, float] = {}
        self.first_plans: dict[Any, PlannedKernel] = {}

    def times(self) -> Iterator[CandidateTime]:
        from insight_trace.simulate.embedded.simulator import chip_of
        from insight_trace.simulate.embedded.timings import time_launches

        self.planners = self._planners()
        launches: dict[int, Launch] = {}
        for place, candidate in enumerate(self.candidates):
            if place in self.failures:
                continue
            try:
                launches[place] = self._launch(candidate)
            except InsightTraceError as error:
                self.failures[place] = str(error).replace("\n", " ")
        groups: dict[Any, list[int]] = {}
        for place in launches:
            one = self.candidates[place]
            groups.setdefault((one.soc_version, self._target(one), bool(one.ops)), []).append(place)
        found: dict[int, CandidateTime] = {}
        for (_, _, ops), places in groups.items():
            options = self._options(self.candidates[places[0]])
            chip = chip_of(options)
            times = time_launches(
                [launches[place] for place in places], chip, options, self.toolchain,
                usual_l2="warm" if ops else "cold", processes=self.processes, seconds=self.all_seconds,
            )  # fmt: skip
            for place, time in zip(places, times, strict=True):
                found[place] = self._told(self.candidates[place], launches[place], time, options, chip.mhz)
        for place in range(len(self.candidates)):
            yield found[place] if place in found else CandidateTime(failure=self.failures[place])

    # --- what is shared ---------------------------------------------------------------------------------

    def _target(self, candidate: Candidate) -> str:
        from insight_trace.chips import target_of_chip

        return target_of_chip(candidate.soc_version or "") or "a2a3"

    def _options(self, candidate: Candidate) -> EmbeddedOptions:
        from insight_trace.simulate.embedded.simulator import EmbeddedOptions

        return EmbeddedOptions(
            candidate.soc_version, self._target(candidate), self.preset, timing_only=True, seconds=self.seconds,
            launch=None if candidate.ops else "kernel",
        )  # fmt: skip

    def _file_key(self, candidate: Candidate) -> Any:
        return (
            os.fspath(candidate.kernel), candidate.entry, self._target(candidate),
            tuple(sorted((name, str(value)) for name, value in candidate.macros.items())),
        )  # fmt: skip

    def _planners(self) -> dict[Any, KernelPlanner]:
        """One for each file and set of macros, with its code compiled; several at once, as the compiler takes its time."""
        from insight_trace.program.kernel_file import KernelFile, KernelPlanner
        from insight_trace.simulate.embedded.simulator import chip_of, compiled
        from insight_trace.simulate.embedded.toolchain import KernelBuildError

        by_file: dict[Any, list[int]] = {}
        for place, candidate in enumerate(self.candidates):
            if bool(candidate.ops) == bool(candidate.kernel):
                self.failures[place] = "a variant is either of a kernel or of ops"
            elif not 1 <= candidate.blocks <= BLOCKS:
                self.failures[place] = f"{candidate.blocks} blocks: from 1 to {BLOCKS:,}"
            elif candidate.kernel:
                by_file.setdefault(self._file_key(candidate), []).append(place)

        def made(places: list[int]) -> KernelPlanner | str:
            candidate = self.candidates[places[0]]
            macros = tuple(f"{name}={value}" for name, value in candidate.macros.items())
            file = KernelFile(
                Path(candidate.kernel), candidate.entry, self._target(candidate), defines=macros
            )
            try:
                planner = KernelPlanner(file, self.toolchain)
                planned = planner.plan(_values(candidate))
                options = self._options(candidate)
                compiled(planned.kernels, chip_of(options), options, self.toolchain)
            except KernelBuildError as error:
                return str(error.failure)
            except InsightTraceError as error:
                return str(error).replace("\n", " ")
            return planner

        planners = {}
        with ThreadPoolExecutor(self.processes or os.cpu_count()) as pool:
            for (key, places), planner in zip(by_file.items(), pool.map(made, by_file.values()), strict=True):
                if isinstance(planner, str):
                    self.failures |= dict.fromkeys(places, planner)
                else:
                    planners[key] = planner
        return planners

    # --- one variant ------------------------------------------------------------------------------------

    def _launch(self, candidate: Candidate) -> Launch:
        return self._of_ops(candidate) if candidate.ops else self._of_kernel(candidate)

    def _of_kernel(self, candidate: Candidate) -> Launch:
        from insight_trace.simulate.embedded.core_plan import plan_cores
        from insight_trace.simulate.embedded.simulator import MemoryLayout, chip_of, compiled
        from insight_trace.simulate.embedded.timings import Image, Launch

        planned = self.planners[self._file_key(candidate)].plan(_values(candidate), blocks=candidate.blocks)
        kernels = planned.kernels
        key = (
            kernels,
            candidate.blocks,
            tuple(
                (t.slot, t.dtype.name, t.shape, _content_key(t.content)) for t in planned.arguments.tensors
            ),
        )
        if key not in self.images:
            options = self._options(candidate)
            objects = compiled(kernels, chip_of(options), options, self.toolchain)
            plans = plan_cores(kernels, candidate.blocks)
            layout = MemoryLayout(planned.arguments, plans)

            def fill(path: Path, offset: int) -> None:
                layout.fill(path, offset, sparse=True)

            named = tuple((o, kernel.entry) for o, kernel in zip(objects, kernels, strict=True))
            cores = tuple((plan, layout.args_address(plan)) for plan in plans)
            self.images[key] = Image(layout.memory, fill), (layout, named, cores)
        image, (layout, named, cores) = self.images[key]
        self.first_plans.setdefault(self._spread_key(candidate, cores), planned)
        content = layout.packed(planned.arguments)
        return Launch(image, named, cores, candidate.blocks, layout.args.address, content)

    def _of_ops(self, candidate: Candidate) -> Launch:
        from insight_trace.simulate.embedded.op_forms import OpRequest, operands_of
        from insight_trace.simulate.embedded.op_script import Script, op_numbers
        from insight_trace.simulate.embedded.timings import BUILTIN, Image, Launch

        items: list[Any] = []
        for op in candidate.ops:
            if isinstance(op, OpRequest):
                items.append((op_numbers().get(op.op, -1), operands_of(op, self._target(candidate))))
            elif op.touches_gm:
                raise RequestError("transfers of a sequence are TLOAD and TSTORE")
            else:
                items.append(op.packed())
        script = Script(items)
        if len({Script([item]).cube for item in items if not isinstance(item, bytes)}) > 1:
            raise RequestError("the ops run on different cores: cube ops and vector ops are timed apart")
        cores = ((script.core, script.args.address),)
        return Launch(
            Image(script.memory, script.fill_for_times),
            ((BUILTIN, "op_script"),),
            cores,
            1,
            script.args.address,
            b"",
        )

    def _spread_key(self, candidate: Candidate, cores: Sequence[Any]) -> Any:
        from insight_trace.simulate.embedded.confidence import kernel_kind

        kind = kernel_kind([plan.name for plan, _ in cores])
        return os.fspath(candidate.kernel), candidate.entry, candidate.soc_version, kind

    def _told(
        self, candidate: Candidate, launch: Launch, time: LaunchTime, options: EmbeddedOptions, mhz: float
    ) -> CandidateTime:
        if time.failure is not None:
            return CandidateTime(failure=str(time.failure))
        cycles = time.span if candidate.ops else time.cycles
        spread = self._spread(candidate, launch, options)
        return CandidateTime(
            cycles, round(cycles / (1 + spread)), round(cycles * (1 + spread)), cycles / mhz, time.bound, time.instructions
        )  # fmt: skip

    def _spread(self, candidate: Candidate, launch: Launch, options: EmbeddedOptions) -> float:
        """Relative, to either side; from a whole run of the first variant of its kind."""
        from insight_trace.simulate.embedded.confidence import confidence, model_spread
        from insight_trace.simulate.embedded.simulator import chip_of, run_embedded

        if candidate.ops:
            return model_spread([plan.name for plan, _ in launch.cores])
        key = self._spread_key(candidate, launch.cores)
        if key not in self.spreads:
            planned = self.first_plans[key]
            run = run_embedded(planned.kernels, planned.arguments, options, self.toolchain)
            self.spreads[key] = (
                confidence(run, chip_of(options)).spread
                if run.failure is None
                else model_spread([plan.name for plan, _ in launch.cores])
            )
        return self.spreads[key]


def _values(candidate: Candidate) -> dict[str, Any]:
    from insight_trace.program.kernel_file import parse_value

    return {
        name: parse_value(value, name) if isinstance(value, str) else value
        for name, value in candidate.arguments.items()
    }


def _content_key(content: Any) -> Any:
    array = getattr(content, "array", None)
    return (type(content).__name__, id(array)) if array is not None else repr(content)
