"""What each kernel of this build computes, in NumPy.

`EXPECTED[kernel](buffers, values)` takes the content of every argument by its label before the run and
the scalars by their label, and gives the content of the arguments that the kernel writes.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Buffers = Mapping[str, Array]
Values = Mapping[str, float]


def _f32(array: Array) -> NDArray[np.float32]:
    return np.asarray(array, dtype=np.float32)


def vector_add(buffers: Buffers, _values: Values) -> dict[str, Array]:
    return {"out": buffers["a"] + buffers["b"]}


def matmul(rows: int, inner: int, columns: int) -> Callable[[Buffers, Values], dict[str, Array]]:
    def compute(buffers: Buffers, _values: Values) -> dict[str, Array]:
        a = _f32(buffers["a"]).reshape(rows, inner)
        b = _f32(buffers["b"]).reshape(inner, columns)
        return {"c": (a @ b).reshape(-1)}

    return compute


def softmax_rows(buffers: Buffers, _values: Values) -> dict[str, Array]:
    x = _f32(buffers["x"]).reshape(32, 64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": (e / e.sum(axis=1, keepdims=True)).reshape(-1)}


def scale_rows_dynamic(buffers: Buffers, values: Values) -> dict[str, Array]:
    rows, pitch = int(values["arg3"]), int(values["arg4"]) * 64
    x = np.zeros(rows * pitch, dtype=np.float32)
    x[: len(buffers["x"])] = _f32(buffers["x"])
    scaled = x.reshape(rows, pitch)[:, :64] * np.float32(values["arg2"])
    y = np.array(buffers["y"]).reshape(rows, 64)
    blocks = rows // 16
    y[: blocks * 16] = scaled[: blocks * 16].astype(y.dtype)
    return {"y": y.reshape(-1)}


def spmd_axpy(buffers: Buffers, values: Values) -> dict[str, Array]:
    index, number = int(values["__pypto_spmd_block_idx"]), int(values["__pypto_spmd_block_num"])
    per_core = 4 // number
    rows = slice(index * per_core * 32, (index + 1) * per_core * 32)
    out = np.array(buffers["out"]).reshape(128, 64)
    out[rows] = (2 * _f32(buffers["x"]) + _f32(buffers["y"])).reshape(128, 64)[rows]
    return {"out": out.reshape(-1)}


def strided_copy(buffers: Buffers, _values: Values) -> dict[str, Array]:
    return {"dst": buffers["src"].reshape(16, 192)[:, 64:128].reshape(-1)}


def gather_columns(buffers: Buffers, _values: Values) -> dict[str, Array]:
    return {"y": buffers["x"][np.asarray(buffers["idx"], dtype=np.int64)]}


def row_blocks_by_length(buffers: Buffers, _values: Values) -> dict[str, Array]:
    blocks = int(np.asarray(buffers["arg1"])[0])
    y = np.array(buffers["y"]).reshape(64, 64)
    y[: blocks * 16] = _f32(buffers["x"]).reshape(64, 64)[: blocks * 16] + np.float32(1)
    return {"y": y.reshape(-1)}


def up_relu(buffers: Buffers, _values: Values) -> dict[str, Array]:
    x, w = _f32(buffers["x"]).reshape(32, 64), _f32(buffers["w"]).reshape(64, 128)
    return {"out": np.maximum(x @ w, np.float32(0)).reshape(-1)}


def residual_norm(buffers: Buffers, _values: Values) -> dict[str, Array]:
    s = (_f32(buffers["x"]) + _f32(buffers["residual"])).reshape(16, 128)
    mean = (s * s).sum(axis=1, keepdims=True) * np.float32(1 / 128) + np.float32(1e-6)
    return {"y": (s / np.sqrt(mean)).reshape(-1)}


EXPECTED: Mapping[str, Callable[[Buffers, Values], dict[str, Array]]] = {
    "vector_add": vector_add,
    "decode.vector_add": vector_add,
    "matmul_64": matmul(64, 64, 64),
    "matmul_k_loop": matmul(32, 256, 64),
    "softmax_rows": softmax_rows,
    "scale_rows_dynamic": scale_rows_dynamic,
    "spmd_axpy": spmd_axpy,
    "strided_copy": strided_copy,
    "gather_columns": gather_columns,
    "row_blocks_by_length": row_blocks_by_length,
    "up_group_0": up_relu,
    "residual_norm": residual_norm,
}
