"""`insight-trace diff`: regressions are named with line and cause, harmless changes are not, whatever the names."""

import contextlib
import io
import json
import os
import re
import shutil
from pathlib import Path

import pytest

import insight_trace
from insight_trace.__main__ import main
from insight_trace.errors import JobError
from insight_trace.guard.bisecting import Trial, bisect
from insight_trace.guard.difference import Difference, Grade, KernelDifference
from insight_trace.guard.matching import Listed, listed, match
from tests.guard.harmless import write_harmless
from tests.guard.regressions import REGRESSIONS
from tests.guard.small_builds import SmallKernel, write_build, write_pair

ROOT = Path(__file__).resolve().parents[2]
HARMLESS = 40 if os.environ.get("INSIGHT_TRACE_LONG_TESTS") else 10
BY_NAME = {kernel.name: kernel for kernel in REGRESSIONS}


@pytest.fixture(scope="module")
def regressions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """All twelve pairs through the command, with its three reports."""
    folder = tmp_path_factory.mktemp("regressions")
    a, b = write_pair(folder, list(REGRESSIONS))
    reports = ["--sarif", str(folder / "diff.sarif"), "--junit", str(folder / "diff.xml")]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = main(["diff", str(a), str(b), "--json", *reports])
    sarif = json.loads((folder / "diff.sarif").read_text())
    return {
        "code": code, "json": json.loads(said.getvalue()), "sarif": sarif, "junit": (folder / "diff.xml").read_text(),
        "a": a, "b": b,
    }  # fmt: skip


@pytest.mark.parametrize("kernel", REGRESSIONS, ids=lambda kernel: kernel.name)
def test_a_regression_is_named_with_its_line_and_cause(regressions, kernel: SmallKernel) -> None:
    found = next(one for one in regressions["json"]["kernels"] if one["name"] == kernel.name)
    cause = found["causes"][0]
    assert (cause["kind"], cause["line"]) == (kernel.cause, kernel.marked()), found["sentence"]
    assert kernel.says in found["sentence"]
    assert found["grade"] == ("slower" if kernel.cause == "slower" else "error")
    assert found["matched_by"] == "name"


def test_the_worst_stand_first_and_errors_decide_the_exit_code(regressions) -> None:
    assert regressions["code"] == 1
    grades = [one["grade"] for one in regressions["json"]["kernels"]]
    assert grades == ["error"] * 11 + ["slower"]
    assert regressions["json"]["errors"] == 11


def test_reports_for_build_servers_hold_every_error_at_its_line(regressions) -> None:
    assert '<testsuites name="insight-trace diff" tests="12" failures="11">' in regressions["junit"]
    results = regressions["sarif"]["runs"][0]["results"]
    lines = {
        (Path(place["artifactLocation"]["uri"]).stem, place["region"]["startLine"])
        for one in results
        for place in [one["locations"][0]["physicalLocation"]]
    }
    assert {(kernel.name, kernel.marked()) for kernel in REGRESSIONS} <= lines


def test_figures_of_both_builds_are_those_of_the_same_data(regressions) -> None:
    found = next(one for one in regressions["json"]["kernels"] if one["name"] == "live_ub_reused")
    assert found["data"] == "made-up arguments"
    assert found["a"]["bytes_moved"] == found["b"]["bytes_moved"] == 2 * 16 * 64 * 4
    assert found["a"]["memory"] == {"UB": 0x3000}
    assert found["b"]["memory"] == {"UB": 0x2800}  # two tiles lie partly on the same bytes
    assert found["a"]["low"] < found["a"]["cycles"] < found["a"]["high"]


def test_the_other_way_round_the_errors_are_fixed(regressions, tmp_path: Path) -> None:
    names = ("tci_wrong_pipe", "lost_barrier")
    sides = []
    for side in ("b", "a"):
        place = tmp_path / side / "ptoas"
        place.mkdir(parents=True)
        for name in names:
            for path in (regressions[side] / "ptoas").glob(f"{name}.*"):
                shutil.copy(path, place)
        sides.append(place.parent)
    found = insight_trace.diff(*sides)
    assert {one.name: one.grade for one in found.kernels} == dict.fromkeys(names, Grade.FIXED)


