"""Many turns, many at once, in one process: nothing grows. `make soak` runs longer."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "soak.py"


def test_nothing_grows_in_a_short_soak():
    words = [sys.executable, str(TOOL), "--seconds", "5", "--at-once", "6"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "; 0 differ" in done.stdout
