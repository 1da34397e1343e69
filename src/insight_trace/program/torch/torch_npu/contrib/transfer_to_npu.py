"""`cuda` in device strings and calls means `npu`."""

from __future__ import annotations

import torch

import torch_npu

torch.cuda.is_available = torch_npu.npu.is_available
for _name in (
    "synchronize",
    "current_stream",
    "Event",
    "Stream",
    "stream",
    "set_device",
    "current_device",
    "device_count",
):
    setattr(torch.cuda, _name, getattr(torch_npu.npu, _name))
torch.Tensor.cuda = lambda self, *_, **__: self.to("npu")
torch.nn.Module.cuda = lambda self, *_, **__: self.to("npu")
