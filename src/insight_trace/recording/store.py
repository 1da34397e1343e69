"""A recording on disk: one `.npy` file per column and table, and a header that names them (docs/recording.md)."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import asdict

from insight_trace import __version__
from insight_trace.errors import InputError, RequestError
from insight_trace.limits import JSON_BYTES, OPERAND_PIECES, cut
from insight_trace.model import Confidence, Counter, Instructions, Launch, MemoryUse, Operands, Trace
from insight_trace.reading import load_json, open_regular, prepared, read_regular
from insight_trace.recording.detail import Details
from insight_trace.recording.operands import (
    CALL_FIELDS,
    FOOTPRINT_FIELDS,
    GEOMETRY_FIELDS,
    OPERAND_FIELDS,
    TILE_FIELDS,
    has_endless_operand,
)
from insight_trace.recording.stream import COLUMNS, OPERAND_COLUMNS, PIECE, pieces, release
from insight_trace.storage import write_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = "recording"
HEADER = "recording.json"
FORMAT = "insight-trace recording"
VERSION = 2
# What NumPy says to a file that is cut or garbled.
_UNREADABLE = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    SyntaxError,
    MemoryError,
    OverflowError,
    TokenError,
    Warning,
)
_FACTS = ("memory", "launch", "confidence")  # of the trace
_F = TypeVar("_F")
# start, end and issue are the times in whole cycles
_DERIVED = ("issue", "start", "end")
_TABLES: dict[str, Any] = {
    "rows": OPERAND_FIELDS,
    "geometries": GEOMETRY_FIELDS,
    "footprints": FOOTPRINT_FIELDS,
    "tiles": TILE_FIELDS,
    "calls": CALL_FIELDS,
    "lists": "<u4",
}


class Recording(msgspec.Struct, frozen=True, eq=False):
    """Everything that one simulated dispatch showed."""

    trace: Trace  # instructions with operands, clock, sources, counters
    kernels: tuple[Mapping[str, Any], ...] = ()  # name, core_type, func_id, entry, source
    arguments: tuple[Mapping[str, Any], ...] = ()  # by slot: dtype, shape, role, tier, origin, value
    checks: tuple[Mapping[str, Any], ...] = ()  # by slot: status, max_error
    findings: tuple[Any, ...] = ()
    chip: Mapping[str, Any] = msgspec.field(default_factory=dict)  # name, target, preset, parameters
    about: Mapping[str, Any] = msgspec.field(
        default_factory=dict
    )  # scene, case, dispatch, and whatever else is known
    versions: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def instructions(self) -> Instructions:
        return self.trace.instructions


def beside(simulator: Path) -> Path:
    """Where the recording of an Insight directory lies."""
    return simulator.parent / FOLDER


def save(recording: Recording, folder: Path) -> None:
    """Fills a new folder; the caller sees to it that it appears whole."""

    instructions = recording.instructions
    operands = instructions.operands
    if operands is None:
        raise RequestError(
            "a trace without operands cannot be recorded: only the embedded simulator sees them"
        )
    folder.mkdir(parents=True)
    columns: dict[str, NDArray[Any]] = {
        name: getattr(instructions, name) for name in COLUMNS if name not in _DERIVED
    }
    columns |= {name: getattr(operands, name) for name in OPERAND_COLUMNS}
    tables = {name: getattr(operands, name) for name in _TABLES}
    for name, values in (columns | tables).items():
        _write_column(_file(folder, name), values)
        release(instructions)
    trace = recording.trace
    texts = [(path, text) for path, text in sorted(trace.sources.items())]
    for number, (_, text) in enumerate(texts):
        (folder / f"source{number}.txt").write_bytes(text)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "instructions": len(instructions),
        "operands": len(operands.rows),
        "cores": instructions.cores,
        "names": instructions.names,
        "stacks": instructions.stacks,
        "ops": operands.ops,
        "mhz": trace.mhz,
        "soc_version": trace.soc_version,
        "sources": [path for path, _ in texts],
        "counters": [
            {
                "name": c.name,
                "micros": c.micros.tolist(),
                "megabytes_per_second": c.megabytes_per_second.tolist(),
            }
            for c in trace.counters
        ],
        "kernels": recording.kernels,
        "arguments": recording.arguments,
        "checks": recording.checks,
        "findings": recording.findings,
        "chip": recording.chip,
        **{name: _fact(getattr(trace, name)) for name in _FACTS},
        "about": recording.about,
        "versions": {"insight_trace": __version__, **recording.versions},
    }
    write_whole(folder / HEADER, json.dumps(header, separators=(",", ":")) + "\n", sync=False)


def _write_column(path: Path, values: NDArray[Any]) -> None:
    """As np.save writes it, piece by piece: a column is a view of wider rows, or mapped from a file."""
    import numpy as np

    with path.open("wb") as file:
        head = {
            "descr": np.lib.format.dtype_to_descr(values.dtype),
            "fortran_order": False,
            "shape": values.shape,
        }
        np.lib.format.write_array_header_1_0(file, head)
        for begin in range(0, len(values), PIECE):
            np.ascontiguousarray(values[begin : begin + PIECE]).tofile(file)


def open_recording(path: str | Path) -> Recording:
    """Opens a recording's folder, or the folder that holds one. Columns are mapped, not read."""
    folder = _folder_of(Path(path))
    header = _header(folder)
    try:
        return _opened(folder, header)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise InputError(f"the recording lacks or garbles {error}", where=str(folder / HEADER)) from error


