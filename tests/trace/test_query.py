"""SQL over a recording: the documented questions, the tables, forms of output, and what is refused."""

import csv
import io
import json
import re
import sys

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.recording import open_recording, save
from insight_trace.recording.operands import byte_ranges, operand_rows
from tests.conftest import ROOT
from tests.synthetic_recording import VECTOR_PATH, mix_recording

pytest.importorskip("duckdb", reason="pip install 'insight-trace[query]'")
PAGE = ROOT / "docs" / "query.md"


def made(folder):
    """The recording that the documented answers are of."""
    place = {
        "file": VECTOR_PATH,
        "line": 8,
        "instruction": "VEXP",
        "pipe": "V",
        "core": "core0.veccore0",
        "row": 127,
    }
    overlap = {
        "category": "tile-overlap", "severity": "error", "message": "weights lies on scaled", "fix": "move it",
        "places": [place], "memory": "UB", "begin": 24576, "end": 32768, "count": 4, "cycles": None,
    }  # fmt: skip
    idle = {
        "category": "redundant-sync", "severity": "note", "message": "the flag orders nothing", "fix": "",
        "places": [{**place, "line": 11, "instruction": "SET_FLAG", "row": -1}], "memory": "", "begin": -1, "end": -1,
        "count": 1, "cycles": 2,
    }  # fmt: skip
    arguments = (
        {"slot": 0, "kind": "tensor", "dtype": "FLOAT32", "shape": [64, 64], "role": "input", "tier": "exact",
         "name": "left", "origin": "dump", "address": 1 << 45, "size": 16384},
        {"slot": 1, "kind": "scalar", "dtype": "UINT64", "tier": "exact", "name": "", "origin": "dump", "bits": 2**64 - 1},
    )  # fmt: skip
    checks = ({"slot": 2, "status": "verified", "max_error": 0.0, "wrong": 0, "compared": 4096, "why": ""},)
    recording = mix_recording(
        2, 6, overlap=True, findings=(overlap, idle), arguments=arguments, checks=checks
    )
    save(recording, folder / "OPPROF_1" / "recording")
    return folder


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return made(tmp_path_factory.mktemp("workspace"))


