"""The judge: every kind of candidate is called what it is, twice the same, and none reads what it should compute."""

import importlib.util
import json
import re
import threading
from pathlib import Path

import numpy as np
import pytest

import insight_trace
from insight_trace.__main__ import main
from insight_trace.errors import InsightTraceError, JobError
from insight_trace.judge import judge_all, read_task
from insight_trace.judge.expression import evaluate
from insight_trace.judge.forbidden import forbidden
from insight_trace.judge.inputs import made_inputs, poison, seed_of
from tests.judge.candidates import COMPUTE, body, candidates, flag, text, write_candidates

ROOT = Path(__file__).resolve().parents[2]
SHARE = 9  # every ninth of 200


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """24 candidates, every kind among them."""
    task, paths, outcomes = write_candidates(tmp_path_factory.mktemp("candidates"), SHARE)
    found = dict(judge_all(paths, task))
    return task, paths, outcomes, [found[place] for place in range(len(paths))]


def test_every_candidate_is_called_what_it_is(judged) -> None:
    _, _, outcomes, verdicts = judged
    assert [str(verdict.outcome) for verdict in verdicts] == outcomes
    assert {"right", "slow", "wrong", "fault", "hang", "incomplete", "forbidden"} == set(outcomes)


def test_the_same_candidate_gets_the_same_verdict_in_another_process(judged) -> None:
    task, paths, outcomes, verdicts = judged
    again = [outcomes.index(kind) for kind in ("right", "fault")]
    for place in again:
        assert insight_trace.judge(paths[place], task) == verdicts[place]


def test_a_reason_is_short_and_says_where(judged) -> None:
    _, _, outcomes, verdicts = judged
    for outcome, verdict in zip(outcomes, verdicts, strict=True):
        assert 5 < len(verdict.reason) < 500
        assert "/tmp" not in verdict.reason
        if outcome in ("wrong", "fault"):
            assert verdict.line > 0, verdict
        if outcome == "fault":
            assert verdict.fix
    right = verdicts[outcomes.index("right")]
    assert right.advice[0].simulated
    assert right.work.read == {"x": 1.0, "y": 1.0}
    assert right.floor < right.cycles < right.high
    assert 0.5 < verdicts[outcomes.index("slow")].score < right.score < 1


def test_all_two_hundred_differ_and_every_cheat_is_there_three_times() -> None:
    every = candidates()
    assert len(every) == len({made for _, made in every}) == 200
    assert sum(kind in ("incomplete", "forbidden") for kind, _ in every) == 30


def test_a_line_that_does_not_compile_is_named(tmp_path: Path) -> None:
    task, _, _ = write_candidates(tmp_path, 200)
    path = tmp_path / "broken.cpp"
    path.write_text(text(body(COMPUTE.replace("TADD(", "TADDED("))))
    verdict = insight_trace.judge(path, task)
    assert (verdict.outcome, verdict.score, verdict.line) == ("compile error", 0.0, 18)
    path.write_text(text(body()).replace("__gm__ float *z", "__gm__ float *z, int n"))
    verdict = insight_trace.judge(path, task)
    assert verdict.outcome == "compile error"
    assert "takes 4 parameters (x, y, z, n); the task gives 3: x, y, z" in verdict.reason


def test_a_kernel_that_opens_a_file_gets_nothing_from_it(tmp_path: Path) -> None:
    """Not by the list of words: by the sandbox."""
    task, _, _ = write_candidates(tmp_path, 200)
    (tmp_path / "answer").write_bytes(b"\0" * 100)
    path = tmp_path / "reader.cpp"
    opens = f'        if (open("{tmp_path / "answer"}", 0) < 0) return;\n'
    path.write_text(text(opens + body(), before='extern "C" int open(const char *, int, ...);\n'))
    verdict = insight_trace.judge(path, task)
    assert verdict.outcome in ("incomplete", "forbidden"), verdict


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('#include <pto/pto-inst.hpp>\n#include "../reference.py"\n', 2),
        ('// asm\nint a;\nasm("nop");\n', 3),
        ("# include WHAT\n", 1),
        ("int x = 0;\n__attribute__((constructor)) void f();\n", 2),
    ],
)
def test_what_a_kernel_has_no_use_for_is_named_with_its_line(source: str, line: int) -> None:
    assert forbidden(source)[1] == line