def _folder_of(folder: Path) -> Path:
    if (folder / HEADER).is_file():
        return folder
    return folder / FOLDER if (folder / FOLDER / HEADER).is_file() else _only_one_below(folder)


def recorded_findings(path: Path) -> tuple[Mapping[str, Any], ...]:
    """What a check of the run found; none where no recording of ours lies at or below the path."""
    folder = path.parent if path.name == "simulator" else path
    if not path.is_dir() or not ((folder / HEADER).is_file() or has_recording(folder)):
        return ()
    return tuple(_header(_folder_of(folder)).get("findings") or ())


def recorded_title(path: Path) -> str:
    """What ran: scene, case, kernel, dispatch and chip; "" where no recording of ours lies at or below the path."""
    folder = path if path.is_dir() else path.parent
    folder = folder.parent if folder.name == "simulator" else folder
    if not (folder / HEADER).is_file() and len(list(folder.glob(f"**/{FOLDER}/{HEADER}"))) != 1:
        return ""
    header = _header(_folder_of(folder))
    about, kernels = header.get("about"), header.get("kernels")
    if not isinstance(about, dict) or not isinstance(kernels, list):
        return ""
    names = [str(kernel.get("name")) for kernel in kernels if isinstance(kernel, dict)]
    ran = about.get("kernel") or "_".join(dict.fromkeys(names))
    dispatch = about.get("dispatch")
    parts = [about.get("scene_name"), about.get("case"), ran, dispatch is not None and f"dispatch {dispatch}"]
    return " · ".join(str(part) for part in [*parts, header.get("soc_version")] if part)


def has_recording(folder: Path) -> bool:
    """Whether a recording lies at or below a folder."""
    return any(folder.glob(f"**/{FOLDER}/{HEADER}"))


def _only_one_below(folder: Path) -> Path:
    found = sorted(folder.glob(f"**/{FOLDER}/{HEADER}")) if folder.is_dir() else []
    if len(found) != 1:
        what = f"{len(found)} recordings lie" if found else "no recording lies"
        raise RequestError(
            f"{what} at or below {folder}",
            hint=f"give the folder that holds a {HEADER}, or the OPPROF_* above it",
        )
    return found[0].parent


def _header(folder: Path) -> dict[str, Any]:
    where = str(folder / HEADER)
    header = load_json(folder / HEADER, most=JSON_BYTES)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError("this is not the header of a recording", where=where)
    if header.get("version") != VERSION:
        raise InputError(
            f"this recording has version {cut(header.get('version'))}, and this program reads {VERSION}",
            where=where,
            hint="replay the dispatch again, or open it with the program that wrote it",
        )
    return header


def _opened(folder: Path, header: dict[str, Any]) -> Recording:
    import numpy as np

    count = int(header["instructions"])
    columns: dict[str, Any] = {
        name: _column(folder, name, kind, count) for name, kind in COLUMNS.items() if name not in _DERIVED
    }
    parts: dict[str, Any] = {
        name: _column(folder, name, kind, count) for name, kind in OPERAND_COLUMNS.items()
    }
    parts |= {name: _column(folder, name, kind, None) for name, kind in _TABLES.items()}
    operands = Operands(**parts, ops=_texts(header["ops"]))
    columns |= {name: np.empty(count, np.int64) for name in _DERIVED}
    for begin in range(0, count, PIECE):
        here = slice(begin, begin + PIECE)
        for place, name in enumerate(_DERIVED):
            columns[name][here] = (operands.times[here, place] + 500) // 1000
    instructions = Instructions(
        cores=_texts(header["cores"]),
        names=_texts(header["names"]),
        stacks=_texts(header["stacks"]),
        detail=Details(operands),
        operands=operands,
        **columns,
    )
    for _, part in pieces(instructions):
        _check_indices(part, count, folder)
    _check_tables(operands, folder)
    sources = {}
    for number, name in enumerate(_texts(header["sources"])):
        with _readable(folder / f"source{number}.txt") as file:
            sources[name] = read_regular(file, most=JSON_BYTES)
    trace = Trace(
        instructions,
        float(header["mhz"]),
        str(header["soc_version"]),
        sources,
        tuple(
            Counter(
                str(each["name"]),
                np.array(each["micros"], np.float64),
                np.array(each["megabytes_per_second"], np.float64),
            )
            for each in header["counters"]
        ),
        path=folder,
        origin=FOLDER,
        memory=_read_fact(MemoryUse, header.get("memory")),
        launch=_read_fact(Launch, header.get("launch")),
        confidence=_read_fact(Confidence, header.get("confidence")),
    )
    facts: dict[str, Any] = {
        name: tuple(header[name]) for name in ("kernels", "arguments", "checks", "findings")
    }
    if not all(isinstance(one["slot"], int) and isinstance(one["tier"], str) for one in facts["arguments"]):
        raise ValueError("arguments with a slot and a tier")
    facts |= {name: dict(header[name]) for name in ("chip", "about", "versions")}
    return Recording(trace, **facts)


