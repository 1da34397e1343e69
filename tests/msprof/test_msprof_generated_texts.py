"""The five generated files: as they were agreed, valid C++, and deaf to what names and paths say."""

import dataclasses
import difflib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from replay_cases import DATA, MEMBERS, arguments, job

from insight_trace.arguments.slots import ReplayArguments
from insight_trace.dtypes import DType
from insight_trace.errors import RequestError
from insight_trace.simulate.msprof.carried_sources import lay_out
from insight_trace.simulate.msprof.escaping import cmake_string, shell_word, template_environment
from insight_trace.simulate.msprof.vendor_workspace import GENERATED, generate, write_workspace

GOLDEN = DATA / "golden"
WHOLE = "aiv-a2a3"  # kept as it is; of the others what differs from it
UPDATE = bool(os.environ.get("INSIGHT_TRACE_UPDATE_GOLDEN"))


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("members", MEMBERS)
def test_generated_texts_are_the_agreed_ones(members, target):
    texts = generate(job(members, target))
    assert tuple(texts) == GENERATED
    if f"{members}-{target}" == WHOLE:
        for name, text in texts.items():
            agreed(GOLDEN / WHOLE / name, text)
    else:
        agreed(GOLDEN / f"{members}-{target}.diff", differences(texts))


def agreed(path, text):
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} changed; INSIGHT_TRACE_UPDATE_GOLDEN=1 accepts it"


def differences(texts):
    """What is not as in the workspace that is kept whole."""
    lines = []
    for name, text in texts.items():
        whole = (GOLDEN / WHOLE / name).read_text().splitlines(keepends=True)
        lines += difflib.unified_diff(whole, text.splitlines(keepends=True), name, name, n=0)
    return "".join(lines)


def test_equal_jobs_give_equal_workspaces(tmp_path):
    for name in ("one", "two"):
        write_workspace(job("mix-2"), tmp_path / name)
    files = [p.relative_to(tmp_path / "one") for p in sorted((tmp_path / "one").rglob("*")) if p.is_file()]
    assert {str(f) for f in files} >= {*GENERATED, "payloads/slot00.bin", "kernels/shared/tensor_view.h"}
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert os.access(tmp_path / "one/run_collect.sh", os.X_OK)


def test_the_workspace_names_no_folder_of_this_machine_but_the_roots_it_was_given(tmp_path):
    write_workspace(job("mix-2"), tmp_path / "w")
    for name in GENERATED:
        text = (tmp_path / "w" / name).read_text()
        assert str(DATA) not in text
        assert str(tmp_path) not in text
        assert str(Path.home()) + "/" not in text


