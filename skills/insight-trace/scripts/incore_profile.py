"""The options of incore_profile.py, by `insight-trace profile`."""

import sys

from insight_trace.commands import run

if __name__ == "__main__":
    sys.exit(run(["profile", *sys.argv[1:]]))
