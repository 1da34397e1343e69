"""Operators of the vendor that programs compare with, written with torch's own."""

from __future__ import annotations

import torch

__all__ = ["npu_fast_gelu", "npu_rms_norm", "npu_rotary_mul", "npu_swiglu"]


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
