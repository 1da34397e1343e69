"""Replays of our examples as Insight gets them: a kernel alone, a mix, many blocks, and the 950."""

import json
from functools import lru_cache
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.insight.container import blocks_of

EXAMPLES = Path(__file__).parents[2] / "examples"
REPLAYS = {
    "single": ("paged_attention", "CaseSmall1", "1", "a2a3"),
    "mix": ("mixed_example", "Default", "0,1,2", "a2a3"),
    "blocks": ("spmd_multiblock", "Blocks48", "0", "a2a3"),
    "a5": ("paged_attention", "CaseSmall1", "1", "a5"),
    "mix on a5": ("mixed_example", "Default", "0,1,2", "a5"),
}


class Replayed:
    """One replay: its simulator/ directory, and the blocks of its container."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "visualize_data.bin"

    def blocks(self, type_: int) -> list[bytes]:
        with self.bin.open("rb") as file:
            return [block.read(file) for block in blocks_of(self.bin) if block.type == type_]

    def block(self, type_: int):
        (payload,) = self.blocks(type_)
        return json.loads(payload)

    def sources(self) -> list[str]:
        return [block.path for block in blocks_of(self.bin) if block.type == 1]


@pytest.fixture(scope="session")
def replayed(tmp_path_factory):
    @lru_cache
    def replay(name: str) -> Replayed:
        scene, case, functions, target = REPLAYS[name]
        folder = tmp_path_factory.mktemp("replayed") / "workspace"
        command = ["replay", str(EXAMPLES / scene / "scene.py"), "--case", case, "--func-id", functions]
        assert main([*command, "--target", target, "-o", str(folder)]) == 0
        (directory,) = folder.glob("insight_export/OPPROF_*/simulator")
        return Replayed(directory)

    return replay
