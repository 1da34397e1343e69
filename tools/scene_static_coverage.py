"""How many scene modules of a simpler checkout load without being run.

python tools/scene_static_coverage.py CHECKOUT
"""

from __future__ import annotations

import sys
from pathlib import Path

from insight_trace.errors import InsightTraceError
from insight_trace.scene.static import load_scenes


def main(argv: list[str]) -> int:
    if len(argv) != 1 or not Path(argv[0]).is_dir():
        print("usage: scene_static_coverage.py CHECKOUT", file=sys.stderr)
        return 2
    root = Path(argv[0])
    total = loaded = 0
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if place.parts[0] not in ("examples", "tests"):
            continue
        if b"SceneTestCase" not in path.read_bytes():
            continue
        total += 1
        try:
            scenes = load_scenes(path)
        except InsightTraceError as error:
            print(f"{place}: {error.what}")
            continue
        loaded += 1
        for scene in scenes:
            for note in scene.notes:
                print(f"{place}: {scene.class_name}: {note}")
    print(f"SCENES total={total} loaded={loaded}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
