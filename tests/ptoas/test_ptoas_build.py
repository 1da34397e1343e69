"""A build directory is read as PyPTO lays it out, and each kernel gets a name of its own."""

import json
import stat

import pytest
from small_kernels import write_kernel

from insight_trace.chips import arch_named
from insight_trace.errors import JobError, RequestError
from insight_trace.profile.case_run import case_command, run_for_build, shell_command, submitted
from insight_trace.ptoas.assembler import assemble, find_ptoas, ptoas_version
from insight_trace.ptoas.discovery import find_sources, unique_names
from insight_trace.ptoas.kernel_plan import Settings, plan_kernels, refuse_unused_names, select_kernels
from insight_trace.ptoas.planned_kernel import BrokenKernel
from insight_trace.scene.build_directory import recorded_arch


def planned(build, **settings):
    return plan_kernels(find_sources(build), build, Settings(**settings))


def test_the_top_level_comes_first_then_nested_levels_in_order(tmp_path):
    for where in ("next_levels/b/ptoas", "ptoas", "next_levels/a/deep/ptoas"):
        write_kernel(tmp_path / where, "k" + where.replace("/", "_"))
    found = [str(source.path.relative_to(tmp_path).parent) for source in find_sources(tmp_path)]
    assert found == ["ptoas", "next_levels/a/deep/ptoas", "next_levels/b/ptoas"]


def test_without_a_top_level_kernels_are_found_anywhere_but_in_earlier_runs(tmp_path):
    write_kernel(tmp_path / "deep" / "ptoas", "k")
    for run in ("cases/ptoas", "kernel_insight_all_funcs_1/ptoas", "insight_x/ptoas", "a/collect/ptoas"):
        write_kernel(tmp_path / run, "old")
    assert [source.path.stem for source in find_sources(tmp_path)] == ["k"]


def test_a_glob_and_a_directory_override_the_layout(tmp_path, monkeypatch):
    write_kernel(tmp_path / "odd" / "place", "k")
    write_kernel(tmp_path / "odd" / "place", "l")
    monkeypatch.chdir(tmp_path)
    assert len(find_sources(tmp_path, ptoas_dir=tmp_path / "odd" / "place")) == 2
    assert [s.path.stem for s in find_sources(tmp_path, source_glob="odd/*/l.cpp")] == ["l"]
    assert len(find_sources(tmp_path, source_glob=str(tmp_path / "odd/*/*.cpp"))) == 2


def test_a_build_without_kernels_says_what_one_has(tmp_path):
    with pytest.raises(RequestError, match=r"a PyPTO build has ptoas/\*\.cpp"):
        find_sources(tmp_path)
    with pytest.raises(RequestError, match="is not a directory"):
        find_sources(tmp_path / "gone")


def test_equal_stems_get_the_name_of_their_place(tmp_path):
    for where in ("ptoas", "next_levels/a/ptoas", "next_levels/b/ptoas"):
        write_kernel(tmp_path / where, "k")
    write_kernel(tmp_path / "ptoas", "alone")
    assert [k.name for k in planned(tmp_path)] == ["alone", "k", "a.k", "b.k"]


def test_names_are_safe_as_directories_and_differ_even_by_case(tmp_path):
    sources = []
    for where, stem in (("x", "K"), ("y", "k")):
        sources.append(write_kernel(tmp_path / where / "ptoas", stem))
    found = find_sources(tmp_path)
    names = unique_names(found, ["", ""])
    assert len({name.casefold() for name in names}) == 2
    odd = write_kernel(tmp_path / "z" / "ptoas", "a b;c", "f")
    assert unique_names(find_sources(tmp_path / "z"), [""]) == ("a_b_c",)
    assert odd.is_file()


