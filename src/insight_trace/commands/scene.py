"""Cases, kernels, func ids and core types of a scene. Reads the module, never runs it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from insight_trace.commands import show

if TYPE_CHECKING:
    from insight_trace.model import Scene
    from insight_trace.scene.kernel_source import KernelShape


OPTIONS = """
scene SCENE  text  scene module; SCENE.py::Class where it holds several
--json       on    as JSON
"""


def run(options: argparse.Namespace) -> int:
    from insight_trace import load_scene
    from insight_trace.scene.describe import scene_json

    scene = load_scene(options.scene)
    show(options, lambda: scene_json(scene), lambda: _lines(scene))
    return 0


def _lines(scene: Scene) -> Iterator[str]:
    """The scene as aligned lines."""
    from insight_trace.scene.describe import kernel_shapes

    yield f"scene      {scene.name} · {scene.class_name} · level {scene.level} · {scene.runtime}"
    yield f"tolerance  rtol {scene.rtol:g} · atol {scene.atol:g}"
    if scene.orchestration is not None:
        place = scene.orchestration.source or "in this module"
        yield f"submits    {scene.orchestration.function_name} · {place}"
    yield ""
    width = max([4, *(len(c.name) for c in scene.cases)])
    yield f"{'case':<{width}}  platforms         manual  parameters"
    for case in scene.cases:
        shown = ("yes" if case.manual else "") if isinstance(case.manual, bool) else ",".join(case.manual)
        text = " ".join(f"{k}={v}" for k, v in case.params.items())
        yield f"{case.name:<{width}}  {','.join(case.platforms):<16}  {shown:<6}  {text}".rstrip()
    yield ""
    width = max([6, *(len(k.name) for k in scene.kernels)])
    folder = scene.path if scene.path.is_dir() else scene.path.parent
    yield f"func  {'kernel':<{width}}  core  {'reads':<10}  signature · source"
    for kernel, shape in kernel_shapes(scene):
        func = "" if kernel.func_id is None else kernel.func_id
        signature = "not declared" if kernel.signature is None else ",".join(kernel.signature)
        source = kernel.source
        if source.is_relative_to(folder):
            source = source.relative_to(folder)
        reads = "no source" if shape is None else _ranges(shape)
        yield f"{func:>4}  {kernel.name:<{width}}  {kernel.core_type:<4}  {reads:<10}  {signature} · {source}"
    for note in scene.notes:
        yield f"note       {note}"


def _ranges(shape: KernelShape) -> str:
    from insight_trace.model import GLOBAL_CONTEXT_SLOT, LOCAL_CONTEXT_SLOT

    slots = [*shape.slots]
    slots += [LOCAL_CONTEXT_SLOT] if shape.reads_local_context else []
    slots += [GLOBAL_CONTEXT_SLOT] if shape.reads_global_context else []
    runs: list[list[int]] = []
    for slot in slots:
        if runs and slot == runs[-1][1] + 1:
            runs[-1][1] = slot
        else:
            runs.append([slot, slot])
    text = ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
    return text if shape.complete else f"{text},?"