def test_an_honest_kernel_has_nothing_forbidden() -> None:
    for path in (ROOT / "examples" / "kernels").glob("*.cpp"):
        assert forbidden(path.read_text()) == ("", 0), path


_PASTE = "#define JOIN(a, b) a##b\n"
_ENGINE = (  # what is put before the kernel, what is put into it, what it is called, what the reason says
    ("", "int own = 0; volatile int *p = &own; for (int i = 0; i < 400; ++i) p[i] = 7;", "crash", "writes to 0x"),
    ("", "*reinterpret_cast<volatile long *>(0x7f0000001000) = 1;", "crash", "writes to 0x"),
    ("", "static int own[4]; volatile int *p = own; for (int i = 0; i < 1 << 16; ++i) p[i] = 7;", "crash", "writes to"),
    (_PASTE, 'JOIN(as, m) volatile("nop");', "forbidden", "asm"),
    (_PASTE + 'extern "C" int JOIN(mpro, tect)(void *, unsigned long, int);\n', "JOIN(mpro, tect)(0, 4096, 3);",
     "forbidden", "mprotect"),
    ("#include <cstring>\n", "std::memcpy(reinterpret_cast<void *>(row << 20), z, row + 8);", "forbidden", "memcpy"),
    (_PASTE + '__attribute__((JOIN(no_sani, tize)("thread"))) void poke(volatile long *p) { *p = 1; }\n',
     "poke(nullptr);", "forbidden", "no_sanitize"),
    # what would run as it is loaded is left out of the object: it crashes nothing
    ("struct Early { Early() { *reinterpret_cast<volatile long *>(8) = 1; } };\nstatic Early early;\n", "",
     "right", "cycles"),
    ("", "__builtin_ia32_movnti64(reinterpret_cast<long long *>(z), 1);", "forbidden", "__builtin_ia32_movnti64"),
)  # fmt: skip


@pytest.mark.parametrize(("before", "attack", "outcome", "said"), _ENGINE)
def test_a_kernel_does_not_reach_the_engine_that_runs_it(
    before, attack, outcome, said, tmp_path: Path
) -> None:
    task, _, _ = write_candidates(tmp_path, 200)
    file = tmp_path / "attack.cpp"
    file.write_text(text(f"        {attack}\n" + body(), before=before))
    verdict = insight_trace.judge(file, task)
    assert str(verdict.outcome) == outcome, verdict.reason
    assert said in verdict.reason


def test_a_reference_is_arithmetic_alone() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert (evaluate("np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) @ x.T", {"x": x})).shape == (2, 2)
    for wrong in (
        "np.load('a')",
        "x.tofile('a')",
        "().__class__",
        "__import__('os')",
        "[i for i in x]",
        "np.lib",
        "(lambda: x)()",
    ):
        with pytest.raises(InsightTraceError):
            evaluate(wrong, {"x": x})


def test_inputs_depend_on_the_candidates_text_and_poison_is_no_number(tmp_path: Path) -> None:
    task = read_task(write_candidates(tmp_path, 200)[0])
    seeds = [seed_of(task, b"kernel", 0), seed_of(task, b"kernel", 1), seed_of(task, b"kernel ", 0)]
    drawn = [made_inputs(task, seed)["x"] for seed in seeds]
    assert not np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert np.array_equal(drawn[0], made_inputs(task, seeds[0])["x"])
    assert np.isnan(poison(task.outputs[0], seeds[0])).all()


def test_judging_many_can_be_stopped(tmp_path: Path) -> None:
    task, paths, _ = write_candidates(tmp_path, 60)
    stop = threading.Event()
    stop.set()
    with pytest.raises(JobError, match="interrupted"):
        list(judge_all(paths, task, stop=stop))


# --- forms of tasks --------------------------------------------------------------------------------------


def _cann_bench(folder: Path, attrs: str = '{"scale": 2.0}', shapes: str = "[[64, 64], [64, 64]]") -> Path:
    folder.mkdir()
    (folder / "proto.yaml").write_text(
        "operator:\n  name: Axpy\n  schema: axpy(Tensor x, Tensor y, float scale=1.0) -> Tensor z\n"
    )
    row = f'Axpy,1,"{shapes}","[""float32""]","{attrs.replace(chr(34), chr(34) * 2)}","[-1, 1]",note'
    (folder / "cases.csv").write_text(f"operator,case_id,input_shape,dtype,attrs,value_range,note\n{row}\n")
    (folder / "golden.py").write_text("def axpy(x, y, scale=1.0):\n    return scale * x + y\n")
    return folder


