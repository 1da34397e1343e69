"""Instructions as tables for people who would rather ask their own questions."""

import builtins

import pytest
from hypothesis import given

from insight_trace.errors import RequestError
from insight_trace.trace.dataframe import table, to_arrow, to_pandas
from tests.synthetic_trace import softmax_trace
from tests.trace_strategies import traces


@given(traces())
def test_every_column_has_a_value_per_execution(trace):
    columns = table(trace)
    assert {len(column) for column in columns.values()} == {len(trace.instructions)}


def test_the_columns_say_what_ran_where():
    columns = table(softmax_trace(1, cores=1))
    row = list(columns["name"]).index("VEXP")
    assert columns["pipe"][row] == "VECTOR"
    assert columns["line"][row] == "kernels/aiv_softmax_step.cpp:14"
    assert columns["cycles"][row] == 31 + 2 * 64
    assert columns["kind"][row] == "work"


def test_a_pandas_frame_adds_up_like_the_figures():
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = to_pandas(softmax_trace(4, cores=1))
    assert frame[frame.kind == "work"].groupby("pipe").cycles.sum()["VECTOR"] == 4 * (90 + 159 + 152)


def test_without_the_package_the_answer_says_what_to_install(monkeypatch):
    original = builtins.__import__

    def none(name, *rest):
        if name.partition(".")[0] in ("pandas", "pyarrow"):
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr("importlib.import_module", lambda name: none(name))
    for function, name in ((to_pandas, "pandas"), (to_arrow, "pyarrow")):
        with pytest.raises(RequestError, match=f"pip install {name}"):
            function(softmax_trace(1))
