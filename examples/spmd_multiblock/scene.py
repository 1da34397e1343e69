"""One task in many blocks: each block of a vector kernel works on its own rows."""

# ruff: noqa: RUF012 - a scene declares itself by plain class attributes and fixed signatures

import ctypes

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class SpmdMultiblock(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "orchestration.cpp",
            "function_name": "aicpu_orchestration_entry",
            "signature": [D.IN, D.OUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "SCALE",
                "source": "kernels/scale.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.OUT],
            },
        ],
    }
    CASES = [
        {"name": "Blocks4", "platforms": ["a2a3sim", "a2a3", "a5sim", "a5"], "params": {"blocks": 4}},
        {"name": "Blocks48", "platforms": ["a2a3sim", "a2a3", "a5sim", "a5"], "params": {"blocks": 48}},
    ]

    def generate_args(self, params):
        shape = (params["blocks"] * 16, 64)
        return TaskArgsBuilder(
            TensorArg("x", np.random.uniform(-1, 1, shape).astype(np.float32)),
            TensorArg("out", np.zeros(shape, np.float32)),
            Scalar("factor", ctypes.c_float(3.0)),
        )

    def compute_golden(self, args, params):
        block = np.arange(params["blocks"], dtype=np.float32).repeat(16)[:, None]
        args.out[:] = args.x * np.float32(args.factor.value) + block


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
