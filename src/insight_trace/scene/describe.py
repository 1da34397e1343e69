"""A scene as JSON, with what its kernels' sources read."""

from __future__ import annotations

from typing import Any

from insight_trace.errors import InsightTraceError
from insight_trace.model import Kernel, Scene
from insight_trace.scene.kernel_source import KernelShape, kernel_shape


def kernel_shapes(scene: Scene) -> list[tuple[Kernel, KernelShape | None]]:
    """Every kernel, and what its source reads; None where there is no source."""
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
            for k, shape in kernel_shapes(scene)
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
