"""A PyPTO build directory as a scene: kernel_config.py and golden.py, read without running them.

A build has `kernel_config.py` (RUNTIME_CONFIG, ORCHESTRATION, KERNELS), `orchestration/`, `kernels/`, `ptoas/` and,
where it can be run, `golden.py` with `data/`. A program over several chips has one such directory per program
below `next_levels/`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from insight_trace.chips import arch_named
from insight_trace.errors import InputError, RequestError
from insight_trace.limits import SCENE_BYTES
from insight_trace.model import Case, Orchestration, Scene
from insight_trace.reading import is_file, load_json, read_regular, readable
from insight_trace.scene.declarations import read_callable
from insight_trace.scene.evaluate import Evaluator, Unreadable

if TYPE_CHECKING:
    from insight_trace.scene.build_golden import GoldenFile

CONFIG = "kernel_config.py"
GOLDEN = "golden.py"
CASE = "Default"  # a build has one
_TARGET_ARCH = re.compile(rb'pto\.target_arch\s*=\s*"([^"]*)"')


def build_scenes(build: Path) -> tuple[Scene, ...]:
    """The build's scenes: its own first, then those of next_levels, named by their folders."""
    build = build.resolve()
    configs = [build / CONFIG] if (build / CONFIG).is_file() else []
    configs += sorted((build / "next_levels").glob(f"**/{CONFIG}"))
    if not configs:
        hint = "give a scene's Python file, or the directory that PyPTO wrote (build_output/CASE)"
        if any(build.glob("**/*args_dump.json")):
            hint = "a dump is given with --dump-dir, beside its scene"
        elif is_file(build / "scene.py"):
            hint = f"the scene is a file in it: {build / 'scene.py'}"
        raise RequestError(f"{build} is neither a scene nor a PyPTO build: it has no {CONFIG}", hint=hint)
    scenes = [_scene(config.parent, build) for config in configs]
    return tuple(sorted(scenes, key=lambda scene: not scene.cases))


def recorded_arch(source: Path, build: Path) -> str:
    """The target that compiled_meta.json beside or above a file records, or ""."""
    for directory in (source.parent, *source.parents):
        meta = directory / "compiled_meta.json"
        if meta.is_file():
            try:
                content = load_json(meta, most=SCENE_BYTES)
            except InputError:
                content = None
            if isinstance(content, dict):
                for key in ("platform", "backend_type"):
                    found = arch_named(str(content.get(key, "")))
                    if found:
                        return found
        if directory == build:
            break
    return ""


def _target(folder: Path, build: Path) -> str:
    """As compiled_meta.json says, else as the `.pto` files say; "" where neither does."""
    recorded = recorded_arch(folder / CONFIG, build)
    if recorded:
        return recorded
    for pto in sorted([*folder.glob("ptoas/*.pto"), *folder.glob("kernels/**/*.pto")]):
        with pto.open("rb") as file:
            found = _TARGET_ARCH.search(file.read(4096))
        if found:
            return arch_named(found[1].decode("ascii", "replace"))
    return ""


def _scene(folder: Path, build: Path) -> Scene:
    config = folder / CONFIG
    evaluator = _evaluator(config)
    notes: list[str] = []
    runtime = _value(evaluator, "RUNTIME_CONFIG", notes)
    declared = {
        "incores": _value(evaluator, "KERNELS", notes),
        "orchestration": _value(evaluator, "ORCHESTRATION", notes),
    }
    kernels, orchestration = read_callable(declared, config, notes)
    notes += [f"kernel {k.name}: {k.source} does not exist" for k in kernels if not is_file(k.source)]
    settings = runtime if isinstance(runtime, Mapping) else {}
    from insight_trace.scene.build_golden import read_golden

    golden = read_golden(folder / GOLDEN) if (folder / GOLDEN).is_file() else None
    if golden is None:
        notes.append(f"there is no {GOLDEN}: its kernels can be profiled, it cannot be captured")
    target = _target(folder, build)
    case = Case(CASE, (target,) if target else (), config=dict(settings))
    return Scene(
        path=folder,
        name=folder.name,
        class_name=folder.name if folder == build else str(folder.relative_to(build / "next_levels")),
        level=2,
        runtime=str(settings.get("runtime", "")),
        cases=(case,) if golden is not None else (),
        kernels=tuple(kernels),
        orchestration=_with_outputs(orchestration, golden),
        rtol=golden.rtol if golden else 1e-5,
        atol=golden.atol if golden else 1e-5,
        notes=tuple(dict.fromkeys(notes)),
    )


def _with_outputs(orchestration: Orchestration | None, golden: GoldenFile | None) -> Orchestration | None:
    """Older builds do not declare directions: what the golden lists as outputs is written."""
    if orchestration is None or golden is None or orchestration.signature:
        return orchestration
    names = (value.name for value in golden.inputs or ())
    return replace(
        orchestration, signature=tuple("INOUT" if name in golden.outputs else "IN" for name in names)
    )


def _evaluator(path: Path) -> Evaluator:
    with readable(path):
        text = read_regular(path, most=SCENE_BYTES)
    try:
        return Evaluator(ast.parse(text, filename=str(path)), path)
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise InputError(f"not Python: {error}", where=f"{path}{line}") from None
    except (RecursionError, MemoryError):
        raise InputError("nested too deep to be a configuration", where=str(path)) from None


def _value(evaluator: Evaluator, name: str, notes: list[str]) -> Any:
    expression = evaluator.index.definitions.get(name)
    if not isinstance(expression, ast.expr):
        notes.append(f"{CONFIG} declares no {name}")
        return None
    try:
        return evaluator.value(expression)
    except Unreadable as error:
        notes.append(f"{name}: {error}")
        return None
