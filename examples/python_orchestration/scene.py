"""The vector chain with its orchestration in Python: (a + b + 1) * (a + b + 2), tile by tile."""

# ruff: noqa: RUF012, ARG002 - a scene declares itself by plain class attributes and fixed signatures

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

ADD, ADD_SCALAR, MULTIPLY = 0, 1, 2
TILE = (64, 64)


def orchestrate(rt, args):
    for row in range(0, args.a.shape[0], TILE[0]):
        with rt.scope():
            a, b, out = (t.view(TILE, (row, 0)) for t in (args.a, args.b, args.out))
            total = rt.submit_aiv_task(ADD, rt.args().add_input(a, b).add_output(rt.create(TILE)))
            plus = [
                rt.submit_aiv_task(
                    ADD_SCALAR,
                    rt.args()
                    .add_input(total[0])
                    .add_output(rt.create(TILE))
                    .add_scalar(np.float32(value), np.int32(TILE[0])),
                )
                for value in (1, 2)
            ]
            rt.submit_aiv_task(MULTIPLY, rt.args().add_input(plus[0][0], plus[1][0]).add_output(out).dump())


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class PythonOrchestration(SceneTestCase):
    CALLABLE = {
        "orchestration": {"function_name": "orchestrate", "signature": [D.IN, D.IN, D.OUT]},
        "incores": [
            {
                "func_id": ADD,
                "name": "ADD",
                "source": "../vector_chain/kernels/add.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.IN, D.OUT],
            },
            {
                "func_id": ADD_SCALAR,
                "name": "ADDS",
                "source": "../vector_chain/kernels/add_scalar.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.OUT, D.SCALAR, D.SCALAR],
            },
            {
                "func_id": MULTIPLY,
                "name": "MUL",
                "source": "../vector_chain/kernels/multiply.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.IN, D.OUT],
            },
        ],
    }
    CASES = [{"name": "Default", "platforms": ["a2a3sim", "a2a3"], "params": {"rows": 128}}]

    def generate_args(self, params):
        shape = (params["rows"], TILE[1])
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
