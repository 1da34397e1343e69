"""Insight's Details page of a replay: every number is one of `stats --json`, and nothing ends Insight's server."""

import json
import re
import shutil
from collections import Counter, defaultdict

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from insight_made_up import small_trace
from insight_replays import EXAMPLES, KERNELS, MORE, REPLAYS, Replayed

from insight_trace import simulate
from insight_trace.__main__ import main
from insight_trace.errors import InputError
from insight_trace.insight import RULES, validate, write_insight_directory
from insight_trace.insight import details_page as page
from insight_trace.insight.container import BlockType, write_block
from insight_trace.insight.details_page import DETAILS, DetailsPage, details_blocks, read_details
from insight_trace.model import CoreType, Kernel
from insight_trace.replay.pipeline import make_trace, recording_of
from insight_trace.trace.details_figures import details_of

MOST_ROWS = 16  # of a compute table that Insight shows without cutting it off

everything = pytest.mark.parametrize("name", [*REPLAYS, *MORE])


def _stats(run, capsys):
    capsys.readouterr()
    assert main(["stats", str(run.directory), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _check(run, figures):
    found = read_details(run.bin)
    assert all(getattr(found, name) is not None for name in ("base", "compute_bars", "compute_rows"))
    cycles = {core["core"]: core["cycles"] for core in figures["cores"]}
    pipes = {(pipe["core"], pipe["pipe"]): pipe for pipe in figures["pipes"]}
    mhz, duration = figures["mhz"], figures["micros"]
    assert found.base.duration == round(duration, 3)
    table = found.base.block_detail or found.base.mix_block_detail
    assert len(table.row) == found.base.block_dim == len({core.partition(".")[0] for core in cycles})
    durations = sorted(f"{round(count / mhz, 3):g}" for count in cycles.values())
    shown = [cell for row in table.row for cell in row.value[1:] if cell not in ("vector", "cube", "NA")]
    assert sorted(shown) == durations

    # compute workload: busy cycles and instructions of every pipe, one row each; data to and from global memory
    bars = [load for load in found.compute_bars.subblock_detail if load.name not in ("Cube FP", "Cube INT")]
    assert sorted(load.origin_value for load in bars) == sorted(pipe["busy"] for pipe in pipes.values())
    shares = sorted(round(100 * pipe["busy"] / cycles[core], 2) for (core, _), pipe in pipes.items())
    assert sorted(load.value for load in bars) == shares
    rows = found.compute_rows.subblock_detail
    of_types = re.compile(r"Cube (FP|INT)|Vector (S32|FP32|FP16|S16|Misc)")
    counts = [
        load.value for load in rows if load.unit == page.INSTRUCTIONS and not of_types.fullmatch(load.name)
    ]
    assert sorted(counts) == sorted(pipe["instructions"] for pipe in pipes.values())
    waits = [load.value for load in rows if load.name in ("Cube Wait", "Vector Wait")]
    units = [pipe["waiting"] for (_, name), pipe in pipes.items() if name in ("CUBE", "VECTOR")]
    assert sorted(waits) == sorted(round(waiting / mhz, 3) for waiting in units)
    moved = sum(load.value for load in rows if load.unit == page.BYTES)
    assert moved == sum(path["bytes"] for path in figures["paths"] if "GM" in path["path"])
    assert max(Counter((load.block_id, load.block_type) for load in rows).values()) <= MOST_ROWS

    # memory: sums over blocks are the run's
    traffic = {path["path"]: path for path in figures["traffic"]}
    asked = sum(path["requests"] for path in traffic.values())
    missed = sum(path["missed"] for path in traffic.values())
    uses = [graph.L2cache for graph in found.memory_graphs.core_memory_map if graph.L2cache]
    assert sum(use.total_request for use in uses) == asked
    assert sum(use.miss for use in uses) == missed
    totals = defaultdict(int)
    for path in figures["paths"]:
        totals[path["path"]] += path["bytes"]
    assert {path: totals[path] for path in traffic} == {path: item["bytes"] for path, item in traffic.items()}
    for tables in found.memory_tables.table_per_block:
        for each in tables.table_detail:
            if each.table_name.startswith("Paths"):
                for row in each.row:
                    rate = int(row.value[0]) / (duration * 1e-6) / 2**30
                    assert float(row.value[2]) == pytest.approx(rate, rel=1e-3, abs=1e-3)

    # occupancy: cycles and bytes of every core
    cores = [core for load in found.occupancy.op_detail for core in load.core_detail]
    assert sorted(core.cycles for core in cores) == sorted(cycles.values())
    assert sum(core.throughput for core in cores) == sum(item["bytes"] for item in traffic.values())

    # roofline: the achieved rate is the run's
    if figures["arithmetic"]:
        reached = {round(item["giga_per_s"] / 1e3, 9) for item in figures["arithmetic"]}
        charts = found.roofline.multiple_rooflines
        assert {round(roof.point[1], 9) for chart in charts for roof in chart.rooflines} == reached
        assert all(0 < roof.ratio <= 1.05 for chart in charts for roof in chart.rooflines)

    # stalls are the waits, and the cycles of bank conflicts
    reasons = dict(found.stalls.top_stall_reason_table) if found.stalls else {}
    conflicts = reasons.pop("UB bank conflicts (cycles)", 0)
    assert conflicts == figures["conflict_cycles"]
    assert sum(reasons.values()) == sum(wait["cycles"] for wait in figures["waits"])

    # the cache map: every request to L2 once, by line
    cells = [cell for cell in found.cache.records if cell.id >= 0]
    assert len(found.cache.records) % 128 == 0
    assert sum(cell.hit.value[0] + cell.miss.value[0] for cell in cells) == asked
    assert sum(cell.miss.value[0] for cell in cells) == missed
    for cell in cells:
        used = cell.hit.value[0] + cell.miss.value[0] > 0  # of a folded map some sets are not
        assert cell.hit.value[1] + cell.miss.value[1] == pytest.approx(float(used))
        assert bool(cell.hit.range_) == bool(cell.hit.value[0])

    # advice stands where Insight shows it
    told = [graph.advice for graph in found.memory_graphs.core_memory_map]
    told += [tables.advice for tables in found.memory_tables.table_per_block]
    told += [[found.roofline.advice] if found.roofline else [], [found.occupancy.advice]]
    said = {text for list_ in told for text in list_}
    texts = {
        item["text"].replace("FIXPIPE", "FIXP") for item in figures["advice"]
    }  # as the Timeline calls it
    assert texts <= said | set(found.occupancy.advice.split("\n"))


@pytest.fixture(scope="module")
def gemm(tmp_path_factory):
    """A GEMM whose rows are shared out among 24 blocks: 1536 x 2048 by 2048 x 256."""
    folder = tmp_path_factory.mktemp("gemm")
    for header in (EXAMPLES / "kernels").glob("*.h"):
        shutil.copy(header, folder)
    text = (EXAMPLES / "kernels" / "tiled_matmul.cpp").read_text()
    shared_out = text.replace("int i = 0; i + kSide <= rows; i += kSide",
        "int i = kSide * get_block_idx(); i + kSide <= rows; i += kSide * get_block_num()")  # fmt: skip
    assert shared_out != text
    source = folder / "gemm.cpp"
    source.write_text(shared_out)
    values = {
        0: np.ones((1536, 2048), np.float16),
        1: np.ones((2048, 256), np.float16),
        2: np.zeros((1536, 256), np.float32),
    }
    kernel = Kernel("gemm", source, CoreType.AIC)
    done = simulate(kernel, values, block_count=24, timing_only=True)
    assert done.failure is None, done.failure
    trace = make_trace(done)
    details, recording = details_of(trace, ["gemm"], "a2a3"), recording_of(done, trace, [kernel])
    return Replayed(write_insight_directory(trace, folder, details=details, recording=recording))


def test_a_gemm_of_24_blocks_has_every_section_and_a_cache_page(gemm, capsys):
    figures = _stats(gemm, capsys)
    _check(gemm, figures)
    assert validate(gemm.directory) == []
    found = read_details(gemm.bin)
    assert all(getattr(found, name) is not None for name in DetailsPage.__struct_fields__ if name != "spans")
    assert len(found.occupancy.op_detail) == found.base.block_dim == 24
    assert [load.core_id for load in found.occupancy.op_detail] == list(range(24))
    # more than 16,384 lines: one cell for each set of L2, and no request is lost
    cells = found.cache.records
    assert [cell.id for cell in cells] == list(range(16384))
    asked = sum(path["requests"] for path in figures["traffic"])
    missed = sum(path["missed"] for path in figures["traffic"])
    assert sum(cell.hit.value[0] + cell.miss.value[0] for cell in cells) == asked
    assert sum(cell.miss.value[0] for cell in cells) == missed
    assert {chart.title for chart in found.roofline.multiple_rooflines} >= {"Pipeline(Cube)"}


@everything
def test_every_number_of_the_page_is_one_of_stats(replayed, capsys, name):
    run = replayed(name)
    assert validate(run.directory) == []
    (memory,) = run.directory.parents[2].glob("*_memory_info.json")
    assert validate(memory) == []
    _check(run, _stats(run, capsys))


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_number_of_a_kernel_alone_is_one_of_stats(run_alone, capsys, name, target):
    run = run_alone(name, target)
    assert validate(run.directory) == []
    _check(run, _stats(run, capsys))


def test_every_example_is_among_these():
    """But one: a kernel that reads other chips' windows has no replay of its own; and folders that hold no scene."""
    scenes = {scene for scene, *_ in (REPLAYS | MORE).values()}
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert folders - scenes == {
        "judge",
        "kernels",
        "own_program",
        "pypto_build",
        "several_chips",
        "two_builds",
    }


def test_every_number_of_every_kernel_of_a_build_is_one_of_stats(profiled, capsys):
    assert len(profiled) == 12
    for name, run in profiled.items():
        assert validate(run.directory) == []
        assert validate(run.directory.parents[3] / f"{name}_memory_info.json") == []
        _check(run, _stats(run, capsys))


def test_the_kinds_of_kernels_are_those_that_insight_draws(replayed):
    kinds = {
        name: read_details(replayed(name).bin) for name in ("single", "mix", "blocks", "a5", "mix on a5")
    }
    assert [found.base.op_type for found in kinds.values()] == ["vector", "mix", "vector", "vector", "mix"]
    graphs = [found.memory_graphs.core_memory_map[0].soc for found in kinds.values()]
    assert graphs == ["910B", "910B", "910B", "910A5", "910A5"]
    assert [core.core_id for core in kinds["blocks"].occupancy.op_detail] == list(range(48))


# --- written and read again --------------------------------------------------------------------------

_text = st.text(st.characters(codec="utf-8"), max_size=12)
_count = st.integers(0, 2**53)
_number = st.floats(0, 1e9, allow_nan=False)
_texts = st.lists(_text, max_size=3)
_rows = st.lists(st.builds(page.BlockRow, _texts), max_size=3)
_blocks = st.builds(page.BlockTable, _texts, _rows, st.lists(st.integers(0, 9), max_size=2))
_loads = st.builds(page.Load, _text, _text, _text, st.integers(0, 3), _number, _count)
_paths = st.builds(page.PathLoad, st.integers(0, 60), _number, _count, st.one_of(_number, st.just("NA")))
_units = st.builds(page.UnitUse, _count, _count, _number)
_graphs = st.builds(
    page.MemoryGraph,
    _text,
    _text,
    _text,
    _texts,
    st.lists(_paths, max_size=3),
    st.builds(page.L2Use, _count, _count, _count, _number),
    _units,
)
_tables = st.builds(
    page.BlockTables,
    *(_text, _text, _texts),
    st.lists(
        st.builds(
            page.MemoryTable,
            _text,
            _texts,
            st.lists(st.builds(page.NamedRow, _text, _texts), max_size=3),
            st.just([1, 2]),
        ),
        max_size=2,
    ),
)
_cores = st.builds(
    page.CoreLoad,
    st.integers(0, 255),
    st.lists(st.builds(page.SubCore, st.integers(0, 1), _text, _count, _count, _number), max_size=3),
)
_roofs = st.builds(
    page.Roof, _number, _text, _number, _text, st.lists(_number, min_size=2, max_size=2), _number
)
_uses = st.builds(page.LineUse, st.tuples(_count, _number), st.lists(st.tuples(_text, _text), max_size=2))
_charts = st.builds(page.RoofChart, _text, st.lists(_roofs, max_size=2))
_lines = st.builds(page.CacheLine, _count, _uses, _uses)
_pages = st.builds(
    DetailsPage,
    base=st.one_of(st.none(), st.builds(page.BaseInfo, _text, _text, _count, _number, _text, _blocks)),
    compute_bars=st.one_of(st.none(), st.builds(page.ComputeLoad, st.lists(_loads, max_size=3))),
    compute_rows=st.one_of(st.none(), st.builds(page.ComputeLoad, st.lists(_loads, max_size=3))),
    memory_graphs=st.one_of(st.none(), st.builds(page.MemoryGraphs, st.lists(_graphs, max_size=2))),
    memory_tables=st.one_of(st.none(), st.builds(page.MemoryTables, st.lists(_tables, max_size=2))),
    occupancy=st.one_of(st.none(), st.builds(page.Occupancy, _text, _text, _text, st.lists(_cores, max_size=3))),
    roofline=st.one_of(st.none(), st.builds(page.Roofline, _text, st.lists(_charts, max_size=2))),
    cache=st.one_of(st.none(), st.builds(page.CacheLines, st.lists(_lines, max_size=2))),
    stalls=st.one_of(st.none(), st.builds(page.StallReasons, st.dictionaries(_text, _count, max_size=3))),
)  # fmt: skip


def _container(path, blocks):
    with path.open("wb") as file:
        write_block(file, BlockType.TRACE, b'{"traceEvents":[]}')
        for type_, payload in blocks:
            write_block(file, type_, payload)
    return path


@given(_pages)
def test_any_page_comes_back_as_it_was_written(tmp_path_factory, written):
    path = _container(tmp_path_factory.mktemp("page") / "visualize_data.bin", details_blocks(written))
    assert read_details(path) == written


def test_numbers_may_be_text_and_keys_may_be_more_as_boards_write_them(tmp_path):
    payload = b'{"name":"k","op_type":"vector","block_dim":"8","duration":"1.5","pid":"7","soc":"x"}'
    path = _container(tmp_path / "visualize_data.bin", [(BlockType.BASE_INFO, payload)])
    assert read_details(path).base == page.BaseInfo("k", "vector", 8, 1.5, "x")
    path = _container(tmp_path / "other.bin", [(BlockType.STALL_REASONS, b'{"top_stall_reason_table":[]}')])
    with pytest.raises(InputError, match="STALL_REASONS"):
        read_details(path)


def _whole():
    """A page that keeps every rule."""
    load = page.Load("0", "vector", "MTE2", page.PERCENT, 1.0, 1)
    table = page.MemoryTable("Pipe", ["", "a"], [page.NamedRow("x", ["1"])], [1, 1])
    return DetailsPage(
        base=page.BaseInfo(
            "k", "vector", 1, 1.0, "Ascend910B1", page.BlockTable(["Block ID"], [page.BlockRow(["0"])], [2, 1])
        ),
        compute_bars=page.ComputeLoad([load]),
        compute_rows=page.ComputeLoad([load]),
        memory_graphs=page.MemoryGraphs([page.MemoryGraph("0", "vector", "910B", [], [page.PathLoad(12, 1.0, 1, "NA")])]),
        memory_tables=page.MemoryTables([page.BlockTables("0", "vector", [], [table])]),
        occupancy=page.Occupancy("Ascend910B1", "vector", "", [page.CoreLoad(0, [page.SubCore(0, "vector", 1, 1)])]),
        roofline=page.Roofline("", [page.RoofChart("GM/L2", [page.Roof(1.0, "GM", 1.0, "Cube", [1.0, 1.0], 1.0)])]),
        cache=page.CacheLines([page.CacheLine(0, page.LineUse((1, 1.0), []), page.LineUse((0, 0.0), []))]),
        stalls=page.StallReasons({"a": 1}),
    )  # fmt: skip


BREAKS = [
    ("details-kinds", BlockType.BASE_INFO, lambda table: [table]),
    ("details-kinds", BlockType.STALL_REASONS, lambda _table: []),
    ("details-kinds", BlockType.OCCUPANCY, lambda table: table | {"op_detail": [3]}),
    ("details-kinds", BlockType.MEMORY_GRAPH, lambda table: table | {"core_memory_map": ["x"]}),
    ("details-kinds", BlockType.ROOFLINE, lambda table: table | {"multiple_rooflines": [1]}),
    ("details-kinds", BlockType.COMPUTE_BARS, lambda table: table | {"subblock_detail": [None]}),
    ("details-kinds", BlockType.MEMORY_TABLE, lambda table: table | {"table_per_block": [[]]}),
    ("details-required", BlockType.COMPUTE_ROWS, lambda _table: {}),
    ("details-required", BlockType.OCCUPANCY, lambda table: table | {"op_detail": {}}),
    ("details-required", BlockType.STALL_REASONS, lambda _table: {"top_stall_reason_table": 3}),
    ("details-base", BlockType.BASE_INFO, lambda _table: {"op_type": "vector", "mix_block_detail": {}}),
    ("details-base", BlockType.BASE_INFO, None),
    ("details-blocks", BlockType.COMPUTE_BARS, lambda _table: {"subblock_detail": []}),
    ("details-graph", BlockType.MEMORY_GRAPH, lambda table: _first(table, "core_memory_map", soc="Ascend910B1")),
    ("details-graph", BlockType.MEMORY_GRAPH, lambda table: _first(table, "core_memory_map", op_type="MIX")),
    ("details-advice", BlockType.MEMORY_GRAPH, lambda table: _first(table, "core_memory_map", advice="x")),
    ("details-advice", BlockType.OCCUPANCY, lambda table: table | {"advice": ["x"]}),
    ("details-numbers", BlockType.OCCUPANCY, lambda table: _first(table, "op_detail", core_id=300)),
    ("details-numbers", BlockType.STALL_REASONS, lambda _table: {"top_stall_reason_table": {"a": 1.5}}),
    ("details-numbers", BlockType.CACHE_LINES, lambda table: _first(table, "Cacheline Records", Hit={"Value": ["1", 1.0]})),
    ("details-kinds", BlockType.MEMORY_GRAPH, lambda table: _first(table, "core_memory_map", Vector=[1])),
    ("details-kinds", BlockType.BASE_INFO, lambda table: _base_change(table, [1])),
    ("details-tables", BlockType.BASE_INFO, lambda table: _base_change(table, 7)),
    ("details-tables", BlockType.BASE_INFO, lambda table: _base_change(table, [{"value": []}])),
    ("details-tables", BlockType.MEMORY_TABLE, lambda table: _table_change(table, header_name=["", "a", "b"])),
    ("details-tables", BlockType.MEMORY_TABLE, lambda table: _table_change(table, row=[{"value": ["1"]}] * 1001)),
    ("details-tables", BlockType.COMPUTE_BARS, lambda table: {"subblock_detail": table["subblock_detail"] * 5001}),
    ("details-tables", BlockType.OCCUPANCY, lambda table: table | {"op_detail": table["op_detail"] * 255}),
    ("details-tables", BlockType.ROOFLINE, lambda table: _first(table, "multiple_rooflines", rooflines=[{}] * 101)),
    ("details-graph", BlockType.MEMORY_GRAPH, lambda table: _graph_change(table, 99)),
    ("details-graph", BlockType.MEMORY_GRAPH, lambda table: _graph_change(table, 45, soc="910A5")),
    ("details-graph", BlockType.MEMORY_GRAPH, lambda table: _graph_change(table, 12, 12)),
    ("details-graph", BlockType.MEMORY_GRAPH, lambda table: _first(table, "core_memory_map", memory_unit=[{}])),
    ("details-blocks", BlockType.MEMORY_GRAPH, lambda table: {"core_memory_map": table["core_memory_map"] * 2}),
    ("details-numbers", BlockType.COMPUTE_BARS, lambda table: _first(table, "subblock_detail", unit=9)),
    ("details-numbers", BlockType.COMPUTE_ROWS, lambda table: _first(table, "subblock_detail", value="much")),
    ("details-numbers", BlockType.OCCUPANCY, lambda table: _part_change(table, subcore_type="scalar")),
    ("details-numbers", BlockType.OCCUPANCY, lambda table: _part_change(table, subcore_id=2)),
    ("details-numbers", BlockType.OCCUPANCY, lambda table: _part_change(table, cycles=-1)),
    ("details-numbers", BlockType.OCCUPANCY, lambda table: _part_change(table, throughput=12.7)),
    ("details-titles", BlockType.ROOFLINE, lambda table: _first(table, "multiple_rooflines", title="My roof")),
]  # fmt: skip


def _base_change(table, rows):
    return table | {"block_detail": {"head_name": ["a"], "row": rows}}


def _graph_change(table, *paths, **changes):
    return _first(table, "core_memory_map", memory_unit=[{"memory_path": path} for path in paths], **changes)


def _table_change(table, **changes):
    (block,) = table["table_per_block"]
    return {"table_per_block": [_first(block, "table_detail", **changes)]}


def _part_change(table, **changes):
    (core,) = table["op_detail"]
    return table | {"op_detail": [_first(core, "core_detail", **changes)]}


def _first(table, name, **changes):
    return table | {name: [table[name][0] | changes, *table[name][1:]]}


def _rules(tmp_path, change=None, type_=None):
    blocks = []
    for each, payload in details_blocks(_whole()):
        if each is type_ and change is None:
            continue
        table = json.loads(payload)
        if each is type_ or (
            type_ is BlockType.COMPUTE_BARS
            and each is BlockType.COMPUTE_ROWS
            and not change(table)["subblock_detail"]
        ):
            table = change(table)
        blocks.append((each, json.dumps(table).encode()))
    directory = write_insight_directory(small_trace(), tmp_path)
    with (directory / "visualize_data.bin").open("ab") as file:
        for each, payload in blocks:
            write_block(file, each, payload)
    return {broken.rule for broken in validate(directory)}


def test_a_whole_page_keeps_every_rule(tmp_path):
    assert _rules(tmp_path) == set()


@pytest.mark.parametrize(("rule", "type_", "change"), BREAKS)
def test_the_validator_names_what_insight_says_nothing_about(tmp_path, rule, type_, change):
    assert rule in _rules(tmp_path, change, type_)


def test_every_rule_of_the_page_has_a_test_that_breaks_it():
    assert {rule for rule, _, _ in BREAKS} == {rule for rule in RULES if rule.startswith("details-")}


def test_a_section_that_is_none_is_no_block():
    assert details_blocks(DetailsPage()) == []
    assert [type_ for type_, _ in details_blocks(_whole())] == list(DETAILS)
    assert all(isinstance(msgspec.json.decode(payload), dict) for _, payload in details_blocks(_whole()))