def test_a_task_of_cann_bench_is_taken_and_a_kernel_judged_by_it(tmp_path: Path) -> None:
    task = read_task(_cann_bench(tmp_path / "axpy"))
    assert (task.name, task.outputs[0].shape, task.outputs[0].dtype) == ("axpy_1", (64, 64), "f32")
    assert [scalar.name for scalar in task.scalars] == ["scale"]
    path = tmp_path / "kernel.cpp"
    path.write_text(
        text(body(COMPUTE.replace("2.0f", "scale"))).replace("float *z)", "float *z, float scale)")
    )
    assert insight_trace.judge(path, task).outcome == "right"


def test_words_and_lists_of_a_case_go_to_its_reference_alone(tmp_path: Path) -> None:
    folder = _cann_bench(tmp_path / "axpy", '{"scale": 2.0, "mode": "sub", "axes": [0, 1]}')
    (folder / "golden.py").write_text(
        "def axpy(x, y, scale, mode, axes):\n    return scale * x - y if mode == 'sub' and axes == [0, 1] else None\n"
    )
    task = read_task(folder)
    assert [scalar.name for scalar in task.scalars] == ["scale"]
    ones = np.ones((64, 64), np.float32)
    assert (task.expected({"x": ones, "y": ones})[0] == 1.0).all()


def test_what_cannot_be_taken_of_other_forms_is_said(tmp_path: Path, capsys) -> None:
    with pytest.raises(
        InsightTraceError, match="one shape and one range of values for each of x, y are wanted"
    ):
        read_task(_cann_bench(tmp_path / "a", shapes="[[64, 64]]"))
    broken = _cann_bench(tmp_path / "d")
    (broken / "golden.py").write_text("def axpy(x, y, scale):\n    raise ValueError('no')\n")
    with pytest.raises(InsightTraceError, match="the reference of axpy_1 fails: ValueError: no"):
        read_task(broken)
    with pytest.raises(InsightTraceError, match="has no case 7"):
        read_task(_cann_bench(tmp_path / "b"), 7)
    with pytest.raises(InsightTraceError, match="a task may have"):
        read_task(_cann_bench(tmp_path / "c", shapes="[[65536, 65536], [64, 64]]"))
    model = tmp_path / "model.py"
    model.write_text(
        "import a_package_that_is_not_there\nclass Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
    )
    with pytest.raises(InsightTraceError, match="needs the Python package 'a_package_that_is_not_there'"):
        read_task(model)
    (tmp_path / "task.json").write_text('{"name": "t", "outputs": []}')
    assert main(["judge", str(tmp_path / "task.json"), str(model)]) == 1
    assert "this is no task" in capsys.readouterr().err
    assert main(["judge", str(tmp_path / "nothing.json"), "nothing.cpp"]) == 2


def test_a_model_of_multi_kernel_bench_is_a_task(tmp_path: Path) -> None:
    path = tmp_path / "square.py"
    path.write_text(
        "import numpy as np\n"
        "class Model:\n"
        "    def __init__(self, times): self.times = times\n"
        "    def parameters(self): return []\n"
        "    def forward(self, x): return self.times * x * x\n"
        "    __call__ = forward\n"
        "def get_inputs(): return [np.zeros((16, 64), np.float32)]\n"
        "def get_init_inputs(): return [3.0]\n"
    )
    task = read_task(path)
    x = np.full((16, 64), 2.0, np.float32)
    assert task.inputs[0].shape == (16, 64)
    assert (task.expected({"x": x})[0] == 12.0).all()


# --- what the guide shows --------------------------------------------------------------------------------


