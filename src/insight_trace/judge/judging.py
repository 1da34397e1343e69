"""One candidate: compiled, run on inputs that it could not know, compared, checked, timed, explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.arguments.slots import ReplayArguments
from insight_trace.check.suppressions import apply
from insight_trace.errors import InputError, InsightTraceError, JobError, RequestError, next_step
from insight_trace.finding import Finding, Severity
from insight_trace.job import Job
from insight_trace.judge.forbidden import forbidden, forbidden_calls, unseen_code
from insight_trace.judge.inputs import made_inputs, poison, seed_of
from insight_trace.judge.task import Task, Tensor, names_of
from insight_trace.judge.verdict import Advised, DoneWork, Outcome, Verdict
from insight_trace.limits import SOURCE_BYTES, cut
from insight_trace.model import Case, Payload, Pipe, Role, Scene
from insight_trace.options import RunOptions
from insight_trace.outcome import Failure, Fault, Simulation
from insight_trace.program.kernel_file import KernelFile, PlannedKernel, plan_kernel
from insight_trace.program.run_kernel import plan_names
from insight_trace.reading import read_regular
from insight_trace.replay.pipeline import Execution, execute
from insight_trace.scratch import scratch_folder
from insight_trace.simulate.embedded.embedded_simulator import EmbeddedSimulator
from insight_trace.simulate.embedded.toolchain import PREPROCESSED

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIGSYS = 31
_ADVICE = 3
# for runs that look for the wrong line; their number ends them before that, or a verdict would depend on the clock
_TRIES_SECONDS = 60.0
# cann-bench's weights: it compiles, it is right, it is fast
_COMPILES, _RIGHT, _FAST = 0.2, 0.3, 0.5


class _Run(Struct, frozen=True, eq=False):
    inputs: Mapping[str, NDArray[Any]]
    done: Execution

    @property
    def simulation(self) -> Simulation:
        assert self.done.simulation is not None
        return self.done.simulation


def judge_file(task: Task, candidate: Path) -> Verdict:
    """The verdict of one file. It is read once; a copy in a folder of its own is what is compiled."""
    name = candidate.name
    try:
        text = read_regular(candidate, most=SOURCE_BYTES)
    except OSError as error:
        raise RequestError(f"the candidate cannot be read: {error.strerror}", where=str(candidate)) from None
    word, line = forbidden(text.decode("utf-8", "replace"))
    if word:
        said = f"line {line}: `{word}`: a kernel has no use for it"
        return Verdict(
            name, Outcome.FORBIDDEN, 0.0, said, line, "use tile ops, instructions and arguments only"
        )
    # what the reference says lies where neither the compiler nor the kernel may read
    with scratch_folder("judge") as folder, scratch_folder("judge-task") as private:
        copy = folder / (name if name.endswith((".cpp", ".cce", ".cc")) else f"{name}.cpp")
        copy.write_bytes(text)
        try:
            return _judged(task, name, text, copy, private)
        except (RequestError, InputError, JobError) as error:
            return _refused(name, error, folder)


def _refused(name: str, error: InsightTraceError, folder: Path) -> Verdict:
    """What the planner of kernels says of a file that it cannot take: its parameters, or a compiler's error."""
    said = str(error).replace(f"{folder}/", "").splitlines()
    where = getattr(error, "where", "") or ""
    line = int(where.rpartition(":")[2]) if where.rpartition(":")[2].isdigit() else 0
    compiled = "compile" in said[0]
    outcome = Outcome.COMPILE_ERROR if compiled or isinstance(error, RequestError) else Outcome.NOT_JUDGED
    return Verdict(name, outcome, 0.0, cut(said[0]), line, said[1].strip() if len(said) > 1 else "")


