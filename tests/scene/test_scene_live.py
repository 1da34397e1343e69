"""Scenes that are run, with stand-ins for what is not installed."""

import ctypes
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from insight_trace import load_scene, load_scene_live
from insight_trace.errors import JobError, RequestError
from insight_trace.scene import live as scene_memory
from insight_trace.scene.live import LiveTensor, scalar_slot
from insight_trace.scene.stand_in_modules import NamedTensor, Scalar, TaskArgsBuilder, runtime_is_installed

EXAMPLE = Path(__file__).with_name("live_scene_example.py")

HEAD = """
import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test
"""


@pytest.fixture(scope="module")
def live():
    return load_scene_live(EXAMPLE)


def scene_of(tmp_path, body, head=HEAD):
    path = tmp_path / "test_it.py"
    path.write_text(head + body)
    return path


def test_a_scene_makes_its_arguments(live):
    args = live.generate_args("Small")
    assert args.tensor_names() == ["x", "y"]
    assert args.x.tolist() == list(range(16))
    assert args.factor.value == 1.5


def test_the_golden_is_computed_on_a_copy(live):
    args = live.generate_args("Small")
    golden = live.compute_golden(args, "Small")
    np.testing.assert_array_equal(golden.y, args.x * np.float32(1.5))
    assert not args.y.any()


def test_a_case_without_a_golden_has_none(live):
    assert live.compute_golden(live.generate_args("Blind"), "Blind") is None


def test_arguments_come_as_arrays_and_slot_bits(live):
    args = live.generate_args("Small")
    x, y, factor, count = live.arguments(args)
    assert (x.dtype.name, x.direction, y.direction) == ("FLOAT32", "IN", "OUT")
    assert (factor.dtype.name, factor.bits) == ("FLOAT32", 0x3FC00000)
    assert (count.dtype.name, count.bits) == ("INT32", 0xFFFFFFFF)
    assert live.output_names(args) == ("y",)
    y.array[0] = 7
    assert args.y[0] == 7, "the array is the scene's own memory"


def test_an_unknown_case_is_refused_with_the_ones_there_are(live):
    with pytest.raises(RequestError, match="no case Large") as error:
        live.generate_args("Large")
    assert "Small, Blind" in str(error.value)


def test_nothing_stays_behind_after_a_scene_ran(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] in ("simpler", "simpler_setup")]:
        monkeypatch.delitem(sys.modules, name)  # our own tools of that name, imported by whoever came before
    before = (list(sys.path), list(sys.meta_path), sys.dont_write_bytecode)
    load_scene_live(EXAMPLE).generate_args("Small")
    assert not [name for name in sys.modules if name.split(".")[0] in ("simpler", "simpler_setup")]
    assert (list(sys.path), list(sys.meta_path), sys.dont_write_bytecode) == before
    assert not runtime_is_installed()


def test_modules_of_the_same_name_that_were_there_come_back(monkeypatch):
    marker = type(sys)("simpler_setup")
    monkeypatch.setitem(sys.modules, "simpler_setup", marker)
    load_scene_live(EXAMPLE).generate_args("Small")
    assert sys.modules["simpler_setup"] is marker


def test_goldens_come_from_the_checkout_that_holds_the_scene(tmp_path):
    goldens = tmp_path / "simpler_setup" / "goldens"
    goldens.mkdir(parents=True)
    (goldens / "__init__.py").touch()
    (goldens / "answer.py").write_text(
        "from simpler_setup.scene_test import TensorArg\nimport numpy as np\n"
        "def inputs():\n    return [TensorArg('x', np.full(2, 42, np.int32))]\n"
    )
    (tmp_path / "scenes").mkdir()
    body = """
from simpler_setup.goldens.answer import inputs

@scene_test(level=2, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {}
    CASES = [{"name": "A"}]
    def generate_args(self, params):
        from simpler_setup.goldens import answer
        assert answer.inputs is inputs or answer.inputs
        return TaskArgsBuilder(*inputs())
"""
    live = load_scene_live(scene_of(tmp_path / "scenes", body))
    assert live.generate_args("A").x.tolist() == [42, 42]


def test_relative_imports_find_their_neighbours(tmp_path):
    (tmp_path / "numbers_of_it.py").write_text("N = 3\n")
    body = """
from .numbers_of_it import N
@scene_test(level=2, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {}
    CASES = [{"name": "A"}]
    def generate_args(self, params):
        return TaskArgsBuilder(TensorArg("x", np.zeros(N)))
"""
    assert load_scene_live(scene_of(tmp_path, body)).generate_args("A").x.shape == (3,)


