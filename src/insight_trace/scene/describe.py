"""A scene as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from insight_trace.errors import InsightTraceError
from insight_trace.model import Kernel, Scene
from insight_trace.scene.kernel_source import KernelShape, kernel_shape


def _shapes(scene: Scene) -> list[tuple[Kernel, KernelShape | None]]:
    found: list[tuple[Kernel, KernelShape | None]] = []
    for kernel in scene.kernels:
        try:
            found.append((kernel, kernel_shape(kernel)))
        except InsightTraceError:
            found.append((kernel, None))
    return found


def scene_json(scene: Scene) -> dict[str, Any]:
    """The scene as plain JSON data, with what its kernels' sources read."""
    orchestration = scene.orchestration
    return {
        "path": str(scene.path),
        "name": scene.name,
        "class": scene.class_name,
        "level": scene.level,
        "runtime": scene.runtime,
        "rtol": scene.rtol,
        "atol": scene.atol,
        "cases": [
            {
                "name": c.name,
                "platforms": list(c.platforms),
                "params": c.params,
                "config": c.config,
                "manual": c.manual if isinstance(c.manual, bool) else list(c.manual),
                "skip_golden": c.skip_golden,
            }
            for c in scene.cases
        ],
        "kernels": [
            {
                "func_id": k.func_id,
                "name": k.name,
                "source": str(k.source),
                "source_exists": shape is not None,
                "core_type": k.core_type.value,
                "signature": None if k.signature is None else list(k.signature),
                "extra_include_dirs": list(k.include_dirs),
                "slots_read": None if shape is None else list(shape.slots),
                "reads_local_context": None if shape is None else shape.reads_local_context,
                "reads_global_context": None if shape is None else shape.reads_global_context,
            }
            for k, shape in _shapes(scene)
        ],
        "orchestration": None
        if orchestration is None
        else {
            "source": None if orchestration.source is None else str(orchestration.source),
            "function_name": orchestration.function_name,
            "signature": list(orchestration.signature),
            "config_name": orchestration.config_name,
        },
        "notes": list(scene.notes),
    }


def scene_lines(scene: Scene) -> Iterator[str]:
    """The scene as aligned lines."""
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
    for kernel, shape in _shapes(scene):
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
    slots = [*shape.slots]
    slots += [48] if shape.reads_local_context else []
    slots += [49] if shape.reads_global_context else []
    runs: list[list[int]] = []
    for slot in slots:
        if runs and slot == runs[-1][1] + 1:
            runs[-1][1] = slot
        else:
            runs.append([slot, slot])
    text = ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
    return text if shape.complete else f"{text},?"
