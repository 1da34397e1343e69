"""What CALLABLE, CASES and a build's KERNELS declare, once their values are known."""

from __future__ import annotations

import os.path
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from insight_trace.model import Case, CoreType, Kernel, Orchestration
from insight_trace.scene.evaluate import Unreadable


def read_callable(
    spec: Mapping[str, Any], path: Path, notes: list[str]
) -> tuple[list[Kernel], Orchestration | None]:
    """The kernels and the orchestration of a CALLABLE; `notes` gets what cannot be told."""
    kernels = _kernels(_list(spec.get("incores"), "incores", notes), path, notes)
    orchestration = _orchestration(spec.get("orchestration"), path, notes)
    for entry in _list(spec.get("callables"), "callables", notes):
        if isinstance(entry, Mapping):
            inner, inner_orchestration = read_callable(entry, path, notes)
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
    return Path(source) if Path(source).is_absolute() else Path(os.path.normpath(path.parent / source))


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


def read_cases(value: Any, notes: list[str]) -> list[Case]:
    """The cases of a CASES list; `notes` gets what cannot be told."""
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
