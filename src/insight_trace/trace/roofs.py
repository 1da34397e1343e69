"""The most that one core of a chip can do, out of `roofs.toml`."""

from __future__ import annotations

import functools
import importlib.resources
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Roofs:
    """Ceilings of one core."""

    chip: str  # whose ceilings these are
    exact: bool  # False: the trace's chip has none of its own, `chip` stands in
    bandwidth: Mapping[str, float]  # path -> GB/s
    cube_flop_per_cycle: Mapping[str, int]  # element type as instructions print it -> FLOP
    vector_bytes_per_cycle: int
    memories: Mapping[str, int]  # bytes


@functools.cache
def _table() -> dict[str, Any]:
    text = importlib.resources.files("insight_trace.trace").joinpath("roofs.toml").read_text("utf-8")
    return tomllib.loads(text)


def roofs_of(soc_version: str) -> Roofs:
    """The ceilings for a SoC name such as `Ascend910B1`; 910B1's where the name is unknown."""
    table = _table()
    chips = {name: values for name, values in table["bandwidth"].items() if isinstance(values, dict)}
    short = soc_version.removeprefix("Ascend")
    exact = next((chip for chip in chips if short.startswith(chip)), None)
    stand_in = next((chip for name, chip in table["same_core"].items() if short.startswith(name)), "910B1")
    chip = exact or stand_in
    family = "950" if chip.startswith("950") else "910B"
    return Roofs(
        chip=chip,
        exact=exact is not None,
        bandwidth=chips[chip],
        cube_flop_per_cycle=_numbers(table["cube_flop_per_cycle"], family),
        vector_bytes_per_cycle=table["vector_bytes_per_cycle"]["value"],
        memories=_numbers(table["memories"], family),
    )


def _numbers(table: Mapping[str, Any], family: str) -> dict[str, int]:
    """What all chips have in common, and over it what the family has of its own."""
    own = table.get(family, {})
    return {name: value for name, value in {**table, **own}.items() if isinstance(value, int)}
