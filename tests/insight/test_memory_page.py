"""The file of Insight's On-Chip Memory page: what tiles hold, when; and what empties that page or ends its server."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.synthetic_recording import mix_recording

from insight_trace.errors import InputError
from insight_trace.insight import memory_page as page
from insight_trace.insight import validate
from insight_trace.insight.memory_page import encode_memory_page, memory_page, read_memory_page
from insight_trace.recording.tile_lives import tile_lives


@pytest.fixture(scope="module")
def recording():
    return mix_recording(2, 3, seed=1)


@pytest.fixture
def written(recording, tmp_path):
    path = tmp_path / "kernel_memory_info.json"
    path.write_bytes(encode_memory_page(memory_page(recording)))
    return path


def test_every_value_that_a_tile_holds_on_the_block_that_ends_last_is_on_the_page(recording, written):
    assert validate(written) == []
    found = read_memory_page(written)
    lives = tile_lives(recording.trace, {})
    columns = recording.instructions
    block = columns.cores[columns.core[columns.end.argmax()]].partition(".")[0]
    expected = {}
    for core, tile, begin, end, kept in zip(
        *(column.tolist() for column in (lives.core, lives.tile, lives.begin, lives.end, lives.written)),
        strict=True,
    ):
        if kept and columns.cores[core].startswith(f"{block}."):
            each = lives.tiles[tile]
            scope = expected.setdefault(f"{each.memory} {columns.cores[core]}", [])
            scope.append(
                (each.address, 8 * each.bytes, begin - columns.start.min(), end - columns.start.min())
            )
    shown = {
        scope.scope: [(*life.offset, life.extent, *life.life_time_in_ir) for life in scope.memory_info_array]
        for scope in found.scopes
    }
    assert {name: sorted(each) for name, each in shown.items()} == {
        name: sorted(each) for name, each in expected.items()
    }
    assert len(expected) > 3
    (product,) = (life for life in found.scopes[0].memory_info_array[:1])
    assert product.source_location == f"aic_scores.cpp:{product.alloc_time_in_ir}"


def test_a_replay_writes_it_beside_its_traces(replayed):
    workspace = replayed("mix").directory.parents[2]
    (path,) = workspace.glob("*_memory_info.json")
    assert path.name.removesuffix("_memory_info.json") == next(
        workspace.glob("*_trace.json")
    ).name.removesuffix("_trace.json")
    assert validate(path) == []
    assert {scope.scope.split()[0] for scope in read_memory_page(path).scopes} == {
        "L1",
        "L0A",
        "L0B",
        "L0C",
        "UB",
    }


def test_no_scope_has_a_status_that_insight_would_print_as_an_error(replayed):
    """Its server sends the status as the message of an error, whatever it says but nothing."""
    (path,) = replayed("mix").directory.parents[2].glob("*_memory_info.json")
    scopes = json.loads(path.read_bytes())["Record"]
    assert scopes
    assert {scope["status"] for scope in scopes} == {""}


def test_what_is_cut_says_so(recording, monkeypatch):
    monkeypatch.setattr(page, "MOST_LIVES", 2)
    scopes = memory_page(recording).scopes
    assert any(scope.scope.endswith("(the first 2 of 3 values)") for scope in scopes)
    assert max(len(scope.memory_info_array) for scope in scopes) == 2


_count = st.integers(0, 2**53)
_lives = st.builds(
    page.Life,
    *(_count, st.text(max_size=9), _count, st.booleans()),
    st.lists(_count, min_size=2, max_size=2),
    st.lists(_count, max_size=2),
    st.text(max_size=9),
)
_pages = st.builds(
    page.MemoryPage,
    st.builds(page.Header, st.text(max_size=9)),
    st.lists(
        st.builds(page.MemoryScope, st.text(max_size=9), st.just("success"), st.lists(_lives, max_size=3)),
        max_size=3,
    ),
)


@given(_pages)
def test_any_page_comes_back_as_it_was_written(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("page") / "memory_info.json"
    path.write_bytes(encode_memory_page(written))
    assert read_memory_page(path) == written


def _entry(**changes):
    def change(table):
        table["Record"][0]["memory_info_array"][0] |= changes

    return change


BREAKS = {
    "no kernel name": lambda table: table["Header"].clear(),
    "no record": lambda table: table.pop("Record"),
    "record of texts": lambda table: table["Record"].append("x"),
    "no status": lambda table: table["Record"][0].pop("status"),
    "a scope twice": lambda table: table["Record"].append(table["Record"][0]),
    "no list of values": lambda table: table["Record"][0].update(memory_info_array={}),
    "a value that is text": lambda table: table["Record"][0]["memory_info_array"].append("x"),
    "a key is missing": lambda table: table["Record"][0]["memory_info_array"][0].pop("is_tmpbuf"),
    "a size as text": _entry(extent="64"),
    "a size that is a truth": _entry(extent=True),
    "a negative size": _entry(extent=-8),
    "a negative offset": _entry(offset=[-1]),
    "an offset with a point": _entry(offset=[1.5]),
    "a life of one cycle": _entry(life_time_in_ir=[4]),
    "a life that ends before it begins": _entry(life_time_in_ir=[4, 3]),
    "half a byte": _entry(extent=12),
    "nowhere": _entry(offset=[]),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_validator_names_what_insight_says_nothing_about(written, name):
    table = json.loads(written.read_bytes())
    BREAKS[name](table)
    written.write_text(json.dumps(table))
    assert {broken.rule for broken in validate(written)} == {"memory-page"}


def test_what_is_no_json_is_refused_in_words(written):
    written.write_text("[")
    assert [broken.rule for broken in validate(written)] == ["memory-page"]
    with pytest.raises(InputError, match="On-Chip Memory"):
        read_memory_page(written)
