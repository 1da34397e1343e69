"""The chips that a workspace can be built for."""

from __future__ import annotations

import importlib.resources
import tomllib
from dataclasses import dataclass

from insight_trace.errors import RequestError


@dataclass(frozen=True, slots=True)
class Target:
    """What the compiler and the simulator need to be told about a chip."""

    name: str
    aicore_arch: str
    cce_aicore: int
    npu_arch_macro: str
    soc_exact: tuple[str, ...]  # simulator folders that serve it, best first
    soc_prefixes: tuple[str, ...]  # how the others of its family begin


def target_named(name: str) -> Target:
    """The target of that name; a simulated platform (`a2a3sim`) is its chip's."""
    text = importlib.resources.files(__package__).joinpath("targets.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    key = name.removesuffix("sim")
    if key not in table:
        raise RequestError(f"there is no target '{name}'", hint=f"targets: {', '.join(table)}")
    entry = table[key]
    return Target(
        key,
        entry["aicore_arch"],
        entry["cce_aicore"],
        entry["npu_arch_macro"],
        tuple(entry["soc_exact"]),
        tuple(entry["soc_prefixes"]),
    )
