"""`python -m simpler_setup.tools.insight_trace`: the replay command under the name that simpler's users know.

A file of its own: it works beside an installed simpler (put it into its `simpler_setup/tools/`) and without one.
"""

import sys


def main(argv: list[str] | None = None) -> int:
    try:
        from insight_trace.commands import run_line
    except ImportError:
        print("insight_trace is not installed\n  pip install insight-trace", file=sys.stderr)
        return 2
    return run_line(["replay", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    sys.exit(main())
