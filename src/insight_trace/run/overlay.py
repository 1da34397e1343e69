"""A chip with some of its numbers changed, as a file of the user's own that names where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from insight_trace.chips import Chip, chip_file
from insight_trace.errors import RequestError
from insight_trace.storage import write_whole

# Numbers of [value] that a measurement of tasks may tell; the others are sizes, clocks or switches.
_VALUES = (
    "scalar.tile_op", "scalar.code", "scalar.multiply", "scalar.divide", "scalar.float", "scalar.float_divide",
    "scalar.load_ub", "scalar.store_ub", "scalar.load_gm", "scalar.store_gm", "scalar.dcci", "register.write",
    "flag.latency", "barrier.cost", "l2.atomic_turn", "function.call", "cross_core.latency", "cross_core.turn",
    "bank.turn", "mask.dispatch", "gm.chip_rate", "gm.core_rate", "l2.chip_rate", "l2.miss_latency",
    "l2.shared_cost", "mmad.head", "mmad.gap", "fixpipe.head", "fixpipe.row", "fixpipe.rate", "function.startup",
)  # fmt: skip


def candidates(chip: Chip, timed_by: Iterable[str]) -> list[str]:
    """Parameters that a fit may change, of those that time the instructions of a run and of what cores share."""
    names: list[str] = []
    for name in sorted(set(timed_by)):
        table, _, rest = name.partition(".")
        if table == "vector":
            instr, _, kind = rest.partition(".")
            entry = chip.table["vector"][instr][kind]
            names += [f"{name}.{key}" for key in ("head", "slope") if entry.get(key)]
        elif table == "move":
            entry = chip.table["move"][rest]
            keys = ("time",) if entry.get("curve") else ("latency", "rate", "per_burst", "missed_burst")
            names += [f"{name}.{key}" for key in keys if key == "time" or entry.get(key)]
    return names + [name for name in _VALUES if chip.table["value"].get(name, {}).get("value")]


def overlay_text(chip: Chip, base: str, name: str, factors: Mapping[str, float], source: str) -> str:
    """TOML of a chip like `chip`, the file `base`, with parameters multiplied; each changed number names `source`."""
    worth = {"kind": "measured", "source": source}
    values: dict[str, Any] = {}
    moves: dict[str, Any] = {}
    vectors: dict[str, dict[str, Any]] = {}
    for parameter, factor in factors.items():
        table, *path = parameter.split(".")
        if table == "vector" and len(path) == 3:
            instr, kind, key = path
            # all types of an instruction stand together: what a file says of `any` replaces the others
            types = vectors.setdefault(instr, {k: dict(e) for k, e in chip.table["vector"][instr].items()})
            entry = types[kind]
            entry.update(worth)
            entry[key] = _rounded(entry[key] * factor)
            if nested := entry.get("nested"):
                entry["nested"] = {**nested, key: _rounded(nested[key] * factor)}
        elif table == "move" and len(path) == 2:
            entry = moves.setdefault(path[0], dict(chip.table["move"][path[0]]) | worth)
            _scale_move(entry, path[1], factor)
        elif parameter in chip.table["value"]:
            value = chip.table["value"][parameter]["value"]
            values[parameter] = {"value": _rounded(value * factor), **worth}
        else:
            raise RequestError(f"{chip.name} has no parameter {parameter}")
    lines = [f"# {chip.name} as it was measured.", f'name = "{name}"', f'base = "{base}"', ""]
    if values:
        lines += ["[value]", *(f'"{key}" = {_inline(entry)}' for key, entry in values.items()), ""]
    if moves:
        lines += ["[move]", *(f"{key} = {_inline(entry)}" for key, entry in moves.items()), ""]
    for instr, kinds in vectors.items():
        lines += [f"[vector.{instr}]", *(f"{key} = {_inline(entry)}" for key, entry in kinds.items()), ""]
    return "\n".join(lines)


def base_of(chip: Chip) -> str:
    """The name of the chip's file, as an overlay calls it."""
    path = chip_file(chip.name)
    if path is None:
        raise RequestError(
            f"{chip.name} comes from a file of its own", hint="calibrate a chip that is known by its name"
        )
    return path.stem


def _scale_move(entry: dict[str, Any], key: str, factor: float) -> None:
    if key != "time":
        entry[key] = _rounded(entry[key] * factor)
        return
    # the whole curve, and what it is held against
    entry["curve"] = [[size, _rounded(cycles * factor)] for size, cycles in entry["curve"]]
    if entry.get("rate"):
        entry["rate"] = _rounded(entry["rate"] / factor)


def _rounded(value: float) -> float:
    return round(value, 3)


def _inline(entry: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {_value(value)}" for key, value in entry.items()) + " }"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return _inline(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return f"{value:g}" if isinstance(value, float) and value == int(value) else str(value)


def write_overlay(path: Path, text: str) -> None:
    write_whole(path, text)
