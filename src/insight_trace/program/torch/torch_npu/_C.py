"""What launchers of kernels take of the vendor's compiled part, whose public way is slow."""  # noqa: N999

from __future__ import annotations

from torch_npu import npu


def _npu_getCurrentRawStream(device: int) -> int:  # noqa: N802
    return npu.current_stream(device).npu_stream
