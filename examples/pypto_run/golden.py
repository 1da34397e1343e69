"""What the build runs with, and what it should give."""

from pathlib import Path

import torch

_DATA_DIR = Path(__file__).parent / "data"

__outputs__ = ["z"]
RTOL = 1e-05
ATOL = 1e-05


def generate_inputs(params):  # noqa: ARG001 - as every golden is called
    """Generate inputs as a list of (name, value) tuples."""
    x = torch.load(_DATA_DIR / "in" / "x.pt", weights_only=True)
    config = torch.load(_DATA_DIR / "in" / "config.pt", weights_only=True)
    z = torch.zeros((128, 64), dtype=torch.float32)

    return [
        ("x", x),
        ("config", config),
        ("z", z),
    ]


def compute_golden(tensors, params=None):  # noqa: ARG001
    y = torch.zeros((128, 64))
    rows = int(tensors["config"][0]) * 16
    y[:rows] = tensors["x"][:rows] * 0.5 + 1.0
    tensors["z"][:] = y * y + y