def test_harmless_changes_are_no_errors_and_kernels_are_matched_although_renumbered(tmp_path: Path) -> None:
    a, b, changes = write_harmless(tmp_path, HARMLESS)
    found = insight_trace.diff(a, b)
    assert len(found.kernels) == HARMLESS
    assert not [
        one.sentence for one in found.kernels if one.grade not in (Grade.CHANGED, Grade.SAME, Grade.SLOWER)
    ]
    for one in found.kernels:
        number = int(re.sub(r"\D", "", one.name))
        assert one.name_b == f"main_incore_{number + 1}"
        if changes[number] == "renumbered":
            assert one.grade is Grade.SAME


def test_a_kernel_that_is_new_is_checked_and_one_that_is_gone_is_named(tmp_path: Path) -> None:
    good, bad = BY_NAME["lost_barrier"], BY_NAME["tci_wrong_pipe"]
    cube = BY_NAME["back_edge"]
    ptos = {kernel.name: kernel.pto() for kernel in (good, bad, cube)}
    a = write_build(tmp_path / "A", {good.name: good.cpp(), cube.name: cube.cpp()}, ptos)
    b = write_build(tmp_path / "B", {good.name: good.cpp(), bad.name: bad.cpp(second=True)}, ptos)
    found = {one.name or one.name_b: one for one in insight_trace.diff(a, b).kernels}
    assert found[good.name].grade is Grade.SAME
    assert found[cube.name].grade is Grade.GONE
    assert found[bad.name].grade is Grade.ERROR
    assert "new in B, with an error: TSTORE at line" in found[bad.name].sentence


def test_a_kernel_that_no_longer_compiles_is_an_error_with_its_line(tmp_path: Path) -> None:
    kernel = BY_NAME["lost_barrier"]
    a = write_build(tmp_path / "A", {kernel.name: kernel.cpp()}, {kernel.name: kernel.pto()})
    wrong = kernel.cpp().replace("TADDS(", "TADDZ(")
    line = next(n for n, text in enumerate(wrong.splitlines(), 1) if "TADDZ" in text)
    b = write_build(tmp_path / "B", {kernel.name: wrong}, {kernel.name: kernel.pto()})
    (found,) = insight_trace.diff(a, b).kernels
    assert found.grade is Grade.ERROR
    assert (found.causes[0].kind, found.line) == ("failure", line)


def test_an_allowed_finding_is_no_error(tmp_path: Path) -> None:
    kernel = BY_NAME["lost_barrier"]
    allowed = kernel.cpp(second=True).replace("//!", "// insight-trace: allow race")
    ptos = {kernel.name: kernel.pto()}
    a = write_build(tmp_path / "A", {kernel.name: kernel.cpp()}, ptos)
    b = write_build(tmp_path / "B", {kernel.name: allowed}, ptos)
    assert not insight_trace.diff(a, b).errors


def test_a_build_that_can_be_run_is_judged_on_dispatches_of_its_run(tmp_path: Path) -> None:
    build = ROOT / "examples" / "pypto_run"
    other = Path(shutil.copytree(build, tmp_path / "other"))
    for path in other.glob("**/scale_blocks.cpp"):
        text = path.read_text()
        path.write_text(text.replace("TADDS(v20, v19, v13);", "TADDS(v20, v17, v13);"))
    found = {one.name: one for one in insight_trace.diff(build, other).kernels}
    assert found["square_rows"].grade is Grade.SAME
    one = found["scale_blocks"]
    assert one.data == "dispatch 0 of 1 of A's run"
    assert one.grade is Grade.ERROR
    assert one.sentence.startswith(
        "`scale_blocks`: TADDS at line 49 takes other operands (operand 1: address 0x1000 and 0x0"
    )


