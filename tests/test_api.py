"""The API is the program: real signatures, results that show themselves, and commands that only parse, call and print."""

import inspect
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest

import insight_trace
from insight_trace.options import RunKeywords, RunOptions
from insight_trace.simulate.embedded.simulator import EmbeddedKeywords, EmbeddedOptions

ROOT = Path(__file__).resolve().parent.parent
ADD = ROOT / "examples" / "kernels" / "vector_add.cpp"
CHAIN = ROOT / "examples" / "vector_chain" / "scene.py"


def test_importing_the_package_loads_nothing_else():
    code = "import sys; before = set(sys.modules); import insight_trace; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"insight_trace", "__future__"}


@pytest.mark.parametrize("name", sorted(insight_trace.FUNCTIONS))
def test_every_function_has_a_signature_a_docstring_and_types(name):
    function = getattr(insight_trace, name)
    parameters = inspect.signature(function).parameters.values()
    assert parameters
    assert inspect.getdoc(inspect.unwrap(function))
    for parameter in parameters:
        assert parameter.annotation not in (inspect.Parameter.empty, "Any"), f"{name}({parameter.name})"
        assert parameter.kind is not inspect.Parameter.VAR_POSITIONAL or parameter.annotation == "Traced"
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            assert parameter.annotation in ("Unpack[RunKeywords]", "Unpack[EmbeddedKeywords]")
    assert inspect.signature(function).return_annotation not in (inspect.Parameter.empty, "Any")


@pytest.mark.parametrize(
    ("keywords", "options"), [(RunKeywords, RunOptions), (EmbeddedKeywords, EmbeddedOptions)]
)
def test_options_by_name_are_the_fields_of_the_options(keywords, options):
    assert list(keywords.__annotations__) == list(options.__struct_fields__)
    assert {n: str(t) for n, t in typing.get_type_hints(keywords).items()} == {
        n: str(t) for n, t in typing.get_type_hints(options).items()
    }


def test_packages_that_share_a_name_with_a_function_are_both():
    import insight_trace.check.sarif
    import insight_trace.replay.jobs
    import insight_trace.run.baseline

    for name in ("check", "replay", "run"):
        assert inspect.ismodule(getattr(insight_trace, name))
        assert "scene" in inspect.signature(getattr(insight_trace, name)).parameters
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        insight_trace.replay()


def test_arguments_are_a_sequence_of_arrays_or_go_by_slot():
    kernel = ROOT / "examples" / "vector_chain" / "kernels" / "add.cpp"
    a, b = np.arange(128 * 128, dtype=np.float32).reshape(128, 128), np.ones((128, 128), np.float32)
    by_order = insight_trace.simulate(kernel, [a, b, np.zeros_like(a), 128, 128])
    by_slot = insight_trace.simulate(kernel, {0: a, 1: b, 2: np.zeros_like(a), 3: 128, 4: 128})
    assert by_order.failure is None
    assert np.array_equal(by_order.outputs[2], by_slot.outputs[2])
    assert by_order.cycles == by_slot.cycles


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    return insight_trace.replay(CHAIN, kernel="add", output=tmp_path_factory.mktemp("api") / "workspace")


def test_a_result_is_one_line_in_a_shell_and_a_table_in_a_notebook(replayed):
    for result in (
        replayed,
        replayed.simulation,
        insight_trace.open_trace(replayed.directory),
        replayed.stats(),
    ):
        assert "\n" not in repr(result)
        assert repr(result).startswith(f"<{type(result).__name__} ")
        assert " cycles" in repr(result)
        html = result._repr_html_()
        assert html.count("<table>") == 1
        assert "<script" not in html
        assert len({len(column) for column in result.columns().values()}) == 1


def test_what_a_table_shows_is_text_and_not_markup():
    from insight_trace.results import html_table

    assert "<b>x</b>" not in html_table("<b>x</b>", {"<i>": ["<script>", "\x1b[2J"]})
    assert "<script" not in html_table("t", {"c": ["<script>"]})
    assert "\x1b" not in html_table("t", {"c": ["\x1b[2J"]})


def test_a_workspace_is_replayed_again_and_read_by_everything_that_reads_traces(replayed, tmp_path):
    again = insight_trace.replay(replayed.workspace, output=tmp_path / "again")
    assert again.cycles == replayed.cycles
    assert insight_trace.compare(replayed, again).total.delta == 0
    assert insight_trace.stats(again).cycles == insight_trace.stats(again.simulation).cycles
    page = again.view(browser=False)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_tables_go_to_pandas_and_arrow_where_they_are_installed(replayed, monkeypatch):
    made = []
    for name, maker in (("pandas", "DataFrame"), ("pyarrow", "table")):
        module = type(sys)(name)
        setattr(module, maker, made.append)
        monkeypatch.setitem(sys.modules, name, module)
    replayed.to_pandas()
    replayed.to_arrow()
    assert [len(columns["cycles"]) for columns in made] == [len(replayed.instructions)] * 2
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(insight_trace.errors.RequestError, match="pip install pandas"):
        replayed.to_pandas()


def test_a_kernel_file_is_replayed_with_arrays_by_name_or_in_order(tmp_path):
    add = insight_trace.kernel(ADD)
    left = np.arange(64, dtype=np.float32)
    done = add.replay([left, left, np.zeros_like(left)], output=tmp_path / "workspace")
    assert np.array_equal(done.outputs[2], 2 * left)
    assert add(left, left, np.zeros_like(left)) == done.cycles
    assert f"{done.cycles:,} cycles in its last call" in repr(add)
