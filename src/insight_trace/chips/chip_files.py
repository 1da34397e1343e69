"""Chip files: read, laid over their base, and checked. A key that nobody knows is an error with its line."""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from insight_trace.dtypes import TILE_ONLY_TYPES, dtype_named
from insight_trace.errors import InputError
from insight_trace.limits import SCENE_BYTES, cut
from insight_trace.reading import regular_text

FOLDER = Path(__file__).resolve().parent
TARGETS = ("a2a3", "a5")  # the families that are simulated; each has a file of its own
KINDS = ("measured", "published", "derived", "estimate")
_ENGINE = FOLDER.parent / "simulate" / "embedded" / "engine"

_TOP = (
    "names",
    "name",
    "patterns",
    "base",
    "simulated",
    "family",
    "value",
    "move",
    "vector",
    "roof",
    "schedule",
    "preset",
)
_FAMILY = {
    "target": str, "default_chip": str, "logs": str, "aicore_arch": str, "cce_aicore": int, "npu_arch": int,
    "macros": list, "ptoas_arch": str, "simulators": list, "vendor_names": list, "build_words": list,
}  # fmt: skip
_LOGS = ("910A", "910B", "910_93", "310P", "310B", "950")  # chip.LogFamily
_PRESET = ("value", "move", "vector")
_WORTH = ("kind", "source")
# in the order of a line of a job (engine/text.cpp)
MOVE = ("latency", "rate", "per_burst", "missed_burst", "interval", "floor", "burst_rate", "in_flight")
_VECTOR = ("head", "slope", "gap")
_NESTED = ("slope", "row", "head")
_ROOF = ("bandwidth", "cube_flop_per_cycle", "vector_bytes_per_cycle")
# [schedule]: threads that schedule, and what the runtime's work on them takes, in nanoseconds (run/schedule.py)
SCHEDULE = (
    "threads", "submit", "dispatch", "write", "start", "first", "switch", "doorbell", "seen", "read", "complete",
    "ready", "argument",
)  # fmt: skip
_MOST_POINTS = 12  # engine/parameters.hpp, MoveCost::curve


@functools.cache
def parameter_names() -> tuple[str, ...]:
    """Every [value] of a chip, from the list that the engine is compiled from."""
    text = (_ENGINE / "parameters.def").read_text(encoding="utf-8")
    return tuple(f"{group}.{name}" for group, name in re.findall(r"^PARAMETER\((\w+), (\w+)\)", text, re.M))


@functools.cache
def instruction_pipes() -> dict[str, tuple[int, str]]:
    """Instructions by name: number and pipe, from the table that the engine is compiled from."""
    table = (_ENGINE / "instructions.def").read_text(encoding="utf-8")
    rows = re.findall(r"^INSTR\((\w+),\s*(\w+),", table, re.M)
    return {name: (number, pipe) for number, (name, pipe) in enumerate(rows)}


def type_code(name: str) -> int | None:
    """The engine's number of an element type that a chip file names."""
    dtype = dtype_named(name)
    return dtype.code if dtype else TILE_ONLY_TYPES.get(name)


def read_chip_file(path: Path) -> dict[str, Any]:
    """The file's own table, checked; `base` is still a name."""
    try:
        text = regular_text(path, most=SCENE_BYTES)
        table = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"the chip cannot be read: {error.strerror}", where=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"the chip is not TOML: {cut(str(error))}", where=str(path)) from None
    _Check(path, text).whole(table)
    return table


