"""The command line: one module per command, each with `HELP`, `prepare(parser)` and `run(options)`.

Only the module of the command that was typed is imported; a module imports what it needs inside `run`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from insight_trace import __version__
from insight_trace.errors import InsightTraceError

# command -> its line in `insight-trace --help`; the module is insight_trace.commands.<command>
COMMANDS: dict[str, str] = {
    "profile": "every kernel of a PyPTO build: one trace per kernel",
    "demo": "the whole way on the bundled paged attention; prints what to open",
    "scene": "cases, kernels, func ids and core types of a scene",
    "capture": "run a scene on the host and record every dispatch",
    "dump": "list, show, export and compare what a run recorded of its dispatches",
    "doctor": "what this machine has: compiler, CANN, msprof, ptoas, and what follows",
    "replay": "simulate one recorded dispatch, check it, write what Insight opens",
    "op": "cycles of one tile op, or of a table of them",
    "export": "core model dump logs to the Insight directory, or check any such directory",
    "clean": "a trace without clutter: lanes in dataflow order, flags as arrows, per-instruction numbers",
    "stats": "where the cycles go: pipes, waits, critical path, hot lines, and what to fix first",
    "compare": "two traces, instruction by instruction and pipe by pipe",
    "view": "the page: timeline, pipes, source, memory, two runs side by side",
}


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [
        "usage: insight-trace COMMAND ...",
        "",
        "From one kernel dispatch observed at run time to a trace that opens in MindStudio Insight.",
        "",
        *(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()),
        "",
        "`insight-trace COMMAND --help` says more. --debug shows the traceback of an error.",
    ]
    return "\n".join(lines)


def _unknown(word: str) -> str:
    import difflib

    near = difflib.get_close_matches(word, COMMANDS, n=1)
    guess = f"did you mean '{near[0]}'?" if near else "`insight-trace --help` lists the commands."
    return f"insight-trace: there is no command '{word}'\n  {guess}"


def run(argv: list[str]) -> int:
    """Runs one command line; returns the exit code (0 done, 1 the job failed, 2 the request was wrong)."""
    debug = "--debug" in argv
    argv = [word for word in argv if word != "--debug"]
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview())
        return 0 if argv else 2
    if argv[0] in ("-V", "--version"):
        print(f"insight-trace {__version__}")
        return 0
    name, rest = argv[0], argv[1:]
    if name not in COMMANDS:
        print(_unknown(name), file=sys.stderr)
        return 2
    command = importlib.import_module(f"insight_trace.commands.{name}")
    parser = argparse.ArgumentParser(
        prog=f"insight-trace {name}",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.prepare(parser)
    try:
        options = parser.parse_args(rest)
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 2
    try:
        return int(command.run(options))
    except InsightTraceError as error:
        if debug:
            raise
        print(f"insight-trace {name}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # the reader of our output went away (`| head`): nothing more to say to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(f"insight-trace {name}: interrupted", file=sys.stderr)
        return 130
