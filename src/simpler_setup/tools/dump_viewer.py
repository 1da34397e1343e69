"""`python -m simpler_setup.tools.dump_viewer [DIR] ...`: a dump under the name that simpler's users know.

Lists arguments; with --export or --index it writes them as text beside the dump. Where simpler itself is installed,
its own module of this name is found first; `insight-trace dump list|show|export` takes the same filters there.
"""

import sys


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    try:
        from insight_trace.commands import run_line
    except ImportError:
        print("insight_trace is not installed\n  pip install insight-trace", file=sys.stderr)
        return 2
    writes = {"-e", "--export"} & set(words) or any(
        w in ("-i", "--index") or w.startswith("--index=") for w in words
    )
    rest = [word for word in words if word not in ("-e", "--export")]
    if writes:
        return run_line(["dump", "export", "--format", "txt", "--force", *rest])
    return run_line(["dump", "list", *rest])


if __name__ == "__main__":
    sys.exit(main())
