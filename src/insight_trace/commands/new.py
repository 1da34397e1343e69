"""A kernel and a scene that run: a folder to begin with.

insight-trace new my_kernel                 writes my_kernel/my_kernel.cpp and my_kernel/scene.py
"""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the kernel and its folder: letters, digits and _")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="the folder (default: NAME, in the current one)"
    )


def run(options: argparse.Namespace) -> int:
    from insight_trace import new

    kernel, scene = new(options.name, options.output)
    print(f"wrote      {kernel}: out = exp(left + right), tile by tile")
    print(f"wrote      {scene}: its arguments, and what should come out")
    print(f"next       insight-trace replay {scene}")
    print(f"           insight-trace check {scene}")
    return 0