def test_several_kernels_of_a_file_carry_their_function(tmp_path):
    cpp = write_kernel(tmp_path / "ptoas", "pair", "one")
    cpp.write_text(cpp.read_text() + cpp.read_text().replace("one", "two"))
    pto = cpp.with_suffix(".pto")
    text = pto.read_text()
    body = text[text.index("  func.func") : text.rindex("}")]
    pto.write_text(text.replace(body, body + body.replace("@one", "@two")))
    assert [k.name for k in planned(tmp_path)] == ["pair.one", "pair.two"]


def test_a_missing_pto_is_told_at_once_and_leaves_the_others_alone(tmp_path):
    write_kernel(tmp_path / "ptoas", "bad").with_suffix(".pto").unlink()
    write_kernel(tmp_path / "ptoas", "good")
    bad, good = planned(tmp_path)
    assert isinstance(bad, BrokenKernel)
    assert "has no .pto beside it" in bad.problem
    assert good.name == "good"


def test_the_target_comes_from_the_pto_then_the_build_then_the_default(tmp_path):
    cpp = write_kernel(tmp_path / "ptoas", "k")
    assert planned(tmp_path)[0].arch == "a2a3"
    pto = cpp.with_suffix(".pto")
    pto.write_text(pto.read_text().replace('"a2a3"', '"a5"'))
    assert planned(tmp_path)[0].arch == "a5"
    (overridden,) = planned(tmp_path, target="a2a3")
    assert overridden.arch == "a2a3"
    assert "built for a5" in overridden.warnings[0]
    pto.write_text(pto.read_text().replace('attributes {pto.target_arch = "a5"} ', ""))
    assert "assumed" in planned(tmp_path)[0].warnings[0]
    (tmp_path / "compiled_meta.json").write_text(json.dumps({"platform": "a5sim"}))
    assert planned(tmp_path)[0].arch == "a5"
    (tmp_path / "compiled_meta.json").write_text("[broken")
    assert recorded_arch(cpp, tmp_path) == ""


@pytest.mark.parametrize(
    ("text", "arch"),
    [("a3", "a2a3"), ("Ascend910B1", "a2a3"), ("Ascend950", "a5"), ("Ascend910_95", "a5"), ("x86", "")],
)
def test_targets_are_known_by_their_words(text, arch):
    assert arch_named(text) == arch


def test_a_wanted_kernel_is_found_by_name_stem_or_function_and_a_wrong_name_is_refused(tmp_path):
    write_kernel(tmp_path / "ptoas", "group_0", "softmax")
    write_kernel(tmp_path / "ptoas", "other")
    kernels = planned(tmp_path)
    for word in ("group_0", "softmax"):
        assert [k.name for k in select_kernels(kernels, [word])] == ["group_0"]
    with pytest.raises(RequestError, match="did you mean 'other'"):
        select_kernels(kernels, ["othr"])


def test_a_value_for_no_argument_at_all_is_refused(tmp_path):
    write_kernel(tmp_path / "ptoas", "k")
    for name in ("ghost", "k:ghost", "other:x"):
        settings = Settings(scalars={name: 1})
        with pytest.raises(RequestError, match="no kernel of this run"):
            refuse_unused_names(plan_kernels(find_sources(tmp_path), tmp_path, settings), settings)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def assembled(folder, ptoas, target=""):
    build = folder / "build"
    return assemble(find_sources(build), ptoas, folder / "out", timeout=20, build=build, target=target)


def test_the_assembler_gets_the_target_that_is_named_where_the_text_names_none(tmp_path):
    cpp = write_kernel(tmp_path / "build" / "ptoas", "k")
    pto = cpp.with_suffix(".pto")
    pto.write_text(pto.read_text().replace('attributes {pto.target_arch = "a2a3"} ', ""))
    assert "target_arch" not in pto.read_text()
    cpp.unlink()
    ptoas = script(tmp_path / "ptoas", f'echo "$@" > {tmp_path}/args')
    for target, meta, wanted in (("a5", {}, "a5"), ("", {"platform": "a5sim"}, "a5"), ("", {}, "")):
        (tmp_path / "build" / "compiled_meta.json").write_text(json.dumps(meta))
        assembled(tmp_path, ptoas, target)
        given = (tmp_path / "args").read_text()
        assert f"--pto-arch={wanted}" in given if wanted else "--pto-arch" not in given


