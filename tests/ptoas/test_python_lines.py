"""A line of generated C++ leads to the line of the user's program that it was made of."""

import os
from pathlib import Path

import pytest

from insight_trace.ptoas.python_lines import python_lines, tile_names

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "examples" / "pypto_run"
# (kernel, call as it stands in the C++, line of model.py): checked by hand against both texts.
BY_HAND = [
    ("scale_blocks", "wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);\n            TLOAD", 14),
    ("scale_blocks", "TLOAD(v17, v18)", 14),
    ("scale_blocks", "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)", 14),
    ("scale_blocks", "wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)", 15),
    ("scale_blocks", "TMULS(v19, v17, v3)", 15),
    ("scale_blocks", "pipe_barrier(PIPE_V)", 16),
    ("scale_blocks", "TADDS(v20, v19, v13)", 16),
    ("scale_blocks", "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)", 16),
    ("scale_blocks", "wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)", 17),
    ("scale_blocks", "TSTORE(v21, v20)", 17),
    ("scale_blocks", "set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);\n        }", 17),
    ("square_rows", "TLOAD(v6, v7)", 22),
    ("square_rows", "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)", 22),
    ("square_rows", "wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)", 23),
    ("square_rows", "TMUL(v8, v6, v6)", 23),
    ("square_rows", "pipe_barrier(PIPE_V)", 24),
    ("square_rows", "TADD(v9, v8, v6)", 24),
    ("square_rows", "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)", 24),
    ("square_rows", "wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)", 25),
    ("square_rows", "TSTORE(v10, v9)", 25),
]


@pytest.mark.parametrize("place", ["ptoas", "kernels/aiv"])
@pytest.mark.parametrize(("kernel", "call", "line"), BY_HAND)
def test_twenty_lines_by_hand(place, kernel, call, line):
    cpp = BUILD / place / f"{kernel}.cpp"
    text = cpp.read_text()
    assert text.count(call) == 1
    number = text[: text.index(call)].count("\n") + 1
    found = python_lines(BUILD / "ptoas" / f"{kernel}.pto", cpp)[number]
    assert (found.file, found.line) == ("model.py", line)


def test_tiles_have_the_names_of_the_program():
    lines = python_lines(BUILD / "ptoas" / "square_rows.pto", BUILD / "ptoas" / "square_rows.cpp")
    assert {tile for found in lines.values() for tile in found.tiles} == {"rows", "squared", "total"}


def test_tiles_have_their_places_in_memory():
    tiles = tile_names(BUILD / "ptoas" / "scale_blocks.pto")
    assert [(t["name"], t["memory"], t["address"]) for t in tiles] == [
        ("rows", "vec", 0),
        ("scaled", "vec", 4096),
        ("shifted", "vec", 8192),
    ]
    assert {(t["dtype"], t["rows"], t["cols"]) for t in tiles} == {("f32", "16", "64")}


def test_locations_by_alias_are_followed(tmp_path):
    text = (BUILD / "ptoas" / "square_rows.pto").read_text()
    text = text.replace('loc("model.py":23:9)', "loc(#loc7)") + '#loc7 = loc("op"("other.py":5:1))\n'
    (tmp_path / "k.pto").write_text(text)
    found = python_lines(tmp_path / "k.pto", BUILD / "ptoas" / "square_rows.cpp")
    assert "other.py:5" in {line.frame for line in found.values()}


def test_a_text_without_locations_gives_nothing(tmp_path):
    import re

    text = re.sub(r' loc\("model.py":\d+:\d+\)', "", (BUILD / "ptoas" / "square_rows.pto").read_text())
    (tmp_path / "k.pto").write_text(text)
    assert python_lines(tmp_path / "k.pto", BUILD / "ptoas" / "square_rows.cpp") == {}
    assert python_lines(tmp_path / "absent.pto", BUILD / "ptoas" / "square_rows.cpp") == {}


def test_every_call_of_the_real_builds_finds_its_operation(shared_data, tmp_path):
    builds = shared_data / "pypto_builds"
    if not builds.is_dir():
        pytest.skip("the shared data has no pypto_builds")
    import re

    ptos = sorted(builds.glob("*/*/ptoas/*.pto"))
    for pto in ptos if os.environ.get("INSIGHT_TRACE_LONG_TESTS") else ptos[::6]:
        # the data has no locations: every tile operation gets its own line as one
        lines = [
            f'{text} loc("model.py":{number}:1)' if re.match(r"\s*pto\.t", text) else text
            for number, text in enumerate(pto.read_text().splitlines(), 1)
        ]
        (tmp_path / "k.pto").write_text("\n".join(lines) + "\n")
        cpp = pto.with_suffix(".cpp")
        found = python_lines(tmp_path / "k.pto", cpp)
        for number, text in enumerate(cpp.read_text().splitlines(), 1):
            call = re.match(r"\s*(T[A-Z_]+)\(", text)
            if call and call[1] != "TASSIGN":
                assert found[number].operation.upper().replace(".", "_").startswith(call[1][:4]), (
                    cpp,
                    number,
                )