def _judged(task: Task, name: str, text: bytes, copy: Path, private: Path) -> Verdict:
    folder = copy.parent
    file = KernelFile(copy, task.entry, task.target)
    options = RunOptions(
        simulator="embedded",
        soc_version=task.chip,
        target=task.target,
        launch="kernel",
        seconds=task.seconds,
        host_cores=1,
    )
    checking = replace(options, check=True)
    simulators = {True: EmbeddedSimulator(checking), False: EmbeddedSimulator(options)}
    planned = _planned(task, file, seed_of(task, text, 0))
    broken, objects = _compiled(planned, task, simulators[False])
    if broken is not None:
        said = cut(_first_line(broken.message).replace(f"{folder}/", ""))
        outcome = (
            Outcome.NOT_JUDGED
            if broken.fault in (Fault.OUR_BUG, Fault.ENVIRONMENT)
            else Outcome.COMPILE_ERROR
        )
        at = f"line {broken.line}: " if broken.line else ""
        return Verdict(name, outcome, 0.0, f"{at}{said}", broken.line)
    hidden = _hidden(planned, copy, objects, simulators[False])
    if hidden is not None:
        said, line = hidden
        return Verdict(
            name, Outcome.FORBIDDEN, 0.0, f"line {line}: {said}" if line else said, line,
            "use tile ops, instructions and arguments only",
        )  # fmt: skip
    compared = 0
    first: _Run | None = None
    for number in range(task.seeds):
        seed = seed_of(task, text, number)
        inputs = made_inputs(task, seed)  # only now: the candidate is compiled
        job = _job(task, planned, inputs, seed, private)
        done = execute(
            job, checking if number == 0 else options, simulator=simulators[number == 0], record=number == 0
        )
        run = _Run(inputs, done)
        if run.simulation.failure is not None:
            return _failed(name, run.simulation, folder)
        first = first or run
        written = _overwrites(task, run)
        if written:
            return Verdict(name, Outcome.FORBIDDEN, 0.0, written, fix="write to outputs only")
        wrong = _wrong(task, run)
        if wrong is not None:
            return _of_wrong(task, name, wrong, first, number)
        compared += 1
    assert first is not None
    return _of_right(task, name, first, compared, folder)


# --- the run ---------------------------------------------------------------------------------------------


def _planned(task: Task, file: KernelFile, seed: bytes) -> PlannedKernel:
    """The kernel with arguments of the task's shapes; their content comes later."""
    import numpy as np

    values: dict[str, Any] = {
        **{tensor.name: np.zeros(tensor.shape, tensor.kind.numpy) for tensor in task.inputs},
        **{tensor.name: poison(tensor, seed) for tensor in task.outputs},
        **{scalar.name: scalar.value for scalar in task.scalars},
    }
    names = plan_names(file)
    if not names or set(names) == set(values):
        return plan_kernel(file, values, blocks=task.blocks)
    if len(names) != len(values):
        raise RequestError(
            f"the kernel takes {len(names)} parameters ({', '.join(names)}); the task gives {len(values)}: "
            f"{', '.join(names_of(task))}",
            hint="declare them by these names, or as many in this order",
        )
    return plan_kernel(file, list(values.values()), blocks=task.blocks)


def _compiled(
    planned: PlannedKernel, task: Task, simulator: EmbeddedSimulator
) -> tuple[Failure | None, list[Path]]:
    """Compiles for every core that runs it; why it cannot be, and the objects."""
    from insight_trace.simulate.embedded.toolchain import KernelBuildError

    objects = []
    try:
        for kernel in planned.kernels:
            objects.append(
                simulator.toolchain.kernel(
                    kernel.source, kernel.core_type, target=task.target, include_dirs=kernel.include_dirs
                )
            )
    except KernelBuildError as error:
        return error.failure, []
    return None, objects


def _hidden(
    planned: PlannedKernel, copy: Path, objects: Sequence[Path], simulator: EmbeddedSimulator
) -> tuple[str, int] | None:
    """What of the candidate the engine would not see, and its line; None where it sees everything."""
    from insight_trace.program.kernel_file import KernelFile, preprocessed

    for source in dict.fromkeys(kernel.source for kernel in planned.kernels):
        if source.suffix == PREPROCESSED:
            sides = [source.read_text(encoding="utf-8", errors="surrogateescape")]
        else:
            sides = list(preprocessed(KernelFile(source), simulator.toolchain).values())
        for text in sides:
            word, line = unseen_code(text, copy.resolve())
            if word:
                return f"`{word}`: a kernel has no use for it", line
    for compiled in objects:
        call = forbidden_calls(compiled)
        if call:
            return f"{call}: a kernel has no use for it", 0
    return None


