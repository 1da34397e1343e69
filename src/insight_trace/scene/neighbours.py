"""Names that a scene takes from other modules of its checkout, found as files and read the same way."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.errors import InputError
from insight_trace.limits import MODULE_BYTES
from insight_trace.reading import read_regular

if TYPE_CHECKING:
    from insight_trace.scene.evaluate import Evaluator


class ModuleAt:
    """Another module of the checkout, named by its file."""

    def __init__(self, path: Path) -> None:
        self.path = path


class ClassOf:
    """A class of another module, with the evaluator that reads it."""

    def __init__(self, evaluator: Evaluator, node: ast.ClassDef) -> None:
        self.evaluator = evaluator
        self.node = node


def module_file(scene: Path, dotted: str) -> Path | None:
    """The file of a module as the scene imports it: beside the scene, or below a folder above it."""
    relative = Path(*dotted.split(".")).with_suffix(".py")
    for folder in scene.parents:
        if (folder / relative).is_file():
            return folder / relative
    return None


def parsed(path: Path) -> ast.Module | None:
    """The syntax tree of a neighbour, or None if it cannot be read."""
    try:
        return ast.parse(read_regular(path, most=MODULE_BYTES), filename=str(path))
    except (OSError, InputError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def with_absolute_sources(spec: Any, folder: Path) -> Any:
    """A CALLABLE whose source paths no longer depend on where its module lies."""
    if isinstance(spec, dict):
        return {
            key: str(folder / value)
            if key == "source" and isinstance(value, str)
            else with_absolute_sources(value, folder)
            for key, value in spec.items()
        }
    if isinstance(spec, list):
        return [with_absolute_sources(item, folder) for item in spec]
    return spec
