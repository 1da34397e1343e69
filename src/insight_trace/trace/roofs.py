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
    flop = {name: rate for name, rate in table["cube_flop_per_cycle"].items() if name != "source"}
    return Roofs(
        chip=chip,
        exact=exact is not None,
        bandwidth=chips[chip],
        cube_flop_per_cycle=flop,
        vector_bytes_per_cycle=table["vector_bytes_per_cycle"]["value"],
        memories={name: size for name, size in table["memories"].items() if name != "source"},
    )