def _job(
    task: Task, planned: PlannedKernel, inputs: Mapping[str, NDArray[Any]], seed: bytes, private: Path
) -> Job:
    """The compiled kernel on inputs, its outputs poisoned, what the reference says beside them."""
    from insight_trace.arguments.slots import CallerArray, ReplayTensor

    order = names_of(task)
    expected = dict(zip((one.name for one in task.outputs), task.expected(inputs), strict=True))
    by_name = {one.name: one for one in task.outputs}
    slots = []
    # parameters by other names stand in the task's order; those of the kernel's own file are slots by name
    renamed = (
        {}
        if {slot.name for slot in planned.arguments.slots} <= set(order)
        else dict(zip(planned.names, order, strict=False))
    )
    for slot in planned.arguments.slots:
        name = renamed.get(slot.name, slot.name)
        if isinstance(slot, ReplayTensor) and name in inputs:
            slot = replace(slot, content=CallerArray(inputs[name]), role=Role.INPUT, name=name)
        elif isinstance(slot, ReplayTensor):
            place = private / f"expected_{name}_{seed.hex()[:8]}"
            raw = expected[name].tobytes()
            place.write_bytes(raw)
            slot = replace(
                slot, content=CallerArray(poison(by_name[name], seed)), role=Role.OUTPUT, name=name,
                expected=Payload(place, 0, len(raw)),
            )  # fmt: skip
        slots.append(slot)
    arguments = ReplayArguments(tuple(slots), planned.arguments.block_count)
    scene = Scene(planned.kernels[0].source, planned.name, "", 2, "", (), planned.kernels, None)
    return Job(planned.kernels, arguments, task.target, scene, Case(task.name), origin="a task's inputs")


def _failed(name: str, simulation: Simulation, folder: Path) -> Verdict:
    failure = simulation.failure
    assert failure is not None
    said = cut(_first_line(failure.message).replace(f"{folder}/", ""), 240)
    at = f"line {failure.line}: " if failure.line and f"line {failure.line}" not in said else ""
    score = _COMPILES
    fix = next((f.fix for f in simulation.findings if f.fix and f.severity is Severity.ERROR), "")
    fix = fix or (next_step(failure.fault, failure.limit) or "")
    if failure.signal == _SIGSYS:
        outcome, score = Outcome.FORBIDDEN, 0.0
        said = "it asks the system for something that a kernel may not have"
    elif failure.limit in ("time", "memory"):  # which of the two comes first is a matter of the machine
        # where it was when its time was over is chance
        return Verdict(
            name,
            Outcome.HANG,
            score,
            "it does not end within the limits of time and memory",
            fix="see what ends its loops",
        )
    elif "deadlock" in failure.message:
        outcome = Outcome.HANG
    elif failure.limit:
        outcome = Outcome.TOO_LARGE
    elif failure.fault in (Fault.OUR_BUG, Fault.ENVIRONMENT, Fault.NOT_SUPPORTED):
        outcome = Outcome.NOT_JUDGED
    else:
        outcome = Outcome.CRASH
    return Verdict(name, outcome, score, f"{at}{said}", failure.line, fix)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


# --- values ----------------------------------------------------------------------------------------------


class _Wrong(Struct, frozen=True, eq=False):
    tensor: Tensor
    index: tuple[int, ...]
    got: float
    want: float
    count: int


def _wrong(task: Task, run: _Run) -> _Wrong | None:
    """The first output that is not what the reference says."""
    import numpy as np

    by_name = {slot.name: slot for slot in run.done.job.arguments.tensors}
    for tensor in task.outputs:
        slot = by_name[tensor.name]
        got = run.simulation.outputs[slot.slot]
        assert slot.expected is not None
        want = np.frombuffer(slot.expected.path.read_bytes(), tensor.kind.numpy).reshape(tensor.shape)
        unlike = ~_close(got, want, task, tensor)
        if unlike.any():
            flat = int(np.argmax(unlike.reshape(-1)))
            index = tuple(int(i) for i in np.unravel_index(flat, tensor.shape or (1,)))
            values = [float(np.float32(np.ascontiguousarray(each).reshape(-1)[flat])) for each in (got, want)]
            return _Wrong(tensor, index, values[0], values[1], int(unlike.sum()))
    return None


def _overwrites(task: Task, run: _Run) -> str:
    """An input that the kernel writes to; "" for none."""
    from insight_trace.recording.operands import WRITES

    by_name = {slot.name: slot.slot for slot in run.done.job.arguments.tensors}
    for tensor in task.inputs:
        share = _share(run.simulation, by_name[tensor.name], tensor, WRITES)
        if share:
            return f"it overwrites {share:.1%} of its input {tensor.name}"
    return ""


def _close(got: NDArray[Any], want: NDArray[Any], task: Task, tensor: Tensor) -> NDArray[Any]:
    import numpy as np

    if not tensor.kind.is_float:
        return np.asarray(got == want)
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float32).astype(np.float64), want.astype(np.float32).astype(np.float64)
        near = np.abs(a - b) <= task.atol + task.rtol * np.abs(b)
        return np.asarray((a == b) | near | (np.isnan(a) & np.isnan(b)))


