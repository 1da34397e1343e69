"""What the tables know per core and address: from the API_INSTR block, or else from the CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from insight_trace.errors import InputError
from insight_trace.insight.csv_files import instruction_csvs, read_instruction_csv

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBERS = {
    "Cycles": 0,
    "Instructions Executed": 0,
    "UB Read Conflict": -1,
    "UB Write Conflict": -1,
    "Vector Utilization Percentage": -1,
    "GPR Count": -1,
    "Process Bytes": -1,
}


class Metrics(msgspec.Struct, frozen=True, eq=False):
    """One row per address; numbers are indexed by row and core."""

    cores: tuple[str, ...]
    addresses: NDArray[np.uint64]  # ascending
    pipes: tuple[str, ...]
    sources: tuple[str, ...]  # "<name> <operands>"
    details: tuple[str, ...]  # "" where only the table is there
    numbers: Mapping[str, NDArray[np.float64]]


def _spread(value: Any, cores: int, absent: float) -> list[float]:
    """A value per core; a short array falls back to its first element, as Insight reads it."""
    values = value if isinstance(value, list) else [value]
    numbers = [float(item) if isinstance(item, int | float) else absent for item in values] or [absent]
    return (numbers + [numbers[0]] * cores)[:cores]


def _column(values: list[Any], cores: int, absent: float) -> NDArray[np.float64]:
    """Values of one kind, by row and core."""
    usual = all(type(value) is list and len(value) == cores for value in values)
    if not usual or not set(map(type, chain.from_iterable(values))) <= {int, float}:
        values = [_spread(value, cores, absent) for value in values]
    return np.array(values, dtype=np.float64).reshape(len(values), cores)


def metrics_of_table(payload: bytes, where: str) -> Metrics:
    """From the text of an API_INSTR block; columns that older releases lack are unknown."""
    try:
        table = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"API_INSTR is not JSON: {error}", where=where) from error
    rows = table.get("Instructions") if isinstance(table, dict) else None
    cores = table.get("Cores") if isinstance(table, dict) else None
    if not isinstance(rows, list) or not isinstance(cores, list):
        raise InputError("API_INSTR has no Cores or no Instructions", where=where)
    found: dict[int, dict[str, Any]] = {}
    for number, row in enumerate(rows):
        try:
            address = int(row["Address"], 16)
            if not 0 <= address < 1 << 64:
                raise ValueError("an address has 64 bits")
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"instruction {number} has no usable Address: {error}", where=where) from error
        found.setdefault(address, row)
    ordered = sorted(found)
    numbers = {
        name: _column([found[address].get(name, absent) for address in ordered], len(cores), absent)
        for name, absent in _NUMBERS.items()
    }
    return Metrics(
        cores=tuple(str(core) for core in cores),
        addresses=np.array(ordered, dtype=np.uint64),
        pipes=tuple(str(found[address].get("Pipe", "")) for address in ordered),
        sources=tuple(str(found[address].get("Source", "")) for address in ordered),
        details=("",) * len(ordered),
        numbers=numbers,
    )


def metrics_of_csvs(directory: Path) -> Metrics | None:
    """From the CSV files of the core directories below a `simulator/`."""
    rows = []
    cores = []
    for folder in sorted(each for each in directory.iterdir() if each.is_dir()):
        files = instruction_csvs(folder)
        if files:
            rows.append(read_instruction_csv(files[-1]))
            cores.append(folder.name)
    if not rows:
        return None
    found: dict[int, Any] = {}
    for core_rows in rows:
        for row in core_rows:
            if 0 <= row.address < 1 << 64:
                found.setdefault(row.address, row)
    ordered = sorted(found)
    place = {address: number for number, address in enumerate(ordered)}
    numbers = {name: np.full((len(ordered), len(cores)), float(absent)) for name, absent in _NUMBERS.items()}
    for core, core_rows in enumerate(rows):
        for row in core_rows:
            number = place.get(row.address)
            if number is not None:
                numbers["Cycles"][number, core] = row.cycles
                numbers["Instructions Executed"][number, core] = row.executed
    return Metrics(
        cores=tuple(cores),
        addresses=np.array(ordered, dtype=np.uint64),
        pipes=tuple(found[address].pipe for address in ordered),
        sources=tuple(f"{found[address].name} {found[address].detail}" for address in ordered),
        details=tuple(found[address].detail for address in ordered),
        numbers=numbers,
    )


class Lookup:
    """Finds rows of a trace in the tables."""

    def __init__(
        self, metrics: Metrics, cores: Iterable[str], core: NDArray[Any], pc: NDArray[np.uint64]
    ) -> None:
        names = {name: place for place, name in enumerate(metrics.cores)}
        column = np.array([names.get(name, -1) for name in cores], dtype=np.int64)
        place = np.searchsorted(metrics.addresses, pc)
        place = np.minimum(place, max(len(metrics.addresses) - 1, 0))
        self._metrics = metrics
        self._column = column[core]
        self._row = place
        known = self._column >= 0
        self.known = known & (metrics.addresses[place] == pc) if len(metrics.addresses) else known & False

    def __call__(self, name: str) -> NDArray[np.float64]:
        """The number for each row; unknown where there is none."""
        found = np.full(len(self._row), float(_NUMBERS[name]))
        rows = np.flatnonzero(self.known)
        found[rows] = self._metrics.numbers[name][self._row[rows], self._column[rows]]
        return found
