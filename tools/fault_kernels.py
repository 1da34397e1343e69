"""Kernels to make wrong: dispatches of scenes, and kernels of source trees on arguments that are made up."""

from __future__ import annotations

import hashlib
import math
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

import insight_trace
import kernel_coverage
from insight_trace.arguments.buffers import scatter, view_of
from insight_trace.arguments.slots import Random, Recorded, ReplayArguments, ReplayTensor, make_tensor
from insight_trace.debug.debug_session import Session, open_session
from insight_trace.errors import InsightTraceError
from insight_trace.model import Kernel, Payload, Role
from insight_trace.replay.pipeline import make_trace, recording_of
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, run_embedded

_MOST_ROWS = 30_000
_SHAPE, _LARGE = (128, 1024), (2048, 2048)
_APART = 4096  # numbers by which slots differ
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


def of_tree(
    root: Path, folder: Path, dice: random.Random, part: tuple[int, int] = (0, 1)
) -> Iterator[Subject]:
    """Kernels of one core in a folder of sources, each once, in a random order; of so many parts of them one."""
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
        if int(identity, 16) % part[1] != part[0]:
            continue
        include = kernel_coverage.include_dirs(root, source)
        kernel = Kernel(source.stem, source, kinds[0], include_dirs=include)
        place = folder / str(number)
        place.mkdir()
        try:
            session = made_up(kernel, kernel_coverage.made_up_arguments(text), target, place, folder)
        except InsightTraceError:
            continue
        if session is not None:
            yield Subject(str(source.relative_to(root)), identity, session)


def _with_shapes(arguments: ReplayArguments, inputs: set[int], pool: Path) -> ReplayArguments:
    """Tensors of numbers hold more of them, those that are only read so many that a kernel hardly reads past them.

    What is the same everywhere hides what is wrong.
    """
    slots = []
    for item in arguments.slots:
        if isinstance(item, ReplayTensor) and isinstance(item.content, Random | Recorded):
            shape = _LARGE if item.slot in inputs else _SHAPE
            item = make_tensor(
                item.slot, item.dtype, shape, _numbers(item, shape, pool), item.tier, role=item.role,
                recorded_size=item.buffer_size, origin=item.origin,
            )  # fmt: skip
        slots.append(item)
    return replace(arguments, slots=tuple(slots))


def _numbers(item: ReplayTensor, shape: tuple[int, ...], pool: Path) -> Recorded:
    """From -1 to 1, of a file that all kernels share; each slot begins elsewhere in it."""
    size, most = item.dtype.size, math.prod(_LARGE) + 64 * _APART
    file = pool / item.dtype.name
    if not file.exists():
        values = np.random.default_rng(0).uniform(-1, 1, most).astype(np.float32)
        file.write_bytes(values.astype(item.dtype.numpy).tobytes())
    return Recorded(Payload(file, item.slot * _APART * size, math.prod(shape) * size))


def made_up(
    kernel: Kernel, arguments: ReplayArguments, target: str, place: Path, pool: Path
) -> Session | None:
    """The kernel on arguments that are made up; None: it does not run, or is too short or too long."""
    arguments = _with_shapes(arguments, set(), pool)
    run = run_embedded([kernel], arguments, EmbeddedOptions(seconds=5, target=target))
    if run.failure is not None or not 20 < len(run.instructions) < _MOST_ROWS:
        return None
    inputs = {t.slot for t in arguments.tensors if _before(t) == view_of(t, run.buffers[t.slot]).tobytes()}
    arguments = _with_shapes(arguments, inputs, pool)
    run = run_embedded([kernel], arguments, EmbeddedOptions(seconds=5, target=target))
    if run.failure is not None:
        return None
    slots: list[Any] = []
    for item in arguments.slots:
        if isinstance(item, ReplayTensor) and item.slot in inputs:
            item = replace(item, role=Role.INPUT)
        elif isinstance(item, ReplayTensor):
            file = place / f"slot{item.slot}"
            file.write_bytes(view_of(item, run.buffers[item.slot]).tobytes())
            item = replace(item, expected=Payload(file, 0, file.stat().st_size))
        slots.append(item)
    known = replace(arguments, slots=tuple(slots))
    recording = recording_of(run, make_trace(run), [kernel], known)
    session = Session(place, recording, {"target": target}, ((kernel,), known))
    session.journal()
    return session


def _before(tensor: ReplayTensor) -> bytes:
    held = np.zeros(tensor.extent * tensor.dtype.size, np.uint8)
    scatter(tensor, held)
    return view_of(tensor, held).tobytes()