def test_an_assembler_makes_kernels_of_pto_files_without_cpp(tmp_path):
    cpp = write_kernel(tmp_path / "build" / "ptoas", "k")
    made = tmp_path / "made.cpp"
    cpp.rename(made)
    ptoas = script(tmp_path / "ptoas", f'echo "$@" > {tmp_path}/args; cp {made} "$3"')
    sources, problems = assembled(tmp_path, ptoas)
    assert not problems
    (kernel,) = plan_kernels(sources, tmp_path / "build", Settings())
    assert kernel.source.parent.parent == tmp_path / "out"
    assert "--pto-arch=a3" in (tmp_path / "args").read_text()


def test_what_the_assembler_says_is_the_problem(tmp_path):
    write_kernel(tmp_path / "build" / "ptoas", "k").unlink()
    ptoas = script(tmp_path / "ptoas", "echo 'k.pto:3:1: error: bad tile' >&2; exit 1")
    sources, problems = assembled(tmp_path, ptoas)
    assert "error: bad tile" in problems[tmp_path / "build" / "ptoas" / "k.pto"]
    (kernel,) = plan_kernels(sources, tmp_path / "build", Settings())
    assert isinstance(kernel, BrokenKernel)
    assert "--ptoas-bin" in kernel.problem
    assert (kernel.kind, kernel.arch) == ("aiv", "a2a3")


def test_the_assembler_is_looked_for_where_the_user_says(tmp_path):
    binary = script(tmp_path / "ptoas", "exit 0")
    assert find_ptoas(binary, {}) == binary
    assert find_ptoas(None, {"PTOAS_ROOT": str(tmp_path), "PATH": ""}) == binary
    assert find_ptoas(None, {"PATH": str(tmp_path)}) == binary
    assert find_ptoas(None, {"PATH": "/nowhere"}) is None
    with pytest.raises(RequestError, match="not an executable"):
        find_ptoas(tmp_path / "gone", {})


def test_a_case_is_run_and_its_new_build_is_taken(tmp_path):
    root = tmp_path / "build_output"
    write_kernel(root / "old" / "ptoas", "k")
    case = tmp_path / "case.py"
    case.write_text(
        "import os, shutil, sys\nprint('hello', os.environ['FLAVOUR'])\n"
        f"new = {str(root)!r} + '/' + sys.argv[1]\n"
        f"shutil.copytree({str(root / 'old')!r}, new, copy_function=shutil.copyfile)\n"
    )
    build = run_for_build(case_command(case, ["fresh"], ["FLAVOUR=sweet"]), root, tmp_path / "log")
    assert build == root / "fresh"
    assert "hello sweet" in (tmp_path / "log").read_text()


def test_a_command_that_fails_never_yields_an_old_build(tmp_path):
    write_kernel(tmp_path / "old" / "ptoas", "k")
    with pytest.raises(JobError, match="exit code 3") as caught:
        run_for_build(shell_command("echo the cause; exit 3"), tmp_path, tmp_path / "log")
    assert "the cause" in caught.value.hint
    with pytest.raises(JobError, match="made no build"):
        run_for_build(shell_command("true"), tmp_path, tmp_path / "log")


def test_task_submit_gets_the_command_as_one_word():
    command = submitted(shell_command("make it"), "3")
    assert command.words == ("task-submit", "--run", "--device", "3", "bash -lc 'make it'")


def test_the_assembler_says_its_version_or_why_it_does_not_start(tmp_path):
    assert ptoas_version(script(tmp_path / "a", "echo 'ptoas 0.57'")) == "ptoas 0.57"
    lacking = script(tmp_path / "b", "echo 'libMLIR.so: cannot open' >&2; exit 127")
    assert ptoas_version(lacking) == "does not start: libMLIR.so: cannot open"
    assert ptoas_version(tmp_path / "gone").startswith("does not start")
