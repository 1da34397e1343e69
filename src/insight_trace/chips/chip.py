"""One chip under one preset, by its name or from a file of the user's own."""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from msgspec import Struct

from insight_trace.chips.chip_files import (
    FOLDER,
    MOVE,
    TARGETS,
    overlaid,
    parameter_names,
    read_chip_file,
    type_code,
)
from insight_trace.errors import InputError, RequestError

DEFAULT_PRESET = "device"
_MEMORIES = {"UB": "ub", "L1": "l1", "L0A": "l0a", "L0B": "l0b", "L0C": "l0c"}


class LogFamily(enum.Enum):
    """Families of chips by what their core model writes."""

    A1 = "910A"
    A2 = "910B"
    A3 = "910_93"
    INFER = "310P"
    EDGE = "310B"
    A5 = "950"

    @property
    def a2_or_a3(self) -> bool:
        return self in (LogFamily.A2, LogFamily.A3)


class Family(Struct, frozen=True):
    """Chips of one core design: what compilers and vendor tools call it. Empty where it is not simulated."""

    logs: LogFamily | None  # whose core model logs its simulator writes
    target: str = ""  # a2a3 or a5
    default_chip: str = ""
    aicore_arch: str = ""
    cce_aicore: int = 0
    npu_arch: int = 0
    macros: tuple[str, ...] = ()
    ptoas_arch: str = ""
    simulators: tuple[str, ...] = ()  # folders of the vendor's simulator that serve it, best first
    vendor_names: tuple[str, ...] = ()  # how names of its chips begin
    build_words: tuple[str, ...] = ()  # how builds call it

    @property
    def defines(self) -> tuple[str, ...]:
        """What the device compiler defines."""
        numbers = (f"__CCE_AICORE__={self.cce_aicore}", f"__NPU_ARCH__={self.npu_arch}")
        return tuple(f"-D{macro}" for macro in (*numbers, *self.macros))

    def is_called(self, soc_version: str) -> bool:
        """Whether a chip of that name is of this family, by how it begins."""
        name = soc_version.casefold()
        return any(name.startswith(known.casefold()) for known in (*self.vendor_names, *self.simulators))


class Roofs(Struct, frozen=True):
    """The most that one core can do."""

    chip: str  # whose ceilings these are
    exact: bool  # False: the chip has none of its own, `chip` stands in
    bandwidth: Mapping[str, float]  # path -> GB/s
    cube_flop_per_cycle: Mapping[str, int]  # element type as instructions print it -> FLOP
    vector_bytes_per_cycle: int
    memories: Mapping[str, int]  # bytes


class Chip(Struct, frozen=True, eq=False, dict=True):
    """One chip under one preset."""

    name: str
    family: Family
    preset: str
    mhz: float
    # [value], [move], [vector], [roof] with kinds and sources
    table: Mapping[str, Any]

    @property
    def target(self) -> str:
        return self.family.target

    @functools.cached_property
    def job_lines(self) -> tuple[str, ...]:
        """Every parameter as the runner reads it."""
        return tuple(_lines(self.table))

    def value(self, name: str) -> float:
        try:
            return float(self.table["value"][name]["value"])
        except KeyError:
            raise RequestError(f"{self.name} has no parameter {name}") from None

    def schedule(self, name: str) -> float:
        """What the runtime's work takes on this chip, in nanoseconds, or how many threads do it."""
        try:
            return float(self.table["schedule"][name]["value"])
        except KeyError:
            raise RequestError(
                f"{self.name} says nothing of schedule.{name}",
                hint="[schedule] of its file holds that; a2a3.toml has an example",
            ) from None


def chip_names() -> list[str]:
    """Every chip that is simulated."""
    return sorted(name for name, path in _index().names.values() if _own(path).get("simulated", True))


