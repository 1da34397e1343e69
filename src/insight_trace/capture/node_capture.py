"""Capture of a scene over several chips: its orchestration runs here, each chip's calls in runners of their own.

Every call of a chip leaves a dump of its own, `rank{chip}/d{call}`, below the output folder; `node.json` says which
callable that was.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from insight_trace.capture.arena import tensor_line
from insight_trace.capture.builds import Builds, build
from insight_trace.capture.golden import GoldenResult, compare, expected
from insight_trace.capture.growing_dump import GrowingDump, WrittenDump, dump_directory, payload_limit
from insight_trace.capture.node import MOST_CHIPS, Node, NodeBuffer, NodeCall, NodeMemory
from insight_trace.capture.process import RunnerReport, run_runner
from insight_trace.capture.session import Capture, CaptureOptions, host_sandbox_lines, job_lines, seed_all
from insight_trace.dtypes import DTYPES
from insight_trace.errors import InputError, InsightTraceError, JobError, RequestError, as_error
from insight_trace.model import Case, Scene
from insight_trace.outcome import Failure, Fault
from insight_trace.scene.declarations import read_callable
from insight_trace.scene.live import LiveScalar, LiveScene, LiveTensor
from insight_trace.scene.node_names import CallConfig, ChipTaskArgs
from insight_trace.simulate.embedded.job_files import job_directory
from insight_trace.simulate.embedded.memory import BASE, escape
from insight_trace.simulate.embedded.toolchain import KernelBuildError, Toolchain
from insight_trace.storage import refuse_existing, whole_directory, write_whole

RECORD = ("node.json",)  # what a folder has that such a capture made
_WORKERS = 8  # of a chip: a kernel that waits for a peer keeps one


@dataclass(frozen=True)
class ChipCallable:
    """One orchestration with its kernels, as CALLABLE["callables"] declares it."""

    name: str
    scene: Scene
    signature: tuple[Any, ...]


def capture_node(
    live: LiveScene, case: Case, target: str, directory: Path, options: CaptureOptions
) -> Capture:
    """Runs one case of a level-3 scene and records what every chip did."""
    if options.partly:
        raise RequestError(
            "one dispatch of a scene over several chips cannot be captured alone",
            hint="capture the case, then replay from one chip's dump: --dump-dir OUTPUT/rank0/d0",
        )
    scene = live.scene
    inputs = [scene.path, *(kernel.source for kernel in scene.kernels)]
    most_payload = 0
    if options.level:
        refuse_existing(directory, force=options.force, record=RECORD, inputs=inputs)
        most_payload = payload_limit(directory, options.max_payload)
    chips = int(case.config.get("device_count", 1))
    if not 1 <= chips <= MOST_CHIPS:
        raise RequestError(f"case {case.name} asks for {chips} chips", hint=f"1 to {MOST_CHIPS} can be had")
    seed_all(options.seed)
    memory = NodeMemory(chips)
    try:
        callables = _callables(scene, live.scene_class.CALLABLE)
        dumps = _Dumps(directory, options, inputs) if options.level else None
        chip = _Chip(memory, target, options, most_payload, dumps)
        if dumps is not None:
            dumps.begin(scene, callables)
        try:
            if live.tests_itself:
                golden = _test_itself(live, callables, chip)
            else:
                golden = _run_case(live, case, callables, chip)
        finally:
            if dumps is not None:
                dumps.end()
    finally:
        memory.close()
    return _capture(scene, case, options, directory, chip, golden)


def _run_case(
    live: LiveScene, case: Case, callables: Mapping[str, ChipCallable], chip: _Chip
) -> GoldenResult | None:
    """Arguments, orchestration, and what the golden function says of them."""
    args = live.generate_args(case)
    tensors = [a for a in live.arguments(args) if isinstance(a, LiveTensor)]
    outputs = tuple(tensor.name for tensor in tensors)
    golden = expected(live, args, case, outputs) if chip.options.golden else None
    args.hosted = {tensor.name: chip.memory.host(tensor) for tensor in tensors}
    names = _names(callables, live.scene_class.CALLABLE)
    node = Node(chip.memory)
    live.orchestrate(node, names, args, CallConfig(**case.config))
    chip.drain(node)
    for tensor in tensors:
        found = chip.memory.array(args.hosted[tensor.name].whole())
        tensor.array[...] = found.reshape(tensor.array.shape)
    if golden is None or chip.failure is not None:
        return None
    return compare(live, case.name, args, golden, outputs)


def _test_itself(live: LiveScene, callables: Mapping[str, ChipCallable], chip: _Chip) -> GoldenResult | None:
    """A scene that makes its buffers, submits and looks at the results in a test of its own."""
    node = Node(chip.memory)

    def run(function: Any, args: Any = None, config: Any = None) -> None:
        node.calls.clear()
        function(node, args, config)
        chip.drain(node)
        if chip.failure is not None:
            raise JobError(chip.failure.message)

    worker = SimpleNamespace(create_buffer=node.create_buffer, run=run)
    live.scene_class._st_chip_handles = _names(callables, live.scene_class.CALLABLE).__dict__
    try:
        wrong = live.own_test(worker)
    except JobError:
        if chip.failure is None:
            raise
        return None
    return GoldenResult(not wrong, (), wrong, 1)  # its own test says what it looked at


def _callables(scene: Scene, declared: Mapping[str, Any]) -> dict[str, ChipCallable]:
    found = {}
    for entry in declared.get("callables") or ():
        if not isinstance(entry, Mapping) or "orchestration" not in entry:
            continue
        notes: list[str] = []
        kernels, orchestration = read_callable(entry, scene.path, notes)
        name = str(entry.get("name", ""))
        if orchestration is None or orchestration.source is None:
            raise InputError(f"callable {name!r} has no orchestration", where=str(scene.path))
        own = replace(scene, kernels=tuple(kernels), orchestration=orchestration)
        signature = tuple(entry["orchestration"].get("signature") or ())
        found[name] = ChipCallable(name, own, signature)
    return found


def _names(callables: Mapping[str, ChipCallable], declared: Mapping[str, Any]) -> SimpleNamespace:
    """What an orchestration gets as `callables`."""
    names: dict[str, Any] = dict(callables)
    names |= {f"{name}_sig": entry.signature for name, entry in callables.items()}
    for entry in declared.get("callables") or ():
        if isinstance(entry, Mapping) and callable(entry.get("callable")):
            names[str(entry["name"])] = entry["callable"]
    return SimpleNamespace(**names, keep=lambda *kept: kept[0] if len(kept) == 1 else kept)


class _Dumps:
    """The folder of a node's dumps."""

    def __init__(self, directory: Path, options: CaptureOptions, inputs: list[Path]) -> None:
        self.directory, self.options, self.inputs = directory, options, inputs

    def begin(self, scene: Scene, callables: Mapping[str, ChipCallable]) -> None:
        about = {
            "level": scene.level,
            "orchestrator_name": scene.orchestration.function_name if scene.orchestration else "",
            "callable_id_to_name": {str(number): name for number, name in enumerate(callables)},
            "calls": [],
            "partial": True,  # until all of it is there
        }
        force = self.options.force
        with whole_directory(self.directory, force=force, record=RECORD, inputs=self.inputs) as beside:
            (beside / "node.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    def folder(self, member: ChipMember) -> Path:
        return self.directory / f"rank{member.chip}" / f"d{member.turn}"

    def end(self) -> None:
        """Folders of chips that recorded nothing go, and the whole if none did."""
        for rank in self.directory.glob("rank*"):
            with suppress(OSError):
                rank.rmdir()
        if not any(self.directory.glob("rank*")):
            shutil.rmtree(self.directory, ignore_errors=True)


class _Chip:
    """Runs what chips are called for, and keeps what came of it."""

    def __init__(
        self,
        memory: NodeMemory,
        target: str,
        options: CaptureOptions,
        most_payload: int,
        dumps: _Dumps | None,
    ) -> None:
        self.memory, self.target, self.dumps, self.most_payload = memory, target, dumps, most_payload
        self.options = dataclasses.replace(options, workers=options.workers or _WORKERS)
        self.toolchain = Toolchain.find()
        self.finished: list[tuple[ChipMember, WrittenDump]] = []
        self.reports: list[RunnerReport] = []
        self.failure: Failure | None = None
        self.seconds = 0.0  # of runs, without loading and compiling
        self._builds: dict[str, Builds] = {}
        self._windows: list[NodeBuffer] = []
        self._turns = dict.fromkeys(range(memory.chips), 0)

    def drain(self, node: Node) -> None:
        """Compiles what was submitted and runs it to its end, or to the first failure."""
        self._windows = node.windows
        for call in node.calls:
            if isinstance(call.callable, ChipCallable) and call.callable.name not in self._builds:
                try:
                    built = build(call.callable.scene, self.target, self.toolchain)
                except KernelBuildError as error:
                    self.failure = error.failure
                    return
                self._builds[call.callable.name] = built
        started = time.monotonic()
        run = drain(node, self._turns, self.run)
        self.seconds += time.monotonic() - started
        self.reports += [report for _, report in run.reports]
        self.failure = run.failure

    def run(self, member: ChipMember, look: Callable[[], None]) -> RunnerReport:
        """One chip's part of a call."""
        called = member.call.callable
        if not isinstance(called, ChipCallable):
            raise JobError(f"chip {member.chip} was given a {type(called).__name__} to run")
        builds, memory = self._builds[called.name], self.memory
        scalars = tuple(LiveScalar("", DTYPES[8], bits) for bits in member.args.scalars)
        folder = self.dumps.folder(member) if self.dumps else Path()
        if self.dumps:
            folder.parent.mkdir(exist_ok=True)
        level = self.options.level if self.dumps else 0
        with job_directory() as job, dump_directory(folder, level, []) as dump:
            recorder = GrowingDump(dump, level, called.scene)
            first, last = memory.heap(member.chip)
            lines = [
                *job_lines(called.scene, scalars, builds, self.target, self.options, self.most_payload),
                f"arena\t{memory.file}\t{BASE}\t{first}\t{last}",
                f"node\t{memory.board.base}\t{member.chip}",
                *(f"window\t{w.base}\t{w.nbytes}\t{escape(w.name)}" for w in self._windows),
                *(
                    tensor_line(
                        t.address, t.buffer.base + t.buffer.nbytes - t.address, t.buffer.name, t.dtype,
                        t.shape, t.strides,
                    )
                    for t, _ in member.args.tensors
                ),
                *recorder.job_lines,
                *host_sandbox_lines(self.options, job, dump, self.toolchain),
            ]  # fmt: skip
            order, result = job / "job", job / "result"
            order.write_text("\n".join([f"result\t{result}", *lines]) + "\n", encoding="utf-8")

            def watch() -> None:
                look()
                recorder.look()

            report = run_runner(
                builds.runner, order, result, (memory.file,), watch, sandbox=self.options.sandbox
            )
            self.finished.append((member, recorder.finish(report)))
        return report


def _capture(
    scene: Scene,
    case: Case,
    options: CaptureOptions,
    directory: Path,
    chip: _Chip,
    golden: GoldenResult | None,
) -> Capture:
    reports, finished = chip.reports, sorted(chip.finished, key=lambda pair: (pair[0].chip, pair[0].turn))
    remarks = dict.fromkeys(remark for report in reports for remark in report.remarks)
    said = "\n".join(dict.fromkeys(report.said.strip() for report in reports))
    if options.level and directory.exists():
        calls = [
            {"rank": m.chip, "call": m.turn, "callable": m.call.callable.name, "records": done.records}
            for m, done in finished
        ]
        about = json.loads((directory / "node.json").read_text(encoding="utf-8")) | {
            "calls": calls,
            "partial": chip.failure is not None,
        }
        write_whole(directory / "node.json", json.dumps(about, indent=1) + "\n", force=True)
    records = sum(done.records for _, done in finished)
    return Capture(
        scene=scene,
        case=case.name,
        level=options.level,
        directory=directory if records and directory.exists() else None,
        tasks=sum(report.number("completed") for report in reports),
        dispatches=sum(report.number("dispatches") for report in reports),
        records=records,
        payload_bytes=sum(done.payload_bytes for _, done in finished),
        seconds=chip.seconds,
        golden=golden,
        failure=chip.failure,
        note="\n".join(filter(None, [*remarks, said])),
    )


# --- runs what a level-3 orchestration submitted: each chip's calls in order, chips beside each other


_PATIENCE_SECONDS = 5.0  # in which chips that wait for each other do nothing else
_LOOK_SECONDS = 0.02
_LOOKS = 10
_BOARD = struct.Struct(
    "<iIQ"
)  # Chips in capture/host/chips.hpp: turn, hopeless, moves; then a count for each chip
_HOPELESS = 4  # where the second of these lies


@dataclass(frozen=True)
class ChipMember:
    """One chip's part of a call; `turn` counts the calls of that chip."""

    call: NodeCall
    chip: int
    turn: int
    args: ChipTaskArgs


@dataclass
class NodeRun:
    """How the calls of a node ended."""

    reports: list[tuple[ChipMember, RunnerReport]] = field(default_factory=list)
    failure: Failure | None = None
    chip: int = -1  # that failed first


class _StoppedError(Exception):
    """Another chip has failed: the rest of the run is of no use."""


def drain(
    node: Node, turns: dict[int, int], run_member: Callable[[ChipMember, Callable[[], None]], RunnerReport]
) -> NodeRun:
    """Runs every call; `run_member` runs one chip's part of one, and calls what it is given now and then.

    `turns` counts the calls of each chip."""
    result = NodeRun()
    waiting, done = list(node.calls), set[int]()
    left: dict[int, int] = {}  # members of calls that run
    on_host = 0
    watch = _Watch(node)
    busy: set[int] = set()
    changed = threading.Condition()
    stop = threading.Event()

    def look() -> None:
        if stop.is_set():
            raise _StoppedError

    def run(member: ChipMember) -> None:
        nonlocal on_host
        report = RunnerReport()
        try:
            if member.chip < 0:
                _on_host(node, member)
            else:
                report = run_member(member, look)
        except _StoppedError:
            report.failure = Failure(Fault.ENVIRONMENT, "ended, because another chip has failed")
        except InsightTraceError as error:
            report.failure = Failure(Fault.INPUT, str(error))
        except Exception as error:
            if isinstance(error, OSError) and member.chip >= 0:  # ours: files of the dump
                report.failure = Failure(Fault.ENVIRONMENT, str(as_error(error)).splitlines()[0])
            else:
                report.failure = Failure(
                    Fault.INPUT, f"a function on the host failed: {type(error).__name__}: {error}"
                )
        with changed:
            result.reports.append((member, report))
            if report.failure is not None and result.failure is None:
                result.failure, result.chip = report.failure, member.chip
            busy.discard(member.chip)
            on_host -= member.chip < 0
            left[member.call.number] -= 1
            if not left[member.call.number]:
                done.add(member.call.number)
            changed.notify_all()

    try:
        with changed:
            while (waiting or any(left.values())) and result.failure is None:
                for call in _startable(waiting, done, busy):
                    waiting.remove(call)
                    left[call.number] = len(call.members)
                    for chip, args in call.members:
                        member = ChipMember(call, chip, turns.get(chip, 0), args)
                        if chip < 0:
                            on_host += 1
                        else:
                            busy.add(chip)
                            watch.starts(chip)
                            turns[chip] += 1
                        threading.Thread(target=run, args=(member,), daemon=True).start()
                changed.wait(_LOOK_SECONDS)
                watch.look(busy, host_works=on_host > 0)
            if watch.hopeless:  # each of them says what it waits for
                changed.wait_for(lambda: not any(left.values()), timeout=_PATIENCE_SECONDS)
    finally:
        stop.set()
        watch.close()
        with changed:  # each ends at its next look
            changed.wait_for(lambda: not any(left.values()), timeout=30)
    if watch.hopeless and result.failure is not None:
        waits = {m.chip: r.failure.message for m, r in result.reports if r.failure is not None}
        text = "; ".join(f"chip {chip}: {waits[chip]}" for chip in sorted(waits))
        result.failure = replace(result.failure, message=text)
    elif result.failure is not None and result.chip >= 0:
        result.failure = replace(result.failure, message=f"chip {result.chip}: {result.failure.message}")
    return result


def _startable(waiting: Iterable[NodeCall], done: set[int], busy: set[int]) -> list[NodeCall]:
    """In the order of submission; a call that waits for a chip keeps that chip, and its others, from later ones."""
    found, taken = [], set(busy)
    for call in waiting:
        if not call.after <= done:
            continue
        chips = {chip for chip, _ in call.members if chip >= 0}
        if not chips & taken:
            found.append(call)
        taken |= chips
    return found


def _on_host(node: Node, member: ChipMember) -> None:
    arrays = [node.memory.array(tensor) for tensor, _ in member.args.tensors]
    member.call.callable([*arrays, *member.args.scalars])


class _Watch:
    """Sees that nothing moves any more, and says so to the chips."""

    def __init__(self, node: Node) -> None:
        self._board = node.memory.view(node.memory.board)
        self.hopeless = False
        self._moves = -1
        self._since = time.monotonic()
        self._turns = [0] * _LOOKS
        self._before: dict[int, int] = {}

    def starts(self, chip: int) -> None:
        self._before[chip] = self._begun(chip)

    def look(self, busy: set[int], *, host_works: bool) -> None:
        turn, _, moves = _BOARD.unpack_from(self._board)
        self._turns = [*self._turns[1:], turn]
        # chips that wait hand their turn on at once; who works keeps it, look after look
        working = turn != 0 and set(self._turns) == {turn}
        starting = any(self._begun(chip) == self._before[chip] for chip in busy)
        if host_works or working or starting or moves != self._moves:
            self._moves, self._since = moves, time.monotonic()
        elif time.monotonic() - self._since > _PATIENCE_SECONDS:
            struct.pack_into("<I", self._board, _HOPELESS, 1)  # and nothing else: the turn is theirs
            self.hopeless = True

    def _begun(self, chip: int) -> int:
        count: int = struct.unpack_from("<I", self._board, _BOARD.size + 4 * chip)[0]
        return count

    def close(self) -> None:
        self._board.release()