@pytest.fixture
def ask(workspace, capsys):
    def asked(sql, *words):
        assert main(["query", str(workspace), sql, *words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return asked


@pytest.fixture
def rows(ask):
    return lambda sql: [tuple(row.values()) for row in json.loads(ask(sql, "--json"))]


def _documented():
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"### (\d+\. [^\n]+)\n\n```sql\n(.*?)\n```\n```text\n(.*?)```", text, re.S)


def test_the_page_has_at_least_ten_questions():
    assert len(_documented()) >= 10


@pytest.mark.parametrize("question", _documented(), ids=lambda question: question[0])
def test_a_documented_question_has_its_documented_answer(ask, question):
    _, sql, answer = question
    assert ask(sql) == answer


def test_every_table_and_column_is_documented_and_there(ask, capsys, workspace):
    text = PAGE.read_text(encoding="utf-8")
    assert main(["query", str(workspace), "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    for name, table in tables.items():
        assert f"**`{name}`**" in text
        described = text.split(f"**`{name}`**")[1].split("\n\n")[0]
        answer = csv.reader(io.StringIO(ask(f"select * from {name}", "--csv")))
        assert next(answer) == list(table["columns"]), name
        assert all(f"`{column}`" in described for column in table["columns"]), name


def test_instructions_are_those_of_the_recording(rows, workspace):
    stream = open_recording(workspace).instructions
    found = rows("select row, start_cycle, end_cycle, name, core, partner from instructions order by row")
    assert [row[0] for row in found] == list(range(len(stream)))
    assert [row[1] for row in found] == stream.start.tolist()
    assert [row[2] for row in found] == stream.end.tolist()
    assert [row[3] for row in found] == [stream.names[name] for name in stream.name]
    assert [row[4] for row in found] == [stream.cores[core] for core in stream.core]
    assert [row[5] for row in found] == [
        partner if partner >= 0 else None for partner in stream.partner.tolist()
    ]


def test_operands_reach_as_far_as_their_bytes(rows, workspace):
    operands = open_recording(workspace).instructions.operands
    found = rows(
        "select instruction, begin_byte, end_byte, bytes from operands order by instruction, begin_byte"
    )
    expected = []
    for instruction in range(len(operands.count)):
        for operand in operand_rows(operands, instruction):
            ranges = byte_ranges(operands, operand)
            begin, end = ranges.begin.astype(np.int64), ranges.end.astype(np.int64)
            expected.append((instruction, int(begin.min()), int(end.max()), int((end - begin).sum())))
    assert found == sorted(expected)


def test_small_facts_keep_their_types(rows):
    assert rows("select slot, kind, bits, shape, address from arguments order by slot") == [
        (0, "tensor", None, "[64,64]", 1 << 45),
        (1, "scalar", 2**64 - 1, None, None),
    ]
    assert rows("select status, wrong + compared, max_error from checks") == [("verified", 4096, 0.0)]
    assert rows("select severity, begin_byte, cycles from findings order by finding") == [
        ("error", 24576, None),
        ("note", None, 2),
    ]


def test_tables_without_rows_have_types_all_the_same(tmp_path, capsys):
    save(mix_recording(1, 1), tmp_path / "recording")
    for sql in (
        "select count(*) from findings where severity = 'error' and count > 3",
        "select * from checks where max_error > 0.5",
        "select upper(name) from arguments where slot + 1 = 2",
    ):
        assert main(["query", str(tmp_path), sql, "--csv"]) == 0
    assert "error" not in capsys.readouterr().err


def test_the_columns_are_not_copied(workspace):
    from insight_trace.trace.sql_tables import TABLES

    stream = open_recording(workspace).instructions
    recording = open_recording(workspace)
    columns = TABLES["_stream"].columns(recording)
    for name in ("core", "pipe", "name", "stack", "stall", "read_conflict"):
        assert np.shares_memory(columns[name], getattr(recording.instructions, name)), name
    assert len(columns["row"]) == len(stream)


def test_json_and_csv_are_whole_and_the_text_says_when_it_is_not(ask):
    sql = "select row, name from instructions order by row"
    assert len(json.loads(ask(sql, "--json"))) == 616
    assert len(ask(sql, "--csv").splitlines()) == 617
    assert "more than 200 rows" in ask(sql)
    assert len(ask(sql, "--limit", "0").splitlines()) == 617
    assert "more than" not in ask(sql + " limit 200")
    assert ask("select 1 as one where false") == "one\nno rows\n"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("selec 1", "line 1: selec 1"),
        ("select row\nfrom instrucions", "did you mean instructions?"),
        ("select row\nfrom instrucions", "line 2"),
        ("select colour from pipes", "colour"),
        ("select 1; select 2", "2 statements where one select is taken"),
        ("", "0 statements"),
        ("create table mine as select 1", "of type CREATE"),
        ("drop view instructions", "of type DROP"),
        ("copy run to 'out.csv'", "of type COPY"),
        ("attach 'other.db'", "of type ATTACH"),
        ("set enable_external_access = true", "of type SET"),
        ("install httpfs", "of type LOAD"),
        ("select * from read_csv('secret.csv')", "disabled"),
        ("select * from read_text('secret.csv')", "disabled"),
        ("select * from glob('*')", "disabled"),
        ("select * from 'secret.csv'", "disabled"),
        ("select 'a'::int", "Could not convert"),
    ],
)
def test_what_is_wrong_or_forbidden_is_said_in_a_line(workspace, capsys, tmp_path, monkeypatch, sql, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    assert main(["query", str(workspace), sql]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) <= 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv"]


def test_variables_of_the_program_are_no_tables(workspace, capsys):
    recording = {"column": np.arange(3)}
    assert main(["query", str(workspace), "select * from recording"]) == 2
    assert "there is no table recording" in capsys.readouterr().err
    assert recording


def test_without_duckdb_the_extra_is_named(workspace, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["query", str(workspace), "select 1"]) == 2
    assert "insight-trace[query]" in capsys.readouterr().err
    assert main(["query", str(workspace)]) == 0, "the tables are listed without it"


def test_a_trace_without_operands_is_refused_with_the_reason(tmp_path, capsys):
    assert main(["query", str(tmp_path), "select 1"]) == 2
    assert "no recording lies at or below" in capsys.readouterr().err


@pytest.mark.parametrize("raised", ["KeyboardInterrupt: ", "Terminated: "])
def test_a_signal_while_tables_are_made_is_no_fault_of_the_question(workspace, capsys, monkeypatch, raised):
    import duckdb

    from insight_trace.trace import sql

    def interrupted(*_):
        raise duckdb.InvalidInputException(f'  File "ending.py", line 40, in on_signal; {raised}')

    monkeypatch.setattr(sql, "_provide", interrupted)
    assert main(["query", str(workspace), "select count(*) from instructions"]) == 130
    assert "ending.py" not in capsys.readouterr().err
