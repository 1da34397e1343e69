"""What the user gives decides: interpreters, arrays and their shapes, sources; what repeats is said once."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from small_kernels import VECTOR_PTO, write_kernel
from tests.torch_files import torch_file

from insight_trace.__main__ import main
from insight_trace.commands.profile import _Lines
from insight_trace.errors import InputError, RequestError
from insight_trace.profile import ProfileRequest, list_kernels
from insight_trace.profile.case_run import case_command, users_python
from insight_trace.profile.manifest import ManifestRow
from insight_trace.profile.profile_run import Progress, near_empty
from insight_trace.ptoas.kernel_plan import Settings
from insight_trace.ptoas.planned_kernel import ProfileKernel

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "pypto_build"


def test_a_case_runs_with_the_users_python(tmp_path, monkeypatch):
    mine = tmp_path / "bin" / "python"
    mine.parent.mkdir()
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    script = tmp_path / "case.py"
    script.write_text("")
    monkeypatch.setenv("PATH", str(mine.parent))
    assert case_command(script, [], []).words[0] == str(mine)
    assert case_command(script, [], [], sys.executable).words[0] == sys.executable
    with pytest.raises(RequestError, match="no such interpreter"):
        users_python("nopython")


def test_a_case_that_fails_says_with_which_python(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "case.py").write_text("import nowhere_to_be_found\n")
    assert main(["profile", "--case", "case.py", "--python", sys.executable]) == 1
    said = capsys.readouterr().err
    assert sys.executable in said
    assert "nowhere_to_be_found" in said
    assert "--python" in said


def planned(**settings):
    request = ProfileRequest(EXAMPLE, funcs=("scale_rows_dynamic",), settings=Settings(**settings))
    (kernel,) = list_kernels(request)
    return kernel


@pytest.mark.parametrize("suffix", ["npy", "pt"])
def test_the_shape_of_a_given_array_sets_the_open_dimensions(suffix, tmp_path):
    file = tmp_path / f"x.{suffix}"
    array = np.ones((48, 128), np.float32)
    if suffix == "pt":
        file.write_bytes(torch_file(array))
    else:
        np.save(file, array)
    kernel = planned(inputs={"x": file})
    values = {v.label: v.value for v in kernel.values}
    assert (values["arg3"], values["arg4"]) == (48, 2)
    assert {b.label: b.elements for b in kernel.buffers} == {"x": 48 * 128, "y": 48 * 64}


def test_arrays_that_contradict_each_other_or_do_not_fit_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((48, 128), np.float32))
    np.save(tmp_path / "y.npy", np.ones((32, 64), np.uint16))
    np.save(tmp_path / "odd.npy", np.ones((48, 100), np.float32))
    with pytest.raises(RequestError, match="another input makes arg3 48"):
        planned(inputs={"x": tmp_path / "x.npy", "y": tmp_path / "y.npy"})
    with pytest.raises(RequestError, match="not a multiple of 64"):
        planned(inputs={"x": tmp_path / "odd.npy"})
    from insight_trace.ptoas.buffer_content import content_of

    np.save(tmp_path / "flat.npy", np.ones(7, np.float32))
    kernel = planned(inputs={"x": tmp_path / "flat.npy"})
    with pytest.raises(InputError, match="is 7, 7 elements, but x takes"):
        content_of(next(b for b in kernel.buffers if b.label == "x"), 0)


def test_a_build_of_pto_files_alone_lists_its_arguments_and_takes_values(tmp_path, capsys):
    write_kernel(tmp_path / "ptoas", "k").unlink()
    assert main(["profile", "--build-dir", str(tmp_path), "--list-funcs", "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert [a["label"] for a in kernel["arguments"]] == ["x", "y"]
    np.save(tmp_path / "x.npy", np.ones((16, 16), np.float32))
    words = ["profile", "--build-dir", str(tmp_path), "--input", f"x={tmp_path / 'x.npy'}", "--list-funcs"]
    assert main(words) == 0
    assert main([*words, "--scalar", "ghost=1"]) == 2


def test_wrapped_kernels_are_kernels(capsys):
    build = ROOT / "examples" / "pypto_run"
    glob = str(build / "kernels" / "ai*" / "*.cpp")
    assert main(["profile", "--build-dir", str(build), "--source-glob", glob, "--list-funcs", "--json"]) == 0
    listed = {k["name"]: k for k in json.loads(capsys.readouterr().out)["kernels"]}
    assert set(listed) == {"scale_blocks", "square_rows"}
    assert listed["square_rows"]["pto"].endswith("ptoas/square_rows.pto")
    assert not any("problem" in k for k in listed.values())


def test_a_kernel_without_operations_is_called_empty(tmp_path):
    cpp = write_kernel(tmp_path / "ptoas", "k")
    lines = [
        line
        for line in VECTOR_PTO.replace("%NAME%", "k").splitlines()
        if not line.strip().startswith("pto.t")
    ]
    cpp.with_suffix(".pto").write_text("\n".join(lines))
    (kernel,) = list_kernels(ProfileRequest(tmp_path))
    assert isinstance(kernel, ProfileKernel)
    assert near_empty(kernel, ()) == "empty kernel: its .pto has no tile operation"


def test_a_guard_that_stays_open_warns(tmp_path):
    shutil.copytree(ROOT / "examples" / "pypto_run", tmp_path / "b")
    pto = tmp_path / "b" / "ptoas" / "scale_blocks.pto"
    pto.write_text(
        pto.read_text().replace("arith.cmpi slt, %block__idx_v0, %arg3", "arith.cmpi slt, %arg3, %c0_index")
    )
    request = ProfileRequest(tmp_path / "b", funcs=("scale_blocks",))
    (kernel,) = list_kernels(request)
    assert any("a branch is not taken with arg3 = " in w for w in kernel.warnings)
    given = list_kernels(
        ProfileRequest(tmp_path / "b", funcs=("scale_blocks",), settings=Settings(scalars={"arg3": 0}))
    )
    assert not any("not taken" in w for w in given[0].warnings)


def test_a_warning_that_many_kernels_share_is_printed_once_with_a_count(capsys):
    lines = _Lines(sys.stdout)
    for number in range(5):
        row = ManifestRow(
            f"k{number}", "exported", {"warnings": "the same thing" + (" | another" if number == 3 else "")}
        )
        lines(Progress(row.func, "exported", number, 5, row))
    for line in lines.told.repeated():
        print(line)
    said = capsys.readouterr().out
    assert said.count("the same thing") == 2
    assert "the same for 4 more: the same thing" in said
    assert said.count("another") == 1
