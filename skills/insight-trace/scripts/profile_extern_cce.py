"""The options of profile_extern_cce.py, by `insight-trace replay`."""

import sys

from insight_trace.commands import run_line

if __name__ == "__main__":
    sys.exit(run_line(["replay", *sys.argv[1:]]))
