"""Reads an Insight directory, ours or the vendor's, new or old, back into instruction columns."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from msgspec.structs import replace

from insight_trace.errors import InputError, RequestError
from insight_trace.insight.assemble import assemble
from insight_trace.insight.container import LARGEST_FILE, Block, BlockType, blocks_of
from insight_trace.insight.locate import find_simulator, find_simulators
from insight_trace.insight.metrics import Metrics, metrics_of_csvs, metrics_of_table
from insight_trace.insight.read_columns import EventColumns
from insight_trace.limits import TABLE_BYTES
from insight_trace.model import Trace
from insight_trace.reading import open_regular
from insight_trace.recording.store import HEADER, beside, has_recording, open_recording


def open_trace(path: str | Path, *, mhz: float | None = None, recorded: bool = True) -> Trace:
    """Opens a bin, a trace.json, a `simulator/`, an `OPPROF_*` or a folder above one.

    A folder that has a recording of ours beside its `simulator/` is read from that, unless `recorded` is False
    or a clock is given; `Trace.origin` says what was read.
    Files hold microseconds; `mhz` is the clock that turns them into cycles. It is worked out from the tables
    or from the times themselves when it is not given.
    """
    path = Path(path)
    if not path.exists():
        raise RequestError(f"{path} does not exist", hint="give an Insight directory or a file from one")
    try:
        return _open(path, mhz, recorded and mhz is None)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from error


def _open(path: Path, mhz: float | None, recorded: bool) -> Trace:
    if path.is_dir():
        if recorded and (path / HEADER).is_file():
            return open_recording(path).trace
        if recorded and not find_simulators(path) and has_recording(path):  # of `replay --no-insight`
            return open_recording(path).trace
        directory = find_simulator(path)
        bin_ = directory / "visualize_data.bin"
        if recorded and (beside(directory) / HEADER).is_file():
            trace = open_recording(beside(directory)).trace
            return replace(trace, path=bin_ if bin_.is_file() else directory / "trace.json")
        if bin_.is_file() and any(block.type == BlockType.TRACE for block in _blocks(bin_)):
            return _open_bin(bin_, mhz)
        return _open_json(directory / "trace.json", mhz)
    if path.suffix == ".json":
        return _open_json(path, mhz)
    return _open_bin(path, mhz)


def _blocks(path: Path) -> list[Block]:
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise InputError(f"{size >> 30} GiB are more than MindStudio Insight opens (20 GiB)", where=str(path))
    return blocks_of(path)


def _open_bin(path: Path, mhz: float | None) -> Trace:
    blocks = _blocks(path)
    traces = [block for block in blocks if block.type == BlockType.TRACE]
    if not traces:
        raise InputError(
            "there is no TRACE block",
            where=str(path),
            hint="an on-board result has no instruction timeline; give one of `msprof op simulator`",
        )
    gathered = EventColumns()
    sources: dict[str, bytes] = {}
    metrics: Metrics | None = None
    with open_regular(path) as file:
        for block in traces:
            where = f"{path} TRACE at offset {block.offset}"
            gathered.read(file, block.start, block.size, where)
            if block.truncated:
                gathered.warnings.append(f"{where}: the file ends inside the block")
        for block in blocks:
            if block.type == BlockType.SOURCE and not block.truncated:
                sources.setdefault(block.path, block.read(file))
            elif block.type == BlockType.API_INSTR and metrics is None:
                metrics = _table(file, block, path, gathered.warnings)
    if metrics is None:
        metrics = _csvs(path.parent, gathered.warnings)
    return replace(assemble(gathered, metrics, sources, mhz, path), origin=path.name)


def _table(file: IO[bytes], block: Block, path: Path, warnings: list[str]) -> Metrics | None:
    where = f"{path} API_INSTR at offset {block.offset}"
    if block.truncated or block.size > TABLE_BYTES:
        warnings.append(f"{where}: cut off or too large, its numbers are missing")
        return None
    try:
        return metrics_of_table(block.read(file), where)
    except InputError as error:
        warnings.append(str(error))
        return None


def _csvs(directory: Path, warnings: list[str]) -> Metrics | None:
    try:
        return metrics_of_csvs(directory)
    except (InputError, OSError) as error:
        warnings.append(str(error))
        return None


def _open_json(path: Path, mhz: float | None) -> Trace:
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise InputError(f"{size >> 30} GiB are more than MindStudio Insight opens (20 GiB)", where=str(path))
    gathered = EventColumns(default_core=path.parent.name)
    with open_regular(path) as file:
        gathered.read(file, 0, size, str(path))
    metrics: Metrics | None = None
    sources: dict[str, bytes] = {}
    for directory in (path.parent, path.parent.parent):
        neighbour = directory / "visualize_data.bin"
        if neighbour.is_file():
            try:
                with open_regular(neighbour) as file:
                    for block in _blocks(neighbour):
                        if block.type == BlockType.API_INSTR and metrics is None:
                            metrics = _table(file, block, neighbour, gathered.warnings)
                        elif block.type == BlockType.SOURCE and not block.truncated:
                            sources.setdefault(block.path, block.read(file))
            except InputError as error:
                gathered.warnings.append(str(error))
            break
    if metrics is None:
        metrics = _csvs(path.parent, gathered.warnings)
    return replace(assemble(gathered, metrics, sources, mhz, path), origin=path.name)
