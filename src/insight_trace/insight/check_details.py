"""Checks the blocks of the Details and Cache pages, as the server of MindStudio Insight parses them.

It looks at nothing before the page is opened; then a list where it expects an object ends the server, and a missing
list leaves a section empty without a word.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from insight_trace.insight.check_container import read_table
from insight_trace.insight.container import Block, BlockType
from insight_trace.insight.details_page import MOST_CORES, MOST_LOADS, MOST_VECTOR_CORES
from insight_trace.insight.rules import Broken

# The list that each block is made of; lists inside of its objects follow in _INNER.
_LISTS = {
    BlockType.COMPUTE_BARS: "subblock_detail",
    BlockType.COMPUTE_ROWS: "subblock_detail",
    BlockType.MEMORY_GRAPH: "core_memory_map",
    BlockType.MEMORY_TABLE: "table_per_block",
    BlockType.OCCUPANCY: "op_detail",
    BlockType.ROOFLINE: "multiple_rooflines",
    BlockType.CACHE_LINES: "Cacheline Records",
}
_INNER = {
    "core_memory_map": "memory_unit",
    "table_per_block": "table_detail",
    "table_detail": "row",
    "op_detail": "core_detail",
    "multiple_rooflines": "rooflines",
}
_ALL = (BlockType.BASE_INFO, *_LISTS, BlockType.STALL_REASONS)
_TITLES = frozenset(
    {
        *("Memory Unit", "HBM/L2", "GM/L2", "Memory Unit(Cube)", "Memory Unit(Vector)"),
        *("Memory Pipe Cube", "Memory Pipe Vector", "Memory Transfer(Cube)", "Memory Transfer(Vector)"),
        *("Pipe Line Cube", "Pipe Line Vector", "Pipeline(Cube)", "Pipeline(Vector)"),
    }
)
# Arrows that any memory graph of a chip draws.
_GRAPHS = {
    "910B": frozenset((*range(20), *range(35, 39))),
    "910A5": frozenset((0, 1, 2, *range(6, 9), *range(12, 20), *range(37, 56))),
}
_SECOND_UB, _FROM_DCACHE = {45, 47}, 50  # paths of the 950's later graph, which path 50 chooses
_KINDS = ("mix", "vector", "cube", "AiCore")
_MOST_MEMORY_ROWS, _MOST_BLOCKS, _MOST_ROOFS = 1000, 10_000, 100
_UNITS = range(4)


def check_details(path: Path, blocks: Mapping[int, Block]) -> list[Broken]:
    """Every rule of these pages that is broken; `blocks` are the first of each type."""
    broken: list[Broken] = []
    found: dict[BlockType, dict[str, Any]] = {}
    for type_ in _ALL:
        block = blocks.get(type_)
        if block is None or block.truncated:
            continue
        table, problems = read_table(path, block)
        broken += [Broken("details-kinds", each.where, each.what) for each in problems]
        if table is None:
            continue
        where = f"{path} {type_.name}"
        wrong = list(_shape(type_, table, where))
        broken += wrong
        if not wrong:
            found[type_] = table
    for type_, table in found.items():
        broken += list(_CHECKS[type_](table, f"{path} {type_.name}")) if type_ in _CHECKS else []
    return broken + _together(path, found)


def _shape(type_: BlockType, table: dict[str, Any], where: str) -> Iterator[Broken]:
    if type_ is BlockType.BASE_INFO:
        yield from _base(table, where)
        return
    if type_ is BlockType.STALL_REASONS:
        if not isinstance(table.get("top_stall_reason_table"), dict):
            yield Broken("details-required", where, "top_stall_reason_table is no object")
        return
    name = _LISTS[type_]
    if not isinstance(table.get(name), list):
        yield Broken("details-required", where, f"{name} is no list: the section stays empty")
        return
    yield from _objects(table[name], name, where)


def _objects(items: list[Any], name: str, where: str) -> Iterator[Broken]:
    """Elements that are no objects end the server."""
    inner = _INNER.get(name)
    for number, item in enumerate(items):
        place = f"{where} {name}[{number}]"
        if not isinstance(item, dict):
            yield Broken("details-kinds", place, "is no object: the server ends when the page is opened")
        elif inner is not None and isinstance(item.get(inner), list):
            yield from _objects(item[inner], inner, place)
        elif inner is not None:
            yield Broken("details-required", place, f"{inner} is no list: nothing of it is shown")


def _base(table: dict[str, Any], where: str) -> Iterator[Broken]:
    mix = table.get("op_type") == "mix"
    if not mix and "mix_block_detail" in table and "block_detail" not in table:
        yield Broken("details-base", where, "mix_block_detail without op_type mix ends the server")
    for name in ("block_detail", "mix_block_detail"):
        if name not in table:
            continue
        detail = table[name]
        if not isinstance(detail, dict):
            yield Broken("details-kinds", f"{where} {name}", "is no object")
            continue
        rows = detail.get("row")
        if not isinstance(rows, list):
            yield Broken("details-tables", f"{where} {name}", "row is no list: the table stays empty")
            continue
        if len(rows) > _MOST_BLOCKS:
            yield Broken("details-tables", f"{where} {name}", f"of {len(rows)} rows {_MOST_BLOCKS} are shown")
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                yield Broken("details-kinds", f"{where} {name} row[{number}]", "is no object")
            elif _length(row.get("value")) != _length(detail.get("head_name")):
                what = "has another number of cells than head_name, and columns shift"
                yield Broken("details-tables", f"{where} {name} row[{number}]", what)


def _loads(table: dict[str, Any], where: str) -> Iterator[Broken]:
    entries = table["subblock_detail"]
    if len(entries) > MOST_LOADS:
        yield Broken("details-tables", where, f"of {len(entries)} entries {MOST_LOADS} of a block are shown")
    for number, item in enumerate(entries):
        place = f"{where} subblock_detail[{number}]"
        if _number(item.get("unit", 0)) not in _UNITS:
            yield Broken("details-numbers", place, f"unit {item.get('unit')!r} has no title")
        if item.get("value") != "NA" and math.isnan(_number(item.get("value"))):
            yield Broken("details-numbers", place, f"value {item.get('value')!r} is no number and no NA")


def _graph(table: dict[str, Any], where: str) -> Iterator[Broken]:
    for number, item in enumerate(table["core_memory_map"]):
        place = f"{where} core_memory_map[{number}]"
        soc, kind = str(item.get("soc", "")), item.get("op_type")
        if (soc not in _GRAPHS and "310" not in soc) or kind not in _KINDS:
            yield Broken("details-graph", place, f"no graph is drawn for {soc!r} and {kind!r}")
        if not isinstance(item.get("advice", []), list):
            yield Broken("details-advice", place, "advice is no list and is not shown")
        for name in ("L2cache", "Cube", "Vector", "Vector1"):
            if not isinstance(item.get(name, {}), dict):
                yield Broken("details-kinds", f"{place} {name}", "is no object and is not shown")
        drawn = [_number(unit.get("memory_path")) for unit in item["memory_unit"]]
        for path in sorted({each for each in drawn if drawn.count(each) > 1 or each != each}):
            yield Broken("details-graph", place, f"path {path:g} comes twice or is no number")
        for path in sorted(set(drawn) - _GRAPHS.get(soc, set(drawn))):
            yield Broken("details-graph", place, f"no arrow is drawn for path {path:g}")
        if soc == "910A5" and _SECOND_UB & set(drawn) and _FROM_DCACHE not in drawn:
            yield Broken(
                "details-graph", place, "labels of paths 45 and 47 land on L2 where path 50 is absent"
            )


def _memory(table: dict[str, Any], where: str) -> Iterator[Broken]:
    for number, item in enumerate(table["table_per_block"]):
        if not isinstance(item.get("advice", []), list):
            yield Broken(
                "details-advice", f"{where} table_per_block[{number}]", "advice is no list and is not shown"
            )
        tables = item["table_detail"]
        if (rows := sum(len(each["row"]) for each in tables)) > _MOST_MEMORY_ROWS:
            what = f"of {rows} rows {_MOST_MEMORY_ROWS} are shown"
            yield Broken("details-tables", f"{where} table_per_block[{number}]", what)
        for place, each in enumerate(tables):
            cells = {1 + _length(row.get("value")) for row in each["row"]}
            if cells - {_length(each.get("header_name"))}:
                what = "rows have another number of cells than header_name, less its first"
                yield Broken(
                    "details-tables", f"{where} table_per_block[{number}] table_detail[{place}]", what
                )


def _occupancy(table: dict[str, Any], where: str) -> Iterator[Broken]:
    if not isinstance(table.get("advice", ""), str):
        yield Broken("details-advice", where, "advice is not one text and is not shown")
    for number, item in enumerate(table["op_detail"]):
        if not _is_count(item.get("core_id"), MOST_CORES):
            what = f"core_id {item.get('core_id')!r} is not 0 to {MOST_CORES - 1} and becomes another"
            yield Broken("details-numbers", f"{where} op_detail[{number}]", what)
        for each, part in enumerate(item["core_detail"]):
            place = f"{where} op_detail[{number}] core_detail[{each}]"
            kind = str(part.get("subcore_type", "")).lower()
            if (kind, _number(part.get("subcore_id"))) not in {("cube", 0), ("vector", 0), ("vector", 1)}:
                yield Broken("details-numbers", place, "is not cube 0, vector 0 or vector 1 and is not drawn")
            for name in ("cycles", "throughput"):
                if not _is_count(part.get(name)):
                    what = f"{name} {part.get(name)!r} is no count and becomes another"
                    yield Broken("details-numbers", place, what)
    if table.get("op_type") == "vector" and len(table["op_detail"]) > MOST_VECTOR_CORES:
        what = f"of {len(table['op_detail'])} cores {MOST_VECTOR_CORES} are drawn"
        yield Broken("details-tables", where, what)


def _roofs(table: dict[str, Any], where: str) -> Iterator[Broken]:
    if not isinstance(table.get("advice", ""), str):
        yield Broken("details-advice", where, "advice is not one text and is not shown")
    for number, chart in enumerate(table["multiple_rooflines"]):
        place = f"{where} multiple_rooflines[{number}]"
        if chart.get("title") not in _TITLES:
            yield Broken("details-titles", place, f"a chart called {chart.get('title')!r} is not drawn")
        if len(chart["rooflines"]) > _MOST_ROOFS:
            what = f"of {len(chart['rooflines'])} lines {_MOST_ROOFS} are drawn"
            yield Broken("details-tables", place, what)
        for line, roof in enumerate(chart["rooflines"]):
            point = roof.get("point")
            numbers = [roof.get("bw"), roof.get("computility"), *(point if isinstance(point, list) else [])]
            if len(numbers) != 4 or not all(_number(each) > 0 for each in numbers):
                what = "bw, computility and two coordinates above 0 are needed, or the line vanishes"
                yield Broken("details-numbers", f"{place} rooflines[{line}]", what)


def _stalls(table: dict[str, Any], where: str) -> Iterator[Broken]:
    for name, count in table["top_stall_reason_table"].items():
        if type(count) is not int:
            yield Broken("details-numbers", f"{where} {name}", f"{count!r} is no integer and is skipped")


def _cache(table: dict[str, Any], where: str) -> Iterator[Broken]:
    for number, item in enumerate(table["Cacheline Records"]):
        for side in ("Hit", "Miss"):
            value = item.get(side, {}).get("Value") if isinstance(item.get(side), dict) else None
            if not (
                isinstance(value, list) and len(value) == 2 and all(type(v) in (int, float) for v in value)
            ):
                what = f"{side} needs a count and a ratio as JSON numbers, or the cell vanishes"
                yield Broken("details-numbers", f"{where} Cacheline Records[{number}]", what)


_CHECKS = {
    BlockType.COMPUTE_BARS: _loads,
    BlockType.COMPUTE_ROWS: _loads,
    BlockType.MEMORY_GRAPH: _graph,
    BlockType.MEMORY_TABLE: _memory,
    BlockType.OCCUPANCY: _occupancy,
    BlockType.ROOFLINE: _roofs,
    BlockType.STALL_REASONS: _stalls,
    BlockType.CACHE_LINES: _cache,
}


def _together(path: Path, found: Mapping[BlockType, dict[str, Any]]) -> list[Broken]:
    """Rules between blocks."""
    broken = []
    if BlockType.ROOFLINE in found and BlockType.BASE_INFO not in found:
        broken.append(Broken("details-base", str(path), "ROOFLINE without BASE_INFO is not shown"))
    listed = {
        str(item.get("block_id"))
        for type_ in (BlockType.COMPUTE_BARS, BlockType.COMPUTE_ROWS)
        for item in found.get(type_, {}).get("subblock_detail", [])
    }
    for type_, key in ((BlockType.MEMORY_GRAPH, "core_no"), (BlockType.MEMORY_TABLE, "block_id")):
        ids = [str(item.get(key)) for item in found.get(type_, {}).get(_LISTS[type_], [])]
        if len(set(ids)) != len(ids):
            what = f"a {key} comes twice, and the first is shown"
            broken.append(Broken("details-blocks", f"{path} {type_.name}", what))
        for item in found.get(type_, {}).get(_LISTS[type_], []):
            if str(item.get(key)) not in listed:
                what = f"{key} {item.get(key)!r} is no block of the compute pages and cannot be chosen"
                broken.append(Broken("details-blocks", f"{path} {type_.name}", what))
    return broken


def _length(value: Any) -> int:
    """Of a list; -1 for anything else."""
    return len(value) if isinstance(value, list) else -1


def _is_count(value: Any, past: int = 1 << 63) -> bool:
    return 0 <= (number := _number(value)) < past and number == int(number)


def _number(value: Any) -> float:
    """A number, or text that is one; not a number otherwise."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
