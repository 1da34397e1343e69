"""The page as a file: whole, self-contained, escaped, the same every time."""

import base64
import io
import json
import re
import zlib

import numpy as np
import pytest
from hypothesis import given, settings

from insight_trace.model import Pipe
from insight_trace.report.page import write_page
from insight_trace.report.payload import payload
from tests.synthetic_trace import TraceBuilder, softmax_trace
from tests.trace_strategies import traces


def _page(*traces_, titles=None, **options) -> str:
    file = io.BytesIO()
    write_page(file, traces_, titles or [f"run {i}" for i in range(len(traces_))], **options)
    return file.getvalue().decode()


def _part(page: str, name: str) -> bytes:
    found = re.search(
        rf'<script type="application/octet-stream" id="{name}">([A-Za-z0-9+/=]*)</script>', page
    )
    assert found, name
    return zlib.decompress(base64.b64decode(found[1]))


def _columns(page: str, number: int = 0) -> dict[str, np.ndarray]:
    """All cores' columns end to end; starts are put together from the steps along each lane."""
    facts = json.loads(_part(page, f"run{number}-facts"))
    parts: dict[str, list[np.ndarray]] = {entry["name"]: [] for entry in facts["columns"]}
    for span in facts["ranges"]:
        data, offset, count = _part(page, f"run{number}-core{span['core']}"), 0, span["past"] - span["first"]
        for entry, kind in zip(facts["columns"], span["types"], strict=True):
            values = np.frombuffer(data, "<" + kind, count, offset).astype(np.int64)
            parts[entry["name"]].append(values)
            offset += -(-values.size * np.dtype(kind).itemsize // 8) * 8
    columns = {name: np.concatenate([np.zeros(0, np.int64), *values]) for name, values in parts.items()}
    start = columns.pop("steps")
    for segment in facts["segments"]:
        lane = slice(segment["first"], segment["past"])
        start[lane] = segment["start"] + np.cumsum(start[lane])
    return {"start": start, **columns}


def test_the_page_asks_the_network_for_nothing():
    page = _page(softmax_trace(2))
    assert "default-src 'none'" in page
    addresses = set(re.findall(r"""(?:https?:)?//[\w.-]+\.\w+""", page))
    assert {
        address for address in addresses if "www.w3.org/2000/svg" not in page[page.index(address) :][:40]
    } == set()
    assert not re.search(r"<(?:link|img|iframe)\b", page)


@given(traces(most=25))
@settings(max_examples=25)
def test_the_columns_of_the_page_are_those_of_the_trace(trace):
    page = _page(trace)
    columns, facts = _columns(page), json.loads(_part(page, "run0-facts"))
    instructions = trace.instructions
    shown = sorted(
        zip(columns["start"].tolist(), columns["length"].tolist(), columns["name"].tolist(), strict=True)
    )
    hidden = [i for i in range(len(instructions)) if instructions.names[instructions.name[i]] == "SET_FLAG"]
    expected = sorted(
        (int(s), max(0, int(e) - int(s)), int(n))
        for i, (s, e, n) in enumerate(
            zip(instructions.start, instructions.end, instructions.name, strict=True)
        )
        if i not in hidden
    )
    assert shown == expected
    details = []
    for span in facts["ranges"]:
        lines = _part(page, f"run0-details{span['core']}").decode().split("\n")[:-1]
        which = np.frombuffer(_part(page, f"run0-spelled{span['core']}"), "<" + span["spelled"])
        details += [lines[number] for number in which[: span["past"] - span["first"]]]
    assert len(details) == facts["rows"] == len(shown)
    texts = [text for row, text in enumerate(instructions.detail) if row not in hidden]
    assert sorted(details) == sorted(text.replace("\n", " ") for text in texts)
    for segment in facts["segments"]:
        part = columns["start"][segment["first"] : segment["past"]]
        assert (np.diff(part) >= 0).all()


def test_names_that_are_markup_stay_text():
    builder = TraceBuilder()
    builder.add(
        Pipe.VECTOR, "</script><script>alert(1)</script>", 0, 5, stack="<b>.cpp:3", detail="</script>"
    )
    page = _page(builder.build(sources={"<b>.cpp": b"</script>"}), titles=["<i>a</i>"])
    assert "alert(1)" not in page
    assert "<title>&lt;i&gt;a&lt;/i&gt; · Insight Trace</title>" in page
    assert page.count("</script>") == page.count("<script")


def test_confidential_leaves_out_source_text_and_operand_values():
    trace = softmax_trace(2, sources={"kernels/aiv_softmax_step.cpp": b"secret();"})
    page = _page(trace, confidential=True)
    assert b"secret" not in _part(page, "run0-facts")
    details = _part(page, "run0-details0").decode()
    assert "0x" not in details
    assert "dtype:F32,XD:X4,XN:X5,XM:X6,XT:X9" in details
    assert "secret" in _part(_page(trace), "run0-facts").decode()


def test_the_same_trace_gives_the_same_page():
    assert _page(softmax_trace(3)) == _page(softmax_trace(3))


def test_operand_text_beyond_the_limit_gives_up_its_values_and_keeps_the_operands(monkeypatch):
    monkeypatch.setattr("insight_trace.report.payload._DETAIL_LIMIT", 10)
    details = zlib.decompress(payload(softmax_trace(2), title="t").parts["details0"]).decode()
    assert "0x" not in details
    assert "Src:OUT,Dst:UB" in details


def test_times_beyond_32_bits_survive():
    builder = TraceBuilder()
    builder.add(Pipe.VECTOR, "VADD", 2**40, 2**40 + 2**36)
    builder.add(Pipe.VECTOR, "VADD", 2**41, 2**41 + 1)
    columns = _columns(_page(builder.build()))
    assert columns["start"].tolist() == [2**40, 2**41]
    assert columns["length"].tolist() == [2**36, 1]


def test_three_runs_are_one_too_many():
    with pytest.raises(ValueError, match="one run or two"):
        _page(*[softmax_trace(1)] * 3)