def test_the_decorator_makes_sources_absolute(live):
    assert live.scene_class.CALLABLE["incores"][0]["source"] == str(EXAMPLE.parent / "kernels" / "scale.cpp")


def test_the_older_name_of_a_tensor_argument_works(tmp_path):
    body = """
from simpler_setup import Tensor
@scene_test(level=2, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {}
    CASES = [{"name": "A"}]
    def generate_args(self, params):
        return TaskArgsBuilder(Tensor("x", np.zeros(2, np.float16)))
"""
    live = load_scene_live(scene_of(tmp_path, body))
    [x] = live.arguments(live.generate_args("A"))
    assert isinstance(x, LiveTensor)
    assert x.dtype.name == "FLOAT16"


def test_a_name_only_the_built_runtime_has_says_so_when_it_is_used(tmp_path):
    body = """
from simpler.worker import Worker
from simpler_setup.kernel_compiler import KernelCompiler
@scene_test(level=2, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {}
    CASES = [{"name": "A"}]
    worker: Worker
    def generate_args(self, params):
        return KernelCompiler("a2a3")
"""
    live = load_scene_live(scene_of(tmp_path, body))
    with pytest.raises(JobError, match=r"simpler_setup\.kernel_compiler\.KernelCompiler"):
        live.generate_args("A")


def test_a_missing_module_is_named(tmp_path):
    path = scene_of(tmp_path, "import no_such_module_at_all\nclass A(SceneTestCase):\n    CASES = []\n")
    with pytest.raises(JobError, match="needs no_such_module_at_all"):
        load_scene_live(path)


def test_a_failure_in_the_scene_names_its_line(tmp_path):
    body = """
class A(SceneTestCase):
    CASES = [{"name": "A"}]
    def generate_args(self, params):
        return 1 / 0
"""
    with pytest.raises(JobError, match="generate_args failed: ZeroDivisionError") as error:
        load_scene_live(scene_of(tmp_path, body)).generate_args("A")
    assert "test_it.py, line 9" in str(error.value)


_LARGE = """
@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestLarge(SceneTestCase):
    CALLABLE = {"orchestration": {"source": "o.cpp", "function_name": "f", "signature": [D.IN]}, "incores": []}
    CASES = [{"name": "Large", "platforms": ["a2a3sim"], "params": {}}]

    def generate_args(self, params):
        %s
"""


@pytest.mark.parametrize(
    "body",
    [
        "return TaskArgsBuilder(TensorArg('x', np.ones(1 << 42, np.uint8)))",
        'raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory: you tried to allocate 9 bytes.")',
    ],
)
def test_a_case_for_which_there_is_no_memory_says_so_and_leaves_no_limit_behind(tmp_path, body):
    live = load_scene_live(scene_of(tmp_path, _LARGE % body))
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(JobError, match=r"generate_args wants more memory than the .* GiB") as told:
        live.generate_args("Large")
    assert "smaller case" in told.value.hint
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_scene_that_takes_memory_bit_by_bit_ends_before_the_machine_does(tmp_path, monkeypatch):
    monkeypatch.setattr(scene_memory, "free_memory", lambda: 256 << 20)
    filling = "return [np.ones(16 << 20, np.uint8) for _ in range(64)]"  # 1 GiB, touched
    live = load_scene_live(scene_of(tmp_path, _LARGE % filling))
    with pytest.raises(JobError, match=r"wants more memory than the 0\.2 GiB"):
        live.generate_args("Large")


def test_a_level_4_scene_is_refused(tmp_path):
    body = """
@scene_test(level=4, runtime="r")
class TestIt(SceneTestCase):
    CALLABLE = {}
    CASES = [{"name": "A"}]
"""
    with pytest.raises(RequestError, match="level-4 scene"):
        load_scene_live(scene_of(tmp_path, body))


def test_tensors_come_before_scalars_and_names_are_unique():
    args = TaskArgsBuilder(NamedTensor("a", np.zeros(1)))
    args.add_scalar("s", 1)
    with pytest.raises(ValueError, match="tensors come first"):
        args.add_tensor("b", np.zeros(1))
    with pytest.raises(ValueError, match="already"):
        args.add_scalar("a", 2)
    with pytest.raises(ValueError, match="the builder has that name"):
        args.add_scalar("clone", 2)
    with pytest.raises(AttributeError):
        _ = args.absent
    assert [type(spec) for spec in args.clone().specs] == [NamedTensor, Scalar]


