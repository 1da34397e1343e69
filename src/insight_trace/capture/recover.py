"""Finishes the dump of a capture that was killed. The runner starts this when it finds its caller gone.

python -m insight_trace.capture.recover FOLDER LEVEL NAMES - the rows are in FOLDER; NAMES is JSON: the name
of each func id.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

KILLED = {"fault": "environment", "message": "the capture was killed"}


def command(folder: Path, level: int, names: Mapping[int, str]) -> list[str]:
    """What the runner is to execute."""
    return [sys.executable, "-m", __name__, str(folder), str(level), json.dumps(names)]


def main(folder: Path, level: int, names: Mapping[int, str]) -> None:
    from insight_trace.capture.dump_rows import read_rows, write_args_dump, write_kernel_dump

    rows = read_rows(folder / ".rows")
    if not len(rows):
        shutil.rmtree(folder.parent, ignore_errors=True)
        return
    write_args_dump(folder, rows, level, names, partial=True, failure=KILLED)
    write_kernel_dump(folder, rows, names)
    (folder / ".rows").unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), {int(k): v for k, v in json.loads(sys.argv[3]).items()})
