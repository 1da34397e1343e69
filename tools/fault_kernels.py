"""Kernels to make wrong: dispatches of scenes, and kernels of source trees on arguments that are made up."""

from __future__ import annotations

import dataclasses
import hashlib
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import insight_trace
import kernel_coverage
from insight_trace.arguments.buffers import scatter, view_of
from insight_trace.arguments.content import Random
from insight_trace.arguments.slots import ReplayArguments, ReplayTensor, make_tensor
from insight_trace.debug.debug_session import Session, open_session
from insight_trace.errors import InsightTraceError
from insight_trace.model import Kernel, Payload, Role
from insight_trace.replay.recorded import recording_of
from insight_trace.replay.replaying import make_trace
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

_MOST_ROWS = 30_000
_SHAPE = (256, 1024)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Subject:
    """A kernel with its arguments, run without fault: what it leaves in them is what is expected."""

    name: str
    identity: str  # the same for the same source, whatever its comments, on the same family
    session: Session


def identity_of(text: str, *more: str) -> str:
    plain = "".join(_COMMENT.sub(" ", text).split())
    return hashlib.sha256("\n".join((plain, *more)).encode()).hexdigest()[:16]


def of_scene(scene: Path, case: str | None, folder: Path, target: str | None) -> Iterator[Subject]:
    """One dispatch of each kind that a case of a scene has."""
    options: dict[str, Any] = {"target": target, "any_target": True} if target else {}
    capture = insight_trace.capture(scene, case=case, output=folder / "dump", golden=False)
    kinds: dict[tuple[int, ...], Any] = {}
    for dispatch in insight_trace.load_dump(capture.directory).dispatches:
        kinds.setdefault(dispatch.func_ids, dispatch)
    for number, (func_ids, dispatch) in enumerate(kinds.items()):
        try:
            replay = insight_trace.replay(
                scene, case=case, func_id=func_ids, dump_dir=capture.directory, simulator="embedded",
                dispatch_id=dispatch.dispatch_id, output=folder / f"replay{number}", **options,
            )  # fmt: skip
            session = open_session(replay.workspace)
            session.journal()
        except InsightTraceError as error:
            print(f"  {scene} func {func_ids}: {error.what}", file=sys.stderr)
            continue
        text = "\n".join(kernel.source.read_text(encoding="utf-8") for kernel in session.kernels)
        name = f"{scene.parent.name}::{case or ''} {'+'.join(kernel.name for kernel in session.kernels)}"
        yield Subject(name, identity_of(text, "scene", case or "", target or ""), session)


def of_tree(root: Path, folder: Path, dice: random.Random) -> Iterator[Subject]:
    """Kernels of one core in a folder of sources, each once, in a random order."""
    sources = kernel_coverage.kernel_sources(root)
    dice.shuffle(sources)
    known: set[str] = set()
    for number, source in enumerate(sources):
        text = source.read_text(encoding="utf-8", errors="replace")
        kinds = kernel_coverage.core_types(source, text)
        target = kernel_coverage.target_of(root, source)
        identity = identity_of(text, target)
        if len(kinds) != 1 or identity in known:
            continue
        known.add(identity)
        include = kernel_coverage.include_dirs(root, source)
        kernel = Kernel(source.stem, source, kinds[0], include_dirs=include)
        place = folder / str(number)
        place.mkdir()
        try:
            session = _made_up(kernel, _richer(kernel_coverage.made_up_arguments(text)), target, place)
        except InsightTraceError:
            continue
        if session is not None:
            yield Subject(str(source.relative_to(root)), identity, session)


def _richer(arguments: ReplayArguments) -> ReplayArguments:
    """Tensors of numbers hold more of them, and each its own: what is the same everywhere hides what is wrong."""
    slots = []
    for item in arguments.slots:
        if isinstance(item, ReplayTensor) and isinstance(item.content, Random):
            item = make_tensor(
                item.slot, item.dtype, _SHAPE, Random(item.slot), item.tier, role=item.role,
                recorded_size=item.buffer_size, origin=item.origin,
            )  # fmt: skip
        slots.append(item)
    return dataclasses.replace(arguments, slots=tuple(slots))


def _made_up(kernel: Kernel, arguments: ReplayArguments, target: str, place: Path) -> Session | None:
    run = run_embedded([kernel], arguments, EmbeddedOptions(seconds=5, target=target))
    if run.failure is not None or not 20 < len(run.instructions) < _MOST_ROWS:
        return None
    slots: list[Any] = []
    for item in arguments.slots:
        if isinstance(item, ReplayTensor):
            file = place / f"slot{item.slot}"
            left = np.ascontiguousarray(view_of(item, run.buffers[item.slot])).tobytes()
            before = np.zeros(item.extent * item.dtype.size, np.uint8)
            scatter(item, before)
            if view_of(item, before).tobytes() == left:
                item = dataclasses.replace(item, role=Role.INPUT)
            else:
                file.write_bytes(left)
                item = dataclasses.replace(item, expected=Payload(file, 0, len(left)))
        slots.append(item)
    known = dataclasses.replace(arguments, slots=tuple(slots))
    recording = recording_of(run, make_trace(run), [kernel], known)
    session = Session(place, recording, {"target": target}, ((kernel,), known))
    session.journal()
    return session
