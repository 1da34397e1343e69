"""Putting a recorded payload into its strided place: whole rows at once against element by element."""

import tempfile
import time
from pathlib import Path

import numpy as np

from insight_trace.arguments.buffers import materialise
from insight_trace.arguments.slots import Recorded, ReplayTensor, make_tensor
from insight_trace.dtypes import dtype_named
from insight_trace.model import Payload, Tier

SHAPE, STRIDES = (1024, 256), (512, 1)


def element_by_element(tensor: ReplayTensor, raw: bytes) -> bytearray:
    """What a straightforward replay tool does."""
    size = tensor.dtype.size
    buffer = bytearray(tensor.buffer_size)
    for number in range(tensor.numel):
        row, column = divmod(number, tensor.shape[1])
        at = (tensor.start_offset + row * tensor.strides[0] + column * tensor.strides[1]) * size
        buffer[at : at + size] = raw[number * size : (number + 1) * size]
    return buffer


def main() -> None:
    dtype = dtype_named("FLOAT32")
    assert dtype is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "args.bin")
        raw = np.random.default_rng(0).bytes(SHAPE[0] * SHAPE[1] * dtype.size)
        path.write_bytes(raw)
        content = Recorded(Payload(path, 0, len(raw)))
        tensor = make_tensor(0, dtype, SHAPE, content, Tier.EXACT, strides=STRIDES, start_offset=64)
        started = time.perf_counter()
        slow = element_by_element(tensor, raw)
        naive = time.perf_counter() - started
        rounds = []
        for _ in range(10):
            started = time.perf_counter()
            fast = materialise(tensor)
            rounds.append(time.perf_counter() - started)
        assert fast.tobytes() == bytes(slow)
    ours = min(rounds)
    print(f"{len(raw) >> 10} KiB into strides: {ours * 1e3:.2f} ms, element by element {naive * 1e3:.0f} ms")
    print(f"ratio {naive / ours:.0f}x")


if __name__ == "__main__":
    main()
