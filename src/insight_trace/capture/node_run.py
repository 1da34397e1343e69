"""Runs what a level-3 orchestration submitted: each chip's calls in order, chips beside each other.

A chip's call is a run of the capture runner of its own. Where all of them only wait for each other, the run ends,
and each says what it waits for.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from insight_trace.capture.node import Node, NodeCall
from insight_trace.capture.process import RunnerReport
from insight_trace.errors import InsightTraceError, as_error
from insight_trace.outcome import Failure, Fault
from insight_trace.scene.node_names import ChipTaskArgs

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