def _fact(value: Any) -> dict[str, Any] | None:
    return None if value is None else asdict(value)


def _read_fact(kind: type[_F], value: Any) -> _F | None:
    """One of the header's small facts; recordings of earlier programs lack them."""
    if value is None:
        return None
    import msgspec

    try:
        return msgspec.convert(value, prepared(kind))
    except msgspec.ValidationError as error:
        raise ValueError(f"{kind.__name__}: {error}") from None


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("a list of texts")
    return tuple(values)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[Path]:
    try:
        yield path
    except _UNREADABLE as error:
        what = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot be read: {what}", where=str(path), hint="the recording is damaged or was copied in part"
        ) from error


def _column(folder: Path, name: str, kind: Any, count: int | None) -> NDArray[Any]:
    import numpy as np

    path = _file(folder, name)
    with _readable(path):
        # mapping an empty file is an error, and a copy is quicker for small ones
        with open_regular(path) as file:
            small = os.fstat(file.fileno()).st_size < 1 << 22
        # as plain arrays: the class of mapped ones makes every single access ten times slower
        values = np.asarray(np.load(path, mmap_mode=None if small else "r", allow_pickle=False))
    shape: tuple[int, ...] = (len(values) if values.ndim else -1,) if count is None else (count,)
    if name == "times":
        shape = (*shape, 3)
    if values.dtype != np.dtype(kind) or values.shape != shape:
        raise InputError(
            f"holds {values.dtype} {list(values.shape)} instead of {np.dtype(kind)} {list(shape)}",
            where=str(path),
            hint="the recording is damaged or was copied in part",
        )
    return values


def _check_indices(instructions: Instructions, rows: int, folder: Path) -> None:
    """Every number that stands for a row of a table stands for one that is there; of a stream of `rows`."""
    import numpy as np

    operands = instructions.operands
    assert operands is not None
    ends = operands.first.astype(np.int64) + operands.count
    for name, values, limit in (
        ("core", instructions.core, len(instructions.cores)),
        ("name", instructions.name, len(instructions.names)),
        ("stack", instructions.stack, len(instructions.stacks)),
        ("partner", instructions.partner, rows),
        ("geometry", operands.geometry, len(operands.geometries)),
        ("call", operands.call, len(operands.calls)),
        ("first", ends, len(operands.rows) + 1),
    ):
        _check_index(values, limit, folder, name)


def _check_index(values: NDArray[Any], limit: int, folder: Path, name: str) -> None:
    import numpy as np

    if not len(values):
        return
    # NONE, the largest number of its type, has 0 behind it
    largest = int((values + np.uint32(1)).max()) - 1 if values.dtype == np.uint32 else int(values.max())
    if largest >= limit or (values.dtype.kind == "i" and int(values.min()) < -1):
        raise InputError(
            f"names row {largest} of a table of {limit}",
            where=str(_file(folder, name)),
            hint="the recording is damaged",
        )


def _check_tables(operands: Operands, folder: Path) -> None:
    import numpy as np

    for begin in range(0, len(operands.rows), PIECE):
        part = operands.rows[begin : begin + PIECE]
        _check_index(
            part["footprint"].astype(np.int64), len(operands.footprints), folder, "rows"
        )  # never NONE
        _check_index(part["tile"], len(operands.tiles), folder, "rows")
    _check_index(operands.calls["tiles"], len(operands.lists), folder, "calls")
    if has_endless_operand(operands.footprints):
        raise InputError(
            f"an operand has more than {OPERAND_PIECES:,} pieces",
            where=str(_file(folder, "footprints")),
            hint="the recording is damaged",
        )
