"""load_scene: what a scene module declares, read from its syntax tree. Nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from insight_trace.errors import InputError, RequestError
from insight_trace.model import Case, CoreType, Kernel, Orchestration, Scene
from insight_trace.scene.evaluate import Evaluator, Unreadable

_DECORATOR = "scene_test"
_BASE = "SceneTestCase"


def load_scene(path: str | Path) -> Scene:
    """The scene in a module: `scene.py`, or `scene.py::Class` where the module holds several."""
    text, _, class_name = str(path).partition("::")
    scenes = load_scenes(text)
    if not class_name:
        if len(scenes) == 1:
            return scenes[0]
        # a class without cases serves others of the module
        first = next((s for s in scenes if s.cases), scenes[0])
        others = ", ".join(s.class_name for s in scenes if s is not first)
        note = f"the module holds more scenes: {others} (choose one with {Path(text).name}::CLASS)"
        return _noted(first, note)
    for scene in scenes:
        if scene.class_name == class_name:
            return scene
    raise RequestError(
        f"no scene class {class_name} in {text}", hint=f"it has {', '.join(s.class_name for s in scenes)}"
    )


def load_scenes(path: str | Path) -> tuple[Scene, ...]:
    """Every scene of a module, in its order."""
    path = Path(path)
    if path.is_dir():
        raise RequestError(f"{path} is a directory", hint="give the scene's Python file")
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise RequestError(f"{path} does not exist", hint="give the scene's Python file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    try:
        tree = ast.parse(text, filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InputError(f"not Python: {reason}", where=f"{path}{line}") from None
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
    kernels, orchestration = _callable(getattr(scene_class, "CALLABLE", {}), scene.path, notes)
    return replace(
        scene,
        cases=tuple(_cases(getattr(scene_class, "CASES", ()), notes)),
        kernels=tuple(kernels),
        orchestration=orchestration,
        rtol=_float(getattr(scene_class, "RTOL", None)),
        atol=_float(getattr(scene_class, "ATOL", None)),
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
    kernels, orchestration = _callable(spec, path, notes)
    if level >= 3:
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
        cases=tuple(_cases(cases, notes)),
        kernels=tuple(kernels),
        orchestration=orchestration,
        rtol=_float(tolerances.get("RTOL")),
        atol=_float(tolerances.get("ATOL")),
        notes=tuple(dict.fromkeys(notes)),
    )


def _name(path: Path) -> str:
    stem = path.stem.removeprefix("test_")
    return path.parent.name if stem == "scene" and path.parent.name else stem


def _float(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 1e-5


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


def _callable(
    spec: Mapping[str, Any], path: Path, notes: list[str]
) -> tuple[list[Kernel], Orchestration | None]:
    kernels = _kernels(_list(spec.get("incores"), "incores", notes), path, notes)
    orchestration = _orchestration(spec.get("orchestration"), path, notes)
    for entry in _list(spec.get("callables"), "callables", notes):
        if isinstance(entry, Mapping):
            inner, inner_orchestration = _callable(entry, path, notes)
            kernels += inner
            orchestration = orchestration or inner_orchestration
    return kernels, orchestration


def _list(value: Any, name: str, notes: list[str]) -> Sequence[Any]:
    if isinstance(value, Unreadable):
        notes.append(f"{name}: {value}")
        return ()
    if value is not None and not isinstance(value, (list, tuple)):
        notes.append(f"{name} is not a list")
        return ()
    return value or ()


def _kernels(entries: Sequence[Any], path: Path, notes: list[str]) -> list[Kernel]:
    kernels = []
    for number, entry in enumerate(entries):
        label = f"incores[{number}]"
        if not isinstance(entry, Mapping):
            notes.append(f"{label} is not a dictionary")
            continue
        source = _text(entry, "source", label, notes)
        core_type = _text(entry, "core_type", label, notes).casefold()
        if not source or core_type not in CoreType.__members__.values():
            notes.append(f"{label}: source and core_type (aic or aiv) are needed")
            continue
        func_id = entry.get("func_id")
        directories = entry.get("extra_include_dirs")
        kernels.append(
            Kernel(
                name=_text(entry, "name", label, notes) or Path(source).stem,
                source=_beside(path, source),
                core_type=CoreType(core_type),
                func_id=func_id if isinstance(func_id, int) else None,
                signature=_signature(entry.get("signature"), f"{label}.signature", notes),
                include_dirs=tuple(map(str, directories)) if isinstance(directories, (list, tuple)) else (),
            )
        )
    return kernels


def _text(entry: Mapping[str, Any], key: str, label: str, notes: list[str]) -> str:
    value = entry.get(key)
    if isinstance(value, Unreadable):
        notes.append(f"{label}.{key}: {value}")
        return ""
    return "" if value is None else str(value)


def _beside(path: Path, source: str) -> Path:
    return Path(source) if Path(source).is_absolute() else Path(_normal(path.parent / source))


def _normal(path: Path) -> str:
    import os.path

    return os.path.normpath(path)


def _signature(value: Any, label: str, notes: list[str]) -> tuple[str, ...] | None:
    if isinstance(value, Unreadable):
        notes.append(f"{label}: {value}")
        return None
    if not isinstance(value, (list, tuple)):
        return None
    return tuple(getattr(direction, "name", None) or str(direction) for direction in value)


def _orchestration(value: Any, path: Path, notes: list[str]) -> Orchestration | None:
    if isinstance(value, Unreadable):
        # Level 3 and above: a function of the module itself.
        return Orchestration(source=None, function_name=_function_name(value))
    if not isinstance(value, Mapping):
        return None
    source = _text(value, "source", "orchestration", notes)
    config = value.get("config_name")
    return Orchestration(
        source=_beside(path, source) if source else None,
        function_name=_text(value, "function_name", "orchestration", notes),
        signature=_signature(value.get("signature"), "orchestration.signature", notes) or (),
        config_name=config if isinstance(config, str) else None,
    )


def _function_name(error: Unreadable) -> str:
    quoted = str(error).split("`")
    return quoted[1] if len(quoted) > 2 else ""


def _cases(value: Any, notes: list[str]) -> list[Case]:
    cases = []
    for number, entry in enumerate(_list(value, "CASES", notes)):
        if not isinstance(entry, Mapping):
            notes.append(f"CASES[{number}] is not a dictionary")
            continue
        label = f"CASES[{number}]"
        manual = entry.get("manual", False)
        platforms = entry.get("platforms")
        cases.append(
            Case(
                name=_text(entry, "name", label, notes) or str(number),
                platforms=tuple(map(str, platforms)) if isinstance(platforms, (list, tuple, set)) else (),
                params=_mapping(entry.get("params"), f"{label}.params", notes),
                config=_mapping(entry.get("config"), f"{label}.config", notes),
                manual=_manual(manual),
                skip_golden=entry.get("skip_golden") is True,
            )
        )
    return cases


def _manual(value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple, set, frozenset)):
        return tuple(sorted(map(str, value)))
    return bool(value) and not isinstance(value, Unreadable)


def _mapping(value: Any, label: str, notes: list[str]) -> dict[str, Any]:
    if isinstance(value, Unreadable):
        notes.append(f"{label}: {value}")
        return {}
    if not isinstance(value, Mapping):
        return {}
    result = {}
    for key, item in value.items():
        if isinstance(item, Unreadable):
            notes.append(f"{label}.{key}: {item}")
        else:
            result[str(key)] = item
    return result


def _noted(scene: Scene, note: str) -> Scene:
    return replace(scene, notes=(*scene.notes, note))