def test_the_example_of_the_guide_says_what_the_guide_shows(monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    shown = re.search(
        r"```\n\$ insight-trace (judge [^\n]*)\n(.*?)```", (ROOT / "docs" / "judge.md").read_text(), re.DOTALL
    )
    assert shown is not None
    assert main(shown[1].split()) == 1

    def plain(said: str) -> list[str]:
        """Without the model's own figures, which a better model changes."""
        return [re.sub(r"[\d,.]+", "N", " ".join(line.split())) for line in said.splitlines()]

    said = capsys.readouterr().out
    assert plain(said) == plain(shown[2])
    assert "(TMULS) every element is right" in said


def test_the_table_of_rank_correlations_is_what_the_script_computes() -> None:
    spec = importlib.util.spec_from_file_location(
        "rank_correlation", ROOT / "benchmarks" / "rank_correlation.py"
    )
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.table() in (ROOT / "docs" / "judge.md").read_text()
    known = script.families()
    assert script.tau(list(known.values())) >= 0.85
    assert script.tau([script.every_pair(family) for family in known.values()]) >= 0.8
    points = [script.Point(*each) for each in ((1, 1), (2, 2), (3, 3))]
    assert script.tau([points]) == 1
    assert script.tau([[point._replace(ours=-point.ours) for point in points]]) == -1
    # a time that is uncertain by a fifth cannot be ordered with one that is a tenth away; the others still can
    family = [script.Point(10, 2, spread=0.2), script.Point(11, 1), script.Point(11.5, 0.5)]
    assert script.counts(family) == (0, 1)
    assert script.counts(script.every_pair(family)) == (0, 3)


def test_the_json_holds_every_verdict(tmp_path: Path, capsys) -> None:
    task, _, _ = write_candidates(tmp_path, 200)
    path = tmp_path / "racing.cpp"
    path.write_text(text(body().replace(flag("V", "MTE3"), "")))
    assert main(["judge", str(task), str(path), "--json", "--jobs", "1"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["task"] == "axpy"
    assert found["verdicts"][0]["outcome"] == "fault"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rtol": 1}, "no tolerances"),
        ({"atol": -1e-9}, "no tolerances"),
        ({"baseline_cycles": 4000}, "has a baseline and baseline_cycles"),
        ({"baseline": "../good.cpp"}, "not in the folder of the task"),
        ({"baseline": "/etc/passwd"}, "not in the folder of the task"),
        ({"outputs": [{"name": "z", "dtype": "f32", "shape": [0]}]}, "has the shape"),
    ],
)
def test_a_task_that_anything_would_satisfy_is_refused(change, said, tmp_path) -> None:
    given = json.loads((ROOT / "examples" / "judge" / "axpy.json").read_text())
    (tmp_path / "task.json").write_text(json.dumps(given | change))
    with pytest.raises(InsightTraceError, match=said):
        read_task(tmp_path / "task.json")


def test_a_baseline_is_timed_with_the_candidates_and_not_before(tmp_path) -> None:
    task, _, _ = write_candidates(tmp_path, 200)
    slow, good = tmp_path / "slow.cpp", tmp_path / "good.cpp"
    slow.write_text(text(body(), rows=1))
    good.write_text(text(body()))
    first = dict(judge_all([slow, good], task, jobs=1))
    assert first[0].outcome == "slow"
    assert first[1].reason.startswith(f"{first[1].cycles:,} cycles, 1.00 ")
    # another baseline, the same task file: another verdict
    (tmp_path / "baseline.cpp").write_text(text(body(), rows=1))
    found = dict(judge_all([slow, good], task, jobs=1))
    assert (found[0].outcome, found[0].cycles) == ("right", first[0].cycles)
    assert found[1].score > found[0].score


def test_a_baseline_that_is_not_right_judges_nobody(tmp_path) -> None:
    task, _, _ = write_candidates(tmp_path, 200)
    (tmp_path / "baseline.cpp").write_text(text(body(COMPUTE.replace("2.0f", "3.0f"))))
    with pytest.raises(
        InsightTraceError, match=r"the task's baseline baseline\.cpp is no measure: wrong: z\[0,0\]"
    ):
        insight_trace.judge(tmp_path / "candidate_000.cpp", task)
    (tmp_path / "baseline.cpp").unlink()
    with pytest.raises(InsightTraceError, match=r"baseline\.cpp"):
        insight_trace.judge(tmp_path / "candidate_000.cpp", task)


def test_a_reference_of_nan_alone_judges_nobody(tmp_path) -> None:
    given = json.loads((ROOT / "examples" / "judge" / "axpy.json").read_text())
    (tmp_path / "task.json").write_text(json.dumps(given | {"reference": "x * np.nan"}))
    task = read_task(tmp_path / "task.json")
    with pytest.raises(InsightTraceError, match="of NaN alone"):
        task.expected(made_inputs(task, b"seed"))
