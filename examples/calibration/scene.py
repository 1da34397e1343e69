"""Tasks that a chip's numbers can be told from: each does one kind of step many times (`insight-trace calibrate`)."""

# ruff: noqa: RUF012, ARG002 - a scene declares itself by plain class attributes and fixed signatures

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

VECTOR, CUBE = 0, 1
SIDE = 64
VECTOR_STEPS = range(6)  # load, store, add a scalar, exponential, multiply, divide
CUBE_STEPS = range(5)  # load, move left, move right, multiply, store
OFTEN = 24
OPERATIONS = [lambda x: x + 1] * 3 + [np.exp, np.square, lambda x: x / x]


def orchestrate(rt, args):
    with rt.scope():
        for _ in range(args.repeats.shape[0]):
            for step in VECTOR_STEPS:
                for place, rows in enumerate((1, SIDE)):
                    out = args.values.view((SIDE, SIDE), ((2 * step + place) * SIDE, 0))
                    task = rt.args().add_input(args.a).add_output(out)
                    task.add_scalar(np.int64(step), np.int64(OFTEN), np.int64(rows))
                    rt.submit_aiv_task(VECTOR, task)
            for step in CUBE_STEPS:
                for place, rows in enumerate((16, SIDE)):
                    out = args.products.view((SIDE, SIDE), ((2 * step + place) * SIDE, 0))
                    task = rt.args().add_input(args.left, args.right).add_output(out)
                    task.add_scalar(np.int64(step), np.int64(OFTEN), np.int64(rows))
                    rt.submit_aic_task(CUBE, task)


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class Calibration(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "function_name": "orchestrate",
            "signature": [D.IN, D.IN, D.IN, D.OUT, D.OUT, D.IN],
        },
        "incores": [
            {
                "func_id": VECTOR,
                "name": "VECTOR",
                "source": "kernels/vector_steps.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.OUT, D.SCALAR, D.SCALAR, D.SCALAR],
            },
            {
                "func_id": CUBE,
                "name": "CUBE",
                "source": "kernels/cube_steps.cpp",
                "core_type": "aic",
                "signature": [D.IN, D.IN, D.OUT, D.SCALAR, D.SCALAR, D.SCALAR],
            },
        ],
    }
    CASES = [
        {"name": "Once", "platforms": ["a2a3sim", "a2a3"], "params": {"repeats": 1}},
        {"name": "Calibrate", "platforms": ["a2a3sim", "a2a3"], "manual": True, "params": {"repeats": 16}},
    ]

    def generate_args(self, params):
        square = (SIDE, SIDE)
        return TaskArgsBuilder(
            TensorArg("a", np.random.uniform(1, 2, square).astype(np.float32)),
            TensorArg("left", np.random.uniform(-1, 1, square).astype(np.float16)),
            TensorArg("right", np.random.uniform(-1, 1, square).astype(np.float16)),
            TensorArg("values", np.zeros((2 * len(VECTOR_STEPS) * SIDE, SIDE), np.float32)),
            TensorArg("products", np.zeros((2 * len(CUBE_STEPS) * SIDE, SIDE), np.float32)),
            TensorArg("repeats", np.zeros(params["repeats"], np.int32)),
        )

    def compute_golden(self, args, params):
        args.values[:] = np.concatenate([op(args.a) for op in OPERATIONS for _ in range(2)])
        product = args.left.astype(np.float32) @ args.right.astype(np.float32)
        args.products[:] = np.tile(product, (2 * len(CUBE_STEPS), 1))


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
