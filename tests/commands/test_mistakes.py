"""Ordinary mistakes: each is answered with what is wrong, where, and what to do next."""

import sys
from pathlib import Path

import numpy as np
import pytest

from insight_trace.__main__ import main

EXAMPLES = Path(__file__).parents[2] / "examples"
CHAIN = str(EXAMPLES / "vector_chain" / "scene.py")
MIX = str(EXAMPLES / "mixed_example" / "scene.py")
BUILD = str(EXAMPLES / "pypto_build")
ADD = str(EXAMPLES / "own_program" / "add.cpp")
ARGS = ["--arg", "x=f32[8,1024]", "--arg", "y=f32[8,1024]", "--arg", "z=f32[8,1024]", "--arg", "rows=8"]
SLOTS = str(EXAMPLES / "kernels" / "vector_add.cpp")
TASK = str(EXAMPLES / "judge" / "axpy.json")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a dump, a workspace, and files that are none of these."""
    root = tmp_path_factory.mktemp("mistakes")
    assert main(["capture", CHAIN, "-o", str(root / "dump")]) == 0
    assert main(["capture", MIX, "-o", str(root / "mix")]) == 0
    assert main(["replay", CHAIN, "--func-id", "0", "-o", str(root / "workspace")]) == 0
    (root / "empty").mkdir()
    (root / "broken.json").write_text("{")
    (root / "part.json").write_text('[{"kind": "tensor", "index": 0, "dtype": "FLOAT32", "shape": [64, 64]}]')
    (root / "text.txt").write_text("x\n")
    np.save(root / "ones.npy", np.ones((1, 1), np.float32))
    np.save(root / "complex.npy", np.zeros((8, 1024), np.complex64))
    (root / "no_kernel.cpp").write_text("void f() {}\n")
    (root / "wrong.cpp").write_text(
        "#include <pto/pto-inst.hpp>\n"
        'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {\n    TADD(sum);\n}\n'
    )
    return root


# the command, its exit code, what is wrong, what to do next
MISTAKES = [
    (["repaly", CHAIN], 2, "no command 'repaly'", "did you mean 'replay'"),
    (["replay"], 2, "give either SCENE", "--help"),
    (["replay", "nowhere.py"], 2, "nowhere.py does not exist", "scene's Python file"),
    (["replay", CHAIN, "--func-id", "9"], 2, "no kernel with func id 9", "0 ADD, 1 ADDS, 2 MUL"),
    (["replay", CHAIN, "--func-id", "one"], 2, "'one' is not a number", "insight-trace scene"),
    (["replay", CHAIN, "--kernel", "NOBODY"], 2, "no kernel 'NOBODY'", "0 ADD"),
    (["replay", CHAIN, "--case", "Nope", "--func-id", "0"], 2, "no case 'Nope'", "Default, Large"),
    (["replay", CHAIN, "--func-id", "0", "--dump-dir", "nowhere"], 2, "nowhere does not exist", "directory"),
    (["replay", CHAIN, "--func-id", "0", "--dump-dir", "empty"], 2, "no dump in empty", "looked for"),
    (["replay", CHAIN, "--dump-dir", "dump"], 2, "--dump-dir needs --func-id", "dump list"),
    (["replay", CHAIN, "--func-id", "0", "--dump-dir", "dump", "--dispatch-id", "99"], 2, "id 99", "that kernel: 0"),
    (["replay", CHAIN, "--func-id", "0", "--dump-dir", "dump", "--task-id", "zz"], 2, "'zz'", "0x0000"),
    (["replay", CHAIN, "--func-id", "0", "--dump-dir", "dump", "--dispatch-id", "1"], 2, "no dispatch has", "ran func id"),
    (["replay", CHAIN, "--kernel", "ADDD"], 2, "no kernel 'ADDD'", "did you mean 'ADD"),
    (["replay", CHAIN], 2, "choose the kernel by one of", "0 ADD"),
    (["replay", CHAIN, "--func-id", "0", "--kernel", "ADD"], 2, "choose the kernel by one of", "0 ADD"),
    (["replay", CHAIN, "--func-id", "0", "--dump-dir", "dump", "--recipe"], 2, "choose one of --dump-dir", ""),
    (["replay", CHAIN, "--func-id", "0", "--set-arg", "0=1", "--restore-arg", "0"], 2, "both set and restored", ""),
    (["replay", CHAIN, "--func-id", "0", "--blocks", "0"], 2, "at least one block", ""),
    (["replay", MIX, "--func-id", "0"], 2, "part of a mix", "use --func-id 0,1,2"),
    (["replay", MIX, "--func-id", "0,1", "--dump-dir", "mix"], 2, "no dispatch has func id 0,1", "use --func-id 0,1,2"),
    (["replay", CHAIN, "--func-id", "0", "--arg-spec", "broken.json"], 2, "broken.json: the spec is not", "arg-spec.md"),
    (["replay", CHAIN, "--func-id", "0", "--arg-spec", "part.json"], 2, "no slot 1, 2", '"index": 1'),
    (["replay", CHAIN, "--func-id", "0", "--set-arg", "3"], 2, "SLOT=VALUE", "--set-arg 4=16"),
    (["replay", CHAIN, "--func-id", "0", "--set-arg", "77=1"], 2, "no slot 77", "slots present: 0, 1, 2"),
    (["replay", CHAIN, "--func-id", "0", "--soc-version", "Ascend9"], 2, "no chip 'Ascend9'", "Ascend910B1"),
    (["replay", CHAIN, "--func-id", "0", "--target", "a4"], 2, "'a4'", "help replay"),
    (["replay", CHAIN, "--func-id", "0", "--target", "a5", "--chip", "Ascend910B1"], 2, "chip of a2a3", "leave one"),
    (["replay", CHAIN, "--func-id", "0", "-o", "workspace"], 2, "workspace exists already", "--force"),
    (["replay", CHAIN, "--func-id", "0", "--also", "nsight"], 2, "no form nsight", "npusim, perf-sim, pmu"),
    (["replay", "text.txt"], 1, "text.txt: no scene here", "@scene_test"),
    (["replay", "workspace", "--dispatch-id", "3"], 2, "give --dump-dir", "dump list"),
    (["capture", CHAIN, "--dump-args", "7"], 2, "no dump level 7", "0, 1, 2 or 3"),
    (["capture", CHAIN, "--case", "Nope"], 2, "no case Nope", "Default, Large"),
    (["dump", "list", "empty"], 2, "no dump in empty", "looked for"),
    (["dump", "show", "dump", "--dispatch-id", "99"], 2, "nothing matches dispatch 99", "dispatches 0..3"),
    (["stats", "empty"], 2, "below empty", "OPPROF_*"),
    (["stats", "text.txt"], 1, "text.txt: 2 bytes", "cut off"),
    (["compare", "workspace"], 2, "required: B", "help compare"),
    (["compare", "workspace", "nowhere"], 2, "nowhere does not exist", "Insight directory"),
    (["view", "nowhere"], 2, "nowhere does not exist", "Insight directory"),
    (["query", "workspace", "select * from nothing"], 2, "nothing", "tables: run, instructions"),
    (["why", "workspace", "99[0]"], 2, "slot 99 holds no tensor", "slot 0, 1, 2"),
    (["why", "workspace", "2[999,0]"], 2, "lies outside slot 2", "the last is"),
    (["kernel", "no_kernel.cpp"], 2, "no_kernel.cpp", "--entry"),
    (["kernel", "wrong.cpp", "--arg", "0=f32[8]"], 1, "wrong.cpp:3: the kernel does not compile", "more in"),
    (["kernel", ADD, "--arg", "x=f32[4]"], 2, "parameter 'y' that no --arg gives", "float *x"),
    (["op", "TADDD", "--dtype", "f32", "--rows", "4", "--cols", "4"], 2, "no tile op 'TADDD'", "did you mean TADD or"),
    (["op", "WXYZ", "--dtype", "f32", "--rows", "4", "--cols", "4"], 2, "no tile op 'WXYZ'", "TADD, TADDC"),
    (["op", "TADD"], 2, "name an op and its size", "insight-trace op"),
    (["op", "TADD", "--rows", "1", "--cols", "64", "--soc-version", "Ascend1"], 2, "no chip 'Ascend1'", ""),
    (["op", "TADD", "--rows", "1", "--cols", "3"], 2, "a row of 3 f32 is 12 bytes", ""),
    (["op", "TADD", "--rows", "0", "--cols", "64"], 2, "at least one row", ""),
    (["op", "TADD", "--rows", "1", "--cols", "64", "--addresses", "here"], 2, "is not a list of numbers", ""),
    (["op", "TADD", "--table", "x.csv"], 2, "an op or --table", ""),
    (["op", "TADD", "--dtype", "f99", "--rows", "4", "--cols", "4"], 2, "no element type 'f99'", "bf16"),
    (["export", "empty", "-o", "out"], 1, "empty: there are no core model logs", "--dump=on"),
    (["profile", "--build-dir", "empty", "--target", "a2a3"], 2, "no kernels in", "ptoas/*.cpp"),
    (["profile", "--build-dir", BUILD, "--target", "a2a3", "--func", "nobody"], 2, "no such kernel", "--list-funcs"),
    (["profile"], 2, "exactly one of --build-dir, --case and --run-cmd", "--build-dir"),
    (["profile", "--build-dir", BUILD, "--simulator", "msprof"], 1, "no CANN toolkit was found", ""),
    *((["profile", "--build-dir", BUILD, *words], 2, wrong, "") for words, wrong in (
        (["--targt", "a5"], "unrecognized arguments: --targt"), (["--target", "a7"], "invalid choice"),
        (["--dynamic-dim", "0"], "not a number of one or more"), (["--jobs", "none"], "not a number"),
        (["--scalar", "x"], "expected NAME=VALUE"), (["--scalar", "x=much"], "not a number"),
        (["--scalar", "ghost=3"], "no kernel of this run"), (["--input", "x=/nowhere.bin"], "is not a file"),
        (["stray"], "'stray' is no option"), (["--case", "x.py"], "exactly one of"),
        (["--json"], "goes with --list-funcs"), (["--seed", "-1"], "not negative"), (["--name", "../x"], "plain name"),
    )),
    (["run", CHAIN, "--chip", "Nope"], 2, "no chip 'Nope'", "Ascend910B1"),
    (["gate", "nowhere.json"], 2, "no baseline nowhere.json", "--update"),
    (["new", "9kernel"], 2, "'9kernel' is no name", "begin with a letter"),
    (["debug", "empty"], 2, "empty is not the workspace", "insight-trace replay"),
    (["debug", "nowhere"], 2, "nowhere does not exist", "insight-trace replay"),
    (["replay", CHAIN, "--func-id", "0", "--arg-spec", "none.json"], 2, "cannot be read", "docs/arg-spec.md"),
    (["kernel", SLOTS], 1, "slot 0, 1, 2 was not recorded", "--arg 0=f32[ROWS,COLS]"),
    (["exec"], 2, "no command to run", "-- COMMAND"),
    (["replay", "workspace", "--func-id", "7"], 2, "workspace has no kernel with func id 7", "leave --func-id out"),
    (["replay", "workspace", "--func-id", "0", "--dump-dir", "dump"], 2, "has its arguments", "give the scene"),
    (["replay", "dump"], 2, "neither a scene nor a PyPTO build", "--dump-dir, beside its scene"),
    (["kernel", ADD, "--arg", "x"], 2, "'x' is not NAME=VALUE", "--arg x="),
    (["kernel", ADD, "--arg", "x=eight"], 2, "x: 'eight' is no argument", "TYPE[SHAPE]"),
    (["kernel", ADD, "--arg", "x=f32[8]:randm"], 2, "x: 'f32[8]:randm' is no argument", "f32[64,64]:random"),
    (["kernel", ADD, "--arg", "x=none.npy"], 2, "x: none.npy does not exist", "numpy.save"),
    (["kernel", ADD, "--arg", "x={"], 2, "x: not JSON", "x=@FILE.json"),
    (["kernel", ADD, "--arg", "x=1", "--arg", "x=2"], 2, "--arg x is given twice: 1 and 2", "leave one out"),
    (["kernel", ADD, *ARGS, "--expect", "rows=ones.npy"], 2, "no tensor of that name", "x, y, z"),
    (["kernel", ADD, *ARGS, "--expect", "z=ones.npy"], 2, "ones.npy is float32 [1, 1]; z is f32 [8, 1024]", "in its shape"),
    (["kernel", ADD, *ARGS, "--expect", "z=complex.npy"], 2, "complex64 [8, 1024]; z is f32", "afterwards"),
    (["kernel", "empty"], 1, "empty: is a folder", "name a file in it"),
    (["check", ADD], 1, "not Python", "insight-trace kernel"),
    (["replay", str(EXAMPLES / "vector_chain")], 2, "neither a scene nor a PyPTO build", "vector_chain/scene.py"),
    (["judge", ADD, "part.json"], 2, "add.cpp is C++, and no task", "the task comes first"),
    (["judge", TASK, "empty"], 2, "empty is a folder", "name each"),
    (["judge", TASK, ADD, "--case", "3"], 2, "--case is for tasks of cann-bench", "leave it out"),
    (["diff", BUILD, BUILD, "--bisect", "make"], 2, "--bisect and --revisions go together", "v0.60..v0.61"),
    (["profile", "--case", "nowhere.py", "--target", "a2a3"], 2, "nowhere.py is not a file", "Python script"),
    (["kernel", "nowhere.cpp"], 2, "nowhere.cpp does not exist", "the C++ file"),
    (["judge", "nowhere.json", ADD], 2, "nowhere.json does not exist", "docs/judge.md"),
    (["judge", "broken.json", ADD], 1, "broken.json: this is no task", "axpy.json"),
    (["diverge", "workspace"], 2, "a second workspace", "--order 1"),
    (["debug", "workspace", "--op", "TNOPE"], 2, "TNOPE is executed 0 times", "stats"),
    (["dump", "list", "text.txt"], 1, "text.txt: not valid JSON", "the run directory"),
    (["gate", "text.txt", CHAIN, "--update"], 1, "text.txt: this is no baseline", "another file"),
    (["scene", "broken.json"], 1, "not Python", "@scene_test"),
    (["calibrate", CHAIN, "--dump-dir", "dump", "--pmu", "none.csv"], 1, "none.csv: the counters cannot be read", "pmu.csv"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "wrong", "step"), MISTAKES, ids=[" ".join(m[0][:1] + m[0][2:]) for m in MISTAKES]
)
def test_a_mistake_is_answered_with_what_is_wrong_and_what_to_do_next(
    place, monkeypatch, capsys, words, code, wrong, step
):
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "argv", ["insight-trace"])
    capsys.readouterr()
    assert main(words) == code
    said = capsys.readouterr().err
    assert "Traceback" not in said
    first, *further = said.splitlines()
    assert wrong in first
    assert step in "\n".join(further)
