"""One dispatch on the modelled core: memory is laid out, kernels run, outputs and columns come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from insight_trace import limits
from insight_trace.arguments.buffers import scatter, view_of
from insight_trace.arguments.packing import (
    ARGS_SIZE,
    DESCRIPTOR_SIZE,
    GLOBAL_CONTEXT_SIZE,
    LOCAL_CONTEXT_SIZE,
    pack_arguments,
    pack_descriptor,
    pack_global_context,
    pack_local_context,
)
from insight_trace.arguments.slots import ReplayArguments, ReplayTensor, Zero
from insight_trace.check.explain import stored_past
from insight_trace.chips import Chip, load_chip
from insight_trace.errors import JobError, RequestError
from insight_trace.finding import Finding
from insight_trace.model import Kernel, Launch, Role
from insight_trace.options import LAUNCHES
from insight_trace.outcome import Failure, Fault, Simulation
from insight_trace.recording.stream import empty
from insight_trace.simulate.embedded.checking import findings_of
from insight_trace.simulate.embedded.core_plan import CorePlan, core_line, plan_cores, shares_of_blocks
from insight_trace.simulate.embedded.job_files import job_directory, table_room, with_job_directory
from insight_trace.simulate.embedded.journaling import JournalRequest, OperandChange
from insight_trace.simulate.embedded.kernel_sources import files_read, readable_sources
from insight_trace.simulate.embedded.memory import GUARD, Buffer, GlobalMemory, escape
from insight_trace.simulate.embedded.records import Site, load_instructions
from insight_trace.simulate.embedded.runner import RunnerResult, run_job
from insight_trace.simulate.embedded.sandbox import Sandbox
from insight_trace.simulate.embedded.source_lines import line_of_crash
from insight_trace.simulate.embedded.toolchain import KERNEL_OBJECT, KernelBuildError, Toolchain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_SECONDS = limits.RUN_SECONDS
DEFAULT_BYTES = limits.RUN_BYTES
L2_STATES = ("cold", "warm", "trace")


class EmbeddedOptions(Struct, frozen=True):
    """How to run, as opposed to what."""

    soc_version: str | None = None  # a chip by name, or the path of a .toml file like those in chips/
    target: str = "a2a3"
    preset: str = "device"
    timing_only: bool = False
    seconds: float = DEFAULT_SECONDS
    memory_limit: int = DEFAULT_BYTES
    sandbox: Sandbox = field(default_factory=Sandbox.chosen)
    perturb: int = 0  # for tests: change the order in which cores run
    # what L2 holds at first: cold nothing, warm what the same run left, trace what `held` names. None: what is usual,
    # cold for kernels and warm for single instructions and ops
    l2: str | None = None
    held: tuple[tuple[int, bool], ...] = ()  # slots, the longest ago first, and whether they were written
    launch: str | None = None  # as in RunOptions: task, kernel or first
    mark_cost: bool = False  # TRACE_START and TRACE_STOP take time, as where ASCENDC_TRACE_ON is defined
    check: bool = False  # look for what is wrong in the kernel
    numbers: bool = False  # look for the op that makes the first NaN
    unwritten: int = 0  # what a byte of on-chip memory holds that nobody wrote
    left_out: tuple[tuple[str, int], ...] = ()  # file and line of flags and barriers that do not happen
    changes: tuple[OperandChange, ...] = ()  # of single tile ops
    journal: JournalRequest | None = None  # what it does to memory is written down
    host_cores: int | None = None  # that blocks may be run on at once; None: as many as this process may use

    def __post_init__(self) -> None:
        force_setattr(self, "sandbox", Sandbox(self.sandbox))  # by its name, too
        if self.l2 not in (None, *L2_STATES):
            raise RequestError(f"there is no L2 state '{self.l2}'", hint=f"known: {', '.join(L2_STATES)}")
        if self.launch not in (None, *LAUNCHES):
            raise RequestError(f"there is no launch '{self.launch}'", hint=f"known: {', '.join(LAUNCHES)}")

    @property
    def launched(self) -> bool:
        """By itself: there is time around it, and its cores start one after the other."""
        return self.launch in ("kernel", "first")

    @property
    def first(self) -> bool:
        """Nothing of it ran before: its code is not in the instruction caches, and nobody knows its pages."""
        return self.launch == "first"


class EmbeddedKeywords(TypedDict, total=False):
    """The fields of EmbeddedOptions, as functions take them by name."""

    soc_version: str | None
    target: str
    preset: str
    timing_only: bool
    seconds: float
    memory_limit: int
    sandbox: Sandbox
    perturb: int
    l2: str | None
    held: tuple[tuple[int, bool], ...]
    launch: str | None
    mark_cost: bool
    check: bool
    numbers: bool
    unwritten: int
    left_out: tuple[tuple[str, int], ...]
    changes: tuple[OperandChange, ...]
    journal: JournalRequest | None
    host_cores: int | None


def chip_of(options: EmbeddedOptions) -> Chip:
    """The chip that the options name."""
    return load_chip(options.soc_version, target=options.target, preset=options.preset)


# A core knows its code and its pages: only a first launch pays for them.
WARM_START = ("value\tcode.fill\t0", "value\tpage.turn\t0")


def job_options(soc: Chip, options: EmbeddedOptions, directory: Path, usual_l2: str = "cold") -> list[str]:
    """The lines of a job that say how to run it."""
    lines = [
        *soc.job_lines,
        f"records\t{directory / 'records'}",
        f"bytes\t{options.memory_limit}",
        f"table_room\t{table_room(directory)}",
        f"timing_only\t{int(options.timing_only)}",
        f"perturb\t{options.perturb}",
        f"check\t{int(options.check)}",
        f"numbers\t{int(options.numbers)}",
        f"unwritten\t{options.unwritten}",
        *(f"leave_out\t{escape(file)}\t{line}" for file, line in options.left_out),
        *(change.job_line for change in options.changes),
        *(options.journal.job_lines(directory) if options.journal else ()),
    ]
    if (options.l2 or usual_l2) == "warm":
        lines.append("warm\t1")
    if not options.launched:
        lines.append("value\tlaunch.skew\t0")
    if not options.first:
        lines += WARM_START
    return lines


def run_embedded(
    kernels: Sequence[Kernel],
    arguments: ReplayArguments,
    options: EmbeddedOptions | None = None,
    toolchain: Toolchain | None = None,
) -> Simulation:
    """Runs one dispatch: a single kernel, or the members of a mix on the cores of one cluster per block.

    A kernel that does not compile, crashes or hangs is a Simulation with a `failure`, not an exception.
    """
    options = options or EmbeddedOptions()
    toolchain = toolchain or Toolchain.find()
    soc = chip_of(options)
    plans = plan_cores(kernels, arguments.block_count)
    try:
        objects = compiled(kernels, soc, options, toolchain)
    except KernelBuildError as error:
        return _nothing(soc, error.failure)

    def run_in(directory: Path, shares: int) -> Simulation:
        gm = MemoryLayout(arguments, plans)
        image = directory / "gm"
        gm.fill(image, sparse=options.timing_only)
        lines = [
            *job_options(soc, options, directory),
            f"shares\t{shares}",
            *gm.memory.job_lines(image),
            *gm.held_lines(options.held if options.l2 == "trace" else ()),
            *(f"kernel\t{escape(str(o))}\t{k.entry}" for o, k in zip(objects, kernels, strict=True)),
            *(core_line(plan, gm.args_address(plan), arguments.block_count) for plan in plans),
        ]
        readable = tuple({o.parent for o in objects})
        result = run_job(toolchain.runner(), directory, lines, options.seconds, options.sandbox, readable)
        if result.together:
            return run_in(directory, 1)
        made = _Made(kernels, objects, options)
        if options.journal is not None and result.failure is None:
            options.journal.keep(directory, result.journaled, result.instructions)
        return _simulation(directory, result, gm, plans, soc, made)

    if options.journal is not None:  # it may be large, and is moved to a disk afterwards
        with job_directory(in_memory=False) as place:
            return run_in(place, 1)
    watched = options.perturb or options.numbers or options.changes or options.left_out
    # blocks that may meet unseen, by plain loads and stores, stay in one process
    apart = toolchain.sees_plain_accesses and not watched
    shares = shares_of_blocks(arguments.block_count, options.host_cores) if apart else 1
    return with_job_directory(lambda place: run_in(place, shares))


def compiled(
    kernels: Sequence[Kernel], soc: Chip, options: EmbeddedOptions, toolchain: Toolchain
) -> list[Path]:
    """The object of every kernel, or KernelBuildError."""
    return [
        toolchain.kernel(
            k.source,
            k.core_type,
            target=soc.target,
            include_dirs=k.include_dirs,
            mark_cost=options.mark_cost,
            sandbox=options.sandbox,
        )
        for k in kernels
    ]


class MemoryLayout:
    """Where everything of one dispatch lies in global memory."""

    def __init__(self, arguments: ReplayArguments, plans: Sequence[CorePlan]) -> None:
        self.arguments = arguments
        self.plans = plans
        self.memory = GlobalMemory()
        per_core = ARGS_SIZE + LOCAL_CONTEXT_SIZE + GLOBAL_CONTEXT_SIZE
        self.row_size = (per_core + 63) // 64 * 64
        self.rows = {(p.block, p.cube, p.sub_block): i for i, p in enumerate(plans)}
        tensors = arguments.tensors
        placed = self._place_fixed(tensors)
        self.args = self.memory.reserve("the args array", self.row_size * len(plans))
        self.descriptors = self.memory.reserve(
            "the tensor descriptors", DESCRIPTOR_SIZE * max(1, len(tensors))
        )
        self.buffers: dict[int, Buffer] = {}
        sizes: dict[int, tuple[int, int, int, bool]] = {}
        for tensor in tensors:
            if tensor.address is not None:
                continue
            declared, padded, view, only_output = sizes.get(_owner(tensor), (0, 0, 0, True))
            sizes[_owner(tensor)] = (
                max(declared, tensor.declared_size),
                max(padded, tensor.buffer_size),
                max(view, tensor.extent * tensor.dtype.size),
                only_output and tensor.role is Role.OUTPUT,
            )
        owned = placed | {slot: self.memory.reserve(f"slot {slot}", *size) for slot, size in sizes.items()}
        for tensor in tensors:
            self.buffers[tensor.slot] = owned[_owner(tensor)]

    def _place_fixed(self, tensors: Sequence[ReplayTensor]) -> dict[int, Buffer]:
        """Buffers that have to lie where they lay, by slot; a gap as after every other one follows the last."""
        fixed = sorted((t.address, t.slot, t) for t in tensors if t.address is not None)
        made = {
            slot: self.memory.reserve_at(
                address,
                f"slot {slot}",
                t.declared_size,
                t.buffer_size,
                t.extent * t.dtype.size,
                t.role is Role.OUTPUT,
            )
            for address, slot, t in fixed
        }
        if fixed:
            self.memory.end += GUARD
        return made

    def args_address(self, plan: CorePlan) -> int:
        return self.args.address + self.row_size * self.rows[plan.block, plan.cube, plan.sub_block]

    def fill(self, path: Path, offset: int = 0, *, sparse: bool = False) -> None:
        """Writes everything; `sparse`: buffers of zeros take no room, for a run that writes none, or not into the file."""
        self.memory.create(path, offset)
        for i, tensor in enumerate(self.arguments.tensors):
            buffer = self.buffers[tensor.slot]
            self.memory.write(self.descriptors, i * DESCRIPTOR_SIZE, pack_descriptor(tensor, buffer.address))
            if sparse and isinstance(tensor.content, Zero):
                continue
            if tensor.extent <= 2 * tensor.numel:  # of a view with wide gaps only some pages are touched
                self.memory.take_room(buffer, tensor.extent * tensor.dtype.size)
            scatter(tensor, self.memory.view(buffer))
        self.memory.write(self.args, 0, self.packed(self.arguments))

    def packed(self, arguments: ReplayArguments) -> bytes:
        """The args arrays of all cores, for arguments with these tensors and any scalars."""
        descriptors = {
            tensor.slot: self.descriptors.address + i * DESCRIPTOR_SIZE
            for i, tensor in enumerate(arguments.tensors)
        }
        packed = bytearray(self.row_size * len(self.plans))
        for i, plan in enumerate(self.plans):
            row = i * self.row_size
            local, global_ = row + ARGS_SIZE, row + ARGS_SIZE + LOCAL_CONTEXT_SIZE
            base = self.args.address
            content = (
                pack_arguments(
                    arguments, descriptors, local_context=base + local, global_context=base + global_
                )
                + pack_local_context(plan.block, arguments.block_count)
                + pack_global_context(plan.sub_block)
            )
            packed[row : row + len(content)] = content
        return bytes(packed)

    def held_lines(self, held: Sequence[tuple[int, bool]]) -> list[str]:
        """What L2 holds when the run begins."""
        found = ((self.buffers[slot], dirty) for slot, dirty in held if slot in self.buffers)
        return [f"held\t{buffer.address}\t{buffer.size}\t{int(dirty)}" for buffer, dirty in found]

    def contents(self) -> dict[int, NDArray[np.uint8]]:
        """Every tensor slot's buffer as the run left it; the mapping outlives the file."""
        return {slot: self.memory.view(buffer) for slot, buffer in self.buffers.items()}

    def outputs(self) -> dict[int, NDArray[Any]]:
        """What the kernel may have written, in the shape of each argument's view."""
        return {
            tensor.slot: view_of(tensor, self.memory.view(self.buffers[tensor.slot]))
            for tensor in self.arguments.tensors
            if tensor.is_output or tensor.role is None
        }