def _of_wrong(task: Task, name: str, wrong: _Wrong, first: _Run, number: int) -> Verdict:
    at = f"{wrong.tensor.name}[{','.join(map(str, wrong.index))}]"
    work = done_work(task, first)
    lacks = _lacks(task, work)
    if lacks:
        return Verdict(
            name, Outcome.INCOMPLETE, 0.0, lacks, inputs_tried=number, work=work, fix=_INCOMPLETE_FIX
        )
    said = f"{at} is {wrong.got:.7g}, the reference says {wrong.want:.7g} ({wrong.count:,} of "
    said += f"{wrong.tensor.bytes // wrong.tensor.kind.size:,} elements are wrong)"
    line, why = _why(first) if number == 0 else (0, "")
    seeds = f", on set {number + 1} of inputs" if number else ""
    return Verdict(
        name, Outcome.WRONG, _COMPILES, f"{said}{seeds}{why}", line, inputs_tried=number + 1, work=work
    )


_INCOMPLETE_FIX = "read every input, compute on the vector or cube unit, and write every output"


def _why(run: _Run) -> tuple[int, str]:
    """The line that most likely made the outputs wrong, by the evidence of this run alone."""
    from insight_trace.debug.debug_session import Session
    from insight_trace.debug.why import first_mismatch

    if run.done.recording is None:
        return 0, ""
    with scratch_folder("judge-why") as folder:
        job, simulation = run.done.job, run.simulation
        record = {
            "soc_version": simulation.chip_file or simulation.soc_version, "target": job.target, "launch": "kernel",
        }  # fmt: skip
        session = Session(folder, run.done.recording, record, (job.kernels, job.arguments))
        try:
            found = first_mismatch(session, _TRIES_SECONDS)
        except InsightTraceError:
            return 0, ""
    if not found.suspects:
        return 0, ""
    lead = found.suspects[0]
    if lead.fix:
        much = "every element is right" if lead.exact else f"{lead.explained:.0%} of the difference goes"
        return lead.line, f"; with {lead.fix} in line {lead.line} ({lead.op}) {much}"
    reason = f" ({lead.reasons[0]})" if lead.reasons else ""
    return lead.line, f"; suspected: line {lead.line}, {lead.op}{reason}"


# --- work ------------------------------------------------------------------------------------------------


def done_work(task: Task, run: _Run) -> DoneWork:
    """What the recording shows that the kernel read, computed and wrote."""
    import numpy as np

    from insight_trace.recording.operands import NONE, READS, WRITES
    from insight_trace.recording.pipes import VECTOR_ARITHMETIC

    columns = run.simulation.instructions
    operands = columns.operands
    by_name = {slot.name: slot.slot for slot in run.done.job.arguments.tensors}
    vector = cube = 0
    if operands is not None:
        for pipes, fields in ((VECTOR_ARITHMETIC, "elements"), ((Pipe.CUBE,), "products")):
            rows = np.flatnonzero(np.isin(columns.pipe, pipes))
            index = operands.geometry[rows]
            shapes = operands.geometries[index[index != NONE]]
            if fields == "elements":
                vector = int(shapes["elements"].astype(np.int64).sum())
            else:
                cube = int((2 * shapes["m"].astype(np.int64) * shapes["k"] * shapes["n"]).sum())
    return DoneWork(
        {tensor.name: _share(run.simulation, by_name[tensor.name], tensor, READS) for tensor in task.inputs},
        {
            tensor.name: _share(run.simulation, by_name[tensor.name], tensor, WRITES)
            for tensor in task.outputs
        },
        vector,
        cube,
    )


def _share(simulation: Simulation, slot: int, tensor: Tensor, role: int) -> float:
    """Of a tensor's bytes, how many an instruction touched that way."""
    import numpy as np

    from insight_trace.recording.intervals import union
    from insight_trace.recording.operands import MEMORIES, byte_ranges

    operands = simulation.instructions.operands
    region = next((r for r in simulation.regions if r[0] == f"slot {slot}"), None)
    if operands is None or region is None or not tensor.bytes:
        return 0.0
    address, size = region[1], tensor.bytes
    footprint = operands.footprints[operands.rows["footprint"]]
    mine = (footprint["memory"] == MEMORIES.index("GM")) & (footprint["role"] & role > 0)
    ranges = byte_ranges(operands, np.flatnonzero(mine))
    begin = np.clip(ranges.begin.astype(np.int64) - address, 0, size)
    end = np.clip(ranges.end.astype(np.int64) - address, 0, size)
    inside = end > begin
    return round(union(begin[inside], end[inside]).length / size, 6)


