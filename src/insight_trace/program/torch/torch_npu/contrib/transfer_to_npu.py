"""`cuda` in device strings and calls means `npu`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

import torch_npu

_NAMES = (
    "is_available", "synchronize", "current_stream", "default_stream", "set_stream", "Event", "Stream", "stream", "device",
    "set_device", "current_device", "device_count", "get_device_name", "get_device_properties", "get_device_capability",
    "empty_cache", "mem_get_info", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
    "reset_peak_memory_stats", "manual_seed", "manual_seed_all", "is_bf16_supported", "amp",
)  # fmt: skip
_FACTORIES = (
    "tensor", "as_tensor", "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full",
    "full_like", "arange", "linspace", "eye", "rand", "rand_like", "randn", "randn_like", "randint", "randint_like",
    "randperm", "device", "autocast", "Generator", "load", "scalar_tensor", "tril_indices", "triu_indices", "logspace",
)  # fmt: skip


def _renamed(value: Any) -> Any:
    if isinstance(value, str):
        return "npu" + value[4:] if value == "cuda" or value.startswith("cuda:") else value
    return torch.device("npu", value.index) if isinstance(value, _DEVICE) and value.type == "cuda" else value


def _on_npu(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        return function(*map(_renamed, values), **{name: _renamed(value) for name, value in named.items()})

    return call


class _Named(type):
    """`isinstance(x, torch.device)` goes on to mean what it did."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.original)  # type: ignore[attr-defined]


def _class_on_npu(original: type) -> type:
    make = _on_npu(original)
    return _Named(
        original.__name__,
        (),
        {"original": original, "__new__": lambda _, *values, **named: make(*values, **named)},
    )


_DEVICE = torch.device
for _name in _NAMES:
    setattr(torch.cuda, _name, getattr(torch_npu.npu, _name))
for _name in ("autocast", "GradScaler"):
    setattr(sys.modules["torch.cuda.amp"], _name, getattr(torch_npu.npu.amp, _name))
for _name in _FACTORIES:
    _given = getattr(torch, _name)
    setattr(torch, _name, _class_on_npu(_given) if isinstance(_given, type) else _on_npu(_given))
for _class in (torch.Tensor, torch.nn.Module):
    _class.to = _on_npu(_class.to)  # type: ignore[method-assign,assignment,attr-defined]
    _class.cuda = lambda self, *_, **__: self.to("npu")  # type: ignore[attr-defined,method-assign]
torch.Tensor.is_cuda = property(lambda self: self.device.type == "npu")  # type: ignore[assignment]
for _name in ("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor"):
    setattr(torch.Tensor, _name, _on_npu(getattr(torch.Tensor, _name)))
