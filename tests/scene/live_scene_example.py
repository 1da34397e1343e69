"""A scene that builds NumPy arrays, as the scenes of this project do."""

import ctypes

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIZE = 4 * 4


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestScaled(SceneTestCase):
    RTOL = 1e-4
    CALLABLE = {  # noqa: RUF012
        "orchestration": {"source": "orch.cpp", "function_name": "entry", "signature": [D.IN, D.OUT]},
        "incores": [
            {
                "func_id": 0,
                "source": "kernels/scale.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.OUT],
                "extra_include_dirs": ["$HOME/include"],
            }
        ],
    }
    CASES = [  # noqa: RUF012
        {"name": "Small", "platforms": ["a2a3sim"], "params": {"size": SIZE}},
        {"name": "Blind", "platforms": ["a2a3"], "manual": ["a2a3"], "skip_golden": True},
    ]

    def generate_args(self, params):
        size = params.get("size", 1)
        return TaskArgsBuilder(
            TensorArg("x", np.arange(size, dtype=np.float32)),
            TensorArg("y", np.zeros(size, dtype=np.float32)),
            Scalar("factor", ctypes.c_float(1.5)),
            Scalar("count", ctypes.c_int32(-1)),
        )

    def compute_golden(self, args, params):  # noqa: ARG002 - every scene is called so
        args.y[:] = args.x * args.factor.value


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
