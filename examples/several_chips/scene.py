"""A sum over several chips: each shows its part in a window that the others can read."""

# ruff: noqa: RUF012 - a scene declares itself by plain class attributes and fixed signatures

import ctypes

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import CommBufferSpec, DataType, TaskArgs, TensorArgType
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test
from simpler_setup.scene_test import _rehosted_ref

COUNT = 256
WINDOW = 4096


def orchestrate(orch, callables, args, config):
    chips = int(args.chips.value)
    with orch.allocate_domain(
        name="sum",
        workers=list(range(chips)),
        window_size=WINDOW,
        buffers=[CommBufferSpec(name="shown", dtype="float32", count=COUNT, nbytes=COUNT * 4 + chips * 4)],
    ) as domain:
        tasks = []
        for chip in range(chips):
            task = TaskArgs()
            task.add_tensor(_rehosted_ref(args, f"part_{chip}"), TensorArgType.INPUT)
            task.add_tensor(_rehosted_ref(args, f"sum_{chip}"), TensorArgType.OUTPUT_EXISTING)
            task.add_tensor(
                domain[chip].buffers["shown"].tensor((COUNT,), DataType.FLOAT32), TensorArgType.INOUT
            )
            task.add_scalar(domain[chip].device_ctx)
            task.add_scalar(int(chip == int(args.silent.value)))
            tasks.append(task)
        orch.submit_next_level_group(callables.sum_over_chips, tasks, config, workers=list(range(chips)))


@scene_test(level=3, runtime="tensormap_and_ringbuffer")
class SumOverChips(SceneTestCase):
    CALLABLE = {
        "orchestration": orchestrate,
        "callables": [
            {
                "name": "sum_over_chips",
                "orchestration": {
                    "source": "orchestration.cpp",
                    "function_name": "aicpu_orchestration_entry",
                    "config_name": "aicpu_orchestration_config",
                    "signature": [D.IN, D.OUT, D.INOUT],
                },
                "incores": [
                    {
                        "func_id": 0,
                        "name": "SUM",
                        "source": "kernels/sum_over_chips.cpp",
                        "core_type": "aiv",
                        "signature": [D.IN, D.OUT, D.INOUT],
                    }
                ],
            }
        ],
    }
    CASES = [
        {
            "name": f"Chips{chips}",
            "platforms": ["a2a3sim", "a2a3", "a5sim", "a5"],
            "config": {"device_count": chips},
            "params": {"chips": chips},
        }
        for chips in (2, 4)
    ] + [
        # the last chip tells nobody that its part is there: all of them wait for ever
        {
            "name": "Deadlock",
            "platforms": ["a2a3sim"],
            "manual": True,
            "config": {"device_count": 2},
            "params": {"chips": 2, "silent": 1},
        }
    ]

    def generate_args(self, params):
        chips, draw = params["chips"], np.random.default_rng(1)
        tensors = []
        for chip in range(chips):
            tensors.append(TensorArg(f"part_{chip}", draw.integers(-50, 50, COUNT).astype(np.float32)))
            tensors.append(TensorArg(f"sum_{chip}", np.zeros(COUNT, np.float32)))
        scalars = {"chips": chips, "silent": params.get("silent", -1)}
        return TaskArgsBuilder(*tensors, *(Scalar(k, ctypes.c_int64(v)) for k, v in scalars.items()))

    def compute_golden(self, args, params):
        total = sum(getattr(args, f"part_{chip}") for chip in range(params["chips"]))
        for chip in range(params["chips"]):
            getattr(args, f"sum_{chip}")[:] = total
