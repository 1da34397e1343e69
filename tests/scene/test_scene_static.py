"""Scenes are read without being run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from insight_trace import load_scene
from insight_trace.__main__ import main
from insight_trace.errors import InputError, RequestError
from insight_trace.model import CoreType
from insight_trace.scene.static import load_scenes

EXAMPLE = Path(__file__).with_name("live_scene_example.py")
TOOL = Path(__file__).parents[2] / "tools" / "scene_static_coverage.py"

HEAD = """
from pathlib import Path
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, scene_test
"""


def scene_of(tmp_path, body, head=HEAD, name="test_it.py"):
    path = tmp_path / name
    path.write_text(head + body)
    return load_scene(path)


def with_incores(tmp_path, incores, before=""):
    body = f"""
{before}
@scene_test(level=2, runtime="host_build_graph")
class TestIt(SceneTestCase):
    CALLABLE = {{"incores": {incores}}}
    CASES = []
"""
    return scene_of(tmp_path, body)


def test_everything_that_a_scene_declares_is_read():
    scene = load_scene(EXAMPLE)
    assert (scene.class_name, scene.level, scene.runtime) == ("TestScaled", 2, "tensormap_and_ringbuffer")
    assert (scene.rtol, scene.atol) == (1e-4, 1e-5)
    small, blind = scene.cases
    assert (small.name, small.platforms, small.params, small.manual) == (
        "Small",
        ("a2a3sim",),
        {"size": 16},
        False,
    )
    assert (blind.manual, blind.skip_golden) == (("a2a3",), True)
    [kernel] = scene.kernels
    assert (kernel.name, kernel.func_id, kernel.core_type) == ("scale", 0, CoreType.AIV)
    assert kernel.signature == ("IN", "OUT")
    assert kernel.source == EXAMPLE.parent / "kernels" / "scale.cpp"
    assert kernel.include_dirs == ("$HOME/include",)
    assert scene.orchestration.function_name == "entry"
    assert scene.orchestration.signature == ("IN", "OUT")
    assert scene.notes == ()


def test_nothing_of_the_module_is_run(tmp_path):
    marker = tmp_path / "ran"
    scene = with_incores(tmp_path, "[]", before=f"open({str(marker)!r}, 'w')\nimport nothing_like_this")
    assert scene.class_name == "TestIt"
    assert not marker.exists()


@pytest.mark.parametrize(
    ("before", "expression", "expected"),
    [
        ("BASE = '../other'", "f'{BASE}/k.cpp'", "../other/k.cpp"),
        ("BASE = 'a' + '/b'", "BASE + '/k.cpp'", "a/b/k.cpp"),
        ("NAMES = ['x', 'y']", "NAMES[1] + '.cpp'", "y.cpp"),
        ("import os", "os.path.join('a', 'k.cpp')", "a/k.cpp"),
        ("def source(name):\n    stem = name\n    return stem + '.cpp'", "source('k')", "k.cpp"),
        ("NAMES = {'k': 'k.cpp'}", "NAMES.get('k')", "k.cpp"),
        ("BIG = True", "'k.cpp' if BIG else 'j.cpp'", "k.cpp"),
    ],
)
def test_constants_and_small_functions_are_evaluated(before, expression, expected, tmp_path):
    incores = f"[{{'func_id': 0, 'source': {expression}, 'core_type': 'aic'}}]"
    [kernel] = with_incores(tmp_path, incores, before).kernels
    assert kernel.source == (tmp_path / expected).resolve()


def test_paths_from_the_module_itself_are_known(tmp_path):
    before = "HERE = Path(__file__).resolve().parent"
    incores = "[{'func_id': 0, 'source': str(HERE / 'k.cpp'), 'core_type': 'aic'}]"
    [kernel] = with_incores(tmp_path, incores, before).kernels
    assert kernel.source == tmp_path.resolve() / "k.cpp"


def test_kernels_made_by_a_comprehension_are_read(tmp_path):
    incores = """[
        {"func_id": i, "source": f"{core}/{name}.cpp", "core_type": core, "signature": [D.IN] * 2 + [D.OUT]}
        for i, (core, name) in enumerate([("aic", "mm"), ("aiv", "add")])
    ]"""
    kernels = with_incores(tmp_path, incores).kernels
    assert [(k.func_id, k.name, k.core_type.value) for k in kernels] == [(0, "mm", "aic"), (1, "add", "aiv")]
    assert kernels[0].signature == ("IN", "IN", "OUT")


def test_a_kernel_without_a_signature_is_told_from_one_with_an_empty_signature(tmp_path):
    incores = """[{"func_id": 0, "source": "a.cpp", "core_type": "aic"},
                  {"func_id": 1, "source": "b.cpp", "core_type": "aic", "signature": []}]"""
    first, second = with_incores(tmp_path, incores).kernels
    assert (first.signature, second.signature) == (None, ())


def test_attributes_of_a_base_class_are_inherited(tmp_path):
    body = """