@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("guard", ["__DAV_CUBE__", "__DAV_VEC__", "HOST_PASS"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_generated_kernels_compile_with_the_host_compiler(tmp_path, members, guard, compiler):
    write_workspace(job(members, hardware_blocks=2), tmp_path)
    for name in ("replay_kernel.cpp", "replay_launch.cpp"):
        compile_cpp(compiler, tmp_path, name, f"-D{guard}", "-include", str(DATA / "toolkit/cce_on_host.h"))


@pytest.mark.parametrize("slots", ["all", "none"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_generated_host_program_compiles_without_a_warning(tmp_path, slots, compiler):
    chosen = arguments() if slots == "all" else ReplayArguments(())
    write_workspace(job("aiv", arguments=chosen), tmp_path)
    compile_cpp(compiler, tmp_path, "replay_host.cpp")


def compile_cpp(compiler, folder, name, *flags):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on this machine")
    command = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags]
    command += ["-I", str(DATA / "toolkit/include"), name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- hostile names -------------------------------------------------------------------------------------

NASTY = [
    '"',
    "\\",
    "\n",
    "\r",
    "$(touch x)",
    "`id`",
    "*/",
    "//",
    "??/",
    "${HOME}",
    "'",
    ";",
    "#",
    "\t",
    "é",
    "\\\n",
]
nasty_text = st.lists(st.sampled_from(NASTY) | st.text(max_size=4), max_size=6).map("".join)
nasty_path = nasty_text.map(lambda text: "/opt/" + text.replace("\0", ""))

CPP_LITERAL = re.compile(r'"(?:\\[\\"?]|\\[0-3][0-7]{2}|[ !#->@-\[\]-~])*"')


def skeleton(texts):
    """The texts without what literals hold: C++ strings emptied, lines that define paths cut short."""
    cut = {name: CPP_LITERAL.sub('""', text) for name, text in texts.items() if name.endswith(".cpp")}
    cmake = re.compile(r'^(set\(\w+ )"(?:\\["\\$nrt]|[^"\\$\n])*"( CACHE .*)$', re.MULTILINE)
    cut["CMakeLists.txt"] = cmake.sub(r"\1\2", texts["CMakeLists.txt"])
    shell = re.compile(
        r"^(default_\w+=)(?:\$'(?:\\['\\]|\\[0-3][0-7]{2}|[^'\\\n])*'|(?:'[^'\n]*'|\"'\"|[\w@%+=:,./-])*)$",
        re.M,
    )
    cut["run_collect.sh"] = shell.sub(r"\1", texts["run_collect.sh"])
    return cut


PLAIN = {members: skeleton(generate(job(members))) for members in MEMBERS}


@given(st.sampled_from(sorted(MEMBERS)), nasty_text, nasty_text, nasty_path, nasty_text)
@example("mix-2", '"; int x; //\n*/ $(touch x) ??/\n', '*/ "', "/opt/$(touch x)\n\"'", '"\n#include <x>')
def test_names_types_and_paths_change_nothing_but_literals(
    members, kernel_name, dtype_name, path, tensor_name
):
    plain = job(members)
    strange = DType(dtype_name, 0, 4, "float32", "f32", "float", True)
    slots = tuple(
        replace(item, name=tensor_name, dtype=strange) if item.slot < 4 else item
        for item in plain.arguments.slots
    )
    hostile = dataclasses.replace(
        plain,
        kernels=tuple(replace(kernel, name=kernel_name) for kernel in plain.kernels),
        arguments=ReplayArguments(slots),
        pto_isa_root=Path(path),
        simpler_root=Path(path),
        soc_version=path,
    )
    assert skeleton(generate(hostile)) == PLAIN[members]


@pytest.mark.parametrize("nasty", [*NASTY, "a b$(touch pwned)'\"\n\\;#é`id`", "\udcff", "-n", ""])
def test_bash_reads_back_exactly_what_was_written(tmp_path, nasty):
    script = tmp_path / "s.sh"
    script.write_bytes(b"x=" + shell_word(nasty).encode() + b'\nprintf %s "$x"\n')
    done = subprocess.run(["bash", "-eu", script], capture_output=True, cwd=tmp_path)
    assert done.stdout == nasty.encode("utf-8", "surrogateescape")
    assert [p.name for p in tmp_path.iterdir()] == ["s.sh"]


def test_cmake_reads_back_exactly_what_was_written(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("no cmake on this machine")
    values = [*NASTY, "a b$(touch pwned)'\"\n\\;#é${HOME}$ENV{HOME}@HOME@", "[[x]]"]
    lines = [f'set(value {cmake_string(v)})\nfile(WRITE "out{i}" "${{value}}")' for i, v in enumerate(values)]
    (tmp_path / "s.cmake").write_text("cmake_minimum_required(VERSION 3.16)\n" + "\n".join(lines) + "\n")
    subprocess.run(["cmake", "-P", "s.cmake"], cwd=tmp_path, check=True, capture_output=True)
    for i, value in enumerate(values):
        assert (tmp_path / f"out{i}").read_bytes() == value.encode(), value


@pytest.mark.parametrize(
    "expression", ["{{ name }}", "{{ name ~ 1 }}", "{{ name | upper }}", "{{ true }}", "{{ 1.5 }}"]
)
def test_a_template_that_prints_unescaped_text_fails(expression):
    with pytest.raises(TypeError, match="escaping"):
        template_environment().from_string(expression).render(name="x")


def test_a_template_that_prints_an_undefined_name_fails():
    import jinja2

    with pytest.raises(jinja2.UndefinedError):
        template_environment().from_string("{{ nothing | word }}").render()


@pytest.mark.parametrize("change", [{"runtime": "../x"}, {"runtime": "a b"}, {"pto_isa_root": Path("/a\0b")}])
def test_what_cannot_be_a_literal_is_refused(change):
    with pytest.raises(RequestError, match="workspace cannot be written"):
        generate(job("aiv", **change))


@pytest.mark.parametrize(
    "change",
    [{"hardware_blocks": 0}, {"launch_count": 5001}, {"timeout_minutes": 0}, {"timeout_minutes": 2881}],
)
def test_numbers_that_msprof_would_refuse_are_refused_first(change):
    with pytest.raises(RequestError):
        job("aiv", **change)


def test_a_kernel_file_with_a_strange_name_is_copied_under_a_plain_one(tmp_path):
    folder = tmp_path / 'we"ird $(x)'
    folder.mkdir()
    source = folder / 'ker nel".cpp'
    source.write_text('#include "own.h"\nextern "C" void kernel_entry(long *) {}\n')
    (folder / "own.h").write_text("#pragma once\n")
    layout = lay_out((replace(MEMBERS["aiv"][0], source=source),))
    assert {name for name, _ in layout.files} == {"kernels/ker_nel_.cpp", "kernels/own.h"}
    assert layout.vector[0].source == "kernels/ker_nel_.cpp"
