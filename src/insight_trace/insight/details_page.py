"""The blocks behind Insight's Details and Cache pages: their JSON as frozen types, written and read.

Fields are named as Insight reads them. A field that is unset is not written, which Insight shows as empty; what a
simulation cannot know is left out that way (docs/insight-details.md). Insight reads numbers as text, except in
`CacheLines` and `StallReasons`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import UNSET, Struct, UnsetType

from insight_trace.errors import InputError
from insight_trace.insight.added_events import Spans
from insight_trace.insight.container import BlockType, blocks_of
from insight_trace.reading import open_regular, prepared

NA = "NA"  # not known, and said so
MOST_LOADS = 5000  # of the compute chart or table; Insight shows no more
MOST_CORES = 256  # of the occupancy: a core's number is one byte
MOST_VECTOR_CORES = 254  # of a vector kernel, whose cores Insight draws in pairs
MICROSECONDS, INSTRUCTIONS, BYTES, PERCENT = range(4)  # units of a `Load`


class BlockRow(Struct, frozen=True):
    """A row of the table of blocks."""

    value: list[str]


class BlockTable(Struct, frozen=True):
    head_name: list[str]
    row: list[BlockRow]
    size: list[int]


class BaseInfo(Struct, frozen=True):
    """Name, kind, duration and the durations of blocks. Mixes have their table under another key."""

    name: str
    op_type: str  # vector, cube or mix
    block_dim: int
    duration: float  # microseconds
    soc: str = ""
    block_detail: BlockTable | UnsetType = UNSET
    mix_block_detail: BlockTable | UnsetType = UNSET


class Load(Struct, frozen=True):
    """One bar (percent, with the cycles behind it) or one row of a table."""

    block_id: str
    block_type: str  # one table each: cube0, vector0, …
    name: str
    unit: int
    value: float | int | str
    origin_value: int | UnsetType = UNSET  # cycles


class ComputeLoad(Struct, frozen=True):
    """Compute workload, as bars or as tables. Only its block ids make the memory pages appear."""

    subblock_detail: list[Load]


class PathLoad(Struct, frozen=True):
    """An arrow of the memory graph."""

    memory_path: int
    bandwidth: float  # GiB a second over the operator's duration
    request: int
    peak_ratio: float | str  # percent of the path's ceiling
    display: int = 1


class L2Use(Struct, frozen=True):
    hit: int
    miss: int
    total_request: int
    hit_ratio: float  # percent


class UnitUse(Struct, frozen=True):
    cycle: int
    total_cycles: int
    ratio: float  # percent


class MemoryGraph(Struct, frozen=True):
    """The graph of one block; advice stands under the compute chart."""

    core_no: str  # = block_id
    op_type: str
    soc: str  # which graph is drawn: 910B or 910A5
    advice: list[str]
    memory_unit: list[PathLoad]
    L2cache: L2Use | UnsetType = UNSET
    Cube: UnitUse | UnsetType = UNSET
    Vector: UnitUse | UnsetType = UNSET
    Vector1: UnitUse | UnsetType = UNSET


class MemoryGraphs(Struct, frozen=True):
    core_memory_map: list[MemoryGraph]


class NamedRow(Struct, frozen=True):
    name: str
    value: list[str]


class MemoryTable(Struct, frozen=True):
    table_name: str
    header_name: list[str]  # the first is replaced by the table's name
    row: list[NamedRow]
    size: list[int]


class BlockTables(Struct, frozen=True):
    block_id: str
    table_op_type: str
    advice: list[str]
    table_detail: list[MemoryTable]


class MemoryTables(Struct, frozen=True):
    table_per_block: list[BlockTables]


class SubCore(Struct, frozen=True):
    subcore_id: int
    subcore_type: str  # cube or vector
    cycles: int
    throughput: int  # bytes to and from global memory
    L2cache_hit_rate: float | UnsetType = UNSET  # percent


class CoreLoad(Struct, frozen=True):
    core_id: int  # 0 to 255
    core_detail: list[SubCore]


class Occupancy(Struct, frozen=True):
    """Cores beside each other. Of a vector kernel Insight pairs entries two by two."""

    soc: str
    op_type: str
    advice: str
    op_detail: list[CoreLoad]


class Roof(Struct, frozen=True):
    bw: float  # TB/s
    bw_name: str
    computility: float  # TOps/s
    computility_name: str
    point: list[float]  # operations per byte, TOps/s
    ratio: float  # reached of what this roof allows


class RoofChart(Struct, frozen=True):
    title: str
    rooflines: list[Roof]


class Roofline(Struct, frozen=True):
    """Shown only beside a `BaseInfo`."""

    advice: str
    multiple_rooflines: list[RoofChart]


class StallReasons(Struct, frozen=True):
    top_stall_reason_table: dict[str, int]


class LineUse(Struct, frozen=True, rename={"value": "Value", "range_": "Address Range"}):
    value: tuple[int, float]  # count, and its share of hits and misses
    range_: list[tuple[str, str]]  # addresses of instructions, inclusive


class CacheLine(Struct, frozen=True, rename={"id": "Cacheline Id", "hit": "Hit", "miss": "Miss"}):
    id: int
    hit: LineUse
    miss: LineUse


class CacheLines(Struct, frozen=True, rename={"records": "Cacheline Records"}):
    """One cell each, 128 in a row."""

    records: list[CacheLine]


class DetailsPage(msgspec.Struct, frozen=True):
    """What fills the Details and the Cache page, None leaves a section away; and lanes above the pipes."""

    base: BaseInfo | None = None
    compute_bars: ComputeLoad | None = None
    compute_rows: ComputeLoad | None = None
    memory_graphs: MemoryGraphs | None = None
    memory_tables: MemoryTables | None = None
    occupancy: Occupancy | None = None
    roofline: Roofline | None = None
    cache: CacheLines | None = None
    stalls: StallReasons | None = None
    spans: tuple[Spans, ...] = ()


# In the order in which the vendor's own profiler writes them.
DETAILS: dict[BlockType, tuple[str, type[Struct]]] = {
    BlockType.BASE_INFO: ("base", BaseInfo),
    BlockType.COMPUTE_BARS: ("compute_bars", ComputeLoad),
    BlockType.COMPUTE_ROWS: ("compute_rows", ComputeLoad),
    BlockType.MEMORY_GRAPH: ("memory_graphs", MemoryGraphs),
    BlockType.MEMORY_TABLE: ("memory_tables", MemoryTables),
    BlockType.OCCUPANCY: ("occupancy", Occupancy),
    BlockType.ROOFLINE: ("roofline", Roofline),
    BlockType.CACHE_LINES: ("cache", CacheLines),
    BlockType.STALL_REASONS: ("stalls", StallReasons),
}


def details_blocks(page: DetailsPage) -> list[tuple[BlockType, bytes]]:
    """The blocks of a page, as they stand in a container."""
    found = []
    for type_, (name, _) in DETAILS.items():
        content = getattr(page, name)
        if content is not None:
            found.append((type_, msgspec.json.encode(content)))
    return found


def read_details(path: Path) -> DetailsPage:
    """The page of a `visualize_data.bin`, ours or one that a board gave; numbers may be text there.

    Of several blocks of a type the first counts, as for Insight.
    """
    content: dict[str, Struct] = {}
    with open_regular(path) as file:
        for block in blocks_of(path):
            name, kind = DETAILS.get(block.type, ("", Struct))  # type: ignore[call-overload]
            if not name or name in content:
                continue
            try:
                content[name] = msgspec.json.decode(block.read(file), type=prepared(kind), strict=False)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                where = f"{path} offset {block.offset} {BlockType(block.type).name}"
                raise InputError(f"not what Insight reads there: {error}", where=where) from error
    return DetailsPage(**content)  # type: ignore[arg-type]
