"""torch's `npu` device on a simulated chip, in the environment of `insight-trace exec`.

Tensors, copies, streams, events and launches are there; other operators run on the CPU. What is not there says so by name.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any


def _autoload() -> None:
    """What torch calls when it is imported: also while this module imports it, so that this stands before."""


import torch  # noqa: E402

from torch_npu import _build  # noqa: E402

_PLACE = _build.library()
__file__ = str(_PLACE / "__init__.py")  # builds look for include/ and lib/ beside it
__version__ = torch.__version__.split("+")[0]

torch.utils.rename_privateuse1_backend("npu")
ctypes.CDLL("libinsight_trace_runtime.so", mode=ctypes.RTLD_GLOBAL)
torch.ops.load_library(str(_PLACE / "lib" / "libtorch_npu.so"))

from torch_npu import npu  # noqa: E402

torch._register_device_module("npu", npu)
sys.modules["torch.npu"] = npu
torch.utils.generate_methods_for_privateuse1_backend(
    for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
)
npu._initialise()
_record_stream = torch.Tensor.record_stream


def _record_on(tensor: torch.Tensor, stream: Any) -> None:
    """Memory is reused in the order of the host: nothing to keep for a stream of ours."""
    if not isinstance(stream, npu.Stream):
        _record_stream(tensor, stream)


torch.Tensor.record_stream = _record_on  # type: ignore[method-assign,assignment]

from torch_npu import _C, _operators, profiler  # noqa: E402, F401
from torch_npu._operators import *  # noqa: E402, F403


def get_npu_format(_tensor: torch.Tensor) -> int:
    return 2


def npu_format_cast(tensor: torch.Tensor, _format: int, *_: Any, **__: Any) -> torch.Tensor:
    return tensor


def __getattr__(name: str) -> Any:
    if name.startswith("npu_"):
        raise NotImplementedError(
            f"torch_npu.{name} is an operator of the vendor, which is not simulated; compute it with torch's own operators"
        )
    raise AttributeError(f"insight-trace's torch_npu has no '{name}'")


__all__ = ["npu", "profiler", *_operators.__all__]
_ = Path
