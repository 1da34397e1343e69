"""tools/scene_coverage.py captures every scene of a checkout and says why one does not pass."""

import os
import shutil
import subprocess
import sys

import pytest
from capture_scenes import EXAMPLES

TOOL = EXAMPLES.parent / "tools" / "scene_coverage.py"


@pytest.mark.skipif(
    bool(os.environ.get("INSIGHT_TRACE_SANITIZE")),
    reason="sanitizers reserve more than the tool's memory limit",
)
def test_it_prints_every_scene_with_the_cause_of_its_failure(tmp_path):
    for name in ("good", "wrong", "elsewhere"):
        folder = tmp_path / "examples" / name
        shutil.copytree(EXAMPLES / "vector_chain", folder)
        (folder / "scene.py").rename(folder / f"test_{name}.py")
    wrong = tmp_path / "examples" / "wrong" / "test_wrong.py"
    wrong.write_text(wrong.read_text().replace("(total + 2)", "(total + 3)"))
    elsewhere = tmp_path / "examples" / "elsewhere" / "test_elsewhere.py"
    elsewhere.write_text(elsewhere.read_text().replace('["a2a3sim", "a2a3", "a5sim", "a5"]', '["a5"]'))
    command = [sys.executable, str(TOOL), str(tmp_path), "--jobs", "1", "--platform", "a2a3sim"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "passed        examples/good/test_good.py a2a3sim Default" in printed
    assert "golden failed examples/wrong/test_wrong.py a2a3sim Default" in printed
    assert "4096 of 4096 differ" in printed
    assert "not for here  examples/elsewhere/test_elsewhere.py\n              for a5\n" in printed
    assert "    1  passed, host_build_graph" in printed
    assert "    1  of 3 scenes pass" in printed