def load_chip(name: str | None = None, *, target: str = "a2a3", preset: str = DEFAULT_PRESET) -> Chip:
    """The chip of that name (in any case), that of a .toml file, or the usual one of the target, to simulate."""
    wanted = name or family_named(target).default_chip
    if wanted.endswith(".toml"):
        return _load("", Path(wanted), preset)
    chip = find_chip(wanted, preset)
    if chip is None:
        raise RequestError(f"there is no chip '{wanted}'", hint=f"known: {', '.join(chip_names())}")
    if not chip.table["simulated"]:
        raise RequestError(f"{chip.name} is not simulated", hint=f"these are: {', '.join(chip_names())}")
    return chip


def find_chip(name: str, preset: str = DEFAULT_PRESET) -> Chip | None:
    """The chip of a name, with or without the `Ascend` in front, simulated or not; None where it is unknown."""
    wanted = name.casefold()
    wanted = wanted if wanted.startswith("ascend") else f"ascend{wanted}"
    own = FOLDER / f"{wanted}.toml"
    if own.is_file():  # nearly every chip has a file of its name, and the others need not be read
        for spelled in _own(own).get("names", []):
            if spelled.casefold() == wanted:
                return _load(spelled, own, preset)
    if found := _index().names.get(wanted):
        return _load(*found, preset)
    for pattern, path in _index().patterns:
        if fnmatch(wanted, pattern):
            return _load(name if name.startswith("Ascend") else f"Ascend{name}", path, preset)
    return None


def chip_file(name: str) -> Path | None:
    """The file of a chip that is known by its name."""
    found = _index().names.get(name.casefold())
    return found[1] if found else None


def family_named(target: str) -> Family:
    """a2a3 or a5; a simulated platform (`a2a3sim`) is its chip's."""
    name = target.removesuffix("sim")
    if name not in TARGETS:
        raise RequestError(f"there is no target '{target}'", hint=f"targets: {', '.join(TARGETS)}")
    return _family(_own(FOLDER / f"{name}.toml"))


def arch_named(text: str) -> str:
    """`a2a3` or `a5` from what a build calls its target; "" when the words say neither."""
    lowered = text.casefold()
    families = map(family_named, reversed(TARGETS))  # a5 first: its words hold none of a2a3's
    return next((f.target for f in families if any(word in lowered for word in f.build_words)), "")


def target_of_chip(soc_version: str) -> str:
    """The target of a chip by the beginning of its name, or of a chip file; "" for others.

    By its beginning, so that chips only the vendor's simulator knows are told apart as well.
    """
    if not soc_version:
        return ""
    if soc_version.endswith(".toml"):
        return load_chip(soc_version).target
    return next((f.target for f in map(family_named, TARGETS) if f.is_called(soc_version)), "")


@functools.cache
def known_clocks() -> tuple[float, ...]:
    """MHz of every chip, fastest first."""
    found = {_own(path)["value"]["clock.mhz"]["value"] for path in FOLDER.glob("ascend*.toml")}
    return tuple(sorted(map(float, found), reverse=True))


def roofs_of(soc_version: str) -> Roofs:
    """The ceilings of a chip's core; those of the usual chip, not exact, where it has none."""
    chip = find_chip(soc_version) if soc_version else None
    exact = chip is not None and "bandwidth" in chip.table["roof"]
    if chip is None or not exact:
        chip = load_chip()
    roof = chip.table["roof"]
    bandwidth = roof["bandwidth"]
    return Roofs(
        chip=bandwidth["of"],
        exact=exact and bandwidth["kind"] != "estimate",
        bandwidth=_numbers(bandwidth),
        cube_flop_per_cycle=_numbers(roof["cube_flop_per_cycle"]),
        vector_bytes_per_cycle=roof["vector_bytes_per_cycle"]["value"],
        memories={name: int(chip.value(f"memory.{key}")) for name, key in _MEMORIES.items()},
    )


class _Index(Struct, frozen=True):
    names: dict[str, tuple[str, Path]]  # folded name -> name, file
    patterns: list[tuple[str, Path]]  # the longest first


