"""A chain of vector tasks: (a + b + 1) * (a + b + 2), with arguments marked for a partial dump."""

# ruff: noqa: RUF012, ARG002 - a scene declares itself by plain class attributes and fixed signatures

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


@scene_test(level=2, runtime="host_build_graph")
class VectorChain(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "orchestration.cpp",
            "function_name": "aicpu_orchestration_entry",
            "signature": [D.IN, D.IN, D.OUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "ADD",
                "source": "kernels/add.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.IN, D.OUT],
            },
            {
                "func_id": 1,
                "name": "ADDS",
                "source": "kernels/add_scalar.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.OUT, D.SCALAR, D.SCALAR],
            },
            {
                "func_id": 2,
                "name": "MUL",
                "source": "kernels/multiply.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.IN, D.OUT],
            },
        ],
    }
    CASES = [
        {"name": "Default", "platforms": ["a2a3sim", "a2a3", "a5sim", "a5"], "params": {"rows": 64}},
        {
            "name": "Large",
            "platforms": ["a2a3sim", "a2a3", "a5sim", "a5"],
            "manual": True,
            "params": {"rows": 4096},
        },
    ]

    def generate_args(self, params):
        shape = (params["rows"], 64)
        return TaskArgsBuilder(
            TensorArg("a", np.random.uniform(-1, 1, shape).astype(np.float32)),
            TensorArg("b", np.random.uniform(-1, 1, shape).astype(np.float32)),
            TensorArg("out", np.zeros(shape, np.float32)),
        )

    def compute_golden(self, args, params):
        total = args.a + args.b
        args.out[:] = (total + 1) * (total + 2)


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
