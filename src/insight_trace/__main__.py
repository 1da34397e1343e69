"""`insight-trace` and `python -m insight_trace`."""

from __future__ import annotations

import sys

from insight_trace.commands import run


def main(argv: list[str] | None = None) -> int:
    return run(sys.argv[1:] if argv is None else argv)


if __name__ == "__main__":
    sys.exit(main())
