"""The runner's files as columns (engine/record.hpp)."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.dtypes import DTYPES
from insight_trace.errors import InputError, JobError
from insight_trace.limits import cut
from insight_trace.model import Instructions, Operands, Pipe
from insight_trace.reading import open_regular
from insight_trace.recording.detail import Details
from insight_trace.recording.kinds import BARRIER, FLAG_NAMES
from insight_trace.recording.operands import (
    CALL_FIELDS,
    FOOTPRINT_FIELDS,
    GEOMETRY_FIELDS,
    NONE,
    OPERAND_FIELDS,
    TILE_FIELDS,
    Form,
    has_endless_operand,
)
from insight_trace.recording.pipes import ENGINE_PIPES
from insight_trace.recording.stream import (
    COLUMNS,
    OPERAND_COLUMNS,
    PIECE,
    column_room,
    release_columns,
    require_column_room,
)
from insight_trace.recording.user_marks import with_marks

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_PC = 0x10000000
_LARGE = 1 << 24
_PIECE = 1 << 13  # rows that stay in a core's cache while their columns are made

_FIELDS = [
    ("issue", "<i8"), ("start", "<i8"), ("end", "<i8"), ("a", "<u8"), ("site", "<u4"), ("partner", "<u4"),
    ("geometry", "<u4"), ("operands", "<u4"), ("call", "<u4"), ("core", "<u2"), ("stall", "u1"), ("form", "u1"),
    ("read_conflict", "<u4"), ("write_conflict", "<u4"),
]  # fmt: skip
ROW_BYTES = 64


# The vendor's simulator of the 950 family: a lane each for pushed functions, loads, stores and arithmetic, and names of
# its own for what works on vector registers.
_A5_LANES = {"VF": Pipe.PUSHQ, "VLD": Pipe.RVECLD, "VST": Pipe.RVECST}
_A5_NAMES = {
    "VF": "VF", "VCONV": "RV_VCVT_F2F", "VCONV_WIDE": "RV_VCVT_F2F", "VCONV_HALF": "RV_VCVT_F2F", "MOVEV": "RV_VDUP",
    "MOV_UB_TO_UB": "RV_VMOV", "VABS": "RV_VABS_FP", "MOV_OUT_TO_UB_ALIGN": "MOV_OUT_TO_UB_ALIGN_V2",
    "MOV_UB_TO_OUT_ALIGN": "MOV_UB_TO_OUT_ALIGN_V2",
}  # fmt: skip
_A5_TABLED = {shown: name for name, shown in reversed(_A5_NAMES.items())}
# instructions of the vector pipe that are not part of a function
_A5_VECTOR = FLAG_NAMES | {BARRIER, "MOV_SPR_XN"}


class Site:
    """A kernel line and the instruction it issues."""

    __slots__ = ("file", "line", "name", "pipe")

    def __init__(self, file: str, line: int, name: str, pipe: int) -> None:
        self.file, self.line, self.name, self.pipe = file, line, name, pipe


def _shown(site: Site, target: str) -> tuple[str, Pipe]:
    """Name and lane of an instruction, as the vendor's simulator of that family shows it."""
    lane = ENGINE_PIPES[site.pipe]
    if target != "a5":
        return site.name, lane
    if lane is not Pipe.VECTOR or "CROSS_CORE" in site.name or "INTRA_BLOCK" in site.name:
        return _A5_NAMES.get(site.name, site.name), lane
    if site.name in _A5_VECTOR or site.name.startswith("WAIT_"):
        return site.name, lane
    return _A5_NAMES.get(site.name, f"RV_{site.name}"), _A5_LANES.get(site.name, Pipe.RVECEX)


def tabled_name(name: str) -> str:
    """The name under which a chip's tables time an instruction that a trace shows as `name`."""
    if name in _A5_TABLED:
        return _A5_TABLED[name]
    return name.removeprefix("RV_")


