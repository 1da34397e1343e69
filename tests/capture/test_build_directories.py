"""A PyPTO build directory is a scene: it is listed, captured and compared with its golden, without torch."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from capture_scenes import EXAMPLES
from tests.torch_files import torch_file

import insight_trace
from insight_trace.__main__ import main
from insight_trace.errors import InputError, RequestError

BUILD = EXAMPLES / "pypto_run"
# None of the folders with a golden fails. A folder that does is named here, with the reason.
FAILING: dict[str, str] = {}
NO_GOLDEN = {
    "a2a3/dynamic_paged_attention_64bat_64h_256d_64bs",
    "a2a3/paged_attention_unaligned_ptoas_64bat_16h_128d_128bs_8100ctx",
}
SAMPLE = [
    "a2a3/add_mul_orchestration",
    "a2a3/fillpad_max",
    "a2a3/tensor_expand_clone_d2_8x8x8",
    "a5/spmd_mixed_matmul_bias_256x64",
]


def captured(build, folder, **options):
    return insight_trace.capture(build, output=folder / "run", force=True, **options)


@pytest.fixture
def copied(tmp_path):
    return Path(shutil.copytree(BUILD, tmp_path / "build"))


def test_a_build_is_listed_as_a_scene(capsys):
    assert main(["scene", str(BUILD), "--json"]) == 0
    scene = json.loads(capsys.readouterr().out)
    assert scene["name"] == "pypto_run"
    assert scene["runtime"] == "tensormap_and_ringbuffer"
    assert [c["name"] for c in scene["cases"]] == ["Default"]
    assert scene["cases"][0]["platforms"] == ["a2a3"]
    assert [(k["func_id"], k["name"], k["core_type"]) for k in scene["kernels"]] == [
        (0, "scale_blocks", "aiv"),
        (1, "square_rows", "aiv"),
    ]
    assert scene["orchestration"]["signature"] == ["IN", "IN", "INOUT"]
    assert main(["scene", str(BUILD)]) == 0
    assert "kernels/aiv/scale_blocks.cpp" in capsys.readouterr().out


def test_a_build_is_captured_and_gives_what_its_golden_says_without_torch(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from insight_trace.__main__ import main\n"
        f"sys.exit(main(['capture', {str(BUILD)!r}, '-o', {str(tmp_path / 'run')!r}, '--json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["golden"] == {
        "passed": True,
        "compared": 8192,
        "message": "",
        "largest_difference": {"z": 0.0},
    }
    assert result["dispatches"] == 9


def test_a_wrong_result_fails_and_names_the_first_element(copied, tmp_path):
    shape = (128, 64)
    (copied / "data" / "out" / "z.pt").write_bytes(torch_file(np.zeros(shape, np.float32)))
    result = captured(copied, tmp_path)
    assert not result.passed
    assert "first z[0,0] is" in result.golden.message


def test_a_build_that_was_moved_still_finds_its_data(copied, tmp_path):
    golden = copied / "golden.py"
    golden.write_text(golden.read_text().replace('Path(__file__).parent / "data"', 'Path("/nowhere/data")'))
    assert captured(copied, tmp_path).passed


def test_a_golden_of_another_form_is_run_and_needs_torch(copied, tmp_path):
    golden = copied / "golden.py"
    golden.write_text(golden.read_text().replace("torch.zeros((128", "torch.rand(0).new_zeros((128"))
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from insight_trace.__main__ import main\n"
        f"sys.exit(main(['capture', {str(copied)!r}, '-o', {str(tmp_path / 'run')!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 1
    assert "needs torch" in done.stderr
    assert "Traceback" not in done.stderr


def test_scalars_of_a_golden_go_to_the_orchestration(copied, tmp_path):
    golden = copied / "golden.py"
    text = golden.read_text().replace("import torch\n", "import ctypes\nimport torch\n", 1)
    text = text.replace('        ("z", z),\n', '        ("z", z),\n        ("n", n),\n')
    golden.write_text(text.replace("    z = torch", "    n = ctypes.c_int64(3)\n    z = torch", 1))
    source = copied / "orchestration" / "main.cpp"
    wanted = "int64_t n_blocks = orch_args.scalar(0);"
    old = "int64_t n_blocks = static_cast<int64_t *>(orch_args.tensor(1).data_as<void>())[0];"
    source.write_text(source.read_text().replace(old, wanted))
    result = captured(copied, tmp_path)
    assert not result.passed  # three blocks, not the six of the golden
    assert "first z[48,0]" in result.golden.message


def test_programs_of_several_chips_are_scenes_by_the_names_of_their_folders(copied, tmp_path, capsys):
    whole = tmp_path / "whole"
    for rank in ("decode", "prefill"):
        shutil.copytree(copied, whole / "next_levels" / rank)
    (whole / "next_levels" / "decode" / "golden.py").unlink()
    assert main(["scene", f"{whole}::decode"]) == 0
    assert "there is no golden.py" in capsys.readouterr().out
    assert captured(f"{whole}::prefill", tmp_path).passed
    assert captured(whole, tmp_path).scene.class_name == "prefill"
    with pytest.raises(RequestError, match=r"has no golden\.py"):
        captured(f"{whole}::decode", tmp_path)


def test_an_external_kernel_keeps_its_place_and_its_include_directories(copied, tmp_path):
    outside = tmp_path / "library"
    (outside / "headers").mkdir(parents=True)
    (outside / "headers" / "factor.h").write_text("#define FACTOR 1.0f\n")
    text = (copied / "kernels" / "aiv" / "scale_blocks.cpp").read_text()
    text = '#include "factor.h"\n' + text.replace("v13 = 1.0f", "v13 = FACTOR")
    (outside / "scale.cpp").write_text(text)
    config = copied / "kernel_config.py"
    old = 'str(_ROOT_DIR / "kernels" / "aiv" / "scale_blocks.cpp"),'
    new = f'{str(outside / "scale.cpp")!r}, "external": True, "extra_include_dirs": [{str(outside / "headers")!r}],'
    config.write_text(config.read_text().replace(old, new))
    assert captured(copied, tmp_path).passed


def test_what_is_wrong_with_a_directory_is_said(copied, tmp_path):
    with pytest.raises(RequestError, match=r"neither a scene nor a PyPTO build"):
        captured(tmp_path, tmp_path)
    (copied / "kernel_config.py").write_text("KERNELS = [\n")
    with pytest.raises(InputError, match=r"kernel_config.py"):
        captured(copied, tmp_path)


def test_an_allocation_may_be_an_input(copied, tmp_path):
    source = copied / "orchestration" / "main.cpp"
    source.write_text(source.read_text().replace("first.add_inout(y);", "first.add_input(y);"))
    assert captured(
        copied, tmp_path
    ).passed  # and what follows it waits for it: all of its tensors are written


def _folders(shared_data):
    builds = shared_data / "pypto_builds"
    if not builds.is_dir():
        pytest.skip("the shared data has no pypto_builds")
    return {f"{b.parent.name}/{b.name}": b for b in sorted(builds.glob("*/*"))}


def test_real_builds_pass_their_golden(shared_data, tmp_path):
    folders = _folders(shared_data)
    assert {name for name, folder in folders.items() if not (folder / "golden.py").exists()} == NO_GOLDEN
    every = os.environ.get("INSIGHT_TRACE_LONG_TESTS")
    names = [n for n in folders if n not in NO_GOLDEN] if every else SAMPLE
    failed = {name for name in names if not captured(folders[name], tmp_path, level=3).passed}
    assert failed == set(FAILING)


def test_loads_past_a_tensor_are_a_note(shared_data, tmp_path):
    result = captured(_folders(shared_data)["a2a3/fillpad_max"], tmp_path)
    assert result.passed
    assert "reaches 256 bytes past the end of input_tensor" in result.note
    wider = captured(_folders(shared_data)["a2a3/tensor_expand_clone_d2_8x8x8"], tmp_path)
    assert wider.passed
    assert "more columns than the tile, which has 1" in wider.note
