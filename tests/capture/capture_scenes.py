"""Scenes for the tests of capture: our examples, and small ones made up around an orchestration."""

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CHAIN_KERNELS = EXAMPLES / "vector_chain" / "kernels"

_SCENE = """
import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class MadeUp(SceneTestCase):
    CALLABLE = {{
        "orchestration": {{
            "source": "orchestration.cpp",
            "function_name": "aicpu_orchestration_entry",
            "signature": [D.IN, D.IN, D.OUT],
        }},
        "incores": [
            {{"func_id": 0, "name": "ADD", "source": "{add}", "core_type": "aiv",
              "signature": [D.IN, D.IN, D.OUT]}},
            {{"func_id": 1, "name": "OWN", "source": "{own}", "core_type": "aiv"}},
        ],
    }}
    CASES = [
        {{"name": "Default", "platforms": ["a2a3sim"], "params": {{}}}},
        {{"name": "Other", "platforms": ["a2a3"], "params": {{}}}},
    ]

    def generate_args(self, params):
        return TaskArgsBuilder(*(TensorArg(n, np.ones((64, 64), np.float32)) for n in ("a", "b", "out")))

    def compute_golden(self, args, params):
        args.out[:] = 2
"""

_ORCHESTRATION = """
#include <chrono>
#include <stdexcept>
#include <thread>
#include "pto_orchestration_api.h"
extern "C" void aicpu_orchestration_entry(const ChipTaskArgs &args) {{
    const ChipTensor &a = args.tensor(0).ref();
    const ChipTensor &b = args.tensor(1).ref();
    const ChipTensor &out = args.tensor(2).ref();
    uint32_t shape[2] = {{64, 64}};
    TensorCreateInfo info(shape, 2);
    CoreTaskArgs task;
    task.add_input(a, b);
    task.add_output(out);
    rt_submit_aiv_task(0, task);
    {body}
}}
"""

_KERNEL = """
#include "tiles.hpp"
#include "intrinsic.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {{
    {body}
}}
"""


def make_scene(folder: Path, body: str, kernel: str = "") -> Path:
    """A scene that adds two tensors, then does what `body` says. Func id 1 does what `kernel` says."""
    own = folder / "own.cpp"
    include = (CHAIN_KERNELS / "tiles.hpp").as_posix()
    own.write_text(_KERNEL.format(body=kernel).replace("tiles.hpp", include), encoding="utf-8")
    (folder / "orchestration.cpp").write_text(_ORCHESTRATION.format(body=body), encoding="utf-8")
    scene = folder / "scene.py"
    scene.write_text(_SCENE.format(add=CHAIN_KERNELS / "add.cpp", own=own), encoding="utf-8")
    return scene


def line_of(path: Path, text: str) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)