@lru_cache(maxsize=1)
def op_names() -> tuple[str, ...]:
    """Tile ops by number, from the tables that the engine is compiled from."""
    import re

    from insight_trace.simulate.embedded.engine_objects import INCLUDE

    table = (INCLUDE / "insight_trace" / "ops.def").read_text(encoding="utf-8")
    names: list[str] = []
    for file in re.findall(r'^#include "(.+)"', table, re.M):
        names += re.findall(r"^TILE_OP\((\w+)", (INCLUDE / file).read_text(encoding="utf-8"), re.M)
    return tuple(names)


def _table(path: Path, fields: Any) -> NDArray[Any]:
    import numpy as np

    try:
        with open_regular(path, follow=False) as file:  # a kernel may have put something else there
            # a copy is quicker than a mapping for small tables, and outlives the file either way
            small = os.fstat(file.fileno()).st_size < _LARGE
            return np.fromfile(file, fields) if small else np.memmap(file, fields, "r")
    except FileNotFoundError:
        return np.zeros(0, np.dtype(fields))
    except (OSError, ValueError, InputError) as error:
        why = error.what if isinstance(error, InputError) else str(error)
        raise JobError(
            f"the kernel wrote over what was recorded of its run: {path.name} {cut(why)}"
        ) from None


def load_instructions(
    path: Path, sites: list[Site], cores: tuple[str, ...], target: str = "a2a3"
) -> Instructions:
    """The runner's rows as columns; its tables are mapped where they are large."""
    import numpy as np

    rows = _table(path, _FIELDS)
    tables = _tables(path)
    order = sorted(range(len(sites)), key=lambda i: (sites[i].file, sites[i].line, i))
    pc_of_site = np.zeros(max(1, len(sites)), np.uint64)
    pc_of_site[order] = FIRST_PC + 4 * np.arange(len(order), dtype=np.uint64)
    shown = [_shown(site, target) for site in sites]
    names = list(dict.fromkeys(name for name, _ in shown))
    stacks = list(dict.fromkeys(["", *(f"{s.file}:{s.line}" if s.file else "" for s in sites)]))
    name_index = {name: i for i, name in enumerate(names)}
    stack_index = {stack: i for i, stack in enumerate(stacks)}
    site_name = np.array([name_index[name] for name, _ in shown] or [0], np.uint16)
    site_stack = np.array(
        [stack_index[f"{s.file}:{s.line}" if s.file else ""] for s in sites] or [0], np.uint32
    )
    site_pipe = np.array([int(lane) for _, lane in shown] or [0], np.uint8)
    moved, utilisation = _by_geometry(tables["geometries"])
    by_site: dict[str, NDArray[Any]] = {
        "pipe": site_pipe,
        "name": site_name,
        "stack": site_stack,
        "pc": pc_of_site,
    }
    by_geometry = {"process_bytes": moved, "utilisation": utilisation}
    limits = len(sites), len(cores), len(tables["rows"])
    require_column_room(len(rows))
    columns, of_operands = _columns(rows, by_site, by_geometry, limits, banked=target != "a5")
    operands = Operands(**of_operands, **tables, ops=op_names())
    found = Instructions(
        cores=cores,
        names=tuple(names),
        stacks=tuple(stacks),
        detail=Details(operands),
        operands=operands,
        **columns,
    )
    return with_marks(found)


