"""clean, stats, compare and view as a person types them."""

import gzip
import json
import struct

import pytest

from insight_trace.__main__ import main
from insight_trace.insight import write_insight_directory
from insight_trace.model import Pipe
from tests.synthetic_trace import TraceBuilder, matmul_trace, softmax_trace


@pytest.fixture
def result(tmp_path):
    """An Insight directory of one buffer and one of two."""
    return [
        write_insight_directory(softmax_trace(6, buffers=buffers), tmp_path / f"buffers{buffers}")
        for buffers in (1, 2)
    ]


def _clean_json(path):
    return json.loads(path.read_text())["traceEvents"]


@pytest.mark.parametrize("name", ["910B", "sample", "91095"])
def test_clean_keeps_every_instruction_of_the_kept_lanes_of_the_vendors_files(
    shared_data, tmp_path, capsys, name
):
    source = shared_data / "camodel" / name / "expected_simulator"
    assert main(["clean", str(source), "--keep-scalar", "--json", "-o", str(tmp_path / "out")]) == 0
    counts = json.loads(capsys.readouterr().out)
    raw = json.loads((source / "trace.json").read_text())["traceEvents"]
    wanted = sorted(
        (event["name"], event["args"].get("detail", ""))
        for event in raw
        if event["ph"] == "X"
        and event["tid"] not in ("CACHEMISS", "FLOWCTRL", "ALL")
        and event["name"] != "BAR"
    )
    events = _clean_json(tmp_path / "out" / "trace.clean.json")
    kept = sorted((event["name"], event["args"]["detail"]) for event in events if event["ph"] == "X")
    assert kept == wanted
    pairs = {event["id"] for event in raw if event["ph"] == "s"} & {e["id"] for e in raw if e["ph"] == "t"}
    facts = json.loads((tmp_path / "out" / "instr_metrics.json").read_text())
    assert facts["cores"] == ["core0.veccore0", "core0.veccore1"]
    assert counts["arrows"] == sum(event["ph"] == "s" for event in events)
    assert counts["arrows"] + counts["arrows_hidden"] + counts["arrows_unanchored"] == len(pairs)
    assert counts["flags_unpaired"] == sum(
        event["ph"] == "B" and event["name"] in ("SET_FLAG", "WAIT_FLAG") for event in raw
    ) - 2 * len(pairs)


def test_clean_writes_beside_the_trace_and_replaces_nothing_unasked(result, capsys):
    assert main(["clean", str(result[0])]) == 0
    text = capsys.readouterr().out
    assert text.startswith("kept       60 instructions on 6 lanes of 2 cores · 34 arrows\nleft out   ")
    assert (result[0] / "trace.clean.json").is_file()
    assert (result[0] / "instr_metrics.json").is_file()
    assert main(["clean", str(result[0])]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["clean", str(result[0]), "--force"]) == 0


def test_clean_makes_a_run_folder_that_explains_itself(result, tmp_path, capsys):
    out = tmp_path / "run"
    words = [
        "clean",
        str(result[0]),
        "-o",
        str(out),
        "--kernel",
        "SF/../x",
        "--note",
        "workload=CaseSmall1, block 5",
    ]
    assert main(words) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "SF_.._x.clean.json", "instr_metrics.json", "raw_simulator", "summary.txt",
    ]  # fmt: skip
    raw = out / "raw_simulator"
    assert (raw / "visualize_data.bin").read_bytes() == (result[0] / "visualize_data.bin").read_bytes()
    assert (raw / "core0.veccore0" / "trace.json").is_file()
    summary = (out / "summary.txt").read_text()
    assert "workload  CaseSmall1, block 5" in summary
    assert "what to fix first\n1. MTE2 waits" in summary
    assert "core0.veccore0  MTE2" in summary
    capsys.readouterr()
    assert main(["clean", str(result[0]), "-o", str(out)]) == 2


def test_clean_names_the_run_after_its_source(result, tmp_path):
    assert main(["clean", str(result[0]), "-o", str(tmp_path / "run"), "--no-copy-raw"]) == 0
    assert (tmp_path / "run" / "aiv_softmax_step.clean.json").is_file()
    assert not (tmp_path / "run" / "raw_simulator").exists()


def test_clean_packs_and_writes_perfetto(result, tmp_path, capsys):
    words = ["clean", str(result[0]), "--no-copy-raw", "--kernel", "k", "--json"]
    assert main([*words, "-o", str(tmp_path / "a"), "--gzip"]) == 0
    assert json.loads(gzip.decompress((tmp_path / "a" / "k.clean.json.gz").read_bytes()))["traceEvents"]
    assert json.loads(capsys.readouterr().out)["arrows"] == 34
    assert main([*words, "-o", str(tmp_path / "b"), "--format", "perfetto"]) == 0
    assert (tmp_path / "b" / "k.clean.pftrace").read_bytes()[:1] == b"\x0a"


def test_raw_metrics_are_the_table_of_the_container_byte_for_byte(result, tmp_path):
    assert main(["clean", str(result[0]), "--raw-metrics", "-o", str(tmp_path / "run")]) == 0
    table = (tmp_path / "run" / "instr_metrics.json").read_bytes()
    assert table in (result[0] / "visualize_data.bin").read_bytes()
    assert json.loads(table)["Cores"] == ["core0.veccore0", "core0.veccore1"]


