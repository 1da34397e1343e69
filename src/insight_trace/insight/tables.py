"""The API_INSTR and API_FILE blocks: tables by instruction and by source line, arrays indexed by core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from insight_trace.insight.hotspots import Counts, Lines
from insight_trace.insight.prepared import Prepared
from insight_trace.model import Pipe
from insight_trace.recording.foreign import flag_of_text
from insight_trace.recording.frames import TOOLKIT
from insight_trace.recording.kinds import FLAG_NAMES, SET_NAMES
from insight_trace.recording.stream import details_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

HIDDEN, INT, FLOAT, TEXT, PERCENTAGE = 0, 1, 2, 3, 4  # how Insight reads a column

INSTRUCTION_KINDS = {
    "Address": TEXT,
    "AscendC Inner Code": TEXT,
    "CcuCycles": INT,
    "Cycles": INT,
    "GPR Count": INT,
    "ICacheCycles": INT,
    "Instructions Executed": INT,
    "Pipe": TEXT,
    "Process Bytes": INT,
    "RealStallCycles": INT,
    "ScalarCycles": INT,
    "Source": TEXT,
    "UB Read Conflict": INT,
    "UB Write Conflict": INT,
    "Vector Utilization Percentage": PERCENTAGE,
}
LINE_KINDS = {
    "Address Range": HIDDEN,
    "Cycles": INT,
    "GPR Count": INT,
    "Instructions Executed": INT,
    "Line": INT,
    "Process Bytes": INT,
}
_GAP = 4  # addresses this close are one range
LARGEST_SOURCE = 10 << 20


def shown_source(name: str, detail: str) -> str:
    """An instruction as the Source page shows it: operands without their values, flags as pipe and id."""
    if name in FLAG_NAMES:
        named = flag_of_text(detail)
        if named:
            pipe, trigger, flag = named
            return f"{name} {trigger if name in SET_NAMES else pipe} ID:{flag}"
    parts = f"{name} {detail}".split(",")
    if parts[-1] == "":
        parts.pop()
    for place, part in enumerate(parts):
        for mark in ("=0x", ":0x"):
            cut = part.find(mark)
            if cut >= 0:
                parts[place] = part[:cut]
                break
    return ",".join(parts)


def inner_code(stack: str) -> str:
    """The innermost frame outside the toolkit, or the innermost of all."""
    frames = stack.partition("\n\n")[0].split("\n")
    return next((frame for frame in frames if TOOLKIT not in frame), frames[0])


def _by_core(values: NDArray[Any], counts: Counts, prepared: Prepared, size: int, absent: Any) -> list[Any]:
    table = np.full((size, len(prepared.cores)), absent, dtype=values.dtype)
    table[counts.key, counts.core] = values
    rows: list[Any] = table[:, prepared.listed].tolist()
    return rows


def instruction_table(prepared: Prepared, addresses: NDArray[np.uint64], counts: Counts) -> bytes:
    """API_INSTR: one row per address, sorted by the address's text."""
    columns = prepared.instructions
    size = len(addresses)

    def spread(values: NDArray[Any], absent: Any) -> list[Any]:
        return _by_core(values, counts, prepared, size, absent)

    # counts are ordered by core, so written backwards the first core that ran an address decides
    first = np.zeros(size, dtype=np.int64)
    first[counts.key[::-1]] = counts.first[::-1]
    moved = np.where(counts.process_bytes > 0, counts.process_bytes, -1)
    data: dict[str, list[Any]] = {
        "Address": [f"0x{address:x}" for address in addresses.tolist()],
        "AscendC Inner Code": [inner_code(columns.stacks[stack]) for stack in columns.stack[first].tolist()],
        "Cycles": spread(counts.cycles, 0),
        "Instructions Executed": spread(counts.executed, 0),
        "Pipe": [Pipe(pipe).name for pipe in columns.pipe[first].tolist()],
        "Process Bytes": spread(moved, -1),
        "Source": [
            shown_source(columns.names[name], detail)
            for name, detail in zip(
                columns.name[first].tolist(), details_of(columns.detail, first), strict=True
            )
        ],
        "UB Read Conflict": spread(counts.read_conflict, -1),
        "UB Write Conflict": spread(counts.write_conflict, -1),
        "Vector Utilization Percentage": spread(counts.utilisation, -1.0),
    }
    if prepared.extras.gpr is not None:  # live scalar registers; a recording has no registers to count
        data["GPR Count"] = spread(counts.gpr, 0)
    if (counts.stalled > 0).any():
        data["RealStallCycles"] = spread(counts.stalled, 0)
    if ((counts.fetching + counts.decoding) > 0).any():
        data["ICacheCycles"] = spread(counts.fetching, 0)
        data["CcuCycles"] = spread(counts.decoding, 0)
        data["ScalarCycles"] = spread(counts.fetching + counts.decoding, 0)
    names = sorted(data)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(data[name] for name in names), strict=True)]
    rows.sort(key=lambda row: row["Address"])
    return _encode(
        {
            "Cores": [columns.cores[prepared.cores[place]] for place in prepared.listed],
            "Instructions": rows,
            "Instructions Dtype": {"Instructions": {name: INSTRUCTION_KINDS[name] for name in names}},
        }
    )