def test_scenes_are_compared_on_a_capture_of_the_first(tmp_path: Path) -> None:
    scene = ROOT / "examples" / "vector_chain"
    other = Path(shutil.copytree(scene, tmp_path / "other"))
    kernel = other / "kernels" / "multiply.cpp"
    lost = "    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);\n    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);\n"
    kernel.write_text(kernel.read_text().replace(lost, ""))
    found = insight_trace.diff(scene / "scene.py", other / "scene.py", case="Default")
    assert [(one.name, one.grade) for one in found.kernels] == [
        ("MUL", Grade.ERROR),
        ("ADD", Grade.SAME),
        ("ADDS", Grade.SAME),
    ]
    assert found.kernels[0].sentence.startswith(
        "`MUL`: TSTORE at line 15 no longer waits for V (TMUL, line 14): race on UB"
    )


def test_workspaces_are_compared_on_what_the_first_recorded(tmp_path: Path, capsys) -> None:
    text = (ROOT / "examples" / "own_program" / "add.cpp").read_text()
    for name, source in (("a", text), ("b", text.replace("TADD(", "TSUB("))):
        (tmp_path / f"{name}.cpp").write_text(source)
        arguments = ["x=f32[4,1024]:random:1", "y=f32[4,1024]:random:2", "z=f32[4,1024]", "rows=4"]
        words = [word for argument in arguments for word in ("--arg", argument)]
        place = tmp_path / f"run_{name}" / "add_0"
        place.parent.mkdir()
        assert main(["kernel", str(tmp_path / f"{name}.cpp"), *words, "--blocks", "4", "-o", str(place)]) == 0
    capsys.readouterr()
    assert main(["diff", str(tmp_path / "run_a"), str(tmp_path / "run_b")]) == 1
    said = capsys.readouterr().out
    assert "`add_0`: TSUB at line" in said
    assert "TADD in A, TSUB in B" in said


def test_baselines_are_compared_by_their_figures(tmp_path: Path) -> None:
    def written(name: str, cycles: int, findings: dict[str, int]) -> Path:
        kernel = {"dispatches": 1, "cycles": cycles, "most": cycles, "source": "k.cpp", "findings": findings}
        case = {
            "scene": "s.py",
            "case": "C",
            "chip": "x",
            "cycles": 9,
            "verdict": "passed",
            "kernels": {"K": kernel},
        }
        path = tmp_path / name
        path.write_text(json.dumps({"cases": [case], "threshold": 0.01, "version": 1}))
        return path

    a, b = written("a.json", 100, {}), written("b.json", 120, {"error race": 1})
    (one,) = insight_trace.diff(a, b).kernels
    assert (one.grade, one.sentence) == (Grade.ERROR, "`s.py::C::K`: K: error race: 0 before, 1 now")
    assert insight_trace.diff(a, written("c.json", 120, {})).kernels[0].grade is Grade.SLOWER
    assert insight_trace.diff(a, a).kernels[0].grade is Grade.SAME


def test_what_cannot_be_compared_is_a_wrong_request(tmp_path: Path, capsys) -> None:
    build, scene = str(ROOT / "examples" / "pypto_run"), str(ROOT / "examples" / "vector_chain" / "scene.py")
    assert main(["diff", build, scene]) == 2
    assert "only two of a kind are compared" in capsys.readouterr().err
    assert main(["diff", build, str(tmp_path / "nothing")]) == 2
    assert main(["diff", build, str(tmp_path)]) == 2
    assert "holds no kernels" in capsys.readouterr().err
    assert main(["diff", build, build, "--bisect", "make"]) == 2
    assert main(["diff", build, build, "--bisect", "make", "--revisions", "a,b"]) == 2
    assert "names no {rev}" in capsys.readouterr().err
    assert main(["diff", build, build, "--threshold", "-1"]) == 2


def test_the_example_of_the_guide_says_what_the_guide_shows(monkeypatch, capsys) -> None:
    monkeypatch.chdir(ROOT)
    shown = re.search(
        r"```\n\$ insight-trace (diff [^\n]*)\n(.*?)```", (ROOT / "docs" / "guard.md").read_text(), re.DOTALL
    )
    assert shown is not None
    assert main(shown[1].split()) == 1
    said = capsys.readouterr().out

    def plain(text: str) -> list[str]:
        """Without the model's own figures, which a better model changes."""
        return [
            line if line.startswith("error      ") else re.sub(r"[\d,.]+", "N", " ".join(line.split()))
            for line in text.splitlines()
        ]

    assert plain(said) == plain(shown[2])