def _lacks(task: Task, work: DoneWork) -> str:
    """What is missing of the least that the task needs; "" where nothing is."""
    for kind, shares, least in (
        ("reads", work.read, task.work.read),
        ("writes", work.written, task.work.written),
    ):
        for name, share in shares.items():
            if share < least:
                return f"it {kind} {share:.0%} of {name}; the task needs {least:.0%}"
    elements = sum(tensor.bytes // tensor.kind.size for tensor in task.outputs)
    need_cube = task.work.cube_operations
    if need_cube is not None and work.cube_operations < need_cube:
        return f"the cube unit does {work.cube_operations:,} operations; the task needs {need_cube:,}"
    need_vector = task.work.vector_elements
    if need_vector is None:
        need_vector = 0 if need_cube is not None or work.cube_operations >= elements else elements
    if work.vector_elements < need_vector:
        return f"the vector unit works on {work.vector_elements:,} elements; the task needs {need_vector:,}"
    return ""


# --- a candidate whose values are right ------------------------------------------------------------------


def _of_right(task: Task, name: str, run: _Run, compared: int, folder: Path) -> Verdict:
    simulation, recording = run.simulation, run.done.recording
    assert recording is not None
    work = done_work(task, run)
    interval = recording.trace.confidence
    cycles = simulation.cycles
    shell = Verdict(
        name, Outcome.RIGHT, _COMPILES, "", cycles=cycles, low=interval.low if interval else None,
        high=interval.high if interval else None, inputs_tried=compared, work=work, floor=_floor(task, run),
    )  # fmt: skip
    lacks = _lacks(task, work)
    if lacks:
        return replace(
            shell, outcome=Outcome.INCOMPLETE, score=0.0, reason=f"right, but {lacks}", fix=_INCOMPLETE_FIX
        )
    errors = [f for f in apply(run.done.findings, ())[0] if f.severity is Severity.ERROR]
    if errors:
        return _of_fault(shell, errors, folder)
    advice = _advice(run, folder)
    best = advice[0].text if advice else ""
    score = round(_COMPILES + _RIGHT + _FAST * _fast(task, shell), 4)
    slow = task.baseline_cycles is not None and cycles > task.slow * task.baseline_cycles
    said = f"{cycles:,} cycles"
    if task.baseline_cycles is not None:
        said += f", {cycles / task.baseline_cycles:.2f} of the baseline"
    return replace(
        shell, outcome=Outcome.SLOW if slow else Outcome.RIGHT, score=score, advice=advice,
        reason=said + (f"; try: {best}" if best else ""),
    )  # fmt: skip


def _of_fault(shell: Verdict, errors: Sequence[Finding], folder: Path) -> Verdict:
    lead = errors[0]
    line = lead.places[-1].line if lead.places else 0
    more = f"; and {len(errors) - 1} more" if len(errors) > 1 else ""
    said = lead.message.replace(f"{folder}/", "")
    return replace(
        shell, outcome=Outcome.FAULT, reason=f"{lead.category}: {said}{more}", line=line, fix=lead.fix
    )


def _advice(run: _Run, folder: Path) -> tuple[Advised, ...]:
    from insight_trace.trace.advice import advise
    from insight_trace.trace.stats import stats

    assert run.done.recording is not None
    trace = run.done.recording.trace
    found = [one for one in advise(trace, stats(trace)) if one.saves > 0]
    found.sort(key=lambda one: (not one.simulated, -one.saves))
    return tuple(
        Advised(one.text.replace(f"{folder}/", ""), one.saves, one.simulated) for one in found[:_ADVICE]
    )


def _floor(task: Task, run: _Run) -> int:
    """Cycles that loads or stores of the tensors take at the full rate of the cores that ran."""
    from insight_trace.chips import roofs_of

    simulation = run.simulation
    roofs = roofs_of(simulation.soc_version)
    cores = max(1, len(simulation.instructions.cores))
    cube = any("cube" in core for core in simulation.instructions.cores)
    loads, stores = ("GM_TO_L1", "L0C_TO_GM") if cube else ("GM_TO_UB", "UB_TO_GM")
    cycles = 0.0
    for path, tensors in ((loads, task.inputs), (stores, task.outputs)):
        rate = roofs.bandwidth.get(path)
        if rate:
            cycles = max(cycles, sum(t.bytes for t in tensors) / (rate * cores) * simulation.mhz / 1e3)
    return round(cycles)


def _fast(task: Task, found: Verdict) -> float:
    """From 0 to 1: (baseline − floor) / ((cycles − floor) + (baseline − floor)); the floor's share without a baseline."""
    assert found.cycles is not None
    floor = min(found.floor or 0, found.cycles)
    if task.baseline_cycles is None:
        return floor / found.cycles if found.cycles else 0.0
    room = max(0, task.baseline_cycles - floor)
    whole = (found.cycles - floor) + room
    return room / whole if whole else 1.0