def _owner(tensor: ReplayTensor) -> int:
    return tensor.slot if tensor.shares is None else tensor.shares


class _Made(Struct, frozen=True):
    """The kernels of a run, what they were compiled to, and how they were started."""

    kernels: Sequence[Kernel]
    objects: Sequence[Path]
    options: EmbeddedOptions

    @property
    def chip_file(self) -> str:
        name = self.options.soc_version or ""
        return name if name.endswith(".toml") else ""

    def line_of(self, image: str, offset: int) -> tuple[str, int] | None:
        """Where a place in one of these objects comes from; others are none of ours to read."""
        return line_of_crash(image, offset) if Path(image) in self.objects else None


def _simulation(
    directory: Path, result: RunnerResult, gm: MemoryLayout, plans: Sequence[CorePlan], soc: Chip, made: _Made
) -> Simulation:
    failure = result.failure
    if failure and result.crash:
        place = made.line_of(*result.crash)
        if place:
            failure = replace(failure, file=place[0], line=place[1])
    elif failure and failure.file.endswith(KERNEL_OBJECT):
        place = made.line_of(failure.file, failure.line) or ("", 0)
        failure = replace(failure, file=place[0], line=place[1])
    records = directory / "records"
    cores = tuple(plan.name for plan in plans)
    if not result.told:
        return replace(_nothing(soc, failure), printed=result.printed)
    sites = [_in_source(site, made) for site in result.sites]
    try:
        instructions = load_instructions(records, sites, cores, soc.target)
    except JobError as error:
        # what ended the run is told, without the rows that it left spoiled
        failure = failure or Failure(Fault.KERNEL, error.what)
        return replace(_nothing(soc, failure), printed=result.printed)
    regions = tuple((b.name, b.address, b.size, b.padded) for b in gm.memory.buffers)
    return Simulation(
        outputs=gm.outputs(),
        buffers=gm.contents(),
        instructions=instructions,
        mhz=soc.mhz,
        soc_version=soc.name,
        failure=failure,
        printed=result.printed,
        findings=(
            *_stored_past(gm.memory, made.options),
            *findings_of(result, instructions, gm.memory.buffers),
        ),
        sources=readable_sources((site.file for site in sites if site.file), made.kernels, made.objects),
        read=files_read(made.objects),
        memory=result.memory,
        launch=launch_of(result, soc, made.options),
        chip_file=made.chip_file,
        parameters=tuple(soc.job_lines),
        regions=regions,
    )