def overlaid(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `under`, table by table.

    An entry with a kind replaces the whole entry below it, and an instruction's `any` what was said of its types.
    """
    merged = dict(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        whole = not both or "kind" in value or "any" in value
        merged[key] = value if whole else overlaid(merged[key], value)
    return merged


def entries(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every number of a chip under a name of its own: scalar.issue, move.MOV_OUT_TO_UB, vector.VADD.f32."""
    yield from table.get("value", {}).items()
    for instr, entry in table.get("move", {}).items():
        yield f"move.{instr}", entry
    for instr, by_type in table.get("vector", {}).items():
        for type_name, entry in by_type.items():
            yield f"vector.{instr}.{type_name}", entry


class _Check:
    """Checks of one file; a complaint names the line that holds the key."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text

    def whole(self, table: Mapping[str, Any]) -> None:
        self.known((), table, _TOP)
        for key in ("name", "base"):
            if key in table and not isinstance(table[key], str):
                self.wrong((key,), "is a text")
        for key in ("names", "patterns"):
            if key in table and not _is_texts(table[key]):
                self.wrong((key,), "is a list of texts")
        if not isinstance(table.get("simulated", False), bool):
            self.wrong(("simulated",), "is true or false")
        family = self.table((), table, "family")
        self.known(("family",), family, _FAMILY)
        for key, value in family.items():
            if not isinstance(value, _FAMILY[key]) or (isinstance(value, list) and not _is_texts(value)):
                self.wrong(("family", key), f"is a {_FAMILY[key].__name__}")
        if family.get("logs", _LOGS[0]) not in _LOGS:
            self.wrong(("family", "logs"), f"is one of {', '.join(_LOGS)}")
        self.numbers((), table)
        self.roofs(self.table((), table, "roof"))
        runtime = self.table((), table, "schedule")
        self.known(("schedule",), runtime, SCHEDULE)
        for name, entry in runtime.items():
            self.entry(("schedule", name), entry, needed=("value",))
            if entry["value"] < 0 or (name == "threads" and (entry["value"] < 1 or entry["value"] % 1)):
                self.wrong(("schedule", name), "is not below zero, and threads are whole")
        presets = self.table((), table, "preset")
        for name in presets:
            preset = self.table(("preset",), presets, name)
            self.known(("preset", name), preset, _PRESET)
            self.numbers(("preset", name), preset)

    def numbers(self, at: tuple[str, ...], table: Mapping[str, Any]) -> None:
        values = self.table(at, table, "value")
        self.known((*at, "value"), values, parameter_names())
        for name, entry in values.items():
            self.entry((*at, "value", name), entry, needed=("value",))
            if entry["value"] < 0:
                self.wrong((*at, "value", name), "is not below zero")
        moves = self.table(at, table, "move")
        self.known((*at, "move"), moves, instruction_pipes())
        for name, entry in moves.items():
            self.move((*at, "move", name), entry)
        vectors = self.table(at, table, "vector")
        self.known((*at, "vector"), vectors, instruction_pipes())
        for name in vectors:
            for type_name, entry in self.table((*at, "vector"), vectors, name).items():
                place = (*at, "vector", name, type_name)
                if type_name != "any" and type_code(type_name) is None:
                    self.fail(place, f"there is no element type '{type_name}'")
                nested = entry.get("nested") if isinstance(entry, dict) else None
                self.entry(place, entry, needed=("head", "slope"), others=(*_VECTOR, "nested"))
                if nested is not None and (not isinstance(nested, dict) or set(nested) != set(_NESTED)):
                    self.wrong(place, f"has nested = {{ {', '.join(_NESTED)} }}")
                if nested is not None and not all(map(_is_number, nested.values())):
                    self.wrong(place, "has numbers in nested")

    def move(self, place: tuple[str, ...], entry: Any) -> None:
        self.entry(place, entry, needed=("rate",), others=(*MOVE, "curve"))
        if entry["rate"] <= 0:
            self.wrong(place, "has a rate above zero")
        curve = entry.get("curve")
        if curve is None:
            if "latency" not in entry:
                self.wrong(place, "has a latency or a curve")
            return
        pairs = isinstance(curve, list) and all(isinstance(p, list) and len(p) == 2 for p in curve)
        if not pairs or not all(map(_is_number, [n for p in curve for n in p])):
            self.wrong(place, "has a curve of pairs (bytes, cycles)")
        sizes = [size for size, _ in curve]
        if not 2 <= len(curve) <= _MOST_POINTS or sizes != sorted(set(sizes)):
            self.wrong(place, f"has a curve of 2 to {_MOST_POINTS} points of growing size")

    def roofs(self, roofs: Mapping[str, Any]) -> None:
        self.known(("roof",), roofs, _ROOF)
        for name, entry in roofs.items():
            if not isinstance(entry, dict):
                self.wrong(("roof", name), "is a table")
            named = [key for key in entry if key not in (*_WORTH, "of")]
            self.entry(("roof", name), entry, others=named, texts=("of",))

    def entry(
        self,
        place: tuple[str, ...],
        entry: Any,
        *,
        needed: tuple[str, ...] = (),
        others: Iterable[str] = (),
        texts: tuple[str, ...] = (),
    ) -> None:
        """Numbers with a kind and a source."""
        name = place[-1] if place[0] in ("value", "roof") else ".".join(place)
        if not isinstance(entry, dict) or entry.get("kind") not in KINDS or not entry.get("source"):
            self.fail(place, f"{name} needs a kind ({', '.join(KINDS)}) and a source")
        self.known(place, entry, (*_WORTH, *texts, *needed, *others))
        for key in needed:
            if key not in entry:
                self.fail(place, f"{name} has no {key}")
        for key, value in entry.items():
            if key not in (*_WORTH, *texts, "nested", "curve") and not _is_number(value):
                self.fail(place, f"{name}: {key} is not a number")

    def table(self, at: tuple[str, ...], table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value = table.get(key, {})
        if not isinstance(value, dict):
            self.wrong((*at, key), "is a table")
        return value

    def known(self, at: tuple[str, ...], table: Mapping[str, Any], names: Iterable[str]) -> None:
        names = list(names)
        for key in table:
            if key not in names:
                import difflib

                close = difflib.get_close_matches(key, names, 1)
                hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(names)}"
                where = f" in [{'.'.join(at)}]" if at else ""
                self.fail((*at, key), f"there is no '{key}'{where}", hint if len(hint) < 400 else "")

    def wrong(self, place: tuple[str, ...], what: str) -> NoReturn:
        self.fail(place, f"{'.'.join(place)} {what}: not so here")

    def fail(self, place: tuple[str, ...], what: str, hint: str = "") -> NoReturn:
        raise InputError(what, where=f"{self.path}:{_line_of(self.text, place)}", hint=hint)


def _line_of(text: str, place: tuple[str, ...]) -> int:
    """The line of the longest part of `place` that begins one; inline tables are on the line of their key."""
    table: tuple[str, ...] = ()
    best, length = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            table = found = _parts(header[1])
        elif key := re.match(r"""\s*((?:"[^"]*"|'[^']*'|[\w.-])+)\s*=""", line):
            found = (*table, *_parts(key[1]))
        else:
            continue
        found = found[: len(place)]
        if len(found) > length and found == place[: len(found)]:
            best, length = number, len(found)
    return best


def _parts(dotted: str) -> tuple[str, ...]:
    found = re.findall(r""""([^"]*)"|'([^']*)'|([\w-]+)""", dotted)
    return tuple(double or single or bare for double, single, bare in found)


def _is_number(value: Any) -> bool:
    """A number that no chip is too large for: a whole one may have more digits than a float."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) < 1 << 62 if isinstance(value, int) else math.isfinite(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
