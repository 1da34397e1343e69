"""Cases, kernels, func ids and core types of a scene. Reads the module, never runs it."""

from __future__ import annotations

import argparse
import sys


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", metavar="SCENE", help="scene module; SCENE.py::Class where it holds several")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options: argparse.Namespace) -> int:
    from insight_trace.scene.describe import scene_json, scene_lines
    from insight_trace.scene.static import load_scene

    scene = load_scene(options.scene)
    if options.json:
        import json

        json.dump(scene_json(scene), sys.stdout, indent=2, default=str)
        print()
        return 0
    for line in scene_lines(scene):
        print(line)
    return 0