def _columns(
    rows: NDArray[Any],
    by_site: dict[str, NDArray[Any]],
    by_geometry: dict[str, NDArray[Any]],
    limits: tuple[int, int, int],
    *,
    banked: bool,
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Columns of the stream and of its operands, piece by piece: rows are read once, and given back behind that.

    `limits` are how many sites, cores and operands there are.
    """
    import numpy as np

    count = len(rows)
    made = {name: column_room(count, kind) for name, kind in COLUMNS.items()}
    of_operands = {
        name: column_room(count, kind) for name, kind in OPERAND_COLUMNS.items() if name != "times"
    }
    of_operands["times"] = column_room(count, "<i8", 3)
    last = len(by_geometry["process_bytes"]) - 1  # stands for none
    for begin in range(0, count, _PIECE):
        piece = rows[begin : begin + _PIECE]
        here = slice(begin, begin + len(piece))
        following = rows["operands"][begin + 1 : begin + 1 + len(piece)]
        if here.stop == count:
            following = np.append(following, np.uint32(limits[2]))
        _require_known(piece, following, limits)
        site, geometry = piece["site"].astype(np.intp), np.minimum(piece["geometry"], last).astype(np.intp)
        for key, table in by_site.items():
            table.take(site, out=made[key][here], mode="clip")
        for key, table in by_geometry.items():
            table.take(geometry, out=made[key][here], mode="clip")
        for place, key in enumerate(("issue", "start", "end")):
            of_operands["times"][here, place] = piece[key]
            np.floor_divide(piece[key] + 500, 1000, out=made[key][here])
        partner = piece["partner"]
        made["partner"][here] = partner
        made["partner"][here][partner == NONE] = -1
        made["core"][here], made["stall"][here] = piece["core"], piece["stall"]
        # nothing is known of the 950's banks, and -1 says so
        vector = (piece["form"] == Form.VECTOR) & banked
        for key in ("read_conflict", "write_conflict"):
            made[key][here] = np.where(vector, piece[key], -1)
        for key, field in (
            ("form", "form"),
            ("value", "a"),
            ("geometry", "geometry"),
            ("call", "call"),
            ("first", "operands"),
        ):
            of_operands[key][here] = piece[field]
        of_operands["count"][here] = following - piece["operands"]
        if begin % PIECE == 0 and begin:
            release_columns([rows, *made.values(), *of_operands.values()])
    if count >= PIECE:
        release_columns([rows, *made.values(), *of_operands.values()])
    return made, of_operands


def _require_known(rows: NDArray[Any], following: NDArray[Any], limits: tuple[int, int, int]) -> None:
    """The runner shares its process with a kernel, which may have written over its rows."""
    sites, cores, operands = limits
    site, core = int(rows["site"].max()), int(rows["core"].max())
    if site >= sites or core >= cores:
        raise JobError(
            f"the kernel wrote over the recorded instructions: site {site} of {sites}, core {core} of {cores}",
            hint="look for a store through a wild pointer in the kernel",
        )
    if (following < rows["operands"]).any() or int(following.max()) > operands:
        raise _spoiled_operands()


def _spoiled_operands() -> JobError:
    return JobError(
        "the kernel wrote over the operands of the recorded instructions",
        hint="look for a store through a wild pointer in the kernel",
    )


def _tables(path: Path) -> dict[str, NDArray[Any]]:
    """What rows name by a number. Operands' footprints exist and have an end."""
    kinds = {
        "operands": OPERAND_FIELDS, "geometries": GEOMETRY_FIELDS, "footprints": FOOTPRINT_FIELDS, "tiles": TILE_FIELDS,
        "calls": CALL_FIELDS, "lists": "<u4",
    }  # fmt: skip
    found = {name: _table(path.with_name(f"{path.name}.{name}"), fields) for name, fields in kinds.items()}
    rows, footprints = found.pop("operands"), found["footprints"]
    for begin in range(0, len(rows), PIECE):
        if int(rows["footprint"][begin : begin + PIECE].max()) >= len(footprints):
            raise _spoiled_operands()
        if len(rows) >= PIECE:
            release_columns([rows])
    if has_endless_operand(footprints):
        raise _spoiled_operands()
    return {**found, "rows": rows}


def _by_geometry(geometries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bytes moved to or from GM, and percent of the vector lanes in use; -1 behind the last one."""
    import numpy as np

    moved = np.where(geometries["form"] == Form.TRANSFER, geometries["bytes"], -1)
    lanes = np.array([256 // max(1, d.size) for d in DTYPES] + [256] * (256 - len(DTYPES)))
    capacity = np.minimum(geometries["repeat"], 0xFFFF).astype(np.float32) * lanes[geometries["type"]]
    utilisation = np.full(len(geometries), -1.0, np.float32)
    np.divide(
        geometries["elements"].astype(np.int64) * np.float32(100), capacity, out=utilisation,
        where=(geometries["form"] == Form.VECTOR) & (capacity > 0), casting="unsafe",
    )  # fmt: skip
    return np.append(moved, -1), np.append(utilisation, np.float32(-1))