def test_raw_metrics_without_a_container_say_what_to_do(result, tmp_path, capsys):
    lone = tmp_path / "lone"
    lone.mkdir()
    (lone / "trace.json").write_bytes((result[0] / "trace.json").read_bytes())
    assert main(["clean", str(lone / "trace.json"), "--raw-metrics"]) == 2
    assert "leave the flag out" in capsys.readouterr().err


def test_stats_prints_the_advice_first_and_json_on_demand(result, capsys):
    assert main(["stats", str(result[0])]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("total      ")
    assert lines[1].startswith("advice     1. MTE2 waits ")
    assert main(["stats", str(result[0]), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["critical_path"]["cycles"] == facts["cycles"]
    assert facts["advice"][0]["saves"] > 0


def test_compare_says_faster_or_slower_first(result, capsys):
    assert main(["compare", *map(str, result)]) == 0
    assert "faster -" in capsys.readouterr().out.splitlines()[0]
    assert main(["compare", *map(str, reversed(result)), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"]["delta"] > 0


def test_view_writes_one_page_and_prints_where(result, tmp_path, capsys):
    assert main(["view", str(result[0]), "--no-browser"]) == 0
    path = result[0] / "report.html"
    assert capsys.readouterr().out == f"{path}\n"
    assert main(["view", str(result[0]), "--no-browser"]) == 0, "a page of ours may be replaced"
    path.write_text("something else")
    assert main(["view", str(result[0]), "--no-browser"]) == 2
    both = tmp_path / "both.html"
    assert main(["view", *map(str, result), "--no-browser", "-o", str(both), "--title", "one"]) == 0
    assert "<title>one against buffers2 · Insight Trace</title>" in both.read_text()


@pytest.mark.parametrize("command", ["clean", "stats", "view"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"traceEvents":null}',
        b"\xff\xfe",
        b'{"traceEvents":[{"ph":"X"}]}',
        b"{",
        struct.pack("<Q", 9),
    ],
)
def test_a_file_that_is_no_trace_is_an_answer_and_never_a_traceback(tmp_path, capsys, command, content):
    for name in ("trace.json", "visualize_data.bin"):
        path = tmp_path / name
        path.write_bytes(content)
        words = ["--no-browser"] if command == "view" else []
        code = main([command, str(path), *words])
        captured = capsys.readouterr()
        assert code in (0, 1, 2)
        assert (code == 0) == (captured.err == "")
        for made in (
            *tmp_path.glob("*.clean.json"),
            *tmp_path.glob("instr_metrics.json"),
            *tmp_path.glob("*.html"),
        ):
            made.unlink()


def test_a_path_that_is_not_there_is_a_wrong_request(capsys):
    for words in (["clean", "nowhere"], ["stats", "nowhere"], ["compare", "a", "b"], ["view", "nowhere"]):
        assert main(words) == 2
        assert "does not exist" in capsys.readouterr().err


def test_odd_requests_are_refused(result, capsys):
    assert main(["clean", str(result[0]), "--note", "nothing"]) == 2
    assert "KEY=VALUE" in capsys.readouterr().err
    assert main(["view", str(result[0]), "--no-browser", "--title", "a", "--title", "b"]) == 2
    assert main(["view", *map(str, result), "--perfetto"]) == 2


def test_perfettos_viewer_is_asked_for_when_it_is_missing(result, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["view", str(result[0]), "--perfetto"]) == 2
    assert "insight-trace[viewer]" in capsys.readouterr().err


def test_flags_written_as_whole_slices_become_arrows_too(tmp_path, capsys):
    """Some exporters write flags as X events and no flows; the pairing is then by flag."""
    rows = [
        ("MTE2", "MOV_OUT_TO_UB", 0, 100), ("MTE2", "SET_FLAG", 100, 101), ("VECTOR", "WAIT_FLAG", 5, 101),
        ("VECTOR", "VADD", 101, 150),
    ]  # fmt: skip
    events = [
        {
            "args": {"code": "", "detail": "PIPE:MTE2,TRIGGERPIPE:VEC,FLAGID:0,", "pc_addr": "0x10"},
            "dur": (end - start) / 1850,
            "name": name,
            "ph": "X",
            "pid": "core0.veccore0",
            "tid": tid,
            "ts": start / 1850,
        }
        for tid, name, start, end in rows
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"profilingType": "op", "schemaVersion": 2, "traceEvents": events}))
    assert main(["clean", str(path)]) == 0
    assert "2 instructions on 2 lanes of 1 core · 1 arrow\n" in capsys.readouterr().out


def test_a_near_empty_trace_is_flagged_in_the_summary(tmp_path):
    builder = TraceBuilder()
    for step in range(5):
        builder.add(Pipe.SCALAR, "ADD", step, step + 1, detail="XD:X1=0x0,")
    path = write_insight_directory(builder.build(), tmp_path)
    assert main(["clean", str(path), "-o", str(tmp_path / "run")]) == 0
    assert "WARN  only scalar and sync" in (tmp_path / "run" / "summary.txt").read_text()


def test_a_cube_kernel_goes_the_whole_way(tmp_path, capsys):
    path = write_insight_directory(matmul_trace(), tmp_path)
    assert main(["clean", str(path)]) == 0
    assert "37 instructions on 7 lanes of 1 core · 13 arrows" in capsys.readouterr().out