def usable_sources(lines: Lines | None, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Texts of the files that were executed; empty or very large ones are left out, as the vendor does."""
    if lines is None:
        return {}
    files = dict.fromkeys(code.rsplit(":", 1)[0] for code in lines.codes)
    found = {file: sources[file] for file in files if file in sources}
    return {file: text for file, text in found.items() if 0 < len(text) <= LARGEST_SOURCE}


def line_table(prepared: Prepared, lines: Lines, sources: Mapping[str, bytes]) -> bytes | None:
    """API_FILE: hot spots by line of the files whose text is known; None if there is none."""
    columns, counts = prepared.instructions, lines.counts
    size = len(lines.codes)
    moved = np.where(counts.process_bytes > 0, counts.process_bytes, -1)
    cycles = _by_core(counts.cycles, counts, prepared, size, 0)
    gpr = _by_core(counts.gpr, counts, prepared, size, 0)
    executed = _by_core(counts.executed, counts, prepared, size, 0)
    process = _by_core(moved, counts, prepared, size, -1)
    files: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for place, code in enumerate(lines.codes):
        file, line = code.rsplit(":", 1)
        if file not in sources or not (line.isascii() and line.isdigit()):
            continue
        row = {
            "Address Range": _ranges(lines.addresses[place]),
            "Cycles": cycles[place],
            "GPR Count": gpr[place],
            "Instructions Executed": executed[place],
            "Line": int(line),
            "Process Bytes": process[place],
        }
        if prepared.extras.gpr is None:
            del row["GPR Count"]
        files.setdefault(file, []).append((line, row))
    if not files:
        return None
    kinds = {
        name: LINE_KINDS[name]
        for name in LINE_KINDS
        if name != "GPR Count" or prepared.extras.gpr is not None
    }
    return _encode(
        {
            "Cores": [columns.cores[prepared.cores[place]] for place in prepared.listed],
            "Files": [
                {"Lines": [row for _, row in sorted(files[file], key=lambda item: item[0])], "Source": file}
                for file in sorted(files)
            ],
            "Files Dtype": {"Lines": kinds},
        }
    )


def _encode(table: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(table)
    except UnicodeEncodeError:
        return msgspec.json.encode(_replaced(table))


def _replaced(value: Any) -> Any:
    """The same with every string made encodable."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_replaced(key): _replaced(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item) for item in value]
    return value


def _ranges(addresses: NDArray[np.uint64]) -> list[list[str]]:
    """Inclusive ranges of neighbouring addresses."""
    found: list[list[int]] = []
    for address in addresses.tolist():
        if found and address - found[-1][1] <= _GAP:
            found[-1][1] = address
        else:
            found.append([address, address])
    return [[f"0x{low:08x}", f"0x{high:08x}"] for low, high in found]