class Base(SceneTestCase):
    RTOL = 0.5
    CALLABLE = {"incores": [{"func_id": 3, "source": "k.cpp", "core_type": "aiv"}]}

@scene_test(level=2, runtime="r")
class TestDerived(Base):
    CASES = [{"name": "A"}]
"""
    scene = load_scene_class(tmp_path, body, "TestDerived")
    assert (scene.rtol, scene.kernels[0].func_id, scene.cases[0].name) == (0.5, 3, "A")


def load_scene_class(tmp_path, body, name):
    (tmp_path / "test_it.py").write_text(HEAD + body)
    return load_scene(f"{tmp_path / 'test_it.py'}::{name}")


def test_what_another_module_of_the_checkout_holds_is_followed(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "base.py").write_text(
        HEAD + "N = 4\nclass Base(SceneTestCase):\n"
        "    CALLABLE = {'incores': [{'func_id': 1, 'source': 'k.cpp', 'core_type': 'aic'}]}\n"
    )
    body = """
from pkg.base import Base, N
from copy import deepcopy

def changed():
    spec = deepcopy(Base.CALLABLE)
    for incore in spec["incores"]:
        incore["name"] = "renamed"
    return spec

@scene_test(level=2, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = changed()
    CASES = [{"name": "A", "config": {"device_count": N}}]
"""
    (tmp_path / "scenes").mkdir()
    scene = scene_of(tmp_path / "scenes", body)
    assert scene.kernels[0].name == "renamed"
    assert scene.kernels[0].source == tmp_path.resolve() / "pkg" / "k.cpp"
    assert scene.cases[0].config == {"device_count": 4}


def test_what_cannot_be_told_is_noted_and_the_rest_is_read(tmp_path):
    body = """
import torch
@scene_test(level=2, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {"incores": [{"func_id": 0, "source": "k.cpp", "core_type": "aic"}]}
    CASES = [{"name": "A", "params": {"dtype": torch.float32, "n": 3}}]
"""
    scene = scene_of(tmp_path, body)
    assert scene.cases[0].params == {"n": 3}
    assert scene.notes == ("CASES[0].params.dtype: line 10: `torch` needs the module to be run",)


def test_a_level_3_scene_is_read_with_its_python_orchestration(tmp_path):
    body = """
def orch(callables, args):
    pass

@scene_test(level=3, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {
        "orchestration": orch,
        "callables": [{"name": "v", "orchestration": {"source": "o.cpp", "function_name": "f"},
                       "incores": [{"func_id": 0, "source": "k.cpp", "core_type": "aiv"}]}],
    }
    CASES = [{"name": "A", "platforms": ["a2a3"]}]
"""
    scene = scene_of(tmp_path, body)
    assert (scene.level, len(scene.kernels)) == (3, 1)
    assert scene.orchestration.source is None
    assert not any("cannot be run here" in note for note in scene.notes)
    beyond = scene_of(tmp_path, body.replace("level=3", "level=4"))
    assert any("cannot be run here" in note for note in beyond.notes)


def test_one_of_several_scenes_is_chosen_by_its_class(tmp_path):
    body = "".join(
        f"\n@scene_test(level=2, runtime='r')\nclass {name}(SceneTestCase):\n    CASES = []\n"
        for name in ("TestA", "TestB")
    )
    path = tmp_path / "test_it.py"
    path.write_text(HEAD + body)
    assert [s.class_name for s in load_scenes(path)] == ["TestA", "TestB"]
    assert "TestB" in load_scene(path).notes[-1]
    assert load_scene(f"{path}::TestB").class_name == "TestB"
    with pytest.raises(RequestError, match="it has TestA, TestB"):
        load_scene(f"{path}::TestC")


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').system('true')",
        "eval('1')",
        "().__class__.__base__.__subclasses__()",
    ],
)
def test_hostile_expressions_do_nothing(hostile, tmp_path):
    scene = (
        with_incores(tmp_path, "[]", before="").path.read_text().replace("CASES = []", f"CASES = {hostile}")
    )
    (tmp_path / "test_it.py").write_text(scene)
    assert load_scene(tmp_path / "test_it.py").notes


def test_a_function_that_calls_itself_ends(tmp_path):
    body = """
def again(n):
    return again(n + 1)
@scene_test(level=2, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {}
    CASES = again(0)
"""
    assert scene_of(tmp_path, body).notes


@pytest.mark.parametrize("text", ["", "x = 1", "def f(:", "\x00", "class A: pass", "(" * 5000])
def test_a_file_that_is_no_scene_is_one_error(text, tmp_path):
    path = tmp_path / "scene.py"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        load_scene(path)
    assert "scene.py" in str(error.value)


def test_the_command_shows_cases_and_kernels(capsys):
    assert main(["scene", str(EXAMPLE)]) == 0
    out = capsys.readouterr().out
    assert "TestScaled · level 2 · tensormap_and_ringbuffer" in out
    assert "Small  a2a3sim" in out
    assert "0  scale   aiv   no source   IN,OUT · kernels/scale.cpp" in out


def test_the_command_gives_json(capsys):
    assert main(["scene", str(EXAMPLE), "--json"]) == 0
    scene = json.loads(capsys.readouterr().out)
    assert scene["class"] == "TestScaled"
    assert scene["cases"][1]["manual"] == ["a2a3"]
    assert (
        scene["kernels"][0] | {"func_id": 0, "core_type": "aiv", "source_exists": False}
        == scene["kernels"][0]
    )
    assert scene["orchestration"]["signature"] == ["IN", "OUT"]


def test_a_scene_that_is_not_there_is_a_wrong_request(tmp_path, capsys):
    assert main(["scene", str(tmp_path / "absent.py")]) == 2
    assert main(["scene", str(tmp_path)]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_reading_a_scene_needs_neither_torch_nor_the_runtime():
    code = "import sys\nfrom insight_trace import load_scene\nload_scene(sys.argv[1])\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLE)], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"torch", "simpler", "simpler_setup", "numpy"}


def test_the_scenes_of_a_checkout_load(simpler_checkout):
    done = subprocess.run(
        [sys.executable, str(TOOL), str(simpler_checkout)], capture_output=True, text=True, check=True
    )
    last = done.stdout.splitlines()[-1].split()
    assert last[0] == "SCENES"
    assert int(last[2].removeprefix("loaded=")) >= 155


@pytest.mark.parametrize(
    "change",
    [
        "LIST.append(1)",
        "LIST += [1]",
        "LIST[0] = 2",
        "for i in range(3):\n    LIST.append(i)",
        "if condition():\n    LIST = []",
        "try:\n    LIST = [1]\nexcept OSError:\n    LIST = []",
    ],
)
def test_a_constant_that_the_module_changes_is_not_taken_at_its_first_word(change, tmp_path):
    body = f"""
LIST = [{{"name": "A"}}]
{change}

@scene_test(level=2, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {{}}
    CASES = LIST
"""
    scene = scene_of(tmp_path, body)
    assert scene.cases == ()
    assert any("`LIST` depends on what line" in note for note in scene.notes)


def test_cases_that_a_loop_in_the_class_makes_are_noted(tmp_path):
    body = """
@scene_test(level=2, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {}
    CASES = []
    for n in range(3):
        CASES.append({"name": n})

TestIt.CALLABLE = None
"""
    scene = scene_of(tmp_path, body)
    assert scene.notes == (
        "CASES: line 10 changes it when the module is run",
        "line 13 may change the class when it is run",
    )
