"""Chips as data: timing parameters from soc/*.toml, each with its kind and source."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from insight_trace.dtypes import dtype_named
from insight_trace.errors import InputError, RequestError

FOLDER = Path(__file__).resolve().parent / "soc"
DEFAULT_SOC = {"a2a3": "Ascend910B1", "a5": "Ascend950PR_9599"}
DEFAULT_PRESET = "device"
KINDS = ("measured", "published", "derived", "estimate")
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
    table: Mapping[str, Any] = field(
        compare=False, repr=False
    )  # [value], [move], [vector] with kinds and sources

    def value(self, name: str) -> float:
        try:
            return float(self.table["value"][name]["value"])
        except KeyError:
            raise RequestError(f"{self.name} has no parameter {name}") from None


def soc_names() -> list[str]:
    return sorted(name for name, _ in _index().values())


def load_soc(name: str | None = None, *, target: str = "a2a3", preset: str = DEFAULT_PRESET) -> Soc:
    """The chip of that name (in any case), that of a .toml file, or the usual one of the target."""
    wanted = name or DEFAULT_SOC[target]
    if wanted.endswith(".toml"):
        return _load("", Path(wanted), preset)
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
    _check(table, path)
    name = name or table["name"]
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
        table=table,
    )


def _check(table: dict[str, Any], path: Path) -> None:
    """A chip says what it is called and how fast its clock is, and of every number what it is worth."""
    where = str(path)
    if not isinstance(table.get("name"), str) and not table.get("names"):
        raise InputError("the chip has no name", where=where)
    if not isinstance(table.get("target"), str):
        raise InputError("the chip has no target", where=where)
    if "clock.mhz" not in table.get("value", {}):
        raise InputError("the chip has no clock.mhz", where=where)
    for name, entry in entries(table):
        if not isinstance(entry, dict) or entry.get("kind") not in KINDS or not entry.get("source"):
            raise InputError(f"{name} needs a kind ({', '.join(KINDS)}) and a source", where=where)


def entries(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every number of a chip under a name of its own: scalar.issue, move.MOV_OUT_TO_UB, vector.VADD.f32."""
    yield from table.get("value", {}).items()
    for instr, entry in table.get("move", {}).items():
        yield f"move.{instr}", entry
    for instr, by_type in table.get("vector", {}).items():
        for type_name, entry in by_type.items():
            yield f"vector.{instr}.{type_name}", entry


def _merged(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the chip cannot be read: {error.strerror}", where=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the chip is not TOML: {error}", where=str(path)) from None
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
