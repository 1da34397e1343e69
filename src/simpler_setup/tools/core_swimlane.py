"""`python -m simpler_setup.tools.core_swimlane`: one task's swimlane under the name that simpler's users know.

Where simpler itself is installed, its own module of this name is found first; `insight-trace core-swimlane` takes
the same flags there.
"""

import sys


def main(argv: list[str] | None = None) -> int:
    try:
        from insight_trace.commands import run_line
    except ImportError:
        print("insight_trace is not installed\n  pip install insight-trace", file=sys.stderr)
        return 2
    return run_line(["core-swimlane", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    sys.exit(main())
