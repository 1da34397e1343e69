"""Paged attention with online softmax: two cube and two vector kernels for each block of keys and values."""

# ruff: noqa: RUF012 - a scene declares itself by plain class attributes and fixed signatures

import ctypes

import ml_dtypes
import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

SIMULATED = ["a2a3sim", "a2a3", "a5sim", "a5"]
SMALL = {
    "batch": 1,
    "num_heads": 16,
    "head_dim": 16,
    "block_size": 16,
    "context_len": 33,
    "max_model_len": 256,
}


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class PagedAttention(SceneTestCase):
    RTOL = 1e-3
    ATOL = 1e-3

    CALLABLE = {
        "orchestration": {
            "source": "orchestration.cpp",
            "function_name": "aicpu_orchestration_entry",
            "config_name": "aicpu_orchestration_config",
            "signature": [D.IN, D.IN, D.IN, D.IN, D.IN, D.OUT],
        },
        "incores": [
            {
                "func_id": 0,
                "name": "QK",
                "source": "kernels/scores.cpp",
                "core_type": "aic",
                "signature": [D.IN, D.IN, D.OUT],
            },
            {
                "func_id": 1,
                "name": "SF",
                "source": "kernels/softmax.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.OUT, D.OUT, D.OUT],
            },
            {
                "func_id": 2,
                "name": "PV",
                "source": "kernels/values.cpp",
                "core_type": "aic",
                "signature": [D.IN, D.IN, D.OUT],
            },
            {
                "func_id": 3,
                "name": "UP",
                "source": "kernels/update.cpp",
                "core_type": "aiv",
                "signature": [D.IN, D.IN, D.IN, D.INOUT, D.INOUT, D.INOUT, D.INOUT],
            },
        ],
    }

    CASES = [
        {"name": "CaseSmall1", "platforms": SIMULATED, "params": SMALL},
        {"name": "CaseSmall2", "platforms": SIMULATED, "params": SMALL | {"context_len": 128}},
        {
            "name": "CaseVarSeq2",
            "platforms": SIMULATED,
            "params": SMALL | {"batch": 2, "context_lens_list": [33, 17]},
        },
        {
            "name": "CaseWide",
            "platforms": SIMULATED,
            "params": SMALL | {"num_heads": 64, "head_dim": 128, "block_size": 64, "context_len": 150},
        },
        {
            "name": "Case1",
            "platforms": SIMULATED,
            "manual": True,
            # 256 requests over 64 blocks of 128 keys; the pool of blocks is shared, so that it stays small
            "params": {
                "batch": 256,
                "num_heads": 16,
                "head_dim": 128,
                "block_size": 128,
                "context_len": 8192,
                "max_model_len": 32768,
                "pool": 512,
            },
        },
        {
            "name": "Case100k",
            "platforms": SIMULATED,
            "manual": True,
            # the same for 400 requests: 102,400 dispatches
            "params": {
                "batch": 400,
                "num_heads": 16,
                "head_dim": 128,
                "block_size": 128,
                "context_len": 8192,
                "max_model_len": 32768,
                "pool": 512,
            },
        },
    ]

    def generate_args(self, params):
        batch, heads, dim, block = (params[key] for key in ("batch", "num_heads", "head_dim", "block_size"))
        lengths = np.array(params.get("context_lens_list", [params["context_len"]] * batch), np.int32)
        used = batch * -(-int(lengths.max()) // block)
        pool = params.get("pool", used)
        table = np.random.randint(0, pool, (batch, params["max_model_len"] // block)).astype(np.int32)
        return TaskArgsBuilder(
            TensorArg("query", _bfloat16(-0.5, 0.5, (batch, heads, dim))),
            TensorArg("key_cache", _bfloat16(-0.5, 0.5, (pool, block, 1, dim))),
            TensorArg("value_cache", _bfloat16(-1.0, 1.0, (pool, block, 1, dim))),
            TensorArg("block_table", table),
            TensorArg("context_lens", lengths),
            TensorArg("out", np.zeros((batch, heads, dim), np.float32)),
            Scalar("scale", ctypes.c_float(1.0 if dim == 16 else dim**-0.5)),
        )

    def compute_golden(self, args, params):
        block = params["block_size"]
        keys, values = args.key_cache[:, :, 0], args.value_cache[:, :, 0]
        for row, length in enumerate(args.context_lens):
            count = -(-int(length) // block)
            chosen = args.block_table[row, :count]
            key = keys[chosen].reshape(count * block, -1)[:length].astype(np.float32)
            value = values[chosen].reshape(count * block, -1)[:length].astype(np.float32)
            scores = (args.query[row].astype(np.float32) @ key.T) * np.float32(args.scale.value)
            # weights are rounded to bfloat16, relative to the largest score of their own block, as kernels do
            out, total, largest = 0.0, 0.0, np.full((scores.shape[0], 1), -np.inf, np.float32)
            for start in range(0, int(length), block):
                part = scores[:, start : start + block]
                peak = part.max(1, keepdims=True)
                weight = np.exp(part - peak).astype(ml_dtypes.bfloat16).astype(np.float32)
                new = np.maximum(largest, peak)
                old_scale, new_scale = np.exp(largest - new), np.exp(peak - new)
                total = old_scale * total + new_scale * weight.sum(1, keepdims=True)
                out = old_scale * out + new_scale * (weight @ value[start : start + block])
                largest = new
            args.out[row] = out / total


def _bfloat16(low, high, shape):
    return np.random.uniform(low, high, shape).astype(np.float32).astype(ml_dtypes.bfloat16)


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)
