"""A build directory to play with."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "pypto_build"


@pytest.fixture
def example_build(tmp_path: Path) -> Path:
    """A copy of the example build, so that a run may write into it."""
    build = tmp_path / "build"
    shutil.copytree(EXAMPLE, build)
    return build
