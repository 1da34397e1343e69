"""A replay against tensors that another run of its dispatch left: the first store that is not the same.

The other run is one of a dump, or the same with its cores and pipes in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from insight_trace.arguments.buffers import payload_bytes, scatter, view_of
from insight_trace.arguments.slots import ReplayTensor
from insight_trace.debug.journal import GM
from insight_trace.debug.mismatch import Wrong, addresses_in, compared_output
from insight_trace.debug.slices import Backward
from insight_trace.debug.suspects import sampled
from insight_trace.debug.writers import Writers
from insight_trace.dump.load import load_dump
from insight_trace.errors import JobError, RequestError
from insight_trace.finding import Finding
from insight_trace.model import Dispatch, Payload, TensorArg
from insight_trace.recording.stream import distinct
from insight_trace.replay.selection import require_complete

if TYPE_CHECKING:
    from insight_trace.debug.debug_session import Session


@dataclass(frozen=True)
class Parted:
    """A slot that is not what the dump has: its first element, or the one that was stored first."""

    slot: int
    is_input: bool  # it differs before the run
    count: int  # elements that differ
    index: tuple[int, ...]
    values: tuple[Any, Any]  # here, in the dump
    row: int = -1  # the instruction that wrote it last; -1: none did


@dataclass(frozen=True)
class AgainstDump:
    """What a dump's dispatch has of a replay's tensors."""

    dispatch_id: int
    inputs: int  # slots that were compared before the run
    outputs: int  # and after it
    parted: tuple[Parted, ...]  # inputs, then outputs in the order of their stores


def against_dump(session: Session, path: Path, dispatch_id: int | None = None) -> AgainstDump:
    """Compares what went in and what came out with a dispatch of a dump; without an id with the one replayed."""
    require_complete(path)
    dispatch = _dispatch(session, path, dispatch_id)
    recorded = {arg.slot: arg for arg in dispatch.arguments if isinstance(arg, TensorArg)}
    pairs = [
        (tensor, recorded[tensor.slot])
        for tensor in session.arguments.tensors
        if tensor.slot in recorded and _alike(tensor, recorded[tensor.slot])
    ]
    run = session.run()
    befores = [(t, arg.before) for t, arg in pairs if arg.before is not None and not t.is_output]
    afters = [(t, arg.after) for t, arg in pairs if arg.after is not None and t.is_output]
    if not befores and not afters:
        raise RequestError(
            f"dispatch {dispatch.dispatch_id} of the dump has no tensor of this replay with its content",
            hint="record with payload (capture --dump-args 2), or name another dispatch: --dispatch-id K",
        )
    parted = [found for tensor, payload in befores if (found := _input(tensor, payload)) is not None]
    wrong = [compared_output(replace(t, expected=payload), run) for t, payload in afters]
    late = _stores(session, [one for one in wrong if one is not None])
    return AgainstDump(dispatch.dispatch_id, len(befores), len(afters), (*parted, *late))


def _stores(session: Session, wrong: list[Wrong]) -> list[Parted]:
    """Of each output the element that was stored first."""
    writers, end = Writers(session), len(session.instructions)
    found = []
    for one in wrong:
        rows = writers.last(0, GM, addresses_in(session, one.tensor, one.flat), end)
        first = int(np.where(rows < 0, end, rows).argmin())
        flat = int(one.flat[first])
        index = tuple(int(i) for i in np.unravel_index(flat, one.tensor.shape or (1,)))
        values = (one.got.reshape(-1)[flat], one.want.reshape(-1)[flat])
        found.append(Parted(one.tensor.slot, False, len(one.flat), index, values, int(rows[first])))
    return sorted(found, key=lambda one: (one.row < 0, one.row))


@dataclass(frozen=True)
class AgainstOrder:
    """What changes when cores and pipes take another order that the synchronisation allows."""

    outputs: int
    parted: tuple[Parted, ...]
    races: tuple[Finding, ...]  # on the way to what differs, as the checker says them


def against_order(session: Session, order: int) -> AgainstOrder:
    """The dispatch once more in that order; where an output differs, which accesses nothing orders."""
    usual, other = session.run(check=True), session.run(perturb=order)
    for run, what in ((usual, "the usual order"), (other, f"order {order}")):
        if run.failure is not None:
            raise JobError(f"in {what} the run fails: {run.failure}", hint="insight-trace check shows why")
    wrong = []
    outputs = [tensor for tensor in session.arguments.tensors if tensor.is_output]
    for tensor in outputs:
        want = np.ascontiguousarray(view_of(tensor, other.buffers[tensor.slot]))
        got = np.ascontiguousarray(view_of(tensor, usual.buffers[tensor.slot]))
        unlike = (got.view(np.uint8).reshape(got.size, -1) != want.view(np.uint8).reshape(got.size, -1)).any(
            axis=1
        )
        if unlike.any():
            wrong.append(Wrong(tensor, np.flatnonzero(unlike), np.flatnonzero(~unlike), got, want, False))
    if not wrong:
        return AgainstOrder(len(outputs), (), ())
    backward = Backward(session)
    places = [addresses_in(session, one.tensor, sampled(one.flat)) for one in wrong]
    way = backward.slice(0, GM, distinct(np.concatenate(places)), len(session.instructions))
    lines = {session.place_of(step.row)[1] for step in way.steps.values()}
    races = [finding for finding in usual.findings if finding.category.startswith("race")]
    near = [finding for finding in races if lines.intersection(finding.lines)]
    return AgainstOrder(len(outputs), tuple(_stores(session, wrong)), tuple(near or races))


def _dispatch(session: Session, path: Path, dispatch_id: int | None) -> Dispatch:
    known = session.record.get("dispatch") or {}
    wanted = known.get("dispatch_id") if dispatch_id is None else dispatch_id
    if wanted is None:
        raise RequestError(
            "this workspace is of no recorded dispatch", hint="say which one of the dump: --dispatch-id K"
        )
    return load_dump(path).dispatch(func_ids=tuple(known.get("func_ids") or ()), dispatch_id=int(wanted))


def _alike(tensor: ReplayTensor, arg: TensorArg) -> bool:
    if (tensor.shape, tensor.dtype) == (arg.shape, arg.dtype):
        return True
    raise RequestError(
        f"slot {tensor.slot} is {tensor.dtype.name} {list(tensor.shape)} here and {arg.dtype.name} {list(arg.shape)} in "
        "the dump",
        hint="name the dispatch that was replayed: --dispatch-id K",
    )


def _input(tensor: ReplayTensor, payload: Payload) -> Parted | None:
    raw = np.frombuffer(bytes(payload_bytes(payload)), np.uint8)
    if len(raw) < tensor.numel * tensor.dtype.size or not tensor.numel:
        return None
    theirs = raw[: tensor.numel * tensor.dtype.size].view(tensor.dtype.numpy).reshape(-1)
    held = np.zeros(tensor.extent * tensor.dtype.size, np.uint8)
    scatter(tensor, held)
    ours = np.ascontiguousarray(view_of(tensor, held)).reshape(-1)
    unlike = np.flatnonzero(ours.view(f"V{ours.itemsize}") != theirs.view(f"V{ours.itemsize}"))
    if not len(unlike):
        return None
    index = tuple(int(i) for i in np.unravel_index(int(unlike[0]), tensor.shape or (1,)))
    return Parted(tensor.slot, True, len(unlike), index, (ours[unlike[0]], theirs[unlike[0]]))