@functools.cache
def _index() -> _Index:
    """Every chip by its name; chips that differ in nothing but their name share a file."""
    index = _Index({}, [])
    for path in sorted(FOLDER.glob("ascend*.toml")):
        table = _own(path)
        index.names.update({name.casefold(): (name, path) for name in table.get("names", [])})
        index.patterns.extend((pattern.casefold(), path) for pattern in table.get("patterns", []))
    index.patterns.sort(key=lambda item: -len(item[0]))
    return index


@functools.cache
def _own(path: Path) -> dict[str, Any]:
    return read_chip_file(path)


def _based(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """A table over its base, and that over its own. A base is a chip's name or a file of ours."""
    base = table.get("base")
    if base is None:
        return dict(table)
    shipped = FOLDER / f"{base}.toml"
    if not shipped.is_file():
        named = _index().names.get(base.casefold())
        if named is None:
            known = ", ".join([*TARGETS, *chip_names()])
            raise InputError(
                f"there is no chip '{base}' to base it on", where=str(path), hint=f"known: {known}"
            )
        shipped = named[1]
    return overlaid(_based(shipped, _own(shipped)), table)


def _load(name: str, path: Path, preset: str) -> Chip:
    if path.parent == FOLDER:
        return _loaded(name, path, preset)
    return _made(name, path, read_chip_file(path), preset)  # the user may be changing it


@functools.lru_cache(maxsize=16)
def _loaded(name: str, path: Path, preset: str) -> Chip:
    return _made(name, path, _own(path), preset)


def _made(name: str, path: Path, own: Mapping[str, Any], preset: str) -> Chip:
    table = _based(path, own)
    name = name or own.get("name") or next(iter(own.get("names", [])), "")
    if not name:
        raise InputError("the chip has no name", where=str(path), hint='for example: name = "Ascend910B9"')
    table.setdefault("simulated", True)
    if path.parent != FOLDER:
        table["simulated"] = True
    override = table.pop("preset", {})
    if preset != DEFAULT_PRESET and preset not in override and table["simulated"]:
        raise RequestError(
            f"there is no preset '{preset}' for {name}",
            hint=f"known: {', '.join([DEFAULT_PRESET, *override])}",
        )
    table = overlaid({"value": {}, "roof": {}, **table}, override.get(preset, {}))
    family = _family(table)
    wanted = parameter_names() if table["simulated"] else ("clock.mhz",)
    missing = [key for key in wanted if key not in table["value"]]
    if missing:
        raise InputError(
            f"the chip has no {', '.join(missing)}",
            where=str(path),
            hint='base = "a2a3" (or a5, or a chip) gives what the file does not say',
        )
    if table["simulated"] and not family.target:
        raise InputError("the chip has no target", where=str(path), hint='base = "a2a3" or "a5" gives one')
    return Chip(name, family, preset, float(table["value"]["clock.mhz"]["value"]), table)


def _family(table: Mapping[str, Any]) -> Family:
    known = table.get("family", {})
    fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in known.items()}
    logs = LogFamily(fields.pop("logs")) if "logs" in fields else None
    return Family(logs, **fields)


def _numbers(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in ("of", "kind", "source")}


def _milli(value: float) -> int:
    return round(value * 1000)


def _lines(table: Mapping[str, Any]) -> list[str]:
    lines = [f"value\t{name}\t{_milli(entry['value'])}" for name, entry in table["value"].items()]
    for instr, by_type in table.get("vector", {}).items():
        for type_name, entry in by_type.items():
            code = "*" if type_name == "any" else str(type_code(type_name))
            numbers = [_milli(entry.get(key, 0)) for key in ("head", "slope", "gap")]
            if nested := entry.get("nested"):
                numbers += [_milli(nested[key]) for key in ("slope", "row", "head")]
            lines.append("\t".join(["vector", instr, code, *map(str, numbers)]))
    for instr, entry in table.get("move", {}).items():
        numbers = [_milli(entry.get(key, 0)) for key in MOVE]
        curve = [str(n) for size, cycles in entry.get("curve", []) for n in (size, _milli(cycles))]
        lines.append("\t".join(["move", instr, *map(str, numbers), *curve]))
    return lines
