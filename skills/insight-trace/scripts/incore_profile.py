"""The options of incore_profile.py, by `insight-trace profile`."""

import sys

from insight_trace.commands import run_line

if __name__ == "__main__":
    sys.exit(run_line(["profile", *sys.argv[1:]]))