# --- matching --------------------------------------------------------------------------------------------


def _kernels(*bodies: str) -> list[Listed]:
    named = [(f"main_incore_{number}", body) for number, body in enumerate(bodies)]
    return [
        listed(name, "aiv", ("float*",), [f"void {name}() {{ {body} }}"], (name,)) for name, body in named
    ]


def test_an_inserted_kernel_renumbers_the_rest_and_none_is_mistaken() -> None:
    load, mul, exp = "TLOAD(v1, v2); TADD(v1, v2, v3);", "TLOAD(v1, v2); TMUL(v1, v2, v3);", "TEXP(v1, v2);"
    a = _kernels(load, mul, exp)
    b = _kernels(exp.replace("TEXP", "TLOG"), load.replace("v1", "v9"), mul + "pipe_barrier(PIPE_V);", exp)
    pairs, gone, new = match(a, b)
    assert [(one.a, one.b) for one in pairs] == [(0, 1), (1, 2), (2, 3)]
    assert (gone, new) == ([], [0])


def test_names_of_values_and_layout_are_no_difference_and_everything_else_is() -> None:
    def text(body: str, name: str = "k") -> str:
        return listed(name, "aiv", (), [f"void {name}() {{ {body}\n}}"], (name,)).text

    assert text("TADD(v1, v2, v1);", "k") == text("TADD( v7,\n v3, v7 ); // sum", "other")
    assert text("TADD(v1, v2, v1);") != text("TADD(v1, v2, v2);")
    assert text("f(1);") != text("f(2);")
    assert text("x = a;") != text("x = b;")


# --- bisection -------------------------------------------------------------------------------------------


def _bad() -> Difference:
    return Difference("a", "b", (KernelDifference("k", "k", Grade.ERROR, "`k`: race"),))


@pytest.mark.parametrize("first", range(9))
def test_the_first_bad_revision_is_found_in_few_builds(first: int) -> None:
    revisions, built = [f"r{i}" for i in range(9)], []

    def build(revision: str) -> Path:
        built.append(revision)
        return Path(revision)

    found = bisect(
        revisions, build, lambda p: _bad() if int(p.name[1:]) >= first else Difference("a", "b", ())
    )
    assert found.candidates == (f"r{first}",)
    assert len(built) <= 5


def test_revisions_that_cannot_be_built_are_passed_over_and_said() -> None:
    def build(revision: str) -> Path:
        if revision in ("r1", "r2"):
            raise JobError("its build command ended with 1")
        return Path(revision)

    found = bisect(
        ["r0", "r1", "r2", "r3", "r4"],
        build,
        lambda path: _bad() if path.name >= "r3" else Difference("a", "b", ()),
    )
    assert found.candidates == ("r1", "r2", "r3")
    assert {one.revision: one.trial for one in found.tried}["r1"] is Trial.SKIPPED


def test_a_build_command_is_driven_over_revisions(tmp_path: Path, monkeypatch, capsys) -> None:
    kernel = BY_NAME["lost_barrier"]
    ptos = {kernel.name: kernel.pto()}
    for revision in ("r1", "r2", "r3"):
        write_build(tmp_path / revision, {kernel.name: kernel.cpp(second=revision >= "r2")}, ptos)
    good = write_build(tmp_path / "good", {kernel.name: kernel.cpp()}, ptos)
    monkeypatch.chdir(tmp_path)
    words = ["--bisect", "rm -rf out && cp -r {rev} out", "--revisions", "r1,r2,r3"]
    assert main(["diff", str(good), "out", *words]) == 1
    said = capsys.readouterr().out
    assert re.search(r"^first bad\s+r2$", said, re.MULTILINE)
    assert "no longer waits for TADDS" in said
