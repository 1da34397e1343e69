"""A kernel and a scene that run: a folder to begin with.

insight-trace new my_kernel                 writes my_kernel/my_kernel.cpp and my_kernel/scene.py
"""

from __future__ import annotations

import argparse
import importlib.resources
import re
from pathlib import Path


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the kernel and its folder: letters, digits and _")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="the folder (default: NAME, in the current one)"
    )


def run(options: argparse.Namespace) -> int:
    from insight_trace.errors import RequestError
    from insight_trace.storage import write_whole

    name = options.name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise RequestError(
            f"'{name}' is no name for a kernel", hint="use letters, digits and _, and begin with a letter"
        )
    folder: Path = options.output or Path(name)
    if folder.exists():
        raise RequestError(
            f"{folder} is there already", hint="choose another name, or another folder with -o"
        )
    words = {
        "NAME": name,
        "CLASS": "".join(part.capitalize() for part in name.split("_") if part) or "Scene",
        "KERNEL": name.upper(),
    }
    folder.mkdir(parents=True)
    files = importlib.resources.files("insight_trace").joinpath("starter")
    kernel, scene = folder / f"{name}.cpp", folder / "scene.py"
    write_whole(kernel, files.joinpath("kernel.cpp").read_text("utf-8"))
    text = files.joinpath("scene.txt").read_text("utf-8")
    write_whole(scene, re.sub("|".join(words), lambda found: words[found[0]], text))
    print(f"wrote      {kernel}: out = exp(left + right), tile by tile")
    print(f"wrote      {scene}: its arguments, and what should come out")
    print(f"next       insight-trace replay {scene}")
    print(f"           insight-trace check {scene}")
    return 0
