"""Operators of the vendor that programs compare with, written with torch's own."""

from __future__ import annotations

from collections.abc import Sequence

import torch

__all__ = [
    "npu_add_rms_norm", "npu_broadcast", "npu_confusion_transpose", "npu_dtype_cast", "npu_dynamic_quant", "npu_fast_gelu",
    "npu_gelu", "npu_mish", "npu_rms_norm", "npu_rotary_mul", "npu_silu", "npu_swiglu", "npu_transpose",
]  # fmt: skip


def npu_swiglu(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    first, second = torch.chunk(x.float(), 2, dim)
    return (torch.nn.functional.silu(first) * second).to(x.dtype)


def npu_rms_norm(
    x: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    wide = x.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    return (wide * scale * gamma.float()).to(x.dtype), scale


def npu_rotary_mul(x: torch.Tensor, r1: torch.Tensor, r2: torch.Tensor, *_: object) -> torch.Tensor:
    first, second = torch.chunk(x, 2, -1)
    return r1 * x + r2 * torch.cat((-second, first), -1)


def npu_fast_gelu(x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    return (wide / (1 + torch.exp(-1.702 * wide))).to(x.dtype)


def npu_add_rms_norm(
    x1: torch.Tensor, x2: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    total = (x1.float() + x2.float()).to(x1.dtype)
    made, scale = npu_rms_norm(total, gamma, epsilon)
    return made, scale, total


def npu_silu(self: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(self.float()).to(self.dtype)


def npu_gelu(self: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    return torch.nn.functional.gelu(self.float(), approximate=approximate).to(self.dtype)


def npu_mish(self: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mish(self.float()).to(self.dtype)


def npu_dtype_cast(input: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return input.to(dtype)


def npu_transpose(self: torch.Tensor, perm: Sequence[int], require_contiguous: bool = True) -> torch.Tensor:
    return self.permute(*perm).contiguous() if require_contiguous else self.permute(*perm)


def npu_broadcast(self: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    return self.expand(*size).contiguous()


def npu_confusion_transpose(
    self: torch.Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> torch.Tensor:
    """A transposition before or behind a change of shape, as one operator."""
    if transpose_first:
        return self.permute(*perm).contiguous().view(*shape)
    return self.view(*shape).permute(*perm).contiguous()


def npu_dynamic_quant(
    x: torch.Tensor, smooth_scales: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows as bytes, each by its own largest number."""
    wide = x.float() if smooth_scales is None else x.float() * smooth_scales.float()
    scale = wide.abs().amax(-1, keepdim=True) / 127
    made = torch.where(scale > 0, wide / scale, 0.0).round().clamp(-128, 127).to(torch.int8)
    return made, scale.squeeze(-1)


_SCHEMAS = {
    "npu_add_rms_norm": "(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor, Tensor)",
    "npu_broadcast": "(Tensor self, int[] size) -> Tensor",
    "npu_confusion_transpose": "(Tensor self, int[] perm, int[] shape, bool transpose_first) -> Tensor",
    "npu_dynamic_quant": "(Tensor x, Tensor? smooth_scales=None) -> (Tensor, Tensor)",
    "npu_fast_gelu": "(Tensor x) -> Tensor",
    "npu_gelu": '(Tensor self, str approximate="none") -> Tensor',
    "npu_mish": "(Tensor self) -> Tensor",
    "npu_rms_norm": "(Tensor x, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)",
    "npu_rotary_mul": "(Tensor x, Tensor r1, Tensor r2) -> Tensor",
    "npu_silu": "(Tensor self) -> Tensor",
    "npu_swiglu": "(Tensor x, int dim=-1) -> Tensor",
    "npu_transpose": "(Tensor self, int[] perm, bool require_contiguous=True) -> Tensor",
}
# also as torch.ops.npu.NAME; a project may add operators of its own to that name
_LIBRARY = torch.library.Library("npu", "FRAGMENT")
for _name, _schema in _SCHEMAS.items():
    _LIBRARY.define(f"{_name}{_schema}")
    _LIBRARY.impl(_name, globals()[_name], "CompositeImplicitAutograd")
