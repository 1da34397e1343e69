"""How much of a run's time rests on numbers that nobody has published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from insight_trace.dtypes import dtype_named
from insight_trace.model import Instructions
from insight_trace.outcome import Simulation
from insight_trace.recording.operands import element_types
from insight_trace.recording.stream import pieces
from insight_trace.simulate.embedded.records import tabled_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from insight_trace.chips import Chip

# Which number times an instruction that has no entry of its own.
_BY_NAME = {
    "SET_FLAG": "flag.set",
    "WAIT_FLAG": "flag.latency",
    "BAR": "barrier.cost",
    "SET_CROSS_CORE": "barrier.cost",
    "SET_INTRA_BLOCK": "barrier.cost",
    "WAIT_FLAG_DEV": "cross_core.latency",
    "WAIT_INTRA_BLOCK": "cross_core.latency",
    "MOV_SPR_XN": "register.write",
    "MOVEVA": "register.write",
    "DCCI": "scalar.dcci",
    "DSB": "scalar.dsb",
    "LD_DEV": "scalar.load_gm",
    "ST_DEV": "scalar.store_gm",
    "ST_ATOMIC": "scalar.store_gm",
    "LD_XD_XN_IMM": "scalar.load_ub",
    "ST_XD_XN_IMM": "scalar.store_ub",
    "SCALAR_CODE": "scalar.code",
    "MMAD": "mmad.head",
}
# Of these an instruction lasts as long as something else makes it; their own part is the parameter's value.
_OWN_PART = frozenset({"flag.set", "flag.latency", "barrier.cost", "cross_core.latency"})


class Estimate(Struct, frozen=True):
    """One estimated number that the run used."""

    parameter: str
    source: str
    instructions: int
    cycles: int  # of all instructions that it times


class EstimateShare(Struct, frozen=True):
    """`share` of the instructions' cycles, all pipes together, is timed by estimates; the largest come first."""

    share: float
    estimates: tuple[Estimate, ...]

    @property
    def text(self) -> str:
        return f"{self.share:.0%} of the time rests on estimates"


def estimate_share(simulation: Simulation, soc: Chip) -> EstimateShare:
    """What part of the time that instructions take is timed by parameters of kind `estimate`.

    An instruction counts with its whole duration for the number that times it; flags, barriers and waits for
    other cores count only with their own cost, since how long they last is decided by what they wait for.
    The issue of an instruction (scalar.issue, scalar.dispatch, scalar.tile_op) is not in its duration.
    """
    total, found = parameter_times(simulation, soc)
    listed = sorted(
        (
            Estimate(name, time.entry["source"], time.instructions, round(time.cycles))
            for name, time in found.items()
            if time.entry["kind"] == "estimate"
        ),
        key=lambda e: (-e.cycles, e.parameter),
    )
    return EstimateShare(sum(e.cycles for e in listed) / total if total else 0.0, tuple(listed))


class ParameterTime(Struct, frozen=True):
    """What one number of the chip times: its entry, instructions and their cycles."""

    entry: Any
    instructions: int
    cycles: float


def parameter_times(simulation: Simulation, soc: Chip) -> tuple[float, dict[str, ParameterTime]]:
    """The cycles of all instructions, and of those that each parameter times."""
    import numpy as np

    columns = simulation.instructions
    if not len(columns):
        return 0.0, {}
    total = 0.0
    found: dict[str, ParameterTime] = {}
    groups = ((part, *group) for _, part in pieces(columns) for group in _groups(part))
    for part, name_index, type_code, rows in groups:
        took = part.end[rows] - part.start[rows]
        parameter, entry = timed_by(tabled_name(columns.names[name_index]), type_code, soc)
        if entry is not None and parameter in _OWN_PART:
            # how much of a wait is its own: never more than it took
            cycles = float(np.minimum(took, entry["value"]).sum())
        else:
            cycles = float(took.sum())
        total += cycles
        if entry is not None:
            before = found.get(parameter, ParameterTime(entry, 0, 0.0))
            found[parameter] = ParameterTime(
                entry, before.instructions + int(rows.size), before.cycles + cycles
            )
    return total, found


def timed_by(name: str, type_code: int, soc: Chip) -> tuple[str, Any]:
    """The parameter that times an instruction, and its entry; None for what costs nothing that is tabled."""
    moves, vectors, values = (soc.table.get(key, {}) for key in ("move", "vector", "value"))
    if name in moves:
        return f"move.{name}", moves[name]
    if name in _BY_NAME:
        parameter = _BY_NAME[name]
        return parameter, values.get(parameter)
    if name in vectors:
        own = (key for key in vectors[name] if (d := dtype_named(key)) is not None and d.code == type_code)
        key = next(own, "any")
        return f"vector.{name}.{key}", vectors[name].get(key)
    return "", None


def _groups(columns: Instructions) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Rows by instruction and element type."""
    import numpy as np

    codes = element_types(columns)
    keys = columns.name.astype(np.int64) << 8 | codes
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    for first, rows in zip(starts, np.split(order, starts[1:]), strict=True):
        yield int(keys[first]) >> 8, int(keys[first]) & 0xFF, rows
