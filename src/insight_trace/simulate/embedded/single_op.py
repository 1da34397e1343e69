"""Cycles of one tile op: the question kernel authors ask most.

Operands lie where the public single-op measurements put them (0x0, 0x4000, 0x8000: sources first, then the
result) unless addresses are given, since bank conflicts decide what a vector op costs.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from insight_trace import limits
from insight_trace.dtypes import DTYPES, DType, dtype_named
from insight_trace.errors import InputError, RequestError
from insight_trace.model import Pipe
from insight_trace.outcome import Simulation
from insight_trace.reading import read_regular
from insight_trace.results import Result
from insight_trace.simulate.embedded.op_forms import OpRequest, operands_of
from insight_trace.simulate.embedded.op_script import run_op
from insight_trace.simulate.embedded.simulator import EmbeddedOptions, chip_of

if TYPE_CHECKING:
    from insight_trace.simulate.embedded.toolchain import Toolchain

_LONGEST_WORD = 64


@dataclass(frozen=True, eq=False, repr=False)
class OpTiming(Result):
    """What one op costs."""

    request: OpRequest
    cycles: int
    simulation: Simulation

    @property
    def micros(self) -> float:
        return self.cycles / self.simulation.mhz

    def summary(self) -> str:
        request = self.request
        what = f"{request.op} {request.dtype.short} {request.rows} x {request.cols}"
        return f"{what} · {self.cycles:,} cycles · {self.micros:.3f} us"

    def rows(self) -> list[dict[str, Any]]:
        """Its instructions, from the first one's start on."""
        columns = self.simulation.instructions
        first = int(columns.start.min()) if len(columns) else 0
        return [
            {
                "instruction": columns.names[columns.name[i]],
                "pipe": Pipe(int(columns.pipe[i])).name,
                "start": int(columns.start[i]) - first,
                "end": int(columns.end[i]) - first,
                "read_conflict": int(columns.read_conflict[i]),
                "write_conflict": int(columns.write_conflict[i]),
                "detail": columns.detail[i],
            }
            for i in range(max(0, len(columns) - 1))  # without the closing END
        ]

    def columns(self) -> Mapping[str, Any]:
        rows = self.rows()
        return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}

    def data(self) -> dict[str, Any]:
        return {
            "op": self.request.op,
            "dtype": self.request.dtype.name,
            "rows": self.request.rows,
            "cols": self.request.cols,
            "soc_version": self.simulation.soc_version,
            "cycles": self.cycles,
            "micros": self.micros,
            "instructions": self.rows(),
        }


@dataclass(frozen=True)
class TableRow:
    """One row of a table of measured ops."""

    op: str
    case: str
    params: str
    measured: float
    quality: str
    peer_precision: float | None
    cycles: int | None  # None: not supported
    problem: str = ""

    @property
    def precision(self) -> float:
        if self.cycles is None or self.measured <= 0:
            return 0.0
        return max(0.0, 1.0 - abs(self.cycles - self.measured) / self.measured)

    @property
    def sound(self) -> bool:
        return self.quality == "ok"


def time_op(
    request: OpRequest, options: EmbeddedOptions | None = None, toolchain: Toolchain | None = None
) -> OpTiming:
    """Runs the op alone on the engine. Cycles count from its first instruction's start to its last one's end."""
    options = replace(options or EmbeddedOptions(), timing_only=request.timing_only)
    run = run_op(request.op, operands_of(request, chip_of(options).target), options, toolchain)
    simulation = run.simulation
    if simulation.failure:
        raise RequestError(str(simulation.failure))
    columns = simulation.instructions
    body = slice(0, max(0, len(columns) - 1))  # without the closing END
    if not len(columns.start[body]):
        return OpTiming(request, 0, simulation)
    cycles = int(columns.end[body].max() - columns.start[body].min())
    return OpTiming(request, cycles, simulation)


def time_table(
    path: Path, options: EmbeddedOptions | None = None, toolchain: Toolchain | None = None
) -> list[TableRow]:
    """Times every row of a table in the form of measured_cycles_a2a3.csv."""
    rows = []
    for row, request in table_requests(path):
        try:
            cycles = time_op(request, options, toolchain).cycles if request is not None else None
            rows.append(dataclasses.replace(row, cycles=cycles))
        except RequestError as error:
            rows.append(dataclasses.replace(row, problem=error.what))
    return rows