def _stored_past(memory: GlobalMemory, options: EmbeddedOptions) -> Iterator[Finding]:
    """Stores past the end of an argument, by what they left there; a checked run sees the stores themselves."""
    for buffer in () if options.check else memory.buffers:
        first = memory.stored_past(buffer)
        if first is not None:
            yield stored_past(buffer.name, buffer.size, first)


def chip_that_ran(simulation: Simulation, preset: str) -> Chip:
    """The chip that a run was simulated on."""
    return load_chip(simulation.chip_file or simulation.soc_version, preset=preset)


def launch_of(result: RunnerResult, soc: Chip, options: EmbeddedOptions) -> Launch | None:
    """What the runner says of blocks and cores, and what the chip adds around them."""
    if result.waves is None:
        return None
    before, after = (round(soc.value(f"launch.{end}")) if options.launched else 0 for end in ("head", "tail"))
    starts = tuple(start for start, _ in result.core_times)
    ends = tuple(end for _, end in result.core_times)
    return Launch(before, after, result.waves, starts, ends, result.overfull, options.first)


def _in_source(site: Site, made: _Made) -> Site:
    """Plain loads and stores come as offsets into the kernel's object; its debug lines say where that is."""
    if not site.file.endswith(KERNEL_OBJECT):
        return site
    place = made.line_of(site.file, site.line)
    return Site(*place, site.name, site.pipe) if place else Site("", 0, site.name, site.pipe)


def _nothing(soc: Chip, failure: Failure | None) -> Simulation:
    """A run that got no further than its failure."""
    return Simulation(outputs={}, instructions=empty(), mhz=soc.mhz, soc_version=soc.name, failure=failure)
