"""One task on a whole cluster: a cube kernel and two vector kernels that share one array of arguments."""

# ruff: noqa: RUF012 - a scene declares itself by plain class attributes and fixed signatures

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

# slots 0-2 are the product's, 3-5 the sum's, 6-8 those of the elementwise product
SIGNATURE = [D.IN, D.IN, D.OUT] * 3


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class MixedExample(SceneTestCase):
    RTOL = 1e-3
    ATOL = 1e-3
    CALLABLE = {
        "orchestration": {
            "source": "orchestration.cpp",
            "function_name": "aicpu_orchestration_entry",
            "signature": SIGNATURE,
        },
        "incores": [
            {
                "func_id": 0,
                "name": "MATMUL",
                "source": "kernels/matmul.cpp",
                "core_type": "aic",
                "signature": SIGNATURE,
            },
            {
                "func_id": 1,
                "name": "ADD",
                "source": "kernels/add.cpp",
                "core_type": "aiv",
                "signature": SIGNATURE,
            },
            {
                "func_id": 2,
                "name": "MUL",
                "source": "kernels/multiply.cpp",
                "core_type": "aiv",
                "signature": SIGNATURE,
            },
        ],
    }
    CASES = [
        {"name": "Default", "platforms": ["a2a3sim", "a2a3", "a5sim", "a5"], "params": {"tasks": 1}},
        {"name": "Many", "platforms": ["a2a3sim", "a2a3", "a5sim", "a5"], "params": {"tasks": 4}},
    ]

    def generate_args(self, params):
        names = ("a", "b", "c", "d", "e", "f", "g", "h", "i")
        shape = (params["tasks"] * 64, 64)
        return TaskArgsBuilder(
            *(
                TensorArg(
                    name,
                    np.zeros(shape, np.float32)
                    if name in "cfi"
                    else np.random.uniform(-1, 1, shape).astype(np.float32),
                )
                for name in names
            )
        )

    def compute_golden(self, args, params):
        for first in range(0, params["tasks"] * 64, 64):
            rows = slice(first, first + 64)
            args.c[rows] = args.a[rows] @ args.b[rows]
        args.f[:] = args.d + args.e
        args.i[:] = args.g * args.h


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
