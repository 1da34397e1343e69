"""Chips as data: timing parameters from soc/*.toml, each with its kind and source."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from insight_trace.dtypes import dtype_named
from insight_trace.errors import RequestError

FOLDER = Path(__file__).resolve().parent / "soc"
DEFAULT_SOC = {"a2a3": "Ascend910B1", "a5": "Ascend950PR_9599"}
DEFAULT_PRESET = "device"
# abi.hpp Type: those that no tensor descriptor names
_ENGINE_TYPES = {"f8e5m2": "15", "hif8": "16", "f4e1m2": "17", "i4": "18"}


@dataclass(frozen=True)
class Soc:
    """One chip under one preset."""

    name: str
    target: str
    preset: str
    mhz: float
    job_lines: tuple[str, ...]  # as the runner reads them


def soc_names() -> list[str]:
    return sorted(name for name, _ in _index().values())


def load_soc(name: str | None = None, *, target: str = "a2a3", preset: str = DEFAULT_PRESET) -> Soc:
    """The chip of that name (in any case), or the usual one of the target."""
    wanted = name or DEFAULT_SOC[target]
    found = _index().get(wanted.casefold())
    if found is None:
        raise RequestError(f"there is no chip '{wanted}'", hint=f"known: {', '.join(soc_names())}")
    return _load(*found, preset)


@functools.lru_cache(maxsize=1)
def _index() -> dict[str, tuple[str, Path]]:
    """Every chip by its name; chips that differ in nothing but their name share a file."""
    index = {}
    for path in sorted(FOLDER.glob("ascend*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        for name in table.get("names", [table.get("name", path.stem)]):
            index[name.casefold()] = (name, path)
    return index


@functools.lru_cache(maxsize=8)
def _load(name: str, path: Path, preset: str) -> Soc:
    table = _merged(path)
    override = table.pop("preset", {})
    if preset != DEFAULT_PRESET and preset not in override:
        raise RequestError(
            f"there is no preset '{preset}' for {name}",
            hint=f"known: {', '.join([DEFAULT_PRESET, *override])}",
        )
    table = _merge(table, override.get(preset, {}))
    return Soc(
        name=name,
        target=table["target"],
        preset=preset,
        mhz=float(table["value"]["clock.mhz"]["value"]),
        job_lines=tuple(_lines(table)),
    )


def _merged(path: Path) -> dict[str, Any]:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    base = table.pop("base", None)
    return _merge(_merged(FOLDER / f"{base}.toml"), table) if base else table


def _merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both and "kind" not in value else value
    return merged


def _milli(value: float) -> int:
    return round(value * 1000)


def _lines(table: dict[str, Any]) -> list[str]:
    lines = [f"value\t{name}\t{_milli(entry['value'])}" for name, entry in table.get("value", {}).items()]
    for instr, by_type in table.get("vector", {}).items():
        for type_name, entry in by_type.items():
            dtype = dtype_named(type_name)
            code = "*" if type_name == "any" else str(dtype.code) if dtype else _ENGINE_TYPES.get(type_name)
            if code is None:
                raise RequestError(f"vector.{instr}: there is no element type '{type_name}'")
            numbers = [_milli(entry.get(key, 0)) for key in ("head", "slope", "gap")]
            if nested := entry.get("nested"):
                numbers += [_milli(nested[key]) for key in ("slope", "row", "head")]
            lines.append("\t".join(["vector", instr, code, *map(str, numbers)]))
    for instr, entry in table.get("move", {}).items():
        numbers = [
            _milli(entry.get(key, 0))
            for key in ("latency", "rate", "per_burst", "interval", "floor", "burst_rate")
        ]
        curve = [str(n) for size, cycles in entry.get("curve", []) for n in (size, _milli(cycles))]
        lines.append("\t".join(["move", instr, *map(str, numbers), *curve]))
    return lines
