"""A kernel and a scene that run: a folder to begin with.

insight-trace new my_kernel                 writes my_kernel/my_kernel.cpp and my_kernel/scene.py
"""

from __future__ import annotations

import argparse

from insight_trace.commands import call

OPTIONS = """
name NAME        text  of the kernel and its folder: letters, digits and _
-o --output DIR  path  the folder (default: NAME, in the current one)
"""


def run(options: argparse.Namespace) -> int:
    kernel, scene = call("new", options)
    print(f"wrote      {kernel}: out = exp(left + right), tile by tile")
    print(f"wrote      {scene}: its arguments, and what should come out")
    print(f"next       insight-trace replay {scene}")
    print(f"           insight-trace check {scene}")
    return 0
