"""Chip families that differ in their logs."""

from __future__ import annotations

import enum
import re

from insight_trace.errors import RequestError


class Family(enum.Enum):
    """Families by what their core model writes."""

    A1 = "910A"
    A2 = "910B"
    A3 = "910_93"
    INFER = "310P"
    EDGE = "310B"
    A5 = "950"

    @property
    def a2_or_a3(self) -> bool:
        return self in (Family.A2, Family.A3)


DEFAULT_SOC = "Ascend910B1"
_FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"910B([1-4]|2C|4-1)?", Family.A2),
    (r"910_93\w*", Family.A3),
    (r"(910A|910P?\w*)", Family.A1),
    (r"310P[0-9]?", Family.INFER),
    (r"310B[0-9]?", Family.EDGE),
    (r"950\w*", Family.A5),
)


def family_of(soc_version: str) -> Family:
    """The family of a chip by its name, with or without the `Ascend` in front."""
    name = soc_version.removeprefix("Ascend")
    for pattern, family in _FAMILIES:
        if re.fullmatch(pattern, name, re.IGNORECASE):
            return family
    raise RequestError(
        f"{soc_version!r} is not a chip that is known",
        hint="for example Ascend910B1, Ascend910_9382, Ascend310P3 or Ascend950PR_9599",
    )