def table_requests(path: Path) -> list[tuple[TableRow, OpRequest | None]]:
    """The rows of a table and what each asks for; None where its `problem` says that it spells no request."""
    try:
        text = read_regular(path, most=limits.SOURCE_BYTES).decode("utf-8")
        reader = csv.DictReader(text.splitlines())
        missing = {"op", "case", "params", "measured_cycles"} - set(reader.fieldnames or ())
        if missing:
            raise InputError(f"the table has no column {', '.join(sorted(missing))}", where=str(path))
        return [_table_row(line, f"{path}:{number}") for number, line in enumerate(reader, 2)]
    except OSError as error:
        raise InputError(f"the table cannot be read: {error.strerror}", where=str(path)) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the table is no CSV text: {error}", where=str(path)) from None


def _table_row(line: dict[str, Any], where: str) -> tuple[TableRow, OpRequest | None]:
    if any(line.get(name) is None for name in ("op", "case", "params", "measured_cycles")):
        raise InputError("the row is shorter than the table's header", where=where)
    try:
        measured = float(line["measured_cycles"])
        peer = float(line["peer_precision"]) if line.get("peer_precision") else None
    except ValueError as error:
        raise InputError(f"not a number: {limits.cut(str(error))}", where=where) from None
    row = TableRow(
        line["op"], line["case"], line["params"], measured, line.get("quality") or "ok", peer, None
    )
    try:
        return row, request_from_params(row.op, row.params.split())
    except RequestError as error:
        return dataclasses.replace(row, problem=error.what), None


def mean_precision(rows: Sequence[TableRow]) -> float:
    """Over the rows that are sound."""
    sound = [row.precision for row in rows if row.sound]
    return sum(sound) / len(sound) if sound else 0.0


def named_dtype(name: str) -> DType:
    found = dtype_named(name)
    if found is None:
        raise RequestError(
            f"there is no element type '{name}'", hint="known: " + ", ".join(known.short for known in DTYPES)
        )
    return found


def request_from_params(op: str, params: Sequence[str]) -> OpRequest:
    """The request that a table's params spell: types, then sizes, then what is special to the op."""
    types = [p for p in params if dtype_named(p)]
    if any(len(p) > _LONGEST_WORD for p in params):
        raise RequestError(f"params '{limits.cut(' '.join(params))}' name no type or no size")
    numbers = [int(p) for p in params if p.removeprefix("-").isdecimal()]
    if not types or not numbers:
        raise RequestError(f"params '{limits.cut(' '.join(params))}' name no type or no size")
    if op == "TLOAD":
        return _load_request(op, named_dtype(types[0]), params)
    if op == "TMATMUL":
        m, k, n = numbers[:3]
        return OpRequest(op, named_dtype(types[-1]), m, n, depth=k)
    if op == "TCVT":
        return OpRequest(op, named_dtype(types[1]), numbers[0], numbers[1], to=named_dtype(types[0]))
    rows, cols, valid_rows, valid_cols = _sizes(op, numbers)
    in_place = "true" in params and op in ("TSQRT", "TRSQRT")
    return OpRequest(
        op,
        named_dtype(types[0]),
        rows,
        cols,
        valid_rows=valid_rows,
        valid_cols=valid_cols,
        in_place=in_place,
        scalar_first="scalar_tile" in params,
    )


def _sizes(op: str, numbers: list[int]) -> tuple[int, int, int | None, int | None]:
    if len(numbers) >= 4:
        # rows, valid rows, columns, valid columns where both pairs fit; else rows, columns, valid rows, columns
        if numbers[0] >= numbers[1] and numbers[2] >= numbers[3] and numbers[0] != numbers[2]:
            return numbers[0], numbers[2], numbers[1], numbers[3]
        return numbers[0], numbers[1], numbers[2], numbers[3]
    if len(numbers) < 2:
        raise RequestError(f"{op} needs rows and columns")
    return numbers[0], numbers[1], None, None


def _load_request(op: str, dtype: DType, params: Sequence[str]) -> OpRequest:
    """Three outer extents, rows and columns, the tile's own size, a flag, the pad, then the valid extents:
    five of them where the tensor is column major."""
    pad = next((i for i, word in enumerate(params) if word.startswith("PadValue")), len(params))
    numbers = [int(word) for word in params[1:pad] if word.isdecimal()]
    if len(numbers) < 7:
        raise RequestError(f"{op} needs five extents and a tile size")
    return OpRequest(
        op,
        dtype,
        numbers[3],
        numbers[4],
        pieces=numbers[0] * numbers[1] * numbers[2],
        padded_cols=numbers[6],
        columns=len(params) - pad - 1 == 5,
    )
