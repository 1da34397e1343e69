"""A build directory to play with."""

import os
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


@pytest.fixture(scope="session")
def ptoas_checkout() -> Path:
    value = os.environ.get("INSIGHT_TRACE_PTOAS")
    if not value:
        pytest.skip("set INSIGHT_TRACE_PTOAS to a checkout of PTOAS to run this test")
    return Path(value)
