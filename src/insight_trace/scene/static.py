"""load_scene: what a scene module declares, read from its syntax tree. Nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from insight_trace.errors import InputError, RequestError
from insight_trace.limits import SCENE_BYTES
from insight_trace.model import Scene
from insight_trace.reading import read_regular
from insight_trace.scene.declarations import read_callable, read_cases
from insight_trace.scene.evaluate import Evaluator, Unreadable
from insight_trace.scene.tensors import tolerance

_DECORATOR = "scene_test"
_BASE = "SceneTestCase"


def load_scene(path: str | Path) -> Scene:
    """The scene in a module, `scene.py` or `scene.py::Class`, or in a PyPTO build, `build` or `build::part`."""
    text, _, class_name = str(path).partition("::")
    scenes = load_scenes(text)
    if not class_name:
        if len(scenes) == 1:
            return scenes[0]
        # a class without cases serves others of the module
        first = next((s for s in scenes if s.cases), scenes[0])
        others = ", ".join(s.class_name for s in scenes if s is not first)
        note = f"there are more scenes here: {others} (choose one with {Path(text).name}::NAME)"
        return _noted(first, note)
    for scene in scenes:
        if scene.class_name == class_name:
            return scene
    raise RequestError(
        f"no scene {class_name} in {text}", hint=f"it has {', '.join(s.class_name for s in scenes)}"
    )


def load_scenes(path: str | Path) -> tuple[Scene, ...]:
    """Every scene of a module, or of a PyPTO build directory, in its order."""
    path = Path(path)
    if path.is_dir():
        from insight_trace.scene.build_directory import build_scenes

        return build_scenes(path)
    try:
        text = read_regular(path, most=SCENE_BYTES)
    except FileNotFoundError:
        raise RequestError(f"{path} does not exist", hint="give the scene's Python file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    try:
        tree = ast.parse(text, filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InputError(
            f"not Python: {reason}",
            where=f"{path}{line}",
            hint=f"one kernel file is run by `insight-trace kernel {path}`"
            if path.suffix in (".cpp", ".cce", ".cc")
            else "give the module that holds the @scene_test class",
        ) from None
    except (RecursionError, MemoryError):
        raise InputError("nested too deep to be a scene", where=str(path)) from None
    evaluator = Evaluator(tree, path.resolve())
    classes = [
        node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _is_scene(node, evaluator)
    ]
    scenes = tuple(_scene(node, evaluator, path.resolve()) for node in classes)
    if not scenes:
        raise InputError(
            "no scene here: no class that derives from SceneTestCase and declares CALLABLE or CASES",
            where=str(path),
            hint="give the module that holds the @scene_test class",
        )
    return scenes


def completed(scene: Scene, scene_class: Any) -> Scene:
    """The scene with what only its executed class tells, where its text alone does not say enough."""
    if scene.cases and scene.kernels and scene.orchestration is not None:
        return scene
    notes: list[str] = []
    kernels, orchestration = read_callable(getattr(scene_class, "CALLABLE", {}), scene.path, notes)
    return replace(
        scene,
        cases=tuple(read_cases(getattr(scene_class, "CASES", ()), notes)),
        kernels=tuple(kernels),
        orchestration=orchestration,
        rtol=tolerance("RTOL", getattr(scene_class, "RTOL", None), scene.path),
        atol=tolerance("ATOL", getattr(scene_class, "ATOL", None), scene.path),
        notes=tuple(notes),
    )


def _is_scene(node: ast.ClassDef, evaluator: Evaluator) -> bool:
    decorated = any(_called_name(d) == _DECORATOR for d in node.decorator_list)
    if not decorated and not _derives(node, evaluator, set()):
        return False
    return any(evaluator.index.class_expression(node, name) for name in ("CALLABLE", "CASES"))


def _called_name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _derives(node: ast.ClassDef, evaluator: Evaluator, seen: set[str]) -> bool:
    for base in node.bases:
        name = _called_name(base)
        if name == _BASE:
            return True
        parent = evaluator.index.definitions.get(name)
        if isinstance(parent, ast.ClassDef) and name not in seen:
            seen.add(name)
            if _derives(parent, evaluator, seen):
                return True
    return False


def _scene(node: ast.ClassDef, evaluator: Evaluator, path: Path) -> Scene:
    notes: list[str] = []
    level, runtime = _decorator(node, evaluator, notes)
    declared = _attribute(node, "CALLABLE", evaluator, notes)
    cases = _attribute(node, "CASES", evaluator, notes)
    spec = declared if isinstance(declared, Mapping) else {}
    kernels, orchestration = read_callable(spec, path, notes)
    if level > 3:
        notes.append(f"a level-{level} scene: its Python orchestration is read, but cannot be run here")
    tolerances = {
        name: _attribute(node, name, evaluator, notes)
        for name in ("RTOL", "ATOL")
        if evaluator.index.class_expression(node, name)
    }
    if node.name in evaluator.index.uncertain:
        notes.append(f"line {evaluator.index.uncertain[node.name]} may change the class when it is run")
    return Scene(
        path=path,
        name=_name(path),
        class_name=node.name,
        level=level,
        runtime=runtime,
        cases=tuple(read_cases(cases, notes)),
        kernels=tuple(kernels),
        orchestration=orchestration,
        rtol=tolerance("RTOL", tolerances.get("RTOL"), path),
        atol=tolerance("ATOL", tolerances.get("ATOL"), path),
        notes=tuple(dict.fromkeys(notes)),
    )


def _name(path: Path) -> str:
    stem = path.stem.removeprefix("test_")
    return path.parent.name if stem == "scene" and path.parent.name else stem


def _decorator(node: ast.ClassDef, evaluator: Evaluator, notes: list[str]) -> tuple[int, str]:
    values: dict[str, Any] = {"level": 2, "runtime": ""}
    for decorator in node.decorator_list:
        if _called_name(decorator) == _DECORATOR and isinstance(decorator, ast.Call):
            given = [*zip(("level", "runtime"), decorator.args, strict=False)]
            given += [(k.arg, k.value) for k in decorator.keywords if k.arg]
            for name, expression in given:
                try:
                    values[name] = evaluator.value(expression)
                except Unreadable as error:
                    notes.append(f"{name}: {error}")
    level = values["level"]
    return level if isinstance(level, int) else 2, str(values["runtime"])


def _attribute(node: ast.ClassDef, name: str, evaluator: Evaluator, notes: list[str]) -> Any:
    if evaluator.index.class_expression(node, name) is None:
        notes.append(f"{name} is not declared in this module")
        return None
    for statement in node.body:
        if isinstance(statement, (ast.For, ast.While, ast.If, ast.Try, ast.With)) and any(
            isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(statement)
        ):
            notes.append(f"{name}: line {statement.lineno} changes it when the module is run")
            return None
    try:
        return evaluator.class_attribute(node, name)
    except Unreadable as error:
        notes.append(f"{name}: {error}")
        return None


def _noted(scene: Scene, note: str) -> Scene:
    return replace(scene, notes=(*scene.notes, note))