@pytest.mark.parametrize(
    ("value", "name", "bits"),
    [
        (ctypes.c_float(1.0), "FLOAT32", 0x3F800000),
        (ctypes.c_int64(-1), "INT64", 2**64 - 1),
        (ctypes.c_uint8(255), "UINT8", 255),
        (ctypes.c_bool(True), "BOOL", 1),
        (np.float32(-0.0), "FLOAT32", 0x80000000),
        (np.int16(-1), "INT16", 0xFFFF),
        (np.uint64(2**64 - 1), "UINT64", 2**64 - 1),
        (-2, "INT64", 2**64 - 2),
        (1.5, "FLOAT32", 0x3FC00000),
        (True, "BOOL", 1),
    ],
)
def test_scalars_become_the_bits_of_their_slot(value, name, bits):
    dtype, found = scalar_slot(value)
    assert (dtype.name, found) == (name, bits)


def test_a_scalar_of_no_known_kind_is_refused():
    with pytest.raises(JobError, match="cannot be a str"):
        scalar_slot("three")


def test_a_real_scene_makes_the_inputs_that_were_dumped(simpler_checkout, shared_data):
    torch = pytest.importorskip("torch")
    from insight_trace import load_dump
    from insight_trace.dump.recorded_bytes import tensor_array
    from insight_trace.model import Stage

    path = "examples/a2a3/tensormap_and_ringbuffer/paged_attention/test_paged_attention.py"
    live = load_scene_live(simpler_checkout / path)
    torch.manual_seed(20260601)
    args = live.generate_args("CaseSmall1")
    golden = live.compute_golden(args, "CaseSmall1")
    dump = load_dump(shared_data / "dumps" / "paged_attention_CaseSmall1_args_dump_level2")
    query = live.arguments(args)[0]
    recorded = tensor_array(dump.dispatches[0].arguments[0], Stage.BEFORE)
    assert recorded.tobytes() == query.array[0].tobytes()
    out = tensor_array(dump.dispatches[11].arguments[6], Stage.AFTER)
    np.testing.assert_allclose(out, golden.out.numpy()[0], atol=1e-6)


def test_what_only_the_executed_class_tells_completes_the_scene(tmp_path):
    path = tmp_path / "test_made.py"
    path.write_text(MADE_WHEN_RUN)
    assert load_scene(path).cases == ()
    scene = load_scene_live(path).scene
    assert [(c.name, c.platforms) for c in scene.cases] == [("One", ("a5",)), ("Two", ("a5",))]
    assert [(k.func_id, k.name, k.signature) for k in scene.kernels] == [(0, "K", ("IN", "OUT"))]
    assert scene.orchestration.function_name == "entry"
    assert scene.orchestration.signature == ("IN", "OUT")
    assert scene.orchestration.source == tmp_path / "orch.cpp"
    assert (scene.rtol, scene.class_name) == (0.5, "Made")


MADE_WHEN_RUN = """
import os
from copy import deepcopy
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, scene_test

BASE = {"orchestration": {"source": "", "function_name": "entry", "signature": [D.IN, D.OUT]},
        "incores": [{"func_id": 0, "name": "K", "source": "k.cpp", "core_type": "aiv",
                     "signature": [D.IN, D.OUT]}]}

def _cases():
    return [{"name": name, "platforms": ["a5"]} for name in ("One", "Two") if hasattr(os, "sep")]

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class Made(SceneTestCase):
    RTOL = 0.5
    CALLABLE = deepcopy(BASE)
    for _part in ("orchestration",):
        CALLABLE[_part]["source"] = "orch.cpp"
    CASES = _cases()
"""


def test_of_several_classes_the_first_with_cases_is_the_scene(tmp_path):
    path = tmp_path / "test_two.py"
    head, scene = MADE_WHEN_RUN.split("@scene_test")
    path.write_text(
        f"{head}@scene_test{scene.replace('CASES = _cases()', '')}\n"
        f"@scene_test{scene.replace('class Made', 'class Other').replace('_cases()', str([{'name': 'C'}]))}"
    )
    assert load_scene(path).class_name == "Other"
    assert load_scene(f"{path}::Made").class_name == "Made"
