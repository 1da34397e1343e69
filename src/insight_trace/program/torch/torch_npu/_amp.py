"""Mixed precision by the names of `torch.npu.amp`."""

from __future__ import annotations

import functools
from typing import Any

import torch

custom_fwd = functools.partial(torch.amp.custom_fwd, device_type="npu")
custom_bwd = functools.partial(torch.amp.custom_bwd, device_type="npu")


class autocast(torch.autocast):  # noqa: N801
    """`torch.autocast` of the device."""

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("npu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler` of the device."""

    def __init__(self, *settings: Any, **named: Any) -> None:
        super().__init__("npu", *settings, **named)
